"""Emptying brokers, and nothing else: only replicas on the named brokers move.

The bytes are forced by the request, so every such plan moves the least; what is chosen is where to. Rules, in this
order: a broker holds a partition once; the replicas of a partition are spread over racks as evenly as those that stay
allow (rack by rack at most one apart from [floor(RF/R), ceil(RF/R)], R racks with a broker that may be given replicas);
no disk above its limit, old copies included; the least loaded broker by bytes and number of replicas, both relative to
their mean. Largest first, which leaves the small ones to even out. Same input, same plan.
"""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.leaders import spread_leaders
from kafkadash.domain.planner.planned import (
    Planned,
    already_moving,
    answer,
    arriving,
    brokers_named,
    disk_notices,
    overflows,
)
from kafkadash.domain.planner.topology import Broker, Partition, Topic, Topology
from kafkadash.domain.problem import Problem
from kafkadash.domain.refusals import asked as said
from kafkadash.domain.wording import capital, count, listed_shortly

Load = tuple[int, int]
"""Score and id: the least loaded broker first."""


@dataclass(frozen=True, slots=True)
class DrainRequest:
    """``targets``: the only brokers that may be given replicas; None for all that can. ``disk_limit``: 0 to 1.

    ``ignore_racks`` plans as if no broker named a rack; ``accept_fewer_racks`` lets partitions end in fewer racks than
    they are in, where no broker is left in one.
    """

    brokers: tuple[int, ...]
    targets: frozenset[int] | None = None
    disk_limit: float | None = None
    ignore_racks: bool = False
    accept_fewer_racks: bool = False


def drain(topology: Topology, request: DrainRequest) -> Planned:
    """The plan, or all that is in its way."""
    return _Drain(topology, request).plan()


class _Drain:
    def __init__(self, topology: Topology, request: DrainRequest) -> None:
        self._topology, self._request = topology, request
        self._leaving = frozenset(request.brokers)
        allowed = request.targets if request.targets is not None else frozenset(topology.brokers)
        self._targets = {
            b.id: b for b in topology.brokers.values() if b.eligible and b.id in allowed and b.id not in self._leaving
        }
        blind = request.ignore_racks or all(b.rack is None for b in topology.brokers.values())
        self._rack_of = {
            b.id: "" if blind else b.rack or "" for b in topology.brokers.values() if blind or b.rack is not None
        }
        self._blind = blind
        self._moved = [
            (topic, partition)
            for _, topic in sorted(topology.topics.items())
            for partition in topic.partitions
            if not self._leaving.isdisjoint(partition.replicas)
        ]

    def plan(self) -> Planned:
        problems = list(self._bad_request())
        if not problems:
            problems = [*self._moving(), *self._too_few(), *self._mixed_racks(), *self._lost_racks()]
        if problems:
            return answer((), problems, ())
        rows = [(row, p) for row, p in self._placed()]
        notices = list(self._notices())
        limit = self._request.disk_limit
        if limit is not None:
            copied = arriving(rows)
            problems += overflows(copied, self._topology, limit)
            notices += disk_notices(copied, self._topology, limit)
        return answer((row for row, _ in rows), problems, notices)

    def _bad_request(self) -> Iterator[Problem]:
        known = self._topology.brokers
        if not self._leaving:
            yield Problem("no broker", said.NO_BROKER_NAMED())
            return
        unknown = sorted(self._leaving - known.keys())
        holding = Counter(broker for _, p in self._moved for broker in p.replicas if broker in self._leaving)
        unknown = [broker for broker in unknown if not holding[broker]]
        if unknown:
            there = f"there are {listed_shortly([str(b) for b in sorted(known)], 20)}" if known else "none is known"
            verb = "is" if len(unknown) == 1 else "are"
            sentence = said.BROKERS_UNKNOWN(verb=verb, brokers=brokers_named(unknown), there=there)
            yield Problem("unknown broker", sentence)
            return
        odd = sorted((self._request.targets or frozenset()) - known.keys())
        if odd:
            yield Problem("unknown broker", said.TARGETS_UNKNOWN(brokers=brokers_named(odd)))
        if {b.id for b in known.values() if b.alive} <= self._leaving:
            yield Problem("all brokers", said.ALL_WOULD_BE_DRAINED())
        elif not self._targets:
            yield Problem("no target", said.NO_TARGET())
        elif not self._moved:
            hold = "holds" if len(self._leaving) == 1 else "hold"
            named = capital(brokers_named(sorted(self._leaving)))
            yield Problem("nothing to do", said.NOTHING_TO_DRAIN(brokers=named, hold=hold))

    def _moving(self) -> Iterator[Problem]:
        return (already_moving(f"{topic.name}-{p.partition}") for topic, p in self._moved if p.moving)

    def _settled(self) -> Iterator[tuple[Topic, Partition]]:
        """Those that move already have more replicas for now than they will have."""
        return ((topic, p) for topic, p in self._moved if not p.moving)

    def _too_few(self) -> Iterator[Problem]:
        """Topics whose replicas have no place left, one sentence for a topic and replication factor."""
        short: dict[tuple[str, int], list[int]] = {}
        targets = self._targets.keys()
        for topic, p in self._settled():
            kept = [broker for broker in p.replicas if broker not in self._leaving]
            if len(targets - set(kept)) < len(p.replicas) - len(kept):
                short.setdefault((topic.name, len(p.replicas)), []).append(len(targets | set(kept)))
        for (name, factor), left in short.items():
            brokers = count(min(left), "broker")
            sentence = said.TOO_FEW_BROKERS(topic=name, replicas=count(factor, "replica"), brokers=brokers)
            yield Problem("too few brokers", sentence)

    def _mixed_racks(self) -> Iterator[Problem]:
        if self._blind:
            return
        unnamed = sorted(b.id for b in self._topology.brokers.values() if b.alive and b.rack is None)
        if unnamed:
            verb = "names" if len(unnamed) == 1 else "name"
            yield Problem("mixed racks", said.RACKS_MIXED(brokers=capital(brokers_named(unnamed)), verb=verb))

    def _lost_racks(self) -> Iterator[Problem]:
        """Racks that lose their last broker, where that leaves partitions in fewer racks than they are in."""
        if self._blind or self._request.accept_fewer_racks or any(self._mixed_racks()):
            return
        left = {self._rack_of[broker] for broker in self._targets if broker in self._rack_of}
        lost = sorted({self._rack_of[b] for b in self._leaving if b in self._rack_of} - left)
        if not lost:
            return
        fewer: Counter[tuple[int, int]] = Counter()
        for _, p in self._settled():
            before = {self._rack_of[broker] for broker in p.replicas if broker in self._rack_of}
            stay = {self._rack_of[b] for b in p.replicas if b in self._rack_of and b not in self._leaving}
            after = min(len(p.replicas), len(stay | left))
            if after < len(before):
                fewer[len(before), after] += 1
        if not fewer:
            return
        leaving = sorted(b for b in self._leaving if self._rack_of.get(b) in lost)
        racks = f"rack {lost[0]}" if len(lost) == 1 else f"racks {listed_shortly(lost, 8)}"
        parts = [
            f"{count(number, 'partition')} would be in {count(after, 'rack')} instead of {before}"
            for (before, after), number in sorted(fewer.items(), reverse=True)
        ]
        many = len(leaving) > 1
        sentence = said.LAST_OF_A_RACK(
            brokers=capital(brokers_named(leaving)),
            verb="are" if many else "is",
            racks=racks,
            them="them" if many else "it",
            fewer=listed_shortly(parts, 3),
        )
        yield Problem("last of a rack", sentence)

    def _notices(self) -> Iterator[Problem]:
        held = {broker for _, p in self._moved for broker in p.replicas}
        idle = sorted(self._leaving - held)
        if idle:
            hold = "holds" if len(idle) == 1 else "hold"
            yield Problem("holds nothing", said.HOLDS_NOTHING(brokers=capital(brokers_named(idle)), hold=hold))
        silent = [f"{topic.name}-{p.partition}" for topic, p in self._moved if p.leader is None]
        if silent:
            has = "has" if len(silent) == 1 else "have"
            yield Problem("no leader", said.LEADER_MISSING(partitions=listed_shortly(silent), has=has))

    def _placed(self) -> Iterator[tuple[Row, Partition]]:
        placement = _Placement(self._topology, self._targets, self._rack_of, self._leaving, self._request.disk_limit)
        largest_first = sorted(self._moved, key=lambda one: (-(one[1].size_bytes or 0), one[0].name, one[1].partition))
        placed: list[tuple[Topic, Partition, list[int]]] = []
        for topic, p in largest_first:
            target = list(p.replicas)
            for place, broker in enumerate(p.replicas):
                if broker in self._leaving:
                    target[place] = placement.newcomer(target, broker, p.size_bytes or 0)
            placed.append((topic, p, target))
        self._lead(placed)
        for topic, p, target in placed:
            yield Row(topic.name, topic.id, p.partition, p.replicas, tuple(target)), p

    def _lead(self, placed: list[tuple[Topic, Partition, list[int]]]) -> None:
        """Where the preferred leader leaves, another replica comes first, so that leaders are spread evenly.

        The newcomer is the last choice, as it has to copy first; the others keep their order behind the one chosen.
        """
        fixed: Counter[int] = Counter()
        for topic in self._topology.topics.values():
            fixed.update(p.replicas[0] for p in topic.partitions if p.replicas[0] not in self._leaving)
        open_ = [(topic.name, p.partition, target) for topic, p, target in placed if p.replicas[0] in self._leaving]
        open_.sort(key=lambda one: one[:2])
        choices = []
        for _, _, target in open_:
            able = [broker for broker in target if broker in self._targets] or target
            choices.append(sorted(able, key=lambda broker: (broker == target[0], broker)))
        for (_, _, target), first in zip(open_, spread_leaders(fixed, choices), strict=True):
            target.remove(first)
            target.insert(0, first)


class _Placement:
    """The targets by rack, the least loaded on top of each heap."""

    def __init__(
        self,
        topology: Topology,
        targets: Mapping[int, Broker],
        rack_of: Mapping[int, str],
        leaving: frozenset[int],
        limit: float | None,
    ) -> None:
        self._rack_of = rack_of
        self._leaving = leaving
        rooms = {id_: broker.rooms(limit) if limit is not None else None for id_, broker in targets.items()}
        self._room = {id_: None if own is None else sum(own) for id_, own in rooms.items()}
        self._largest = {id_: None if own is None else max(own, default=0) for id_, own in rooms.items()}
        self._bytes: Counter[int] = Counter()
        self._replicas: Counter[int] = Counter()
        for topic in topology.topics.values():
            for p in topic.partitions:
                for broker in p.replicas:
                    self._bytes[broker] += p.size_bytes or 0
                    self._replicas[broker] += 1
        self._all_bytes, self._all_replicas = self._bytes.total(), self._replicas.total()
        self._heaps: defaultdict[str, list[Load]] = defaultdict(list)
        for id_ in sorted(targets):
            self._heaps[rack_of[id_]].append((self._score(id_), id_))
        for heap in self._heaps.values():
            heapq.heapify(heap)

    def newcomer(self, target: list[int], leaver: int, size: int) -> int:
        """The broker that takes the place of ``leaver`` in ``target``; its load grows.

        Where the disk limit leaves none in the racks that keep the spread even, it is not kept: the caller finds out by
        adding up, and can tell by how much.
        """
        # Newcomers placed before this one are in the target by now; those that are still to leave do not count.
        held = Counter(self._rack_of[b] for b in target if b in self._rack_of and b not in self._leaving)
        home = self._rack_of.get(leaver)
        for keep_limit in (True, False):
            for share in sorted({held[rack] for rack in self._heaps}):
                racks = [rack for rack in self._heaps if held[rack] == share]
                least = [(rack, self._least(rack, target, size, keep_limit=keep_limit)) for rack in racks]
                found = [(load[0], rack != home, load[1]) for rack, load in least if load]
                if found:
                    _, _, id_ = min(found)
                    self._grow(id_, size)
                    return id_
                if any(self._least(rack, target, size, keep_limit=False) for rack in racks):
                    # Another rack would have room, but not keep the spread.
                    break
        raise AssertionError("the request was checked to have enough brokers")

    def _least(self, rack: str, target: list[int], size: int, *, keep_limit: bool) -> Load | None:
        """Of a rack, without those that hold the partition or, where the limit is kept, have no room."""
        heap = self._heaps[rack]
        aside: list[Load] = []
        found = None
        while heap and found is None:
            load = heapq.heappop(heap)
            if load[0] != self._score(load[1]):
                continue  # it has grown since, and is in the heap with its new score too
            aside.append(load)
            if load[1] not in target and not (keep_limit and self._is_full(load[1], size)):
                found = load
        for load in aside:
            heapq.heappush(heap, load)
        return found

    def _is_full(self, id_: int, size: int) -> bool:
        """Whether it has no room for another replica of this size, altogether or in any of its directories."""
        room, largest = self._room[id_], self._largest[id_]
        return room is not None and largest is not None and (room < size or largest < size)

    def _grow(self, id_: int, size: int) -> None:
        self._bytes[id_] += size
        self._replicas[id_] += 1
        room = self._room[id_]
        if room is not None:
            self._room[id_] = room - size
        heapq.heappush(self._heaps[self._rack_of[id_]], (self._score(id_), id_))

    def _score(self, id_: int) -> int:
        """Bytes and replicas relative to their means, without fractions; it grows with every replica."""
        return self._bytes[id_] * self._all_replicas + self._replicas[id_] * max(1, self._all_bytes)
