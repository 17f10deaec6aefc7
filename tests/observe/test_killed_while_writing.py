"""A collector that is killed in the middle of its transaction leaves nothing, and the next one goes on."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.db import connection

from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.models import BrokerState, ClusterState, Collection, CollectorRun, TopicState
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def fake() -> Iterator[FakeKafka]:
    with FakeKafka(ClusterModel(3)) as kafka:
        for number in range(50):
            kafka.model.add_topic(f"topic-{number}", [[1, 2], [2, 3]], records=10)
        yield kafka


def test_collector__killed_while_it_writes__leaves_nothing_and_is_followed(fake: FakeKafka) -> None:
    cluster = Cluster.objects.create(name="fake", slug="fake", bootstrap_servers=",".join(fake.bootstrap_servers))
    ensure_runs()
    with _nobody_may_note_a_refresh() as blocker:
        victim = _collector(lease_s=1)
        try:
            wait_until(lambda: _waits_for(blocker), "the collector has written its topics and waits to note it", 60)
        finally:
            victim.kill()
            victim.communicate(timeout=30)
    run = CollectorRun.objects.get(cluster=cluster, kind="metadata")
    assert run.epoch == 1
    assert run.succeeded_at is None
    for model in (TopicState, BrokerState, ClusterState, Collection):
        assert not model._default_manager.exists()

    wait_until(lambda: not _lease_in_force(run), "the lease of the dead one is over", 30)
    successor = _collector(lease_s=30)
    _, told = successor.communicate(timeout=90)
    assert successor.returncode == 0, told
    run.refresh_from_db()
    assert (run.epoch, run.failures) == (2, 0)
    assert (TopicState.objects.count(), ClusterState.objects.get().partitions) == (50, 100)


def _url() -> str:
    database = connection.settings_dict
    return f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}"


def _collector(*, lease_s: float) -> subprocess.Popen[str]:
    environment = {**os.environ, "DATABASE_URL": _url(), "LEASE_TTL": str(lease_s)}
    command = [sys.executable, "manage.py", "collect", "fake", "--kind", "metadata"]
    return subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _nobody_may_note_a_refresh() -> psycopg.Connection[tuple[object, ...]]:
    """A connection that holds the table of refreshes, which is written last; ends with it."""
    database = connection.settings_dict
    blocker = psycopg.connect(dbname=database["NAME"], user=database["USER"], host=str(database["HOST"]))
    blocker.execute(f"LOCK TABLE {Collection._meta.db_table} IN EXCLUSIVE MODE")
    return blocker


def _waits_for(blocker: psycopg.Connection[tuple[object, ...]]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))", [blocker.info.backend_pid]
        )
        return bool(cursor.fetchone()[0])


def _lease_in_force(run: CollectorRun) -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT lease_until > clock_timestamp() FROM {CollectorRun._meta.db_table} WHERE id = %s", [run.pk]
        )
        return bool(cursor.fetchone()[0])
