"""All that the ingest writes, as rows that two databases can be compared by: without ids, and without when."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Rows = list[tuple[Any, ...]]
Stored = Mapping[str, Rows]

_OF_SERIES = 's.kind, s."group", s.topic, s.node'
_DAYS = ", ".join(f"days_to_{share}{end}" for share in (80, 90) for end in ("", "_low", "_high"))
TABLES = {
    "rollups": f"SELECT c.slug, {_OF_SERIES}, r.grain, r.bucket, r.samples, r.most, r.p50, r.p95, r.p99, r.mean,"
    " r.other, r.changes FROM history_rollup r JOIN history_series s ON s.id = r.series_id"
    " JOIN clusters_cluster c ON c.id = s.cluster_id",
    "series": f"SELECT c.slug, {_OF_SERIES}, s.seen_on FROM history_series s"
    " JOIN clusters_cluster c ON c.id = s.cluster_id",
    "catch-ups": "SELECT c.slug, topic, partition, broker, observed_at, bytes_per_second, left_bytes, eta_seconds"
    " FROM history_catchup t JOIN clusters_cluster c ON c.id = t.cluster_id",
    "verdict counts": "SELECT query, c.slug, hour, judged, differed FROM history_verdictcount t"
    " JOIN clusters_cluster c ON c.id = t.cluster_id",
    "differences": 'SELECT c.slug, "group", topic, partition, observed_at, verdict, worker_verdict'
    " FROM history_verdictdifference t JOIN clusters_cluster c ON c.id = t.cluster_id",
    "ledger": "SELECT query, batch, newest_at, rows, skipped, flushes, set_aside FROM history_pipelineledger",
    "workloads": "SELECT c.slug, topic, format, partitions, by_hour, from_at, to_at FROM history_workload t"
    " JOIN clusters_cluster c ON c.id = t.cluster_id",
    "cluster workloads": "SELECT c.slug, by_hour, from_at, to_at FROM history_clusterworkload t"
    " JOIN clusters_cluster c ON c.id = t.cluster_id",
    "forecasts": "SELECT c.slug, broker, directory, observed_at, used_bytes, total_bytes, grows_per_day, samples,"
    f" from_at, {_DAYS} FROM history_diskforecast t JOIN clusters_cluster c ON c.id = t.cluster_id",
}
ANY_WAY = ("rollups", "series", "catch-ups", "workloads", "cluster workloads", "forecasts")
"""Of these nothing depends on where a batch ends; verdicts are of each batch, and so are entries of the ledger."""


def stored(fetched: Callable[[str], Rows]) -> Stored:
    """``fetched``: the rows of a statement."""
    return {name: sorted(fetched(statement), key=repr) for name, statement in TABLES.items()}


def differing(one: Stored, other: Stored) -> dict[str, int]:
    """How many rows of each table are in one of them only."""
    counts = {}
    for name in TABLES:
        rows, others = ({repr(row) for row in each[name]} for each in (one, other))
        counts[name] = len(rows ^ others)
    return {name: count for name, count in counts.items() if count}
