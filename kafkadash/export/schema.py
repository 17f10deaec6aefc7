"""Schema of segments: the immutable Parquet files in which collectors hand facts to the pipeline, as plain data.

Writer (PyArrow) and reader (Spark) share these tables, so this module imports neither. Times are microseconds since the
epoch, UTC; offsets and lag are records; rates are per second, of bytes where nothing else is said. A column that is not
``required`` is null if the fact is unknown: missing is not zero.

A flush writes one file per kind, the manifest last: a file that no manifest names does not exist. Addresses below the
segments' folder: ``<kind>/<yyyy-mm-dd>/<hh>/<epoch>-<seq>.parquet``, with epoch and seq (12 digits each) of the writer,
date and hour of the flush in UTC. A name that begins with ``_`` is still being written.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

SCHEMA_VERSION = 1
SCHEMA_KEY = "kafkadash.schema"
"""Key of the Parquet file's metadata under which the version stands, as text."""


class ColumnType(StrEnum):
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
class SegmentColumn:
    name: str
    type: ColumnType
    required: bool = True


class TrafficSubject(StrEnum):
    """Partitions that a row of traffic sums up: all, those of a topic, or those that a broker leads."""

    CLUSTER = "cluster"
    TOPIC = "topic"
    BROKER = "broker"


class SegmentKind(StrEnum):
    REPLICA = "replica"
    GROUP_OFFSET = "group_offset"
    QUORUM = "quorum"
    REASSIGNMENT = "reassignment"
    BROKER = "broker"
    TRAFFIC = "traffic"
    MANIFEST = "manifest"


def _optional(name: str, type_: ColumnType) -> SegmentColumn:
    return SegmentColumn(name, type_, required=False)


IDENTITY = (
    SegmentColumn("schema", ColumnType.INT),
    SegmentColumn("cluster", ColumnType.STRING),
    SegmentColumn("epoch", ColumnType.LONG),
    SegmentColumn("seq", ColumnType.LONG),
    SegmentColumn("observed_at", ColumnType.TIME),
)
"""Columns of each row: version, the cluster's slug, the refresh that it comes from (identified by cluster, kind, epoch,
seq), and the time for which the facts hold."""

COLUMNS: Mapping[SegmentKind, tuple[SegmentColumn, ...]] = {
    SegmentKind.REPLICA: (
        *IDENTITY,
        SegmentColumn("topic", ColumnType.STRING),
        SegmentColumn("partition", ColumnType.INT),
        SegmentColumn("broker", ColumnType.INT),
        SegmentColumn("directory", ColumnType.STRING),
        _optional("log_end", ColumnType.LONG),
        _optional("log_start", ColumnType.LONG),
        _optional("bytes_on_disk", ColumnType.LONG),
        _optional("is_leader", ColumnType.BOOL),
        _optional("in_isr", ColumnType.BOOL),
        SegmentColumn("is_future", ColumnType.BOOL),
        SegmentColumn("method", ColumnType.STRING),  # exact: log ends were read; size: bytes on disk alone
    ),
    SegmentKind.GROUP_OFFSET: (
        *IDENTITY,
        SegmentColumn("group", ColumnType.STRING),
        SegmentColumn("topic", ColumnType.STRING),
        SegmentColumn("partition", ColumnType.INT),
        _optional("committed", ColumnType.LONG),
        _optional("log_start", ColumnType.LONG),
        _optional("log_end", ColumnType.LONG),
        _optional("lag", ColumnType.LONG),
        SegmentColumn("group_state", ColumnType.STRING),
        _optional("members", ColumnType.INT),
        SegmentColumn("allowed_lag", ColumnType.LONG),
        # Of the sample before in the worker's window; null where there was none (new, gone in between, nobody looked
        # for too long) or not known. Without a commit before, no window of the pipeline reaches back.
        _optional("previous_committed", ColumnType.LONG),
        _optional("previous_lag", ColumnType.LONG),
        _optional("previous_at", ColumnType.TIME),
        SegmentColumn("verdict", ColumnType.STRING),  # the worker's, with which the pipeline's is compared
    ),
    SegmentKind.QUORUM: (
        *IDENTITY,
        SegmentColumn("replica", ColumnType.INT),
        SegmentColumn("directory_id", ColumnType.STRING),
        SegmentColumn("leader", ColumnType.INT),
        SegmentColumn("leader_epoch", ColumnType.INT),
        _optional("high_watermark", ColumnType.LONG),
        _optional("log_end", ColumnType.LONG),
        _optional("last_fetch_ts", ColumnType.TIME),  # on the leader's clock, as the next
        _optional("last_caught_up_ts", ColumnType.TIME),
        SegmentColumn("role", ColumnType.STRING),  # leader, follower, observer
    ),
    SegmentKind.REASSIGNMENT: (
        *IDENTITY,
        SegmentColumn("topic", ColumnType.STRING),
        SegmentColumn("partition", ColumnType.INT),
        SegmentColumn("replicas", ColumnType.INTS),
        SegmentColumn("adding", ColumnType.INTS),
        SegmentColumn("removing", ColumnType.INTS),
        SegmentColumn("first_seen", ColumnType.TIME),
        _optional("move", ColumnType.STRING),  # stable id of the row of ours that it belongs to
    ),
    SegmentKind.BROKER: (
        *IDENTITY,
        SegmentColumn("broker", ColumnType.INT),
        SegmentColumn("directory", ColumnType.STRING),
        _optional("total_bytes", ColumnType.LONG),
        _optional("usable_bytes", ColumnType.LONG),
        _optional("replica_bytes", ColumnType.LONG),
        _optional("leader_throttle", ColumnType.LONG),
        _optional("follower_throttle", ColumnType.LONG),
        _optional("grown_per_second", ColumnType.DOUBLE),
    ),
    SegmentKind.TRAFFIC: (
        *IDENTITY,
        SegmentColumn("subject", ColumnType.STRING),  # of TrafficSubject, which has one of the next two, or neither
        _optional("topic", ColumnType.STRING),
        _optional("broker", ColumnType.INT),
        _optional("records_rate", ColumnType.DOUBLE),  # records per second since the refresh before, counted
        _optional("bytes_rate", ColumnType.DOUBLE),  # estimated from the records (ADR 21)
        SegmentColumn("unknown", ColumnType.LONG),  # partitions that both sums leave out
        SegmentColumn("without_bytes", ColumnType.LONG),  # partitions that the sum of bytes leaves out besides
    ),
    SegmentKind.MANIFEST: (
        *IDENTITY,
        SegmentColumn("kind", ColumnType.STRING),
        SegmentColumn("rows", ColumnType.LONG),
        SegmentColumn("not_answered", ColumnType.INTS),
        _optional("errors", ColumnType.STRING),  # JSON: a list of messages as of CodedMessage.as_json
        SegmentColumn("duration_ms", ColumnType.LONG),
        SegmentColumn(
            "file", ColumnType.STRING
        ),  # address of the rows below the segments' folder; '' where there are none
        SegmentColumn("flush_epoch", ColumnType.LONG),
        SegmentColumn("flush_seq", ColumnType.LONG),
        SegmentColumn("committed_at", ColumnType.TIME),  # when the flush was written; the same in all of its rows
    ),
}


def columns_of(kind: SegmentKind, version: int = SCHEMA_VERSION) -> tuple[SegmentColumn, ...]:
    """Raises ValueError for a version that this release does not know."""
    if version != SCHEMA_VERSION:
        raise ValueError(f"segments of schema {version} are not known here, only up to {SCHEMA_VERSION}")
    return COLUMNS[kind]


def file_address(kind: SegmentKind, at: datetime, epoch: int, seq: int) -> str:
    """Below the segments' folder; ``at`` in UTC."""
    return f"{kind}/{at:%Y-%m-%d}/{at:%H}/{epoch:012d}-{seq:012d}.parquet"
