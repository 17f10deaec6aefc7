"""History of the controller quorum: the lag of each node, and the number of leader changes.

All times are on the leader's clock: its own ``last_caught_up_ts`` is its now. Our clock is never subtracted from them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.export.results import RESULTS, ResultKind, RollupGrain
from kafkadash.pipeline.jobs.rollup import compute_distribution, gather_values, in_buckets
from kafkadash.pipeline.jobs.shape import select_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_REFRESH = ("cluster", "observed_at", "epoch", "seq")
_BESIDES = {
    "fetch_age_ms_max": "_fetch_age",
    "leader_changes": "leader_changes",  # of the bucket, in each of its rows
    "epoch_changes": "epoch_changes",
}


def quorum_rollup(quorum: DataFrame, grain: RollupGrain = RollupGrain.MINUTE) -> DataFrame:
    """Per node and bucket; lag in ms, of which neither the leader's own nor what is not known counts.

    A node that led all the time, or was never heard, has a count of 0. A change counts in the bucket in which its
    refresh was seen, if ``quorum`` holds the refresh before as well; what changed between two refreshes and back again
    shows in the epochs only, which count as many changes as they went up by.
    """
    keys = RESULTS[ResultKind.QUORUM_ROLLUP].key
    looks = _summarize_refreshes(quorum, grain).select("*", sql.explode("_nodes").alias("_node"))
    led = sql.col("_node.replica") == sql.col("_node.leader")
    seen = looks.withColumns(
        {
            "replica": sql.col("_node.replica"),
            "_lag": sql.when(~led, _measure_since("_node.last_caught_up_ts")),
            "_fetch_age": sql.when(~led, _measure_since("_node.last_fetch_ts")),
        }
    )
    besides = {name: sql.max(column).alias(name) for name, column in _BESIDES.items()}
    lags = gather_values(seen, keys, sql.col("_lag"), *besides.values())
    return select_columns(compute_distribution(lags, [*keys, *besides], "lag_ms"), ResultKind.QUORUM_ROLLUP)


def _measure_since(name: str) -> Column:
    """Milliseconds; null where one of the times is not known. Kafka's −1 is such a one, should it ever come in."""
    then, now = (sql.unix_micros(sql.col(each)) for each in (name, "_now"))
    known = (then >= 0) & (now >= 0)
    return sql.when(known, sql.floor(sql.greatest(now - then, sql.lit(0)) / 1000))


def _summarize_refreshes(quorum: DataFrame, grain: RollupGrain) -> DataFrame:
    """A row for each refresh: its leader's now, all nodes of it, and what changed in its bucket."""
    is_leader = sql.col("replica") == sql.col("leader")
    refreshes = quorum.groupBy(*_REFRESH).agg(
        sql.max(sql.when(is_leader, sql.col("last_caught_up_ts"))).alias("_now"),
        sql.max("leader_epoch").alias("leader_epoch"),
        sql.max_by("leader", "leader_epoch").alias("leader"),
        sql.collect_list(sql.struct("replica", "leader", "last_caught_up_ts", "last_fetch_ts")).alias("_nodes"),
    )
    order = Window.partitionBy("cluster").orderBy("observed_at", "epoch", "seq")
    risen = sql.greatest(sql.col("leader_epoch") - sql.lag("leader_epoch").over(order), sql.lit(0))
    other = (sql.col("leader") != sql.lag("leader").over(order)).cast("bigint")
    whole = Window.partitionBy("cluster", "grain", "bucket")
    return in_buckets(refreshes.withColumns({"_risen": risen, "_other": other}), grain).withColumns(
        {
            "leader_changes": sql.coalesce(sql.sum("_other").over(whole), sql.lit(0)),
            "epoch_changes": sql.coalesce(sql.sum("_risen").over(whole), sql.lit(0)),
        }
    )
