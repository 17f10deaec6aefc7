"""Topics as the metadata collector stores them: one row each, written only where something of it changed."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.clusters.models import Cluster
from kafkadash.domain.rack_spread import racks_known, spread
from kafkadash.domain.topology import Health, PartitionShape, health, together
from kafkadash.kafka.port import Broker, Partition, Topic
from kafkadash.observe.models import Outcome, ReassignmentSnapshot, TopicState

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
class Topics:
    """Changed topics ready to be written, and the figures of the whole cluster; counters are by broker."""

    changed: list[TopicState] = field(default_factory=list)
    gone: list[int] = field(default_factory=list)
    count: int = 0
    health: Health = field(default_factory=Health)
    rack_violations: int | None = None
    replicas: Counter[int] = field(default_factory=Counter)
    leaders: Counter[int] = field(default_factory=Counter)
    preferred: Counter[int] = field(default_factory=Counter)
    offline_replicas: Counter[int] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Known:
    """A stored row, without what is large. The rest of it follows from the digest of its shape."""

    pk: int
    shape: str
    min_isr: int | None
    under_min_isr: int | None
    at_min_isr: int | None
    rack_violations: int | None
    changed_at: datetime


def compare_topics(cluster: Cluster, topics: Sequence[Topic], brokers: Sequence[Broker], taken_at: datetime) -> Topics:
    """Finds the topics that differ from the stored ones. Compares digests and counts, so nothing is unpacked."""
    known = {
        row[0]: _Known(*row[1:])
        for row in TopicState.objects.filter(cluster=cluster).values_list(
            "topic_id", "pk", "shape", "min_isr", "under_min_isr", "at_min_isr", "rack_violations", "changed_at"
        )
    }
    moves = running_moves(cluster)
    racks = Racks(brokers)
    result = Topics(count=len(topics), rack_violations=0 if racks.known else None)
    parts: list[Health] = []
    seen = set()
    for topic in topics:
        topic_id = topic.topic_id or topic.name
        seen.add(topic_id)
        if topic.error:
            result.errors.append(f"topic {topic.name}: {topic.error.text}")
            continue
        before = known.get(topic_id)
        min_isr = before.min_isr if before else None
        shapes = [_shape(topic.name, p, moves) for p in topic.partitions]
        counts = health(shapes, min_isr)
        parts.append(counts)
        violations = racks.violations(topic, moves)
        result.rack_violations = _plus(result.rack_violations, violations)
        _count_brokers(result, shapes)
        packed, shape = pack(topic)
        derived = (shape, counts.under_min_isr, counts.at_min_isr, violations)
        if before is None or derived != _derived(before):
            changed_at = before.changed_at if before and before.shape == shape else taken_at
            result.changed.append(_row(cluster, topic, packed, shape, counts, violations, changed_at))
    result.gone = [row.pk for topic_id, row in known.items() if topic_id not in seen]
    result.health = together(parts)
    # Rows are written in one order by everybody, so that two writers wait for each other instead of both.
    result.changed.sort(key=lambda row: row.topic_id)
    return result


def running_moves(cluster: Cluster) -> Moves:
    """(topic, partition) → the brokers that are being added to it, and those that are being removed."""
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
    return {
        (topic, partition): (frozenset(adding), frozenset(removing))
        for topic, partition, adding, removing in running.values_list("topic", "partition", "adding", "removing")
    }


def pack(topic: Topic) -> tuple[list[list[object]], str]:
    """The partitions as ``TopicState.partitions`` has them, and the digest of all that the row keeps of them."""
    packed: list[list[object]] = [
        [p.partition, p.leader, p.leader_epoch, p.replicas, p.isr, p.offline] for p in topic.partitions
    ]
    text = json.dumps([topic.name, topic.internal, packed], separators=(",", ":"))
    return packed, hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


class Racks:
    """Judges the spread over racks; the same set of replicas is judged once."""

    def __init__(self, brokers: Sequence[Broker]) -> None:
        names = [broker.rack for broker in brokers]
        self.known = racks_known(names)
        self._rack_of = {broker.id: broker.rack for broker in brokers if broker.rack is not None}
        self._racks = len(set(names))
        self._judged: dict[tuple[int, ...], bool] = {}

    def violations(self, topic: Topic, moves: Moves) -> int | None:
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
                violates = self._judged[replicas] = spread(replicas, self._rack_of, self._racks).violates
            count += violates
        return count


def _shape(topic: str, p: Partition, moves: Moves) -> PartitionShape:
    adding = moves[topic, p.partition][0] if moves and (topic, p.partition) in moves else _NOTHING
    return PartitionShape(p.leader, p.replicas, p.isr, adding, p.offline)


def _count_brokers(result: Topics, shapes: Iterable[PartitionShape]) -> None:
    for shape in shapes:
        for broker in shape.replicas:
            result.replicas[broker] += 1
        for broker in shape.offline_replicas:
            result.offline_replicas[broker] += 1
        if shape.leader is not None:
            result.leaders[shape.leader] += 1
        if shape.replicas:
            result.preferred[shape.replicas[0]] += 1


def _derived(before: _Known) -> tuple[object, ...]:
    return before.shape, before.under_min_isr, before.at_min_isr, before.rack_violations


def _plus(total: int | None, more: int | None) -> int | None:
    return None if total is None or more is None else total + more


def _row(
    cluster: Cluster,
    topic: Topic,
    packed: list[list[object]],
    shape: str,
    counts: Health,
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
