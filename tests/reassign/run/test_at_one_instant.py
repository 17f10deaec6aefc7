"""Two on two real connections at the same instant: a run's own step, and somebody who ends or asks something."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any
from unittest import mock

import pytest
from django.db import connection, connections

from kafkadash.accounts.models import User
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import remove_cluster
from kafkadash.clusters.services import Refused
from kafkadash.reassign.run.running import Running
from tests.reassign.run.runs import World
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


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
    really = Running.move

    def move(running: Running, *args: Any, **more: Any) -> None:
        really(running, *args, **more)
        if not begun:
            begun.append(other.submit(deed))
            wait_until(somebody_waits, "the other one waits for this transaction")

    return mock.patch.object(Running, "move", move), begun


def test_cluster_of_a_run_whose_turn_comes__is_not_removed(
    world: World, operator: User, admin: User, other: ThreadPoolExecutor
) -> None:
    def removes() -> None:
        remove_cluster(admin, world.cluster, typed_name=world.cluster.name)

    world.queue(operator)
    patch, begun = while_it_is_stored(other, removes)
    with patch:
        world.step()
    with pytest.raises(Refused, match=r"#\d+ is under way here. Cancel it first"):
        begun[0].result(timeout=10)
    assert world.change().state == RequestState.EXECUTING
    assert Cluster.objects.filter(pk=world.cluster.pk).exists()
    world.until(RequestState.DONE)
