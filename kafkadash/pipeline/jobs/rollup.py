"""Rollups: distributions of lag, sizes and traffic over a minute, an hour, a day, with percentiles that can be merged.

A rollup of a bucket must be made of *all* rows of that bucket: results are absolute values that replace older ones. A
batch that touches a minute therefore passes the whole minute from the lake, not only its own rows.

The same rows give the same results, percentiles and sketches included, in whatever order and files they come. So rows
of stream, backfill and batch are compared for equality, with no tolerance, as long as each hour is merged from the same
minutes and each day from the same hours.

A sketch is a list of at most ``POINTS`` values in order. Of N samples, sorted and cut into n pieces of equal size (to
one sample), value i is the middle of piece i: it stands for ⌊(i + 1) · N / n⌋ − ⌊i · N / n⌋ samples. While N ≤ POINTS
that is each sample itself, and nothing is lost. Beyond, a cut moves no rank by more than half a piece, 1 / (2 · POINTS)
of all samples; merging adds nothing, cutting again after a merge adds the same once more. Samples → minute → hour → day
is three cuts and at most 3 / 512 = 0.6 % of rank for any data; the percentiles of a bucket are taken before its cut.

Spark's own ``kll_sketch_agg_bigint`` is not used: KLL halves its levels by coin (``java.util.Random`` in DataSketches'
``KllSketch``, seeded by the time, with no way to set it from the DataFrame API). Above ``k`` samples two runs over the
same rows give different percentiles, while a replay, a backfill and the stream must give the same rows (ADR 14).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

from kafkadash.export.results import ALL_BROKERS, ALL_TOPICS, RESULTS, ResultKind, RollupGrain
from kafkadash.pipeline.jobs.shape import floor_to_bucket, select_columns

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

POINTS = 256
PERCENTILES = (50, 95, 99)
_EXACT = "decimal(38,0)"
"""Sums are taken over decimals: exact, so in no order in particular."""


def gather_values(samples: DataFrame, keys: Sequence[str], value: Column, *besides: Column) -> DataFrame:
    """Return one row per ``keys`` with all their values in order, the parts of their sum, and ``besides``.

    ``value``: a long per row of ``samples``; null is a sample that is not counted, and keys that have no other keep
    their row, with no values. The values of one row's keys are held in memory, 8 bytes each.
    """
    # Two sums of longs stay exact where one would overflow, and are cheaper than one of decimals.
    return (
        samples.withColumn("_value", value.cast("bigint"))
        .groupBy(*keys)
        .agg(
            sql.sort_array(sql.collect_list("_value")).alias("_values"),
            sql.sum(sql.shiftright("_value", 32)).alias("_high"),
            sql.sum(sql.col("_value").bitwiseAND(sql.lit(0xFFFF_FFFF))).alias("_low"),
            *besides,
        )
    )


def merge_gathered(parts: DataFrame, keys: Sequence[str], *besides: Column) -> DataFrame:
    """Merge rows made by ``gather_values`` for fewer keys."""
    return parts.groupBy(*keys).agg(
        sql.sort_array(sql.flatten(sql.collect_list("_values"))).alias("_values"),
        sql.sum("_high").alias("_high"),
        sql.sum("_low").alias("_low"),
        *besides,
    )


def compute_distribution(gathered: DataFrame, kept: Sequence[str], name: str) -> DataFrame:
    """The columns ``<name>_count`` … ``<name>_sketch`` of ``export.results``, of rows as ``gathered`` made;
    before them those that are ``kept``.
    """
    values, count = sql.col("_values"), sql.size("_values").cast("bigint")
    mean = (sql.col("_high") * sql.lit(2.0**32) + sql.col("_low")) / sql.nullif(count, sql.lit(0))
    return gathered.select(
        *kept,
        count.alias(f"{name}_count"),
        sql.get(values, sql.size(values) - 1).alias(f"{name}_max"),
        mean.alias(f"{name}_mean"),
        *(sql.get(values, _rank(count, share) - 1).alias(f"{name}_p{share}") for share in PERCENTILES),
        _cut(values, count).alias(f"{name}_sketch"),
    )


def _rank(count: Column, share: int) -> Column:
    """From 1; nearest rank: of the lowest value that at least ``share`` % of the samples do not exceed."""
    return sql.ceil(count * share / 100).cast("int")


def _cut(values: Column, count: Column) -> Column:
    """``values`` in order."""
    middle = sql.transform(
        sql.sequence(sql.lit(0), sql.lit(POINTS - 1)),
        lambda piece: sql.get(values, sql.floor((piece * 2 + 1) * count / (2 * POINTS)).cast("int")),
    )
    same = sql.get(values, sql.lit(0)) == sql.get(values, sql.size(values) - 1)
    return sql.when(same, sql.slice(values, 1, 1)).when(count <= POINTS, values).otherwise(middle)


def merge_distributions(rows: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """Merge rows that have the columns of ``compute_distribution`` already, into one row per ``keys``."""
    count, sketch = sql.col(f"{name}_count"), sql.col(f"{name}_sketch")
    # The sum comes back from the mean to the record while it is below 2^53; decimals add up alike in any order.
    total = sql.round(sql.col(f"{name}_mean") * count).cast("decimal(38,0)")
    collected = rows.groupBy(*keys).agg(
        sql.sum(count).alias("_count"),
        sql.max(f"{name}_max").alias("_max"),
        (sql.sum(total).cast("double") / sql.nullif(sql.sum(count), sql.lit(0))).alias("_mean"),
        sql.sort_array(sql.flatten(sql.collect_list(_weigh_points(sketch, count)))).alias("_points"),
    )
    read = sql.aggregate("_points", _nothing_read(), lambda read, point: _read_point(read, point, sql.col("_count")))
    return collected.withColumn("_read", read).select(
        *keys,
        sql.col("_count").alias(f"{name}_count"),
        sql.col("_max").alias(f"{name}_max"),
        sql.col("_mean").alias(f"{name}_mean"),
        *(sql.col(f"_read.p{share}").alias(f"{name}_p{share}") for share in PERCENTILES),
        _collapse_points(sql.col("_read.points")).alias(f"{name}_sketch"),
    )


def _weigh_points(sketch: Column, count: Column) -> Column:
    """Structs (value, samples that it stands for) of the points of a sketch."""
    points = sql.greatest(sql.size(sketch), sql.lit(1))

    def upto(index: Column) -> Column:
        return sql.floor(index * count / points)

    return sql.transform(
        sketch, lambda value, index: sql.struct(value.alias("value"), (upto(index + 1) - upto(index)).alias("weight"))
    )


def _nothing_read() -> Column:
    nothing = sql.lit(None).cast("bigint")
    return sql.struct(
        sql.lit(0).cast("bigint").alias("upto"),
        *(nothing.alias(f"p{share}") for share in PERCENTILES),
        sql.array().cast("array<bigint>").alias("points"),
    )


def _read_point(read: Column, point: Column, total: Column) -> Column:
    """Add the next point, in order of values: fill in the percentiles and piece middles that it covers.

    Of n pieces of N samples, ⌊(2n · r + N − 1) / 2N⌋ have a middle whose rank is at most r.
    """
    pieces = sql.least(total, sql.lit(POINTS))
    upto = read["upto"] + point["weight"]

    def middles(rank: Column) -> Column:
        return sql.floor((pieces * rank * 2 + total - 1) / (total * 2))

    held = (middles(upto) - middles(read["upto"])).cast("int")
    return sql.struct(
        upto.alias("upto"),
        *(
            sql.coalesce(read[f"p{share}"], sql.when(upto * 100 >= total * share, point["value"])).alias(f"p{share}")
            for share in PERCENTILES
        ),
        sql.when(held > 0, sql.concat(read["points"], sql.array_repeat(point["value"], held)))
        .otherwise(read["points"])
        .alias("points"),
    )


def _collapse_points(points: Column) -> Column:
    """Reduce the points to one if all have the same value."""
    same = sql.get(points, sql.lit(0)) == sql.get(points, sql.size(points) - 1)
    return sql.when(same, sql.slice(points, 1, 1)).otherwise(points)


_DISTRIBUTION: dict[ResultKind, str] = {
    ResultKind.LAG_ROLLUP: "lag",
    ResultKind.TOPIC_ROLLUP: "lag",
    ResultKind.BROKER_ROLLUP: "replica_bytes",
    ResultKind.CLUSTER_ROLLUP: "lag",
    ResultKind.QUORUM_ROLLUP: "lag_ms",
    ResultKind.BYTES_IN: "bytes_in",
    ResultKind.RECORDS_IN: "milli_records_in",
}
"""Prefix of the columns of each kind of rollup."""


def in_buckets(facts: DataFrame, grain: RollupGrain) -> DataFrame:
    return facts.withColumns({"grain": sql.lit(str(grain)), "bucket": floor_to_bucket(sql.col("observed_at"), grain)})


def gather_lags(group_offset: DataFrame, grain: RollupGrain = RollupGrain.MINUTE) -> DataFrame:
    """Lags in records, gathered for each topic that a group reads: what the rollups of lag are made of.

    As small as they are, so that rows of facts are read and sorted once for all three.
    """
    return gather_values(in_buckets(group_offset, grain), RESULTS[ResultKind.LAG_ROLLUP].key, sql.col("lag"))


def lag_rollup(of_lags: DataFrame) -> DataFrame:
    """Lag in records of the partitions of a topic that a group reads; ``of_lags`` is of ``gather_lags``."""
    keys = RESULTS[ResultKind.LAG_ROLLUP].key
    return select_columns(compute_distribution(of_lags, keys, "lag"), ResultKind.LAG_ROLLUP)


def cluster_rollup(of_lags: DataFrame) -> DataFrame:
    """Lag in records of all groups and partitions of a cluster."""
    keys = RESULTS[ResultKind.CLUSTER_ROLLUP].key
    return select_columns(compute_distribution(merge_gathered(of_lags, keys), keys, "lag"), ResultKind.CLUSTER_ROLLUP)


def topic_rollup(
    of_lags: DataFrame, replica: DataFrame, manifest: DataFrame, grain: RollupGrain = RollupGrain.MINUTE
) -> DataFrame:
    """Lag of all groups that read a topic, and its bytes on all disks; topics that nobody reads have a count of 0.

    Bytes are those of the bucket's newest refresh of the replicas in which every broker answered for every replica of
    the topic; null where there was none, for a sum of what is known would be too small.
    """
    keys = RESULTS[ResultKind.TOPIC_ROLLUP].key
    sizes = in_buckets(_flag_complete(replica, manifest), grain)
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
    rows = merge_gathered(parts, keys, sql.max("bytes_on_disk").alias("bytes_on_disk"))
    return select_columns(compute_distribution(rows, [*keys, "bytes_on_disk"], "lag"), ResultKind.TOPIC_ROLLUP)


def broker_rollup(replica: DataFrame, grain: RollupGrain = RollupGrain.MINUTE) -> DataFrame:
    """Bytes of the replicas on a broker, and how many there were in the bucket's newest refresh that saw any."""
    keys = RESULTS[ResultKind.BROKER_ROLLUP].key
    # Looks at moves read log ends alone, of a few replicas; they say nothing of how many there are.
    sizes = in_buckets(replica.where(sql.col("bytes_on_disk").isNotNull() | (sql.col("method") == "size")), grain)
    seen = gather_values(sizes, [*keys, "epoch", "seq"], sql.col("bytes_on_disk"), sql.count("*").alias("seen"))
    newest = sql.max_by("seen", sql.struct("epoch", "seq")).alias("replicas")
    rows = compute_distribution(merge_gathered(seen, keys, newest), [*keys, "replicas"], "replica_bytes")
    return select_columns(rows, ResultKind.BROKER_ROLLUP)


def traffic_rollup(traffic: DataFrame, kind: ResultKind, grain: RollupGrain = RollupGrain.MINUTE) -> DataFrame:
    """Bytes per second (BYTES_IN), or thousandths of a record per second (RECORDS_IN), of each topic, each broker and
    the cluster.

    Rates are doubles, rounded here to whole units, so that sums are exact and the same in any order. Samples without a
    known rate are no rows at all: of compacted topics there would be one a minute that says nothing.
    """
    keys, name = RESULTS[kind].key, _DISTRIBUTION[kind]
    rate, left_out = _find_rate(kind)
    known = in_buckets(traffic.where(rate.isNotNull()), grain).withColumns(
        {
            "topic": sql.coalesce("topic", sql.lit(ALL_TOPICS)),
            "broker": sql.coalesce("broker", sql.lit(ALL_BROKERS)),
        }
    )
    rows = gather_values(known, keys, sql.round(rate), sql.max(left_out).alias("left_out"))
    return select_columns(compute_distribution(rows, [*keys, "left_out"], name), kind)


def _find_rate(kind: ResultKind) -> tuple[Column, Column]:
    """Return the rate in the unit of its rollup, and the number of partitions that it leaves out."""
    if kind is ResultKind.BYTES_IN:
        return sql.col("bytes_rate"), sql.col("unknown") + sql.col("without_bytes")
    return sql.col("records_rate") * 1000, sql.col("unknown")


def coarsen_rollup(finer: DataFrame, kind: ResultKind, grain: RollupGrain) -> DataFrame:
    """Longer buckets from shorter ones (hours from minutes, days from hours), by merging their sketches.

    ``finer``: rows of ``kind``, all of one grain that is shorter than ``grain``; ValueError for a kind without buckets.
    """
    if kind not in _DISTRIBUTION:
        raise ValueError(f"{kind} has no buckets that could be merged")
    keys, name = RESULTS[kind].key, _DISTRIBUTION[kind]
    longer = finer.withColumns(
        {"grain": sql.lit(str(grain)), "_short": sql.col("bucket"), "bucket": floor_to_bucket(sql.col("bucket"), grain)}
    )
    rows = merge_distributions(longer, keys, name)
    extra = _EXTRA.get(kind)
    if extra:
        rows = rows.join(longer.groupBy(*keys).agg(*(how(name).alias(name) for name, how in extra.items())), list(keys))
    return select_columns(rows, kind)


def _last(name: str) -> Column:
    return sql.max_by(name, sql.when(sql.col(name).isNotNull(), sql.col("_short")))


_EXTRA: dict[ResultKind, dict[str, Callable[[str], Column]]] = {
    ResultKind.TOPIC_ROLLUP: {"bytes_on_disk": _last},
    ResultKind.BROKER_ROLLUP: {"replicas": _last},
    ResultKind.QUORUM_ROLLUP: {"fetch_age_ms_max": sql.max, "leader_changes": sql.sum, "epoch_changes": sql.sum},
    ResultKind.BYTES_IN: {"left_out": sql.max},
    ResultKind.RECORDS_IN: {"left_out": sql.max},
}
"""Columns that are no part of the distribution, and how they go into a longer bucket."""


def _flag_complete(facts: DataFrame, manifest: DataFrame) -> DataFrame:
    """``facts`` with ``_flag_complete``: its manifest says that every broker answered and nothing went wrong."""
    sizes = manifest.where(sql.col("kind") == "replica").select(
        "cluster",
        "epoch",
        "seq",
        (sql.size("not_answered") + sql.length(sql.coalesce("errors", sql.lit("")))).alias("_missing"),
    )
    joined = facts.join(sizes, ["cluster", "epoch", "seq"], "left")
    return joined.withColumn("_whole", sql.col("_missing").eqNullSafe(0))
