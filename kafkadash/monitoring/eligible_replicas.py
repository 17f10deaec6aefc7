"""Eligible leader replicas (KIP-966) of troubled partitions: read with the metadata, stored by topic, read for pages.

Kafka keeps an ELR only where the ISR has fewer replicas than min.insync.replicas, so partitions whose replicas are all
in sync are not asked for. Of the others those without a leader come first, then those with the smallest ISR. The log
ends of live replicas are read where nobody leads: an unclean election would keep the records before them.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.api import (
    EligibleReplicas,
    KafkaFailure,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    PartitionMetadata,
    ReplicaOffset,
    TopicMetadata,
    TopicPartition,
)
from kafkadash.monitoring.collectors import CollectContext
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import EligibleReplicaState

MOST_PARTITIONS = 2000
"""Partitions of one refresh: one page of Kafka's answer."""


@dataclass(frozen=True, slots=True)
class EligibleReading:
    """``rows`` is None where nothing was answered: then what is stored stays, with its age."""

    rows: Sequence[EligibleReplicaState] | None
    errors: Sequence[CodedMessage] = ()


@dataclass(frozen=True, slots=True)
class LeaderCandidates:
    """Stored candidates of a partition: ELR and last known ELR (None: unknown), and the log ends of live replicas."""

    eligible: tuple[int, ...] | None
    last_known: tuple[int, ...] | None
    ends: Mapping[int, tuple[int, datetime]]
    taken_at: datetime


def choose_troubled(topics: Iterable[TopicMetadata]) -> list[tuple[TopicMetadata, PartitionMetadata]]:
    """Return the partitions that are asked for, the worst first."""
    troubled = (
        (topic, p) for topic in topics for p in topic.partitions if p.leader is None or len(p.isr) < len(p.replicas)
    )
    return heapq.nsmallest(
        MOST_PARTITIONS,
        troubled,
        key=lambda each: (each[1].leader is not None, len(each[1].isr), each[0].name, each[1].partition),
    )


def read_eligible(
    asking: CollectContext, topics: Iterable[TopicMetadata], live: Collection[int], taken_at: datetime
) -> EligibleReading:
    """Read what is known of troubled partitions of these topics. A failure costs nothing but these rows."""
    chosen = choose_troubled(topics)
    if not chosen:
        return EligibleReading([])
    wanted: dict[str, list[int]] = defaultdict(list)
    for topic, p in chosen:
        wanted[topic.name].append(p.partition)
    queries = [
        OffsetQuery(broker, topic.name, p.partition, OffsetKind.LATEST)
        for topic, p in chosen
        if p.leader is None
        for broker in p.replicas
        if broker in live and broker not in p.offline
    ]
    ends: Mapping[OffsetQuery, ReplicaOffset] = {}
    try:
        asking.step()
        try:
            found = asking.admin.eligible_replicas(wanted, deadline=asking.deadline)
        except NotSupported:
            found = {}
        if queries:
            asking.step()
            ends = asking.admin.replica_offsets(queries, deadline=asking.deadline).offsets
    except KafkaFailure as failure:
        return EligibleReading(None, [coded(CollectionErrorCode.ELIGIBLE_NOT_READ, why=failure.message)])
    return EligibleReading(_build_rows(asking.cluster, chosen, found, ends, taken_at))


def _build_rows(
    cluster: Cluster,
    chosen: Sequence[tuple[TopicMetadata, PartitionMetadata]],
    found: Mapping[TopicPartition, EligibleReplicas],
    ends: Mapping[OffsetQuery, ReplicaOffset],
    taken_at: datetime,
) -> list[EligibleReplicaState]:
    packed: dict[str, dict[str, list[object]]] = defaultdict(dict)
    for topic, p in chosen:
        own = found.get(TopicPartition(topic.name, p.partition), EligibleReplicas(None, None))
        queries = {broker: OffsetQuery(broker, topic.name, p.partition, OffsetKind.LATEST) for broker in p.replicas}
        known = {
            str(broker): [ends[query].offset, round(ends[query].taken_at, 3)]
            for broker, query in queries.items()
            if query in ends
        }
        packed[topic.topic_id or topic.name][str(p.partition)] = [own.eligible, own.last_known, known]
    return [
        EligibleReplicaState(cluster=cluster, topic_id=topic_id, partitions=partitions, taken_at=taken_at)
        for topic_id, partitions in sorted(packed.items())
    ]


def write_eligible(cluster: Cluster, reading: EligibleReading) -> None:
    """Store the rows of a reading in place of those from before."""
    if reading.rows is None:
        return
    kept = [row.topic_id for row in reading.rows]
    EligibleReplicaState.objects.filter(cluster=cluster).exclude(topic_id__in=kept).delete()
    EligibleReplicaState.objects.bulk_create(
        reading.rows,
        update_conflicts=True,
        unique_fields=["cluster", "topic_id"],
        update_fields=["format", "partitions", "taken_at"],
    )


def load_candidates(cluster: Cluster, topic_ids: Collection[str]) -> dict[tuple[str, int], LeaderCandidates]:
    """Return what is stored of these topics, by topic id and partition. One query."""
    rows = EligibleReplicaState.objects.filter(cluster=cluster, topic_id__in=topic_ids, format=1)
    return {
        (row.topic_id, int(number)): LeaderCandidates(
            None if eligible is None else tuple(eligible),
            None if last_known is None else tuple(last_known),
            {int(broker): (end, datetime.fromtimestamp(at, UTC)) for broker, (end, at) in ends.items()},
            row.taken_at,
        )
        for row in rows
        for number, (eligible, last_known, ends) in row.partitions.items()
    }
