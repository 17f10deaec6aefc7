"""Segments: the immutable Parquet files in which collectors hand facts to the pipeline, as plain data.

Writer (PyArrow) and reader (Spark) share these tables, so this knows neither. Times are microseconds since the epoch,
UTC; offsets and lag are records; rates are bytes per second. A column that is not ``required`` is null where the fact
is not known: missing is not zero.

One flush writes one file per kind, the manifest last: what no manifest names does not exist. Addresses below the
segments' folder: ``<kind>/<yyyy-mm-dd>/<hh>/<epoch>-<seq>.parquet``, epoch and seq (12 digits each) of the writer,
date and hour of the flush in UTC. A name that begins with ``_`` is being written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SCHEMA_VERSION = 1
SCHEMA_KEY = "kafkadash.schema"
"""Key of the Parquet file's metadata under which the version stands, as text."""


class Type(StrEnum):
    STRING = "string"
    INT = "int"
    LONG = "long"
    DOUBLE = "double"
    BOOL = "bool"
    TIME = "timestamp"
    BINARY = "binary"
    INTS = "list<int>"
    LONGS = "list<long>"


@dataclass(frozen=True, slots=True)
class Column:
    name: str
    type: Type
    required: bool = True


class SegmentKind(StrEnum):
    REPLICA = "replica"
    GROUP_OFFSET = "group_offset"
    QUORUM = "quorum"
    REASSIGNMENT = "reassignment"
    BROKER = "broker"
    MANIFEST = "manifest"


def _optional(name: str, type_: Type) -> Column:
    return Column(name, type_, required=False)


IDENTITY = (
    Column("schema", Type.INT),
    Column("cluster", Type.STRING),
    Column("epoch", Type.LONG),
    Column("seq", Type.LONG),
    Column("observed_at", Type.TIME),
)
"""Of each row: version, the cluster's slug, and which refresh of its collector it comes from (cluster, kind, epoch,
seq identify it), with the time for which the facts hold."""

COLUMNS: Mapping[SegmentKind, tuple[Column, ...]] = {
    SegmentKind.REPLICA: (
        *IDENTITY,
        Column("topic", Type.STRING),
        Column("partition", Type.INT),
        Column("broker", Type.INT),
        Column("directory", Type.STRING),
        _optional("log_end", Type.LONG),
        _optional("log_start", Type.LONG),
        _optional("bytes_on_disk", Type.LONG),
        _optional("is_leader", Type.BOOL),
        _optional("in_isr", Type.BOOL),
        Column("is_future", Type.BOOL),
        Column("method", Type.STRING),  # exact: log ends were read; size: bytes on disk alone
    ),
    SegmentKind.GROUP_OFFSET: (
        *IDENTITY,
        Column("group", Type.STRING),
        Column("topic", Type.STRING),
        Column("partition", Type.INT),
        _optional("committed", Type.LONG),
        _optional("log_start", Type.LONG),
        _optional("log_end", Type.LONG),
        _optional("lag", Type.LONG),
        Column("group_state", Type.STRING),
        _optional("members", Type.INT),
        Column("allowed_lag", Type.LONG),
        # Of the sample before in the worker's window; null where there was none (new, gone in between, nobody looked
        # for too long) or not known. Without a commit before, no window of the pipeline reaches back.
        _optional("previous_committed", Type.LONG),
        _optional("previous_lag", Type.LONG),
        _optional("previous_at", Type.TIME),
        Column("verdict", Type.STRING),  # the worker's, with which the pipeline's is compared
    ),
    SegmentKind.QUORUM: (
        *IDENTITY,
        Column("replica", Type.INT),
        Column("directory_id", Type.STRING),
        Column("leader", Type.INT),
        Column("leader_epoch", Type.INT),
        _optional("high_watermark", Type.LONG),
        _optional("log_end", Type.LONG),
        _optional("last_fetch_ts", Type.TIME),  # on the leader's clock, as the next
        _optional("last_caught_up_ts", Type.TIME),
        Column("role", Type.STRING),  # leader, follower, observer
    ),
    SegmentKind.REASSIGNMENT: (
        *IDENTITY,
        Column("topic", Type.STRING),
        Column("partition", Type.INT),
        Column("replicas", Type.INTS),
        Column("adding", Type.INTS),
        Column("removing", Type.INTS),
        Column("first_seen", Type.TIME),
        _optional("move", Type.STRING),  # stable id of the row of ours that it belongs to
    ),
    SegmentKind.BROKER: (
        *IDENTITY,
        Column("broker", Type.INT),
        Column("directory", Type.STRING),
        _optional("total_bytes", Type.LONG),
        _optional("usable_bytes", Type.LONG),
        _optional("replica_bytes", Type.LONG),
        _optional("leader_throttle", Type.LONG),
        _optional("follower_throttle", Type.LONG),
        _optional("grown_per_second", Type.DOUBLE),
    ),
    SegmentKind.MANIFEST: (
        *IDENTITY,
        Column("kind", Type.STRING),
        Column("rows", Type.LONG),
        Column("not_answered", Type.INTS),
        _optional("errors", Type.STRING),  # sentences, a line each
        Column("duration_ms", Type.LONG),
        Column("file", Type.STRING),  # address of the rows below the segments' folder; '' where there are none
        Column("flush_epoch", Type.LONG),
        Column("flush_seq", Type.LONG),
        Column("committed_at", Type.TIME),  # when the flush was written; the same in all of its rows
    ),
}


def columns_of(kind: SegmentKind, version: int = SCHEMA_VERSION) -> tuple[Column, ...]:
    """Raises ValueError for a version that this release does not know."""
    if version != SCHEMA_VERSION:
        raise ValueError(f"segments of schema {version} are not known here, only up to {SCHEMA_VERSION}")
    return COLUMNS[kind]


def address(kind: SegmentKind, at: datetime, epoch: int, seq: int) -> str:
    """Below the segments' folder; ``at`` in UTC."""
    return f"{kind}/{at:%Y-%m-%d}/{at:%H}/{epoch:012d}-{seq:012d}.parquet"
