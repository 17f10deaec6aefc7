"""Workload of partitions: their size and write rate by hour of the week, which the planner uses.

There are two steps, because a week of facts is too much for one: ``compute_hours`` summarizes each hour once, and
``compute_workload`` combines those of a week. A week has each hour of the week once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.export.results import HOURS_OF_WEEK, ResultKind, RollupGrain
from kafkadash.export.schema import ColumnType
from kafkadash.export.schema import SegmentColumn as Described
from kafkadash.pipeline.jobs.shape import floor_to_bucket, select_columns, to_epoch_seconds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES = 12
"""Rates of which an hour of the week has percentiles; with fewer it says how many it has."""
LONGEST = 900
"""Seconds between two looks; over a longer gap a rate would belong to no time that could be named."""
BEFORE_MINUTES = LONGEST // 60
"""Before an hour: from the look that its first one is compared with."""
GROWTH_SECONDS = 86_400
"""A growth per day is told of at least one."""

HOUR_COLUMNS = (
    Described("cluster", ColumnType.STRING),
    Described("topic", ColumnType.STRING),
    Described("partition", ColumnType.INT),
    Described("hour", ColumnType.TIME),
    Described("in_p50", ColumnType.DOUBLE, required=False),
    Described("in_p95", ColumnType.DOUBLE, required=False),
    Described("samples", ColumnType.LONG),
    Described("size_bytes", ColumnType.LONG),
    Described("first_at", ColumnType.TIME),
    Described("last_at", ColumnType.TIME),
)

_PARTITION = ("cluster", "topic", "partition")
_DAY = 86_400.0
_WEEK_SECONDS = HOURS_OF_WEEK * 3600


def compute_hours(replica: DataFrame) -> DataFrame:
    """Per partition and hour in which its leader's size was seen: the rates of bytes taken in, and the last size.

    Taken in is what the leader's log grew by from one look to the next. A log that got smaller says nothing of what
    came in: such a pair of looks is left out, as is one with another leader. What was deleted and taken in between the
    same two looks cannot be told apart, so with short retention the rates are on the low side.
    """
    leader = replica.where(sql.col("is_leader") & ~sql.col("is_future") & sql.col("bytes_on_disk").isNotNull())
    order = Window.partitionBy(*_PARTITION).orderBy("observed_at", "epoch", "seq")
    before = {f"_{name}": sql.lag(name).over(order) for name in ("bytes_on_disk", "observed_at", "broker")}
    looks = leader.select(*_PARTITION, "observed_at", "epoch", "seq", "broker", "bytes_on_disk").withColumns(before)
    seconds = to_epoch_seconds(sql.col("observed_at")) - to_epoch_seconds(sql.col("_observed_at"))
    grown = sql.col("bytes_on_disk") - sql.col("_bytes_on_disk")
    usable = (sql.col("broker") == sql.col("_broker")) & (seconds > 0) & (seconds <= LONGEST) & (grown >= 0)
    rated = looks.select(
        *_PARTITION,
        floor_to_bucket(sql.col("observed_at"), RollupGrain.HOUR).alias("hour"),
        "observed_at",
        sql.struct("observed_at", "epoch", "seq", "bytes_on_disk").alias("_look"),
        sql.when(usable, grown / seconds).alias("_rate"),
    )
    enough = sql.count("_rate") >= SAMPLES
    return rated.groupBy(*_PARTITION, "hour").agg(
        sql.when(enough, sql.percentile("_rate", 0.5)).alias("in_p50"),
        sql.when(enough, sql.percentile("_rate", 0.95)).alias("in_p95"),
        sql.count("_rate").alias("samples"),
        sql.max("_look").getField("bytes_on_disk").alias("size_bytes"),
        sql.min("observed_at").alias("first_at"),
        sql.max("observed_at").alias("last_at"),
    )


def compute_workload(of_hours: DataFrame) -> DataFrame:
    """Per partition, of its hours in the week before its last; hours in which nothing could be told are null.

    Growth is the slope of a line through the last size of each hour. Sums run over hours in their order, so that they
    come out the same in whatever order rows are read.
    """
    names = ("hour", "in_p50", "in_p95", "samples", "size_bytes", "first_at", "last_at")
    gathered = of_hours.groupBy(*_PARTITION).agg(sql.sort_array(sql.collect_list(sql.struct(*names))).alias("_all"))
    last = sql.element_at("_all", -1)
    begin = sql.unix_seconds(last["hour"]) - _WEEK_SECONDS
    week = gathered.withColumn("_week", sql.filter("_all", lambda one: sql.unix_seconds(one["hour"]) > begin))
    first, last = sql.element_at("_week", 1), sql.element_at("_week", -1)
    made = week.withColumns(
        {
            "size_bytes": last["size_bytes"],
            "from_at": first["first_at"],
            "to_at": last["last_at"],
            "samples": sql.aggregate("_week", sql.lit(0).cast("bigint"), lambda sum_, one: sum_ + one["samples"]),
            "_sums": _sums(),
            "hours_of_week": sql.transform("_week", lambda one: _hour_of_week(one["hour"])),
            "in_p50": _of_each("in_p50"),
            "in_p95": _of_each("in_p95"),
            "_typical": sql.filter(sql.transform("_week", lambda one: one["in_p50"]), sql.isnotnull),
            # The largest, and of several the first hour of the week.
            "_peak": sql.array_max(
                sql.transform(
                    "_week",
                    lambda one: sql.struct(one["in_p95"].alias("rate"), (-_hour_of_week(one["hour"])).alias("hour")),
                )
            ),
        }
    )
    typical = sql.aggregate("_typical", sql.lit(0.0), lambda sum_, one: sum_ + one)
    peak = sql.col("_peak")["rate"]
    return select_columns(
        made.withColumns(
            {
                "growth_per_day": _growth(),
                "in_typical": sql.when(sql.size("_typical") > 0, typical / sql.size("_typical")),
                "in_peak": peak,
                "peak_hour": sql.when(peak.isNotNull(), -sql.col("_peak")["hour"]),
            }
        ),
        ResultKind.WORKLOAD,
    )


def _hour_of_week(at: Column) -> Column:
    """0 is Monday 00:00 UTC; 1970 began on a Thursday."""
    return sql.pmod(sql.floor(sql.unix_seconds(at) / 3600) + 3 * 24, sql.lit(HOURS_OF_WEEK)).cast("int")


def _of_each(name: str) -> Column:
    """Hour by hour; whole bytes per second."""
    return sql.transform("_week", lambda one: sql.round(one[name]).cast("bigint"))


def _sums() -> Column:
    """Over hours in their order, of seconds and bytes since the first: what a line is drawn with."""
    first = sql.element_at("_week", 1)
    points = sql.transform(
        "_week",
        lambda one: sql.struct(
            (to_epoch_seconds(one["last_at"]) - to_epoch_seconds(first["last_at"])).alias("x"),
            (one["size_bytes"] - first["size_bytes"]).cast("double").alias("y"),
        ),
    )
    nothing = sql.struct(*(sql.lit(0.0).alias(name) for name in ("x", "y", "xx", "xy")))
    return sql.aggregate(
        points,
        nothing,
        lambda sum_, one: sql.struct(
            (sum_["x"] + one["x"]).alias("x"),
            (sum_["y"] + one["y"]).alias("y"),
            (sum_["xx"] + one["x"] * one["x"]).alias("xx"),
            (sum_["xy"] + one["x"] * one["y"]).alias("xy"),
        ),
    )


def _growth() -> Column:
    """Bytes a day; null over less than a day, and of fewer than ``SAMPLES`` hours."""
    sums, count = sql.col("_sums"), sql.size("_week")
    slope = (sums["xy"] - sums["x"] * sums["y"] / count) / sql.nullif(
        sums["xx"] - sums["x"] * sums["x"] / count, sql.lit(0.0)
    )
    long = to_epoch_seconds(sql.col("to_at")) - to_epoch_seconds(sql.col("from_at")) >= GROWTH_SECONDS
    return sql.when(long & (count >= SAMPLES), slope * _DAY)
