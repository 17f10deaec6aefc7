"""Segments as collectors write them, with figures that a seed decides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from kafkadash.export.schema import (
    COLUMNS,
    SCHEMA_KEY,
    SCHEMA_VERSION,
    ColumnType,
    SegmentColumn,
    SegmentKind,
    file_address,
)

BEGAN = datetime(2026, 3, 2, 9, 57, 31, tzinfo=UTC)
EPOCH = 7
MOVING, NEW_BROKER = ("topic-0", "topic-1"), 3
"""Topics of which each partition gets a replica on the new broker; of the second the bytes alone are looked at."""
VOTERS, OBSERVER = (101, 102, 103), 104

ARROW: Mapping[ColumnType, pa.DataType] = {
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


def arrow_schema(columns: Sequence[SegmentColumn], version: int = SCHEMA_VERSION) -> pa.Schema:
    fields = [pa.field(column.name, ARROW[column.type], nullable=not column.required) for column in columns]
    return pa.schema(fields, metadata={SCHEMA_KEY: str(version)})


class Maker:
    """Flushes of two clusters, ``every`` seconds. ``segments``: their folder.

    Each has a row of everything that is observed: groups of which some read on and some stand, replicas of which some
    are being added and catch up, and a quorum that now and then chooses another leader.
    """

    def __init__(
        self,
        segments: Path,
        *,
        seed: int = 1,
        groups: int = 4,
        partitions: int = 5,
        every: float = 17,
        began: datetime = BEGAN,
    ) -> None:
        self.segments = segments
        self.at = self.began = began
        self.seq = 0
        self._random = Random(seed)
        # Of its own, so that figures of other kinds stay as they are.
        self._traffic_random = Random(seed)
        self._groups = groups
        self._partitions = partitions
        self.every = timedelta(seconds=every)
        self._committed: dict[tuple[str, str, int], int] = {}
        self._ends: dict[tuple[str, str, int], int] = {}
        self._copied: dict[tuple[str, str, int], int] = {}
        self._led: dict[str, tuple[int, int]] = {}

    def flush(self, clusters: Sequence[str] = ("east", "west")) -> Path:
        """One flush of all kinds; the path of its manifest."""
        self.seq += 1
        self.at += self.every
        rows: dict[SegmentKind, list[dict[str, Any]]] = {}
        for cluster in clusters:
            at = self.at - timedelta(seconds=self._random.randrange(12))
            for kind, of_kind in self._facts(cluster, at).items():
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
            file = file_address(kind, self.at, EPOCH, self.seq)
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
        path = self.segments / file_address(SegmentKind.MANIFEST, self.at, EPOCH, self.seq)
        write_file(path, SegmentKind.MANIFEST, manifest)
        return path

    def _facts(self, cluster: str, at: datetime) -> dict[SegmentKind, list[dict[str, Any]]]:
        return {
            SegmentKind.GROUP_OFFSET: self._offsets(cluster),
            SegmentKind.REPLICA: self._replicas(cluster),
            SegmentKind.REASSIGNMENT: self._reassignments(),
            SegmentKind.QUORUM: self._quorum(cluster, at),
            SegmentKind.BROKER: self._brokers(),
            SegmentKind.TRAFFIC: self._traffic(),
        }

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
                        "verdict": self._random.choice(("ok", "ok", "stall")),
                    }
                )
        return rows

    def _replicas(self, cluster: str) -> list[dict[str, Any]]:
        rows = []
        for topic in ("topic-0", "topic-1", "topic-2"):
            for partition in range(self._partitions):
                key = (cluster, topic, partition)
                end = self._ends[key] = self._ends.get(key, 50_000) + self._random.randrange(1000)
                rows += [self._replica(topic, partition, broker, end) for broker in (1, 2)]
                if topic in MOVING:
                    copied = self._copied[key] = min(end, self._copied.get(key, 0) + self._random.randrange(3000))
                    rows.append(self._replica(topic, partition, NEW_BROKER, copied))
        return rows

    def _replica(self, topic: str, partition: int, broker: int, end: int) -> dict[str, Any]:
        exact = topic != MOVING[1]
        return {
            "topic": topic,
            "partition": partition,
            "broker": broker,
            "directory": "/data",
            "log_end": end if exact else None,
            "log_start": 0 if exact else None,
            "bytes_on_disk": end * 100 + self._random.randrange(90),
            "is_leader": broker == 1,
            "in_isr": broker != NEW_BROKER,
            "is_future": False,
            "method": "exact" if exact else "size",
        }

    def _reassignments(self) -> list[dict[str, Any]]:
        return [
            {
                "topic": topic,
                "partition": partition,
                "replicas": [1, 2, NEW_BROKER],
                "adding": [NEW_BROKER],
                "removing": [2],
                "first_seen": self.began,
                "move": None,
            }
            for topic in MOVING
            for partition in range(self._partitions)
        ]

    def _quorum(self, cluster: str, at: datetime) -> list[dict[str, Any]]:
        """The leader's clock is an hour ahead of ours, and one node was never heard."""
        leader, epoch = self._led.get(cluster, (VOTERS[0], 5))
        if self._random.random() < 0.2:
            leader, epoch = self._random.choice(VOTERS), epoch + self._random.choice((1, 1, 2))
        self._led[cluster] = leader, epoch
        now = at + timedelta(hours=1)
        rows = []
        for node in (*VOTERS, OBSERVER):
            behind = timedelta(milliseconds=0 if node == leader else self._random.randrange(4000))
            caught_up = None if node == OBSERVER else now - behind
            rows.append(
                {
                    "replica": node,
                    "directory_id": f"directory-{node}",
                    "leader": leader,
                    "leader_epoch": epoch,
                    "high_watermark": 900 + self.seq,
                    "log_end": 901 + self.seq if node == leader else 900 + self.seq,
                    "last_fetch_ts": caught_up,
                    "last_caught_up_ts": caught_up,
                    "role": "leader" if node == leader else "follower" if node in VOTERS else "observer",
                }
            )
        return rows

    def _brokers(self) -> list[dict[str, Any]]:
        return [
            {
                "broker": broker,
                "directory": "/data",
                "total_bytes": 10**10,
                "usable_bytes": 9 * 10**9 - 10**6 * self.seq * broker,
                "replica_bytes": 10**6 * self.seq * broker,
                "leader_throttle": None,
                "follower_throttle": 10**7,
                "grown_per_second": 1e6,
            }
            for broker in (1, 2, NEW_BROKER)
        ]

    def _traffic(self) -> list[dict[str, Any]]:
        """A topic that is compacted has no bytes, and a broker now and then nothing that is known."""
        subjects: list[tuple[str, str | None, int | None]] = [
            ("cluster", None, None),
            *(("topic", f"topic-{number}", None) for number in range(3)),
            *(("broker", None, broker) for broker in (1, 2)),
        ]
        rows = []
        for subject, topic, broker in subjects:
            records = self._traffic_random.choice((None, 0.0, 0.017, 1234.567, 10**6))
            known = records is not None and topic != "topic-2"
            rows.append(
                {
                    "subject": subject,
                    "topic": topic,
                    "broker": broker,
                    "records_rate": records,
                    "bytes_rate": round((records or 0.0) * 173.25, 3) if known else None,
                    "unknown": self._traffic_random.randrange(3),
                    "without_bytes": 0 if known else 5,
                }
            )
        return rows


def write_file(path: Path, kind: SegmentKind, rows: Sequence[Mapping[str, Any]], version: int = SCHEMA_VERSION) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    schema = arrow_schema(COLUMNS[kind], version)
    written = path.with_name(f"_{path.name}")
    pq.write_table(pa.Table.from_pylist([dict(row) for row in rows], schema=schema), written)
    written.replace(path)
