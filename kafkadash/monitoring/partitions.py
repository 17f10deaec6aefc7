"""Health of partitions in the terms of ``kafka-topics`` (org.apache.kafka.tools.TopicCommand), and partitions as rows.

``trouble_of`` gives the classes of ``kafka-topics --describe --under-…``. Rows are unpacked from
``TopicState.partitions`` for the pages of topics, brokers and racks.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, fields
from datetime import datetime
from enum import Enum
from functools import cached_property
from typing import TypedDict

from django.db.models import F, Q

from kafkadash.clusters.models import Cluster
from kafkadash.core.racks import short_labels
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, load_standing
from kafkadash.monitoring.models import BrokerState, CollectorKind, MoveOutcome, ReassignmentSnapshot, TopicState


@dataclass(frozen=True, slots=True)
class PartitionShape:
    """A partition as metadata tells it; ``adding`` are the replicas a running reassignment brings in.

    ``offline_replicas`` are those on brokers or directories that are away.
    """

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: frozenset[int] = frozenset()
    offline_replicas: tuple[int, ...] = ()

    @property
    def offline(self) -> bool:
        """No leader: neither producers nor consumers can use it."""
        return self.leader is None

    @property
    def under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def explained_by_move(self) -> bool:
        """Under-replicated only because replicas that are being added have not caught up yet."""
        return bool(self.adding) and self.under_replicated and set(self.replicas) - set(self.isr) <= self.adding

    @property
    def followers_behind(self) -> list[int]:
        """Replicas that are alive and outside the ISR without being added: they have to catch up."""
        away = {*self.isr, *self.offline_replicas, *self.adding}
        return [broker for broker in self.replicas if broker not in away]

    @property
    def led_by_preferred(self) -> bool:
        return bool(self.replicas) and self.leader == self.replicas[0]

    def under_min_isr(self, min_isr: int) -> bool:
        """Producers with acks=all fail: fewer replicas in sync than min.insync.replicas, or no leader at all."""
        return self.leader is None or len(self.isr) < min_isr

    def at_min_isr(self, min_isr: int) -> bool:
        """Return whether the ISR, which Kafka's tool counts, is just ``min_isr``: with one fewer, acks=all fails."""
        return len(self.isr) == min_isr


@dataclass(frozen=True, slots=True)
class PartitionHealth:
    """Counts of partitions (``offline_replicas``: of replicas).

    The two about min.insync.replicas are None where it is not known; ``explained_by_move`` is a part of
    ``under_replicated``, and ``at_min_isr_moving`` of ``at_min_isr``.
    """

    partitions: int = 0
    offline: int = 0
    under_replicated: int = 0
    explained_by_move: int = 0
    offline_replicas: int = 0
    preferred_leaders: int = 0
    under_min_isr: int | None = None
    at_min_isr: int | None = None
    at_min_isr_moving: int | None = None


def count_health(partitions: Iterable[PartitionShape], min_isr: int | None = None) -> PartitionHealth:
    """Counts over partitions for which the same min.insync.replicas is in force."""
    total = offline = under = explained = offline_replicas = preferred = below = at = at_moving = 0
    for shape in partitions:
        total += 1
        offline += shape.leader is None
        moved = shape.explained_by_move
        under += shape.under_replicated
        explained += moved
        offline_replicas += len(shape.offline_replicas)
        preferred += shape.led_by_preferred
        if min_isr is not None:
            below += shape.under_min_isr(min_isr)
            if shape.at_min_isr(min_isr):
                at += 1
                at_moving += moved
    if min_isr is None:
        return PartitionHealth(total, offline, under, explained, offline_replicas, preferred)
    return PartitionHealth(total, offline, under, explained, offline_replicas, preferred, below, at, at_moving)


def sum_health(parts: Iterable[PartitionHealth]) -> PartitionHealth:
    """The sum. What only some parts know is summed over these; it is None where none of several knows it."""
    own = list(parts)
    knowing = [part for part in own if part.under_min_isr is not None]
    known = bool(knowing) or not any(part.partitions for part in own)
    return PartitionHealth(
        partitions=sum(part.partitions for part in own),
        offline=sum(part.offline for part in own),
        under_replicated=sum(part.under_replicated for part in own),
        explained_by_move=sum(part.explained_by_move for part in own),
        offline_replicas=sum(part.offline_replicas for part in own),
        preferred_leaders=sum(part.preferred_leaders for part in own),
        under_min_isr=sum(part.under_min_isr or 0 for part in knowing) if known else None,
        at_min_isr=sum(part.at_min_isr or 0 for part in knowing) if known else None,
        at_min_isr_moving=sum(part.at_min_isr_moving or 0 for part in knowing) if known else None,
    )


@dataclass(slots=True)
class AbsentBrokers:
    """IDs of the brokers whose replicas partitions lack, by what these partitions are.

    ``under_min_isr``: without offline ones. ``at_min_isr``: with a replica to spare when all are in sync. Partitions
    that wait only for replicas that a reassignment adds are in neither ``at_min_isr`` nor ``under_replicated``.
    """

    offline: set[int] = field(default_factory=set)
    under_min_isr: set[int] = field(default_factory=set)
    at_min_isr: set[int] = field(default_factory=set)
    under_replicated: set[int] = field(default_factory=set)

    def add(self, shape: PartitionShape, min_isr: int | None) -> None:
        """Add a partition; ``min_isr`` None: its min.insync.replicas is not known."""
        missing = set(shape.replicas) - set(shape.isr)
        if shape.offline:
            self.offline |= set(shape.isr or shape.replicas)  # one of the ISR would lead if its broker were up
        elif min_isr is not None and len(shape.isr) < min_isr:
            self.under_min_isr |= missing
        if shape.explained_by_move:
            return
        if min_isr is not None and len(shape.isr) == min_isr < len(shape.replicas):
            self.at_min_isr |= missing
        if shape.under_replicated:
            self.under_replicated |= missing

    def as_json(self) -> dict[str, list[int]]:
        return {each.name: sorted(getattr(self, each.name)) for each in fields(self)}


def two_digits(value: int) -> int:
    """``value`` rounded to two significant digits, so that a stored figure used for sorting rarely changes."""
    digits = len(str(abs(value)))
    return round(value, 2 - digits) if digits > 2 else value


class PartitionTrouble(Enum):
    """The worst that holds, worst first."""

    OFFLINE = "Offline"
    LEADER_SILENT = "Leader unreachable"
    UNDER_MIN_ISR = "Under min-ISR"
    AT_MIN_ISR = "At min-ISR"
    UNDER_REPLICATED = "Under-replicated"
    IN_DOUBT = "Unknown"
    CATCHING_UP = "Moving"
    NONE = "OK"

    @property
    def rank(self) -> int:
        return list(PartitionTrouble).index(self)

    @property
    def state(self) -> str:
        """critical where producers fail now, warning where the next failure hurts, unknown where nobody can tell."""
        if self is PartitionTrouble.IN_DOUBT:
            return "unknown"
        if self in (PartitionTrouble.OFFLINE, PartitionTrouble.LEADER_SILENT, PartitionTrouble.UNDER_MIN_ISR):
            return "critical"
        return "ok" if self in (PartitionTrouble.CATCHING_UP, PartitionTrouble.NONE) else "warning"


def trouble_of(shape: PartitionShape, min_isr: int | None, silent: Set[int] = frozenset()) -> PartitionTrouble:
    """The worst class of a partition; ``min_isr`` None: not known, then nothing is said about it.

    ``silent`` brokers do not answer us although the controllers have them alive: whom they lead is not served, and that
    their replicas are in sync is only what was true before.

    A partition with all its replicas in sync is never "at min-ISR" here, though Kafka's tool lists it when its
    replication factor equals min.insync.replicas: nothing has failed. One that only waits for added replicas is moving.
    """
    in_sync = len(set(shape.isr))
    if shape.offline:
        return PartitionTrouble.OFFLINE
    if shape.leader in silent:
        return PartitionTrouble.LEADER_SILENT
    if min_isr is not None and in_sync < min_isr:
        return PartitionTrouble.UNDER_MIN_ISR
    if not shape.under_replicated:
        return PartitionTrouble.NONE if silent.isdisjoint(shape.isr) else PartitionTrouble.IN_DOUBT
    if shape.explained_by_move:
        return PartitionTrouble.CATCHING_UP
    if min_isr is not None and in_sync == min_isr:
        return PartitionTrouble.AT_MIN_ISR
    return PartitionTrouble.UNDER_REPLICATED


@dataclass(frozen=True)
class PartitionReplica:
    """A replica as a chip. ``change`` is "in" while it is being added, "out" while it is being removed."""

    broker: int
    rack: str
    leader: bool
    in_sync: bool
    offline: bool
    change: str

    @property
    def words(self) -> str:
        """All of it, for those who do not see the chip."""
        parts = [
            f"broker {self.broker}",
            "leader" if self.leader else "",
            {"in": "being added", "out": "being removed"}.get(self.change, ""),
            "" if self.in_sync else "not in sync",
            "offline" if self.offline else "",
        ]
        return ", ".join(filter(None, parts))


@dataclass(frozen=True)
class PartitionLine:
    """Partition row. ``move`` is its running reassignment; ``size_bytes`` the leader's replica, None if not known."""

    topic: TopicState
    number: int
    leader: int | None
    epoch: int | None
    replicas: Sequence[int]
    isr: Sequence[int]
    offline: Sequence[int]
    move: ReassignmentSnapshot | None = None
    size_bytes: int | None = None
    rack_of: Mapping[int, str] | None = None
    silent: frozenset[int] = frozenset()

    @property
    def name(self) -> str:
        """Topic and partition as Kafka's tools write them."""
        return f"{self.topic.name}-{self.number}"

    @cached_property
    def shape(self) -> PartitionShape:
        adding = frozenset(self.move.adding) if self.move else frozenset()
        return PartitionShape(self.leader, tuple(self.replicas), tuple(self.isr), adding, tuple(self.offline))

    @cached_property
    def trouble(self) -> PartitionTrouble:
        return trouble_of(self.shape, self.topic.min_isr, self.silent)

    @property
    def preferred(self) -> bool | None:
        """Led by its first replica; None without a leader."""
        return None if self.leader is None or not self.replicas else self.leader == self.replicas[0]

    @property
    def missing(self) -> list[int]:
        return [broker for broker in self.replicas if broker not in self.isr]

    @property
    def chips(self) -> list[PartitionReplica]:
        added = self.move.adding if self.move else ()
        removed = self.move.removing if self.move else ()
        racks = self.rack_of or {}
        return [
            PartitionReplica(
                broker=broker,
                rack=racks.get(broker, ""),
                leader=broker == self.leader,
                in_sync=broker in self.isr,
                offline=broker in self.offline,
                change="in" if broker in added else "out" if broker in removed else "",
            )
            for broker in self.replicas
        ]


def partition_lines(
    topics: Iterable[TopicState],
    moves: Mapping[tuple[str, int], ReassignmentSnapshot],
    rack_of: Mapping[int, str] | None = None,
    silent: frozenset[int] = frozenset(),
) -> Iterator[PartitionLine]:
    """All partitions of the topics, in their order. ``silent``: brokers that do not answer."""
    for topic in topics:
        for number, leader, epoch, replicas, isr, offline in topic.partitions:
            move = moves.get((topic.name, number))
            yield PartitionLine(topic, number, leader, epoch, replicas, isr, offline, move, None, rack_of, silent)


def running_moves(cluster: Cluster, topics: Iterable[str]) -> dict[tuple[str, int], ReassignmentSnapshot]:
    """Running reassignments of these topics by topic and partition."""
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING, topic__in=list(topics))
    return {(row.topic, row.partition): row for row in rows}


def rack_labels(cluster: Cluster) -> dict[int, str]:
    """Broker → short name of its rack, as far as brokers name one."""
    named = BrokerState.objects.filter(cluster=cluster, rack__isnull=False, gone_at=None)
    racks = dict(named.values_list("broker_id", "rack"))
    labels = short_labels({rack for rack in racks.values() if rack is not None})
    return {broker: labels[rack] for broker, rack in racks.items() if rack is not None}


MOST_TROUBLED = 20


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition that has no leader, or fewer replicas in sync than it should have."""

    topic: TopicState
    partition: int
    shape: PartitionShape
    trouble: PartitionTrouble

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.partition}"

    @property
    def missing(self) -> list[int]:
        return [broker for broker in self.shape.replicas if broker not in self.shape.isr]


class PartitionsContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    partitions: list[PartitionRow]
    more: bool
    freshness: FactFreshness


def partitions_context(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> PartitionsContext:
    """Partitions that need a look: worst class first. Those that only wait for the replicas a move adds are left out.

    At most ``MOST_TROUBLED``; ``more`` says that there are others.
    """
    freshness = (known or load_standing(cluster, now)).freshness_of(CollectorKind.METADATA)
    troubled = Q(offline_partitions__gt=0) | Q(under_min_isr__gt=0) | Q(under_replicated__gt=0)
    topics = TopicState.objects.filter(cluster=cluster).filter(troubled)
    order = ("-offline_partitions", F("under_min_isr").desc(nulls_last=True), "-under_replicated", "name")
    worst = list(topics.order_by(*order)[: MOST_TROUBLED + 1])
    moving = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
    adding = {
        (topic, partition): frozenset(brokers)
        for topic, partition, brokers in moving.filter(topic__in=[t.name for t in worst]).values_list(
            "topic", "partition", "adding"
        )
    }
    rows = [row for topic in worst for row in _list_troubled(topic, adding)]
    rows.sort(key=lambda row: (row.trouble.rank, row.topic.name, row.partition))
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "partitions": rows[:MOST_TROUBLED],
        "more": len(rows) > MOST_TROUBLED or len(worst) > MOST_TROUBLED,
        "freshness": freshness,
    }


def _list_troubled(topic: TopicState, adding: Mapping[tuple[str, int], frozenset[int]]) -> Iterator[PartitionRow]:
    for number, leader, _, replicas, isr, _ in topic.partitions:
        shape = PartitionShape(leader, tuple(replicas), tuple(isr), adding.get((topic.name, number), frozenset()))
        trouble = trouble_of(shape, topic.min_isr)
        if trouble.state != "ok":
            yield PartitionRow(topic, number, shape, trouble)
