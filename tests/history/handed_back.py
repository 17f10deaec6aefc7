"""Results as the pipeline hands them back, written with PyArrow from the tables of the seam.

The time of the buckets, and what a turn of the ingest is to a test.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from kafkadash.export.results import MARKER_FORMAT, MARKERS, RESULTS, ResultKind
from kafkadash.export.schema import ColumnType

_ARROW = {
    ColumnType.STRING: pa.string(),
    ColumnType.INT: pa.int32(),
    ColumnType.LONG: pa.int64(),
    ColumnType.DOUBLE: pa.float64(),
    ColumnType.BOOL: pa.bool_(),
    ColumnType.TIME: pa.timestamp("us", "UTC"),
    ColumnType.BINARY: pa.binary(),
    ColumnType.INTS: pa.list_(pa.int32()),
    ColumnType.LONGS: pa.list_(pa.int64()),
}
Rows = Sequence[Mapping[str, Any]]


def schema_of(kind: ResultKind) -> pa.Schema:
    return pa.schema([(c.name, _ARROW[c.type]) for c in RESULTS[kind].columns])


def distribution(name: str, *values: int) -> dict[str, Any]:
    """The columns of a distribution of these samples; of none all but the count are missing."""
    ordered = sorted(values)
    if not ordered:
        return {f"{name}_count": 0}

    def rank(share: float) -> int:
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    return {
        f"{name}_count": len(ordered),
        f"{name}_max": ordered[-1],
        f"{name}_mean": sum(ordered) / len(ordered),
        f"{name}_p50": rank(0.5),
        f"{name}_p95": rank(0.95),
        f"{name}_p99": rank(0.99),
    }


def lag_rollup(cluster: str, group: str, topic: str, bucket: datetime, *values: int, grain: str = "minute") -> Any:
    return {
        "cluster": cluster,
        "grain": grain,
        "bucket": bucket,
        "group": group,
        "topic": topic,
        **distribution("lag", *values),
    }


def verdict(cluster: str, partition: int, at: datetime, pipeline: str, worker: str, group: str = "g") -> Any:
    return {
        "cluster": cluster,
        "group": group,
        "topic": "t",
        "partition": partition,
        "observed_at": at,
        "verdict": pipeline,
        "worker_verdict": worker,
    }


@dataclass(frozen=True)
class Folder:
    """What ``PIPELINE_URI`` names, on this disk."""

    root: Path

    @property
    def uri(self) -> str:
        return self.root.as_uri()

    def result(
        self,
        batch: int,
        kinds: Mapping[ResultKind, Rows],
        *,
        query: str = "q1",
        written_at: datetime | None = None,
        flushes: Iterable[tuple[int, int, datetime]] = (),
        instead: Mapping[str, Any] = MappingProxyType({}),
    ) -> Path:
        """Writes the rows, then the marker, which is returned. ``instead`` takes the place of what stands in it."""
        for kind, rows in kinds.items():
            self.parquet(kind, rows, query, batch)
        told = {
            "format": MARKER_FORMAT,
            "query": query,
            "batch": batch,
            "written_at": (written_at or datetime.now(UTC)).isoformat(),
            "kinds": {kind.value: {"rows": len(rows)} for kind, rows in kinds.items()},
            "flushes": [[epoch, seq, at.isoformat()] for epoch, seq, at in flushes],
            "set_aside": [],
            **instead,
        }
        marker = self.root / "results" / MARKERS / f"{query}-{batch}.json"
        marker.parent.mkdir(parents=True, exist_ok=True)
        marker.write_text(json.dumps(told))
        return marker

    def parquet(self, kind: ResultKind, rows: Rows, query: str, batch: int) -> Path:
        folder = self.root / "results" / kind / f"{query}-{batch}"
        folder.mkdir(parents=True, exist_ok=True)
        schema = schema_of(kind)
        file = folder / "part-0.parquet"
        whole = [{name: row.get(name) for name in schema.names} for row in rows]
        parquet.write_table(pa.Table.from_pylist(whole, schema=schema), file)
        return file

    def manifest(self, at: datetime, epoch: int, seq: int) -> Path:
        """The name alone is what is looked at."""
        file = self.root / f"segments/manifest/{at:%Y-%m-%d}/{at:%H}/{epoch:012d}-{seq:012d}.parquet"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(b"PAR1")
        return file

    def heartbeat(self, name: str, told: Mapping[str, Any]) -> Path:
        file = self.root / "heartbeat" / f"{name}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps(told))
        return file


NOW = datetime.now(UTC).replace(second=0, microsecond=0) - timedelta(minutes=5)
Turn = Callable[[], int | None]
"""Returns how many results it took in; None where it was not its turn."""
