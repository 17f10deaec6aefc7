"""The end of the line: what collectors saw of brokers and replicas becomes a finding, and what a plan is made with."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.changes.plan import PartitionMove
from kafkadash.export.schema import SCHEMA_VERSION, SegmentKind
from kafkadash.findings.models import Finding
from kafkadash.findings.services import judge
from kafkadash.history import ingest
from kafkadash.history import schedule as turns
from kafkadash.history.models import ClusterWorkload, DiskForecast, Workload
from kafkadash.pipeline.batch import PipelineBatches
from kafkadash.pipeline.clockwork import RollupScheduler
from kafkadash.pipeline.flushes import list_manifests
from kafkadash.pipeline.lake import FactLake
from kafkadash.pipeline.store import open_store
from kafkadash.planning.solver.workload import used_by
from kafkadash.planning.stored_topology import load_topology
from tests.factories import TopicFactory, judged, watched
from tests.pipeline.making import EPOCH, Maker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.django_db]

OVER = (datetime.now(UTC) - timedelta(hours=13)).replace(hour=12, minute=0, second=0, microsecond=0)
"""A noon of an hour ago or more: the hours before it are of one day, which is not over then, whenever the tests run."""
MINUTES = 120
TOTAL = 10**12


def _rows(of_minute: Any) -> Iterator[dict[str, Any]]:
    for minute in range(MINUTES):
        identity = {
            "schema": SCHEMA_VERSION,
            "cluster": "demo",
            "epoch": EPOCH,
            "seq": minute + 1,
            "observed_at": OVER - timedelta(minutes=MINUTES - minute),
        }
        yield from (identity | row for row in of_minute(minute))


def _brokers(minute: int) -> Iterator[dict[str, Any]]:
    """The disk of broker 1 is full in eight hours, that of broker 2 never."""
    for broker, used in ((1, TOTAL * 8 // 10 - (MINUTES - minute) * TOTAL // 2400), (2, TOTAL // 10)):
        sizes = {"total_bytes": TOTAL, "usable_bytes": TOTAL - used, "replica_bytes": used}
        yield {"broker": broker, "directory": "/data", **sizes}


def _replicas(minute: int) -> Iterator[dict[str, Any]]:
    """orders-0 takes in 1000 bytes a second, orders-1 nothing, and nobody knows of orders-2."""
    for partition, size in ((0, 10**9 + minute * 60_000), (1, 5000), (2, None)):
        role = {"is_leader": True, "in_isr": True, "is_future": False, "method": "size"}
        yield {
            "topic": "orders",
            "partition": partition,
            "broker": 1,
            "directory": "/data",
            "bytes_on_disk": size,
        } | role


def _handed_back(spark: SparkSession, folder: Path) -> list[str]:
    maker = Maker(folder / "segments")
    maker.at, maker.seq = OVER + timedelta(minutes=1), 1
    maker.write({SegmentKind.BROKER: list(_rows(_brokers)), SegmentKind.REPLICA: list(_rows(_replicas))})
    store = open_store(folder.as_uri())
    lake = FactLake(spark, store, "1a2b3c4d-e5f6")
    PipelineBatches(lake, ()).do(0, list_manifests(store))
    said: list[str] = []
    RollupScheduler(lake, said.append).turn(OVER + timedelta(minutes=6))
    return said


def test_a_disk_that_fills_is_found_and_the_plan_knows_what_is_taken_in(
    spark: SparkSession, tmp_path: Path, settings: Any
) -> None:
    settings.PIPELINE_URI = tmp_path.as_uri()
    now = OVER + timedelta(minutes=7)
    demo = watched("demo", now)
    judged(demo, now)
    said = _handed_back(spark, tmp_path)
    assert [line.partition(" ")[0] for line in said] == ["hour", "hour", "forecast", "workload"]
    turns.ensure_state()
    assert ingest.take_turn(turns.STATE_ID, only_if_due=False) == 4 + 1

    forecast = DiskForecast.objects.get(cluster=demo, broker=1)
    assert forecast.grows_per_day == pytest.approx(TOTAL * 0.6, rel=0.01)
    assert forecast.days_to_90 == pytest.approx(1 / 6, rel=0.02)
    assert (forecast.samples, forecast.from_at) == (24, OVER - timedelta(minutes=MINUTES - 4))
    assert DiskForecast.objects.get(cluster=demo, broker=2).days_to_80 is None
    judge(demo.pk, now)
    found = Finding.objects.get(cluster=demo, kind="disk-full-soon", closed_at=None)
    assert found.scope == "1:/data"

    kept = Workload.objects.get(cluster=demo, topic="orders")
    assert kept.partitions["partition"] == [0, 1], "of what nobody saw nothing is said"
    assert kept.partitions["in"] == [pytest.approx(1000), 0.0]
    assert kept.partitions["peak"] == [pytest.approx(1000), 0.0]
    assert kept.to_at == OVER - timedelta(minutes=1)
    hours = {(OVER - timedelta(hours=ago)).weekday() * 24 + 12 - ago: 1000 for ago in (1, 2)}
    whole = ClusterWorkload.objects.get(cluster=demo)
    assert kept.by_hour is not None
    for by_hour in (kept.by_hour, whole.by_hour):
        assert {hour: rate for hour, rate in enumerate(by_hour["in"]) if rate is not None} == hours
        assert by_hour["without"] == []
    packed = [[n, 1, 5, [1, 2], [1, 2], []] for n in range(3)]
    TopicFactory.create(cluster=demo, name="orders", topic_id="id-1", partitions=packed)
    loaded = load_topology(demo)
    partitions = loaded.topology.topics["orders"].partitions
    assert [p.bytes_in_per_s for p in partitions] == [pytest.approx(1000), 0.0, None]
    rows = [PartitionMove("orders", "id-1", n, (1, 2), (1, 3)) for n in range(3)]
    used = used_by(rows, loaded.workloads)
    assert (used.known, used.unknown) == (2, 1)
    assert used.typical == pytest.approx(1000)
    assert used.to_at == (OVER - timedelta(minutes=1)).isoformat()
