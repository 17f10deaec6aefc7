"""The throttle that the rows in flight need (04-changes.md §4, KIP-73), and what leads there from the one that is set.

What was there before us, and what is restored, is the ledger's; here are only pairs and rates of our own.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field

from kafkadash.domain.executor_state import Key, Move
from kafkadash.domain.reasons import CodedReason

Pair = tuple[int, int]
"""Partition and broker, ``partition:broker`` in Kafka's lists."""


@dataclass(frozen=True, slots=True)
class Pairs:
    """Of one topic, for its list of throttled leaders and of throttled followers."""

    leader: frozenset[Pair] = frozenset()
    follower: frozenset[Pair] = frozenset()

    def __bool__(self) -> bool:
        return bool(self.leader or self.follower)

    def __sub__(self, other: Pairs) -> Pairs:
        return Pairs(self.leader - other.leader, self.follower - other.follower)

    @property
    def partitions(self) -> frozenset[int]:
        return frozenset(partition for partition, _ in self.leader | self.follower)


NONE = Pairs()


@dataclass(frozen=True, slots=True)
class Throttles:
    """``pairs`` by topic; ``rates`` by broker in bytes per second, for sending and for fetching alike.

    As something that is set: what the ledger has as ours and neither cleared nor obliged, 0 for a broker with one of
    the two rates only. ``held``: why nothing may be submitted now: ours was taken away, and it is not time yet to set
    it again.
    """

    pairs: Mapping[str, Pairs] = field(default_factory=dict)
    rates: Mapping[int, int] = field(default_factory=dict)
    held: tuple[CodedReason, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangeLists:
    """Both lists of a topic, at once: APPEND of ``add``, SUBTRACT of ``remove``. ``rows`` are those it is for."""

    topic: str
    add: Pairs
    remove: Pairs
    rows: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class SetRate:
    """Both rates of a broker, in bytes per second."""

    broker: int
    rate: int
    rows: tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class ClearRate:
    """Both rates of a broker back to what the ledger has from before; no row in flight uses them."""

    broker: int


@dataclass(frozen=True, slots=True)
class Changes:
    """``unreachable``: brokers that should have the rate and cannot be given it now."""

    lists: tuple[ChangeLists, ...]
    rates: tuple[SetRate, ...]
    clears: tuple[ClearRate, ...]
    unreachable: tuple[int, ...]


def wanted(moves: Iterable[Move], rate: int) -> Throttles:
    """For the rows in flight that copy something: sources (current − adding) send, destinations (target − sources)
    fetch. Both rates stand on all of them, because a destination leads other partitions that are sources.
    """
    leader: defaultdict[str, set[Pair]] = defaultdict(set)
    follower: defaultdict[str, set[Pair]] = defaultdict(set)
    brokers: set[int] = set()
    for move in moves:
        work = move.work
        if not move.in_flight or not work.adding:
            continue
        row = work.row
        leader[row.topic].update((row.partition, broker) for broker in row.current)
        follower[row.topic].update((row.partition, broker) for broker in work.adding)
        brokers.update(row.current, work.adding)
    pairs = {topic: Pairs(frozenset(own), frozenset(follower[topic])) for topic, own in leader.items()}
    return Throttles(pairs, dict.fromkeys(sorted(brokers), rate))


def changes(ours: Throttles, want: Throttles, moves: Iterable[Move], reachable: Collection[int]) -> Changes:
    """From what is set to what is wanted; each topic's lists change at most once, and nothing that is right does."""
    lists = []
    for topic in sorted({*ours.pairs, *want.pairs}):
        has, needs = ours.pairs.get(topic, NONE), want.pairs.get(topic, NONE)
        if has != needs:
            add, remove = needs - has, has - needs
            rows = tuple((topic, partition) for partition in sorted(add.partitions | remove.partitions))
            lists.append(ChangeLists(topic, add, remove, rows))
    differ = {broker for broker, rate in want.rates.items() if ours.rates.get(broker) != rate}
    users = _users(moves, differ)
    rates = [SetRate(b, want.rates[b], tuple(users[b])) for b in sorted(differ) if b in reachable]
    clears = [ClearRate(broker) for broker in sorted(ours.rates) if broker not in want.rates]
    return Changes(tuple(lists), tuple(rates), tuple(clears), tuple(sorted(b for b in differ if b not in reachable)))


def _users(moves: Iterable[Move], brokers: Collection[int]) -> Mapping[int, list[Key]]:
    users: defaultdict[int, list[Key]] = defaultdict(list)
    if not brokers:
        return users
    for move in moves:
        if move.in_flight and move.work.adding:
            for broker in (*move.work.row.current, *move.work.adding):
                if broker in brokers:
                    users[broker].append(move.key)
    return users
