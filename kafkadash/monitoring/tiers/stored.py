"""Stored facts about tiered topics."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Case, JSONField, Q, QuerySet, Value, When

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.config_values import REMOTE_STORAGE
from kafkadash.monitoring.models import TierState, TopicState
from kafkadash.monitoring.tiers.rules import PartitionTiers, TopicTiers, is_tiered, may_be_tiered, sum_tiers


def config_of_tiers() -> Case:
    """Return the column for ``may_be_tiered``: the configs of a topic, empty where they say nothing of tiers."""
    told = Q(config__isnull=True) | Q(config__has_key=REMOTE_STORAGE)
    return Case(When(told, then="config"), default=Value({}, JSONField()))


def find_perhaps_tiered(cluster: Cluster, topics: Collection[str]) -> frozenset[str]:
    """Return those of the topics that are tiered by the configs read last, or of which none were read. One query."""
    rows = TopicState.objects.filter(cluster=cluster, name__in=topics).values_list("name", config_of_tiers())
    return frozenset(topics) - {name for name, config in rows if not may_be_tiered(config)}


@dataclass(frozen=True, slots=True)
class TieredIds:
    """Topics by Kafka's ids: ``tiered`` by the configs read last, and ``unread``, whose configs never were."""

    tiered: frozenset[str]
    unread: frozenset[str]


def find_tiered_ids(cluster: Cluster, topic_ids: QuerySet[Any, Any]) -> TieredIds:
    """Find those of the topics that are or may be tiered. One query."""
    told = Q(config__isnull=True) | Q(config__has_key=REMOTE_STORAGE)
    rows = TopicState.objects.filter(told, cluster=cluster, topic_id__in=topic_ids)
    found = {topic_id: config for topic_id, config in rows.values_list("topic_id", "config") if may_be_tiered(config)}
    unread = frozenset(topic_id for topic_id, config in found.items() if config is None)
    return TieredIds(frozenset(found) - unread, unread)


@dataclass(frozen=True, slots=True)
class StoredTiers:
    """``whole``: sums over the topic, unknown where partitions are missing in ``partitions``."""

    partitions: Mapping[int, PartitionTiers]
    whole: TopicTiers
    taken_at: datetime | None


def load_tiers(cluster: Cluster, topic: TopicState) -> StoredTiers | None:
    """Return what is known of a tiered topic, None for one that is not tiered. One query for a tiered topic."""
    if not is_tiered(topic.config):
        return None
    row = TierState.objects.filter(cluster=cluster, topic_id=topic.topic_id, format=1).first()
    stored: Mapping[str, list[int | None]] = row.partitions if row else {}
    found = unpack_tiers(stored)
    missing = [_NOT_READ] * max(0, topic.partition_count - len(found))
    return StoredTiers(found, sum_tiers([*found.values(), *missing]), row.taken_at if row else None)


def unpack_tiers(stored: Mapping[str, Sequence[int | None]]) -> dict[int, PartitionTiers]:
    return {int(number): PartitionTiers(*values) for number, values in stored.items()}


_NOT_READ = PartitionTiers(None, None, None, None, None)
