"""Disks within eps of the mean of their rack, with as few bytes moved as that takes, once counts and racks are settled.

What has to move goes first, the largest into the emptiest broker of its rack. Then brokers with too many or too few
replicas hand over the smallest ones, and then bytes go from the fullest to the emptiest: the largest replica that is
not above the need, with a small one in return where the counts ask for it. Wherever replicas fit, a broker gives or
gets no more than its excess or its lack; that is what every plan has to move (``disk_bound``).
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Flags, Ints
from kafkadash.domain.planner.disk_layout import BEYOND, Layout
from kafkadash.domain.planner.disk_rack import Rack
from kafkadash.domain.planner.disk_targets import Target, target_of

ROUNDS = 8
GOOD_ENOUGH = 1.01
"""Of what a rack has to move at the least: no other way is tried."""
LARGE, REST, STUCK, LACKS = "large", "rest", "stuck", "lacks"


@dataclass(frozen=True, slots=True)
class Outside:
    """A broker that could not be brought within eps: its bytes, the mean of its rack, and why.

    ``LARGE``: one partition, ``row``, is larger than a broker may hold. ``REST``: such partitions leave the other
    brokers of the rack less than the mean. ``STUCK``: it holds too much, and what may move does not suffice, or there
    is no room for it. ``LACKS``: it holds too little, for the same reasons. No bound may hold those two to what was
    asked for.
    """

    broker: int
    bytes: int
    mean: int
    why: str
    row: int = NOBODY


@dataclass(frozen=True, slots=True)
class Balanced:
    answer: Answer
    outside: tuple[Outside, ...]

    def those(self, why: str, brokers: int) -> Flags:
        """B: brokers that are outside for this reason."""
        flags = np.zeros(brokers, np.bool_)
        flags[[one.broker for one in self.outside if one.why == why]] = True
        return flags


def balanced(
    demand: Demand,
    answer: Answer,
    sizes: Ints,
    beside: Ints,
    judged: Flags,
    eps: float,
    room: Ints | None = None,
    widest: Ints | None = None,
) -> Balanced:
    """The answer changed so that the bytes of each broker of ``judged`` (B) are within eps of the mean of its rack.

    ``sizes`` P: bytes, what the caller takes for unknown ones. ``beside`` B: bytes of partitions that are not planned.
    ``room`` and ``widest`` as of ``within_room``: nothing goes where that has no room. Counts, racks and what must stay
    are as the demand has them, also afterwards.
    """
    rooms = [
        np.full(demand.brokers, BEYOND) if bound is None else np.where(bound < 0, BEYOND, bound)
        for bound in (room, widest)
    ]

    def laid_out(*, afresh: bool) -> _Balance:
        return _Balance(Layout(demand, answer, sizes, beside, *rooms, afresh=afresh), judged, eps)

    if not any(laid_out(afresh=False).outside()):
        return Balanced(answer, ())
    done = laid_out(afresh=True)
    done.settle()
    done.even()
    if not done.layout.met():  # replicas that clash may leave no place; what the answer has is one
        done = laid_out(afresh=False)
        done.even_bytes()
    return Balanced(done.layout.answer(), tuple(done.outside()))


class _Balance:
    """All racks: what has to be placed, counts, and who ends outside."""

    def __init__(self, layout: Layout, judged: Flags, eps: float) -> None:
        self.layout, self._eps = layout, eps
        demand = layout.demand
        self._racks: list[list[int]] = [np.flatnonzero(demand.rack_of == rack).tolist() for rack in range(demand.racks)]
        self._judged: list[list[int]] = [
            np.flatnonzero((demand.rack_of == rack) & judged).tolist() for rack in range(demand.racks)
        ]
        racks = np.array(layout.rack, np.int64)
        # At the most one for each broker can be larger than its even share.
        self._large: list[list[int]] = [
            np.flatnonzero(racks == rack)[::-1][: len(brokers)].tolist() for rack, brokers in enumerate(self._racks)
        ]

    def settle(self) -> None:
        """What has to be placed: the largest first, into the emptiest broker of the rack that may have one more."""
        layout = self.layout
        self._keep_on_emptier()
        heaps = [[(layout.load[b], b) for b in brokers if layout.receives[b]] for brokers in self._racks]
        for heap in heaps:
            heapq.heapify(heap)
        left = [
            unit for unit in reversed(layout.homeless) if not self._give(unit, heaps[layout.rack[unit]], layout.most)
        ]
        anybody = [len(layout.size)] * len(layout.most)
        for unit in left:
            self._give(unit, self._takers(self._racks[layout.rack[unit]], anybody), anybody)

    def _keep_on_emptier(self) -> None:
        """Where a partition gives up some of the replicas it has in a rack: those on the fuller brokers."""
        layout = self.layout
        of_row = layout.loose_of(row for row, _ in layout.spare)
        for row, broker in sorted(layout.spare, key=lambda one: (-layout.sizes[one[0]], one)):
            those = [u for u in of_row.get(row, ()) if layout.rack[u] == layout.rack_of[broker]]
            fullest = max(those, key=lambda u: (layout.load[layout.at[u]], u), default=None)
            if fullest is not None and layout.load[layout.at[fullest]] - layout.size[fullest] > layout.load[broker]:
                layout.put(fullest, broker)

    def even(self) -> None:
        """Counts are evened out with the smallest replicas, which leaves bytes nearly as they are; where brokers that
        lack bytes have no count to spare afterwards, bytes have to come first. Each rack as it is better.
        """
        for rack in range(len(self._racks)):
            before = self._tried(rack)
            for _ in range(ROUNDS):
                missing = before[1]
                if not missing:
                    break
                before = self._tried(rack)  # else planning the result again would find what this did not
                if before[1] >= missing:
                    break

    def _tried(self, rack: int) -> tuple[int, int, int]:
        layout = self.layout
        least, mark = layout.moved(rack) + self._rack(rack).need(), len(layout.log)
        self._even(rack, counts_first=True)
        first = self._worth(rack)
        if first <= (0, 0, GOOD_ENOUGH * least):
            return first
        layout.back_to(mark)
        self._even(rack, counts_first=False)
        second = self._worth(rack)
        if second <= first:
            return second
        layout.back_to(mark)
        self._even(rack, counts_first=True)
        return first

    def _even(self, rack: int, *, counts_first: bool) -> None:
        if not counts_first:
            self._rack(rack, counts=False).settle()
        self._shed(self._racks[rack])
        self._fill(self._racks[rack])
        self._rack(rack).settle()

    def _shed(self, brokers: list[int]) -> None:
        """The smallest of those that have too many: first to those that have too few."""
        layout = self.layout
        needy, able = self._takers(brokers, layout.least), self._takers(brokers, layout.most)
        much = [(b, layout.counts[b] - layout.most[b]) for b in brokers]
        for unit in sorted((u for b, over in much if over > 0 for u in layout.on[b][:over]), reverse=True):
            if not self._give(unit, needy, layout.least):
                self._give(unit, able, layout.most)
        for giver, _ in much:  # what nobody could have
            for unit in layout.on[giver][:]:
                if layout.counts[giver] <= layout.most[giver]:
                    break
                if not self._give(unit, needy, layout.least):
                    self._give(unit, able, layout.most)

    def _fill(self, brokers: list[int]) -> None:
        """What is still too few, with the smallest replicas of all that can give one."""
        layout = self.layout
        needy = self._takers(brokers, layout.least)
        lacking = sum(layout.least[b] - layout.counts[b] for _, b in needy)
        able = [(layout.on[b], layout.counts[b] - layout.least[b]) for b in brokers]
        smallest = heapq.merge(*(on[: min(lacking, spare)] for on, spare in able if spare > 0))
        for unit in sorted(islice(smallest, lacking), reverse=True):
            self._give(unit, needy, layout.least)
        givers = [(layout.on[b][0], b) for b in brokers if layout.on[b] and layout.counts[b] > layout.least[b]]
        heapq.heapify(givers)
        while needy and givers:  # where one of those may not go to any of them
            unit, giver = heapq.heappop(givers)
            self._give(unit, needy, layout.least)
            rest = bisect_right(layout.on[giver], unit)
            if layout.counts[giver] > layout.least[giver] and rest < len(layout.on[giver]):
                heapq.heappush(givers, (layout.on[giver][rest], giver))

    def _takers(self, brokers: list[int], bound: list[int]) -> list[tuple[int, int]]:
        layout = self.layout
        heap = [(layout.load[b], b) for b in brokers if layout.receives[b] and layout.counts[b] < bound[b]]
        heapq.heapify(heap)
        return heap

    def _give(self, unit: int, takers: list[tuple[int, int]], bound: list[int]) -> bool:
        """To the emptiest of them that may have it and has fewer replicas than its bound."""
        layout, passed, given = self.layout, [], False
        while takers and not given:
            load, broker = heapq.heappop(takers)
            if layout.counts[broker] >= bound[broker]:
                continue  # full, and nobody takes from who takes
            if load != layout.load[broker]:
                heapq.heappush(takers, (layout.load[broker], broker))
                continue
            if layout.fits(unit, broker):
                layout.put(unit, broker)
                given = True
            passed.append((layout.load[broker], broker))
        for one in passed:
            heapq.heappush(takers, one)
        return given

    def even_bytes(self) -> None:
        for rack in range(len(self._racks)):
            self._rack(rack).settle()

    def _rack(self, rack: int, *, counts: bool = True) -> Rack:
        return Rack(self.layout, self._judged[rack], self.target(rack), self._large[rack], counts=counts)

    def _worth(self, rack: int) -> tuple[int, int, int]:
        """The less the better: replicas beyond the bounds, bytes not where they are wanted, bytes that move."""
        layout, target, largest = self.layout, self.target(rack), self._large_on(rack)
        beyond = sum(
            max(0, layout.counts[b] - layout.most[b], layout.least[b] - layout.counts[b]) for b in self._racks[rack]
        )
        missing = 0
        for broker in self._judged[rack]:
            load, (size, _) = layout.load[broker], largest.get(broker, (0, NOBODY))
            missing += max(0, load - target.most_with(size), target.least - load)
        return beyond, missing, layout.moved(rack)

    def target(self, rack: int) -> Target:
        layout, brokers = self.layout, self._judged[rack]
        largest = [layout.size[unit] for unit in self._large[rack]]
        return target_of(sum(layout.load[b] for b in brokers), len(brokers), largest, self._eps)

    def outside(self) -> Iterator[Outside]:
        """Brokers that are not within eps."""
        for rack, brokers in enumerate(self._judged):
            target, largest = self.target(rack), self._large_on(rack)
            for broker in brokers:
                load, (size, row) = self.layout.load[broker], largest.get(broker, (0, NOBODY))
                if target.most < load <= target.most_with(size):
                    yield Outside(broker, load, round(target.mean), LARGE, row)
                elif load > target.most:
                    yield Outside(broker, load, round(target.mean), STUCK)
                elif load < target.least:
                    yield Outside(broker, load, round(target.mean), LACKS)
                elif load < (1 - self._eps) * target.mean - 1:
                    yield Outside(broker, load, round(target.mean), REST)

    def _large_on(self, rack: int) -> dict[int, tuple[int, int]]:
        """Broker → bytes and partition of the largest on it."""
        layout, found = self.layout, dict[int, tuple[int, int]]()
        for unit in self._large[rack]:
            found.setdefault(layout.at[unit], (layout.size[unit], layout.row[unit]))
        return found
