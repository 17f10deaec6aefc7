"""One look of a step at the cluster: the listing, the topics of the plan, the brokers, and how far copies are.

The listing is read first: a move that ends in between then shows its target in the newer metadata. What could not be
read is unread, or unknown, and never empty.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime

from kafkadash.clusters.models import Cluster
from kafkadash.domain.executor_look import ours as is_ours
from kafkadash.domain.executor_state import (
    BrokerSeen,
    Key,
    Listed,
    Move,
    Observation,
    PartitionSeen,
    Pressed,
    TopicSeen,
)
from kafkadash.domain.plan import Options
from kafkadash.domain.planner.topology import Broker as Topological
from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.row_reasons import DisksAboveLimit, DisksFull, DisksNotRead, DisksReadLongAgo
from kafkadash.domain.run_reasons import AnotherClusterAnswers
from kafkadash.kafka.port import (
    Broker,
    KafkaAdmin,
    KafkaFailure,
    Metadata,
    OffsetKind,
    OffsetQuery,
    Partition,
    QuorumUnavailable,
    Reassignments,
    ReplicaOffsets,
    Topic,
)
from kafkadash.reassign.run.rest_of_cluster import Disks, Known

UNKNOWN_TOPIC_OR_PARTITION = 3
WHOLE_DISK = 1.0
CERTAIN_S = 0.5
"""An offset whose question took longer is asked for once more, in seconds: nobody can tell well when it was true."""


class AnotherCluster(Exception):
    """Another Kafka cluster answers at the address."""

    def __init__(self, reason: AnotherClusterAnswers) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Look:
    """``listing`` is None where no controller answered. ``offsets``: of leaders and adding replicas of listed rows.

    ``taken_at`` is when the first read was sent, on the clock that the caller gave. ``others_move``: brokers that moves
    of others use, or used a short time ago.
    """

    observation: Observation
    metadata: Metadata
    listing: Reassignments | None
    offsets: ReplicaOffsets
    taken_at: datetime
    others_move: frozenset[int]

    @property
    def alive(self) -> frozenset[int]:
        """Brokers that can be asked and given throttles."""
        return frozenset(id_ for id_, broker in self.observation.brokers.items() if broker.alive)

    def throttled_by_others(self, rates: Mapping[int, str]) -> Look:
        """The same look with these rates of others, by broker."""
        known = self.observation.brokers
        brokers = {**known, **{id_: replace(known[id_], others_rate=rate) for id_, rate in rates.items()}}
        return replace(self, observation=replace(self.observation, brokers=brokers))


def look(
    client: KafkaAdmin,
    cluster: Cluster,
    moves: Sequence[Move],
    deadline: float,
    *,
    now: datetime,
    known: Known,
    options: Options,
    disk_limit: float | None = None,
) -> Look:
    """Four questions within ``deadline`` seconds together. Raises KafkaFailure where it failed, and AnotherCluster."""
    until = time.monotonic() + deadline
    listing, quorum = None, True
    try:
        listing = client.list_reassignments(deadline=_left(until))
    except QuorumUnavailable:
        quorum = False
    topics = sorted({move.work.row.topic for move in moves})
    metadata = client.metadata(deadline=_left(until), topics=topics)
    described = client.describe_cluster(deadline=_left(until))
    for answered in (metadata.cluster_id, described.cluster_id):
        _refuse(cluster, answered)
    rows = listing.rows if listing is not None else ()
    listed = {(r.topic, r.partition): Listed(r.replicas, frozenset(r.adding), frozenset(r.removing)) for r in rows}
    asked = _Asked(moves, metadata.topics, listed)
    offsets = ReplicaOffsets({}, {})
    if queries := asked.queries():
        with suppress(KafkaFailure):  # how far copies are is not known then, and nothing else depends on it
            offsets = client.replica_offsets(queries, deadline=_left(until))
            offsets = _asked_again(client, offsets, until)
    observation = Observation(
        at=now,
        topics=asked.topics(),
        partitions=asked.partitions(offsets, known),
        brokers=_brokers(described.brokers, known, moves, disk_limit),
        pressed=tuple(asked.pressed(known)),
        unread=asked.unread,
        unread_listed=asked.unread_listed(),
        listing=listing is not None,
        quorum=quorum,
        window_open=window_open(options, now),
        withheld=known.withheld,
    )
    return Look(observation, metadata, listing, offsets, now, known.others_moved | _of_others(listed, moves))


def _of_others(listed: Mapping[Key, Listed], moves: Sequence[Move]) -> frozenset[int]:
    """Brokers of listed moves that no row of the plan asked for."""
    ours = {move.key for move in moves if (at := listed.get(move.key)) is not None and is_ours(move, at)}
    return frozenset(broker for key, at in listed.items() if key not in ours for broker in at.replicas)


def _asked_again(client: KafkaAdmin, first: ReplicaOffsets, until: float) -> ReplicaOffsets:
    """With the quicker of two answers where the first took long; as it was where the second brings nothing better."""
    slow = [query for query, offset in first.offsets.items() if offset.took > CERTAIN_S]
    if not slow or _left(until) < max(first.offsets[query].took for query in slow):
        return first
    try:
        second = client.replica_offsets(slow, deadline=_left(until))
    except KafkaFailure:
        return first
    better = {q: offset for q, offset in second.offsets.items() if offset.took < first.offsets[q].took}
    return replace(first, offsets={**first.offsets, **better})


def refuse_another(client: KafkaAdmin, cluster: Cluster, deadline: float) -> None:
    """Raises AnotherCluster, and KafkaFailure where it cannot be asked."""
    _refuse(cluster, client.describe_cluster(deadline=deadline).cluster_id)


def _refuse(cluster: Cluster, answered: str) -> None:
    if cluster.kafka_id and answered and answered != cluster.kafka_id:
        raise AnotherCluster(AnotherClusterAnswers(cluster.name, answered, cluster.kafka_id))


def window_open(options: Options, now: datetime) -> bool:
    opens, closes = (datetime.fromisoformat(at) if at else None for at in (options.not_before, options.not_after))
    return (opens is None or opens <= now) and (closes is None or now < closes)


class _Asked:
    """The answers about the topics of the plan, put together."""

    def __init__(self, moves: Sequence[Move], topics: Iterable[Topic], listed: Mapping[Key, Listed]) -> None:
        self._keys = [move.key for move in moves]
        self._listed = listed
        answered = {topic.name: topic for topic in topics}
        named = {topic for topic, _ in self._keys}
        self._topics = {n: t for n, t in answered.items() if n in named and t.error is None}
        self._partitions = {(n, p.partition): p for n, t in self._topics.items() for p in t.partitions}
        missing = {n for n, t in answered.items() if t.error and t.error.code == UNKNOWN_TOPIC_OR_PARTITION}
        # A partition without replicas is an answer that says nothing.
        blank = {topic for (topic, _), p in self._partitions.items() if not p.replicas}
        self.unread = frozenset((named - self._topics.keys() - missing) | blank)

    def topics(self) -> dict[str, TopicSeen]:
        read = ((name, topic) for name, topic in self._topics.items() if name not in self.unread)
        return {name: TopicSeen(topic.topic_id, len(topic.partitions)) for name, topic in read}

    def unread_listed(self) -> dict[Key, Listed]:
        return {key: self._listed[key] for key in self._keys if key[0] in self.unread and key in self._listed}

    def queries(self) -> set[OffsetQuery]:
        queries = set()
        for key in self._keys:
            listed, partition = self._listed.get(key), self._partitions.get(key)
            if listed is None:
                continue
            queries |= {OffsetQuery(broker, *key, OffsetKind.LATEST) for broker in listed.adding}
            if partition is not None and partition.leader is not None:
                queries.add(OffsetQuery(partition.leader, *key, OffsetKind.LATEST))
                queries.add(OffsetQuery(partition.leader, *key, OffsetKind.EARLIEST))
        return queries

    def partitions(self, offsets: ReplicaOffsets, known: Known) -> dict[Key, PartitionSeen]:
        ends = {
            (q.topic, q.partition, q.broker): o.offset
            for q, o in offsets.offsets.items()
            if q.kind is OffsetKind.LATEST
        }
        seen = {}
        for key in self._keys:
            partition = self._partitions.get(key)
            if partition is None or key[0] in self.unread:
                continue
            listed = self._listed.get(key)
            copied: frozenset[int] = frozenset()
            end = ends.get((*key, partition.leader)) if partition.leader is not None else None
            if listed is not None and end is not None:
                copied = frozenset(b for b in listed.adding if ends.get((*key, b), -1) >= end)
            seen[key] = PartitionSeen(
                partition.replicas,
                frozenset(partition.isr),
                partition.leader,
                self._min_isr(key[0], known),
                frozenset(partition.offline),
                listed,
                copied,
            )
        return seen

    def pressed(self, known: Known) -> Iterator[Pressed]:
        """Of the plan's topics as they are now, of all others as they were seen last."""
        for key, partition in self._partitions.items():
            least = self._min_isr(key[0], known)
            if least is not None and len(partition.isr) <= least and len(partition.isr) < len(partition.replicas):
                yield self._pressed(key, partition, least)
        for lacking in known.lacking:
            if lacking.topic not in self._topics:
                key = (lacking.topic, lacking.partition)
                yield Pressed(*key, lacking.replicas, lacking.isr, lacking.min_isr, lacking.offline, self._adding(key))

    def _pressed(self, key: Key, partition: Partition, least: int) -> Pressed:
        isr, offline = frozenset(partition.isr), frozenset(partition.offline)
        return Pressed(*key, partition.replicas, isr, least, offline, self._adding(key))

    def _adding(self, key: Key) -> frozenset[int]:
        listed = self._listed.get(key)
        return listed.adding if listed else frozenset()

    def _min_isr(self, topic: str, known: Known) -> int | None:
        """As last read, if it is of this topic and not of an earlier one of the same name."""
        id_, least = known.min_isr.get(topic, ("", None))
        return least if id_ in (self._topics[topic].topic_id, topic) else None


def _brokers(
    registered: Sequence[Broker], known: Known, moves: Sequence[Move], limit: float | None
) -> dict[int, BrokerSeen]:
    """A broker that is fenced cannot be asked: for what is done here it is away."""
    coming = _coming(moves)
    return {
        broker.id: BrokerSeen(
            alive=not broker.fenced,
            fenced=bool(broker.fenced),
            cordoned=_cordoned(known.disks.get(broker.id)),
            full=_full(broker.id, known.disks.get(broker.id), coming[broker.id], limit),
        )
        for broker in registered
    }


def _coming(moves: Sequence[Move]) -> Counter[int]:
    """Bytes still to arrive at each broker; of a row in flight all of them, as what has arrived is not known apart."""
    coming: Counter[int] = Counter()
    for move in moves:
        if not move.ended and move.work.size_bytes:
            for broker in move.work.adding:
                coming[broker] += move.work.size_bytes
    return coming


def _cordoned(disks: Disks | None) -> bool:
    return disks is not None and bool(disks.dirs) and all(directory.cordoned for directory in disks.dirs)


def _full(broker: int, disks: Disks | None, coming: int, limit: float | None) -> CodedReason | None:
    """Kafka before 3.3 tells no sizes of disks: then nothing is said about them."""
    if not coming:
        return None
    if disks is None:
        return DisksNotRead(broker)
    if disks.age_s is not None:
        return DisksReadLongAgo(broker, disks.age_s)
    room = Topological(broker, dirs=disks.dirs).room(WHOLE_DISK if limit is None else limit)
    if room is None or room >= coming:
        return None
    return DisksFull(broker, room, coming) if limit is None else DisksAboveLimit(broker, room, coming, 100 * limit)


def _left(until: float) -> float:
    return max(0.1, until - time.monotonic())
