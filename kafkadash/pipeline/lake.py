"""The lake: what was observed, by kind, date, hour and batch, as one query has taken it in.

``lake/<query id>/<kind>/date=…/hour=…/batch=…/``: a batch that is done again writes the same folders anew. Rows of an
hour are read from the folders that this names itself, so that Spark lists nothing it does not need.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from pyspark.sql import functions as f

from kafkadash.domain.segments import COLUMNS, SegmentKind
from kafkadash.pipeline.flushes import FOLDER
from kafkadash.pipeline.schemas import schema_of
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

LAKE = "lake"
MINUTES_OF_HOUR = 60


@dataclass(frozen=True, slots=True)
class Span:
    """Minutes since the epoch, both in it; of one cluster, or of all."""

    first: int
    last: int
    cluster: str | None = None

    def hours(self) -> range:
        return range(self.first // MINUTES_OF_HOUR, self.last // MINUTES_OF_HOUR + 1)


def stretches(minutes: Collection[int]) -> Iterator[Span]:
    """Consecutive ones together."""
    begun: list[int] = []
    for minute in sorted(minutes):
        if begun and minute != begun[-1] + 1:
            yield Span(begun[0], begun[-1])
            begun = []
        begun.append(minute)
    if begun:
        yield Span(begun[0], begun[-1])


@dataclass(frozen=True)
class Lake:
    spark: SparkSession
    store: Store
    query: str

    @property
    def folder(self) -> str:
        return f"{LAKE}/{self.query}"

    def write(self, batch: int, kind: SegmentKind, files: Sequence[str]) -> None:
        """Rows of these segments (addresses below the segments' folder)."""
        rows = read_segments(self.spark, self.store, kind, files)
        (
            rows.withColumn("date", f.date_format("observed_at", "yyyy-MM-dd"))
            .withColumn("hour", f.date_format("observed_at", "HH"))
            .withColumn("batch", f.lit(f"{batch:012d}"))
            .write.mode("overwrite")
            .option("partitionOverwriteMode", "dynamic")
            .partitionBy("date", "hour", "batch")
            .parquet(self.store.address(f"{self.folder}/{kind}"))
        )

    def rows(self, kind: SegmentKind, spans: Collection[Span], until: int) -> DataFrame:
        """What was observed in these spans, as batches up to ``until`` brought it."""
        hours = sorted({hour for span in spans for hour in span.hours()})
        found = read_files(self.spark, kind, [self.store.address(leaf) for leaf in self.leaves(kind, hours, until)])
        return found.where(within(spans))

    def leaves(self, kind: SegmentKind, hours: Iterable[int], until: int) -> Iterator[str]:
        """Folders of batches, of hours since the epoch."""
        for hour in hours:
            folder = f"{self.folder}/{kind}/{hour_folder(hour)}"
            for name in self.store.names(folder):
                if name.startswith("batch=") and int(name.removeprefix("batch=")) <= until:
                    yield f"{folder}/{name}"


def hour_folder(hour: int) -> str:
    """Of an hour since the epoch."""
    at = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(hours=hour)
    return f"date={at:%Y-%m-%d}/hour={at:%H}"


def read_segments(spark: SparkSession, store: Store, kind: SegmentKind, files: Sequence[str]) -> DataFrame:
    return read_files(spark, kind, [store.address(f"{FOLDER}/{file}") for file in files])


def read_files(spark: SparkSession, kind: SegmentKind, addresses: Sequence[str]) -> DataFrame:
    """No rows where there are no files."""
    schema = schema_of(COLUMNS[kind])
    if not addresses:
        return spark.createDataFrame([], schema)
    return spark.read.schema(schema).parquet(*addresses)


def within(spans: Collection[Span]) -> Column:
    """Whether a row was observed in one of these, as ranges, which Parquet's statistics answer."""
    wanted = f.expr("false")
    at = f.col("observed_at")
    for span in spans:
        inside = (at >= _time(span.first)) & (at < _time(span.last + 1))
        wanted = wanted | (inside if span.cluster is None else inside & (f.col("cluster") == span.cluster))
    return wanted


def _time(minute: int) -> Column:
    return f.timestamp_seconds(f.lit(minute * 60))
