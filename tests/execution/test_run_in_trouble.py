"""What goes wrong around a run: clusters that do not answer or are others, refusals, brokers and topics that leave.

A rate that somebody else's moves use is waited for, never set over: of another installation, or of Kafka's tool.

Rows that name the log directory of a new replica: its broker is told before the move is submitted.

A worker that is told to stop ends its step within 20 s: no call is begun after 15 s, and each has 4 s at most.

Of a cluster that uses every call's deadline up, or a share of it, on a clock that goes on by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from unittest import mock

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import services as running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.core.messages import PlainReason, as_message
from kafkadash.execution.engine.reasons import (
    AllRefused,
    AnotherClusterAnswers,
    ClusterUnreadable,
    LiesElsewhere,
    LiesNobodyKnows,
    NotElected,
    NotSentYet,
    OtherTopicsReadLongAgo,
    RateInUse,
    RefusedByKafka,
    RunReasonCode,
    StillGoing,
    TopicDeleted,
    UnderMinIsrBrake,
)
from kafkadash.execution.models import Execution, Move, RunOutcome, ThrottleEntry
from kafkadash.execution.worker import step as stepping
from kafkadash.execution.worker.running import RunningStep
from kafkadash.execution.worker.snapshot import OTHERS_CLEAR
from kafkadash.kafka.api import (
    ConfigResource,
    DeadlineExceeded,
    ItemError,
    KafkaClient,
    KafkaUnreachable,
    QuorumUnavailable,
    ReplicaPlace,
    TopicPartition,
)
from kafkadash.kafka.throttles import FOLLOWER_RATE, LEADER_RATE
from kafkadash.monitoring.models import CollectorRun, MoveOutcome, ThrottleState, TopicState
from tests.execution.worlds import OPTIONS, RATE, ROWS, SIZE, World, begun, clean
from tests.factories import ThrottleFactory, ended

pytestmark = pytest.mark.django_db


def test_look_failed__changes_nothing_and_says_why(world: World, operator: User) -> None:
    begun(world, operator)
    before = world.states()
    failure = world.kafka.fail["metadata"] = DeadlineExceeded(as_message("No answer within 8 s."))
    for _ in range(3):
        world.tick()
    assert world.states() == before
    run = world.run()
    assert (run.error, run.failures) == (ClusterUnreadable(str(failure)), 3)
    world.kafka.fail.clear()
    world.until(RequestState.DONE)


def test_quorum_away__holds_and_goes_on_by_itself(world: World, operator: User) -> None:
    begun(world, operator)
    before = world.states()
    world.kafka.fail["list_reassignments"] = QuorumUnavailable(as_message("No majority."))
    world.tick()
    assert world.states() == before
    assert world.run().held_reasons[:2] == (
        PlainReason(RunReasonCode.QUORUM_SILENT),
        PlainReason(RunReasonCode.LISTING_UNREAD),
    )
    world.kafka.fail.clear()
    world.until(RequestState.DONE)


def test_another_cluster_answers__nothing_is_done_there_and_after_long_it_has_failed(
    world: World, operator: User
) -> None:
    begun(world, operator)
    before, sent = world.states(), len(world.kafka.sent)
    own, world.kafka.cluster_id = world.kafka.cluster_id, "AnotherClusterAltogether"
    world.tick()
    assert world.run().error == AnotherClusterAnswers(world.cluster.name, "AnotherClusterAltogether", own)
    assert (world.states(), len(world.kafka.sent)) == (before, sent)
    assert world.change().state == RequestState.EXECUTING
    world.passes(11 * 60)
    world.step()
    assert world.change().state == RequestState.EXECUTING, "the worker may have been away that long"
    for _ in range(20):
        world.step()
    assert world.change().state == RequestState.FAILED
    assert {state for state, _ in world.states().values()} == {"unknown", "cancelled"}
    assert len(world.kafka.sent) == sent
    run = world.run()
    assert not run.active
    assert run.ended_at is not None
    assert ThrottleEntry.objects.exclude(state="cleared").exists(), "owed"

    world.kafka.cluster_id = own
    world.step()
    assert clean(world), "worked off when the right one answers"


def test_another_cluster_answered_and_its_moves_still_go_on__they_keep_their_throttle(
    world: World, operator: User
) -> None:
    begun(world, operator)
    own, world.kafka.cluster_id = world.kafka.cluster_id, "AnotherClusterAltogether"
    world.clock += timedelta(minutes=11)  # the cluster stands still meanwhile
    for _ in range(21):
        world.step()
    assert world.change().state == RequestState.FAILED
    owed = list(ThrottleEntry.objects.exclude(state="cleared").values_list("pk", flat=True))
    sent = len(world.kafka.sent)
    world.kafka.cluster_id = own
    world.step()
    assert len(world.kafka.sent) == sent
    assert list(ThrottleEntry.objects.exclude(state="cleared").values_list("pk", flat=True)) == owed
    assert isinstance(world.run().error, StillGoing)
    world.passes(3600)
    world.step()
    assert clean(world)


@pytest.mark.parametrize("state", [RequestState.CANCELLING, RequestState.VERIFYING])
def test_another_cluster_answers_while_it_ends__it_does_not_stay_so_for_ever(
    world: World, operator: User, state: str
) -> None:
    if state == RequestState.CANCELLING:
        begun(world, operator)
        running.cancel(world.change(), operator, "Wrong broker.")
    else:
        world.queue(operator)
        world.until(state)
    world.kafka.cluster_id = "AnotherClusterAltogether"
    for _ in range(20):
        world.tick(31)
    assert world.change().state == state
    world.step()
    assert world.change().state == RequestState.FAILED
    assert not world.run().active


def test_every_row_refused__has_failed_with_kafkas_words(world: World, operator: User) -> None:
    refusal = ItemError(as_message("Reassignments are not allowed here."), 42)
    for row in ROWS:
        world.kafka.refuse[TopicPartition(row.topic, row.partition)] = refusal
    world.queue(operator)
    world.until(RequestState.FAILED)
    assert world.run().error == AllRefused(6, RefusedByKafka(refusal.text))
    assert {state for state, _ in world.states().values()} == {"failed"}
    assert clean(world)


def test_topic_deleted_while_it_moves__ends_with_exceptions(world: World, operator: User) -> None:
    begun(world, operator)
    world.model.delete("clicks")
    world.until(RequestState.DONE)
    assert world.states()["clicks-0"] == ("topic_deleted", TopicDeleted("clicks"))
    assert world.run().outcome == RunOutcome.EXCEPTIONS
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


def test_broker_away_at_the_end__is_owed_and_worked_off(world: World, operator: User) -> None:
    begun(world, operator)
    world.model.stop(3)
    world.until(RequestState.DONE)
    run = world.run()
    assert run.outcome == RunOutcome.OBLIGATIONS
    assert ThrottleEntry.objects.filter(state="obliged", name="3").exists()
    world.model.start(3)
    world.passes(30)
    world.step()
    assert clean(world)
    assert Execution.objects.get().outcome == RunOutcome.OBLIGATIONS, "how it ended is how it ended"


def test_partition_elsewhere_under_min_isr__brakes_and_says_so(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    TopicState.objects.filter(name="clicks").update(name="other", topic_id="id-of-other", under_replicated=1)
    TopicState.objects.filter(name="other").update(partitions=[[0, 1, 5, [1, 2], [1], []]], min_isr=2)
    world.model.delete("clicks")
    world.passes(2)
    world.step()
    assert world.run().brake == UnderMinIsrBrake("other-0", 1)
    assert world.arrived == {}
    assert "change.braked" in world.audit()
    TopicState.objects.filter(name="other").update(partitions=[[0, 1, 5, [1, 2], [1, 2], []]], under_replicated=0)
    world.until(RequestState.DONE)
    assert world.audit().count("change.braked") == 1
    assert world.audit().count("change.brake_released") == 1


def test_fault_of_ours__is_told_and_gives_the_lease_back(
    world: World, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(world, operator)

    def fault(_: str) -> None:
        raise KeyError("of ours")

    world.kafka.before = fault
    world.step()
    run = world.run()
    assert run.error == PlainReason(RunReasonCode.STEP_FAILED)
    assert run.lease_until is None
    assert run.next_at > datetime.now(UTC) + timedelta(seconds=5)
    world.kafka.before = lambda _: None
    world.until(RequestState.DONE)
    assert world.run().error is None


def test_rest_of_the_cluster_not_read_any_more__submits_nothing_more(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    for _ in range(30):
        CollectorRun.objects.filter(kind="metadata").update(succeeded_at=world.clock - timedelta(minutes=5))
        world.step()
        world.passes(2)
        CollectorRun.objects.filter(kind="metadata").update(succeeded_at=world.clock - timedelta(minutes=5))
    assert world.arrived == sent
    assert isinstance(world.run().held_reasons[0], OtherTopicsReadLongAgo)
    world.until(RequestState.DONE)


def test_election_refused_at_the_end__is_said_and_the_run_ends(world: World, operator: User) -> None:
    refusal = world.kafka.refuse_elections = ItemError(as_message("The preferred replica is not in sync."), 80)
    world.queue(operator)
    world.until(RequestState.DONE)
    state, reason = world.states()["orders-3"]
    assert (state, reason) == ("done", NotElected(refusal.text))
    assert [call for call, _ in world.kafka.sent].count("elect_leaders") == 3


THEIRS = ("clicks", 1)
"""On brokers 1 and 2, moved to 1 and 6: most rows of the run need broker 6, two of them neither."""
OF_OTHERS = {LEADER_RATE: "60000000", FOLLOWER_RATE: "60000000"}
WAITS = RateInUse(6, "60000000")
BROKER_6 = ConfigResource.broker(6)


def others_move(world: World) -> None:
    world.kafka.model.partitions[THEIRS].size = 100 * SIZE  # not done before they say so
    world.model.submit(THEIRS, (1, 6))
    others_set(world, at=world.clock)


def others_set(world: World, at: datetime) -> None:
    """Rates of theirs, as the collector of configs has read them."""
    for broker in (1, 2, 6):
        world.kafka.configs[ConfigResource.broker(broker)] = dict(OF_OTHERS)
        for key, value in OF_OTHERS.items():
            ThrottleFactory.create(
                cluster=world.cluster, resource="broker", name=str(broker), key=key, value=value, changed_at=at
            )


def others_are_done(world: World, *, clear: bool) -> None:
    world.model.partitions[THEIRS].left = {6: 0.0}
    if clear:
        for broker in (1, 2, 6):
            world.kafka.configs[ConfigResource.broker(broker)] = {}
    ended(
        world.cluster, MoveOutcome.COMPLETED, world.clock, topic="clicks", partition=1, replicas=[1, 6, 2], adding=[6]
    )


def waits(world: World) -> set[str]:
    return {row for row, (_, reason) in world.states().items() if reason == WAITS}


def test_rate_of_others__that_their_moves_use__is_waited_for_and_not_set_over(world: World, operator: User) -> None:
    others_move(world)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    for _ in range(5):
        world.tick()

    assert "clicks-0" in waits(world)
    assert not world.arrived["clicks", 0]
    assert world.kafka.configs[BROKER_6] == OF_OTHERS
    assert not ThrottleEntry.objects.filter(resource="broker", name="6").exists()

    others_are_done(world, clear=True)
    change = world.until(RequestState.DONE)

    assert all(world.arrived[row.topic, row.partition] for row in ROWS), change
    assert not any(world.kafka.configs.get(ConfigResource.broker(broker)) for broker in range(1, 7))


def test_rate_of_others__left_behind_by_their_moves__is_covered_after_a_minute_and_put_back(
    world: World, operator: User
) -> None:
    others_move(world)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    others_are_done(world, clear=False)
    over = world.clock
    world.tick()
    assert "clicks-0" in waits(world), "they may be about to remove it"

    world.until(RequestState.DONE)

    assert world.clock - over >= OTHERS_CLEAR
    assert world.kafka.configs[BROKER_6] == OF_OTHERS
    assert set(ThrottleEntry.objects.filter(name="6").values_list("state", "previous")) == {("cleared", "60000000")}


def test_rate_of_others__where_none_of_their_moves_goes_on__is_covered_and_put_back(
    world: World, operator: User
) -> None:
    others_set(world, at=world.clock - OTHERS_CLEAR - timedelta(seconds=1))
    ended(
        world.cluster,
        MoveOutcome.COMPLETED,
        world.clock - OTHERS_CLEAR - timedelta(seconds=1),
        replicas=[1, 6],
        adding=[6],
    )
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.tick()
    assert world.kafka.configs[BROKER_6] != OF_OTHERS

    world.until(RequestState.DONE)

    assert world.kafka.configs[BROKER_6] == OF_OTHERS


def test_rate_of_others__set_a_moment_ago__is_waited_for_though_none_of_their_moves_is_seen(
    world: World, operator: User
) -> None:
    """A short move comes and goes between two looks; its throttle is removed some seconds later."""
    world.kafka.configs[BROKER_6] = dict(OF_OTHERS)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    assert "clicks-0" in waits(world)
    assert world.kafka.configs[BROKER_6] == OF_OTHERS

    world.kafka.configs[BROKER_6] = {}
    world.tick()
    world.tick()

    assert "clicks-0" not in waits(world)
    assert world.kafka.configs[BROKER_6] == {LEADER_RATE: str(RATE), FOLLOWER_RATE: str(RATE)}
    world.until(RequestState.DONE)
    assert not world.kafka.configs[BROKER_6]


def test_rate_of_others__that_a_run_has_just_put_back__is_not_waited_for(world: World, operator: User) -> None:
    others_set(world, at=world.clock - 2 * OTHERS_CLEAR)
    world.queue(operator)
    world.until(RequestState.DONE)
    ThrottleState.objects.all().delete()  # the collector has just read it anew

    back = tuple(PartitionMove(row.topic, row.topic_id, row.partition, row.target, row.current) for row in ROWS)
    number = world.queue(operator, back).pk
    world.until(RequestState.EXECUTING, number=number)
    world.tick()

    assert world.arrived["clicks", 0] == 2
    assert WAITS not in {reason for _, reason in world.states(number).values()}
    world.until(RequestState.DONE, number=number)
    assert world.kafka.configs[BROKER_6] == OF_OTHERS


def test_rate_of_others__that_a_run_put_back_long_ago__is_waited_for_when_it_is_set_anew(
    world: World, operator: User
) -> None:
    others_set(world, at=world.clock - 2 * OTHERS_CLEAR)
    world.queue(operator)
    world.until(RequestState.DONE)
    ThrottleState.objects.all().delete()
    ThrottleEntry.objects.update(changed_at=world.clock - timedelta(days=1), lost_at=None)

    back = tuple(PartitionMove(row.topic, row.topic_id, row.partition, row.target, row.current) for row in ROWS)
    number = world.queue(operator, back).pk
    world.until(RequestState.EXECUTING, number=number)
    world.tick()

    assert world.arrived["clicks", 0] == 1
    assert WAITS in {reason for _, reason in world.states(number).values()}


OTHER = next(row for row in ROWS if row.topic == "clicks")
NAMED = replace(ROWS[0], log_dirs=("any", "any", "/data-2"))
PLACE = ReplicaPlace(6, NAMED.topic, NAMED.partition)


def _sent(world: World, call: str) -> list[object]:
    return [what for name, what in world.kafka.sent if name == call]


def test_a_directory_is_told_before_the_move_and_only_where_one_is_named(world: World, operator: User) -> None:
    world.queue(operator, [NAMED, OTHER])
    world.until(RequestState.DONE)

    assert _sent(world, "place_replicas") == [{PLACE: "/data-2"}]
    calls = [name for name, _ in world.kafka.sent]
    assert calls.index("place_replicas") < calls.index("alter_reassignments")
    assert world.run().outcome == RunOutcome.CLEAN


def test_a_directory_that_kafka_refuses_ends_its_row_and_no_other(world: World, operator: User) -> None:
    words = "The directory of orders-0 on broker 6 was not set: not found (LOG_DIR_NOT_FOUND)."
    world.kafka.refuse_places[6] = ItemError(as_message(words), 57, "LOG_DIR_NOT_FOUND")
    world.queue(operator, [NAMED, OTHER])
    world.until(RequestState.DONE)

    assert world.states() == {"orders-0": ("failed", RefusedByKafka(words)), "clicks-0": ("done", None)}
    assert world.run().outcome == RunOutcome.EXCEPTIONS
    moved = [target for targets in _sent(world, "alter_reassignments") for target in targets]  # type: ignore[attr-defined]
    assert TopicPartition("orders", 0) not in moved


@pytest.mark.parametrize("unsent", [True, False])
def test_a_directory_that_could_not_be_told_keeps_its_row_waiting(world: World, operator: User, unsent: bool) -> None:
    """Whether nothing left, or its answer was lost: the move itself was not sent, and is tried again."""
    if unsent:
        world.kafka.fail["place_replicas"] = KafkaUnreachable(as_message("Broker 6 could not be connected."))
    else:
        world.kafka.lose_places = True
    world.queue(operator, [NAMED])
    world.until(RequestState.EXECUTING)
    for _ in range(5):
        world.tick()
    [(state, reason)] = world.states().values()
    assert state == "waiting"
    assert isinstance(reason, NotSentYet)
    assert not _sent(world, "alter_reassignments")

    world.kafka.fail.clear()
    world.kafka.lose_places = False
    world.until(RequestState.DONE)
    assert [state for state, _ in world.states().values()] == ["done"]


def test_a_replica_that_came_to_lie_elsewhere_is_done_with_an_exception(world: World, operator: User) -> None:
    """A broker keeps in memory where it was told to put what will come."""
    world.kafka.forgetful = True
    world.queue(operator, [NAMED, OTHER])
    world.until(RequestState.DONE)

    there = LiesElsewhere(6, "/data-1", "/data-2")
    assert world.states() == {"orders-0": ("done", there), "clicks-0": ("done", None)}
    assert world.run().outcome == RunOutcome.EXCEPTIONS
    assert world.run().report["otherwise"] == [["orders", 0, "done", there.stored_code, there.params()]]


def test_a_directory_that_cannot_be_read_at_the_end_is_not_taken_for_right(world: World, operator: User) -> None:
    failure = world.kafka.fail["log_dirs"] = KafkaUnreachable(as_message("Broker 6 could not be connected."))
    world.queue(operator, [NAMED])
    world.until(RequestState.DONE)

    [(state, reason)] = world.states().values()
    assert (state, reason) == ("done", LiesNobodyKnows(6, "/data-2", str(failure)))
    assert world.run().outcome == RunOutcome.EXCEPTIONS


BEGUN_BY_S, ENDED_BY_S = 15.0, 19.0


@dataclass
class Slow:
    """A client whose calls take that share of their deadlines; ``calls`` are those of one step: name, began, ended."""

    world: World
    share: float = 1.0
    clock: float = 1000.0
    calls: list[tuple[str, float, float]] = field(default_factory=list)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        really = getattr(self.world.kafka, name)

        def call(*args: Any, deadline: float, **more: Any) -> Any:
            began, self.clock = self.clock, self.clock + self.share * deadline
            self.calls.append((name, began, self.clock))
            return really(*args, deadline=deadline, **more)

        return call

    def monotonic(self) -> float:
        return self.clock

    def step(self, number: int | None = None) -> None:
        """Checks that one ends in time; and that it asked something at all."""
        self.calls.clear()
        began = self.clock
        self.world.step(number)
        assert self.calls
        late = [(name, at - began, end - began) for name, at, end in self.calls if at - began > BEGUN_BY_S]
        assert all(end - at <= 0.2 for _, at, end in late), f"questions for what is not known any more: {late}"
        assert self.clock - began <= ENDED_BY_S, [(name, at - began, end - began) for name, at, end in self.calls]
        self.world.passes(2)


@pytest.fixture
def slow(world: World) -> Iterator[Slow]:
    made = Slow(world)

    def client(_: RunningStep) -> KafkaClient:
        return cast("KafkaClient", made)

    with (
        mock.patch.object(stepping, "client_of", client),
        mock.patch("kafkadash.execution.worker.running.time", made),
        mock.patch("kafkadash.execution.worker.snapshot.time", made),
    ):
        yield made


def test_every_step_of_a_run__ends_in_time(world: World, slow: Slow, operator: User) -> None:
    rows = [replace(row, log_dirs=tuple("/data-1" if b in row.adding else "any" for b in row.target)) for row in ROWS]
    world.queue(operator, rows, replace(OPTIONS, per_cluster=2))
    for share, state in ((1.0, ""), (0.25, RequestState.VERIFYING), (1.0, ""), (0.25, RequestState.DONE)):
        slow.share = share
        for _ in range(100 if state else 6):
            if world.change().state != state:
                slow.step()
        assert world.change().state == state or not state, (world.run().error, world.run().held, world.states())


def test_what_an_ended_run_owes__is_worked_off_in_time(world: World, slow: Slow, operator: User) -> None:
    slow.share = 0.1
    number = world.queue(operator).pk
    slow.step()
    slow.step()
    assert ThrottleEntry.objects.filter(state="set").count() > 10
    Move.objects.update(state="unknown")
    ChangeRequest.objects.filter(pk=number).update(state=RequestState.FAILED)
    Execution.objects.update(active=False)
    world.passes(600)
    assert not world.model.moving
    for slow.share in (1.0, 0.5, 0.25):
        for _ in range(5):
            slow.step()
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
