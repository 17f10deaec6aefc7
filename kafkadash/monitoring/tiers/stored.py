"""Stored facts about tiered topics."""

from __future__ import annotations

from collections.abc import Collection

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.config_values import REMOTE_STORAGE
from kafkadash.monitoring.models import TopicState
from kafkadash.monitoring.tiers.rules import is_tiered


def find_tiered_topics(cluster: Cluster, topics: Collection[str]) -> frozenset[str]:
    """Return those of the topics that are tiered by the configs read last. One query."""
    rows = TopicState.objects.filter(cluster=cluster, name__in=topics, config__has_key=REMOTE_STORAGE)
    return frozenset(name for name, config in rows.values_list("name", "config") if is_tiered(config))
