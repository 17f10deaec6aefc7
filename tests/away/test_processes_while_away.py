"""The pool: who asks after a restart gets a living connection at once; who asks meanwhile is not kept waiting.

Workers whose database goes away in the middle: they stop, store nothing, and go on when it is back.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Barrier, Event
from typing import Any
from unittest import mock

import pytest
from django.db import Error, OperationalError, ProgrammingError, connection, transaction

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster
from kafkadash.core.database.availability import is_away
from kafkadash.core.database.base import CheckedPool
from kafkadash.execution.models import Execution
from kafkadash.execution.worker import step as stepping
from kafkadash.monitoring import collection
from kafkadash.monitoring.models import ON_REQUEST, Collection, CollectorKind, CollectorRun
from kafkadash.ops.models import Heartbeat
from kafkadash.ops.tick import tick
from tests.away.conftest import Away
from tests.execution.worlds import ROWS, World
from tests.waiting import wait_until

LARGEST = 6
AT_ONCE_S = 0.9


@pytest.fixture
def wait(away: Away) -> Callable[[float], None]:
    """``wait(5)``: so long anybody waits for a connection, in seconds."""

    def chosen(seconds: float) -> None:
        connection.close()
        connection.close_pool()  # type: ignore[attr-defined]
        pool = {**connection.settings_dict["OPTIONS"]["pool"], "timeout": seconds, "max_size": LARGEST}
        connection.settings_dict["OPTIONS"] = {**connection.settings_dict["OPTIONS"], "pool": pool}

    return chosen


def asked(_: object = None) -> float:
    """Seconds that a query took."""
    began = time.monotonic()
    try:
        User.objects.count()
    finally:
        connection.close()
    return time.monotonic() - began


@contextmanager
def held(number: int) -> Iterator[None]:
    """So many connections are in use."""
    ready, let_go = Barrier(number + 1), Event()

    def hold() -> None:
        User.objects.count()
        ready.wait(30)
        let_go.wait(30)
        connection.close()

    with ThreadPoolExecutor(number) as threads:
        holding = [threads.submit(hold) for _ in range(number)]
        ready.wait(30)
        try:
            yield
        finally:
            let_go.set()
            for one in holding:
                one.result(30)


def pool() -> CheckedPool:
    own: Any = connection
    assert isinstance(own.pool, CheckedPool)
    return own.pool


@pytest.mark.parametrize("how", ["cut_all", "restart", "crash"])
def test_after_all_connections_died__everybody_is_served_at_once(
    away: Away, wait: Callable[[float], None], how: str
) -> None:
    wait(5)
    with held(LARGEST):
        pass
    assert pool().get_stats()["pool_available"] == LARGEST
    if how == "cut_all":
        assert away.cut_all() >= LARGEST
    else:
        away.kill() if how == "crash" else away.stop()
        away.start()

    with ThreadPoolExecutor(LARGEST) as threads:
        took = list(threads.map(asked, range(2 * LARGEST)))
    assert max(took) < 4


def test_a_restart_within_the_wait__is_only_a_slow_page(away: Away, wait: Callable[[float], None]) -> None:
    wait(60)
    assert asked() < AT_ONCE_S + 1
    away.kill()
    with ThreadPoolExecutor(1) as threads:
        waits = threads.submit(asked)
        wait_until(lambda: pool().get_stats().get("connections_errors", 0), "it was refused")
        away.start()
        assert waits.result(90) < 60


def test_while_it_is_away__only_the_first_waits_long(away: Away, wait: Callable[[float], None]) -> None:
    wait(2)
    asked()
    away.stop()
    for least, most in ((1.9, 8), (0, AT_ONCE_S), (0, AT_ONCE_S)):
        began = time.monotonic()
        with pytest.raises(OperationalError) as refused:
            asked()
        assert is_away(refused.value)
        assert least <= time.monotonic() - began <= most

    away.start()
    wait_until(_answers, "it answers again", 10)
    assert asked() < AT_ONCE_S


def test_a_pool_that_is_exhausted__is_away_for_who_asks_and_waits_its_usual_time(
    away: Away, wait: Callable[[float], None]
) -> None:
    wait(1.5)
    with held(LARGEST):
        for _ in range(2):
            began = time.monotonic()
            with pytest.raises(OperationalError) as refused:
                asked()
            assert is_away(refused.value)
            assert time.monotonic() - began >= 1.4, "the server is not away"
    assert asked() < AT_ONCE_S


def test_a_transaction_that_loses_its_connection__is_told_from_a_fault_of_ours(away: Away) -> None:
    with pytest.raises(OperationalError) as lost:
        _loses_its_connection(away)
    assert is_away(lost.value)
    connection.close()
    assert not User.objects.exists(), "it was rolled back"

    with pytest.raises(Error) as behind:
        _goes_on_without_its_connection(away)
    assert is_away(behind.value), "what comes of it says so too"


@transaction.atomic
def _loses_its_connection(away: Away) -> None:
    User.objects.create(username="ann")
    away.cut_all()
    User.objects.count()


@transaction.atomic
def _goes_on_without_its_connection(away: Away) -> None:
    User.objects.count()
    away.cut_all()
    try:
        User.objects.count()
    except OperationalError:
        connection.close()
        User.objects.count()


def test_a_time_limit_and_a_mistake__are_no_outage(away: Away) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET statement_timeout = '20ms'")
        with pytest.raises(OperationalError) as slow:
            cursor.execute("SELECT pg_sleep(5)")
        cursor.execute("SET statement_timeout = 0")
        with pytest.raises(ProgrammingError) as wrong:
            cursor.execute("SELECT nothing")
    assert not is_away(slow.value)
    assert not is_away(wrong.value)
    assert not is_away(None)


def _answers() -> bool:
    try:
        asked()
    except OperationalError:
        return False
    return True


@pytest.fixture
def world(away: Away, world: World) -> World:
    return world


def back(away: Away) -> None:
    away.start()
    wait_until(_worker_answers, "the database answers", 15)


def _worker_answers() -> bool:
    try:
        User.objects.exists()
    except Error:
        connection.close()
        return False
    return True


@pytest.mark.parametrize(
    ("when", "call"), [("after", "list_reassignments"), ("after", "alter_configs"), ("after", "alter_reassignments")]
)
def test_a_step__whose_database_dies_around_a_call__is_finished_by_the_next_ones(
    away: Away, world: World, operator: User, call: str, when: str
) -> None:
    world.queue(operator)
    run = world.executions[world.runs[0]]
    died: list[str] = []

    def dies(made: str) -> None:
        if made == call and not died and Execution.objects.get(pk=run).active:
            died.append(made)
            away.kill()

    setattr(world.kafka, when, dies)
    for _ in range(60):
        world.step()
        connection.close()  # as at the end of each task
        if died:
            break
        world.passes(2)
    assert died, f"{call} was never made"
    back(away)

    world.kafka.before = world.kafka.after = lambda _: None
    assert Execution.objects.get(pk=run).error is None, "an outage is no fault of the step"
    world.until("done")
    assert {state for state, _ in world.states().values()} == {"done"}
    assert world.arrived == Counter({(row.topic, row.partition): 1 for row in ROWS})
    assert world.audit().count("change.turn_came") == 1


def test_a_refresh__whose_database_dies_before_it_stores__leaves_nothing_and_is_made_again(
    away: Away, cluster: Cluster
) -> None:
    collection.ensure_runs()
    run = CollectorRun.objects.get(cluster=cluster, kind=CollectorKind.METADATA)
    asked: Callable[..., object] = collection._ask

    def dies(*arguments: object) -> object:
        answer = asked(*arguments)
        away.kill()
        return answer

    with mock.patch.object(collection, "_ask", dies), pytest.raises(Error):
        collection.refresh(run.pk)
    connection.close()
    back(away)

    assert not Collection.objects.exists()
    CollectorRun.objects.filter(pk=run.pk).update(lease_until=None)
    assert collection.refresh(run.pk) is not None
    assert Collection.objects.count() == 1


def test_a_tick__fails_while_it_is_away_and_is_whole_when_it_is_back(away: Away, cluster: Cluster) -> None:
    away.stop()
    for _ in range(3):
        with pytest.raises(Error):
            tick()
        connection.close()
    back(away)
    tick()
    assert CollectorRun.objects.filter(cluster=cluster).count() == len(set(CollectorKind) - ON_REQUEST)
    assert Heartbeat.objects.exists()


def test_a_step__that_cannot_even_ask_for_its_lease__sends_nothing(away: Away, world: World, operator: User) -> None:
    world.queue(operator)
    world.reset()
    connection.close()
    away.stop()
    before = len(world.kafka.sent)
    with pytest.raises(Error):
        stepping.step_once(world.executions[world.runs[0]])
    connection.close()
    assert len(world.kafka.sent) == before
    back(away)
    assert not AuditEvent.objects.filter(action="change.turn_came").exists()
