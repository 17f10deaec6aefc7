"""What is kept of an hour that was rolled up, for what reaches over many hours: days, disk forecasts, the workload.

A week of facts is thousands of files and, where a cluster has 200,000 partitions, billions of rows. What is kept of an
hour is one folder of a few rows for each partition or directory, so that nobody reads the facts a second time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkadash.domain.segments import SegmentKind as Facts
from kafkadash.pipeline.jobs import forecast, workload
from kafkadash.pipeline.jobs.shape import ddl
from kafkadash.pipeline.lake import LAKE, hour_folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafkadash.domain.segments import Column
    from kafkadash.pipeline.store import Store

FOLDER = "hours"
HOURS = f"{LAKE}/{FOLDER}"
"""In the lake; results that days are merged from lie there as well, by their kind."""


@dataclass(frozen=True, slots=True)
class Piece:
    """``job`` makes it of facts from ``before`` minutes ahead of the hour on; ``at`` is the column of its answers that
    tells which of them are of the hour.
    """

    name: str
    reads: Facts
    columns: Sequence[Column]
    at: str
    job: Callable[[DataFrame], DataFrame]
    before: int = 0


PIECES: Mapping[str, Piece] = {
    piece.name: piece
    for piece in (
        Piece("workload_hours", Facts.REPLICA, workload.HOUR_COLUMNS, "hour", workload.hours, workload.BEFORE_MINUTES),
        Piece("disk_looks", Facts.BROKER, forecast.LOOK_COLUMNS, "observed_at", forecast.looks),
    )
}


@dataclass(frozen=True, slots=True)
class Kept:
    """Of one lake, or of several: the first that has something of an hour is asked."""

    store: Store
    folders: Sequence[str] = (HOURS,)

    def files(self, name: str, hour: int) -> list[str]:
        for folder in self.folders:
            found = self.store.sizes(f"{folder}/{name}/{hour_folder(hour)}")
            if files := sorted(file for file in found if file.endswith(".parquet")):
                return files
        return []

    def folder(self, name: str, hour: int) -> str:
        """Where one's own are put."""
        return f"{self.folders[0]}/{name}/{hour_folder(hour)}"

    def read(self, spark: SparkSession, name: str, columns: Sequence[Column], hours: Sequence[int]) -> DataFrame | None:
        """None where nothing was kept of any of these hours. Raises OSError."""
        files = [file for hour in hours for file in self.files(name, hour)]
        if not files:
            return None
        return spark.read.schema(ddl(columns)).parquet(*(self.store.address(file) for file in files))
