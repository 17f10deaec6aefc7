"""Pause, resume, cancel, and what is asked of single rows while a run is under way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.domain.refusals import rows, runs, turns
from kafkadash.kafka.port import DeadlineExceeded, ItemError, QuorumUnavailable, TopicPartition
from kafkadash.observe.models import CollectorRun, TopicState
from kafkadash.reassign.models import Deed, Execution, Move, Order, Outcome, ThrottleEntry
from kafkadash.reassign.run import orders
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db


def begun(world: World, operator: User) -> None:
    """In flight, and Kafka has answered."""
    world.queue(operator)
    world.step()
    world.passes(2)
    world.step()
    assert "moving" in {state for state, _ in world.states().values()}


def clean(world: World) -> bool:
    values = [value for own in world.kafka.configs.values() for value in own.values()]
    return not any(values) and not ThrottleEntry.objects.exclude(state="cleared").exists()


def test_pause__submits_nothing_more_and_lets_go_on_what_moves(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    running.pause(world.change(), operator, "Traffic is high.")
    for _ in range(30):
        world.tick()
    assert world.arrived == sent
    assert {state for state, _ in world.states().values()} == {"done", "pending"}
    assert world.change().state == RequestState.PAUSED
    assert world.run().held == [rows.PAUSED()]
    assert clean(world), "what nothing uses is cleared"
    assert world.run().next_at - datetime.now(UTC) > timedelta(seconds=7), "nothing moves, so it rests"

    running.resume(world.change(), operator, "It is quiet again.")
    assert world.run().next_at <= datetime.now(UTC), "it goes on at once"
    world.until(RequestState.DONE)
    assert world.run().outcome == Outcome.CLEAN


def test_paused_while_it_was_decided__nothing_of_it_is_sent(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    world.passes(2)

    def pause(call: str) -> None:
        if call == "metadata" and world.change().state == RequestState.EXECUTING:
            running.pause(world.change(), operator, "Now.")

    world.kafka.before = pause
    world.step()
    assert world.kafka.sent == []
    assert {state for state, _ in world.states().values()} == {"pending"}
    assert not ThrottleEntry.objects.exists()
    assert world.run().error == ""


def test_cancel__takes_back_what_moves_and_says_what_stays_done(world: World, operator: User) -> None:
    begun(world, operator)
    running.cancel(world.change(), operator, "Wrong broker.")
    world.until(RequestState.CANCELLED)
    for row in ROWS:
        state, _ = world.states()[row.name]
        replicas = world.model.partitions[row.topic, row.partition].replicas
        assert (state, replicas) in (("cancelled", row.current), ("done", row.target))
    assert not world.model.moving
    assert clean(world)
    run = world.run()
    assert (run.active, run.outcome) == (False, "")
    assert run.ended_at is not None
    assert world.audit()[-2:] == ["change.cancelled", "change.cancel_ended"]


def test_one_row_cancelled__the_run_goes_on(world: World, operator: User) -> None:
    begun(world, operator)
    moving = Move.objects.filter(state="moving").order_by("topic", "partition")[0]
    waiting = Move.objects.filter(state="pending").order_by("topic", "partition")[0]
    for move in (moving, waiting):
        ask(world, operator, Deed.CANCEL_ROW, move)
    world.step()
    answers = list(Order.objects.order_by("id").values_list("answer", flat=True))
    assert answers == ["It is being cancelled.", "It had not begun, and is left out."]
    world.until(RequestState.DONE)
    assert world.run().outcome == Outcome.EXCEPTIONS
    for move in (moving, waiting):
        assert world.states()[str(move)] == ("cancelled", "olga ended it: Not this one.")
        key = move.topic, move.partition
        assert world.model.partitions[key].replicas == tuple(move.current)
    assert clean(world)


def ask(world: World, user: User, deed: Deed, move: Move) -> Order:
    return Order.objects.create(
        execution=world.run(),
        deed=deed,
        topic=move.topic,
        partition=move.partition,
        user=user,
        user_name=user.get_username(),
        reason="Not this one.",
    )


def test_one_row_cancelled_while_nothing_can_be_sent__is_cancelled_when_it_can(world: World, operator: User) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving").order_by("topic", "partition")[0]
    ask(world, operator, Deed.CANCEL_ROW, move)
    world.passes(2)
    world.kafka.fail["alter_reassignments"] = DeadlineExceeded("Nothing was sent.")
    world.step()
    assert world.states()[str(move)] == ("cancelling", "olga ended it: Not this one.")
    world.kafka.fail.clear()
    world.until(RequestState.DONE)
    assert world.states()[str(move)] == ("cancelled", "olga ended it: Not this one.")
    assert world.model.partitions[move.topic, move.partition].replicas == tuple(move.current)


def test_what_is_asked_wakes_a_run_that_rests(world: World, operator: User) -> None:
    begun(world, operator)
    running.pause(world.change(), operator, "Traffic is high.")
    for _ in range(30):
        world.tick()
    later = datetime.now(UTC) + timedelta(hours=1)
    waiting = Move.objects.filter(state="pending")[0]
    asked: list[Callable[[], object]] = [
        lambda: orders.row(world.change(), operator, waiting.topic, waiting.partition, "cancel_row", "Not this one."),
        lambda: orders.set_throttle(world.change(), operator, "600", "It is quiet."),
        lambda: orders.set_parallel(world.change(), operator, 1, 1, "One by one."),
    ]
    for ask_it in asked:
        Execution.objects.update(next_at=later)
        ask_it()
        assert world.run().next_at <= datetime.now(UTC)


def test_row_without_trace__asks_and_does_as_it_is_told(world: World, operator: User) -> None:
    world.kafka.lose = False
    world.queue(operator)
    for _ in range(60):
        world.tick()
    asking = list(Move.objects.filter(asks=True).order_by("topic", "partition"))
    assert len(asking) >= 2
    assert world.states()[str(asking[0])][1].startswith("It was submitted 3 times")
    world.kafka.lose = None
    ask(world, operator, Deed.AGAIN, asking[0])
    ask(world, operator, Deed.GIVE_UP, asking[1])
    for other in asking[2:]:
        ask(world, operator, Deed.AGAIN, other)
    world.step()
    assert [order.answer for order in Order.objects.order_by("id")][:2] == [
        "It takes its turn again.",
        "It was given up.",
    ]
    world.until(RequestState.DONE)
    assert world.states()[str(asking[0])][0] == "done"
    assert world.states()[str(asking[1])][0] == "cancelled"


def test_election_asked_for__is_answered_by_kafka(world: World, operator: User) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving")[0]
    order = ask(world, operator, Deed.ELECT, move)
    world.step()
    order.refresh_from_db()
    assert order.answer == "Its preferred replica leads it."
    assert order.taken_at is not None
    world.kafka.refuse[TopicPartition(move.topic, move.partition)] = ItemError("Not in sync.", 80)
    order = ask(world, operator, Deed.ELECT, move)
    world.step()
    order.refresh_from_db()
    assert order.answer == runs.ELECTION_REFUSED(why="Not in sync.")


def test_order_for_a_row_that_is_not_there__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    order = ask(world, operator, Deed.CANCEL_ROW, Move(topic="orders", partition=99))
    world.step()
    order.refresh_from_db()
    assert order.answer == runs.ORDER_NO_ROW()


def test_asked_for_again_while_all_is_cancelled__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    running.cancel(world.change(), operator, "Wrong broker.")
    late = ask(world, operator, Deed.AGAIN, Move.objects.filter(state="moving")[0])
    world.until(RequestState.CANCELLED)
    late.refresh_from_db()
    assert late.taken_at is not None
    assert late.answer == runs.ORDER_CANCELLING()


def test_look_failed__changes_nothing_and_says_why(world: World, operator: User) -> None:
    begun(world, operator)
    before = world.states()
    world.kafka.fail["metadata"] = DeadlineExceeded("No answer within 8 s.")
    for _ in range(3):
        world.tick()
    assert world.states() == before
    run = world.run()
    assert (run.error, run.failures) == ("No answer within 8 s.", 3)
    world.kafka.fail.clear()
    world.until(RequestState.DONE)


def test_quorum_away__holds_and_goes_on_by_itself(world: World, operator: User) -> None:
    begun(world, operator)
    before = world.states()
    world.kafka.fail["list_reassignments"] = QuorumUnavailable("No majority.")
    world.tick()
    assert world.states() == before
    assert world.run().held[:2] == [
        turns.QUORUM_SILENT(),
        turns.LISTING_UNREAD(),
    ]
    world.kafka.fail.clear()
    world.until(RequestState.DONE)


def test_another_cluster_answers__nothing_is_done_there_and_after_long_it_has_failed(
    world: World, operator: User
) -> None:
    begun(world, operator)
    before, sent = world.states(), len(world.kafka.sent)
    own, world.kafka.cluster_id = world.kafka.cluster_id, "AnotherClusterAltogether"
    world.tick()
    assert "leads to the Kafka cluster AnotherClusterAltogether" in world.run().error
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
    assert "still in flight. What it owes is cleared when that has ended." in world.run().error
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
    assert world.run().error == rows.ALL_REFUSED(rows="6 rows", why="Reassignments are not allowed here.")
    assert {state for state, _ in world.states().values()} == {"failed"}
    assert clean(world)


def test_topic_deleted_while_it_moves__ends_with_exceptions(world: World, operator: User) -> None:
    begun(world, operator)
    world.model.delete("clicks")
    world.until(RequestState.DONE)
    assert world.states()["clicks-0"] == ("topic_deleted", rows.TOPIC_DELETED(topic="clicks"))
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
    assert world.run().brake == "other-0 is under min-ISR, and no broker is away that would explain it."
    assert world.arrived == {}
    assert "change.braked" in world.audit()
    TopicState.objects.filter(name="other").update(partitions=[[0, 1, 5, [1, 2], [1, 2], []]], under_replicated=0)
    world.until(RequestState.DONE)
    assert world.audit().count("change.braked") == 1
    assert world.audit().count("change.brake_released") == 1


def test_request_comes_late_after_a_cancel__is_cancelled_again_and_told(world: World, operator: User) -> None:
    begun(world, operator)
    world.kafka.lose = False
    world.tick()
    late = Move.objects.filter(state__in=["unknown", "submitting"]).first()
    if late is None:
        for _ in range(20):
            world.tick()
            late = Move.objects.filter(state__in=["unknown", "submitting"]).first()
            if late is not None:
                break
    assert late is not None
    world.kafka.lose = None
    running.cancel(world.change(), operator, "Wrong broker.")
    world.tick()
    world.model.submit((late.topic, late.partition), tuple(late.target))
    world.until(RequestState.CANCELLED)
    assert world.model.partitions[late.topic, late.partition].replicas == tuple(late.current)
    assert clean(world)


def test_fault_of_ours__is_told_and_gives_the_lease_back(
    world: World, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(world, operator)

    def fault(_: str) -> None:
        raise KeyError("of ours")

    world.kafka.before = fault
    world.step()
    run = world.run()
    assert run.error == rows.STEP_FAILED()
    assert run.lease_until is None
    assert run.next_at > datetime.now(UTC) + timedelta(seconds=5)
    world.kafka.before = lambda _: None
    world.until(RequestState.DONE)
    assert world.run().error == ""


def test_read_only_meanwhile__submits_nothing_more_and_ends_what_moves(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    world.cluster.read_only = True
    world.cluster.save()
    for _ in range(30):
        world.tick()
    assert world.arrived == sent
    assert {state for state, _ in world.states().values()} == {"done", "pending"}
    assert "read-only in kafkadash" in world.run().held[0]
    world.cluster.read_only = False
    world.cluster.save()
    world.until(RequestState.DONE)


def test_rest_of_the_cluster_not_read_any_more__submits_nothing_more(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    for _ in range(30):
        CollectorRun.objects.filter(kind="metadata").update(succeeded_at=world.clock - timedelta(minutes=5))
        world.step()
        world.passes(2)
        CollectorRun.objects.filter(kind="metadata").update(succeeded_at=world.clock - timedelta(minutes=5))
    assert world.arrived == sent
    assert "nobody can tell whether another move would harm them" in world.run().held[0]
    world.until(RequestState.DONE)


def test_election_refused_at_the_end__is_said_and_the_run_ends(world: World, operator: User) -> None:
    world.kafka.refuse_elections = ItemError("The preferred replica is not in sync.", 80)
    world.queue(operator)
    world.until(RequestState.DONE)
    state, reason = world.states()["orders-3"]
    assert (state, reason) == ("done", rows.NOT_ELECTED(why="The preferred replica is not in sync."))
    assert [call for call, _ in world.kafka.sent].count("elect_leaders") == 3
