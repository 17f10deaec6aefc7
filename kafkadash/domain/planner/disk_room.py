"""The disk limit as a hard bound, also during the move, when a broker holds old and new copies at once.

What stays, how many replicas are new and what they weigh is settled before; here new replicas change places until no
broker is given more than it has room for. Two of them are exchanged within a rack, then one goes to a broker that may
hold one more and leaves one that may hold one less, then racks are crossed where the bounds of the racks allow it; what
is left over is searched exactly (``disk_search``). None of it changes the bytes moved, so a proof of them stays true.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort

import numpy as np

from kafkadash.domain.planner.demand import Answer, Demand, Flags, Ints
from kafkadash.domain.planner.disk_placing import Placing

MOST_TRIED = 60
"""Replicas of a broker that are tried, the largest first, before it is left to the exact search."""
MOST_PARTNERS = 24
NEIGHBOURS = 12
"""Replicas of nearly the wanted size that are looked at when the first cannot be taken."""


def within_room(demand: Demand, answer: Answer, room: Ints, widest: Ints, sizes_known: Flags) -> tuple[Answer, Ints]:
    """The answer with new replicas placed so that each broker has room for them, and what it is short of.

    ``room`` B: bytes that a broker may be given in all. ``widest`` B: bytes of the largest single replica that it may
    be given. ``NOT_KNOWN`` is not judged. ``sizes_known`` P: partitions without a known size weigh nothing here.
    Returned B: bytes that a broker is over its room (or its largest new replica over the widest), 0 for all where the
    limit is met; the least found in all where it cannot be.
    """
    placing = Placing(demand, answer, room, widest, sizes_known)
    if placing.violation() and demand.partitions:
        _exchanged(placing)
        if placing.violation() > placing.least_violation():
            from kafkadash.domain.planner.disk_search import searched  # takes a second to load and is seldom needed

            searched(placing)
    return (placing.answer() if placing.changed else answer), placing.shortfall()


def _exchanged(placing: Placing) -> None:
    """The broker that is most over first; one that no step helps is left as it is."""
    steps = _Steps(placing)
    waiting = [(-int(over), int(broker)) for broker, over in enumerate(placing.over()) if over]
    heapq.heapify(waiting)
    while waiting:
        _, broker = heapq.heappop(waiting)
        while steps.over(broker) and steps.eased(broker):
            pass
    steps.write()


class _Steps:
    """Exchanges that lower one broker's excess and give nobody one. Plain lists: they are many and small."""

    def __init__(self, placing: Placing) -> None:
        self._placing, demand = placing, placing.demand
        self._demand = demand
        self._rows, self._at = placing.rows.tolist(), placing.brokers.tolist()
        self._weights = placing.weights.tolist()
        self._room, self._widest = placing.room.tolist(), placing.widest.tolist()
        self._load, self._counts = placing.load.tolist(), placing.counts.tolist()
        self._least, self._most = demand.least.tolist(), demand.most.tolist()
        self._rack_of = demand.rack_of.tolist()
        self._on: list[list[int]] = [[] for _ in range(demand.brokers)]
        for unit, broker in enumerate(self._at):
            self._on[broker].append(unit)
        self._receivers = demand.receivers.tolist()
        order = np.argsort(placing.rows, kind="stable")
        self._by_row = order.tolist()
        self._first = np.searchsorted(placing.rows[order], np.arange(demand.partitions + 1)).tolist()

    def write(self) -> None:
        self._placing.brokers = np.array(self._at, np.int64)
        self._placing.load = np.array(self._load, np.int64)
        self._placing.counts = np.array(self._counts, np.int64)

    def over(self, broker: int) -> int:
        widest, on = self._widest[broker], self._on[broker]
        first = bisect_right(on, widest, key=self._weights.__getitem__)
        single: int = sum(self._weights[unit] - widest for unit in on[first:])
        return single + max(0, -self._slack(broker))

    def eased(self, broker: int) -> bool:
        """One step that lowers its excess, if one of its largest replicas finds one."""
        partners = sorted((b for b in self._receivers if b != broker and self._slack(b) > 0), key=self._by_slack)
        near = [b for b in partners if self._rack_of[b] == self._rack_of[broker]][:MOST_PARTNERS]
        far = [b for b in partners if self._rack_of[b] != self._rack_of[broker]][:MOST_PARTNERS]
        only_wide = self._load[broker] <= self._room[broker]
        heaviest = self._on[broker][: -MOST_TRIED - 1 : -1]
        tried = [u for u in heaviest if self._weights[u] > (self._widest[broker] if only_wide else 0)]
        for others, step in (
            (near, self._exchange),
            (near, self._pass_on),
            (far, self._exchange),
            (far, self._pass_on),
        ):
            for unit in tried:
                if any(step(unit, other) for other in others):
                    return True
        return False

    def _slack(self, broker: int) -> int:
        slack: int = self._room[broker] - self._load[broker]
        return slack

    def _by_slack(self, broker: int) -> tuple[int, int]:
        return -self._slack(broker), broker

    def _exchange(self, unit: int, other: int) -> bool:
        """With a lighter one of the other: the heaviest that takes all of the excess, or as much as there is room."""
        broker, weight, theirs = self._at[unit], self._weights[unit], self._on[other]
        if weight > self._widest[other]:
            return False
        excess = self._load[broker] - self._room[broker]
        lowest = bisect_left(theirs, weight - self._slack(other), key=self._weights.__getitem__)
        wanted = bisect_right(theirs, weight - max(excess, 0), key=self._weights.__getitem__)
        fits = bisect_right(theirs, min(weight - 1, self._widest[broker]), key=self._weights.__getitem__)
        down = range(min(wanted, fits) - 1, lowest - 1, -1)[:NEIGHBOURS]
        up = range(max(wanted, lowest), fits)[:NEIGHBOURS]
        for place in (*down, *up):
            back = theirs[place]
            if self._allowed(unit, other, back):
                self._put(unit, other)
                self._put(back, broker)
                return True
        return False

    def _pass_on(self, unit: int, other: int) -> bool:
        """Without one in return, where both brokers' counts allow it."""
        broker, weight = self._at[unit], self._weights[unit]
        if weight > min(self._slack(other), self._widest[other]):
            return False
        if self._counts[broker] <= self._least[broker] or self._counts[other] >= self._most[other]:
            return False
        if not self._allowed(unit, other, None):
            return False
        self._put(unit, other)
        return True

    def _allowed(self, unit: int, other: int, back: int | None) -> bool:
        """Nobody gets a partition that it has or had, and the partitions' racks are as they may be."""
        broker = self._at[unit]
        if back is not None and self._rows[back] == self._rows[unit]:
            return False
        goes = self._may_go(self._rows[unit], broker, other)
        return goes and (back is None or self._may_go(self._rows[back], other, broker))

    def _may_go(self, row: int, source: int, target: int) -> bool:
        new = [self._at[u] for u in self._by_row[self._first[row] : self._first[row + 1]]]
        if target in new or target in self._demand.held[row].tolist():
            return False
        here, there = self._rack_of[source], self._rack_of[target]
        if here == there:
            return True
        kept = self._demand.held[row][self._placing.stays[row]].tolist()
        racks = [self._rack_of[broker] for broker in (*kept, *new)]
        least, most = self._demand.rack_least[row, here], self._demand.rack_most[row, there]
        return bool(racks.count(here) > least and racks.count(there) < most)

    def _put(self, unit: int, target: int) -> None:
        source, weight = self._at[unit], self._weights[unit]
        on = self._on[source]
        del on[bisect_left(on, unit)]
        insort(self._on[target], unit)
        self._at[unit] = target
        self._load[source] -= weight
        self._load[target] += weight
        self._counts[source] -= 1
        self._counts[target] += 1
        self._placing.changed = True
