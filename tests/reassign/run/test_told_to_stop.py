"""A worker of runs that is told to stop (SIGTERM) ends the step that it is in, and begins no other.

Real processes: Celery's worker as the demo and the compose file start it, and behind the run's cluster an address that
takes connections and never answers.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection
from django.db.models.functions import Now
from redis import Redis

from kafkadash.accounts.models import User
from kafkadash.celery import app
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.ops.demo import services
from kafkadash.reassign import tasks
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run import lease
from tests.reassign.run.runs import World, model_of, patched
from tests.reassign.stored import stored
from tests.waiting import wait_until

STARTS_S, ENDS_S = 60.0, 20.0


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        listening.settimeout(STARTS_S)
        yield listening


@pytest.fixture
def worker(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """With one thread, so that a second message waits in it."""
    service = next(each for each in services.workers_and_beat() if each.name == "worker-execute")
    arguments = list(service.arguments)
    arguments[arguments.index("-c") + 1] = "1"
    database = connection.settings_dict
    url = f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}"
    with (tmp_path / "log").open("wb") as out:
        process = subprocess.Popen(
            [sys.executable, *arguments],
            cwd=settings.BASE_DIR,
            env={**os.environ, "DATABASE_URL": url},
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait(30)


def run_under_way(name: str, operator: User, bootstrap: str) -> Execution:
    """EXECUTING, with rows in flight, and its cluster does not answer any more."""
    world = World(stored(name), model_of(Cluster.objects.get(slug=name)))
    with patched(world):
        world.queue(operator)
        world.until(RequestState.EXECUTING)
        world.tick()
    Cluster.objects.filter(pk=world.cluster.pk).update(bootstrap_servers=bootstrap)
    return world.run()


def due(execution: Execution) -> None:
    """As the tick claims it and hands it out."""
    Execution.objects.filter(pk=execution.pk).update(next_at=Now(), lease_until=None, dispatched_until=None)
    assert lease.claim_due() == [execution.pk]
    app.send_task("execute", (execution.pk,))


def waiting_messages() -> int:
    """In the queue, held by no worker."""
    with closing(Redis.from_url(settings.REDIS_URL)) as redis:
        waiting = redis.llen("execute")
    assert isinstance(waiting, int)
    return waiting


@pytest.mark.django_db(transaction=True)
def test_told_to_stop_in_the_middle_of_a_step__ends_it_gives_the_lease_back_and_begins_no_other(
    silent: socket.socket, worker: subprocess.Popen[bytes], operator: User
) -> None:
    address = f"127.0.0.1:{silent.getsockname()[1]}"
    own, other = run_under_way("own", operator, address), run_under_way("other", operator, address)
    due(own)
    asked, _ = silent.accept()
    with closing(asked):
        due(other)
        wait_until(lambda: waiting_messages() == 0, "the other message waits in the worker", 20)
        during = Execution.objects.get(pk=own.pk)
        assert during.epoch == own.epoch + 1
        assert during.lease_until is not None

        began = time.monotonic()
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(ENDS_S) == 0
        took = time.monotonic() - began

    after = Execution.objects.get(pk=own.pk)
    assert (after.epoch, after.lease_until, after.dispatched_until) == (own.epoch + 1, None, None)
    assert after.failures == 1
    assert after.error, "the step ended as one whose look failed"
    assert Execution.objects.get(pk=other.pk).epoch == other.epoch, "nothing else was begun"
    assert took < ENDS_S
    assert waiting_messages() == 1, "it is left to another worker"


@pytest.mark.django_db
def test_a_message_that_comes_after_the_signal__is_handed_back(
    world: World, operator: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.queue(operator)
    execution = world.run()
    Execution.objects.filter(pk=execution.pk).update(next_at=Now())
    assert lease.claim_due() == [execution.pk]
    monkeypatch.setattr(tasks, "_stopping", False)
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)  # this test's own
    tasks.told_to_stop()
    tasks.execute(execution.pk)

    after = world.run()
    assert (after.epoch, after.dispatched_until) == (execution.epoch, None)
    assert lease.claim_due() == [execution.pk], "the next tick gives it to another worker"
