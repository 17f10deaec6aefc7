"""Four workers and many people on one run at the same time: nothing is sent twice, nothing accepted is lost.

Two on two real connections at the same instant: a run's own step, and somebody who ends or asks something.
"""

from __future__ import annotations

import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
from django.db import connection, connections
from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services
from kafkadash.changes import services as running
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, Comment, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import remove_cluster
from kafkadash.clusters.services import ClusterRefused
from kafkadash.execution import commands as orders
from kafkadash.execution.models import Execution
from kafkadash.execution.worker.running import RunningStep
from kafkadash.execution.worker.step import step_once
from tests.execution.worlds import ROWS, World
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

WORKERS, PEOPLE = 4, 6
DEEDS = 15
STEPS_S = 60.0


class Crowd:
    """``accepted``: verb → how often a deed was not refused. ``faults`` are errors that are no refusals."""

    def __init__(self, change: ChangeRequest, user: User, run: int) -> None:
        self.change, self.user, self.run = change, user, run
        self.accepted: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.faults: list[BaseException] = []
        self.over = threading.Event()
        self._lock = threading.Lock()

    def thread(self, work: Callable[[], None]) -> threading.Thread:
        def guarded() -> None:
            try:
                work()
            except Exception as fault:  # noqa: BLE001  of any kind: the test fails with it
                self.faults.append(fault)
            finally:
                connection.close()

        thread = threading.Thread(target=guarded)
        thread.start()
        return thread

    def works(self) -> None:
        while not self.over.is_set():
            step_once(self.run)
            connection.close()

    def acts(self, chance: random.Random) -> None:
        for _ in range(DEEDS):
            verb, deed = chance.choice(self._deeds(chance))
            try:
                deed(ChangeRequest.objects.get(pk=self.change.pk))
            except ChangeRefused:
                self._count(self.refused, verb)
            else:
                self._count(self.accepted, verb)
            connection.close()

    def _deeds(self, chance: random.Random) -> list[tuple[str, Callable[[ChangeRequest], object]]]:
        rate = str(chance.randint(60, 900))
        return [
            ("change.paused", lambda change: running.pause(change, self.user, "Wait.")),
            ("change.resumed", lambda change: running.resume(change, self.user, "Go on.")),
            ("change.commented", lambda change: services.comment(change, self.user, "Seen.")),
            (
                "change.throttle_changed",
                lambda change: orders.set_throttle(change, self.user, rate, "Night.", twice=True),
            ),
        ]

    def _count(self, counter: Counter[str], verb: str) -> None:
        with self._lock:
            counter[verb] += 1


def test_a_crowd_on_one_run(world: World, operator: User) -> None:
    change = world.queue(operator)
    crowd = Crowd(change, operator, world.executions[change.pk])
    workers = [crowd.thread(crowd.works) for _ in range(WORKERS)]
    people = [crowd.thread(lambda n=n: crowd.acts(random.Random(n))) for n in range(PEOPLE)]  # type: ignore[misc]
    try:
        _time_passes_until(world, lambda: not any(thread.is_alive() for thread in people))
        if world.change().state == RequestState.PAUSED:
            crowd.accepted["change.resumed"] += 1
            running.resume(world.change(), operator, "All have spoken.")
        _time_passes_until(world, lambda: world.change().state == RequestState.DONE)
    finally:
        crowd.over.set()
        for thread in [*people, *workers]:
            thread.join(STEPS_S)

    assert crowd.faults == []
    assert sum(crowd.accepted.values()) + sum(crowd.refused.values()) >= PEOPLE * DEEDS
    assert min(crowd.accepted[verb] for verb in ("change.paused", "change.commented", "change.throttle_changed")) > 0
    events = Counter(AuditEvent.objects.filter(object_id=str(change.pk)).values_list("action", flat=True))
    assert {verb: events[verb] for verb in crowd.accepted} == dict(crowd.accepted)
    assert Comment.objects.filter(request=change).count() == crowd.accepted["change.commented"]
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS}), "each is sent once"
    assert {state for state, _ in world.states().values()} == {"done"}
    assert events["change.turn_came"] == events["change.verified"] == 1


def _time_passes_until(world: World, condition: Callable[[], bool]) -> None:
    """The run's turn comes again and again, whoever takes it."""

    def passed() -> bool:
        Execution.objects.filter(request=world.runs[0]).update(next_at=Now())
        world.passes(1)
        return condition()

    wait_until(passed, "it comes to its end", STEPS_S)


@pytest.fixture
def other() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool
        pool.submit(connections.close_all).result()  # that thread's own, not this one's


def somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
        return cursor.fetchone() is not None


def while_it_is_stored(other: ThreadPoolExecutor, deed: Callable[[], object]) -> tuple[Any, list[Future[object]]]:
    """Patches the writing of a run's state: ``deed`` begins in its transaction, and waits until that is committed."""
    begun: list[Future[object]] = []
    really = RunningStep.move

    def move(running: RunningStep, *args: Any, **more: Any) -> None:
        really(running, *args, **more)
        if not begun:
            begun.append(other.submit(deed))
            wait_until(somebody_waits, "the other one waits for this transaction")

    return mock.patch.object(RunningStep, "move", move), begun


def test_cluster_of_a_run_whose_turn_comes__is_not_removed(
    world: World, operator: User, admin: User, other: ThreadPoolExecutor
) -> None:
    def removes() -> None:
        remove_cluster(admin, world.cluster, typed_name=world.cluster.name)

    world.queue(operator)
    patch, begun = while_it_is_stored(other, removes)
    with patch:
        world.step()
    with pytest.raises(ClusterRefused, match=r"#\d+ is running on this cluster"):
        begun[0].result(timeout=10)
    assert world.change().state == RequestState.EXECUTING
    assert Cluster.objects.filter(pk=world.cluster.pk).exists()
    world.until(RequestState.DONE)
