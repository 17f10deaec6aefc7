"""Consumer groups as stored rows have them: state, committed offsets, and the log of each partition."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.group_changes.errors import GroupErrorCode
from kafkadash.kafka.api import Offsets, TopicPartition
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.monitoring.groups.names import key_of, label_group
from kafkadash.monitoring.groups.pages import find_other_group, group_freshness, present_groups
from kafkadash.monitoring.groups.window import NOT_KNOWN, members_of, unpack_window
from kafkadash.monitoring.models import CollectorKind, CollectorRun, GroupState, TopicState
from kafkadash.short_runs.kinds import Items

EMPTY = "Empty"
"""Kafka's word for a group without members (org.apache.kafka.common.GroupState)."""


@dataclass(frozen=True, slots=True)
class StoredGroup:
    """``logs``: log start and end, None where not known. ``topics``: those that members are assigned partitions of.

    ``freshness`` is its own: others may have been read since, while its coordinator did not answer.
    """

    name: str
    type: str
    state: str
    commits: Mapping[TopicPartition, int]
    logs: Mapping[TopicPartition, tuple[int | None, int | None]]
    topics: frozenset[str]
    freshness: FactFreshness


def load_groups(cluster: Cluster, names: Collection[str]) -> dict[str, StoredGroup]:
    """Load groups that Kafka lists, by name. Two queries."""
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.GROUPS).first()
    now = clock.now()
    rows = present_groups(cluster).filter(key__in=[key_of(name) for name in names]).select_related("window")
    return {row.name: _read_row(row, group_freshness(row, run, now)) for row in rows}


def refuse_type(cluster: Cluster, slug: str) -> CodedMessage | None:
    """Return why a group cannot be changed here that Kafka lists without committed offsets. One query."""
    other = find_other_group(cluster, slug)
    if other is None:
        return None
    return coded(GroupErrorCode.NO_COMMITS_OF_TYPE, group=label_group(other.name), kind=other.kind)


def find_stale(cluster: Cluster, items: Items) -> CodedMessage | None:
    """Return that the data of a group of these items is stale, of the oldest. Two queries."""
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.GROUPS).first()
    keys = {key_of(item.content["group"]) for item in items}
    oldest = present_groups(cluster).filter(key__in=keys).order_by("taken_at").first()
    if oldest is None or not group_freshness(oldest, run, clock.now()).stale:
        return None
    return coded(GroupErrorCode.DATA_STALE, group=label_group(oldest.name))


def _read_row(row: GroupState, freshness: FactFreshness) -> StoredGroup:
    window = unpack_window(bytes(row.window.data))
    commits: dict[TopicPartition, int] = {}
    logs: dict[TopicPartition, tuple[int | None, int | None]] = {}
    if window.samples:
        newest = zip(window.keys, window.committed[-1], window.starts, window.ends[-1], strict=True)
        for (topic, number), committed, start, end in newest:
            partition = TopicPartition(topic, number)
            logs[partition] = (None if start == NOT_KNOWN else start, None if end == NOT_KNOWN else end)
            if committed != NOT_KNOWN:
                commits[partition] = committed
    topics = frozenset(topic for member in members_of(row) for topic in member.assigned)
    return StoredGroup(row.name, row.type, row.state, commits, logs, topics, freshness)


def load_topics(cluster: Cluster, names: Collection[str]) -> dict[str, tuple[str, int]]:
    """Load id and number of partitions of topics. One query."""
    rows = TopicState.objects.filter(cluster=cluster, name__in=names).order_by("changed_at")
    return {
        name: (topic_id, count) for name, topic_id, count in rows.values_list("name", "topic_id", "partition_count")
    }


def hash_commits(commits: Mapping[TopicPartition, int]) -> str:
    """Return 32 hex digits that stand for committed offsets."""
    listed = sorted([partition.topic, partition.partition, offset] for partition, offset in commits.items())
    return hashlib.blake2b(json.dumps(listed).encode(), digest_size=16).hexdigest()


def flatten_offsets(offsets: Offsets) -> dict[TopicPartition, int]:
    """Return offsets as Kafka answers them, by partition."""
    return {
        TopicPartition(topic, number): offset
        for topic, partitions in offsets.items()
        for number, offset in partitions.items()
    }
