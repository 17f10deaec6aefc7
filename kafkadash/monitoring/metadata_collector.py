"""Collector of topics and brokers: rows are written only if something of them changed.

A broker that hosts replicas and left the cluster keeps its row.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import RegisteredTwice, double_message, first_registered, remember_double
from kafkadash.core.errors import UserError
from kafkadash.core.failures import FailureKind
from kafkadash.core.leases import WriteStamp, one_writer_of_shapes
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.racks import judge_spread, racks_known
from kafkadash.kafka.api import BrokerInfo, ClusterDescription, PartitionMetadata, TopicMetadata
from kafkadash.monitoring.cluster_events.rules import (
    BrokerSighting,
    EventDraft,
    LeaderChanges,
    TopicShape,
    find_broker_events,
    find_grown_topics,
    find_topic_events,
)
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts, to_utc
from kafkadash.monitoring.eligible_replicas import read_eligible, write_eligible
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerCatchUp,
    BrokerState,
    ClusterState,
    CollectorKind,
    MoveOutcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.monitoring.partitions import AbsentBrokers, PartitionHealth, PartitionShape, count_health, sum_health

TOPIC_FIELDS = [
    "name",
    "internal",
    "format",
    "partitions",
    "shape",
    "partition_count",
    "replication_factor",
    "offline_partitions",
    "under_replicated",
    "offline_replicas",
    "preferred_leaders",
    "under_min_isr",
    "at_min_isr",
    "rack_violations",
    "changed_at",
]
_NOTHING: frozenset[int] = frozenset()
Moves = Mapping[tuple[str, int], tuple[frozenset[int], frozenset[int]]]


@dataclass(slots=True)
class CollectedTopics:
    """Changed topics ready to be written, and the figures of the whole cluster; counters are by broker."""

    changed: list[TopicState] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    new: list[TopicState] = field(default_factory=list)
    reshaped: list[TopicState] = field(default_factory=list)
    count: int = 0
    health: PartitionHealth = field(default_factory=PartitionHealth)
    absent: AbsentBrokers = field(default_factory=AbsentBrokers)
    rack_violations: int | None = None
    replicas: Counter[int] = field(default_factory=Counter)
    leaders: Counter[int] = field(default_factory=Counter)
    preferred: Counter[int] = field(default_factory=Counter)
    offline_replicas: Counter[int] = field(default_factory=Counter)
    errors: list[CodedMessage] = field(default_factory=list)
    troubled: list[TopicMetadata] = field(default_factory=list)
    catching_up: bool = False


@dataclass(frozen=True, slots=True)
class _KnownTopics:
    """A stored row, without what is large. The rest of it follows from the digest of its shape."""

    pk: int
    shape: str
    min_isr: int | None
    under_min_isr: int | None
    at_min_isr: int | None
    rack_violations: int | None
    changed_at: datetime


def compare_topics(
    cluster: Cluster, topics: Sequence[TopicMetadata], brokers: Sequence[BrokerInfo], taken_at: datetime
) -> CollectedTopics:
    """Finds the topics that differ from the stored ones. Compares digests and counts, so nothing is unpacked."""
    known = {
        row[0]: _KnownTopics(*row[1:])
        for row in TopicState.objects.filter(cluster=cluster).values_list(
            "topic_id", "pk", "shape", "min_isr", "under_min_isr", "at_min_isr", "rack_violations", "changed_at"
        )
    }
    moves = running_moves(cluster)
    racks = BrokerRacks(brokers)
    result = CollectedTopics(count=len(topics), rack_violations=0 if racks.known else None)
    parts: list[PartitionHealth] = []
    seen = set()
    for topic in topics:
        topic_id = topic.topic_id or topic.name
        seen.add(topic_id)
        if topic.error:
            result.errors.append(coded(CollectionErrorCode.TOPIC_NOT_READ, topic=topic.name, why=topic.error.message))
            continue
        before = known.get(topic_id)
        min_isr = before.min_isr if before else None
        shapes = [_shape(topic.name, p, moves) for p in topic.partitions]
        counts = count_health(shapes, min_isr)
        parts.append(counts)
        if counts.offline or counts.under_replicated:
            result.troubled.append(topic)
            for each in shapes:
                result.absent.add(each, min_isr)
            result.catching_up = result.catching_up or any(s.under_replicated and s.followers_behind for s in shapes)
        violations = racks.violations(topic, moves)
        result.rack_violations = _add_known(result.rack_violations, violations)
        _count_brokers(result, shapes)
        packed, shape = pack_topic(topic)
        derived = (shape, counts.under_min_isr, counts.at_min_isr, violations)
        if before is None or derived != _derived_columns(before):
            changed_at = before.changed_at if before and before.shape == shape else taken_at
            row = _row(cluster, topic, packed, shape, counts, violations, changed_at)
            result.changed.append(row)
            if before is None:
                result.new.append(row)
            elif before.shape != shape:
                result.reshaped.append(row)
    result.gone = [row.pk for topic_id, row in known.items() if topic_id not in seen]
    result.health = sum_health(parts)
    # Rows are written in one order by everybody, so that two writers wait for each other instead of both.
    result.changed.sort(key=lambda row: row.topic_id)
    return result


def find_topic_changes(cluster: Cluster, topics: CollectedTopics, brokers: Iterable[BrokerInfo]) -> list[EventDraft]:
    """Compare changed topics with their stored rows, which the refresh has not replaced yet. Two queries at most."""
    leaders = LeaderChanges([broker.id for broker in brokers if not broker.fenced])
    grown: list[tuple[str, int, int]] = []
    after = {row.topic_id: row for row in topics.reshaped}
    stored = TopicState.objects.filter(cluster=cluster, topic_id__in=after) if after else TopicState.objects.none()
    for topic_id, partitions in stored.values_list("topic_id", "partitions").iterator():
        row = after[topic_id]
        leaders.add_topic(row.name, partitions, row.partitions)
        if len(partitions) < row.partition_count:
            grown.append((row.name, len(partitions), row.partition_count))
    shape = ("topic_id", "name", "partition_count", "replication_factor")
    gone = TopicState.objects.filter(pk__in=topics.gone).values_list(*shape) if topics.gone else []
    new = [TopicShape(*(getattr(row, name) for name in shape)) for row in topics.new]
    return [
        *leaders.events(),
        *find_topic_events([TopicShape(*row) for row in gone], new),
        *find_grown_topics(grown),
    ]


def running_moves(cluster: Cluster) -> Moves:
    """(topic, partition) → the brokers that are being added to it, and those that are being removed."""
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
    return {
        (topic, partition): (frozenset(adding), frozenset(removing))
        for topic, partition, adding, removing in running.values_list("topic", "partition", "adding", "removing")
    }


def pack_topic(topic: TopicMetadata) -> tuple[list[list[object]], str]:
    """The partitions as ``TopicState.partitions`` has them, and the digest of all that the row keeps of them."""
    packed: list[list[object]] = [
        [p.partition, p.leader, p.leader_epoch, p.replicas, p.isr, p.offline] for p in topic.partitions
    ]
    text = json.dumps([topic.name, topic.internal, packed], separators=(",", ":"))
    return packed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class BrokerRacks:
    """Judges the spread over racks; the same set of replicas is judged once."""

    def __init__(self, brokers: Sequence[BrokerInfo]) -> None:
        names = [broker.rack for broker in brokers]
        self.known = racks_known(names)
        self._rack_of = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
        self._racks = len(set(names))
        self._judged: dict[tuple[int, ...], bool] = {}

    def violations(self, topic: TopicMetadata, moves: Moves) -> int | None:
        """Partitions that are not spread evenly; of a moving one, its target counts. None where racks are unknown."""
        if not self.known:
            return None
        count = 0
        for p in topic.partitions:
            replicas = p.replicas
            if moves and (move := moves.get((topic.name, p.partition))):
                replicas = tuple(broker for broker in replicas if broker not in move[1])
            violates = self._judged.get(replicas)
            if violates is None:
                violates = self._judged[replicas] = judge_spread(replicas, self._rack_of, self._racks).violates
            count += violates
        return count


def _shape(topic: str, p: PartitionMetadata, moves: Moves) -> PartitionShape:
    adding = moves[topic, p.partition][0] if moves and (topic, p.partition) in moves else _NOTHING
    return PartitionShape(p.leader, p.replicas, p.isr, adding, p.offline)


def _count_brokers(result: CollectedTopics, shapes: Iterable[PartitionShape]) -> None:
    for shape in shapes:
        for broker in shape.replicas:
            result.replicas[broker] += 1
        for broker in shape.offline_replicas:
            result.offline_replicas[broker] += 1
        if shape.leader is not None:
            result.leaders[shape.leader] += 1
        if shape.replicas:
            result.preferred[shape.replicas[0]] += 1


def _derived_columns(before: _KnownTopics) -> tuple[object, ...]:
    return before.shape, before.under_min_isr, before.at_min_isr, before.rack_violations


def _add_known(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _row(
    cluster: Cluster,
    topic: TopicMetadata,
    packed: list[list[object]],
    shape: str,
    counts: PartitionHealth,
    violations: int | None,
    changed_at: datetime,
) -> TopicState:
    return TopicState(
        cluster=cluster,
        topic_id=topic.topic_id or topic.name,
        name=topic.name,
        internal=topic.internal,
        partitions=packed,
        shape=shape,
        partition_count=counts.partitions,
        replication_factor=max((len(p.replicas) for p in topic.partitions), default=0),
        offline_partitions=counts.offline,
        under_replicated=counts.under_replicated,
        offline_replicas=counts.offline_replicas,
        preferred_leaders=counts.preferred_leaders,
        under_min_isr=counts.under_min_isr,
        at_min_isr=counts.at_min_isr,
        rack_violations=violations,
        changed_at=changed_at,
    )


_COUNTS = ["replicas", "leaders", "offline_replicas", "preferred"]
_COMPARED = ["host", "port", "rack", "fenced", *_COUNTS, "gone_at"]
BROKER_FIELDS = [*_COMPARED, "changed_at"]


def compare_brokers(
    cluster: Cluster,
    described: Sequence[BrokerInfo],
    topics: CollectedTopics,
    taken_at: datetime,
) -> tuple[list[BrokerState], list[EventDraft]]:
    """Return rows of new, changed and vanished brokers, and what happened to them.

    Before Kafka 4.0, a broker that is only stopped vanishes too.
    """
    tells_fenced = any(broker.fenced is not None for broker in described)
    known = {row.broker_id: row for row in BrokerState.objects.filter(cluster=cluster).defer("config")}
    changed = []
    for broker in described:
        row = _broker_row(cluster, broker, topics, taken_at)
        before = known.get(broker.id)
        if before is None or any(getattr(before, name) != getattr(row, name) for name in _COMPARED):
            row.first_seen_at = before.first_seen_at if before else taken_at
            if before and not _has_broker_changed(before, row):
                row.changed_at = before.changed_at
            changed.append(row)
    for broker_id in known.keys() - {broker.id for broker in described}:
        before = known[broker_id]
        row = _gone_row(before, bool(before.fenced) if tells_fenced else None, topics, taken_at)
        if any(getattr(before, name) != getattr(row, name) for name in _COMPARED):
            changed.append(row)
    changed.sort(key=lambda row: row.broker_id)
    sightings = [(_sight_broker(known.get(row.broker_id)), _sight_broker(row)) for row in changed]
    return changed, list(find_broker_events((before, after) for before, after in sightings if after))


def _sight_broker(row: BrokerState | None) -> BrokerSighting | None:
    if row is None:
        return None
    return BrokerSighting(row.broker_id, row.gone_at is None, bool(row.fenced), f"{row.host}:{row.port}", row.rack)


def _broker_row(cluster: Cluster, broker: BrokerInfo, topics: CollectedTopics, taken_at: datetime) -> BrokerState:
    return BrokerState(
        cluster=cluster,
        broker_id=broker.id,
        host=broker.host,
        port=broker.port,
        rack=broker.rack,
        fenced=broker.fenced,
        **_broker_counts(broker.id, topics),
        first_seen_at=taken_at,
        changed_at=taken_at,
        gone_at=None,
    )


def _gone_row(before: BrokerState, fenced: bool | None, topics: CollectedTopics, taken_at: datetime) -> BrokerState:
    """Return the row of a broker that is not listed; without ``fenced`` it may still be registered."""
    return BrokerState(
        cluster_id=before.cluster_id,
        broker_id=before.broker_id,
        host=before.host,
        port=before.port,
        rack=before.rack,
        fenced=fenced,
        **_broker_counts(before.broker_id, topics),
        first_seen_at=before.first_seen_at,
        changed_at=before.changed_at if before.gone_at else taken_at,
        gone_at=before.gone_at or taken_at,
    )


def _broker_counts(broker_id: int, topics: CollectedTopics) -> dict[str, int]:
    return {
        "replicas": topics.replicas[broker_id],
        "leaders": topics.leaders[broker_id],
        "offline_replicas": topics.offline_replicas[broker_id],
        "preferred": topics.preferred[broker_id],
    }


def _has_broker_changed(before: BrokerState, row: BrokerState) -> bool:
    """Return whether the broker's own facts changed; counts of hosted replicas do not affect its ``changed_at``.

    Nor does it whether the cluster tells that a broker is not fenced, which an upgrade changes.
    """
    if bool(before.fenced) != bool(row.fenced):
        return True
    return any(getattr(before, name) != getattr(row, name) for name in ("host", "port", "rack", "gone_at"))


_ROWS_AT_ONCE = 400  # topics that a short transaction can write


class AnotherCluster(UserError):
    """The address leads to a Kafka cluster with a different id than the one that was registered."""

    kind = FailureKind.ANOTHER_CLUSTER


def read(asking: CollectContext) -> CollectedFacts:
    asking.step()
    described = asking.admin.describe_cluster(deadline=asking.deadline)
    asking.step()
    metadata = asking.admin.metadata(deadline=asking.deadline)
    cluster, taken_at = asking.cluster, to_utc(metadata.taken_at)
    other_id = described.cluster_id if cluster.kafka_id not in ("", described.cluster_id) else ""
    if other_id:
        _remember_conflict(cluster, other_id)
        raise AnotherCluster(other_cluster_message(cluster, other_id))
    first = first_registered(cluster, described.cluster_id)
    if (first and first.pk) != cluster.same_as_id:
        remember_double("collector", cluster, first)
    if first is not None:
        raise RegisteredTwice(double_message(cluster, first))
    topics = compare_topics(cluster, metadata.topics, described.brokers, taken_at)
    brokers, broker_events = compare_brokers(cluster, described.brokers, topics, taken_at)
    # All that the first refresh finds is new to kafkadash, but not to the cluster.
    seen_before = asking.succeeded_at is not None
    topic_events = find_topic_changes(cluster, topics, described.brokers) if seen_before else []
    figures = _cluster_figures(described, topics)
    eligible = read_eligible(asking, topics.troubled, {broker.id for broker in metadata.brokers}, taken_at)

    def tell(events: Sequence[EventDraft]) -> None:
        store_events(cluster.pk, events, taken_at, asking.succeeded_at)

    portions = _portions(cluster, topics, lambda: tell(topic_events)) if len(topics.changed) > _ROWS_AT_ONCE else []

    def write(_: WriteStamp) -> None:
        one_writer_of_shapes(cluster.pk)
        _learn_identity(cluster, described)
        if not portions:
            _write_topics(topics.gone, topics.changed)
            tell(topic_events)
        if seen_before:
            tell(broker_events)
        BrokerState.objects.bulk_create(
            brokers, update_conflicts=True, unique_fields=["cluster", "broker_id"], update_fields=BROKER_FIELDS
        )
        store_figures(cluster, figures)
        write_eligible(cluster, eligible)

    # Once catch-up is measured it goes on at its own pace.
    measured = topics.catching_up and BrokerCatchUp.objects.filter(cluster=cluster).exists()
    return CollectedFacts(
        taken_at=taken_at,
        rows=topics.health.partitions,
        write=write,
        errors=[*topics.errors, *eligible.errors],
        portions=portions,
        doubts=[CollectorKind.CATCH_UP] if topics.catching_up and not measured else (),
    )


def _portions(cluster: Cluster, topics: CollectedTopics, tell: Callable[[], None]) -> list[Callable[[], None]]:
    """Return the writes in order; deleted topics go first, so that no two topics have the same name.

    ``tell`` stores the events with the first of them: after a refresh that was broken off, the next one repeats the
    events of topics that were not written, instead of losing them.
    """
    parts: list[tuple[list[int], list[TopicState]]] = [(topics.gone, [])]
    starts = range(0, len(topics.changed), _ROWS_AT_ONCE)
    parts += [([], topics.changed[start : start + _ROWS_AT_ONCE]) for start in starts]

    def portion(gone: list[int], changed: list[TopicState]) -> None:
        one_writer_of_shapes(cluster.pk)
        _write_topics(gone, changed)

    def first() -> None:
        portion(*parts[0])
        tell()

    return [first, *(partial(portion, *part) for part in parts[1:])]


def _write_topics(gone: list[int], changed: list[TopicState]) -> None:
    if gone:
        TopicState.objects.filter(pk__in=gone).delete()
    TopicState.objects.bulk_create(
        changed, update_conflicts=True, unique_fields=["cluster", "topic_id"], update_fields=TOPIC_FIELDS
    )


def store_figures(cluster: Cluster, figures: Mapping[str, object]) -> None:
    """Writes the cluster's row where one of these figures differs from it."""
    known = ClusterState.objects.filter(cluster=cluster).values(*figures).first()
    if known is None or known != figures:
        ClusterState.objects.update_or_create(cluster=cluster, defaults=dict(figures))


def other_cluster_message(cluster: Cluster, other_id: str) -> CodedMessage:
    return coded(ClusterErrorCode.OTHER_CLUSTER, cluster=cluster.name, answered=other_id, expected=cluster.kafka_id)


def _remember_conflict(cluster: Cluster, other_id: str) -> None:
    """Makes the collectors of the other kinds refuse too; one column, so it needs no lease."""
    Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id=other_id)


def _learn_identity(cluster: Cluster, described: ClusterDescription) -> None:
    if not cluster.kafka_id:
        Cluster.objects.filter(pk=cluster.pk, kafka_id="").update(kafka_id=described.cluster_id)
    if cluster.other_kafka_id:
        Cluster.objects.filter(pk=cluster.pk).update(other_kafka_id="")


def _count_fenced(brokers: Sequence[BrokerInfo]) -> int | None:
    """Count fenced brokers; None where the cluster does not tell which are (before Kafka 4.0)."""
    return None if any(b.fenced is None for b in brokers) else sum(1 for b in brokers if b.fenced)


def _cluster_figures(described: ClusterDescription, topics: CollectedTopics) -> dict[str, object]:
    present = {b.id for b in described.brokers}
    return {
        "brokers": len(present),
        "brokers_fenced": _count_fenced(described.brokers),
        "brokers_gone": len(topics.replicas.keys() - present),
        "brokers_without_rack": sum(1 for b in described.brokers if b.rack is None),
        "racks": len({b.rack for b in described.brokers if b.rack is not None}),
        "topics": topics.count,
        "partitions": topics.health.partitions,
        "offline_partitions": topics.health.offline,
        "under_replicated": topics.health.under_replicated,
        "under_replicated_moving": topics.health.explained_by_move,
        "offline_replicas": topics.health.offline_replicas,
        "preferred_leaders": topics.health.preferred_leaders,
        "under_min_isr": topics.health.under_min_isr,
        "at_min_isr": topics.health.at_min_isr,
        "at_min_isr_moving": topics.health.at_min_isr_moving,
        "absent_brokers": topics.absent.as_json(),
        "rack_violations": topics.rack_violations,
    }
