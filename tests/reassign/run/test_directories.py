"""Rows that name the log directory of a new replica: its broker is told before the move is submitted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.domain.row_reasons import LiesElsewhere, LiesNobodyKnows, NotSentYet, RefusedByKafka
from kafkadash.kafka.changing import ReplicaPlace
from kafkadash.kafka.port import ItemError, TopicPartition, Unreachable
from kafkadash.reassign.models import Outcome
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db

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
    assert world.run().outcome == Outcome.CLEAN


def test_a_directory_that_kafka_refuses_ends_its_row_and_no_other(world: World, operator: User) -> None:
    words = "The directory of orders-0 on broker 6 was not chosen: not found (LOG_DIR_NOT_FOUND)."
    world.kafka.refuse_places[6] = ItemError(words, 57, "LOG_DIR_NOT_FOUND")
    world.queue(operator, [NAMED, OTHER])
    world.until(RequestState.DONE)

    assert world.states() == {"orders-0": ("failed", RefusedByKafka(words)), "clicks-0": ("done", None)}
    assert world.run().outcome == Outcome.EXCEPTIONS
    moved = [target for targets in _sent(world, "alter_reassignments") for target in targets]  # type: ignore[attr-defined]
    assert TopicPartition("orders", 0) not in moved


@pytest.mark.parametrize("unsent", [True, False])
def test_a_directory_that_could_not_be_told_keeps_its_row_waiting(world: World, operator: User, unsent: bool) -> None:
    """Whether nothing left, or its answer was lost: the move itself was not sent, and is tried again."""
    if unsent:
        world.kafka.fail["place_replicas"] = Unreachable("Broker 6 could not be connected.")
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
    assert world.run().outcome == Outcome.EXCEPTIONS
    assert world.run().report["otherwise"] == [["orders", 0, "done", there.stored_code, there.params()]]


def test_a_directory_that_cannot_be_read_at_the_end_is_not_taken_for_right(world: World, operator: User) -> None:
    world.kafka.fail["log_dirs"] = Unreachable("Broker 6 could not be connected.")
    world.queue(operator, [NAMED])
    world.until(RequestState.DONE)

    [(state, reason)] = world.states().values()
    assert (state, reason) == ("done", LiesNobodyKnows(6, "/data-2", "Broker 6 could not be connected."))
    assert world.run().outcome == Outcome.EXCEPTIONS
