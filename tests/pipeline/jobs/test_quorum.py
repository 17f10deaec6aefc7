"""The quorum's history, against DuckDB, and what is not known in it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkadash.domain.pipeline_results import Grain, ResultKind
from kafkadash.domain.segments import SegmentKind
from tests.pipeline.jobs.frames import agree, duckdb_says, facts, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")

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
    from kafkadash.pipeline.jobs.rollup import coarser

    quorum = facts(spark, SegmentKind.QUORUM, _looks(2)).cache()
    minutes = quorum_rollup(quorum)
    order = ("cluster", "replica")
    merged = plain(coarser(minutes, ResultKind.QUORUM_ROLLUP, Grain.HOUR), *order)
    direct = plain(quorum_rollup(quorum, Grain.HOUR), *order)
    for mine, its in zip(merged, direct, strict=True):
        assert mine.pop("lag_ms_mean") == pytest.approx(its.pop("lag_ms_mean"))
        assert mine == its
