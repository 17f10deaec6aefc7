"""When disks will be full: known lines, what is no growth, and DuckDB on random disks.

Replicas that are being added: how fast they come nearer to their leader, and what is not known of that.

The planner's input, against DuckDB; and what a log that got smaller, a gap or a new leader says: nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.export.results import ResultKind
from kafkadash.export.schema import SegmentKind
from tests.pipeline.frames import BEGAN, agree, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

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
    from kafkadash.pipeline.jobs.forecast import disk_forecast, select_looks

    rows = _looks([400_000 + n * 10 for n in range(600)], every=60)
    rows[4] |= {"usable_bytes": None}
    kept = select_looks(facts(spark, SegmentKind.BROKER, rows))
    found = plain(kept, "observed_at")
    assert len(found) == 120
    assert [TOTAL - row["usable_bytes"] for row in found[:3]] == [400_030, 400_090, 400_140]
    (row,) = plain(disk_forecast(kept), "broker")
    assert (row["samples"], row["used_bytes"], row["grows_per_day"]) == (120, 405_990, pytest.approx(14_400))


def test_forecast__is_what_duckdb_says(spark: SparkSession) -> None:
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


Rows = list[dict[str, Any]]


def _frames(spark: SparkSession, moves: Rows, replicas: Rows, listed: list[int]) -> tuple[DataFrame, ...]:
    manifest = [{"at": at, "kind": "reassignment"} for at in listed]
    return (
        facts(spark, SegmentKind.REASSIGNMENT, [{"first_seen": BEGAN, **row} for row in moves]),
        facts(spark, SegmentKind.REPLICA, replicas),
        facts(spark, SegmentKind.MANIFEST, manifest),
    )


def _caught_up(spark: SparkSession, moves: Rows, replicas: Rows, listed: list[int]) -> Rows:
    from kafkadash.pipeline.jobs.catch_up import catch_up

    return plain(catch_up(*_frames(spark, moves, replicas, listed)), "topic", "partition", "broker")


def _exact(at: int, leader: int, copy: int | None, broker: int = 9) -> Rows:
    found: Rows = [{"at": at, "broker": 1, "is_leader": True, "log_end": leader, "log_start": 0}]
    if copy is not None:
        found.append({"at": at, "broker": broker, "is_leader": False, "log_end": copy})
    return found


SIZE: dict[str, Any] = {"broker": 1, "is_leader": True, "method": "size"}
MOVES: Rows = [{"at": 60, "adding": [9], "replicas": [9, 1]}]


def test_the_rate_is_net_of_what_is_produced(spark: SparkSession) -> None:
    # Copied 30 records a second, produced 10: of 10,000 records of 100 bytes, 20 fewer are left each second.
    looks = [each for at in range(0, 70, 10) for each in _exact(at, 10_000 + 10 * at, 30 * at)]
    # Its newest known size is 1,060,000 bytes for 10,600 records.
    looks.append({"at": 55, "bytes_on_disk": 1_060_000, **SIZE})
    (row,) = _caught_up(spark, MOVES, looks, [60])
    assert row["bytes_per_second"] == pytest.approx(2000)
    assert row["left_bytes"] == (10_600 - 1800) * 100
    assert row["eta_seconds"] == pytest.approx((10_600 - 1800) / 20)


def test_without_log_ends_the_bytes_on_disk_say_it(spark: SparkSession) -> None:
    looks: Rows = []
    for at in range(0, 120, 30):
        looks.append({"at": at, "bytes_on_disk": 900_000, **SIZE})
        looks.append({"at": at, "bytes_on_disk": 5000 * at, "broker": 9, "is_leader": False, "method": "size"})
    (row,) = _caught_up(spark, MOVES, looks, [60])
    assert (row["bytes_per_second"], row["left_bytes"]) == (pytest.approx(5000), 450_000)
    assert row["eta_seconds"] == pytest.approx(90)


def test_unknown_is_neither_zero_nor_never(spark: SparkSession) -> None:
    size = {"at": 55, "bytes_on_disk": 1_000_000, **SIZE}
    looks: dict[str, Rows] = {
        "nobody looked": [],
        "leader only": _exact(0, 10_000, None),
        "one look": [*_exact(0, 10_000, 4000), size],
        # Known in records only: the time is, bytes are not.
        "records": [*_exact(0, 10_000, 4000), *_exact(10, 10_000, 5000)],
        "stands": [*_exact(0, 10_000, 4000), *_exact(10, 10_000, 4000), size],
        # A rate below zero, and no end.
        "falls behind": [*_exact(0, 9_000, 4000), *_exact(10, 10_000, 4000), size],
        # Whatever the line says.
        "caught up": [*_exact(0, 10_000, 9000), *_exact(10, 10_000, 10_000), size],
    }
    moves = [{**move, "topic": topic} for topic in looks for move in MOVES]
    replicas = [{**look, "topic": topic} for topic, own in looks.items() for look in own]
    found = {
        row["topic"]: (row["bytes_per_second"], row["left_bytes"], row["eta_seconds"])
        for row in _caught_up(spark, moves, replicas, [60])
    }
    assert found["nobody looked"] == found["leader only"] == (None, None, None)
    assert found["one look"] == (None, 600_000, None)
    assert found["records"] == (None, None, pytest.approx(50))
    assert found["stands"][2] is None
    assert (found["falls behind"][0], found["falls behind"][2]) == (pytest.approx(-10_000), None)
    assert found["caught up"][1:] == (0, 0.0)
    assert found.keys() == looks.keys()


def test_only_what_the_newest_listing_adds(spark: SparkSession) -> None:
    looks = [each for at in range(0, 70, 10) for each in _exact(at, 10_000, 30 * at)]
    assert _caught_up(spark, MOVES, looks, [60, 90]) == []
    both = [*MOVES, {"at": 90, "adding": [8], "replicas": [8, 1]}]
    assert [row["broker"] for row in _caught_up(spark, both, looks, [60, 90])] == [8]


def test_what_was_looked_at_longer_ago_says_nothing(spark: SparkSession) -> None:
    """However far back a batch sees: the looks of the last ten minutes in which there were any."""
    long_ago = [each for at in (0, 60, 120) for each in _exact(at, 90_000, 7 * at)]
    long_ago.append({"at": 120, "bytes_on_disk": 1_000_000, **SIZE})
    recent = [each for minute in range(4, 24, 2) for each in _exact(minute * 60, 90_000, 600 * minute)]
    moves: Rows = [{"at": 1400, "adding": [9], "replicas": [9, 1]}]
    rows = _caught_up(spark, moves, [*long_ago, *recent], [1400])
    assert rows == _caught_up(spark, moves, recent, [1400])
    assert rows[0]["eta_seconds"] == pytest.approx((90_000 - 600 * 22) / 10)


def test_catch_up__is_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.catch_up import catch_up

    random = Random(8)
    moves = [{"at": 300, "partition": p, "adding": [8, 9], "replicas": [8, 9, 1]} for p in range(20)]
    looks: Rows = []
    for partition in range(20):
        looks.append({"at": 301, "partition": partition, "bytes_on_disk": random.randint(10**6, 10**9), **SIZE})
        for at in range(0, 300, 15):
            end = 50_000 + at * random.randint(0, 40)
            usual = {"at": at, "partition": partition}
            looks.append({**usual, "broker": 1, "is_leader": True, "log_end": end, "log_start": partition})
            looks += [
                {**usual, "broker": broker, "is_leader": False, "log_end": at * random.randint(100, 160)}
                for broker in (8, 9)
                if random.random() < 0.8
            ]
    random.shuffle(looks)
    reassignment, replica, manifest = (frame.cache() for frame in _frames(spark, moves, looks, [300]))
    rows = plain(catch_up(reassignment, replica, manifest), "partition", "broker")
    others = duckdb_says(
        """
        WITH leaders AS (FROM replica SELECT * WHERE is_leader AND log_end IS NOT NULL),
        gaps AS (
            SELECT c.cluster, c.topic, c.partition, c.broker, c.observed_at,
                   greatest(l.log_end - c.log_end, 0) AS gap,
                   epoch(c.observed_at) - epoch(TIMESTAMPTZ '2026-03-02') AS x
            FROM replica c JOIN leaders l USING (cluster, topic, partition, seq) WHERE NOT c.is_leader),
        sizes AS (
            SELECT partition,
                   max(bytes_on_disk) / arg_max(log_end - log_start, seq) FILTER (log_end IS NOT NULL) AS record
            FROM replica WHERE is_leader GROUP BY partition),
        lines AS (
            SELECT cluster, topic, partition, broker, max(observed_at) AS observed_at, arg_max(gap, x) AS gap,
                   -regr_slope(gap, x) AS rate
            FROM gaps GROUP BY ALL)
        SELECT cluster, topic, partition, broker, observed_at, rate * record AS bytes_per_second,
               round(gap * record)::BIGINT AS left_bytes,
               CASE WHEN gap = 0 THEN 0 WHEN rate > 0 THEN gap / rate END AS eta_seconds
        FROM lines JOIN sizes USING (partition)
        """,
        replica=replica,
    )
    agree(rows, others, ResultKind.CATCH_UP)
    assert plain(catch_up(reassignment, replica.repartition(5), manifest), "partition", "broker") == rows


MONDAY_9 = 9


def _looks_at_logs(
    sizes: Sequence[int | None], every: int = 60, begin: int = 0, **besides: Any
) -> list[dict[str, Any]]:
    return [
        {"at": begin + n * every, "bytes_on_disk": size, "is_leader": True, "method": "size", **besides}
        for n, size in enumerate(sizes)
    ]


def _workload(spark: SparkSession, rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    from kafkadash.pipeline.jobs.workload import compute_hours, compute_workload

    return plain(compute_workload(compute_hours(facts(spark, SegmentKind.REPLICA, rows))), "topic", "partition")


def _told(row: dict[str, Any]) -> dict[int, tuple[int | None, int | None]]:
    """Hour of the week → its two rates, where there is one."""
    assert len(row["hours_of_week"]) == len(set(row["hours_of_week"])) <= 7 * 24
    both = zip(row["hours_of_week"], zip(row["in_p50"], row["in_p95"], strict=True), strict=True)
    return {hour: rates for hour, rates in both if rates != (None, None)}


def test_an_hour_of_steady_growth(spark: SparkSession) -> None:
    (row,) = _workload(spark, _looks_at_logs([1000 + 600 * n for n in range(20)]))
    assert _told(row) == {MONDAY_9: (10, 10)}
    assert (row["in_typical"], row["in_peak"], row["peak_hour"]) == (pytest.approx(10), pytest.approx(10), MONDAY_9)
    assert (row["samples"], row["size_bytes"]) == (19, 1000 + 600 * 19)
    assert row["from_at"] == BEGAN
    assert (row["to_at"] - BEGAN).total_seconds() == 19 * 60
    assert row["growth_per_day"] is None  # of twenty minutes


def test_the_busiest_hour_is_the_peak_and_what_was_not_seen_is_not_nothing(spark: SparkSession) -> None:
    quiet = [5000] * 60
    busy = [5000 + 6000 * n for n in range(60)]
    (row,) = _workload(
        spark,
        [*_looks_at_logs(quiet), *_looks_at_logs(busy, begin=HOUR), *_looks_at_logs([500_000] * 5, begin=3 * HOUR)],
    )
    assert _told(row) == {MONDAY_9: (0, 0), MONDAY_9 + 1: (100, 100)}
    assert (row["in_typical"], row["in_peak"]) == (pytest.approx(50), pytest.approx(100))
    assert row["peak_hour"] == MONDAY_9 + 1


def test_few_samples_are_counted_and_not_more(spark: SparkSession) -> None:
    (row,) = _workload(spark, _looks_at_logs([0, 10, 20]))
    assert (row["samples"], row["in_typical"], row["in_peak"], row["peak_hour"]) == (2, None, None, None)
    assert _told(row) == {}
    assert row["size_bytes"] == 20


def test_of_two_weeks_the_last_counts(spark: SparkSession) -> None:
    week = 7 * 24 * HOUR
    then, now = [600 * n for n in range(60)], [36_000 + 6000 * n for n in range(60)]
    (row,) = _workload(spark, [*_looks_at_logs(then), *_looks_at_logs(now, begin=week)])
    assert _told(row) == {MONDAY_9: (100, 100)}
    assert (row["from_at"] - BEGAN).total_seconds() == week


def test_growth_is_of_a_day_at_least(spark: SparkSession) -> None:
    grows = _looks_at_logs([10**6 + n * 50 for n in range(30)], every=HOUR, topic="grows")
    shrinks = _looks_at_logs([10**6 - n * 50 for n in range(30)], every=HOUR, topic="shrinks")
    too_short = _looks_at_logs([10**6 + n * 50 for n in range(24)], every=HOUR, topic="too short")
    found = {row["topic"]: row["growth_per_day"] for row in _workload(spark, [*grows, *shrinks, *too_short])}
    assert found == {"grows": pytest.approx(1200), "shrinks": pytest.approx(-1200), "too short": None}


def test_what_says_nothing_is_left_out(spark: SparkSession) -> None:
    quiet = [5000] * 13
    grown = _looks_at_logs(quiet, topic="deleted")
    grown[6]["bytes_on_disk"] = 9000  # up once, and down again by retention: the way down is no rate
    moved = _looks_at_logs(quiet, topic="moved")
    for row in moved[7:]:
        row |= {"broker": 2, "bytes_on_disk": 900_000}
    gap = [*_looks_at_logs(quiet[:7], topic="unseen"), *_looks_at_logs(quiet[:7], begin=3 * 3600, topic="unseen")]
    follower = _looks_at_logs(quiet, topic="follower", is_leader=False)
    coming = _looks_at_logs(quiet, topic="coming", is_future=True)
    unknown = _looks_at_logs([None] * 13, topic="unknown")
    found = _workload(spark, [*grown, *moved, *gap, *follower, *coming, *unknown])
    assert [(row["topic"], row["samples"]) for row in found] == [("deleted", 11), ("moved", 11), ("unseen", 12)]


def test_workload__is_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.workload import compute_hours, compute_workload

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
    found = plain(compute_workload(compute_hours(replica)), "partition")
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
    from kafkadash.pipeline.jobs.workload import compute_hours, compute_workload

    random = Random(5)
    rows = [
        row for p in range(3) for row in _looks_at_logs([random.randrange(10**7) for _ in range(90)], 1800, partition=p)
    ]
    replica = facts(spark, SegmentKind.REPLICA, rows)
    found = plain(compute_workload(compute_hours(replica)), "partition")
    assert plain(compute_workload(compute_hours(replica.repartition(5)).repartition(3)), "partition") == found
