"""Rollups, against the same question asked of DuckDB; and their percentiles through merges.

The quorum's history, against DuckDB, and what is not known in it.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.export.results import ResultKind, RollupGrain
from kafkadash.export.schema import SegmentKind
from tests.pipeline.frames import BEGAN, agree, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

_HUGE = 2**62


def _offsets(seed: int, rows: int = 4000) -> list[dict[str, Any]]:
    random = Random(seed)
    made = []
    for _ in range(rows):
        # Skewed: a third is at zero, and one group has most of the rows.
        lag = random.choice((None, 0, random.randint(0, 9), random.randint(0, 10**6), _HUGE))
        made.append(
            {
                "at": random.randint(0, 200) + random.random(),
                "cluster": random.choice(("east", "west")),
                "group": random.choice(("a", "a", "a", "b", "c")),
                "topic": random.choice(("orders", "orders", "clicks")),
                "partition": random.randint(0, 5),
                "lag": lag,
            }
        )
    made.append({"at": 1, "cluster": "south", "group": "nobody-knows", "topic": "dark", "lag": None})
    return made


def _replicas(seed: int, rows: int = 1500) -> list[dict[str, Any]]:
    random = Random(seed)
    return [
        {
            "at": random.randint(0, 200),
            "cluster": random.choice(("east", "west")),
            "topic": random.choice(("orders", "clicks", "unread")),
            "partition": random.randint(0, 99),
            "broker": random.randint(1, 3),
            "bytes_on_disk": None if random.random() < 0.02 else random.randint(0, 10**10),
            "method": "size",
        }
        for _ in range(rows)
    ]


def _manifest(seed: int) -> list[dict[str, Any]]:
    """Of each second and cluster, half of them whole; some seconds have none at all."""
    random = Random(seed)
    return [
        {"at": at, "cluster": cluster, "kind": "replica", "not_answered": random.choice(([], [2]))}
        for cluster in ("east", "west")
        for at in range(201)
        if random.random() < 0.9
    ]


def _distribution(value: str, name: str) -> str:
    percentiles = ", ".join(f"quantile_disc({value}, 0.{share}) AS {name}_p{share}" for share in (50, 95, 99))
    return f"count({value}) AS {name}_count, max({value}) AS {name}_max, avg({value}) AS {name}_mean, {percentiles}"


@pytest.mark.parametrize(
    ("kind", "keys"),
    [(ResultKind.LAG_ROLLUP, 'cluster, "group", topic'), (ResultKind.CLUSTER_ROLLUP, "cluster")],
)
def test_lag_is_what_duckdb_says(spark: SparkSession, kind: ResultKind, keys: str) -> None:
    from kafkadash.pipeline.jobs import rollup

    offsets = facts(spark, SegmentKind.GROUP_OFFSET, _offsets(1)).cache()
    job = rollup.lag_rollup if kind == ResultKind.LAG_ROLLUP else rollup.cluster_rollup
    rows = plain(job(rollup.gather_lags(offsets)), "cluster", "bucket")
    others = duckdb_says(
        f"SELECT {keys}, date_trunc('minute', observed_at) AS bucket, {_distribution('lag', 'lag')}"
        f" FROM offsets GROUP BY {keys}, bucket",
        offsets=offsets,
    )
    assert len(rows) >= 9
    agree(rows, others, kind)


def test_topics_are_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs import rollup

    offsets = facts(spark, SegmentKind.GROUP_OFFSET, _offsets(2)).cache()
    replicas = facts(spark, SegmentKind.REPLICA, _replicas(3)).cache()
    manifest = facts(spark, SegmentKind.MANIFEST, _manifest(4)).cache()
    rows = plain(rollup.topic_rollup(rollup.gather_lags(offsets), replicas, manifest), "cluster", "topic", "bucket")
    others = duckdb_says(
        f"""
        WITH lags AS (
            SELECT cluster, topic, date_trunc('minute', observed_at) AS bucket, {_distribution("lag", "lag")}
            FROM offsets GROUP BY ALL),
        refreshes AS (
            SELECT cluster, topic, date_trunc('minute', observed_at) AS bucket, seq, sum(bytes_on_disk)::BIGINT AS size,
                   count(*) = count(bytes_on_disk) AND bool_and(EXISTS (SELECT 1 FROM manifest m
                        WHERE m.cluster = r.cluster AND m.seq = r.seq AND len(m.not_answered) = 0)) AS known
            FROM replicas r GROUP BY ALL),
        sizes AS (
            SELECT cluster, topic, bucket, arg_max(size, seq) FILTER (known) AS bytes_on_disk
            FROM refreshes GROUP BY ALL)
        SELECT * REPLACE (coalesce(lag_count, 0) AS lag_count)
        FROM lags FULL JOIN sizes USING (cluster, topic, bucket)
        """,
        offsets=offsets,
        replicas=replicas,
        manifest=manifest,
    )
    agree(rows, others, ResultKind.TOPIC_ROLLUP)
    assert any(row["bytes_on_disk"] is None for row in rows)
    assert any(row["lag_count"] == 0 and row["bytes_on_disk"] for row in rows)


def test_brokers_are_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs import rollup

    # What a look at moves read has no bytes, and is no replica more or less.
    moves = [{"at": 10.5 + at, "cluster": "east", "log_end": 5, "method": "exact"} for at in range(0, 180, 20)]
    replicas = facts(spark, SegmentKind.REPLICA, [*_replicas(5), *moves]).cache()
    rows = plain(rollup.broker_rollup(replicas), "cluster", "broker", "bucket")
    others = duckdb_says(
        f"""
        WITH sizes AS (FROM replicas SELECT *, date_trunc('minute', observed_at) AS bucket WHERE method = 'size'),
        newest AS (
            SELECT cluster, broker, bucket, arg_max(n, seq) AS replicas
            FROM (SELECT cluster, broker, bucket, seq, count(*) AS n FROM sizes GROUP BY ALL) GROUP BY ALL)
        SELECT cluster, broker, bucket, {_distribution("bytes_on_disk", "replica_bytes")},
               any_value(n.replicas) AS replicas
        FROM sizes JOIN newest n USING (cluster, broker, bucket) GROUP BY cluster, broker, bucket
        """,
        replicas=replicas,
    )
    agree(rows, others, ResultKind.BROKER_ROLLUP)


def _traffic(seed: int, rows: int = 3000) -> list[dict[str, Any]]:
    random = Random(seed)
    subjects: list[dict[str, Any]] = [
        {"subject": "cluster"},
        *({"subject": "topic", "topic": topic} for topic in ("orders", "clicks")),
        *({"subject": "broker", "broker": broker} for broker in (0, 1)),
    ]
    made = []
    for _ in range(rows):
        records = random.choice((None, 0.0, round(random.random(), 3), round(random.random() * 1e6, 3)))
        octets = None if records is None or random.random() < 0.2 else round(records * 173.25, 3)
        unknown = 1 if records is None else random.randint(0, 9)
        made.append(
            {
                **random.choice(subjects),
                "at": random.randint(0, 200) + random.random(),
                "cluster": random.choice(("east", "west")),
                "records_rate": records,
                "bytes_rate": octets,
                "unknown": unknown,
                "without_bytes": random.randint(0, 4),
            }
        )
    made.append({"at": 1, "cluster": "south", "unknown": 3})
    return made


@pytest.mark.parametrize(
    ("kind", "rate", "left_out", "name"),
    [
        (ResultKind.BYTES_IN, "bytes_rate", "unknown + without_bytes", "bytes_in"),
        (ResultKind.RECORDS_IN, "records_rate * 1000", "unknown", "milli_records_in"),
    ],
)
def test_traffic_is_what_duckdb_says(
    spark: SparkSession, kind: ResultKind, rate: str, left_out: str, name: str
) -> None:
    from kafkadash.pipeline.jobs import rollup

    traffic = facts(spark, SegmentKind.TRAFFIC, _traffic(8)).cache()
    rows = plain(rollup.traffic_rollup(traffic, kind), "cluster", "bucket", "topic", "broker")
    others = duckdb_says(
        f"""
        WITH rates AS (
            SELECT *, date_trunc('minute', observed_at) AS bucket, round({rate})::BIGINT AS rate FROM traffic)
        SELECT cluster, bucket, coalesce(topic, '') AS topic, coalesce(broker, -1) AS broker,
               {_distribution("rate", name)}, max({left_out}) AS left_out
        FROM rates WHERE rate IS NOT NULL GROUP BY ALL
        """,
        traffic=traffic,
    )
    agree(rows, others, kind)
    assert {(row["topic"], row["broker"]) for row in rows} == {
        ("", -1),
        ("orders", -1),
        ("clicks", -1),
        ("", 0),
        ("", 1),
    }
    assert "south" not in {row["cluster"] for row in rows}, "without a known rate there is no row"


@pytest.mark.parametrize("kind", [ResultKind.BYTES_IN, ResultKind.RECORDS_IN])
def test_traffic_of_an_hour__merged_from_minutes__is_that_of_all_its_samples(
    spark: SparkSession, kind: ResultKind
) -> None:
    from kafkadash.pipeline.jobs import rollup

    traffic = facts(spark, SegmentKind.TRAFFIC, _traffic(9, rows=600)).cache()
    order = ("cluster", "topic", "broker")
    merged = plain(rollup.coarsen_rollup(rollup.traffic_rollup(traffic, kind), kind, RollupGrain.HOUR), *order)
    again = facts(spark, SegmentKind.TRAFFIC, _traffic(9, rows=600)[::-1]).repartition(5)
    direct = plain(rollup.traffic_rollup(again, kind, RollupGrain.HOUR), *order)
    name = "bytes_in" if kind is ResultKind.BYTES_IN else "milli_records_in"
    for mine, its in zip(merged, direct, strict=True):
        assert mine.pop(f"{name}_mean") == pytest.approx(its.pop(f"{name}_mean"), rel=1e-12)
        assert mine == its
    assert any(row["left_out"] for row in direct)


def test_the_same_rows_give_the_same_results_whatever_order_they_come_in(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs import rollup

    rows = _offsets(6)
    once = facts(spark, SegmentKind.GROUP_OFFSET, rows)
    Random(1).shuffle(rows)
    again = facts(spark, SegmentKind.GROUP_OFFSET, rows).repartition(7)

    def answers(offsets: DataFrame) -> list[list[dict[str, Any]]]:
        minutes = rollup.lag_rollup(rollup.gather_lags(offsets))
        hours = rollup.coarsen_rollup(minutes, ResultKind.LAG_ROLLUP, RollupGrain.HOUR)
        days = rollup.coarsen_rollup(
            rollup.cluster_rollup(rollup.gather_lags(offsets)), ResultKind.CLUSTER_ROLLUP, RollupGrain.DAY
        )
        return [
            plain(minutes, "cluster", "bucket", "group", "topic"),
            plain(hours, "cluster", "bucket", "group", "topic"),
            plain(days, "cluster", "bucket"),
        ]

    assert answers(once) == answers(again)


def test_hours_of_few_samples_are_exact(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs import rollup

    # No bucket has more samples than a sketch has points, so nothing is lost on the way.
    offsets = facts(spark, SegmentKind.GROUP_OFFSET, _offsets(7, rows=1000)).cache()
    merged = rollup.coarsen_rollup(
        rollup.lag_rollup(rollup.gather_lags(offsets)), ResultKind.LAG_ROLLUP, RollupGrain.HOUR
    )
    direct = rollup.lag_rollup(rollup.gather_lags(offsets, RollupGrain.HOUR))
    order = ("cluster", "group", "topic")
    for mine, its in zip(plain(merged, *order), plain(direct, *order), strict=True):
        assert mine.pop("lag_mean") == pytest.approx(its.pop("lag_mean"), rel=1e-12)
        assert mine == its


def _rank_error(values: list[int], share: float, found: int) -> float:
    """How far the ranks at which ``found`` stands (or would) are from the wanted one, as a share of all."""
    low, high = bisect_left(values, found), bisect_right(values, found)
    wanted = math.ceil(share * len(values))
    return max(0, low + 1 - wanted, wanted - high) / len(values)


SKEWS = (0.2, 1, 6, 40)


def test_percentiles_of_a_day_are_within_one_and_a_half_percent_of_rank(spark: SparkSession) -> None:
    from pyspark.sql import functions as sql

    from kafkadash.pipeline.jobs import rollup

    # Minutes of very different size: by a power of their place, and the large ones have larger values as well.
    minutes, n = 48 * 5, 30_000
    rows = []
    for skew in SKEWS:  # each a cluster of its own
        random = Random(int(skew * 10))
        for _ in range(n):
            minute = int(minutes * random.random() ** 3)
            rows.append((f"skew {skew}", minute * 720, int(random.random() ** skew * 10**9 / (1 + minute))))
    made = spark.createDataFrame(rows, "cluster string, at int, lag bigint").select(
        "cluster",
        *(sql.lit(name).alias(kept) for kept, name in (("group", "billing"), ("topic", "orders"))),
        sql.timestamp_seconds(sql.col("at") + int(BEGAN.timestamp()) // 86400 * 86400).alias("observed_at"),
        "lag",
    )
    by_hour = rollup.coarsen_rollup(
        rollup.cluster_rollup(rollup.gather_lags(made)), ResultKind.CLUSTER_ROLLUP, RollupGrain.HOUR
    )
    days = plain(rollup.coarsen_rollup(by_hour, ResultKind.CLUSTER_ROLLUP, RollupGrain.DAY), "cluster", "bucket")
    first = BEGAN.replace(hour=0)
    wanted = [(f"skew {skew}", first + timedelta(days=place)) for skew in SKEWS for place in (0, 1)]
    assert [(day["cluster"], day["bucket"]) for day in days] == sorted(wanted)
    for day in days:
        place = (day["bucket"] - first).days
        values = sorted(lag for cluster, at, lag in rows if (cluster, at // 86_400) == (day["cluster"], place))
        assert (day["lag_count"], day["lag_max"]) == (len(values), values[-1])
        for share in (50, 95, 99):
            assert _rank_error(values, share / 100, day[f"lag_p{share}"]) <= 0.015
        # A sketch itself: each of its points where it says it is.
        sketch, count = day["lag_sketch"], len(values)
        assert len(sketch) == 256
        for piece, value in enumerate(sketch):
            assert _rank_error(values, (piece + 0.5) / 256 + 0.5 / count, value) <= 0.015


def test_a_bucket_in_which_nothing_is_known_is_a_row_without_figures(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs import rollup

    rows = [{"at": n * 60, "lag": None} for n in range(3)] + [{"at": 60, "lag": 7}]
    minutes = rollup.lag_rollup(rollup.gather_lags(facts(spark, SegmentKind.GROUP_OFFSET, rows))).cache()
    found = [(row["lag_count"], row["lag_p50"], row["lag_mean"], row["lag_sketch"]) for row in plain(minutes, "bucket")]
    assert found == [(0, None, None, []), (1, 7, 7.0, [7]), (0, None, None, [])]
    hours = plain(rollup.coarsen_rollup(minutes, ResultKind.LAG_ROLLUP, RollupGrain.HOUR), "bucket")
    assert [(row["lag_count"], row["lag_p99"], row["lag_sketch"]) for row in hours] == [(1, 7, [7])]
    dark = minutes.where("lag_count = 0")
    hours = plain(rollup.coarsen_rollup(dark, ResultKind.LAG_ROLLUP, RollupGrain.HOUR), "bucket")
    assert [(row["lag_count"], row["lag_p99"], row["lag_sketch"]) for row in hours] == [(0, None, [])]


def test_what_has_no_buckets_is_not_merged(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs import rollup

    with pytest.raises(ValueError, match="workload has no buckets"):
        rollup.coarsen_rollup(spark.range(1), ResultKind.WORKLOAD, RollupGrain.HOUR)


LEADERS_CLOCK = datetime(2031, 1, 1, tzinfo=UTC)
"""Years from ours: no difference between the two may get into anything."""


def _looks(seed: int) -> list[dict[str, Any]]:
    random = Random(seed)
    made = []
    for cluster in ("east", "west"):
        leader, epoch = 1, 5
        for at in range(0, 400, 9):
            if random.random() < 0.2:
                epoch += random.randint(1, 3)
                leader = random.choice((1, 2, 3))
            now = LEADERS_CLOCK + timedelta(seconds=at)
            leader_knows = random.random() < 0.9
            for replica in (1, 2, 3, 4):
                led = replica == leader
                caught_up = now - timedelta(milliseconds=random.randint(0, 5000))
                fetched = now - timedelta(milliseconds=random.randint(0, 900))
                heard = random.random() < 0.8
                made.append(
                    {
                        "at": at,
                        "cluster": cluster,
                        "replica": replica,
                        "leader": leader,
                        "leader_epoch": epoch,
                        "role": "leader" if led else "observer" if replica == 4 else "follower",
                        "last_fetch_ts": None if led or not heard else fetched,
                        "last_caught_up_ts": (now if leader_knows else None) if led else caught_up if heard else None,
                    }
                )
    return made


def test_it_is_what_duckdb_says(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.quorum import quorum_rollup

    quorum = facts(spark, SegmentKind.QUORUM, _looks(1)).cache()
    rows = plain(quorum_rollup(quorum), "cluster", "bucket", "replica")
    others = duckdb_says(
        """
        WITH leaders AS (
            SELECT cluster, seq, observed_at, leader, leader_epoch, last_caught_up_ts AS now FROM quorum
            WHERE replica = leader),
        changes AS (
            SELECT cluster, date_trunc('minute', observed_at) AS bucket,
                   coalesce(sum(other::INT), 0)::BIGINT AS leader_changes,
                   coalesce(sum(risen), 0)::BIGINT AS epoch_changes
            FROM (SELECT cluster, observed_at, leader <> lag(leader) OVER w AS other,
                         leader_epoch - lag(leader_epoch) OVER w AS risen
                  FROM leaders WINDOW w AS (PARTITION BY cluster ORDER BY seq)) GROUP BY ALL),
        lags AS (
            SELECT q.cluster, date_trunc('minute', q.observed_at) AS bucket, q.replica,
                   CASE WHEN q.replica <> q.leader THEN date_diff('millisecond', q.last_caught_up_ts, now) END AS v,
                   CASE WHEN q.replica <> q.leader THEN date_diff('millisecond', q.last_fetch_ts, now) END AS a
            FROM quorum q JOIN leaders USING (cluster, seq))
        SELECT cluster, bucket, replica, count(v) AS lag_ms_count, max(v) AS lag_ms_max, avg(v) AS lag_ms_mean,
               quantile_disc(v, 0.5) AS lag_ms_p50, quantile_disc(v, 0.95) AS lag_ms_p95,
               quantile_disc(v, 0.99) AS lag_ms_p99, max(a) AS fetch_age_ms_max,
               any_value(leader_changes) AS leader_changes, any_value(epoch_changes) AS epoch_changes
        FROM lags
        JOIN changes USING (cluster, bucket) GROUP BY cluster, bucket, replica
        """,
        quorum=quorum,
    )
    agree(rows, others, ResultKind.QUORUM_ROLLUP)
    assert sum(row["leader_changes"] for row in rows) > 0


def test_what_nobody_knows_is_no_lag(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.quorum import quorum_rollup

    minus_one = datetime(1970, 1, 1, tzinfo=UTC) - timedelta(milliseconds=1)
    now = LEADERS_CLOCK
    rows: list[dict[str, Any]] = [
        {"replica": 1, "role": "leader", "last_caught_up_ts": now},
        {"replica": 2, "last_caught_up_ts": None, "last_fetch_ts": None},
        {"replica": 3, "last_caught_up_ts": minus_one, "last_fetch_ts": minus_one},
        {"replica": 4, "last_caught_up_ts": now + timedelta(seconds=1), "last_fetch_ts": now - timedelta(seconds=400)},
    ]
    found = plain(quorum_rollup(facts(spark, SegmentKind.QUORUM, rows)), "replica")
    assert [(row["lag_ms_count"], row["lag_ms_max"], row["fetch_age_ms_max"]) for row in found] == [
        (0, None, None),
        (0, None, None),
        (0, None, None),
        (1, 0, 400_000),
    ]
    no_leader = plain(quorum_rollup(facts(spark, SegmentKind.QUORUM, rows[1:])), "replica")
    assert [(row["lag_ms_count"], row["fetch_age_ms_max"]) for row in no_leader] == [(0, None)] * 3


def test_changes_add_up_over_an_hour(spark: SparkSession) -> None:
    from kafkadash.pipeline.jobs.quorum import quorum_rollup
    from kafkadash.pipeline.jobs.rollup import coarsen_rollup

    quorum = facts(spark, SegmentKind.QUORUM, _looks(2)).cache()
    minutes = quorum_rollup(quorum)
    order = ("cluster", "replica")
    merged = plain(coarsen_rollup(minutes, ResultKind.QUORUM_ROLLUP, RollupGrain.HOUR), *order)
    direct = plain(quorum_rollup(quorum, RollupGrain.HOUR), *order)
    for mine, its in zip(merged, direct, strict=True):
        assert mine.pop("lag_ms_mean") == pytest.approx(its.pop("lag_ms_mean"))
        assert mine == its
