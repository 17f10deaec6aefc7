"""What partitions weigh and take in, by hour of the week: what the planner places by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.domain.pipeline_results import ResultKind
from kafkadash.pipeline.jobs.shape import epoch, result

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES = 12
"""Rates of which an hour of the week has percentiles; with fewer it says how many it has."""
LONGEST = 3600
"""Seconds between two looks; over a longer gap a rate would belong to no hour."""
GROWTH_SECONDS = 86_400
"""A growth per day is told of at least one."""

_PARTITION = ("cluster", "topic", "partition")
_HOURS = 7 * 24
_DAY = 86_400.0


def workload(replica: DataFrame) -> DataFrame:
    """Per partition and hour of the week (in which its leader was looked at twice within ``LONGEST``).

    Taken in is what the leader's log grew by from one look to the next. A log that got smaller says nothing of what
    came in: such a pair of looks is left out, as is one with another leader. What was deleted and taken in between the
    same two looks cannot be told apart, so with short retention the rates are on the low side.
    """
    leader = replica.where(sql.col("is_leader") & ~sql.col("is_future") & sql.col("bytes_on_disk").isNotNull())
    order = Window.partitionBy(*_PARTITION).orderBy("observed_at", "epoch", "seq")
    at, size = epoch(sql.col("observed_at")), sql.col("bytes_on_disk")
    before = {name: sql.lag(name).over(order) for name in ("bytes_on_disk", "observed_at", "broker")}
    looks = leader.withColumns({f"_{name}": column for name, column in before.items()})
    seconds, grown = at - epoch(sql.col("_observed_at")), size - sql.col("_bytes_on_disk")
    usable = (sql.col("broker") == sql.col("_broker")) & (seconds > 0) & (seconds <= LONGEST) & (grown >= 0)
    rates = looks.where(usable).select(
        *_PARTITION, _hour_of_week().alias("hour_of_week"), (grown / seconds).alias("_rate")
    )
    enough = sql.count("*") >= SAMPLES
    cells = rates.groupBy(*_PARTITION, "hour_of_week").agg(
        sql.when(enough, sql.percentile("_rate", 0.5)).alias("in_p50"),
        sql.when(enough, sql.percentile("_rate", 0.95)).alias("in_p95"),
        sql.count("*").alias("samples"),
    )
    return result(cells.join(_sizes(leader), list(_PARTITION)), ResultKind.WORKLOAD)


def _hour_of_week() -> Column:
    """0 is Monday 00:00 UTC; 1970 began on a Thursday."""
    hours = sql.floor(sql.unix_seconds("observed_at") / 3600) + 3 * 24
    return sql.pmod(hours, sql.lit(_HOURS))


def _sizes(leader: DataFrame) -> DataFrame:
    """Newest size and growth, with the time they are from and to.

    As a window in order of time: sums of doubles then come out the same whatever order rows are read in.
    """
    order = Window.partitionBy(*_PARTITION).orderBy("observed_at", "epoch", "seq")
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    at = epoch(sql.col("observed_at"))
    relative = leader.withColumns(
        {
            "_x": at - sql.first(at).over(whole),
            "_y": (sql.col("bytes_on_disk") - sql.first("bytes_on_disk").over(whole)).cast("double"),
        }
    )
    fitted = relative.withColumns(
        {
            "_slope": sql.regr_slope(sql.col("_y"), sql.col("_x")).over(whole),
            "_seconds": sql.max("_x").over(whole),
            "from_at": sql.first("observed_at").over(whole),
            "_n": sql.count("*").over(whole),
            "_place": sql.row_number().over(order),
        }
    )
    long = (sql.col("_seconds") >= GROWTH_SECONDS) & (sql.col("_n") >= SAMPLES)
    return fitted.where(sql.col("_place") == sql.col("_n")).select(
        *_PARTITION,
        sql.col("bytes_on_disk").alias("size_bytes"),
        sql.when(long, sql.col("_slope") * _DAY).alias("growth_per_day"),
        "from_at",
        sql.col("observed_at").alias("to_at"),
    )
