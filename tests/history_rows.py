"""Rows of history as the ingest leaves them, for tests that do not need files."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.history import partitions
from kafkadash.history.models import (
    ClusterWorkload,
    DiskForecast,
    PipelineLedger,
    PipelineState,
    Rollup,
    Series,
    SeriesKind,
    VerdictCount,
    VerdictDifference,
    Workload,
)
from kafkadash.history.schedule import STATE_ID, ensure_state
from kafkadash.monitoring.groups.names import key_of
from kafkadash.monitoring.models import GroupState
from kafkadash.pipeline.errors import PipelineErrorCode


def beats(now: datetime, **said: Any) -> dict[str, Any]:
    """A heartbeat as the pipeline writes it, of one that does well."""
    told = {
        "format": 1,
        "name": "segments",
        "query": "q1",
        "state": "waiting",
        "working_on": None,
        "fault": None,
        "host": "spark-1",
        "beat_at": (now - timedelta(seconds=2)).isoformat(),
        "interval_seconds": 5,
        "last_batch": 41,
        "last_batch_at": (now - timedelta(seconds=9)).isoformat(),
        "last_batch_seconds": 1.25,
        "newest_observed_at": (now - timedelta(seconds=14)).isoformat(),
        "event_lag_seconds": 5.5,
    }
    return {**told, **said}


def looked(now: datetime, *heartbeats: dict[str, Any], **fields: Any) -> PipelineState:
    """What the ingest noted of its last look, a second ago."""
    ensure_state()
    at = now - timedelta(seconds=1)
    known = {"looked_at": at, "attempted_at": at, "segments_waiting": 0, "results_waiting": 0}
    PipelineState.objects.filter(pk=STATE_ID).update(heartbeats=list(heartbeats), **{**known, **fields})
    return PipelineState.objects.get(pk=STATE_ID)


def taken_in(now: datetime, batch: int = 41, **fields: Any) -> PipelineLedger:
    known: dict[str, Any] = {
        "written_at": now - timedelta(seconds=9),
        "ingested_at": now - timedelta(seconds=8),
        "newest_at": now - timedelta(seconds=12),
        "rows": {"lag_rollup": 12},
        "took_ms": 40,
    }
    return PipelineLedger.objects.create(query="q1", batch=batch, **{**known, **fields})


def rolled_up(
    cluster: Cluster,
    bucket: datetime,
    *,
    kind: SeriesKind = SeriesKind.GROUP,
    grain: int = 60,
    group: str = "",
    topic: str = "",
    node: int = Series.NO_NODE,
    **figures: Any,
) -> Rollup:
    partitions.ensure_partitions([(grain, bucket)])
    series, _ = Series.objects.get_or_create(
        cluster=cluster, kind=kind, group=group, topic=topic, node=node, defaults={"seen_on": bucket.date()}
    )
    known = {"version": 1, "samples": 6, "most": 90, "p50": 10, "p95": 80, "p99": 90, "mean": 21.5}
    return Rollup.objects.create(series=series, grain=grain, bucket=bucket, **{**known, **figures})


def group_row(cluster: Cluster, name: str, now: datetime) -> GroupState:
    """A group that was seen; its lag is not known."""
    known = {"state": "Stable", "rank": 0, "verdict_since": now, "partitions": 1, "taken_at": now}
    row, _ = GroupState.objects.get_or_create(
        cluster=cluster, key=key_of(name), defaults={**known, "name": name, "first_seen_at": now}
    )
    return row


def modelled(
    cluster: Cluster,
    topic: str,
    to_at: datetime,
    *,
    rates: Sequence[float | None] = (),
    days: int = 7,
    version: int = 1,
) -> Workload:
    """What its partitions take in, one after the other; the peak is twice that, and they grow by a gigabyte a day."""
    known = [None if rate is None else 2 * rate for rate in rates]
    packed = {
        "partition": list(range(len(rates))),
        "in": list(rates),
        "peak": known,
        "hour": [None if rate is None else 9 for rate in rates],
        "grows": [None if rate is None else 1e9 for rate in rates],
        "size": [1000] * len(rates),
        "samples": [600] * len(rates),
    }
    return Workload.objects.create(
        cluster=cluster,
        topic=topic,
        format=Workload.FORMAT,
        partitions=packed,
        from_at=to_at - timedelta(days=days),
        to_at=to_at,
        version=version,
    )


def handed_back(cluster: Cluster, number: int, now: datetime) -> None:
    """One of everything, each ``number`` another."""
    at = now - timedelta(seconds=20)
    looked(now, beats(now))
    taken_in(
        now,
        number,
        set_aside=[
            {
                "file": f"lag_rollup/q1-{number}",
                "why": coded(PipelineErrorCode.FILE_TRUNCATED, fault="cut off").as_json(),
            }
        ],
    )
    VerdictCount.objects.create(
        cluster=cluster, hour=at.replace(minute=0, second=0, microsecond=0) - timedelta(hours=number), judged=9
    )
    VerdictDifference.objects.create(
        cluster=cluster,
        group="g",
        topic="t",
        partition=number,
        observed_at=at,
        verdict="stall",
        worker_verdict="ok",
        version=1,
    )
    times = {"from_at": at - timedelta(days=7), "to_at": at, "version": 1}
    Workload.objects.create(cluster=cluster, topic=f"t{number}", partitions=[], **times)
    weekly = {"by_hour": {"in": [None, *range(167)], "without": [0, number, *[0] * 166]}, **times}
    Workload.objects.update_or_create(cluster=cluster, topic="payments.ledger", defaults={"partitions": [], **weekly})
    ClusterWorkload.objects.update_or_create(cluster=cluster, defaults=weekly)
    DiskForecast.objects.create(
        cluster=cluster,
        broker=number,
        directory="/data",
        observed_at=at,
        version=1,
        used_bytes=10,
        total_bytes=100,
        grows_per_day=1.5,
        samples=40,
        from_at=at - timedelta(days=1),
    )
    minute = at.replace(second=0, microsecond=0) - timedelta(minutes=number)
    hour, day = minute.replace(minute=0) - timedelta(hours=number), minute.replace(minute=0, hour=0)
    rolled_up(cluster, minute, group="g", topic="t")
    rolled_up(cluster, minute, kind=SeriesKind.TOPIC, topic="payments.ledger", other=5_000_000)
    for kind in (SeriesKind.BYTES_IN, SeriesKind.RECORDS_IN):
        rolled_up(cluster, hour, kind=kind, topic="payments.ledger", other=number, grain=3600)
        rolled_up(cluster, hour, kind=kind, other=0, grain=3600)
    rolled_up(cluster, minute, kind=SeriesKind.CLUSTER)
    node: dict[str, Any] = {"kind": SeriesKind.QUORUM, "node": 100 + number, "grain": 3600, "changes": 1}
    rolled_up(cluster, hour, other=31, **node)
    rolled_up(cluster, day - timedelta(days=number), kind=SeriesKind.BROKER, node=1, grain=86_400, other=5)
