"""Writing results: rows of each kind, then the marker, without which none of them exists."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from kafkadash.domain.pipeline_results import MARKER_FORMAT, MARKERS, RESULTS, ResultKind
from kafkadash.pipeline.flushes import Flush, SetAside
from kafkadash.pipeline.schemas import schema_of
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

FOLDER = "results"


@dataclass(frozen=True, slots=True)
class Name:
    """Of one result; the same for whatever makes it again."""

    query: str
    batch: int

    def __str__(self) -> str:
        return f"{self.query}-{self.batch}"


def is_done(store: Store, name: Name) -> bool:
    """A result that has its marker is whole, and may be being read: it is never written again."""
    return store.has(_marker(name))


def write_rows(store: Store, name: Name, kind: ResultKind, rows: DataFrame) -> None:
    """Columns in their order and types, whatever the job made of them; raises Spark's errors where one does not fit."""
    schema = schema_of(RESULTS[kind].columns)
    rows.select(*(f.col(column.name).cast(column.dataType) for column in schema)).write.mode("overwrite").parquet(
        store.address(f"{FOLDER}/{kind}/{name}")
    )


def write_marker(
    store: Store, name: Name, kinds: Iterable[ResultKind], flushes: Iterable[Flush], set_aside: Iterable[SetAside]
) -> Mapping[str, int]:
    """The rows of each kind, counted in what was written."""
    rows = {kind.value: count_rows(store, f"{FOLDER}/{kind}/{name}") for kind in kinds}
    marker: dict[str, Any] = {
        "format": MARKER_FORMAT,
        "query": name.query,
        "batch": name.batch,
        "written_at": datetime.now(UTC).isoformat(),
        "kinds": {kind: {"rows": count} for kind, count in rows.items()},
        "flushes": [[flush.epoch, flush.seq, flush.committed_at.isoformat()] for flush in flushes],
        "set_aside": [{"file": each.file, "why": each.why} for each in set_aside],
    }
    store.write(_marker(name), json.dumps(marker, indent=1, ensure_ascii=False).encode())
    return rows


def count_rows(store: Store, folder: str) -> int:
    """By the footers of its files."""
    import pyarrow.parquet as pq

    rows = 0
    for name in store.sizes(folder):
        if name.endswith(".parquet"):
            with store.open(name) as opened:
                rows += pq.ParquetFile(opened).metadata.num_rows
    return rows


def _marker(name: Name) -> str:
    return f"{FOLDER}/{MARKERS}/{name}.json"
