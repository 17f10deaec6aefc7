"""Brokers as the metadata collector stores them; what hosts replicas and left the cluster keeps its row."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.port import Broker
from kafkadash.observe.collectors.topics import Topics
from kafkadash.observe.models import BrokerState

_COUNTS = ["replicas", "leaders", "offline_replicas", "preferred"]
_COMPARED = ["host", "port", "rack", "fenced", *_COUNTS, "gone_at"]
BROKER_FIELDS = [*_COMPARED, "changed_at"]


def compare_brokers(
    cluster: Cluster, described: Sequence[Broker], live: Sequence[Broker], topics: Topics, taken_at: datetime
) -> list[BrokerState]:
    """Rows of new, changed and vanished brokers. DescribeCluster knows the fenced ones, Metadata only the live."""
    alive = {broker.id for broker in live}
    known = {row.broker_id: row for row in BrokerState.objects.filter(cluster=cluster).defer("config")}
    changed = []
    for broker in described:
        fenced = broker.fenced if broker.fenced is not None else broker.id not in alive
        row = _row(cluster, broker, fenced, topics, taken_at)
        before = known.get(broker.id)
        if before is None or any(getattr(before, name) != getattr(row, name) for name in _COMPARED):
            row.first_seen_at = before.first_seen_at if before else taken_at
            if before and not _moved(before, row):
                row.changed_at = before.changed_at
            changed.append(row)
    for broker_id in known.keys() - {broker.id for broker in described}:
        before = known[broker_id]
        row = _gone_row(before, topics, taken_at)
        if any(getattr(before, name) != getattr(row, name) for name in _COMPARED):
            changed.append(row)
    return sorted(changed, key=lambda row: row.broker_id)


def _row(cluster: Cluster, broker: Broker, fenced: bool, topics: Topics, taken_at: datetime) -> BrokerState:
    return BrokerState(
        cluster=cluster,
        broker_id=broker.id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        fenced=fenced,
        **_counts(broker.id, topics),
        first_seen_at=taken_at,
        changed_at=taken_at,
        gone_at=None,
    )


def _gone_row(before: BrokerState, topics: Topics, taken_at: datetime) -> BrokerState:
    return BrokerState(
        cluster_id=before.cluster_id,
        broker_id=before.broker_id,
        host=before.host,
        port=before.port,
        rack=before.rack,
        fenced=before.fenced,
        **_counts(before.broker_id, topics),
        first_seen_at=before.first_seen_at,
        changed_at=before.changed_at if before.gone_at else taken_at,
        gone_at=before.gone_at or taken_at,
    )


def _counts(broker_id: int, topics: Topics) -> dict[str, int]:
    return {
        "replicas": topics.replicas[broker_id],
        "leaders": topics.leaders[broker_id],
        "offline_replicas": topics.offline_replicas[broker_id],
        "preferred": topics.preferred[broker_id],
    }


def _moved(before: BrokerState, row: BrokerState) -> bool:
    """Whether the broker itself is another than before; what it hosts does not count for its ``changed_at``."""
    return any(getattr(before, name) != getattr(row, name) for name in _COMPARED if name not in _COUNTS)
