"""History of the controllers' quorum: how far each node was behind, and how often the leader changed.

All times are on the leader's clock: its own ``last_caught_up_ts`` is its now. Ours is never subtracted from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.domain.pipeline_results import RESULTS, Grain, ResultKind
from kafkadash.pipeline.jobs.rollup import in_buckets
from kafkadash.pipeline.jobs.shape import result
from kafkadash.pipeline.jobs.sketch import distribution, gathered

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_REFRESH = ("cluster", "observed_at", "epoch", "seq")


def quorum_rollup(quorum: DataFrame, grain: Grain = Grain.MINUTE) -> DataFrame:
    """Per node and bucket; lag in ms, of which neither the leader's own nor what is not known counts.

    A node that led all the time, or was never heard, has a count of 0. A change counts in the bucket in which its
    refresh was seen, if ``quorum`` holds the refresh before as well; what changed between two refreshes and back again
    shows in the epochs only, which count as many changes as they went up by.
    """
    keys = RESULTS[ResultKind.QUORUM_ROLLUP].key
    clock = (
        quorum.where(sql.col("replica") == sql.col("leader"))
        .groupBy(*_REFRESH)
        .agg(sql.max("last_caught_up_ts").alias("_now"))
    )
    seen = quorum.join(clock, list(_REFRESH), "left")
    led = sql.col("replica") == sql.col("leader")
    seen = in_buckets(seen, grain).withColumns(
        {
            "_lag": sql.when(~led, _since("last_caught_up_ts")),
            "_fetch_age": sql.when(~led, _since("last_fetch_ts")),
        }
    )
    lags = gathered(seen, keys, sql.col("_lag"), sql.max("_fetch_age").alias("fetch_age_ms_max"))
    rows = distribution(lags, [*keys, "fetch_age_ms_max"], "lag_ms")
    return result(rows.join(_changes(quorum, grain), ["cluster", "grain", "bucket"]), ResultKind.QUORUM_ROLLUP)


def _since(name: str) -> Column:
    """Milliseconds; null where one of the times is not known. Kafka's −1 is such a one, should it ever come in."""
    then, now = (sql.unix_micros(sql.col(each)) for each in (name, "_now"))
    known = (then >= 0) & (now >= 0)
    return sql.when(known, sql.floor(sql.greatest(now - then, sql.lit(0)) / 1000))


def _changes(quorum: DataFrame, grain: Grain) -> DataFrame:
    refreshes = quorum.groupBy(*_REFRESH).agg(
        sql.max("leader_epoch").alias("leader_epoch"), sql.max_by("leader", "leader_epoch").alias("leader")
    )
    order = Window.partitionBy("cluster").orderBy("observed_at", "epoch", "seq")
    risen = sql.greatest(sql.col("leader_epoch") - sql.lag("leader_epoch").over(order), sql.lit(0))
    other = (sql.col("leader") != sql.lag("leader").over(order)).cast("bigint")
    return (
        in_buckets(refreshes.withColumns({"_risen": risen, "_other": other}), grain)
        .groupBy("cluster", "grain", "bucket")
        .agg(
            sql.coalesce(sql.sum("_other"), sql.lit(0)).alias("leader_changes"),
            sql.coalesce(sql.sum("_risen"), sql.lit(0)).alias("epoch_changes"),
        )
    )
