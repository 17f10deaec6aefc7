"""Which runs the tick hands out to workers, and which it leaves alone."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from pytest_django import Settings

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.observe.tasks import collect, ingest, write_segments
from kafkadash.ops import tick
from kafkadash.reassign.models import Execution, Move, ThrottleEntry
from kafkadash.reassign.run import lease, moves
from kafkadash.reassign.tasks import execute
from tests.reassign.run.runs import World

pytestmark = pytest.mark.django_db


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
    lease.wake(queued)
    tick.tick()
    assert queue.sent == [queued]


def test_held_by_a_worker__is_left_alone(queue: Queue, queued: int) -> None:
    assert lease.take(queued) is not None
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
