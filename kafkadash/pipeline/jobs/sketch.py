"""Distributions that merge: percentiles of long buckets from those of short ones, the same each time.

A sketch is a list of at most ``POINTS`` values in order. Of N samples, sorted and cut into n pieces of equal size (to
one sample), value i is the middle of piece i: it stands for ⌊(i + 1) · N / n⌋ − ⌊i · N / n⌋ samples. While N ≤ POINTS
that is each sample itself, and nothing is lost. Beyond, a cut moves no rank by more than half a piece, 1 / (2 · POINTS)
of all samples; merging adds nothing, cutting again after a merge adds the same once more. Samples → minute → hour → day
is three cuts and at most 3 / 512 = 0.6 % of rank for any data; the percentiles of a bucket are taken before its cut.

Why not Spark's own ``kll_sketch_agg_bigint``: KLL halves its levels by coin (``java.util.Random`` in DataSketches'
``KllSketch``, seeded by the time, no way to set it from the DataFrame API). Above ``k`` samples two runs over the same
rows give different percentiles, while a replay, a backfill and the stream are promised to give the same rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pyspark.sql import functions as sql

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

POINTS = 256
PERCENTILES = (50, 95, 99)
_EXACT = "decimal(38,0)"
"""Sums are taken over decimals: exact, so in no order in particular."""


def gathered(samples: DataFrame, keys: Sequence[str], value: Column, *besides: Column) -> DataFrame:
    """One row per ``keys`` with all values of theirs, in order, what their sum is made of, and what is asked besides.

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


def together(parts: DataFrame, keys: Sequence[str], *besides: Column) -> DataFrame:
    """As ``gathered``, of rows that it made, for fewer keys."""
    return parts.groupBy(*keys).agg(
        sql.sort_array(sql.flatten(sql.collect_list("_values"))).alias("_values"),
        sql.sum("_high").alias("_high"),
        sql.sum("_low").alias("_low"),
        *besides,
    )


def distribution(gathered: DataFrame, kept: Sequence[str], name: str) -> DataFrame:
    """The columns ``<name>_count`` … ``<name>_sketch`` of ``domain.pipeline_results``, of rows as ``gathered`` made;
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


def merged(rows: DataFrame, keys: Sequence[str], name: str) -> DataFrame:
    """As ``distribution``, of rows that have these columns already: one row per ``keys`` from many."""
    count, sketch = sql.col(f"{name}_count"), sql.col(f"{name}_sketch")
    # The sum comes back from the mean to the record while it is below 2^53; decimals add up alike in any order.
    total = sql.round(sql.col(f"{name}_mean") * count).cast("decimal(38,0)")
    collected = rows.groupBy(*keys).agg(
        sql.sum(count).alias("_count"),
        sql.max(f"{name}_max").alias("_max"),
        (sql.sum(total).cast("double") / sql.nullif(sql.sum(count), sql.lit(0))).alias("_mean"),
        sql.sort_array(sql.flatten(sql.collect_list(_weighted(sketch, count)))).alias("_points"),
    )
    read = sql.aggregate("_points", _nothing_read(), lambda read, point: _read(read, point, sql.col("_count")))
    return collected.withColumn("_read", read).select(
        *keys,
        sql.col("_count").alias(f"{name}_count"),
        sql.col("_max").alias(f"{name}_max"),
        sql.col("_mean").alias(f"{name}_mean"),
        *(sql.col(f"_read.p{share}").alias(f"{name}_p{share}") for share in PERCENTILES),
        _collapsed(sql.col("_read.points")).alias(f"{name}_sketch"),
    )


def _weighted(sketch: Column, count: Column) -> Column:
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


def _read(read: Column, point: Column, total: Column) -> Column:
    """One more point, in order of values: which percentiles and which middles of pieces does it hold?

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


def _collapsed(points: Column) -> Column:
    """Of one value only, once."""
    same = sql.get(points, sql.lit(0)) == sql.get(points, sql.size(points) - 1)
    return sql.when(same, sql.slice(points, 1, 1)).otherwise(points)
