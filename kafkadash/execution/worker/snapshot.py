"""Observation of the cluster by a step: the listing, the topics of the plan, the brokers, and the progress of copies.

The listing is read first: a move that ends in between then shows its target in the newer metadata. A part that could
not be read is unread or unknown, and never empty.

Only the rows of the plan are read live. Other partitions that lack in-sync replicas, and the disks, are taken from the
collectors; if that data is too old, nothing more is submitted.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any

from django.contrib.postgres.expressions import ArraySubquery
from django.db.models import Case, JSONField, OuterRef, Q, QuerySet, Value, When
from django.db.models.functions import JSONObject

from kafkadash.changes.plan import RunOptions
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, PlainReason
from kafkadash.core.status import is_stale
from kafkadash.execution.engine.admission import is_our_reassignment as is_ours
from kafkadash.execution.engine.reasons import (
    AnotherClusterAnswers,
    DisksAboveLimit,
    DisksFull,
    DisksNotRead,
    DisksReadLongAgo,
    OtherTopicsReadLongAgo,
    RunReasonCode,
)
from kafkadash.execution.engine.state import (
    BrokerSeen,
    ClusterObservation,
    Key,
    ListedReassignment,
    PartitionBelowMinIsr,
    PartitionSeen,
    RunRow,
    TopicSeen,
)
from kafkadash.kafka.api import (
    UNKNOWN_TOPIC_OR_PARTITION,
    BrokerInfo,
    ClusterMetadata,
    KafkaAdmin,
    KafkaFailure,
    ListedReassignments,
    OffsetKind,
    OffsetQuery,
    PartitionMetadata,
    QuorumUnavailable,
    ReplicaOffsets,
    TopicMetadata,
)
from kafkadash.monitoring.models import (
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
    TopicState,
    is_closed,
)
from kafkadash.monitoring.tiers.rules import may_be_tiered
from kafkadash.monitoring.tiers.stored import config_of_tiers
from kafkadash.planning.topology import LogDirectory
from kafkadash.planning.topology import PlannedBroker as Topological

OTHERS_CLEAR = timedelta(minutes=1)
"""So long after the end of their moves others may take to remove the throttle that these needed."""


@dataclass(frozen=True, slots=True)
class MissingFacts:
    """A partition that has fewer replicas in sync than replicas, as last seen."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    offline: frozenset[int]
    min_isr: int


@dataclass(frozen=True, slots=True)
class DiskFacts:
    """The directories of a broker; ``age_s``: seconds since they were read, where that is too long ago, else None."""

    dirs: tuple[LogDirectory, ...]
    age_s: float | None = None


@dataclass(frozen=True, slots=True)
class ClusterContext:
    """``min_isr``: topic → (Kafka's id, min.insync.replicas or None). ``withheld``: see ``ClusterObservation``.

    ``others_moved``: brokers that moves of others use, or used until less than ``OTHERS_CLEAR`` ago. ``tiered``:
    topics with remote storage, or whose configs were not read.
    """

    at: datetime
    min_isr: Mapping[str, tuple[str, int | None]] = field(default_factory=dict)
    lacking: Sequence[MissingFacts] = ()
    disks: Mapping[int, DiskFacts] = field(default_factory=dict)
    withheld: tuple[CodedReason, ...] = ()
    others_moved: frozenset[int] = frozenset()
    tiered: frozenset[str] = frozenset()


def read_context(cluster: Cluster, topics: Collection[str], now: datetime) -> ClusterContext:
    """Two queries."""
    lacks = Q(under_replicated__gt=0, min_isr__isnull=False)
    rows = TopicState.objects.filter(Q(name__in=list(topics)) | lacks, cluster=cluster).values_list(
        "name",
        "topic_id",
        "min_isr",
        Case(When(lacks, then="partitions"), default=Value(None, JSONField()), output_field=JSONField()),
        config_of_tiers(),
    )
    min_isr: dict[str, tuple[str, int | None]] = {}
    lacking: list[MissingFacts] = []
    tiered: set[str] = set()
    for name, topic_id, least, partitions, config in rows:
        min_isr[name] = (topic_id, least)
        if may_be_tiered(config):
            tiered.add(name)
        lacking += _find_lacking(name, least, partitions or ())
    weights = BrokerWeights.objects.filter(cluster=OuterRef("cluster")).values(
        of=JSONObject(broker="broker_id", dirs="dirs", at="taken_at")
    )
    runs = CollectorRun.objects.filter(cluster=cluster, kind__in=(CollectorKind.METADATA, CollectorKind.LOG_DIRS))
    columns = ("kind", "interval_s", "succeeded_at", ArraySubquery(weights), ArraySubquery(_moved_by_others(now)))
    read = {run[0]: run for run in runs.values_list(*columns)}
    _, interval, _, disks, _ = read.get(CollectorKind.LOG_DIRS, ("", 0.0, None, (), ()))
    _, metadata_interval, metadata_at, _, others = read.get(CollectorKind.METADATA, ("", 0.0, None, (), ()))
    return ClusterContext(
        now,
        min_isr,
        lacking,
        {w["broker"]: _read_disks(w["dirs"], datetime.fromisoformat(w["at"]), interval, now) for w in disks},
        _reasons_to_withhold(metadata_at, metadata_interval, now),
        frozenset(broker for replicas in others for broker in replicas),
        frozenset(tiered),
    )


def _moved_by_others(now: datetime) -> QuerySet[ReassignmentSnapshot, Any]:
    """Replicas, those being added and removed among them, of moves of others that go on or ended lately."""
    of_others = ReassignmentSnapshot.objects.filter(cluster=OuterRef("cluster"), claimed_by="")
    lately = of_others.filter(Q(outcome=MoveOutcome.RUNNING) | Q(ended_at__gt=now - OTHERS_CLEAR))
    return lately.values("replicas").distinct()


def _find_lacking(topic: str, min_isr: int | None, partitions: Sequence[Sequence[Any]]) -> list[MissingFacts]:
    if min_isr is None:
        return []
    return [
        MissingFacts(topic, number, tuple(replicas), frozenset(isr), frozenset(offline), min_isr)
        for number, _, _, replicas, isr, offline in partitions
        if len(isr) < len(replicas) and len(isr) <= min_isr
    ]


def _read_disks(stored: Sequence[Mapping[str, Any]], taken_at: datetime, interval_s: float, now: datetime) -> DiskFacts:
    age = (now - taken_at).total_seconds() if is_stale(taken_at, interval_s, now) else None
    return DiskFacts(tuple(_read_directory(each) for each in stored), age)


def _read_directory(stored: Mapping[str, Any]) -> LogDirectory:
    """Return the stored directory. A run takes an offline one as cordoned."""
    total, usable = stored["total_bytes"], stored["usable_bytes"]
    used = None if total is None or usable is None else max(0, total - usable)
    return LogDirectory(stored["path"], total, used, is_closed(stored))


def _reasons_to_withhold(read_at: datetime | None, interval_s: float, now: datetime) -> tuple[CodedReason, ...]:
    if read_at is None:
        return (PlainReason(RunReasonCode.OTHER_TOPICS_NEVER_READ),)
    if is_stale(read_at, interval_s, now):
        return (OtherTopicsReadLongAgo((now - read_at).total_seconds()),)
    return ()


WHOLE_DISK = 1.0
CERTAIN_S = 0.5
"""An offset whose question took longer is asked for once more, in seconds: nobody can tell well when it was true."""


class ClusterReplaced(Exception):
    """Another Kafka cluster answers at the address."""

    def __init__(self, reason: AnotherClusterAnswers) -> None:
        super().__init__(str(reason))
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ClusterSnapshot:
    """``listing`` is None where no controller answered. ``offsets``: of leaders and adding replicas of listed rows.

    ``taken_at`` is when the first read was sent, on the clock that the caller gave. ``others_move``: brokers that moves
    of others use, or used a short time ago.
    """

    observation: ClusterObservation
    metadata: ClusterMetadata
    listing: ListedReassignments | None
    offsets: ReplicaOffsets
    taken_at: datetime
    others_move: frozenset[int]

    @property
    def alive(self) -> frozenset[int]:
        """Brokers that can be asked and given throttles."""
        return frozenset(id_ for id_, broker in self.observation.brokers.items() if broker.alive)

    def throttled_by_others(self, rates: Mapping[int, str]) -> ClusterSnapshot:
        """The same look with these rates of others, by broker."""
        known = self.observation.brokers
        brokers = {**known, **{id_: replace(known[id_], others_rate=rate) for id_, rate in rates.items()}}
        return replace(self, observation=replace(self.observation, brokers=brokers))


def observe_cluster(
    client: KafkaAdmin,
    cluster: Cluster,
    moves: Sequence[RunRow],
    deadline: float,
    *,
    now: datetime,
    known: ClusterContext,
    options: RunOptions,
    disk_limit: float | None = None,
) -> ClusterSnapshot:
    """Four questions within ``deadline`` seconds together. Raises KafkaFailure where it failed, and AnotherCluster."""
    until = time.monotonic() + deadline
    listing, quorum = None, True
    try:
        listing = client.list_reassignments(deadline=_seconds_left(until))
    except QuorumUnavailable:
        quorum = False
    topics = sorted({move.work.row.topic for move in moves})
    metadata = client.metadata(deadline=_seconds_left(until), topics=topics)
    described = client.describe_cluster(deadline=_seconds_left(until))
    for answered in (metadata.cluster_id, described.cluster_id):
        _refuse_other_cluster(cluster, answered)
    rows = listing.rows if listing is not None else ()
    listed = {
        (r.topic, r.partition): ListedReassignment(r.replicas, frozenset(r.adding), frozenset(r.removing)) for r in rows
    }
    queried = _AskedCluster(moves, metadata.topics, listed)
    offsets = ReplicaOffsets({}, {})
    if queries := queried.queries(known.tiered):
        with suppress(KafkaFailure):  # how far copies are is not known then, and nothing else depends on it
            offsets = client.replica_offsets(queries, deadline=_seconds_left(until))
            offsets = _asked_again(client, offsets, until)
    observation = ClusterObservation(
        at=now,
        topics=queried.topics(),
        partitions=queried.partitions(offsets, known),
        brokers=_observe_brokers(described.brokers, known, moves, disk_limit),
        pressed=tuple(queried.pressed(known)),
        unread=queried.unread,
        unread_listed=queried.unread_listed(),
        listing=listing is not None,
        quorum=quorum,
        window_open=window_open(options, now),
        withheld=known.withheld,
    )
    return ClusterSnapshot(observation, metadata, listing, offsets, now, known.others_moved | _of_others(listed, moves))


def _of_others(listed: Mapping[Key, ListedReassignment], moves: Sequence[RunRow]) -> frozenset[int]:
    """Brokers of listed moves that no row of the plan asked for."""
    ours = {move.key for move in moves if (at := listed.get(move.key)) is not None and is_ours(move, at)}
    return frozenset(broker for key, at in listed.items() if key not in ours for broker in at.replicas)


def _asked_again(client: KafkaAdmin, first: ReplicaOffsets, until: float) -> ReplicaOffsets:
    """With the quicker of two answers where the first took long; as it was where the second brings nothing better."""
    slow = [query for query, offset in first.offsets.items() if offset.took > CERTAIN_S]
    if not slow or _seconds_left(until) < max(first.offsets[query].took for query in slow):
        return first
    try:
        second = client.replica_offsets(slow, deadline=_seconds_left(until))
    except KafkaFailure:
        return first
    better = {q: offset for q, offset in second.offsets.items() if offset.took < first.offsets[q].took}
    return replace(first, offsets={**first.offsets, **better})


def refuse_another(client: KafkaAdmin, cluster: Cluster, deadline: float) -> None:
    """Raises AnotherCluster, and KafkaFailure where it cannot be asked."""
    _refuse_other_cluster(cluster, client.describe_cluster(deadline=deadline).cluster_id)


def _refuse_other_cluster(cluster: Cluster, answered: str) -> None:
    if cluster.kafka_id and answered and answered != cluster.kafka_id:
        raise ClusterReplaced(AnotherClusterAnswers(cluster.name, answered, cluster.kafka_id))


def window_open(options: RunOptions, now: datetime) -> bool:
    opens, closes = (datetime.fromisoformat(at) if at else None for at in (options.not_before, options.not_after))
    return (opens is None or opens <= now) and (closes is None or now < closes)


class _AskedCluster:
    """The answers about the topics of the plan, put together."""

    def __init__(
        self, moves: Sequence[RunRow], topics: Iterable[TopicMetadata], listed: Mapping[Key, ListedReassignment]
    ) -> None:
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

    def unread_listed(self) -> dict[Key, ListedReassignment]:
        return {key: self._listed[key] for key in self._keys if key[0] in self.unread and key in self._listed}

    def queries(self, tiered: Collection[str]) -> set[OffsetQuery]:
        queries = set()
        for key in self._keys:
            listed, partition = self._listed.get(key), self._partitions.get(key)
            if listed is None:
                continue
            kinds = (OffsetKind.LATEST, OffsetKind.EARLIEST_LOCAL) if key[0] in tiered else (OffsetKind.LATEST,)
            queries |= {OffsetQuery(broker, *key, kind) for broker in listed.adding for kind in kinds}
            if partition is not None and partition.leader is not None:
                queries.add(OffsetQuery(partition.leader, *key, OffsetKind.LATEST))
                queries.add(OffsetQuery(partition.leader, *key, OffsetKind.EARLIEST_LOCAL))
        return queries

    def partitions(self, offsets: ReplicaOffsets, known: ClusterContext) -> dict[Key, PartitionSeen]:
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

    def pressed(self, known: ClusterContext) -> Iterator[PartitionBelowMinIsr]:
        """Yield partitions at or below min-ISR: of the plan's topics as they are now, of all others as last seen."""
        for key, partition in self._partitions.items():
            least = self._min_isr(key[0], known)
            if least is not None and len(partition.isr) <= least and len(partition.isr) < len(partition.replicas):
                yield self._pressed(key, partition, least)
        for lacking in known.lacking:
            if lacking.topic not in self._topics:
                key = (lacking.topic, lacking.partition)
                yield PartitionBelowMinIsr(
                    *key, lacking.replicas, lacking.isr, lacking.min_isr, lacking.offline, self._adding(key)
                )

    def _pressed(self, key: Key, partition: PartitionMetadata, least: int) -> PartitionBelowMinIsr:
        isr, offline = frozenset(partition.isr), frozenset(partition.offline)
        return PartitionBelowMinIsr(*key, partition.replicas, isr, least, offline, self._adding(key))

    def _adding(self, key: Key) -> frozenset[int]:
        listed = self._listed.get(key)
        return listed.adding if listed else frozenset()

    def _min_isr(self, topic: str, known: ClusterContext) -> int | None:
        """Return min-ISR as last read, or None if it is of an earlier topic of the same name."""
        id_, least = known.min_isr.get(topic, ("", None))
        return least if id_ in (self._topics[topic].topic_id, topic) else None


def _observe_brokers(
    registered: Sequence[BrokerInfo], known: ClusterContext, moves: Sequence[RunRow], limit: float | None
) -> dict[int, BrokerSeen]:
    """A broker that is fenced cannot be asked: for what is done here it is away."""
    coming = _sum_coming_bytes(moves)
    return {
        broker.id: BrokerSeen(
            alive=not broker.fenced,
            fenced=bool(broker.fenced),
            cordoned=_is_cordoned(known.disks.get(broker.id)),
            full=_find_disk_shortage(broker.id, known.disks.get(broker.id), coming[broker.id], limit),
        )
        for broker in registered
    }


def _sum_coming_bytes(moves: Sequence[RunRow]) -> Counter[int]:
    """Bytes still to arrive at each broker; of a row in flight all of them, as what has arrived is not known apart."""
    coming: Counter[int] = Counter()
    for move in moves:
        if not move.ended and move.work.size_bytes:
            for broker in move.work.adding:
                coming[broker] += move.work.size_bytes
    return coming


def _is_cordoned(disks: DiskFacts | None) -> bool:
    return disks is not None and bool(disks.dirs) and all(directory.cordoned for directory in disks.dirs)


def _find_disk_shortage(broker: int, disks: DiskFacts | None, coming: int, limit: float | None) -> CodedReason | None:
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


def _seconds_left(until: float) -> float:
    return max(0.1, until - time.monotonic())
