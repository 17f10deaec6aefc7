"""A run from the queue to its end, with nothing in its way."""

from __future__ import annotations

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.models import RequestState
from kafkadash.domain.row_reasons import ChangedSince, NotReread
from kafkadash.reassign.models import Outcome, ThrottleEntry
from tests.reassign.run.runs import ROWS, World

pytestmark = pytest.mark.django_db


def test_run__goes_from_the_queue_to_done(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.DONE)

    for row in ROWS:
        assert world.model.partitions[row.topic, row.partition].replicas == row.target
        assert world.model.partitions[row.topic, row.partition].leader == row.target[0]
    assert {state for state, _ in world.states().values()} == {"done"}
    run = world.run()
    assert (run.outcome, run.active, run.error) == (Outcome.CLEAN, False, None)
    assert run.started_at is not None
    assert run.ended_at is not None
    assert run.rows == len(ROWS)
    assert world.audit() == ["change.started", "change.turn_came", "change.rows_ended", "change.verified"]


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
    assert world.run().outcome == Outcome.EXCEPTIONS


def test_verifying__one_broker_with_old_metadata__is_no_exception(world: World, operator: User) -> None:
    world.queue(operator)
    world.until(RequestState.VERIFYING)
    partition = world.model.partitions["clicks", 0]
    partition.replicas, now = (3, 5), partition.replicas
    world.step()
    partition.replicas = now
    world.until(RequestState.DONE)
    assert world.run().outcome == Outcome.CLEAN


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
    assert (world.change().state, world.run().outcome) == (RequestState.DONE, Outcome.EXCEPTIONS)
    assert world.states()["clicks-0"] == ("done", NotReread("clicks"))
