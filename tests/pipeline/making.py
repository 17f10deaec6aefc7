"""Segments as collectors write them, with figures that a seed decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkadash.domain.segments import COLUMNS, SCHEMA_KEY, SCHEMA_VERSION, Column, SegmentKind, Type, address

BEGAN = datetime(2026, 3, 2, 9, 57, 31, tzinfo=UTC)
EPOCH = 7
MADE = frozenset({SegmentKind.GROUP_OFFSET, SegmentKind.REPLICA})

ARROW: Mapping[Type, pa.DataType] = {
    Type.STRING: pa.string(),
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.DOUBLE: pa.float64(),
    Type.BOOL: pa.bool_(),
    Type.TIME: pa.timestamp("us", "UTC"),
    Type.BINARY: pa.binary(),
    Type.INTS: pa.list_(pa.int32()),
    Type.LONGS: pa.list_(pa.int64()),
}


def arrow_schema(columns: Sequence[Column], version: int = SCHEMA_VERSION) -> pa.Schema:
    fields = [pa.field(column.name, ARROW[column.type], nullable=not column.required) for column in columns]
    return pa.schema(fields, metadata={SCHEMA_KEY: str(version)})


class Maker:
    """Flushes of two clusters, some seconds apart. ``segments``: their folder."""

    def __init__(
        self, segments: Path, *, seed: int = 1, groups: int = 4, partitions: int = 5, every: float = 17
    ) -> None:
        self.segments = segments
        self.at = BEGAN
        self.seq = 0
        self._random = Random(seed)
        self._groups = groups
        self._partitions = partitions
        self._every = timedelta(seconds=every)
        self._committed: dict[tuple[str, str, int], int] = {}

    def flush(self, clusters: Sequence[str] = ("east", "west")) -> Path:
        """One flush of all kinds; the path of its manifest."""
        self.seq += 1
        self.at += self._every
        rows: dict[SegmentKind, list[dict[str, Any]]] = {}
        for cluster in clusters:
            at = self.at - timedelta(seconds=self._random.randrange(12))
            for kind, of_kind in self._facts(cluster).items():
                identity = {
                    "schema": SCHEMA_VERSION,
                    "cluster": cluster,
                    "epoch": EPOCH,
                    "seq": self.seq,
                    "observed_at": at,
                }
                rows.setdefault(kind, []).extend(identity | row for row in of_kind)
        return self.write(rows)

    def flushes(self, count: int) -> list[Path]:
        return [self.flush() for _ in range(count)]

    def write(self, rows: Mapping[SegmentKind, Sequence[Mapping[str, Any]]]) -> Path:
        manifest = []
        for kind, of_kind in rows.items():
            file = address(kind, self.at, EPOCH, self.seq)
            write_file(self.segments / file, kind, of_kind)
            for cluster in sorted({row["cluster"] for row in of_kind}):
                own = [row for row in of_kind if row["cluster"] == cluster]
                manifest.append(
                    {
                        **{name: own[0][name] for name in ("schema", "cluster", "epoch", "seq", "observed_at")},
                        "kind": kind.value,
                        "rows": len(own),
                        "not_answered": [],
                        "errors": None,
                        "duration_ms": 40,
                        "file": file,
                        "flush_epoch": EPOCH,
                        "flush_seq": self.seq,
                        "committed_at": self.at,
                    }
                )
        path = self.segments / address(SegmentKind.MANIFEST, self.at, EPOCH, self.seq)
        write_file(path, SegmentKind.MANIFEST, manifest)
        return path

    def _facts(self, cluster: str) -> dict[SegmentKind, list[dict[str, Any]]]:
        return {SegmentKind.GROUP_OFFSET: self._offsets(cluster), SegmentKind.REPLICA: self._replicas()}

    def _offsets(self, cluster: str) -> list[dict[str, Any]]:
        rows = []
        for group in range(self._groups):
            for partition in range(self._partitions):
                key = (cluster, f"group-{group}", partition)
                before = self._committed.get(key, 0)
                committed = before + self._random.choice((0, 0, 7, 300))
                self._committed[key] = committed
                lag = self._random.choice((None, 0, 3, 400, 100_000))
                rows.append(
                    {
                        "group": f"group-{group}",
                        "topic": f"topic-{group % 3}",
                        "partition": partition,
                        "committed": committed,
                        "log_start": 0,
                        "log_end": committed + (lag or 0),
                        "lag": lag,
                        "group_state": "Stable",
                        "members": 1,
                        "allowed_lag": 10,
                        "previous_committed": before,
                        "previous_lag": None,
                        "previous_at": None,
                        "verdict": "ok",
                    }
                )
        return rows

    def _replicas(self) -> list[dict[str, Any]]:
        return [
            {
                "topic": f"topic-{topic}",
                "partition": partition,
                "broker": broker,
                "directory": "/data",
                "log_end": self._random.randrange(1000),
                "log_start": 0,
                "bytes_on_disk": self._random.randrange(10**9),
                "is_leader": broker == 1,
                "in_isr": True,
                "is_future": False,
                "method": "exact",
            }
            for topic in range(3)
            for partition in range(self._partitions)
            for broker in (1, 2)
        ]


def write_file(path: Path, kind: SegmentKind, rows: Sequence[Mapping[str, Any]], version: int = SCHEMA_VERSION) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = arrow_schema(COLUMNS[kind], version)
    written = path.with_name(f"_{path.name}")
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), written)
    written.replace(path)
