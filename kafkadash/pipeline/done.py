"""Record of scheduled work that is done (``lake/done.json``), and the kept summaries of hours that were rolled up.

Days, disk forecasts and the workload reach over many hours. A week of facts is thousands of files and, where a cluster
has 200,000 partitions, billions of rows. So each hour keeps one folder with a few rows per partition or directory, and
the facts are not read a second time.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kafkadash.export.schema import SegmentKind as Facts
from kafkadash.pipeline.jobs import forecast, workload
from kafkadash.pipeline.jobs.shape import ddl
from kafkadash.pipeline.lake import LAKE, hour_folder
from kafkadash.pipeline.store import PipelineStore

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from kafkadash.export.schema import SegmentColumn
    from kafkadash.pipeline.store import PipelineStore

FILE = "done.json"
_NAME = f"{LAKE}/{FILE}"
_KEPT_HOURS = 24 * 12


class DoneHours:
    """Work done per hour (hours since the epoch), by its name. A day is identified by its first hour."""

    def __init__(self, store: PipelineStore) -> None:
        self._store = store
        content = store.read(_NAME)
        said = json.loads(content) if content else {}
        # Days were named otherwise once; such a one is done again, with the same name and nothing else to do.
        self._said: dict[str, list[str]] = {name: how for name, how in said.items() if _parts(name)[2].isdecimal()}

    def get(self, what: str, hour: int) -> list[str] | None:
        """None where it was not done."""
        return self._said.get(f"{what} {hour}")

    def newest(self, what: str) -> int | None:
        """The last hour of which it was done."""
        return max(self.hours(what), default=None)

    def hours(self, what: str) -> list[int]:
        return sorted(int(number) for each, _, number in map(_parts, self._said) if each == what)

    def versions(self, hours: Iterable[int]) -> list[str]:
        """Return the recorded versions of those hours that are rolled up."""
        return ["/".join(self._said[f"hour {hour}"]) for hour in hours if f"hour {hour}" in self._said]

    def note(self, what: str, hour: int, how: Iterable[str]) -> None:
        """Raises OSError."""
        content = {**self._said, f"{what} {hour}": list(how)}
        newest = max(int(number) for _, _, number in map(_parts, content))
        self._said = {name: how for name, how in content.items() if newest - int(_parts(name)[2]) < _KEPT_HOURS}
        self._store.write(_NAME, json.dumps(self._said, indent=0).encode())


def _parts(name: str) -> tuple[str, str, str]:
    return name.partition(" ")


FOLDER = "hours"
HOURS = f"{LAKE}/{FOLDER}"
"""In the lake; results that days are merged from lie there as well, by their kind."""


@dataclass(frozen=True, slots=True)
class DonePiece:
    """``job`` makes it of facts from ``before`` minutes ahead of the hour on; ``at`` is the column of its answers that
    tells which of them are of the hour.
    """

    name: str
    reads: Facts
    columns: Sequence[SegmentColumn]
    at: str
    job: Callable[[DataFrame], DataFrame]
    before: int = 0


PIECES: Mapping[str, DonePiece] = {
    piece.name: piece
    for piece in (
        DonePiece(
            "workload_hours",
            Facts.REPLICA,
            workload.HOUR_COLUMNS,
            "hour",
            workload.compute_hours,
            workload.BEFORE_MINUTES,
        ),
        DonePiece("disk_looks", Facts.BROKER, forecast.LOOK_COLUMNS, "observed_at", forecast.select_looks),
    )
}


@dataclass(frozen=True, slots=True)
class KeptHours:
    """Kept hours of one or more lakes. The first lake that has files of an hour is used."""

    store: PipelineStore
    folders: Sequence[str] = (HOURS,)

    def files(self, name: str, hour: int) -> list[str]:
        for folder in self.folders:
            found = self.store.sizes(f"{folder}/{name}/{hour_folder(hour)}")
            if files := sorted(file for file in found if file.endswith(".parquet")):
                return files
        return []

    def folder(self, name: str, hour: int) -> str:
        """Return the folder for this process's own files of the hour."""
        return f"{self.folders[0]}/{name}/{hour_folder(hour)}"

    def read(
        self, spark: SparkSession, name: str, columns: Sequence[SegmentColumn], hours: Sequence[int]
    ) -> DataFrame | None:
        """None where nothing was kept of any of these hours. Raises OSError."""
        files = [file for hour in hours for file in self.files(name, hour)]
        if not files:
            return None
        return spark.read.schema(ddl(columns)).parquet(*(self.store.address(file) for file in files))
