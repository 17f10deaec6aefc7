"""A run from the queue to its end, with nothing in its way.

How a queued run begins, or why it does not.

Which runs the tick hands out to workers, and which it leaves alone.

What a run still owes to a cluster, while another run of it is under way; and what keeps a cluster in kafkadash.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.db import IntegrityError, transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from pytest_django import Settings

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import remove_cluster, stays_in_kafka
from kafkadash.clusters.services import ClusterRefused
from kafkadash.core.messages import CodedReason, PlainReason, as_message, coded, reason_columns
from kafkadash.execution.engine.reasons import (
    BrokerAway,
    BrokerNotRegistered,
    ChangedSince,
    CheckFailed,
    ClusterReadOnly,
    ClusterUnreadable,
    LacksPermission,
    LookedOnceMore,
    NotAsPlanned,
    NotReadLately,
    NotReread,
    NotWatched,
    ReassignedByOthers,
    RunReasonCode,
    TopicCreatedAgain,
    TopicDeleted,
    TopicsUnread,
)
from kafkadash.execution.models import Execution, Move, RunOutcome, ThrottleEntry
from kafkadash.execution.pages import summaries
from kafkadash.execution.queue import in_front_of
from kafkadash.execution.tasks import execute
from kafkadash.execution.worker import lease, moves
from kafkadash.export.tasks import write_segments
from kafkadash.history.tasks import ingest
from kafkadash.kafka.api import ConfigResource, DeadlineExceeded, QuorumUnavailable
from kafkadash.kafka.throttles import FOLLOWER_RATE, LEADER_RATE
from kafkadash.monitoring.models import BrokerWeights, CollectorRun, ReassignmentSnapshot, StartedFrom
from kafkadash.monitoring.tasks import collect
from kafkadash.ops import tick
from kafkadash.planning.errors import ReassignmentErrorCode
from tests.execution.ledger_run import broker_away
from tests.execution.worlds import OPTIONS, RATE, ROWS, World
from tests.factories import GB, directory

pytestmark = pytest.mark.django_db


def test_run__goes_from_the_queue_to_done(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.DONE)

    for row in ROWS:
        assert world.model.partitions[row.topic, row.partition].replicas == row.target
        assert world.model.partitions[row.topic, row.partition].leader == row.target[0]
    assert {state for state, _ in world.states().values()} == {"done"}
    run = world.run()
    assert (run.outcome, run.active, run.error) == (RunOutcome.CLEAN, False, None)
    assert run.started_at is not None
    assert run.ended_at is not None
    assert run.rows == len(ROWS)
    assert world.audit() == ["change.started", "change.turn_came", "change.rows_ended", "change.verified"]
    # Each has its id from the moment that Kafka accepted it: no collector has looked yet.
    found = ReassignmentSnapshot.objects.values_list("topic", "partition", "claimed_by", "started_from")
    copies = [row for row in ROWS if not row.only_reorders]
    owner = f"#{world.change().pk}"
    assert set(found) == {(row.topic, row.partition, owner, StartedFrom.SUBMITTED) for row in copies}


def test_verifying__reads_every_row_once_more(world: World, operator: User) -> None:
    """What somebody did with a row after it was done is said, and takes two looks."""
    world.queue(operator)
    world.until(RequestState.VERIFYING)
    world.model.partitions["clicks", 0].replicas = (5, 6)
    world.step()
    assert world.change().state == RequestState.VERIFYING
    assert world.run().held == []
    world.until(RequestState.DONE)
    assert world.states()["clicks-0"] == ("superseded", ChangedSince((5, 6)))
    assert world.run().outcome == RunOutcome.EXCEPTIONS


def test_verifying__one_broker_with_old_metadata__is_no_exception(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.VERIFYING)
    partition = world.model.partitions["clicks", 0]
    partition.replicas, now = (3, 5), partition.replicas
    world.step()
    partition.replicas = now
    world.until(RequestState.DONE)
    assert world.run().outcome == RunOutcome.CLEAN


def test_topic_that_may_not_be_described_any_more__keeps_no_cancel_from_its_end(world: World, operator: User) -> None:
    """Its permission was taken away in the middle: what is listed is cancelled, and how it ended is said not to be
    known.
    """
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.tick()
    moving = {key for key in world.model.moving if key[0] == "orders"}
    assert moving
    world.kafka.hidden.add("orders")
    running.cancel(world.change(), operator, "Wrong broker.")
    for _ in range(5):
        world.tick()
    assert not world.model.moving
    assert world.change().state == RequestState.CANCELLING, "it may be described again soon"
    for _ in range(12):
        world.tick(60)
    assert world.change().state == RequestState.CANCELLED
    untold = {name for name, (state, _) in world.states().items() if state == "failed"}
    assert untold == {f"{topic}-{partition}" for topic, partition in moving}
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


def test_topic_that_may_not_be_described_at_the_end__is_an_exception(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.VERIFYING)
    world.kafka.hidden.add("clicks")
    world.tick()
    world.tick()
    assert world.change().state == RequestState.VERIFYING
    for _ in range(12):
        world.tick(60)
    assert (world.change().state, world.run().outcome) == (RequestState.DONE, RunOutcome.EXCEPTIONS)
    assert world.states()["clicks-0"] == ("done", NotReread("clicks"))


OTHER_ROWS = (PartitionMove("clicks", "id-of-clicks", 1, (1, 2), (1, 5)),)


def blocked(world: World) -> CodedReason | None:
    world.step()
    assert world.change().state == RequestState.QUEUED
    assert world.kafka.sent == []
    assert not Move.objects.exists()
    return world.run().blocked


def test_queued__has_its_run_and_nothing_of_it_was_sent(world: World, operator: User) -> None:
    world.queue(operator)
    run = world.run()
    assert (run.active, run.throttle, run.per_broker, run.per_cluster) == (
        False,
        OPTIONS.throttle,
        OPTIONS.per_broker,
        OPTIONS.per_cluster,
    )


def test_turn__rows_are_there_with_their_sizes_when_it_begins(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    run = world.run()
    assert world.change().state == RequestState.EXECUTING
    assert (run.active, run.rows, run.blocked) == (True, len(ROWS), None)
    assert run.started_at is not None
    moves = {(m.topic, m.partition): m for m in Move.objects.filter(execution=run)}
    assert {key: (tuple(m.current), tuple(m.target), m.topic_id) for key, m in moves.items()} == {
        (row.topic, row.partition): (row.current, row.target, row.topic_id) for row in ROWS
    }
    assert {m.size_bytes for m in moves.values()} == {3 * GB}
    assert world.kafka.sent == [], "nothing is sent before the rows are stored"


def test_withdrawn__its_run_is_gone_and_it_can_be_queued_again(world: World, operator: User) -> None:
    change = world.queue(operator)
    services.withdraw(change, operator)
    assert not Execution.objects.exists()


@pytest.mark.parametrize(
    ("stop", "why"),
    [
        (lambda world: world.model.stop(6), BrokerAway(6)),
        (lambda world: world.model.brokers.pop(6), BrokerNotRegistered(6)),
        (
            lambda world: world.kafka.fail.update(list_reassignments=QuorumUnavailable(as_message("No majority."))),
            PlainReason(RunReasonCode.QUORUM_SILENT),
        ),
        (lambda world: world.kafka.hidden.add("clicks"), TopicsUnread(1, ("clicks",))),
    ],
)
def test_unwell__stays_queued_with_the_reason_and_begins_when_it_is_well(
    world: World, operator: User, stop: Callable[[World], object], why: CodedReason
) -> None:
    world.queue(operator)
    stop(world)
    assert blocked(world) == why
    at = world.run().blocked_at
    assert at is not None
    world.step()
    assert world.run().blocked_at == at, "since when"
    world.model.brokers[6] = True
    world.kafka.fail.clear()
    world.kafka.hidden.clear()
    world.until(RequestState.EXECUTING, 3)
    assert (world.run().blocked, world.run().blocked_at) == (None, None)


def test_unwell__the_next_try_is_ten_seconds_later(world: World, operator: User) -> None:
    world.queue(operator)
    world.model.stop(6)
    blocked(world)
    wait = world.run().next_at - datetime.now(UTC)
    assert timedelta(seconds=8) < wait <= timedelta(seconds=10)


def test_read_only__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    Cluster.objects.update(read_only=True)
    assert blocked(world) == ClusterReadOnly(world.cluster.name)


def test_disabled__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    Cluster.objects.update(enabled=False)
    assert blocked(world) == NotWatched(world.cluster.name)


def test_old_facts__are_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    CollectorRun.objects.filter(kind="log_dirs").update(succeeded_at=world.clock - timedelta(minutes=10))
    assert blocked(world) == NotReadLately(("log_dirs",))


def test_disk_too_full__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    full = [directory("/data/a", usable=250 * GB)]
    BrokerWeights.objects.filter(broker_id=6).update(dirs=full)
    ChangeRequest.objects.update(input={"disk_limit": 0.8, "mode": "drain", "brokers": [3]})
    why = blocked(world)
    assert isinstance(why, CheckFailed)
    assert why.check == "disk"


def test_permission_missing__is_blocked(world: World, operator: User) -> None:
    world.queue(operator)
    world.kafka.lacks = frozenset({"Alter"})
    assert blocked(world) == LacksPermission((("Alter", ""),))


def test_not_reached__is_no_reason_to_give_up(world: World, operator: User) -> None:
    world.queue(operator)
    failure = world.kafka.fail["metadata"] = DeadlineExceeded(as_message("No answer within 8 s."))
    world.step()
    assert (world.run().error, world.run().failures) == (ClusterUnreadable(str(failure)), 1)
    world.kafka.fail.clear()
    world.until(RequestState.EXECUTING, 2)
    assert (world.run().error, world.run().failures) == (None, 0)


def not_as_approved(row: str, why: CodedReason) -> dict[str, Any]:
    return coded(ReassignmentErrorCode.ROW_NOT_AS_APPROVED, row=row, why=why).as_json()


def test_foreign_move_on_a_row__turns_stale_with_the_reason(world: World, operator: User) -> None:
    world.queue(operator)
    world.model.submit(("orders", 1), (2, 3, 5))
    world.step()
    change = world.change()
    assert change.state == RequestState.STALE
    assert change.stale_reasons == [not_as_approved("orders-1", ReassignedByOthers((2, 3, 5)))]
    assert not Execution.objects.exists()
    assert not Move.objects.exists()
    assert world.kafka.sent == []


def test_altered_options__turn_it_stale_before_anything_is_sent(world: World, operator: User) -> None:
    world.queue(operator)
    ChangeRequest.objects.update(options={**world.change().options, "throttle_max": 5_000_000_000})
    world.step()
    change = world.change()
    assert change.state == RequestState.STALE
    assert change.stale_reasons == [coded(ChangeErrorCode.CONTENT_ALTERED, name=f"#{change.pk}").as_json()]
    assert not Move.objects.exists()
    assert world.kafka.sent == []


@pytest.mark.parametrize("what", ["replicas", "deleted", "recreated"])
def test_other_content__turns_stale_after_a_second_look(world: World, operator: User, what: str) -> None:
    """A broker's metadata may be late: one answer does not make approvals void."""
    world.queue(operator)
    if what == "replicas":
        world.model.partitions["clicks", 0].replicas = (5, 3)
        why: CodedReason = NotAsPlanned((5, 3), (3, 5))
    else:
        world.model.delete("clicks")
        why = TopicDeleted("clicks")
    if what == "recreated":
        world.model.create("clicks", "another-id", 2, (1, 2))
        why = TopicCreatedAgain("clicks")
    assert blocked(world) == LookedOnceMore("clicks-0", why)
    world.passes(2)
    world.step()
    assert world.change().state == RequestState.STALE
    assert world.change().stale_reasons == [not_as_approved("clicks-0", why)]
    assert world.audit()[-1] == "change.turned_stale"


def test_other_content_at_one_look_only__begins(world: World, operator: User) -> None:
    world.queue(operator)
    world.model.partitions["clicks", 0].replicas = (5, 3)
    blocked(world)
    world.model.partitions["clicks", 0].replicas = (3, 5)
    world.until(RequestState.EXECUTING, 2)


def test_window_not_open__waits_and_keeps_nobody_behind_it(world: World, operator: User) -> None:
    tomorrow = datetime.now(UTC) + timedelta(days=1)
    world.queue(operator, options=replace(OPTIONS, not_before=f"{tomorrow:%Y-%m-%dT%H:%M:%SZ}"))
    ChangeRequest.objects.update(not_before=tomorrow)
    assert blocked(world) == PlainReason(RunReasonCode.WINDOW_NOT_OPEN)
    second = world.queue(operator, OTHER_ROWS)
    assert in_front_of(world.run(second.pk), world.clock) is None
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.EXECUTING


def test_two_queued__the_second_waits_for_the_first(world: World, operator: User) -> None:
    first = world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.QUEUED
    assert world.run(second.pk).blocked is None
    front = in_front_of(world.run(second.pk), world.clock)
    assert front is not None
    assert front.request_id == first.pk
    begun = None
    for _ in range(60):
        world.tick()
        if begun is None and world.change(second.pk).state != RequestState.QUEUED:
            begun = world.change(first.pk).state
        if world.change(second.pk).state == RequestState.DONE:
            break
    assert begun == RequestState.DONE
    assert world.change(second.pk).state == RequestState.DONE


def test_first_blocked__one_of_other_partitions_passes_and_the_first_begins_after_it(
    world: World, operator: User
) -> None:
    first = world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    world.model.stop(6)
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.QUEUED, "nobody knows yet that the first one is blocked"
    Execution.objects.filter(request=second).update(next_at=datetime.now(UTC) + timedelta(hours=1))
    world.step(first.pk)
    assert world.run(first.pk).blocked == BrokerAway(6)
    assert world.run(second.pk).next_at <= datetime.now(UTC), "it is woken, and need not find out by itself"
    assert summaries.summarize_runs([world.change(second.pk)])[second.pk].behind == ()
    world.step(second.pk)
    assert world.change(second.pk).state == RequestState.EXECUTING
    world.step(first.pk)
    assert (world.change(first.pk).state, world.run(first.pk).blocked) == (RequestState.QUEUED, None)
    assert summaries.summarize_runs([world.change(first.pk)])[first.pk].behind == (second.pk,)
    world.model.brokers[6] = True
    world.until(RequestState.DONE, number=second.pk)
    world.until(RequestState.DONE, number=first.pk)


def test_first_blocked__one_that_moves_one_of_its_partitions_waits(world: World, operator: User) -> None:
    first = world.queue(operator)
    world.model.stop(6)
    world.step(first.pk)
    second = world.queue(operator, (*OTHER_ROWS, replace(ROWS[5], target=(3, 1))))
    front = in_front_of(world.run(second.pk), world.clock)
    assert front is not None
    assert front.request_id == first.pk
    assert summaries.summarize_runs([world.change(second.pk)])[second.pk].behind == (first.pk,)
    world.step(second.pk)
    assert (world.change(second.pk).state, world.run(second.pk).blocked) == (RequestState.QUEUED, None)


def test_first_blocked__a_start_says_that_nobody_waits_for_it(world: World, operator: User) -> None:
    first = world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    services.withdraw(second, operator)
    behind = f"waits behind #{first.pk}"
    assert any(behind in words for words in summaries.start_words(world.change(second.pk), world.clock))
    world.model.stop(6)
    world.step(first.pk)
    assert not any(behind in words for words in summaries.start_words(world.change(second.pk), world.clock))


def test_first_ends__the_second_is_woken(world: World, operator: User) -> None:
    world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    world.step(second.pk)
    Execution.objects.filter(request=second).update(next_at=datetime.now(UTC) + timedelta(hours=1))
    world.runs.remove(second.pk)
    world.until(RequestState.DONE)
    assert world.run(second.pk).next_at <= datetime.now(UTC)


def test_two_active_at_once__the_database_refuses(world: World, operator: User) -> None:
    world.queue(operator)
    second = world.queue(operator, OTHER_ROWS)
    Execution.objects.filter(request=world.runs[0]).update(active=True)
    with pytest.raises(IntegrityError), transaction.atomic():
        Execution.objects.filter(request=second).update(active=True)


def test_start_pressed_twice__runs_once(world: World, operator: User) -> None:
    change = world.queue(operator)
    with pytest.raises(ChangeRefused):
        running.start(change, operator, "Again.")
    assert Execution.objects.count() == 1


class Queue:
    def __init__(self) -> None:
        self.sent: list[int] = []
        self.away = False

    def apply_async(self, args: tuple[int], **_: object) -> None:
        if self.away:
            raise OperationalError("Connection refused")
        self.sent.append(args[0])


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(execute, "apply_async", queue.apply_async)
    for task in (collect, write_segments, ingest):
        monkeypatch.setattr(task, "apply_async", lambda *_, **__: None)
    return queue


@pytest.fixture
def queued(world: World, operator: User) -> int:
    world.queue(operator)
    return world.run().pk


def test_due__is_handed_out_once(queue: Queue, queued: int) -> None:
    tick.tick()
    tick.tick()
    assert queue.sent == [queued]


def test_not_due__is_left_alone_until_somebody_wakes_it(queue: Queue, queued: int) -> None:
    Execution.objects.update(next_at=datetime.now(UTC) + timedelta(seconds=10))
    tick.tick()
    assert queue.sent == []
    lease.wake_run(queued)
    tick.tick()
    assert queue.sent == [queued]


def test_held_by_a_worker__is_left_alone(queue: Queue, queued: int) -> None:
    assert lease.take_lease(queued) is not None
    tick.tick()
    assert queue.sent == []


def test_queue_away__is_tried_again_next_second(queue: Queue, queued: int) -> None:
    queue.away = True
    tick.tick()
    queue.away = False
    tick.tick()
    assert queue.sent == [queued]


def test_cluster_switched_off__its_run_goes_on(queue: Queue, queued: int) -> None:
    """What moves there moves whether it is watched or not, and its throttles have to be cleared."""
    Cluster.objects.update(enabled=False)
    tick.tick()
    assert queue.sent == [queued]


@pytest.mark.parametrize("state", ["done", "cancelled", "failed", "stale", "draft"])
def test_ended__is_left_alone_unless_it_owes_something(queue: Queue, queued: int, state: str) -> None:
    ChangeRequest.objects.update(state=state)
    tick.tick()
    assert queue.sent == []
    entry = ThrottleEntry.objects.create(
        execution_id=queued, resource="broker", name="3", key="leader.replication.throttled.rate", state="obliged"
    )
    tick.tick()
    assert queue.sent == [queued]
    ThrottleEntry.objects.filter(pk=entry.pk).update(state="cleared")
    Execution.objects.update(dispatched_until=None)
    tick.tick()
    assert queue.sent == [queued]


def test_removed_cluster__is_left_alone(queue: Queue, queued: int, monkeypatch: pytest.MonkeyPatch) -> None:
    Cluster.objects.update(removed_at=Now())
    monkeypatch.setattr(tick, "purge_removed", lambda: None)
    tick.tick()
    assert queue.sent == []


def test_rows_of_old_runs__are_forgotten_and_their_report_is_not(
    world: World, operator: User, settings: Settings
) -> None:
    world.queue(operator)
    world.until(RequestState.DONE)
    assert moves.forget_old_moves() == 0
    report = world.run().report
    Execution.objects.update(ended_at=datetime.now(UTC) - timedelta(hours=settings.KEEP_MOVES_HOURS + 1))
    assert moves.forget_old_moves() == 6
    assert not Move.objects.exists()
    assert world.run().report == report != {}


SECOND_RUN_ROWS = (PartitionMove("clicks", "id-of-clicks", 1, (1, 2), (1, 4)),)
BROKER_3 = ConfigResource.broker(3)


def owes(world: World, operator: User, value: int, previous: int | None) -> int:
    """The number of a run that has ended; broker 3 was away then, and has its rates still."""
    number = world.queue(operator, SECOND_RUN_ROWS).pk
    world.runs.remove(number)
    ChangeRequest.objects.filter(pk=number).update(state=RequestState.DONE)
    Execution.objects.filter(request=number).update(active=False)
    for key in (LEADER_RATE, FOLLOWER_RATE):
        ThrottleEntry.objects.create(
            execution=world.run(number),
            resource="broker",
            name="3",
            key=key,
            value=str(value),
            previous=None if previous is None else str(previous),
            previous_source="" if previous is None else "broker",
            state="obliged",
            **reason_columns(broker_away(3)),
        )
        world.kafka.configs.setdefault(BROKER_3, {})[key] = str(value)
    return number


@pytest.mark.parametrize("previous", [None, 77_000_000])
@pytest.mark.parametrize("value", [RATE, 60_000_000])
def test_rate_that_an_ended_run_owes__is_not_what_the_next_one_puts_back(
    world: World, operator: User, value: int, previous: int | None
) -> None:
    ended = owes(world, operator, value, previous)
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.tick()
    world.tick()
    assert world.kafka.configs[BROKER_3][LEADER_RATE] == str(RATE)
    world.step(ended)
    assert world.kafka.configs[BROKER_3][LEADER_RATE] == str(RATE), "the run under way needs it"
    assert ThrottleEntry.objects.filter(execution__request=ended, state="obliged").count() == 2
    world.until(RequestState.DONE)
    left = {} if previous is None else {LEADER_RATE: str(previous), FOLLOWER_RATE: str(previous)}
    assert world.kafka.configs[BROKER_3] == left
    world.step(ended)
    assert world.kafka.configs[BROKER_3] == left
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


def test_cluster_of_a_run_under_way__is_not_removed(world: World, operator: User, admin: User) -> None:
    name = world.cluster.name
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.step()
    with pytest.raises(ClusterRefused, match=r"#\d+ is running on this cluster"):
        remove_cluster(admin, world.cluster, typed_name=name)
    running.cancel(world.change(), operator, "It goes.")
    world.until(RequestState.CANCELLED)
    assert not stays_in_kafka(world.cluster).refused
    remove_cluster(admin, world.cluster, typed_name=name)
    assert AuditEvent.objects.get(action="cluster.removed").after is None


def test_cluster_removed_while_a_run_takes_its_turn__is_sent_nothing(world: World, operator: User, admin: User) -> None:
    """The last look before the turn was taken with the cluster still there."""
    name = world.cluster.name

    def removed(call: str) -> None:
        if call == "permissions":
            remove_cluster(admin, world.cluster, typed_name=name)

    world.queue(operator)
    world.kafka.before = removed
    world.step()
    assert world.change().state == RequestState.QUEUED
    assert not world.run().active
    for _ in range(3):
        world.tick()
    assert world.change().state == RequestState.QUEUED, "a message that was still under way finds nothing to do"
    assert not world.kafka.sent


def test_cluster_that_does_not_answer__is_removed_and_what_stays_there_is_said(
    world: World, operator: User, admin: User
) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    world.step()
    world.kafka.fail["metadata"] = DeadlineExceeded(as_message("No answer within 8 s."))
    for _ in range(20):
        assert stays_in_kafka(world.cluster).refused
        world.step()
    stays = stays_in_kafka(world.cluster)
    assert not stays.refused
    assert len(stays.left) == 2
    remove_cluster(admin, world.cluster, typed_name=world.cluster.name)
    assert AuditEvent.objects.get(action="cluster.removed").after == {"left_in_kafka": list(stays.left)}
