"""A refresh of groups that is killed between its portions and its end leaves samples that no segment has."""

from __future__ import annotations

import io
import os
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

from kafkadash.clusters.models import Cluster
from kafkadash.domain.segments import SegmentKind
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.group_window import unpack
from kafkadash.observe.models import Collection, GroupState, SegmentOutbox
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_groups import FakeGroup
from tests.contract.fake_model import ClusterModel
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

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


def _url() -> str:
    database = connection.settings_dict
    return f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}"


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
        cursor.execute("SELECT count(*) FROM observe_collectorrun WHERE lease_until > clock_timestamp()")
        return bool(cursor.fetchone() == (0,))


def _told() -> list[tuple[datetime, list[dict[str, Any]]]]:
    """When, and the rows, of each segment in the order of refreshes."""
    packs = SegmentOutbox.objects.filter(kind=SegmentKind.GROUP_OFFSET).order_by("pk")
    return [(pack.observed_at, pq.read_table(io.BytesIO(bytes(pack.data))).to_pylist()) for pack in packs]


def _commits() -> list[list[int]]:
    window = unpack(bytes(GroupState.objects.get().window.data))
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
