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

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Flags, Ints
from kafkadash.domain.planner.disk_layout import BEYOND, Layout
from kafkadash.domain.planner.disk_rack import Rack
from kafkadash.domain.planner.disk_targets import Target, target_of

LARGE, REST, STUCK = "large", "rest", "stuck"


@dataclass(frozen=True, slots=True)
class Outside:
    """A broker that could not be brought within eps: its bytes, the mean of its rack, and why.

    ``LARGE``: one partition, ``row``, is larger than a broker may hold. ``REST``: such partitions leave the other
    brokers of the rack less than the mean. ``STUCK``: what may move does not suffice, or there is no room for it.
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
    as_is = _Balance(Layout(demand, answer, sizes, beside, *rooms, afresh=False), judged, eps)
    if not any(as_is.outside()):
        return Balanced(answer, ())
    balance = _Balance(Layout(demand, answer, sizes, beside, *rooms, afresh=True), judged, eps)
    balance.settle()
    balance.even_counts()
    if not balance.layout.met():
        balance = as_is
    balance.even_bytes()
    return Balanced(balance.layout.answer(), tuple(balance.outside()))


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
        """Largest first, into the emptiest broker of the rack that may have one more."""
        layout = self.layout
        heaps = [[(layout.load[b], b) for b in brokers if layout.receives[b]] for brokers in self._racks]
        for heap in heaps:
            heapq.heapify(heap)
        for unit in reversed(layout.homeless):
            self._give(unit, heaps[layout.rack[unit]], layout.most)

    def even_counts(self) -> None:
        """The smallest replicas go from brokers that have too many to those that have too few; where only one side is
        outside its bounds, to or from those that can take or give one.
        """
        for brokers in self._racks:
            self._shed(brokers)
            self._fill(brokers)

    def _shed(self, brokers: list[int]) -> None:
        """What is too much: first to those that have too few."""
        layout = self.layout
        needy, able = self._takers(brokers, layout.least), self._takers(brokers, layout.most)
        for giver in brokers:
            for unit in layout.on[giver][:]:
                if layout.counts[giver] <= layout.most[giver]:
                    break
                if not self._give(unit, needy, layout.least):
                    self._give(unit, able, layout.most)

    def _fill(self, brokers: list[int]) -> None:
        """What is still too few, with the smallest replicas of all that can give one."""
        layout = self.layout
        needy = self._takers(brokers, layout.least)
        givers = [(layout.on[b][0], b) for b in brokers if layout.on[b] and layout.counts[b] > layout.least[b]]
        heapq.heapify(givers)
        while needy and givers:
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
        for rack, brokers in enumerate(self._judged):
            if brokers:
                Rack(self.layout, brokers, self.target(rack), self._large[rack]).settle()

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
                if load > target.most:
                    large = size > target.most and load <= target.most_with(size)
                    yield Outside(broker, load, round(target.mean), LARGE if large else STUCK, row if large else NOBODY)
                elif load < (1 - self._eps) * target.mean - 1:
                    why = REST if load >= target.least else STUCK
                    yield Outside(broker, load, round(target.mean), why)

    def _large_on(self, rack: int) -> dict[int, tuple[int, int]]:
        """Broker → bytes and partition of the largest on it."""
        layout, found = self.layout, dict[int, tuple[int, int]]()
        for unit in self._large[rack]:
            found.setdefault(layout.at[unit], (layout.size[unit], layout.row[unit]))
        return found
