"""Collectors as processes of their own: two at once, and one that the system stopped for longer than its lease.

The cluster is a socket that accepts and never answers, so a collector is in the middle of its question for as long as
its deadline lasts; what it then stores is that nothing answered, which needs the lease like anything else.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection

from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.models import Collection, CollectorRun
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def mute_address() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.fixture
def run(mute_address: str) -> CollectorRun:
    cluster = Cluster.objects.create(name="mute", slug="mute", bootstrap_servers=mute_address)
    ensure_runs()
    return CollectorRun.objects.get(cluster=cluster, kind="quorum")


def start_collector(*, lease_s: float, deadline_s: float) -> subprocess.Popen[str]:
    database = connection.settings_dict
    environment = {
        **os.environ,
        "DATABASE_URL": f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}",
        "LEASE_TTL": str(lease_s),
        "KAFKA_DEADLINE": str(deadline_s),
    }
    command = [sys.executable, "manage.py", "collect", "mute", "--kind", "quorum"]
    return subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def stored_epochs() -> list[int]:
    return list(Collection.objects.order_by("pk").values_list("epoch", flat=True))


def test_collectors__two_started_at_once__one_collects_and_the_other_says_so(run: CollectorRun) -> None:
    both = [start_collector(lease_s=60, deadline_s=10) for _ in range(2)]
    ends = [(p.communicate(timeout=90)[1], p.returncode) for p in both]
    codes = sorted(code for _, code in ends)
    assert codes == [1, 3], ends
    assert any("another collector is at it" in text for text, _ in ends)
    assert len(stored_epochs()) == 1


def test_collector__stopped_for_longer_than_its_lease_and_continued__its_write_is_refused(run: CollectorRun) -> None:
    sleeper = start_collector(lease_s=1, deadline_s=3)
    try:
        wait_until(lambda: _epoch(run) == 1, "the first collector has the lease", 60)
        sleeper.send_signal(signal.SIGSTOP)
        wait_until(lambda: not _lease_in_force(run), "its lease is over", 30)
        successor = start_collector(lease_s=60, deadline_s=1)
        _, told = successor.communicate(timeout=90)
        assert successor.returncode == 1, told
        assert stored_epochs() == [2]
        sleeper.send_signal(signal.SIGCONT)
        _, told = sleeper.communicate(timeout=90)
    finally:
        sleeper.kill()
        sleeper.wait(30)
    assert sleeper.returncode == 3
    assert "Another collector took over; nothing was stored." in told
    assert stored_epochs() == [2]
    run.refresh_from_db()
    assert (run.epoch, run.lease_until) == (2, None)


def _epoch(run: CollectorRun) -> int:
    run.refresh_from_db()
    return run.epoch


def _lease_in_force(run: CollectorRun) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT lease_until > clock_timestamp() FROM {CollectorRun._meta.db_table} WHERE id = %s", [run.pk]
        )
        return bool(cursor.fetchone()[0])
