"""How fast replicas that are being added catch up, and when they will have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.export.results import ResultKind, RollupGrain
from kafkadash.pipeline.jobs.shape import floor_to_bucket, select_columns, to_epoch_seconds

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = ("cluster", "topic", "partition")
_REFRESH = ("observed_at", "epoch", "seq")
_COPY = (*_PARTITION, "broker")
_MEASURES = ("log_end", "bytes_on_disk")
_SEEN = ("is_leader", "is_future", "log_start", *_MEASURES)
_MINUTES = 10
"""In which somebody looked, up to the newest look at a partition. What a batch sees reaches back further than that,
and how much further differs: nothing may depend on it."""


def catch_up(reassignment: DataFrame, replica: DataFrame, manifest: DataFrame) -> DataFrame:
    """Return the catch-up rate and ETA of each replica that the newest listing of its cluster is adding.

    The rate is that by which the copy's distance to its leader shrinks, so net of what is produced meanwhile, as a line
    through the looks of the last minutes. Distances are records where log ends were read, made bytes by the mean size
    of the leader's records; otherwise bytes on disk. Fewer than two looks have no rate, a distance that does not shrink
    no end, and a copy of which nothing was read has neither; none of these is a zero.
    """
    adding = _list_copies(reassignment, _find_listings(replica, manifest))
    looks = replica.join(sql.broadcast(adding.select(*_PARTITION)), list(_PARTITION), "left_semi")
    # A row for each copy among the looks, and all that is known of the copy put into it: rows are moved once, by
    # partition, and nothing is joined to them any more.
    rows = looks.select(*_COPY, *_REFRESH, *_SEEN).unionByName(adding, allowMissingColumns=True)
    rows = _fit_lines(_add_distances(_mean_record(_keep_recent(rows))))
    exact = sql.col("_rate_log_end").isNotNull() | sql.col("_rate_bytes_on_disk").isNull()
    by_records = sql.col("_left_log_end").isNotNull() & exact
    rate, left = (
        sql.when(by_records, sql.col(f"{name}_log_end")).otherwise(sql.col(f"{name}_bytes_on_disk"))
        for name in ("_rate", "_left")
    )
    factor = sql.when(by_records, sql.col("_record")).otherwise(sql.lit(1.0))
    eta = sql.when(left <= 0, sql.lit(0.0)).when(rate > 0, left / rate)
    at = sql.coalesce(sql.when(by_records, sql.col("_at_log_end")), "_at_bytes_on_disk", "_listed_at")
    return select_columns(
        rows.withColumns(
            {
                "observed_at": at,
                "bytes_per_second": rate * factor,
                "left_bytes": sql.round(left * factor),
                "eta_seconds": eta,
            }
        ),
        ResultKind.CATCH_UP,
    )


def _find_listings(replica: DataFrame, manifest: DataFrame) -> DataFrame:
    """A row for each cluster: its newest listing, and the minutes in which replicas were looked at, newest first."""
    listings = manifest.where(sql.col("kind") == "reassignment").select("cluster", sql.struct(*_REFRESH).alias("_one"))
    minutes = replica.select("cluster", floor_to_bucket(sql.col("observed_at"), RollupGrain.MINUTE).alias("_minute"))
    both = listings.unionByName(minutes, allowMissingColumns=True).groupBy("cluster")
    return both.agg(
        sql.max("_one").alias("_listing"), sql.sort_array(sql.collect_set("_minute"), asc=False).alias("_minutes")
    )


def _list_copies(reassignment: DataFrame, clusters: DataFrame) -> DataFrame:
    """A row for each copy of the newest listing, which may list nothing any more."""
    current = clusters.select("cluster", *(sql.col(f"_listing.{name}").alias(name) for name in _REFRESH), "_minutes")
    return reassignment.join(sql.broadcast(current), ["cluster", *_REFRESH]).select(
        *_PARTITION, sql.explode("adding").alias("broker"), sql.col("observed_at").alias("_listed_at"), "_minutes"
    )


def _keep_recent(rows: DataFrame) -> DataFrame:
    """Without looks that are older than the last ``_MINUTES``, and without future replicas."""
    whole = Window.partitionBy(*_PARTITION)
    newest = floor_to_bucket(sql.max("observed_at").over(whole), RollupGrain.MINUTE)
    timed = rows.withColumns({"_newest": newest, "_minutes": sql.max("_minutes").over(whole)})
    counted = sql.filter("_minutes", lambda minute: minute <= sql.col("_newest"))
    oldest = sql.coalesce(sql.get(counted, sql.lit(_MINUTES - 1)), sql.array_min("_minutes"))
    recent = (sql.col("observed_at") >= oldest) & ~sql.col("is_future")
    return timed.where(sql.col("_listed_at").isNotNull() | recent)


def _mean_record(rows: DataFrame) -> DataFrame:
    """Bytes of a record: the leader's newest size through its newest span of offsets, each where it is known.

    Of a compacted log that is less than a record has, and by as much are the bytes that are left.
    """
    span = sql.col("log_end") - sql.col("log_start")
    size, at = sql.col("bytes_on_disk"), sql.when(sql.col("is_leader"), sql.struct(*_REFRESH))
    whole = Window.partitionBy(*_PARTITION)
    newest_size = sql.max_by(size, sql.when(size.isNotNull(), at)).over(whole)
    newest_span = sql.max_by(span, sql.when(span > 0, at)).over(whole)
    return rows.withColumns({"_size": newest_size, "_span": newest_span}).withColumn(
        "_record", sql.col("_size") / sql.col("_span")
    )


def _add_distances(rows: DataFrame) -> DataFrame:
    """How much the copy lacks of its leader, where one look saw both."""
    window = Window.partitionBy(*_PARTITION, *_REFRESH)
    ahead = {
        f"_ahead_{name}": sql.max(sql.when(sql.col("is_leader"), sql.col(name))).over(window) for name in _MEASURES
    }
    lacking = {
        f"_distance_{name}": sql.when(
            ~sql.col("is_leader") & sql.col(name).isNotNull() & sql.col(f"_ahead_{name}").isNotNull(),
            sql.greatest(sql.col(f"_ahead_{name}") - sql.col(name), sql.lit(0)),
        )
        for name in _MEASURES
    }
    return rows.withColumns(ahead).withColumns(lacking)


def _fit_lines(rows: DataFrame) -> DataFrame:
    """Rows of copies: the newest distance, and by how much it shrinks a second along the line through all of them.

    As a window in order of time: sums of doubles then come out the same whatever order rows are read in.
    """
    order = Window.partitionBy(*_COPY).orderBy(*_REFRESH)
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    at = {
        f"_at_{name}": sql.when(sql.col(f"_distance_{name}").isNotNull(), sql.col("observed_at")) for name in _MEASURES
    }
    # From the first look on: squares of seconds since 1970 would leave nothing of a double.
    begin = {f"_begin_{name}": sql.first(f"_at_{name}", ignorenulls=True).over(whole) for name in _MEASURES}
    lines = {"_n": sql.row_number().over(order)}
    for name in _MEASURES:
        seconds = to_epoch_seconds(sql.col(f"_at_{name}")) - to_epoch_seconds(sql.col(f"_begin_{name}"))
        distance = sql.col(f"_distance_{name}")
        lines[f"_rate_{name}"] = -sql.regr_slope(distance.cast("double"), seconds).over(whole)
        lines[f"_left_{name}"] = sql.last(distance, ignorenulls=True).over(whole)
        lines[f"_at_{name}"] = sql.last(f"_at_{name}", ignorenulls=True).over(whole)
    # That of the copy stands before its looks: it has no time.
    found = rows.withColumns(at).withColumns(begin).withColumns(lines)
    return found.where(sql.col("_listed_at").isNotNull() & (sql.col("_n") == 1))
