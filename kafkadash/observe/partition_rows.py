"""Partitions as the pages of topics, brokers and racks show them, unpacked from ``TopicState.partitions``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from kafkadash.clusters.models import Cluster
from kafkadash.domain.partition_state import PartitionTrouble, trouble_of
from kafkadash.domain.rack_labels import short_labels
from kafkadash.domain.topology import PartitionShape
from kafkadash.observe.models import BrokerState, Outcome, ReassignmentSnapshot, TopicState


@dataclass(frozen=True)
class Replica:
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
    """One partition. ``move`` is its running reassignment; ``size_bytes`` the leader's replica, None if not known."""

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
        return PartitionShape(self.leader, tuple(self.replicas), tuple(self.isr), adding)

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
    def chips(self) -> list[Replica]:
        added = self.move.adding if self.move else ()
        removed = self.move.removing if self.move else ()
        racks = self.rack_of or {}
        return [
            Replica(
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
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING, topic__in=list(topics))
    return {(row.topic, row.partition): row for row in rows}


def rack_labels(cluster: Cluster) -> dict[int, str]:
    """Broker → short name of its rack, as far as brokers name one."""
    named = BrokerState.objects.filter(cluster=cluster, rack__isnull=False, gone_at=None)
    racks = dict(named.values_list("broker_id", "rack"))
    labels = short_labels({rack for rack in racks.values() if rack is not None})
    return {broker: labels[rack] for broker, rack in racks.items() if rack is not None}
