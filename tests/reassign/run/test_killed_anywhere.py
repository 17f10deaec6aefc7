"""A worker that dies anywhere in a step loses nothing and doubles nothing; one that lost its lease does nothing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from threading import Event
from typing import Any
from unittest import mock

import pytest
from django.db import connection
from django.db.models import F, Model
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.observe.collectors import writing
from kafkadash.observe.lease import Lease
from kafkadash.reassign.models import Deed, Execution, Move, ThrottleEntry
from kafkadash.reassign.run import moves, orders
from kafkadash.reassign.run import step as stepping
from kafkadash.reassign.run.order_answers import OrderAnswerCode
from kafkadash.reassign.run.running import Running
from tests.reassign.run.runs import OPTIONS, ROWS, World

CALLS = ("alter_configs", "alter_reassignments", "elect_leaders", "describe_configs", "list_reassignments")

PORTION = 2
Write = Callable[[Running], AbstractContextManager[Any]]
Portion = Callable[[Lease], AbstractContextManager[None]]


class Killed(BaseException):
    """As SIGKILL does it: nobody catches it, and whoever comes next is another process."""


class Killer:
    """Kills the ``first`` times that the point is passed."""

    def __init__(self, point: str, first: int) -> None:
        self._point, self._left = point, first
        self.passed: Counter[str] = Counter()

    def at(self, point: str) -> None:
        self.passed[point] += 1
        if point == self._point and self._left:
            self._left -= 1
            raise Killed

    @contextmanager
    def watching(self, world: World) -> Iterator[None]:
        world.kafka.before = lambda call: self.at(f"before {call}")
        world.kafka.after = lambda call: self.at(f"after {call}")
        with (
            mock.patch.object(Running, "write", self._wrapped(Running.write)),
            mock.patch.object(Running, "write_state", self._wrapped(Running.write_state)),
            mock.patch.object(moves, "AT_ONCE", PORTION),
            mock.patch.object(Lease, "write_portion", self._portion(Lease.write_portion)),
        ):
            yield

    def _wrapped(self, write: Write) -> Write:
        @contextmanager
        def wrapped(running: Running) -> Iterator[object]:
            with write(running) as row:
                yield row
                self.at("before commit")
            self.at("after commit")

        return wrapped

    def _portion(self, write: Portion) -> Portion:
        @contextmanager
        def wrapped(lease: Lease) -> Iterator[None]:
            with write(lease):
                yield
                self.at("before the commit of a portion")
            self.at("after a portion")

        return wrapped


def goes_to_its_end(world: World, operator: User, killer: Killer) -> None:
    world.queue(operator)
    with killer.watching(world):
        for _ in range(200):
            if world.change().state == RequestState.DONE:
                return
            try:
                world.step()
            except Killed:
                moves.kept.forget()
            world.passes(6)
    raise AssertionError(f"{world.change().state} {world.run().error} {world.states()}")


@pytest.mark.django_db
@pytest.mark.parametrize("times", [1, 2])
@pytest.mark.parametrize(
    "point",
    [
        *(f"{when} {call}" for call in CALLS for when in ("before", "after")),
        "before commit",
        "after commit",
        "before the commit of a portion",
        "after a portion",
    ],
)
def test_killed__nothing_is_lost_or_doubled(world: World, operator: User, point: str, times: int) -> None:
    killer = Killer(point, times)
    goes_to_its_end(world, operator, killer)

    assert killer.passed[point], "it was killed there"
    assert {state for state, _ in world.states().values()} == {"done"}
    assert Move.objects.count() == len(ROWS)
    for row in ROWS:
        partition = world.model.partitions[row.topic, row.partition]
        assert (partition.replicas, partition.leader) == (row.target, row.target[0])
    assert killer.passed["after elect_leaders"], "one had to be elected"
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS})
    assert not any(value for own in world.kafka.configs.values() for value in own.values())
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()
    assert world.audit() == ["change.started", "change.turn_came", "change.rows_ended", "change.verified"]
    assert world.run().outcome == "clean"


@pytest.mark.django_db
def test_killed_in_an_election_that_somebody_asked_for__it_is_sent_again_and_answered(
    world: World, operator: User
) -> None:
    world.queue(operator)
    world.until(RequestState.EXECUTING)
    order = orders.row(world.change(), operator, "orders", 3, Deed.ELECT, "Its leader is wanted now.")
    with Killer("after elect_leaders", 1).watching(world), pytest.raises(Killed):
        world.step()
    moves.kept.forget()
    order.refresh_from_db()
    assert (order.taken_at, order.answer) == (None, None)

    world.passes(2)
    world.step()
    order.refresh_from_db()
    assert order.taken_at is not None
    assert order.answer_code == OrderAnswerCode.ELECTED
    assert [call for call, _ in world.kafka.sent].count("elect_leaders") == 2


@pytest.mark.django_db
@pytest.mark.parametrize("point", ["before the commit of a portion", "after a portion"])
def test_cancel_of_many__is_stored_in_portions_and_killed_between_them_goes_on(
    world: World, operator: User, point: str
) -> None:
    world.queue(operator, options=replace(OPTIONS, per_cluster=1))
    world.until(RequestState.EXECUTING)
    world.tick()
    running.cancel(world.change(), operator, "Wrong broker.")
    killer, stored = Killer(point, 3), []

    def update_rows(model: type[Model], rows: Mapping[int, Mapping[str, Any]]) -> int:
        stored.append(len(rows))
        return writing.update_rows(model, rows)

    with killer.watching(world), mock.patch("kafkadash.reassign.run.moves.update_rows", update_rows):
        for _ in range(30):
            try:
                world.step()
            except Killed:
                moves.kept.forget()
            world.passes(2)
            if killer.passed[point] >= 3 and world.change().state == RequestState.CANCELLED:
                break
    assert max(stored) == PORTION, "no transaction has more"
    assert killer.passed[point] >= 3
    assert world.change().state == RequestState.CANCELLED
    ends = Counter(state for state, _ in world.states().values())
    assert ends["cancelled"] >= len(ROWS) - 1, "what moved may have ended before"
    assert sum(world.arrived.values()) == 1, "what waited was never begun"
    assert not ThrottleEntry.objects.exclude(state="cleared").exists()


@pytest.mark.django_db
@pytest.mark.parametrize("call", ["list_reassignments", "metadata", "describe_cluster", "describe_configs"])
def test_lease_lost__before_it_was_decided__writes_and_sends_nothing(world: World, operator: User, call: str) -> None:
    world.queue(operator)
    world.step()
    assert world.change().state == RequestState.EXECUTING
    world.passes(2)
    before = world.states()
    world.kafka.before = lambda asked: _taken_over(world) if asked == call else None
    world.step()

    assert world.kafka.sent == []
    assert world.states() == before
    assert not ThrottleEntry.objects.exists()
    run = world.run()
    assert run.error is None
    assert run.lease_until is not None, "the other one's lease is his"


@pytest.mark.django_db
def test_lease_lost__after_intents_were_stored__sends_nothing_more(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    world.passes(2)
    world.kafka.after = lambda call: _taken_over(world) if call == "alter_configs" else None
    # So that the lease has to be renewed before each call.
    with mock.patch("kafkadash.reassign.run.step.CALL_S", 1000.0):
        world.step()

    assert [call for call, _ in world.kafka.sent] == ["alter_configs"]
    assert {state for state, _ in world.states().values()} == {"submitting", "pending"}
    world.kafka.after = lambda _: None
    world.until(RequestState.DONE)
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS})


def _taken_over(world: World) -> None:
    Execution.objects.filter(request=world.runs[0]).update(epoch=F("epoch") + 1, lease_until=Now())


@pytest.mark.django_db(transaction=True)
def test_two_at_once__one_steps_and_the_other_does_nothing(world: World, operator: User) -> None:
    world.queue(operator)
    world.step()
    world.passes(2)
    asked, go_on = Event(), Event()

    def hold(call: str) -> None:
        if call == "list_reassignments" and not asked.is_set():
            asked.set()
            assert go_on.wait(20)

    world.kafka.before = hold
    execution = world.run()
    Execution.objects.filter(pk=execution.pk).update(next_at=Now(), lease_until=None)
    with ThreadPoolExecutor(1) as pool:
        first = pool.submit(_in_thread, execution.pk)
        assert asked.wait(20)
        stepping.step_once(execution.pk)
        assert world.kafka.sent == []
        go_on.set()
        first.result(20)
    assert world.run().epoch == execution.epoch + 1
    assert [call for call, _ in world.kafka.sent].count("alter_reassignments") == 1


def _in_thread(execution_id: int) -> None:
    try:
        stepping.step_once(execution_id)
    finally:
        connection.close()
