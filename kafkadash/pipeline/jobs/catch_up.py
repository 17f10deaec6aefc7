"""How fast replicas that are being added catch up, and when they will have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql import Window
from pyspark.sql import functions as sql

from kafkadash.domain.pipeline_results import Grain, ResultKind
from kafkadash.pipeline.jobs.shape import bucket, epoch, result

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_PARTITION = ("cluster", "topic", "partition")
_REFRESH = ("observed_at", "epoch", "seq")
_COPY = (*_PARTITION, "broker")
_MINUTES = 10
"""In which somebody looked, up to the newest look at a partition. What a batch sees reaches back further than that,
and how much further differs: nothing may depend on it."""


def catch_up(reassignment: DataFrame, replica: DataFrame, manifest: DataFrame) -> DataFrame:
    """Of each replica that the newest listing of its cluster is adding.

    The rate is that by which the copy's distance to its leader shrinks, so net of what is produced meanwhile, as a line
    through the looks of the last minutes. Distances are records where log ends were read, made bytes by the mean size
    of the leader's records; otherwise bytes on disk. Fewer than two looks have no rate, a distance that does not shrink
    no end, and a copy of which nothing was read has neither; none of these is a zero.
    """
    adding = _adding(reassignment, manifest)
    replica = _recent(adding, replica)
    records = _lines(_distances(adding, replica, "log_end")).withColumnsRenamed(
        {"_left": "_left_records", "_rate": "_records_per_second", "_at": "_records_at"}
    )
    sizes = _lines(_distances(adding, replica, "bytes_on_disk"))
    mean = _mean_record(replica)
    rows = (
        adding.join(records, list(_COPY), "left").join(sizes, list(_COPY), "left").join(mean, list(_PARTITION), "left")
    )
    exact = sql.col("_records_per_second").isNotNull() | sql.col("_rate").isNull()
    by_records = sql.col("_left_records").isNotNull() & exact
    size = sql.col("_record")
    rate = sql.when(by_records, sql.col("_records_per_second")).otherwise(sql.col("_rate"))
    left = sql.when(by_records, sql.col("_left_records")).otherwise(sql.col("_left"))
    factor = sql.when(by_records, size).otherwise(sql.lit(1.0))
    eta = sql.when(left <= 0, sql.lit(0.0)).when(rate > 0, left / rate)
    return result(
        rows.withColumns(
            {
                "observed_at": sql.coalesce(sql.when(by_records, sql.col("_records_at")), "_at", "_listed_at"),
                "bytes_per_second": rate * factor,
                "left_bytes": sql.round(left * factor),
                "eta_seconds": eta,
            }
        ),
        ResultKind.CATCH_UP,
    )


def _adding(reassignment: DataFrame, manifest: DataFrame) -> DataFrame:
    """Partition and broker; of the newest listing, which may list nothing any more."""
    listings = manifest.where(sql.col("kind") == "reassignment")
    newest = listings.groupBy("cluster").agg(sql.max(sql.struct(*_REFRESH)).alias("_listing"))
    current = newest.select("cluster", *(sql.col(f"_listing.{name}").alias(name) for name in _REFRESH))
    return (
        reassignment.join(current, ["cluster", *_REFRESH])
        .select(*_PARTITION, sql.explode("adding").alias("broker"), sql.col("observed_at").alias("_listed_at"))
        .dropDuplicates(list(_COPY))
    )


def _recent(adding: DataFrame, replica: DataFrame) -> DataFrame:
    """Looks at the partitions that get a copy, in the last ``_MINUTES``."""
    timed = replica.withColumn("_minute", bucket(sql.col("observed_at"), Grain.MINUTE))
    newest_first = Window.partitionBy("cluster").orderBy(sql.desc("_minute"))
    minutes = timed.select("cluster", "_minute").distinct().withColumn("_back", sql.row_number().over(newest_first))
    looks = timed.join(adding.select(*_PARTITION).distinct(), list(_PARTITION), "left_semi")
    newest = sql.min("_back").over(Window.partitionBy(*_PARTITION))
    counted = looks.join(minutes, ["cluster", "_minute"]).withColumn("_back", sql.col("_back") - newest)
    return counted.where(sql.col("_back") < _MINUTES).drop("_minute", "_back")


def _distances(adding: DataFrame, replica: DataFrame, what: str) -> DataFrame:
    """Of each look at leader and copy together: how much the copy lacks."""
    looks = replica.where(sql.col(what).isNotNull() & ~sql.col("is_future"))
    leaders = looks.where(sql.col("is_leader")).select(*_PARTITION, *_REFRESH, sql.col(what).alias("_ahead"))
    copies = looks.join(adding.select(*_COPY), list(_COPY), "left_semi").where(~sql.col("is_leader"))
    return copies.join(leaders, [*_PARTITION, *_REFRESH]).select(
        *_COPY, *_REFRESH, sql.greatest(sql.col("_ahead") - sql.col(what), sql.lit(0)).alias("_distance")
    )


def _lines(distances: DataFrame) -> DataFrame:
    """Newest distance, and by how much it shrinks a second along the line through all of them.

    As a window in order of time: sums of doubles then come out the same whatever order rows are read in.
    """
    order = Window.partitionBy(*_COPY).orderBy(*_REFRESH)
    whole = order.rowsBetween(Window.unboundedPreceding, Window.unboundedFollowing)
    # From the first look on: squares of seconds since 1970 would leave nothing of a double.
    seconds = epoch(sql.col("observed_at")) - sql.first(epoch(sql.col("observed_at"))).over(whole)
    sloped = distances.withColumn("_seconds", seconds).withColumns(
        {
            "_rate": -sql.regr_slope(sql.col("_distance").cast("double"), sql.col("_seconds")).over(whole),
            "_n": sql.row_number().over(Window.partitionBy(*_COPY).orderBy(*(sql.desc(name) for name in _REFRESH))),
        }
    )
    return sloped.where(sql.col("_n") == 1).select(
        *_COPY, sql.col("_distance").alias("_left"), "_rate", sql.col("observed_at").alias("_at")
    )


def _mean_record(replica: DataFrame) -> DataFrame:
    """Bytes of a record: the leader's newest size through its newest span of offsets, each where it is known.

    Of a compacted log that is less than a record has, and by as much are the bytes that are left.
    """
    leader = replica.where(sql.col("is_leader") & ~sql.col("is_future"))
    span = sql.col("log_end") - sql.col("log_start")
    at = sql.struct(*_REFRESH)
    newest = leader.groupBy(*_PARTITION).agg(
        sql.max_by("bytes_on_disk", sql.when(sql.col("bytes_on_disk").isNotNull(), at)).alias("_bytes"),
        sql.max_by(span, sql.when(span > 0, at)).alias("_span"),
    )
    return newest.select(*_PARTITION, (sql.col("_bytes") / sql.col("_span")).alias("_record"))
