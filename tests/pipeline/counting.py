"""One job that is quick to plan, where it is the batches that are tested and not what is reckoned in them."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sql

from kafkadash.export.results import RESULTS, ResultKind
from kafkadash.export.schema import SegmentKind
from kafkadash.pipeline.schemas import schema_of
from kafkadash.pipeline.work import Frames, PipelineWork, WorkScope


def _count(frames: Frames) -> DataFrame:
    """Rows, highest lag and sum of commits of a cluster in a minute; a row that is counted twice is seen in each."""
    facts = frames[SegmentKind.GROUP_OFFSET].withColumn("bucket", sql.date_trunc("minute", "observed_at"))
    counted = facts.groupBy("cluster", "bucket").agg(
        sql.count("*").alias("lag_count"),
        sql.max("lag").alias("lag_max"),
        sql.sum("committed").cast("double").alias("lag_mean"),
    )
    nothing = {
        field.name: sql.lit(None).cast(field.dataType)
        for field in schema_of(RESULTS[ResultKind.CLUSTER_ROLLUP].columns)
        if field.name not in counted.columns
    }
    return counted.withColumns({**nothing, "grain": sql.lit("minute")})


COUNTING = (PipelineWork(ResultKind.CLUSTER_ROLLUP, frozenset({SegmentKind.GROUP_OFFSET}), WorkScope.MINUTES, _count),)
