"""Results that the pipeline hands back, as plain data shared by their writer (Spark) and their reader (a worker).

A batch of the stream is one result: a Parquet folder per kind, and last of all a marker that names them. Identity is
(query id, batch id): a repeated batch writes the same addresses. Values are absolute, never increments, so a result may
be read twice. Addresses below the results' folder: ``<kind>/<query id>-<batch id>/`` and
``markers/<query id>-<batch id>.json``. Scheduled jobs have query ids of their own (``hourly-…``, ``daily-…``,
``backfill-…``) and the time they are for, in epoch seconds, as their batch id.

The marker: {"format": 1, "query": …, "batch": …, "written_at": ISO, "kinds": {kind: {"rows": n}},
"flushes": [[epoch, seq, committed_at ISO], …], "set_aside": [{"file": …, "why": message}]}. A message is {"code": …,
"params": {…}}, see ``core.messages``.

The heartbeat, ``heartbeat/<name>.json``, is replaced as a whole about every ``interval_seconds``, also during a long
batch: {"format": 1, "name": "segments", "query": id or '' before the first batch, "state": "starting" | "waiting" |
"working" | "stopped" | "failed", "working_on": text or null, "fault": message or null, "pid", "host", "started_at":
ISO, "beat_at": ISO, "interval_seconds", "last_batch": batch id, "last_batch_at": ISO, "last_batch_seconds",
"newest_observed_at": ISO, event time of the newest fact in the batch, "newest_committed_at": ISO, of its newest flush,
"event_lag_seconds": last_batch_at − newest_observed_at}. Fields of a batch are null before the first batch of this
process. All times are on the clock of the pipeline's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.export.schema import ColumnType, SegmentColumn

MARKERS = "markers"
MARKER_FORMAT = 1
HEARTBEATS = "heartbeat"
HEARTBEAT_FORMAT = 1


class ResultKind(StrEnum):
    LAG_ROLLUP = "lag_rollup"
    TOPIC_ROLLUP = "topic_rollup"
    BROKER_ROLLUP = "broker_rollup"
    CLUSTER_ROLLUP = "cluster_rollup"
    LAG_VERDICT = "lag_verdict"
    CATCH_UP = "catch_up"
    QUORUM_ROLLUP = "quorum_rollup"
    WORKLOAD = "workload"
    DISK_FORECAST = "disk_forecast"
    BYTES_IN = "bytes_in"
    RECORDS_IN = "records_in"


class RollupGrain(StrEnum):
    """Length of a rollup's bucket, which begins at a whole minute, hour or day in UTC."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


HOURS_OF_WEEK = 7 * 24
SECONDS: Mapping[RollupGrain, int] = {RollupGrain.MINUTE: 60, RollupGrain.HOUR: 3600, RollupGrain.DAY: 86_400}


@dataclass(frozen=True, slots=True)
class ResultSchema:
    """``key``: the columns by which a row takes the place of an older one."""

    key: tuple[str, ...]
    columns: tuple[SegmentColumn, ...]


def _optional(name: str, type_: ColumnType) -> SegmentColumn:
    return SegmentColumn(name, type_, required=False)


_BUCKET = (
    SegmentColumn("cluster", ColumnType.STRING),
    SegmentColumn("grain", ColumnType.STRING),
    SegmentColumn("bucket", ColumnType.TIME),
)


def _distribution_columns(name: str) -> tuple[SegmentColumn, ...]:
    """Return the columns that describe all samples of the bucket. Percentiles are actual values (nearest rank).

    ``_sketch`` merges into longer buckets: at most 256 values in order, each standing for equally many of the samples;
    empty where none was counted. The same samples give the same sketch in whatever order they come, which KLL (it
    tosses coins) does not promise.
    """
    return (
        SegmentColumn(f"{name}_count", ColumnType.LONG),
        _optional(f"{name}_max", ColumnType.LONG),
        _optional(f"{name}_mean", ColumnType.DOUBLE),
        _optional(f"{name}_p50", ColumnType.LONG),
        _optional(f"{name}_p95", ColumnType.LONG),
        _optional(f"{name}_p99", ColumnType.LONG),
        SegmentColumn(f"{name}_sketch", ColumnType.LONGS),
    )


ALL_TOPICS, ALL_BROKERS = "", -1
"""Topic and broker of traffic that is not of a topic, or not of a broker; of the whole cluster both."""
_TRAFFIC_KEY = ("cluster", "grain", "bucket", "topic", "broker")


def _traffic_columns(name: str) -> tuple[SegmentColumn, ...]:
    """``left_out``: the most partitions that a sample of the bucket leaves out."""
    return (
        *_BUCKET,
        SegmentColumn("topic", ColumnType.STRING),
        SegmentColumn("broker", ColumnType.INT),
        *_distribution_columns(name),
        _optional("left_out", ColumnType.LONG),
    )


RESULTS: Mapping[ResultKind, ResultSchema] = {
    # Lag in records of all partitions of a topic that a group reads; samples without a commit are not counted.
    ResultKind.LAG_ROLLUP: ResultSchema(
        ("cluster", "grain", "bucket", "group", "topic"),
        (
            *_BUCKET,
            SegmentColumn("group", ColumnType.STRING),
            SegmentColumn("topic", ColumnType.STRING),
            *_distribution_columns("lag"),
        ),
    ),
    # Lag of all groups that read a topic.
    ResultKind.TOPIC_ROLLUP: ResultSchema(
        ("cluster", "grain", "bucket", "topic"),
        (
            *_BUCKET,
            SegmentColumn("topic", ColumnType.STRING),
            *_distribution_columns("lag"),
            _optional("bytes_on_disk", ColumnType.LONG),
        ),
    ),
    # Bytes of replicas on a broker.
    ResultKind.BROKER_ROLLUP: ResultSchema(
        ("cluster", "grain", "bucket", "broker"),
        (
            *_BUCKET,
            SegmentColumn("broker", ColumnType.INT),
            *_distribution_columns("replica_bytes"),
            _optional("replicas", ColumnType.LONG),
        ),
    ),
    ResultKind.CLUSTER_ROLLUP: ResultSchema(("cluster", "grain", "bucket"), (*_BUCKET, *_distribution_columns("lag"))),
    # Newest judgement of each partition that a group reads, by the same rule as the worker's, and what that said.
    ResultKind.LAG_VERDICT: ResultSchema(
        ("cluster", "group", "topic", "partition"),
        (
            SegmentColumn("cluster", ColumnType.STRING),
            SegmentColumn("group", ColumnType.STRING),
            SegmentColumn("topic", ColumnType.STRING),
            SegmentColumn("partition", ColumnType.INT),
            SegmentColumn("observed_at", ColumnType.TIME),
            SegmentColumn("verdict", ColumnType.STRING),
            SegmentColumn("worker_verdict", ColumnType.STRING),
        ),
    ),
    # Of a replica that is being added: bytes per second net of what is produced, and seconds until it has caught up.
    ResultKind.CATCH_UP: ResultSchema(
        ("cluster", "topic", "partition", "broker"),
        (
            SegmentColumn("cluster", ColumnType.STRING),
            SegmentColumn("topic", ColumnType.STRING),
            SegmentColumn("partition", ColumnType.INT),
            SegmentColumn("broker", ColumnType.INT),
            SegmentColumn("observed_at", ColumnType.TIME),
            _optional("bytes_per_second", ColumnType.DOUBLE),
            _optional("left_bytes", ColumnType.LONG),
            _optional("eta_seconds", ColumnType.DOUBLE),
        ),
    ),
    # Lag in ms on the leader's clock; the leader itself is not in it.
    ResultKind.QUORUM_ROLLUP: ResultSchema(
        ("cluster", "grain", "bucket", "replica"),
        (
            *_BUCKET,
            SegmentColumn("replica", ColumnType.INT),
            *_distribution_columns("lag_ms"),
            _optional("fetch_age_ms_max", ColumnType.LONG),
            SegmentColumn(
                "leader_changes", ColumnType.LONG
            ),  # seen in the whole quorum, as the next; a leader may follow itself
            SegmentColumn("epoch_changes", ColumnType.LONG),
        ),
    ),
    # Per partition, of a week at most; what its leader took in, in bytes per second. The three lists belong together, a
    # place for each hour that was seen: which of the week it is (0 is Monday 00:00 UTC), and percentiles of it as whole
    # bytes, null where too little was seen. ``in_typical`` is the mean over those hours of the median, ``in_peak`` the
    # largest 95th percentile of one.
    ResultKind.WORKLOAD: ResultSchema(
        ("cluster", "topic", "partition"),
        (
            SegmentColumn("cluster", ColumnType.STRING),
            SegmentColumn("topic", ColumnType.STRING),
            SegmentColumn("partition", ColumnType.INT),
            SegmentColumn("size_bytes", ColumnType.LONG),
            _optional("growth_per_day", ColumnType.DOUBLE),
            _optional("in_typical", ColumnType.DOUBLE),
            _optional("in_peak", ColumnType.DOUBLE),
            _optional("peak_hour", ColumnType.INT),
            SegmentColumn("hours_of_week", ColumnType.INTS),
            SegmentColumn("in_p50", ColumnType.LONGS),
            SegmentColumn("in_p95", ColumnType.LONGS),
            SegmentColumn("samples", ColumnType.LONG),
            SegmentColumn("from_at", ColumnType.TIME),
            SegmentColumn("to_at", ColumnType.TIME),
        ),
    ),
    # Days until a directory is 80 or 90 % full: likely, and between low and high; null where it does not fill.
    ResultKind.DISK_FORECAST: ResultSchema(
        ("cluster", "broker", "directory"),
        (
            SegmentColumn("cluster", ColumnType.STRING),
            SegmentColumn("broker", ColumnType.INT),
            SegmentColumn("directory", ColumnType.STRING),
            SegmentColumn("observed_at", ColumnType.TIME),
            SegmentColumn("used_bytes", ColumnType.LONG),
            SegmentColumn("total_bytes", ColumnType.LONG),
            SegmentColumn("grows_per_day", ColumnType.DOUBLE),
            *(
                _optional(f"days_to_{share}{end}", ColumnType.DOUBLE)
                for share in (80, 90)
                for end in ("", "_low", "_high")
            ),
            SegmentColumn("samples", ColumnType.LONG),
            SegmentColumn("from_at", ColumnType.TIME),
        ),
    ),
    # Traffic, a sample for each refresh; without a known rate there is no row. Whole bytes per second, and thousandths
    # of a record per second, as the collector rounds them.
    ResultKind.BYTES_IN: ResultSchema(_TRAFFIC_KEY, _traffic_columns("bytes_in")),
    ResultKind.RECORDS_IN: ResultSchema(_TRAFFIC_KEY, _traffic_columns("milli_records_in")),
}
