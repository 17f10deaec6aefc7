"""Which replicas stay where a partition gets fewer: no bytes move, all that matters is how even brokers become.

A flow in which everything costs nothing is slow to solve. Here partitions are decided one after the other, each for the
emptiest of its brokers, and then exchanged along ways: from a broker with too many to one that may have more, partition
by partition each keeping its replica on the next broker instead of this one. Where no such way is left, no choice of
replicas brings the brokers nearer to their bounds.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

import numpy as np

from kafkadash.domain.planner.demand import Answer, Demand, Flags, Ints

SEED = 836
ATTEMPTS = 20
"""For each replica that is one too many or too few somewhere."""

Step = tuple[int, int, int]
"""A partition, the column of the replica that it gives up, and the column of the one that it keeps instead."""


def dropped(demand: Demand) -> tuple[Demand, Answer] | None:
    """What stays, and the demand that this meets: with wider bounds where the wanted ones cannot be met.

    None where some partition needs a new replica.
    """
    if (demand.may_stay.sum(axis=1) < demand.factors).any():
        return None
    stays = _greedy(demand)
    if (stays.sum(axis=1) != demand.factors).any() or not _in_racks(demand, stays):
        return None
    exchange = _Exchange(demand, stays)
    exchange.even_out()
    nothing = np.zeros((demand.partitions, 0), np.int64)
    answer = Answer(exchange.stays, nothing)
    counts = answer.counts(demand)
    met = replace(demand, least=np.minimum(demand.least, counts), most=np.maximum(demand.most, counts))
    return met, answer


def _greedy(demand: Demand) -> Flags:
    """P×W. In an order that has nothing to do with who holds what, or whole stretches would share the same brokers."""
    stays = demand.must_stay.copy()
    load = np.bincount(demand.held[stays], minlength=demand.brokers).tolist()
    rack_of, factors = demand.rack_of.tolist(), demand.factors.tolist()
    waiting = demand.may_stay & ~stays
    fixed = stays.sum(axis=1).tolist()
    for row in np.random.default_rng(SEED).permutation(demand.partitions).tolist():
        left = factors[row] - fixed[row]
        if left <= 0:
            continue
        held = demand.held[row].tolist()
        open_ = np.flatnonzero(waiting[row]).tolist()
        if left < len(open_):
            open_ = _emptiest(demand, row, open_, (held, load, rack_of), left, np.flatnonzero(stays[row]).tolist())
        for column in open_:
            stays[row, column] = True
            load[held[column]] += 1
    return stays


def _emptiest(
    demand: Demand,
    row: int,
    open_: list[int],
    known: tuple[list[int], list[int], list[int]],
    left: int,
    kept: list[int],
) -> list[int]:
    """So many of these columns: first where the racks need one, then on the emptiest brokers."""
    held, load, rack_of = known
    least, most = demand.rack_least[row].tolist(), demand.rack_most[row].tolist()
    in_racks = [0] * demand.racks
    for column in kept:
        in_racks[rack_of[held[column]]] += 1
    chosen: list[int] = []
    for _ in range(left):
        best = min(
            (in_racks[rack] >= most[rack], in_racks[rack] >= least[rack], load[held[column]], column)
            for column in open_
            if column not in chosen
            for rack in (rack_of[held[column]],)
        )[3]
        chosen.append(best)
        in_racks[rack_of[held[best]]] += 1
    return chosen


def _in_racks(demand: Demand, stays: Flags) -> bool:
    counts = demand.stayed_in_racks(stays)
    return bool(((counts >= demand.rack_least) & (counts <= demand.rack_most)).all())


class _Exchange:
    """Which partitions could keep their replica on another broker, by the two brokers."""

    def __init__(self, demand: Demand, stays: Flags) -> None:
        self._demand, self.stays = demand, stays
        self._racks = demand.stayed_in_racks(stays)
        self._counts = np.bincount(demand.held[stays], minlength=demand.brokers)
        self._steps: defaultdict[tuple[int, int], list[Step]] = defaultdict(list)
        self._ways = np.zeros((demand.brokers, demand.brokers), np.bool_)
        choice = (demand.may_stay & ~stays).any(axis=1) & (stays & ~demand.must_stay).any(axis=1)
        for row in np.flatnonzero(choice).tolist():
            self._offer(row)

    def even_out(self) -> None:
        """Brokers with too many give to those with fewer, the furthest out first; then those with too few get some."""
        demand = self._demand
        for level in range(int(max(0, (self._counts - demand.most).max())), -1, -1):
            self._bring(demand.most + level, np.greater)
        for level in range(int(max(0, (demand.least - self._counts).max())), -1, -1):
            self._bring(demand.least - level, np.less)

    def _bring(self, bound: Ints, wrong: np.ufunc) -> None:
        """As many brokers within this bound as ways lead to or from."""
        # Each way mends one replica; one that breaks off half way leaves as much to mend as there was.
        for _ in range(ATTEMPTS * int(np.abs(self._counts - bound)[wrong(self._counts, bound)].sum())):
            if not wrong(self._counts, bound).any():
                return
            way = self._way(self._counts > bound, self._counts < bound)
            if way is None:
                return
            self._go(way)

    def _offer(self, row: int) -> None:
        """All exchanges of this partition as it stands."""
        demand = self._demand
        held = demand.held[row]
        for gives in np.flatnonzero(self.stays[row] & ~demand.must_stay[row]).tolist():
            for takes in np.flatnonzero(demand.may_stay[row] & ~self.stays[row]).tolist():
                if self._allowed((row, gives, takes)):
                    one, other = int(held[gives]), int(held[takes])
                    self._steps[one, other].append((row, gives, takes))
                    self._ways[one, other] = True

    def _allowed(self, step: Step) -> bool:
        row, gives, takes = step
        demand = self._demand
        if not self.stays[row, gives] or self.stays[row, takes]:
            return False
        one, other = demand.rack_of[demand.held[row, [gives, takes]]]
        return bool(
            one == other
            or (
                self._racks[row, one] > demand.rack_least[row, one]
                and self._racks[row, other] < demand.rack_most[row, other]
            )
        )

    def _way(self, sources: Flags, targets: Flags) -> list[int] | None:
        """Brokers of a shortest way from one of the sources to one of the targets; None where there is none."""
        brokers = self._demand.brokers
        before = np.full(brokers, -1)
        reached, wave = sources.copy(), np.flatnonzero(sources)
        while len(wave):
            hits = self._ways[wave] & ~reached
            fresh = np.flatnonzero(np.logical_or.reduce(hits, axis=0))
            before[fresh] = wave[np.argmax(hits[:, fresh], axis=0)]
            reached[fresh] = True
            ends = fresh[targets[fresh]]
            if len(ends):
                way = [int(ends[0])]
                while before[way[-1]] >= 0:
                    way.append(int(before[way[-1]]))
                return way[::-1]
            wave = fresh
        return None

    def _go(self, way: list[int]) -> None:
        """All of it, or nothing where an exchange on it is not possible any more."""
        edges = list(pairwise(way))
        for one, other in edges:
            steps = self._steps[one, other]
            while steps and not self._allowed(steps[-1]):
                steps.pop()
            if not steps:
                self._ways[one, other] = False
                return
        for one, other in edges:
            step = next(self._possible(one, other), None)
            if step is None:  # a partition that is on the way twice
                self._ways[one, other] = False
                return
            self._take(step)

    def _possible(self, one: int, other: int) -> Iterator[Step]:
        steps = self._steps[one, other]
        while steps:
            step = steps.pop()
            if self._allowed(step):
                yield step

    def _take(self, step: Step) -> None:
        row, gives, takes = step
        one, other = (int(self._demand.held[row, column]) for column in (gives, takes))
        self.stays[row, gives], self.stays[row, takes] = False, True
        racks = self._demand.rack_of
        self._racks[row, racks[one]] -= 1
        self._racks[row, racks[other]] += 1
        self._counts[one] -= 1
        self._counts[other] += 1
        self._offer(row)
