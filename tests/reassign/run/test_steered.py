"""Pause, resume, cancel, and what is asked of single rows while a run is under way."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.domain.row_reasons import EndedByOperatorWithNote, NoTraceOfIt
from kafkadash.domain.run_reasons import ClusterReadOnly, RunPaused
from kafkadash.kafka.port import DeadlineExceeded, ItemError, TopicPartition
from kafkadash.reassign.models import Deed, Execution, Move, Order, Outcome, ThrottleEntry
from kafkadash.reassign.run import orders
from kafkadash.reassign.run.order_answers import (
    CancelBegan,
    ElectionRefused,
    LeaderElected,
    NoSuchRow,
    RowGivenUp,
    RowLeftOut,
    RunIsCancelled,
    TakesItsTurn,
)
from tests.reassign.run.begun import begun, clean
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db


def test_pause__submits_nothing_more_and_lets_go_on_what_moves(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    running.pause(world.change(), operator, "Traffic is high.")
    for _ in range(30):
        world.tick()
    assert world.arrived == sent
    assert {state for state, _ in world.states().values()} == {"done", "pending"}
    assert world.change().state == RequestState.PAUSED
    assert world.run().held_reasons == (RunPaused(),)
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
    assert world.run().error is None


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
    assert [order.answer for order in Order.objects.order_by("id")] == [CancelBegan(), RowLeftOut()]
    world.until(RequestState.DONE)
    assert world.run().outcome == Outcome.EXCEPTIONS
    for move in (moving, waiting):
        assert world.states()[str(move)] == ("cancelled", EndedByOperatorWithNote("olga", "Not this one."))
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
    assert world.states()[str(move)] == ("cancelling", EndedByOperatorWithNote("olga", "Not this one."))
    world.kafka.fail.clear()
    world.until(RequestState.DONE)
    assert world.states()[str(move)] == ("cancelled", EndedByOperatorWithNote("olga", "Not this one."))
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
    assert world.states()[str(asking[0])][1] == NoTraceOfIt(3)
    world.kafka.lose = None
    ask(world, operator, Deed.AGAIN, asking[0])
    ask(world, operator, Deed.GIVE_UP, asking[1])
    for other in asking[2:]:
        ask(world, operator, Deed.AGAIN, other)
    world.step()
    assert [order.answer for order in Order.objects.order_by("id")][:2] == [TakesItsTurn(), RowGivenUp()]
    world.until(RequestState.DONE)
    assert world.states()[str(asking[0])][0] == "done"
    assert world.states()[str(asking[1])][0] == "cancelled"


def test_election_asked_for__is_answered_by_kafka(world: World, operator: User) -> None:
    begun(world, operator)
    move = Move.objects.filter(state="moving")[0]
    order = ask(world, operator, Deed.ELECT, move)
    world.step()
    order.refresh_from_db()
    assert order.answer == LeaderElected()
    assert order.taken_at is not None
    world.kafka.refuse[TopicPartition(move.topic, move.partition)] = ItemError("Not in sync.", 80)
    order = ask(world, operator, Deed.ELECT, move)
    world.step()
    order.refresh_from_db()
    assert order.answer == ElectionRefused("Not in sync.")


def test_order_for_a_row_that_is_not_there__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    order = ask(world, operator, Deed.CANCEL_ROW, Move(topic="orders", partition=99))
    world.step()
    order.refresh_from_db()
    assert order.answer == NoSuchRow()


def test_asked_for_again_while_all_is_cancelled__is_answered(world: World, operator: User) -> None:
    begun(world, operator)
    running.cancel(world.change(), operator, "Wrong broker.")
    late = ask(world, operator, Deed.AGAIN, Move.objects.filter(state="moving")[0])
    world.until(RequestState.CANCELLED)
    late.refresh_from_db()
    assert late.taken_at is not None
    assert late.answer == RunIsCancelled()


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


def test_read_only_meanwhile__submits_nothing_more_and_ends_what_moves(world: World, operator: User) -> None:
    begun(world, operator)
    sent = world.arrived
    world.cluster.read_only = True
    world.cluster.save()
    for _ in range(30):
        world.tick()
    assert world.arrived == sent
    assert {state for state, _ in world.states().values()} == {"done", "pending"}
    assert world.run().held_reasons[0] == ClusterReadOnly(world.cluster.name)
    world.cluster.read_only = False
    world.cluster.save()
    world.until(RequestState.DONE)
