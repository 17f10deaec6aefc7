"""Newest reading of ZooKeeper for pages: the controller, and what is pending there."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.messages import CodedMessage
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness
from kafkadash.monitoring.models import CollectorKind, ZooKeeperState

_MOST_ROWS = 50


@dataclass(frozen=True, slots=True)
class EnsembleView:
    """``state`` is None where ZooKeeper was never asked, so that nothing is known of it.

    ``address``: whether one is entered, without which it is not asked.
    """

    address: bool
    state: ZooKeeperState | None
    freshness: FactFreshness

    @property
    def known(self) -> bool:
        return self.state is not None and self.state.taken_at is not None

    @property
    def error(self) -> CodedMessage | None:
        return self.state.error if self.state else None

    @property
    def queued(self) -> list[tuple[str, list[int]]]:
        """The first queued reassignments: partition as Kafka's tools write it, and target."""
        rows: list[Any] = self.state.queued[:_MOST_ROWS] if self.state else []
        return [(f"{topic}-{partition}", target) for topic, partition, target in rows]

    @property
    def elections(self) -> list[str]:
        rows: list[Any] = self.state.elections[:_MOST_ROWS] if self.state else []
        return [f"{topic}-{partition}" for topic, partition in rows]

    @property
    def deletions(self) -> list[str]:
        return list(self.state.deletions[:_MOST_ROWS]) if self.state else []


def read_ensemble(cluster: Cluster, now: datetime, known: CollectionFreshness) -> EnsembleView | None:
    """Return what is shown of a cluster in ZooKeeper mode, None for others."""
    if cluster.mode != ClusterMode.ZOOKEEPER:
        return None
    state = ZooKeeperState.objects.filter(cluster=cluster).first() if cluster.zookeeper else None
    interval = known.freshness_of(CollectorKind.REASSIGNMENTS).interval_s
    fresh = FactFreshness(state.taken_at if state else None, interval, now)
    return EnsembleView(bool(cluster.zookeeper), state, fresh)
