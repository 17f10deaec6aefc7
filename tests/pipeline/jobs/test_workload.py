"""The planner's input, against DuckDB; and what a log that got smaller, a gap or a new leader says: nothing."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.domain.segments import SegmentKind
from tests.pipeline.jobs.frames import BEGAN, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

MONDAY_9 = 9
HOUR = 3600


def _looks(sizes: Sequence[int | None], every: int = 60, begin: int = 0, **besides: Any) -> list[dict[str, Any]]:
    return [
        {"at": begin + n * every, "bytes_on_disk": size, "is_leader": True, "method": "size", **besides}
        for n, size in enumerate(sizes)
    ]


def _workload(spark: SparkSession, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from kafkadash.pipeline.jobs.workload import hours, workload

    return plain(workload(hours(facts(spark, SegmentKind.REPLICA, rows))), "topic", "partition")


def _told(row: dict[str, Any]) -> dict[int, tuple[int | None, int | None]]:
    """Hour of the week → its two rates, where there is one."""
    assert len(row["hours_of_week"]) == len(set(row["hours_of_week"])) <= 7 * 24
    both = zip(row["hours_of_week"], zip(row["in_p50"], row["in_p95"], strict=True), strict=True)
    return {hour: rates for hour, rates in both if rates != (None, None)}


def test_an_hour_of_steady_growth(spark: SparkSession) -> None:
    (row,) = _workload(spark, _looks([1000 + 600 * n for n in range(20)]))
    assert _told(row) == {MONDAY_9: (10, 10)}
    assert (row["in_typical"], row["in_peak"], row["peak_hour"]) == (pytest.approx(10), pytest.approx(10), MONDAY_9)
    assert (row["samples"], row["size_bytes"]) == (19, 1000 + 600 * 19)
    assert row["from_at"] == BEGAN
    assert (row["to_at"] - BEGAN).total_seconds() == 19 * 60
    assert row["growth_per_day"] is None  # of twenty minutes


def test_the_busiest_hour_is_the_peak_and_what_was_not_seen_is_not_nothing(spark: SparkSession) -> None:
    quiet = [5000] * 60
    busy = [5000 + 6000 * n for n in range(60)]
    (row,) = _workload(spark, [*_looks(quiet), *_looks(busy, begin=HOUR), *_looks([500_000] * 5, begin=3 * HOUR)])
    assert _told(row) == {MONDAY_9: (0, 0), MONDAY_9 + 1: (100, 100)}
    assert (row["in_typical"], row["in_peak"]) == (pytest.approx(50), pytest.approx(100))
    assert row["peak_hour"] == MONDAY_9 + 1


def test_few_samples_are_counted_and_not_more(spark: SparkSession) -> None:
    (row,) = _workload(spark, _looks([0, 10, 20]))
    assert (row["samples"], row["in_typical"], row["in_peak"], row["peak_hour"]) == (2, None, None, None)
    assert _told(row) == {}
    assert row["size_bytes"] == 20


def test_of_two_weeks_the_last_counts(spark: SparkSession) -> None:
    week = 7 * 24 * HOUR
    then, now = [600 * n for n in range(60)], [36_000 + 6000 * n for n in range(60)]
    (row,) = _workload(spark, [*_looks(then), *_looks(now, begin=week)])
    assert _told(row) == {MONDAY_9: (100, 100)}
    assert (row["from_at"] - BEGAN).total_seconds() == week


def test_growth_is_of_a_day_at_least(spark: SparkSession) -> None:
    grows = _looks([10**6 + n * 50 for n in range(30)], every=HOUR, topic="grows")
    shrinks = _looks([10**6 - n * 50 for n in range(30)], every=HOUR, topic="shrinks")
    too_short = _looks([10**6 + n * 50 for n in range(24)], every=HOUR, topic="too short")
    found = {row["topic"]: row["growth_per_day"] for row in _workload(spark, [*grows, *shrinks, *too_short])}
    assert found == {"grows": pytest.approx(1200), "shrinks": pytest.approx(-1200), "too short": None}


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
    assert [(row["topic"], row["samples"]) for row in found] == [("deleted", 11), ("moved", 11), ("unseen", 12)]


def test_it_is_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.workload import hours, workload

    random = Random(4)
    rows = []
    for partition in range(6):
        size, at, leader = random.randint(0, 10**9), 0, 1
        for _ in range(900):
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
    found = plain(workload(hours(replica)), "partition")
    others = duckdb_says(
        """
        WITH looks AS (
            FROM replica SELECT *, epoch(observed_at) AS t, lag(epoch(observed_at)) OVER w AS t0,
                                lag(bytes_on_disk) OVER w AS b0, lag(broker) OVER w AS l0,
                                time_bucket(INTERVAL 1 HOUR, observed_at) AS h
            WINDOW w AS (PARTITION BY cluster, topic, partition ORDER BY seq)),
        rates AS (
            SELECT *, (bytes_on_disk - b0) / (t - t0) AS rate FROM looks
            WHERE l0 = broker AND bytes_on_disk >= b0 AND t - t0 <= 900),
        cells AS (
            SELECT partition, h, count(*) AS samples,
                   ((isodow(h AT TIME ZONE 'UTC') - 1) * 24 + hour(h AT TIME ZONE 'UTC'))::INT AS hour_of_week,
                   CASE WHEN count(*) >= 12 THEN quantile_cont(rate, 0.5) END AS p50,
                   CASE WHEN count(*) >= 12 THEN quantile_cont(rate, 0.95) END AS p95
            FROM rates GROUP BY ALL),
        by_hour AS (
            SELECT partition, sum(samples)::BIGINT AS samples, avg(p50) AS in_typical, max(p95) AS in_peak,
                   arg_max(hour_of_week, p95) AS peak_hour, count(p50) AS told, sum(round(p50))::BIGINT AS sum_p50,
                   sum(round(p95))::BIGINT AS sum_p95
            FROM cells GROUP BY partition),
        last AS (
            SELECT partition, h, arg_max(bytes_on_disk, t) AS y, max(t) AS x FROM looks GROUP BY ALL),
        grown AS (SELECT partition, regr_slope(y, x - epoch(TIMESTAMPTZ '2026-03-02')) * 86400 AS slope
                  FROM last GROUP BY partition),
        sizes AS (
            SELECT cluster, topic, partition, arg_max(bytes_on_disk, t) AS size_bytes,
                   min(observed_at) AS from_at, max(observed_at) AS to_at, max(t) - min(t) AS seconds
            FROM looks GROUP BY ALL)
        SELECT * EXCLUDE (slope, seconds), CASE WHEN seconds >= 86400 THEN slope END AS growth_per_day
        FROM sizes JOIN by_hour USING (partition) JOIN grown USING (partition)
        """,
        replica=replica,
    )
    for row in found:
        told = _told(row)
        row["told"] = len(told)
        for name, place in (("in_p50", 0), ("in_p95", 1)):
            row[f"sum_{name[3:]}"] = sum(rates[place] or 0 for rates in told.values())
            del row[name]
        del row["hours_of_week"]
    others.sort(key=lambda row: row["partition"])
    assert len(found) == len(others) == 6
    for row, other in zip(found, others, strict=True):
        assert row == {
            name: pytest.approx(value) if isinstance(value, float) else value for name, value in other.items()
        }
    assert all(row["growth_per_day"] is not None for row in found)


def test_the_order_in_which_rows_are_read_changes_nothing(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.workload import hours, workload

    random = Random(5)
    rows = [row for p in range(3) for row in _looks([random.randrange(10**7) for _ in range(90)], 1800, partition=p)]
    replica = facts(spark, SegmentKind.REPLICA, rows)
    found = plain(workload(hours(replica)), "partition")
    assert plain(workload(hours(replica.repartition(5)).repartition(3)), "partition") == found
