"""Verdicts are compared with the worker's; of workloads and forecasts the newest stays."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from kafkadash.accounts.audit import record
from kafkadash.clusters.models import Cluster
from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.observe import retention
from kafkadash.observe.models import (
    DiskForecast,
    PipelineLedger,
    Rollup,
    VerdictCount,
    VerdictDifference,
    Workload,
)
from kafkadash.observe.queries.pipeline import hourly_counts
from tests.observe.handed_back import Folder, lag_rollup, verdict
from tests.observe.ingest.taking import NOW, Turn

pytestmark = pytest.mark.django_db


def test_ingest__verdicts__are_compared_and_only_differences_are_kept(folder: Folder, turn: Turn) -> None:
    at = NOW.replace(minute=10) - timedelta(hours=1)
    rows = [
        verdict("memory", 0, at, "ok", "ok"),
        verdict("memory", 1, at, "stall", "ok"),
        verdict("memory", 2, at + timedelta(hours=1), "ok", "ok"),
        verdict("memory", 3, at, "stall", "unknown"),
        verdict("elsewhere", 4, at, "stall", "ok"),
    ]
    folder.result(1, {ResultKind.LAG_VERDICT: rows})
    turn()
    counts = list(VerdictCount.objects.order_by("hour").values_list("judged", "differed"))
    assert counts == [(2, 1), (1, 0)]
    one = VerdictDifference.objects.get()
    assert (one.partition, one.verdict, one.worker_verdict, one.observed_at) == (1, "stall", "ok", at)
    folder.result(1, {ResultKind.LAG_VERDICT: rows})
    turn()
    assert list(VerdictCount.objects.order_by("hour").values_list("judged", "differed")) == counts


@pytest.mark.parametrize("another", [False, True])
def test_ingest__a_cluster_named_like_one_that_was_removed__has_nothing_of_it(
    folder: Folder, turn: Turn, cluster: Cluster, another: bool
) -> None:
    """Segments tell of both under one name: what began before it was registered is the other's, in part at least."""
    if another:
        record("jobs", "cluster.removed", cluster, cluster="memory")
    registered = datetime.now(UTC)
    Cluster.objects.update(created_at=registered)
    after = registered.replace(second=0, microsecond=0) + timedelta(minutes=10)
    folder.result(
        1,
        {
            ResultKind.LAG_ROLLUP: [lag_rollup("memory", "g", "t", at, 1) for at in (NOW, after)],
            ResultKind.LAG_VERDICT: [verdict("memory", 0, at, "ok", "stall") for at in (NOW, after)],
            ResultKind.DISK_FORECAST: [forecast(after, 70)],
            ResultKind.WORKLOAD: [topic_load("t", 0, None, None)],
        },
    )
    turn()
    assert Rollup.objects.count() == (1 if another else 2)
    assert VerdictDifference.objects.count() == 1, "the newest of a partition stays"
    assert [DiskForecast.objects.count(), Workload.objects.count()] == ([0, 0] if another else [1, 1])


def test_ingest__a_query_that_begins_anew__counts_no_verdict_a_second_time(folder: Folder, turn: Turn) -> None:
    """Its checkpoint was lost: what the first had judged in three batches, the second judges in two, and goes on."""
    at = NOW.replace(minute=10) - timedelta(hours=2)

    def judged(batch: int, query: str, minutes: range, hours: int = 0) -> None:
        rows = [
            verdict(
                "memory", minute, at + timedelta(hours=hours, minutes=minute), "stall" if minute % 2 else "ok", "ok"
            )
            for minute in minutes
        ]
        folder.result(batch, {ResultKind.LAG_VERDICT: rows}, query=query)
        turn()

    for batch in range(3):
        judged(batch, "q1", range(batch * 4, batch * 4 + 4))
    before = list(hourly_counts().values_list("hour", "judged", "differed"))
    assert before == [(at.replace(minute=0), 12, 6)]
    judged(0, "q2", range(6))
    assert list(hourly_counts().values_list("hour", "judged", "differed")) == before, "half of it is no more than all"
    judged(1, "q2", range(6, 12))
    assert list(hourly_counts().values_list("hour", "judged", "differed")) == before, "all of it is as much"
    judged(2, "q2", range(12, 15))
    judged(3, "q2", range(4), hours=1)
    counts = list(hourly_counts().values_list("hour", "judged", "differed"))
    assert counts == [(at.replace(minute=0), 15, 7), (at.replace(minute=0) + timedelta(hours=1), 4, 2)]


def topic_load(topic: str, partition: int, typical: float | None, peak: float | None, days: int = 7) -> dict[str, Any]:
    return {
        "cluster": "memory",
        "topic": topic,
        "partition": partition,
        "size_bytes": 1000 + partition,
        "growth_per_day": 5.0,
        "in_typical": typical,
        "in_peak": peak,
        "peak_hour": None if peak is None else 33,
        "samples": 10,
        "from_at": NOW - timedelta(days=days),
        "to_at": NOW,
    }


def test_ingest__workload__is_packed_by_topic_column_by_column(folder: Folder, turn: Turn) -> None:
    rows = [
        topic_load("t", 1, 20.0, 50.0),
        topic_load("t", 0, None, None, days=3),
        topic_load("u", 0, 1.0, 2.0),
        topic_load("t", 10, 0.0, 0.0),
    ]
    folder.result(1, {ResultKind.WORKLOAD: [*rows, topic_load("v", 0, 1.0, 1.0) | {"cluster": "elsewhere"}]})
    turn()
    found = Workload.objects.get(topic="t")
    assert found.partitions == {
        "partition": [0, 1, 10],
        "in": [None, 20.0, 0.0],
        "peak": [None, 50.0, 0.0],
        "hour": [None, 33, 33],
        "grows": [5.0, 5.0, 5.0],
        "size": [1000, 1001, 1010],
        "samples": [10, 10, 10],
    }
    assert (found.format, found.from_at, found.to_at) == (Workload.FORMAT, NOW - timedelta(days=7), NOW)
    assert list(Workload.objects.order_by("topic").values_list("topic", flat=True)) == ["t", "u"]
    assert PipelineLedger.objects.get().skipped == 1


def forecast(at: datetime, used: int) -> dict[str, Any]:
    return {
        "cluster": "memory",
        "broker": 1,
        "directory": "/data",
        "observed_at": at,
        "used_bytes": used,
        "total_bytes": 100,
        "grows_per_day": 4.5,
        "days_to_80": 2.0,
        "samples": 12,
        "from_at": NOW - timedelta(days=1),
    }


def test_ingest__an_older_forecast_comes_late__the_newer_one_stays(folder: Folder, turn: Turn) -> None:
    folder.result(1, {ResultKind.DISK_FORECAST: [forecast(NOW, 70)]}, query="hourly")
    turn()
    folder.result(2, {ResultKind.DISK_FORECAST: [forecast(NOW - timedelta(hours=1), 60)]}, query="backfill-1")
    turn()
    found = DiskForecast.objects.get()
    assert (found.used_bytes, found.days_to_80, found.days_to_90) == (70, 2.0, None)


def test_retention__the_ledger__is_kept_as_long_as_the_files(folder: Folder, turn: Turn, settings: Any) -> None:
    folder.result(1, {ResultKind.DISK_FORECAST: [forecast(NOW, 70)]})
    turn()
    later = NOW + timedelta(days=31)
    pruned = retention.prune(later)
    assert (pruned["ledger"], pruned["forecasts"]) == (0, 1)
    settings.KEEP_RESULTS_HOURS = -1
    turn()
    assert retention.prune(later)["ledger"] == 1
