"""Topics and brokers: the shape of the cluster, written only where it changed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.clusters.models import Cluster
from kafkadash.domain.topology import PartitionShape, health
from kafkadash.kafka.port import Broker, ClusterDescription, Metadata, Topic
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import BrokerState, ClusterState, Outcome, ReassignmentSnapshot, TopicState

_TOPIC_FIELDS = [
    "name",
    "internal",
    "format",
    "partitions",
    "shape",
    "partition_count",
    "replication_factor",
    "offline_partitions",
    "under_replicated",
    "changed_at",
]
_BROKER_FIELDS = ["host", "port", "rack", "fenced", "replicas", "leaders", "changed_at", "gone_at"]


class AnotherCluster(Exception):
    """The address leads to a Kafka cluster with a different id than the one that was registered."""


@dataclass(slots=True)
class _Topics:
    """Changed topics ready to be written, and the figures of the whole cluster."""

    changed: list[TopicState] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    figures: dict[str, int] = field(default_factory=dict)
    replicas: Counter[int] = field(default_factory=Counter)
    leaders: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


def read(asking: Asking) -> Reading:
    asking.step()
    described = asking.admin.describe_cluster(deadline=asking.deadline)
    asking.step()
    metadata = asking.admin.metadata(deadline=asking.deadline)
    cluster, taken_at = asking.cluster, moment(metadata.taken_at)
    other_id = described.cluster_id if cluster.kafka_id not in ("", described.cluster_id) else ""
    if other_id:
        _remember_conflict(cluster, other_id)
        raise AnotherCluster(other_cluster_sentence(cluster, other_id))
    topics = _compare_topics(cluster, metadata, taken_at)
    brokers = _compare_brokers(cluster, described, metadata, topics, taken_at)
    state = _cluster_figures(described, topics)

    def write(_: Stamp) -> None:
        _learn_identity(cluster, described)
        TopicState.objects.filter(pk__in=topics.gone).delete()
        TopicState.objects.bulk_create(
            topics.changed,
            batch_size=1000,
            update_conflicts=True,
            unique_fields=["cluster", "topic_id"],
            update_fields=_TOPIC_FIELDS,
        )
        BrokerState.objects.bulk_create(
            brokers, update_conflicts=True, unique_fields=["cluster", "broker_id"], update_fields=_BROKER_FIELDS
        )
        ClusterState.objects.update_or_create(cluster=cluster, defaults=state)

    return Reading(taken_at=taken_at, rows=topics.figures["partitions"], write=write, errors=topics.errors)


def other_cluster_sentence(cluster: Cluster, other_id: str) -> str:
    return (
        f"The address of {cluster.name} now leads to the Kafka cluster {other_id}, not to {cluster.kafka_id}."
        " Nothing of it is stored. Correct the address, or register the other cluster under a name of its own."
    )


def _remember_conflict(cluster: Cluster, other_id: str) -> None:
    """Makes the collectors of the other kinds refuse too; one column, so it needs no lease."""
    Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id=other_id)


def _learn_identity(cluster: Cluster, described: ClusterDescription) -> None:
    if not cluster.kafka_id:
        Cluster.objects.filter(pk=cluster.pk, kafka_id="").update(kafka_id=described.cluster_id)
    if cluster.other_kafka_id:
        Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id="")


def _compare_topics(cluster: Cluster, metadata: Metadata, taken_at: datetime) -> _Topics:
    """Finds the topics whose shape differs from the stored one. Compares digests, so that nothing is unpacked."""
    known = {
        topic_id: (pk, shape)
        for pk, topic_id, shape in TopicState.objects.filter(cluster=cluster).values_list("pk", "topic_id", "shape")
    }
    adding = _adding_replicas(cluster)
    result = _Topics()
    shapes: list[PartitionShape] = []
    seen = set()
    for topic in metadata.topics:
        topic_id = topic.topic_id or topic.name
        seen.add(topic_id)
        if topic.error:
            result.errors.append(f"topic {topic.name}: {topic.error.message}")
            continue
        own = [
            PartitionShape(p.leader, p.replicas, p.isr, adding.get((topic.name, p.partition), frozenset()))
            for p in topic.partitions
        ]
        shapes += own
        for shape in own:
            result.replicas.update(shape.replicas)
            if shape.leader is not None:
                result.leaders[shape.leader] += 1
        state = _topic_state(cluster, topic, topic_id, own, taken_at)
        if topic_id not in known or known[topic_id][1] != state.shape:
            result.changed.append(state)
    result.gone = [pk for topic_id, (pk, _) in known.items() if topic_id not in seen]
    counts = health(shapes)
    result.figures = {
        "topics": len(metadata.topics),
        "partitions": counts.partitions,
        "offline_partitions": counts.offline,
        "under_replicated": counts.under_replicated,
        "under_replicated_moving": counts.explained_by_move,
    }
    return result


def _adding_replicas(cluster: Cluster) -> Mapping[tuple[str, int], frozenset[int]]:
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
    return {
        (topic, partition): frozenset(adding)
        for topic, partition, adding in running.values_list("topic", "partition", "adding")
    }


def _topic_state(
    cluster: Cluster, topic: Topic, topic_id: str, shapes: Iterable[PartitionShape], taken_at: datetime
) -> TopicState:
    packed = [
        [p.partition, p.leader, p.leader_epoch, list(p.replicas), list(p.isr), list(p.offline)]
        for p in sorted(topic.partitions, key=lambda p: p.partition)
    ]
    counts = health(shapes)
    text = json.dumps([topic.name, topic.internal, packed], separators=(",", ":"))
    return TopicState(
        cluster=cluster,
        topic_id=topic_id,
        name=topic.name,
        internal=topic.internal,
        partitions=packed,
        shape=hashlib.blake2b(text.encode(), digest_size=16).hexdigest(),
        partition_count=len(packed),
        replication_factor=max((len(p.replicas) for p in topic.partitions), default=0),
        offline_partitions=counts.offline,
        under_replicated=counts.under_replicated,
        changed_at=taken_at,
    )


def _compare_brokers(
    cluster: Cluster, described: ClusterDescription, metadata: Metadata, topics: _Topics, taken_at: datetime
) -> list[BrokerState]:
    """Rows of new, changed and vanished brokers. DescribeCluster knows the fenced ones, Metadata only the live."""
    live = {b.id for b in metadata.brokers}
    known = {b.broker_id: b for b in BrokerState.objects.filter(cluster=cluster)}
    changed = []
    for broker in described.brokers:
        fenced = broker.fenced if broker.fenced is not None else broker.id not in live
        row = _broker_row(cluster, broker, fenced, topics, taken_at)
        before = known.get(broker.id)
        if before is None or any(getattr(before, f) != getattr(row, f) for f in _BROKER_FIELDS if f != "changed_at"):
            row.first_seen_at = before.first_seen_at if before else taken_at
            changed.append(row)
    for broker_id in known.keys() - {b.id for b in described.brokers}:
        row = known[broker_id]
        replicas, leaders = topics.replicas[broker_id], topics.leaders[broker_id]
        if row.gone_at is None or (row.replicas, row.leaders) != (replicas, leaders):
            row.gone_at = row.gone_at or taken_at
            row.replicas, row.leaders, row.changed_at = replicas, leaders, taken_at
            changed.append(row)
    return changed


def _broker_row(
    cluster: Cluster, broker: Broker, fenced: bool | None, topics: _Topics, taken_at: datetime
) -> BrokerState:
    return BrokerState(
        cluster=cluster,
        broker_id=broker.id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        fenced=fenced,
        replicas=topics.replicas[broker.id],
        leaders=topics.leaders[broker.id],
        first_seen_at=taken_at,
        changed_at=taken_at,
        gone_at=None,
    )


def _cluster_figures(described: ClusterDescription, topics: _Topics) -> dict[str, int]:
    present = {b.id for b in described.brokers}
    return {
        "brokers": len(present),
        "brokers_fenced": sum(1 for b in described.brokers if b.fenced),
        "brokers_gone": len(topics.replicas.keys() - present),
        "racks": len(_racks(described.brokers)),
        **topics.figures,
    }


def _racks(brokers: Sequence[Broker]) -> set[str]:
    return {b.rack for b in brokers if b.rack is not None}
