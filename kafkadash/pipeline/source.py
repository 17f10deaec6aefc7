"""Which manifests are new: a source of Spark's that looks only where something can have come since.

Manifests come one after the other, in folders by hour: an address is greater than every earlier one (the writer's times
never go back, ``observe.segments.flusher``). So the last address is all that has to be kept, and a look lists the last
hour. Spark's own source of files lists every one that is kept, at each look, and keeps the names of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from pyspark.sql.datasource import DataSource, SimpleDataSourceStreamReader
from pyspark.sql.streaming.datasource import SupportsTriggerAvailableNow
from pyspark.sql.types import StructType

from kafkadash.domain.segments import SegmentKind
from kafkadash.pipeline.flushes import FOLDER
from kafkadash.pipeline.store import Store, open_store

NAME = "kafkadash_manifests"
_LAST = "last"

Offset = dict[str, str]
"""{"last": address of the last manifest below the segments' folder, '' before the first}."""


def after(store: Store, last: str) -> Iterator[str]:
    """Addresses of manifests below the segments' folder that come after this one, in order. Raises OSError."""
    kind = str(SegmentKind.MANIFEST)
    _, day, hour, name = last.split("/") if last else ("", "", "", "")
    for date in _names(store, kind, day):
        for each in _names(store, f"{kind}/{date}", hour if date == day else ""):
            same = (date, each) == (day, hour)
            for file in _names(store, f"{kind}/{date}/{each}", name if same else ""):
                if file.endswith(".parquet") and not (same and file == name):
                    yield f"{kind}/{date}/{each}/{file}"


def _names(store: Store, folder: str, least: str) -> Iterator[str]:
    return (name for name in store.names(f"{FOLDER}/{folder}") if name >= least and name[0] not in "_.")


class Manifests(DataSource):
    """Options: ``uri`` of the pipeline's folder; ``at_once``, how many manifests make a batch at most."""

    @classmethod
    def name(cls) -> str:
        return NAME

    def schema(self) -> str:
        return "manifest STRING"

    def simpleStreamReader(self, schema: StructType) -> SimpleDataSourceStreamReader:  # noqa: N802
        return _Reader(open_store(self.options["uri"]), int(self.options["at_once"]))


class _Reader(SimpleDataSourceStreamReader, SupportsTriggerAvailableNow):
    def __init__(self, store: Store, at_once: int) -> None:
        self._store, self._at_once = store, at_once
        self._until: str | None = None

    def initialOffset(self) -> Offset:  # noqa: N802
        return {_LAST: ""}

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        *_, self._until = ["", *after(self._store, "")]

    def read(self, start: Offset) -> tuple[Iterator[tuple[str]], Offset]:
        found = list(islice(self._upto(start[_LAST], self._until), self._at_once))
        return iter([(name,) for name in found]), {_LAST: found[-1] if found else start[_LAST]}

    def readBetweenOffsets(self, start: Offset, end: Offset) -> Iterator[tuple[str]]:  # noqa: N802
        return ((name,) for name in self._upto(start[_LAST], end[_LAST]))

    def _upto(self, last: str, until: str | None) -> Iterator[str]:
        for name in after(self._store, last):
            if until is not None and name > until:
                return
            yield name
