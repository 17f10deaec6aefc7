"""Rollups: how lag and sizes were distributed in a minute, an hour, a day.

What a rollup of a bucket is made of must hold *all* rows of that bucket: results are absolute values that take the
place of older ones. A batch that touches a minute therefore passes the whole minute from the lake, not its own rows.

The same rows give the same results, percentiles and sketches included, in whatever order and files they come (see
``sketch``). So rows of stream, backfill and batch are compared for equality, with no tolerance, as long as each hour is
merged from the same minutes and each day from the same hours.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kafkadash.domain.pipeline_results import RESULTS, Grain, ResultKind
from kafkadash.pipeline.jobs.shape import bucket, result
from kafkadash.pipeline.jobs.sketch import distribution, gathered, merged, together

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

_DISTRIBUTION: dict[ResultKind, str] = {
    ResultKind.LAG_ROLLUP: "lag",
    ResultKind.TOPIC_ROLLUP: "lag",
    ResultKind.BROKER_ROLLUP: "replica_bytes",
    ResultKind.CLUSTER_ROLLUP: "lag",
    ResultKind.QUORUM_ROLLUP: "lag_ms",
}
"""What each kind of rollup is a distribution of: the prefix of its columns."""


def in_buckets(facts: DataFrame, grain: Grain) -> DataFrame:
    return facts.withColumns({"grain": sql.lit(str(grain)), "bucket": bucket(sql.col("observed_at"), grain)})


def lags(group_offset: DataFrame, grain: Grain = Grain.MINUTE) -> DataFrame:
    """Lags in records, gathered for each topic that a group reads: what the rollups of lag are made of.

    As small as they are, so that rows of facts are read and sorted once for all three.
    """
    return gathered(in_buckets(group_offset, grain), RESULTS[ResultKind.LAG_ROLLUP].key, sql.col("lag"))


def lag_rollup(of_lags: DataFrame) -> DataFrame:
    """Lag in records of the partitions of a topic that a group reads; ``of_lags`` is of ``lags``, as in the next."""
    keys = RESULTS[ResultKind.LAG_ROLLUP].key
    return result(distribution(of_lags, keys, "lag"), ResultKind.LAG_ROLLUP)


def cluster_rollup(of_lags: DataFrame) -> DataFrame:
    """Lag in records of all groups and partitions of a cluster."""
    keys = RESULTS[ResultKind.CLUSTER_ROLLUP].key
    return result(distribution(together(of_lags, keys), keys, "lag"), ResultKind.CLUSTER_ROLLUP)


def topic_rollup(of_lags: DataFrame, replica: DataFrame, manifest: DataFrame, grain: Grain = Grain.MINUTE) -> DataFrame:
    """Lag of all groups that read a topic, and its bytes on all disks; topics that nobody reads have a count of 0.

    Bytes are those of the bucket's newest refresh of the replicas in which every broker answered for every replica of
    the topic; null where there was none, for a sum of what is known would be too small.
    """
    keys = RESULTS[ResultKind.TOPIC_ROLLUP].key
    sizes = in_buckets(_whole(replica, manifest), grain)
    refresh = sizes.groupBy(*keys, "epoch", "seq").agg(
        sql.sum("bytes_on_disk").alias("bytes"),
        sql.bool_and(sql.col("bytes_on_disk").isNotNull() & sql.col("_whole")).alias("known"),
    )
    newest = refresh.groupBy(*keys).agg(
        sql.max_by("bytes", sql.when(sql.col("known"), sql.struct("epoch", "seq"))).alias("bytes_on_disk")
    )
    nothing = {"_values": sql.array().cast("array<bigint>"), "_high": sql.lit(None), "_low": sql.lit(None)}
    parts = of_lags.select(*keys, *nothing, sql.lit(None).cast("bigint").alias("bytes_on_disk"))
    parts = parts.unionByName(newest.withColumns(nothing))
    rows = together(parts, keys, sql.max("bytes_on_disk").alias("bytes_on_disk"))
    return result(distribution(rows, [*keys, "bytes_on_disk"], "lag"), ResultKind.TOPIC_ROLLUP)


def broker_rollup(replica: DataFrame, grain: Grain = Grain.MINUTE) -> DataFrame:
    """Bytes of the replicas on a broker, and how many there were in the bucket's newest refresh that saw any."""
    keys = RESULTS[ResultKind.BROKER_ROLLUP].key
    # Looks at moves read log ends alone, of a few replicas; they say nothing of how many there are.
    sizes = in_buckets(replica.where(sql.col("bytes_on_disk").isNotNull() | (sql.col("method") == "size")), grain)
    seen = gathered(sizes, [*keys, "epoch", "seq"], sql.col("bytes_on_disk"), sql.count("*").alias("seen"))
    newest = sql.max_by("seen", sql.struct("epoch", "seq")).alias("replicas")
    rows = distribution(together(seen, keys, newest), [*keys, "replicas"], "replica_bytes")
    return result(rows, ResultKind.BROKER_ROLLUP)


def coarser(finer: DataFrame, kind: ResultKind, grain: Grain) -> DataFrame:
    """Longer buckets from shorter ones (hours from minutes, days from hours), by merging their sketches.

    ``finer``: rows of ``kind``, all of one grain that is shorter than ``grain``; ValueError for a kind without buckets.
    """
    if kind not in _DISTRIBUTION:
        raise ValueError(f"{kind} has no buckets that could be merged")
    keys, name = RESULTS[kind].key, _DISTRIBUTION[kind]
    longer = finer.withColumns(
        {"grain": sql.lit(str(grain)), "_short": sql.col("bucket"), "bucket": bucket(sql.col("bucket"), grain)}
    )
    rows = merged(longer, keys, name)
    extra = _EXTRA.get(kind)
    if extra:
        rows = rows.join(longer.groupBy(*keys).agg(*(how(name).alias(name) for name, how in extra.items())), list(keys))
    return result(rows, kind)


def _last(name: str) -> Column:
    return sql.max_by(name, sql.when(sql.col(name).isNotNull(), sql.col("_short")))


_EXTRA: dict[ResultKind, dict[str, Callable[[str], Column]]] = {
    ResultKind.TOPIC_ROLLUP: {"bytes_on_disk": _last},
    ResultKind.BROKER_ROLLUP: {"replicas": _last},
    ResultKind.QUORUM_ROLLUP: {"fetch_age_ms_max": sql.max, "leader_changes": sql.sum, "epoch_changes": sql.sum},
}
"""Columns that are no part of the distribution, and how they go into a longer bucket."""


def _whole(facts: DataFrame, manifest: DataFrame) -> DataFrame:
    """``facts`` with ``_whole``: in this refresh every broker answered and nothing went wrong, its manifest says."""
    said = manifest.where(sql.col("kind") == "replica").select(
        "cluster",
        "epoch",
        "seq",
        (sql.size("not_answered") + sql.length(sql.coalesce("errors", sql.lit("")))).alias("_missing"),
    )
    joined = facts.join(said, ["cluster", "epoch", "seq"], "left")
    return joined.withColumn("_whole", sql.col("_missing").eqNullSafe(0))
