"""Results: what the pipeline hands back, as plain data that its writer (Spark) and its reader (a worker) share.

A batch of the stream is one result: a Parquet folder per kind, and last of all a marker that names them. Identity is
(query id, batch id): a batch that is done again writes the same addresses. Values are absolute, never increments, so a
result may be taken in twice. Addresses below the results' folder: ``<kind>/<query id>-<batch id>/`` and
``markers/<query id>-<batch id>.json``. Jobs that run by the clock have query ids of their own (``hourly-…``,
``daily-…``, ``backfill-…``) and the time they are for, in epoch seconds, as their batch id.

The marker: {"format": 1, "query": …, "batch": …, "written_at": ISO, "kinds": {kind: {"rows": n}},
"flushes": [[epoch, seq, committed_at ISO], …], "set_aside": [{"file": …, "why": sentence}]}.

The heartbeat, ``heartbeat/<name>.json``, replaced whole about every ``interval_seconds``, also in the middle of a long
batch: {"format": 1, "name": "segments", "query": id or '' before the first batch, "state": "starting" | "waiting" |
"working" | "stopped" | "failed", "working_on": what in words or null, "fault": sentence or null, "pid", "host",
"started_at": ISO, "beat_at": ISO, "interval_seconds", "last_batch": batch id, "last_batch_at": ISO,
"last_batch_seconds", "newest_observed_at": ISO, event time of what the batch brought, "newest_committed_at": ISO, of
its newest flush, "event_lag_seconds": last_batch_at − newest_observed_at}; what comes of a batch is null before the
first one of this process. All times are by the clock of the pipeline's machine.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.domain.segments import Column, Type

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


class Grain(StrEnum):
    """Length of a rollup's bucket, which begins at a whole minute, hour or day in UTC."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"


HOURS_OF_WEEK = 7 * 24
SECONDS: Mapping[Grain, int] = {Grain.MINUTE: 60, Grain.HOUR: 3600, Grain.DAY: 86_400}


@dataclass(frozen=True, slots=True)
class Result:
    """``key``: the columns by which a row takes the place of an older one."""

    key: tuple[str, ...]
    columns: tuple[Column, ...]


def _optional(name: str, type_: Type) -> Column:
    return Column(name, type_, required=False)


_BUCKET = (Column("cluster", Type.STRING), Column("grain", Type.STRING), Column("bucket", Type.TIME))


def _distribution(name: str) -> tuple[Column, ...]:
    """Of all samples in the bucket. Percentiles are values that occurred (nearest rank).

    ``_sketch`` merges into longer buckets: at most 256 values in order, each standing for equally many of the samples;
    empty where none was counted. The same samples give the same sketch in whatever order they come, which KLL (it
    tosses coins) does not promise.
    """
    return (
        Column(f"{name}_count", Type.LONG),
        _optional(f"{name}_max", Type.LONG),
        _optional(f"{name}_mean", Type.DOUBLE),
        _optional(f"{name}_p50", Type.LONG),
        _optional(f"{name}_p95", Type.LONG),
        _optional(f"{name}_p99", Type.LONG),
        Column(f"{name}_sketch", Type.LONGS),
    )


RESULTS: Mapping[ResultKind, Result] = {
    # Lag in records of all partitions of a topic that a group reads; samples without a commit are not counted.
    ResultKind.LAG_ROLLUP: Result(
        ("cluster", "grain", "bucket", "group", "topic"),
        (*_BUCKET, Column("group", Type.STRING), Column("topic", Type.STRING), *_distribution("lag")),
    ),
    # Lag of all groups that read a topic.
    ResultKind.TOPIC_ROLLUP: Result(
        ("cluster", "grain", "bucket", "topic"),
        (*_BUCKET, Column("topic", Type.STRING), *_distribution("lag"), _optional("bytes_on_disk", Type.LONG)),
    ),
    # Bytes of replicas on a broker.
    ResultKind.BROKER_ROLLUP: Result(
        ("cluster", "grain", "bucket", "broker"),
        (
            *_BUCKET,
            Column("broker", Type.INT),
            *_distribution("replica_bytes"),
            _optional("replicas", Type.LONG),
        ),
    ),
    ResultKind.CLUSTER_ROLLUP: Result(("cluster", "grain", "bucket"), (*_BUCKET, *_distribution("lag"))),
    # Newest judgement of each partition that a group reads, by the same rule as the worker's, and what that said.
    ResultKind.LAG_VERDICT: Result(
        ("cluster", "group", "topic", "partition"),
        (
            Column("cluster", Type.STRING),
            Column("group", Type.STRING),
            Column("topic", Type.STRING),
            Column("partition", Type.INT),
            Column("observed_at", Type.TIME),
            Column("verdict", Type.STRING),
            Column("worker_verdict", Type.STRING),
        ),
    ),
    # Of a replica that is being added: bytes per second net of what is produced, and seconds until it has caught up.
    ResultKind.CATCH_UP: Result(
        ("cluster", "topic", "partition", "broker"),
        (
            Column("cluster", Type.STRING),
            Column("topic", Type.STRING),
            Column("partition", Type.INT),
            Column("broker", Type.INT),
            Column("observed_at", Type.TIME),
            _optional("bytes_per_second", Type.DOUBLE),
            _optional("left_bytes", Type.LONG),
            _optional("eta_seconds", Type.DOUBLE),
        ),
    ),
    # Lag in ms on the leader's clock; the leader itself is not in it.
    ResultKind.QUORUM_ROLLUP: Result(
        ("cluster", "grain", "bucket", "replica"),
        (
            *_BUCKET,
            Column("replica", Type.INT),
            *_distribution("lag_ms"),
            _optional("fetch_age_ms_max", Type.LONG),
            Column("leader_changes", Type.LONG),  # seen in the whole quorum, as the next; a leader may follow itself
            Column("epoch_changes", Type.LONG),
        ),
    ),
    # Per partition, of a week at most; what its leader took in, in bytes per second. The three lists belong together, a
    # place for each hour that was seen: which of the week it is (0 is Monday 00:00 UTC), and percentiles of it as whole
    # bytes, null where too little was seen. ``in_typical`` is the mean over those hours of the median, ``in_peak`` the
    # largest 95th percentile of one.
    ResultKind.WORKLOAD: Result(
        ("cluster", "topic", "partition"),
        (
            Column("cluster", Type.STRING),
            Column("topic", Type.STRING),
            Column("partition", Type.INT),
            Column("size_bytes", Type.LONG),
            _optional("growth_per_day", Type.DOUBLE),
            _optional("in_typical", Type.DOUBLE),
            _optional("in_peak", Type.DOUBLE),
            _optional("peak_hour", Type.INT),
            Column("hours_of_week", Type.INTS),
            Column("in_p50", Type.LONGS),
            Column("in_p95", Type.LONGS),
            Column("samples", Type.LONG),
            Column("from_at", Type.TIME),
            Column("to_at", Type.TIME),
        ),
    ),
    # Days until a directory is 80 or 90 % full: likely, and between low and high; null where it does not fill.
    ResultKind.DISK_FORECAST: Result(
        ("cluster", "broker", "directory"),
        (
            Column("cluster", Type.STRING),
            Column("broker", Type.INT),
            Column("directory", Type.STRING),
            Column("observed_at", Type.TIME),
            Column("used_bytes", Type.LONG),
            Column("total_bytes", Type.LONG),
            Column("grows_per_day", Type.DOUBLE),
            *(_optional(f"days_to_{share}{end}", Type.DOUBLE) for share in (80, 90) for end in ("", "_low", "_high")),
            Column("samples", Type.LONG),
            Column("from_at", Type.TIME),
        ),
    ),
}
