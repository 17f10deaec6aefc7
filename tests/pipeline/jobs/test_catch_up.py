"""Replicas that are being added: how fast they come nearer to their leader, and what is not known of that."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.domain.segments import SegmentKind
from tests.pipeline.jobs.frames import BEGAN, agree, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

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


def test_it_is_what_duckdb_says(spark: SparkSession) -> None:
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
