"""Bytes from the fullest to the emptiest brokers of a rack, step by step, each as small as the need."""

from __future__ import annotations

from bisect import bisect_left
from heapq import heapify, heappop, heappush

import numpy as np

from kafkadash.domain.planner.disk_layout import Layout
from kafkadash.domain.planner.disk_targets import Target

BEYOND_NEED = 0.005
"""Of the mean: so much more than the need a broker may give or get at the last step, which ends at eps - 0.5 %."""
PARTNERS = 8
NEIGHBOURS = 8
"""Replicas of nearly the wanted size that are looked at when the first may not go there."""
DUST = 50
"""A step that meets less than one of so many parts of the need is none."""
PASSES = 50
DETOURS = 200
"""Tries to bring a broker within eps by way of one that has to give again itself."""

Pair = tuple[int, int, int, int, int]
"""Who gives, who takes, the bytes wanted, the most bytes to settle it, and the most that leaves both within eps."""


class Rack:
    """The judged brokers of a rack. A step never brings one outside that is within eps."""

    def __init__(self, layout: Layout, brokers: list[int], target: Target, large: list[int], *, counts: bool) -> None:
        self._layout, self._brokers, self._counts = layout, brokers, counts
        self._window = int(BEYOND_NEED * target.mean)
        largest: dict[int, int] = {}
        for unit in large:
            largest.setdefault(layout.at[unit], layout.size[unit])
        self._most = np.array([target.most_with(largest.get(b, 0)) for b in brokers], np.int64)
        self._least = np.full(len(brokers), target.least)
        self._takes = np.array([layout.receives[b] for b in brokers], np.bool_)
        self._small = 2 * target.slack
        self._movable = layout.upto(target.most)
        self._load = np.array([layout.load[b] for b in brokers], np.int64)
        self._gave_up = np.zeros((2, len(brokers)), np.bool_)

    def need(self) -> int:
        """Bytes that have to move at the least from here."""
        lack = np.where(self._takes, np.maximum(self._least - self._load, 0), 0)
        return max(int(np.maximum(self._load - self._most, 0).sum()), int(lack.sum()))

    def settle(self) -> None:
        """Until nobody finds a step any more."""
        if not self._brokers:
            return
        self._large_first()
        self._even()
        if self._counts:
            for _ in range(DETOURS):
                if not self._detour():
                    return

    def _large_first(self) -> None:
        """Who cannot give enough in small replicas gives large ones while there are brokers that lack so much: first
        those of whom most has to be large, each to the broker that lacks the least of those that lack enough.
        """
        asked = [(-self._in_large(giver), giver) for giver in range(len(self._brokers)) if self._in_large(giver) > 0]
        heapify(asked)
        while asked:
            _, giver = heappop(asked)
            mine, large = self._layout.on[self._brokers[giver]], self._in_large(giver)
            place = bisect_left(mine, self._layout.upto(large - 1))
            wanted = self._layout.size[mine[min(place, len(mine) - 1)]]
            if self._given_whole(giver, wanted) and self._in_large(giver) > 0:
                heappush(asked, (-self._in_large(giver), giver))

    def _in_large(self, giver: int) -> int:
        """Bytes of its excess that its small replicas do not come to."""
        layout, mine = self._layout, self._layout.on[self._brokers[giver]]
        excess = int(self._load[giver] - self._most[giver])
        if excess <= 0 or not mine or layout.size[mine[-1]] <= self._small:
            return 0
        return excess - sum(layout.size[unit] for unit in mine[: bisect_left(mine, layout.upto(self._small))])

    def _given_whole(self, giver: int, wanted: int) -> bool:
        lack = self._least - self._load
        takers = [n for n in self._emptiest() if n != giver]
        for taker in sorted(takers, key=lambda n: (lack[n] < wanted, abs(int(lack[n]) - wanted))):
            possible = self._pair(giver, taker, wanted, wanted)[-1]
            found = self._replica(giver, taker, wanted, wanted) if wanted <= possible else None
            if found is not None and 2 * found[0] > wanted:
                self._make(giver, taker, *found[1:])
                return True
        return False

    def _even(self) -> None:
        for _ in range(PASSES):
            self._gave_up[:] = False
            if not self._evened():
                return

    def _evened(self) -> bool:
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
            one = int((open_excess if giving else open_lack).argmax())
            need = int((excess if giving else lack)[one])
            others, useful = (self._emptiest(), lack) if giving else (self._fullest(), excess)
            # What the other side does not need counts only while this side has more to do in all.
            pairs = [
                self._pair(*((one, n) if giving else (n, one)), need, int(useful[n]) + abs(spare))
                for n in others
                if n != one
            ]
            if self._step([pair for pair in pairs if pair[2] > 0]):
                stepped = True
            else:
                self._gave_up[0 if giving else 1, one] = True

    def _emptiest(self) -> list[int]:
        return [n for n in np.argsort(self._load, kind="stable").tolist() if self._takes[n]]

    def _fullest(self) -> list[int]:
        """Measured from what each may hold at the most."""
        order: list[int] = np.argsort(self._most - self._load, kind="stable").tolist()
        return order

    def _pair(self, giver: int, taker: int, need: int, useful: int) -> Pair:
        possible = min(int(self._load[giver] - self._least[giver]), int(self._most[taker] - self._load[taker]))
        wanted = min(need, useful, possible)
        return giver, taker, wanted, min(need + self._window, possible) if wanted == need else wanted, possible

    def _step(self, pairs: list[Pair]) -> bool:
        """The step that meets the most of the need; a real exchange only where no other meets any."""
        best: tuple[int, int, int, int, int | None] | None = None
        for giver, taker, wanted, most, _ in pairs[:PARTNERS]:
            found = self._replica(giver, taker, wanted, most)
            if found is not None and (best is None or found[0] > best[0]):
                best = (found[0], giver, taker, found[1], found[2])
                if found[0] >= wanted:
                    break
        need = max((pair[2] for pair in pairs), default=0)
        if best is None or best[0] * DUST < need:
            best = self._exchange(pairs) or best
        if best is None or best[0] * DUST < need:
            return False
        self._make(*best[1:])
        return True

    def _detour(self) -> bool:
        """The broker that is most over gives one to a broker that this brings outside, and that one gives smaller
        ones; taken back where it does not leave less outside in all.
        """
        outside = self._outside()
        for giver in np.argsort(self._most - self._load, kind="stable").tolist():
            need = int(self._load[giver] - self._most[giver])
            if need <= 0:
                return False
            possible = int(self._load[giver] - self._least[giver])
            others = [n for n in self._emptiest() if n != giver]
            found = self._exchange([(giver, n, need, need, possible) for n in others])
            if found is None:
                continue
            mark = len(self._layout.log)
            self._make(*found[1:])
            self._even()
            if self._outside() < outside:
                return True
            self._layout.back_to(mark)
            self._load = np.array([self._layout.load[b] for b in self._brokers], np.int64)
        return False

    def _outside(self) -> int:
        """Bytes in all."""
        lack = np.where(self._takes, np.maximum(self._least - self._load, 0), 0)
        return int(np.maximum(self._load - self._most, 0).sum() + lack.sum())

    def _make(self, giver: int, taker: int, unit: int, back: int | None) -> None:
        self._put(unit, giver, taker)
        if back is not None:
            self._put(back, taker, giver)

    def _put(self, unit: int, source: int, target: int) -> None:
        self._layout.put(unit, self._brokers[target])
        self._load[source] -= self._layout.size[unit]
        self._load[target] += self._layout.size[unit]

    def _replica(self, giver: int, taker: int, wanted: int, most: int) -> tuple[int, int, int | None] | None:
        """Bytes that pass, the replica, and a small one in return where counts ask for it."""
        layout = self._layout
        source, target = self._brokers[giver], self._brokers[taker]
        back: int | None = None
        last, full = layout.counts[source] <= layout.least[source], layout.counts[target] >= layout.most[target]
        if (self._counts and (last or full)) or (last and not layout.receives[source]):
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

    def _exchange(self, pairs: list[Pair]) -> tuple[int, int, int, int, int | None] | None:
        """Two replicas, or one and a small one, that leave both within eps; what moves the least for the need."""
        layout, best = self._layout, None
        for giver, taker, wanted, _, possible in pairs:
            source, target = self._brokers[giver], self._brokers[taker]
            mine, theirs = layout.on[source], layout.on[target]
            place = bisect_left(mine, layout.upto(wanted))
            for unit in mine[place : place + 3 * NEIGHBOURS]:
                if unit >= self._movable or not layout.fits(unit, target):
                    continue
                at = bisect_left(theirs, layout.upto(layout.size[unit] - possible - 1))
                for back in theirs[at : at + NEIGHBOURS]:
                    gain, cost = layout.size[unit] - layout.size[back], layout.size[unit] + layout.size[back]
                    met = min(gain, wanted)
                    if gain > 0 and (best is None or met * best[0] > best[1] * cost) and layout.fits(back, source):
                        best = (cost, met, giver, taker, unit, back)
        return None if best is None else (best[1], *best[2:])
