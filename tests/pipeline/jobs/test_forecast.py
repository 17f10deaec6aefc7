"""When disks will be full: known lines, what is no growth, and DuckDB on random disks."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind
from tests.pipeline.jobs.frames import agree, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

TOTAL = 1_000_000
HOUR = 3600


def _looks(used: list[int | None], every: int = HOUR, **besides: Any) -> list[dict[str, Any]]:
    return [
        {"at": n * every, "total_bytes": TOTAL, "usable_bytes": None if u is None else TOTAL - u, **besides}
        for n, u in enumerate(used)
    ]


def _forecasts(spark: SparkSession, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from kafkadash.pipeline.jobs.forecast import disk_forecast

    return plain(disk_forecast(facts(spark, SegmentKind.BROKER, rows)), "broker", "directory")


def _days(row: dict[str, Any]) -> list[float | None]:
    return [row[f"days_to_{share}{end}"] for share in (80, 90) for end in ("", "_low", "_high")]


def test_a_straight_line(spark: SparkSession) -> None:
    # 1 % a day, at 50 % now: 30 and 40 days, and a line without any error has no range.
    (row,) = _forecasts(spark, _looks([TOTAL * 4 // 10 + n * TOTAL // 2400 for n in range(241)]))
    assert row["used_bytes"] == TOTAL // 2
    assert row["grows_per_day"] == pytest.approx(TOTAL / 100, rel=1e-3)
    assert _days(row) == [pytest.approx(days, rel=1e-2) for days in (30, 30, 30, 40, 40, 40)]
    assert row["samples"] == 241


def test_the_range_holds_what_comes(spark: SparkSession) -> None:
    random = Random(3)
    used: list[int | None] = [400_000 + n * 400 + random.randint(-6000, 6000) for n in range(100)]
    (row,) = _forecasts(spark, _looks(used))
    low, likely, high = row["days_to_80_low"], row["days_to_80"], row["days_to_80_high"]
    assert low < likely < high
    truth = (800_000 - (used[-1] or 0)) / 400 / 24
    assert low <= truth <= high


def test_what_does_not_fill_has_no_days(spark: SparkSession) -> None:
    emptying = _looks([700_000 - n * 1000 for n in range(20)], broker=1)
    still = _looks([700_000] * 20, broker=2)
    full = _looks([850_000 - n for n in range(20)], broker=3)
    rows = _forecasts(spark, [*emptying, *still, *full])
    assert [_days(row) for row in rows] == [[None] * 6, [None] * 6, [0.0, 0.0, 0.0, None, None, None]]
    assert [row["grows_per_day"] <= 0 for row in rows] == [True] * 3


def test_too_little_tells_nothing(spark: SparkSession) -> None:
    few = _looks([500_000 + n for n in range(9)], broker=1)
    short = _looks([500_000 + n for n in range(60)], every=60, broker=2)
    unknown = _looks([None] * 30, broker=3)
    assert _forecasts(spark, [*few, *short, *unknown]) == []


def test_a_topic_that_was_deleted_is_no_emptying(spark: SparkSession) -> None:
    used: list[int | None] = [600_000 + n * 1000 for n in range(100)]
    used += [300_000 + n * 1000 for n in range(100)]
    (row,) = _forecasts(spark, _looks(used))
    assert row["grows_per_day"] == pytest.approx(24_000)
    assert row["samples"] == 100
    assert row["days_to_80"] == pytest.approx((800_000 - 399_000) / 24_000)


def test_retention_that_comes_again_and_again_is_how_the_disk_lives(spark: SparkSession) -> None:
    # A saw: 1 % up an hour, 12 % down every 12 hours. It never fills.
    used: list[int | None] = [500_000 + (n % 12) * 10_000 for n in range(240)]
    (row,) = _forecasts(spark, _looks(used))
    assert row["samples"] == 240
    assert row["days_to_80"] is None or row["days_to_80"] > 60


def test_of_each_five_minutes_the_last_look_counts_and_the_line_is_the_same(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.forecast import disk_forecast, looks

    rows = _looks([400_000 + n * 10 for n in range(600)], every=60)
    rows[4] |= {"usable_bytes": None}
    kept = looks(facts(spark, SegmentKind.BROKER, rows))
    found = plain(kept, "observed_at")
    assert len(found) == 120
    assert [TOTAL - row["usable_bytes"] for row in found[:3]] == [400_030, 400_090, 400_140]
    (row,) = plain(disk_forecast(kept), "broker")
    assert (row["samples"], row["used_bytes"], row["grows_per_day"]) == (120, 405_990, pytest.approx(14_400))


def test_it_is_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.forecast import disk_forecast

    random = Random(5)
    rows = []
    for broker in range(12):
        slope, start = random.uniform(-400, 900), random.randint(100_000, 700_000)
        used: list[int | None] = [
            None if random.random() < 0.1 else int(start + n * slope + random.gauss(0, 3000)) for n in range(90)
        ]
        rows += _looks(used, broker=broker)
    random.shuffle(rows)
    brokers = facts(spark, SegmentKind.BROKER, rows).cache()
    found = plain(disk_forecast(brokers), "broker")
    days = ", ".join(
        f"""CASE WHEN total * {share / 100} <= used THEN 0.0 WHEN slope > 0 AND {by} > 0
            THEN (total * {share / 100} - used) / ({by} * 86400) END AS days_to_{share}{end}"""
        for share in (80, 90)
        for end, by in (("", "slope"), ("_low", "(slope + 2 * error)"), ("_high", "(slope - 2 * error)"))
    )
    others = duckdb_says(
        f"""
        WITH looks AS (
            FROM brokers SELECT cluster, broker, directory, observed_at, total_bytes,
                                total_bytes - usable_bytes AS used,
                                epoch(observed_at) - epoch(min(observed_at) OVER ()) AS x
            WHERE usable_bytes IS NOT NULL),
        lines AS (
            SELECT cluster, broker, directory, max(observed_at) AS observed_at, arg_max(used, x) AS used,
                   arg_max(total_bytes, x) AS total, regr_slope(used, x) AS slope, count(*) AS samples,
                   sqrt(regr_syy(used, x) * (1 - regr_r2(used, x)) / (count(*) - 2) / regr_sxx(used, x)) AS error,
                   min(observed_at) AS from_at
            FROM looks GROUP BY ALL)
        SELECT cluster, broker, directory, observed_at, used AS used_bytes, total AS total_bytes,
               slope * 86400 AS grows_per_day, {days}, samples, from_at FROM lines
        """,
        brokers=brokers,
    )
    agree(found, others, ResultKind.DISK_FORECAST)
    assert plain(disk_forecast(brokers.repartition(5)), "broker") == found
