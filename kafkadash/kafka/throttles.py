"""Replication throttles (KIP-73): rates, lists of replicas, and whether a reassignment in flight needs a throttle.

A replica is throttled only if its broker has a rate and its topic's list names it. Leaders send and followers fetch
under separate rates and lists.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafkadash.core.formatting import LARGEST_INT, read_whole_number

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = (LEADER_RATE, FOLLOWER_RATE, DISK_RATE)
"""Configs of brokers, in bytes per second; the last is for copies between the directories of one broker."""

LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
LISTS = (LEADER_LIST, FOLLOWER_LIST)
"""Configs of topics: ``partition:broker,…`` or ``*``; empty is off."""

EVERY_REPLICA = "*"


@dataclass(frozen=True, slots=True)
class MovesOfTopic:
    """Moves under way: partitions by topic, brokers that hold or get a replica of them, and copies between disks.

    ``copying`` are brokers that move replicas between their directories; ``copying_known`` those of which that is
    known at all.
    """

    partitions: Mapping[str, Collection[int]] = field(default_factory=dict)
    brokers: Collection[int] = ()
    copying: Collection[int] = ()
    copying_known: Collection[int] = ()


def listed_partitions(value: str) -> frozenset[int] | None:
    """The partitions that a list names; None for all of them. Entries that are no ``partition:broker`` name none."""
    if value.strip() == EVERY_REPLICA:
        return None
    heads = (read_whole_number(entry.partition(":")[0], LARGEST_INT) for entry in value.split(","))
    return frozenset(head for head in heads if head is not None)


def list_needed(topic: str, value: str, moving: MovesOfTopic) -> bool:
    """Return whether one of the partitions that the list names is being reassigned."""
    partitions = moving.partitions.get(topic, ())
    named = listed_partitions(value)
    return bool(partitions) if named is None else not named.isdisjoint(partitions)


def rate_needed(key: str, broker: int | None, moving: MovesOfTopic) -> bool:
    """Return whether the rate of a broker, or with None that of all brokers, is of use to something in flight.

    An unknown counts as needed, so that no removal of a throttle is advised on a guess.
    """
    if key != DISK_RATE:
        return bool(moving.brokers) if broker is None else broker in moving.brokers
    if broker is None:
        return bool(moving.copying) or not moving.copying_known
    return broker in moving.copying or broker not in moving.copying_known


def in_flight(rows: Iterable[tuple[str, int, Collection[int]]], copies: Mapping[int, int | None]) -> MovesOfTopic:
    """From (topic, partition, replicas before and after) of each reassignment, and broker → copies between its disks.

    The number of copies is None where it is not known.
    """
    partitions: dict[str, set[int]] = {}
    brokers: set[int] = set()
    for topic, partition, replicas in rows:
        partitions.setdefault(topic, set()).add(partition)
        brokers.update(replicas)
    known = {broker for broker, number in copies.items() if number is not None}
    return MovesOfTopic(partitions, brokers, {broker for broker in known if copies[broker]}, known)


WORDS: Mapping[str, str] = {
    LEADER_RATE: "leader rate (outbound)",
    FOLLOWER_RATE: "follower rate (inbound)",
    DISK_RATE: "rate between log directories",
    LEADER_LIST: "throttled leader replicas",
    FOLLOWER_LIST: "throttled follower replicas",
}


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """The value of a topic's list: ``everything`` for ``*``, else pairs of partition and broker.

    ``unreadable`` is a part that is neither, where there is one: Kafka refuses it, or takes it and fails to read it.
    """

    everything: bool = False
    pairs: frozenset[tuple[int, int]] = frozenset()
    unreadable: str = ""

    @property
    def empty(self) -> bool:
        """Set, but off."""
        return not self.everything and not self.pairs and not self.unreadable

    def names(self, partition: int, broker: int) -> bool:
        return self.everything or (partition, broker) in self.pairs


def throttled_replicas(value: str) -> ThrottledReplicas:
    """Reads ``*`` or ``0:101,1:102`` (kafka.server.ThrottledReplicaListValidator). Never raises."""
    stripped = value.strip()
    if stripped == EVERY_REPLICA:
        return ThrottledReplicas(everything=True)
    pairs = set()
    for part in filter(None, (piece.strip() for piece in stripped.split(","))):
        partition, broker = (read_whole_number(number, LARGEST_INT) for number in part.partition(":")[::2])
        if partition is None or broker is None:
            return ThrottledReplicas(unreadable=part)
        pairs.add((partition, broker))
    return ThrottledReplicas(pairs=frozenset(pairs))


def rate_of(value: str) -> int | None:
    """A rate in bytes per second, or None for text that is none."""
    return read_whole_number(value)
