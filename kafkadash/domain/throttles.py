"""Replication throttles (KIP-73): what they are set on, and whether a reassignment in flight needs them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafkadash.domain.whole_numbers import LARGEST_INT, read_whole_number

LEADER_RATE = "leader.replication.throttled.rate"
FOLLOWER_RATE = "follower.replication.throttled.rate"
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
RATES = (LEADER_RATE, FOLLOWER_RATE, DISK_RATE)
"""Of brokers, in bytes per second; the last is for copies between the directories of one broker."""

LEADER_LIST = "leader.replication.throttled.replicas"
FOLLOWER_LIST = "follower.replication.throttled.replicas"
LISTS = (LEADER_LIST, FOLLOWER_LIST)
"""Of topics: ``partition:broker,…`` or ``*``; empty is off."""

EVERY_REPLICA = "*"


@dataclass(frozen=True, slots=True)
class InFlight:
    """What moves: partitions by topic, the brokers that hold or get a replica of them, and copies between disks.

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


def list_needed(topic: str, value: str, moving: InFlight) -> bool:
    """Whether one of the partitions that the list names is being reassigned."""
    partitions = moving.partitions.get(topic, ())
    named = listed_partitions(value)
    return bool(partitions) if named is None else not named.isdisjoint(partitions)


def rate_needed(key: str, broker: int | None, moving: InFlight) -> bool:
    """Whether the rate of a broker, or with None that of all brokers, is of use to something in flight.

    What cannot be told counts as needed: nobody is told to remove a throttle on a guess.
    """
    if key != DISK_RATE:
        return bool(moving.brokers) if broker is None else broker in moving.brokers
    if broker is None:
        return bool(moving.copying) or not moving.copying_known
    return broker in moving.copying or broker not in moving.copying_known


def in_flight(rows: Iterable[tuple[str, int, Collection[int]]], copies: Mapping[int, int | None]) -> InFlight:
    """From (topic, partition, replicas before and after) of each reassignment, and broker → copies between its disks.

    The number of copies is None where it is not known.
    """
    partitions: dict[str, set[int]] = {}
    brokers: set[int] = set()
    for topic, partition, replicas in rows:
        partitions.setdefault(topic, set()).add(partition)
        brokers.update(replicas)
    known = {broker for broker, number in copies.items() if number is not None}
    return InFlight(partitions, brokers, {broker for broker in known if copies[broker]}, known)
