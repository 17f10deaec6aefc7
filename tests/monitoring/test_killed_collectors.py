"""Collectors as processes of their own: two at once, and one that the system stopped for longer than its lease.

The cluster is a socket that accepts and never answers, so a collector is in the middle of its question for as long as
its deadline lasts; what it then stores is that nothing answered, which needs the lease like anything else.

A collector that is killed in the middle of its transaction leaves nothing, and the next one goes on.

A refresh of groups that is killed between its portions and its end leaves samples that no segment has.
"""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any
from urllib.parse import quote

import psycopg
import pyarrow.parquet as pq
import pytest
from django.conf import settings
from django.db import connection

from kafkadash.accounts.errors import with_code
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded, message_text
from kafkadash.export.models import SegmentOutbox
from kafkadash.export.schema import SegmentKind
from kafkadash.monitoring.collection import ensure_runs
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.window import unpack_window
from kafkadash.monitoring.models import BrokerState, ClusterState, Collection, CollectorRun, GroupState, TopicState
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import FakeGroup
from tests.contract.fake_model import ClusterModel
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
    assert (f"{with_code(coded(CollectionErrorCode.COLLECTED_BY_ANOTHER, kind='quorum'))}\n", 3) in ends
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
    assert message_text(CollectionErrorCode.ANOTHER_COLLECTOR) in told
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


@pytest.fixture
def fake_with_topics() -> Iterator[FakeKafka]:
    with FakeKafka(ClusterModel(3)) as kafka:
        for number in range(50):
            kafka.model.add_topic(f"topic-{number}", [[1, 2], [2, 3]], records=10)
        yield kafka


def test_collector__killed_while_it_writes__leaves_nothing_and_is_followed(fake_with_topics: FakeKafka) -> None:
    cluster = Cluster.objects.create(
        name="fake", slug="fake", bootstrap_servers=",".join(fake_with_topics.bootstrap_servers)
    )
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


INTERVAL_S = "600"
"""So long that a slow machine does not make samples too old to be continued."""


@pytest.fixture
def fake() -> Iterator[FakeKafka]:
    with FakeKafka(ClusterModel(3)) as kafka:
        kafka.model.add_topic("t", [[1, 2], [2, 3]], records=1000)
        yield kafka


@pytest.fixture
def reader(fake: FakeKafka) -> FakeGroup:
    Cluster.objects.create(name="fake", slug="fake", bootstrap_servers=",".join(fake.bootstrap_servers))
    ensure_runs()
    return fake.model.groups.add("reader", [1, 2, 3], committed={"t": {0: 100, 1: 200}})


def _start() -> subprocess.Popen[str]:
    environment = {**os.environ, "DATABASE_URL": _url(), "LEASE_TTL": "2", "INTERVAL_GROUPS": INTERVAL_S}
    command = [sys.executable, "manage.py", "collect", "fake", "--kind", "groups"]
    return subprocess.Popen(
        command, cwd=settings.BASE_DIR, env=environment, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def _refresh() -> None:
    process = _start()
    _, told = process.communicate(timeout=90)
    assert process.returncode == 0, told


def _killed_before_its_end() -> None:
    """By whoever holds the table in which a refresh is noted last; its portions are stored by then."""
    database = connection.settings_dict
    before = GroupState.objects.get().taken_at
    with psycopg.connect(dbname=database["NAME"], user=database["USER"], host=str(database["HOST"])) as blocker:
        blocker.execute(f"LOCK TABLE {Collection._meta.db_table} IN EXCLUSIVE MODE".encode())
        victim = _start()
        try:
            wait_until(lambda: GroupState.objects.get().taken_at > before, "its portion is stored", 60)
        finally:
            victim.kill()
            victim.communicate(timeout=30)
    wait_until(_no_lease, "the lease of the dead one is over", 30)


def _no_lease() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM monitoring_collectorrun WHERE lease_until > clock_timestamp()")
        return bool(cursor.fetchone() == (0,))


def _told() -> list[tuple[datetime, list[dict[str, Any]]]]:
    """When, and the rows, of each segment in the order of refreshes."""
    packs = SegmentOutbox.objects.filter(kind=SegmentKind.GROUP_OFFSET).order_by("pk")
    return [(pack.observed_at, pq.read_table(io.BytesIO(bytes(pack.data))).to_pylist()) for pack in packs]


def _commits() -> list[list[int]]:
    window = unpack_window(bytes(GroupState.objects.get().window.data))
    return [list(column) for column in window.committed]


def test_refresh__killed_after_a_portion__its_sample_is_in_no_window(reader: FakeGroup) -> None:
    _refresh()
    reader.committed["t"] = {0: 110, 1: 200}
    _refresh()
    reader.committed["t"] = {0: 150, 1: 250}
    _killed_before_its_end()
    assert _commits() == [[100, 200], [110, 200], [150, 250]], "what it saw is stored"
    reader.committed["t"] = {0: 170, 1: 250}
    _refresh()
    assert _commits() == [[100, 200], [110, 200], [170, 250]]
    assert len(GroupState.objects.get().times) == 3
    told = _told()
    assert len(told) == 3
    for (at, before), (_, after) in pairwise(told):
        assert [(row["previous_committed"], row["previous_lag"]) for row in after] == [
            (row["committed"], row["lag"]) for row in before
        ]
        assert [abs(row["previous_at"] - at) < timedelta(milliseconds=2) for row in after] == [True, True]
