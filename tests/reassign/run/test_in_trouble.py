"""What goes wrong around a run: clusters that do not answer or are others, refusals, brokers and topics that leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.domain.row_reasons import NotElected, RefusedByKafka, TopicDeleted
from kafkadash.domain.run_reasons import (
    AllRefused,
    AnotherClusterAnswers,
    ClusterUnreadable,
    ListingUnread,
    OtherTopicsReadLongAgo,
    QuorumSilent,
    StepFailed,
    StillGoing,
    UnderMinIsrBrake,
)
from kafkadash.kafka.port import DeadlineExceeded, ItemError, QuorumUnavailable, TopicPartition
from kafkadash.observe.models import CollectorRun, TopicState
from kafkadash.reassign.models import Execution, Outcome, ThrottleEntry
from tests.reassign.run.begun import begun, clean
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db


def test_look_failed__changes_nothing_and_says_why(world: World, operator: User) -> None:
    begun(world, operator)
    before = world.states()
    world.kafka.fail["metadata"] = DeadlineExceeded("No answer within 8 s.")
    for _ in range(3):
        world.tick()
    assert world.states() == before
    run = world.run()
    assert (run.error, run.failures) == (ClusterUnreadable("No answer within 8 s."), 3)
    world.kafka.fail.clear()
    world.until(RequestState.DONE)


def test_quorum_away__holds_and_goes_on_by_itself(world: World, operator: User) -> None:
    begun(world, operator)
    before = world.states()
    world.kafka.fail["list_reassignments"] = QuorumUnavailable("No majority.")
    world.tick()
    assert world.states() == before
    assert world.run().held_reasons[:2] == (QuorumSilent(), ListingUnread())
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
    for row in ROWS:
        item = TopicPartition(row.topic, row.partition)
        world.kafka.refuse[item] = ItemError("Reassignments are not allowed here.", 42)
    world.queue(operator)
    world.until(RequestState.FAILED)
    assert world.run().error == AllRefused(6, RefusedByKafka("Reassignments are not allowed here."))
    assert {state for state, _ in world.states().values()} == {"failed"}
    assert clean(world)


def test_topic_deleted_while_it_moves__ends_with_exceptions(world: World, operator: User) -> None:
    begun(world, operator)
    world.model.delete("clicks")
    world.until(RequestState.DONE)
    assert world.states()["clicks-0"] == ("topic_deleted", TopicDeleted("clicks"))
    assert world.run().outcome == Outcome.EXCEPTIONS
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


def test_broker_away_at_the_end__is_owed_and_worked_off(world: World, operator: User) -> None:
    begun(world, operator)
    world.model.stop(3)
    world.until(RequestState.DONE)
    run = world.run()
    assert run.outcome == Outcome.OBLIGATIONS
    assert ThrottleEntry.objects.filter(state="obliged", name="3").exists()
    world.model.start(3)
    world.passes(30)
    world.step()
    assert clean(world)
    assert Execution.objects.get().outcome == Outcome.OBLIGATIONS, "how it ended is how it ended"


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
    assert run.error == StepFailed()
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
    world.kafka.refuse_elections = ItemError("The preferred replica is not in sync.", 80)
    world.queue(operator)
    world.until(RequestState.DONE)
    state, reason = world.states()["orders-3"]
    assert (state, reason) == ("done", NotElected("The preferred replica is not in sync."))
    assert [call for call, _ in world.kafka.sent].count("elect_leaders") == 3
