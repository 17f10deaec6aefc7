"""Disks within eps of the mean of their rack, with as few bytes moved as that takes, once counts and racks are settled.

What has to move goes first, the largest into the emptiest broker of its rack. Then brokers with too many or too few
replicas hand over the smallest ones, and then bytes go from the fullest to the emptiest: the largest replica that is
not above the need, with a small one in return where the counts ask for it. Wherever replicas fit, a broker gives or
gets no more than its excess or its lack; that is what every plan has to move (``disk_bound``).
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Flags, Ints
from kafkadash.domain.planner.disk_layout import BEYOND, Layout
from kafkadash.domain.planner.disk_targets import Target, target_of

BEYOND_NEED = 0.005
"""Of the mean: so much more than the need a broker may give or get at the last step, which ends at eps - 0.5 %."""
PARTNERS = 8
NEIGHBOURS = 8
"""Replicas of nearly the wanted size that are looked at when the first may not go there."""
DUST = 50
"""A step that meets less than one of so many parts of the need is none."""
PASSES = 50

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
        """Until nobody finds a step any more."""
        for rack, brokers in enumerate(self._judged):
            for _ in range(PASSES):
                if not brokers or not _Rack(self.layout, brokers, self.target(rack), self._large[rack]).evened():
                    break

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
                    large = size > target.most
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


class _Rack:
    """Bytes from the fullest to the emptiest of the judged brokers of one rack."""

    def __init__(self, layout: Layout, brokers: list[int], target: Target, large: list[int]) -> None:
        self._layout, self._brokers = layout, brokers
        self._window = int(BEYOND_NEED * target.mean)
        largest: dict[int, int] = {}
        for unit in large:
            largest.setdefault(layout.at[unit], layout.size[unit])
        self._most = np.array([target.most_with(largest.get(b, 0)) for b in brokers], np.int64)
        self._least = np.full(len(brokers), target.least)
        self._takes = np.array([layout.receives[b] for b in brokers], np.bool_)
        self._movable = layout.upto(target.most)
        self._load = np.array([layout.load[b] for b in brokers], np.int64)
        self._gave_up = np.zeros((2, len(brokers)), np.bool_)

    def evened(self) -> bool:
        """Whether any step was made."""
        stepped = False
        while True:
            excess = np.maximum(self._load - self._most, 0)
            lack = np.where(self._takes, np.maximum(self._least - self._load, 0), 0)
            open_excess, open_lack = (np.where(up, 0, x) for up, x in zip(self._gave_up, (excess, lack), strict=True))
            spare = int(open_excess.sum() - open_lack.sum())
            giving = spare >= 0 and open_excess.any()
            if not giving and not open_lack.any():
                return stepped
            if giving:
                one = int(open_excess.argmax())
                pairs = self._to_emptiest(one, excess, lack, spare)
            else:
                one = int(open_lack.argmax())
                pairs = self._from_fullest(one, excess, lack, -spare)
            if self._step(pairs):
                stepped = True
            else:
                self._gave_up[0 if giving else 1, one] = True

    def _to_emptiest(self, giver: int, excess: Ints, lack: Ints, spare: int) -> list[tuple[int, int, int, int]]:
        """(giver, taker, wanted bytes, most bytes): what is not lacked counts only while there is excess to spare."""
        takers = [n for n in np.argsort(self._load, kind="stable").tolist() if self._takes[n] and n != giver]
        need = int(excess[giver])
        return [self._pair(giver, n, need, int(lack[n]) + spare) for n in takers[:PARTNERS]]

    def _from_fullest(self, taker: int, excess: Ints, lack: Ints, spare: int) -> list[tuple[int, int, int, int]]:
        givers = np.argsort(self._least - self._load + (self._most.min() - self._most), kind="stable").tolist()
        need = int(lack[taker])
        return [self._pair(n, taker, need, int(excess[n]) + spare) for n in givers[:PARTNERS] if n != taker]

    def _pair(self, giver: int, taker: int, need: int, useful: int) -> tuple[int, int, int, int]:
        possible = min(int(self._load[giver] - self._least[giver]), int(self._most[taker] - self._load[taker]))
        wanted = min(need, useful, possible)
        return giver, taker, wanted, min(need + self._window, possible) if wanted == need else wanted

    def _step(self, pairs: list[tuple[int, int, int, int]]) -> bool:
        """The step that meets the most of the need; a real exchange only where no other meets any."""
        best: tuple[int, int, int, int, int | None] | None = None
        for giver, taker, wanted, most in pairs:
            found = self._replica(giver, taker, wanted, most) if wanted > 0 else None
            if found is not None and (best is None or found[0] > best[0]):
                best = (found[0], giver, taker, found[1], found[2])
                if found[0] >= wanted:
                    break
        need = max((wanted for _, _, wanted, _ in pairs), default=0)
        if best is None or best[0] * DUST < need:
            best = self._exchange(pairs) or best
        if best is None or best[0] * DUST < need:
            return False
        _, giver, taker, unit, back = best
        self._put(unit, giver, taker)
        if back is not None:
            self._put(back, taker, giver)
        return True

    def _put(self, unit: int, source: int, target: int) -> None:
        self._layout.put(unit, self._brokers[target])
        self._load[source] -= self._layout.size[unit]
        self._load[target] += self._layout.size[unit]

    def _replica(self, giver: int, taker: int, wanted: int, most: int) -> tuple[int, int, int | None] | None:
        """Bytes that pass, the replica, and a small one in return where counts ask for it."""
        layout = self._layout
        source, target = self._brokers[giver], self._brokers[taker]
        back: int | None = None
        if layout.counts[source] <= layout.least[source] or layout.counts[target] >= layout.most[target]:
            back = next((u for u in layout.on[target][:NEIGHBOURS] if layout.fits(u, source)), None)
            if back is None:
                return None
        less, mine = layout.size[back] if back is not None else 0, layout.on[source]
        place = bisect_left(mine, layout.upto(wanted + less - 1))
        top = bisect_left(mine, min(layout.upto(most + less), self._movable))
        for unit in (*mine[place:top][:NEIGHBOURS], *mine[max(0, place - NEIGHBOURS) : place][::-1]):
            if layout.size[unit] > less and unit < self._movable and layout.fits(unit, target):
                return layout.size[unit] - less, unit, back
        return None

    def _exchange(self, pairs: list[tuple[int, int, int, int]]) -> tuple[int, int, int, int, int | None] | None:
        """Two replicas whose difference is not above the need; those that move the least for what they bring."""
        layout, best = self._layout, None
        for giver, taker, wanted, _ in pairs:
            if wanted <= 0:
                continue
            source, target = self._brokers[giver], self._brokers[taker]
            mine, theirs = layout.on[source], layout.on[target]
            place = bisect_left(mine, layout.upto(wanted))
            for unit in mine[place : place + 3 * NEIGHBOURS]:
                if unit >= self._movable or not layout.fits(unit, target):
                    continue
                at = bisect_left(theirs, layout.upto(layout.size[unit] - wanted - 1))
                for back in theirs[at : at + NEIGHBOURS]:
                    gain, cost = layout.size[unit] - layout.size[back], layout.size[unit] + layout.size[back]
                    if gain > 0 and (best is None or gain * best[0] > best[1] * cost) and layout.fits(back, source):
                        best = (cost, gain, giver, taker, unit, back)
        return None if best is None else (best[1], *best[2:])
