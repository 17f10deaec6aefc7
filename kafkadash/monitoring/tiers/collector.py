"""Offsets of tiered topics, read from their leaders after the log directories and stored by topic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import F, OuterRef, Q, Subquery

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.api import KafkaFailure, LogDir, OffsetKind, OffsetQuery, ReplicaOffsets
from kafkadash.kafka.config_values import REMOTE_STORAGE
from kafkadash.monitoring.collectors import CollectContext, to_utc
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import TierState, TopicState
from kafkadash.monitoring.tiers.rules import is_tiered

MOST_PARTITIONS = 20_000
"""Partitions of one refresh. Topics beyond keep their rows, and come first at the next one."""

_KINDS = (OffsetKind.EARLIEST, OffsetKind.EARLIEST_LOCAL, OffsetKind.LATEST_TIERED, OffsetKind.LATEST)


@dataclass(frozen=True, slots=True)
class TierReading:
    """``topic_ids`` of all tiered topics: what is stored of one without a row in ``rows`` stays, with its age."""

    topic_ids: Sequence[str]
    rows: Sequence[TierState] = ()
    errors: Sequence[CodedMessage] = ()


@dataclass(frozen=True, slots=True)
class _TieredTopic:
    name: str
    topic_id: str
    leaders: Mapping[int, int | None]


def read_tiers(asking: CollectContext, dirs: Mapping[int, Sequence[LogDir]]) -> TierReading:
    """Read the offsets of tiered topics by four requests to each leader. A failure costs nothing but these rows."""
    topic_ids, topics = _list_tiered(asking.cluster)
    if not topic_ids:
        return TierReading(())
    left_out = len(topic_ids) - len(topics)
    told = [coded(CollectionErrorCode.TIERS_LEFT_OUT, topics=left_out, most=MOST_PARTITIONS)] if left_out else []
    queries = [
        OffsetQuery(leader, topic.name, number, kind)
        for topic in topics
        for number, leader in topic.leaders.items()
        if leader is not None and leader in dirs
        for kind in _KINDS
    ]
    asking.step()
    try:
        found = asking.admin.replica_offsets(queries, deadline=asking.deadline) if queries else ReplicaOffsets({}, {})
    except KafkaFailure as failure:
        return TierReading(topic_ids, errors=[*told, coded(CollectionErrorCode.TIERS_NOT_READ, why=failure.message)])
    sizes = _collect_sizes(dirs, {topic.name for topic in topics})
    rows = [_build_row(asking.cluster, topic, found, sizes) for topic in topics]
    return TierReading(topic_ids, [row for row in rows if row is not None], [*told, *_list_errors(found)])


def write_tiers(cluster: Cluster, reading: TierReading) -> None:
    """Store the rows of a reading. Topics that are not tiered any more have none; those without configs keep theirs."""
    unknown = TopicState.objects.filter(cluster=cluster, config__isnull=True).values("topic_id")
    kept = Q(topic_id__in=reading.topic_ids) | Q(topic_id__in=unknown)
    TierState.objects.filter(cluster=cluster).exclude(kept).delete()
    TierState.objects.bulk_create(
        reading.rows,
        update_conflicts=True,
        unique_fields=["cluster", "topic_id"],
        update_fields=["format", "partitions", "taken_at"],
    )


def _list_tiered(cluster: Cluster) -> tuple[list[str], list[_TieredTopic]]:
    """Return the ids of all tiered topics, and those to read: as many as fit, those read longest ago first."""
    rows = TierState.objects.filter(cluster=OuterRef("cluster"), topic_id=OuterRef("topic_id"))
    read_first = F("read_at").asc(nulls_first=True)
    stored = (
        TopicState.objects.filter(cluster=cluster, format=1, config__has_key=REMOTE_STORAGE)
        .annotate(read_at=Subquery(rows.values("taken_at")))
        .order_by(read_first, "name")
        .values_list("name", "topic_id", "config", "partitions")
    )
    topic_ids: list[str] = []
    topics: list[_TieredTopic] = []
    room = MOST_PARTITIONS
    for name, topic_id, config, packed in stored.iterator():
        if not is_tiered(config):
            continue
        topic_ids.append(topic_id)
        if len(packed) <= room:
            room -= len(packed)
            topics.append(_TieredTopic(name, topic_id, {number: leader for number, leader, *_ in packed}))
    return topic_ids, topics


def _collect_sizes(dirs: Mapping[int, Sequence[LogDir]], topics: set[str]) -> dict[tuple[int, str, int], int]:
    return {
        (broker, replica.topic, replica.partition): replica.size_bytes
        for broker, directories in dirs.items()
        for directory in directories
        for replica in directory.replicas
        if replica.topic in topics and not replica.future
    }


def _build_row(
    cluster: Cluster, topic: _TieredTopic, found: ReplicaOffsets, sizes: Mapping[tuple[int, str, int], int]
) -> TierState | None:
    """Return the row of a topic; None where no leader of it answered."""
    partitions: dict[str, list[int | None]] = {}
    times: list[datetime] = []
    for number, leader in topic.leaders.items():
        if leader is None:
            continue
        told = [found.offsets.get(OffsetQuery(leader, topic.name, number, kind)) for kind in _KINDS]
        if any(told):
            offsets = [each.offset if each else None for each in told]
            partitions[str(number)] = [*offsets, sizes.get((leader, topic.name, number))]
            times += [to_utc(each.taken_at) for each in told if each]
    if not times:
        return None
    return TierState(cluster=cluster, topic_id=topic.topic_id, partitions=partitions, taken_at=min(times))


def _list_errors(found: ReplicaOffsets) -> list[CodedMessage]:
    """Return one message where leaders did not answer; brokers that are too old for the last tiered offset did."""
    failed = (error for query, error in found.errors.items() if query.kind is not OffsetKind.LATEST_TIERED)
    first = next(failed, None)
    return [] if first is None else [coded(CollectionErrorCode.TIERS_NOT_READ, why=first.message)]
