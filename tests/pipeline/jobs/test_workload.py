"""The planner's input, against DuckDB; and what a log that got smaller, a gap or a new leader says: nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind
from tests.pipeline.jobs.frames import BEGAN, agree, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

MONDAY_9 = 9


def _looks(sizes: Sequence[int | None], every: int = 60, begin: int = 0, **besides: Any) -> list[dict[str, Any]]:
    return [
        {"at": begin + n * every, "bytes_on_disk": size, "is_leader": True, "method": "size", **besides}
        for n, size in enumerate(sizes)
    ]


def _workload(spark: SparkSession, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from kafkadash.pipeline.jobs.workload import workload

    return plain(workload(facts(spark, SegmentKind.REPLICA, rows)), "topic", "partition", "hour_of_week")


def test_an_hour_of_steady_growth(spark: SparkSession) -> None:
    (row,) = _workload(spark, _looks([1000 + 600 * n for n in range(20)]))
    assert (row["hour_of_week"], row["samples"], row["size_bytes"]) == (MONDAY_9, 19, 1000 + 600 * 19)
    assert (row["in_p50"], row["in_p95"]) == (pytest.approx(10), pytest.approx(10))
    assert row["from_at"] == BEGAN
    assert (row["to_at"] - BEGAN).total_seconds() == 19 * 60
    assert row["growth_per_day"] is None  # of twenty minutes


def test_few_samples_are_counted_and_not_more(spark: SparkSession) -> None:
    (row,) = _workload(spark, _looks([0, 10, 20]))
    assert (row["samples"], row["in_p50"], row["in_p95"]) == (2, None, None)


def test_what_says_nothing_is_left_out(spark: SparkSession) -> None:
    quiet = [5000] * 13
    grown = _looks(quiet, topic="deleted")
    grown[6]["bytes_on_disk"] = 9000  # up once, and down again by retention: the way down is no rate
    moved = _looks(quiet, topic="moved")
    for row in moved[7:]:
        row |= {"broker": 2, "bytes_on_disk": 900_000}
    gap = [*_looks(quiet[:7], topic="unseen"), *_looks(quiet[:7], begin=3 * 3600, topic="unseen")]
    follower = _looks(quiet, topic="follower", is_leader=False)
    coming = _looks(quiet, topic="coming", is_future=True)
    unknown = _looks([None] * 13, topic="unknown")
    found = _workload(spark, [*grown, *moved, *gap, *follower, *coming, *unknown])
    assert [(row["topic"], row["hour_of_week"], row["samples"]) for row in found] == [
        ("deleted", MONDAY_9, 11),
        ("moved", MONDAY_9, 11),
        ("unseen", MONDAY_9, 6),
        ("unseen", MONDAY_9 + 3, 6),
    ]


def test_it_is_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.workload import workload

    random = Random(4)
    rows = []
    for partition in range(6):
        size, at, leader = random.randint(0, 10**9), 0, 1
        for _ in range(400):
            at += 5000 if random.random() < 0.02 else random.choice((60, 120, 200))
            size = max(0, size + random.choice((0, 50_000, random.randint(0, 10**6), -300_000)))
            leader = random.choice((1, 2)) if random.random() < 0.03 else leader
            rows.append(
                {
                    "at": at,
                    "partition": partition,
                    "broker": leader,
                    "is_leader": True,
                    "bytes_on_disk": size,
                    "method": "size",
                }
            )
    random.shuffle(rows)
    replica = facts(spark, SegmentKind.REPLICA, rows).cache()
    found = plain(workload(replica), "partition", "hour_of_week")
    others = duckdb_says(
        """
        WITH looks AS (
            FROM replica SELECT *, epoch(observed_at) AS t, lag(epoch(observed_at)) OVER w AS t0,
                                lag(bytes_on_disk) OVER w AS b0, lag(broker) OVER w AS l0,
                                epoch(observed_at) - epoch(TIMESTAMPTZ '2026-03-02') AS x
            WINDOW w AS (PARTITION BY cluster, topic, partition ORDER BY seq)),
        cells AS (
            SELECT cluster, topic, partition,
                   ((isodow(observed_at AT TIME ZONE 'UTC') - 1) * 24 + hour(observed_at AT TIME ZONE 'UTC'))::INT
                       AS hour_of_week,
                   count(*) AS samples,
                   CASE WHEN count(*) >= 12 THEN quantile_cont((bytes_on_disk - b0) / (t - t0), 0.5) END AS in_p50,
                   CASE WHEN count(*) >= 12 THEN quantile_cont((bytes_on_disk - b0) / (t - t0), 0.95) END AS in_p95
            FROM looks WHERE l0 = broker AND bytes_on_disk >= b0 AND t - t0 <= 3600 GROUP BY ALL),
        sizes AS (
            SELECT cluster, topic, partition, arg_max(bytes_on_disk, t) AS size_bytes,
                   CASE WHEN max(t) - min(t) >= 86400 THEN regr_slope(bytes_on_disk, x) * 86400 END AS growth_per_day,
                   min(observed_at) AS from_at, max(observed_at) AS to_at
            FROM looks GROUP BY ALL)
        FROM cells JOIN sizes USING (cluster, topic, partition)
        """,
        replica=replica,
    )
    agree(found, others, ResultKind.WORKLOAD)
    assert any(row["in_p95"] for row in found)
    assert plain(workload(replica.repartition(5)), "partition", "hour_of_week") == found
