"""When disks will be full, directory by directory: never over their sum, which hides the one that is."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.export.results import RESULTS, ResultKind
from kafkadash.export.schema import COLUMNS, SegmentKind
from kafkadash.pipeline.jobs.shape import select_columns, to_epoch_seconds

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

SAMPLES = 10
SECONDS = 3600
"""A line is drawn through no fewer looks, and through no shorter time."""

JUMP = 0.1
"""Share of the directory: so much from one look to the next, and ten times of what is usual there, is no growth …"""
JUMPS = 2
"""… if it is as seldom as this: deleted topics, or replicas that came. More of them are how this disk lives."""

LOOK_SECONDS = 300
_LOOK = ("cluster", "broker", "directory", "observed_at", "epoch", "seq", "total_bytes", "usable_bytes")
LOOK_COLUMNS = tuple(column for column in COLUMNS[SegmentKind.BROKER] if column.name in _LOOK)

_DAY = 86_400.0


def select_looks(broker: DataFrame) -> DataFrame:
    """The last look at each directory in every ``LOOK_SECONDS``: of days of looks as many as a line needs."""
    keys = RESULTS[ResultKind.DISK_FORECAST].key
    known = broker.where(sql.col("total_bytes").isNotNull() & sql.col("usable_bytes").isNotNull())
    found = sql.struct("observed_at", "epoch", "seq", "total_bytes", "usable_bytes")
    at = sql.floor(sql.unix_seconds("observed_at") / LOOK_SECONDS).alias("_at")
    last = known.groupBy(*keys, at).agg(sql.max(found).alias("_last"))
    return last.select(*keys, "_last.*").select(*_LOOK)


def disk_forecast(broker: DataFrame) -> DataFrame:
    """Days until each directory is 80 or 90 % full, from a line through its used bytes since the last jump.

    The range is what the line gives with its slope two standard errors steeper and flatter; the high end is null where
    the flatter one never gets there. All are null where the disk does not fill, 0 where it is that full already.
    Directories without sizes, and those with less than ``SAMPLES`` looks or ``SECONDS``, have no row.
    """
    keys = RESULTS[ResultKind.DISK_FORECAST].key
    known = broker.where(sql.col("total_bytes").isNotNull() & sql.col("usable_bytes").isNotNull())
    used = known.withColumn("_used", sql.col("total_bytes") - sql.col("usable_bytes"))
    line = _fit_line(_since_last_jump(used, keys), keys)
    enough = (sql.col("_n") >= SAMPLES) & (sql.col("_seconds") >= SECONDS)
    days = {}
    for share in (80, 90):
        for end, slope in (("", sql.col("_slope")), ("_low", _steep(2)), ("_high", _steep(-2))):
            days[f"days_to_{share}{end}"] = _days_to(share, slope)
    return select_columns(
        line.where(enough).withColumns(
            {
                "used_bytes": sql.col("_used"),
                "grows_per_day": sql.col("_slope") * _DAY,
                "samples": sql.col("_n"),
                **days,
            }
        ),
        ResultKind.DISK_FORECAST,
    )


def _since_last_jump(used: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    order = Window.partitionBy(*keys).orderBy("observed_at", "epoch", "seq")
    stepped = used.withColumn("_step", sql.abs(sql.col("_used") - sql.lag("_used").over(order)))
    usual = stepped.groupBy(*keys).agg(sql.percentile("_step", 0.5).alias("_usual"))
    large = (sql.col("_step") > sql.col("total_bytes") * JUMP) & (sql.col("_step") > sql.col("_usual") * 10)
    jumps = sql.count(sql.when(large, 1))
    counted = stepped.join(usual, list(keys)).withColumns(
        {"_jumps": jumps.over(order), "_all": jumps.over(Window.partitionBy(*keys))}
    )
    return counted.where((sql.col("_all") > JUMPS) | (sql.col("_jumps") == sql.col("_all")))


def _fit_line(used: DataFrame, keys: tuple[str, ...]) -> DataFrame:
    """The newest row of each, with slope (bytes a second), its standard error, looks and seconds.

    As a window in order of time: sums of doubles then come out the same whatever order rows are read in.
    """
    order = Window.partitionBy(*keys).orderBy("observed_at", "epoch", "seq")
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    at = to_epoch_seconds(sql.col("observed_at"))
    relative = used.withColumns(
        {
            # From the first look on: squares of seconds since 1970 would leave nothing of a double.
            "_x": at - sql.first(at).over(whole),
            "_y": (sql.col("_used") - sql.first("_used").over(whole)).cast("double"),
        }
    )
    x, y = sql.col("_x"), sql.col("_y")
    fitted = relative.withColumns(
        {
            "_n": sql.count("*").over(whole),
            "_seconds": sql.max("_x").over(whole),
            "_slope": sql.regr_slope(y, x).over(whole),
            "_sxx": sql.regr_sxx(y, x).over(whole),
            "_syy": sql.regr_syy(y, x).over(whole),
            "from_at": sql.first("observed_at").over(whole),
            "_place": sql.row_number().over(order),
        }
    )
    slope, sxx = sql.col("_slope"), sql.col("_sxx")
    rest = sql.greatest(sql.col("_syy") - slope * slope * sxx, sql.lit(0.0))
    freedom = sql.nullif(sql.greatest(sql.col("_n") - 2, sql.lit(0)) * sxx, sql.lit(0.0))
    return fitted.where(sql.col("_place") == sql.col("_n")).withColumn("_error", sql.sqrt(rest / freedom))


def _steep(errors: int) -> Column:
    return sql.col("_slope") + sql.col("_error") * errors


def _days_to(share: int, slope: Column) -> Column:
    """By this slope, bytes a second."""
    left = sql.col("total_bytes") * share / 100.0 - sql.col("_used")
    fills = (sql.col("_slope") > 0) & (slope > 0)
    return sql.when(left <= 0, sql.lit(0.0)).when(fills, left / (slope * _DAY))
