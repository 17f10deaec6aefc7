"""Who leads what, as evenly as the replicas allow, with as few changes as that takes: a flow of its own.

A partition is led by one of its replicas. Brokers are filled evenly first, at any price; then the present leader is
kept before a replica that has the data, and that before one that has still to copy it.

In a large cluster most partitions keep their leader. So some are looked at first, and the prices that follow for the
brokers are offered to all: whoever would be led elsewhere at them takes part in the next round. When nobody would, the
leaders of all of them together are the best there are.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kafkadash.domain.planner.certificate import BEYOND, shortest
from kafkadash.domain.planner.demand import Flags, Ints
from kafkadash.domain.planner.flow import Arcs

KEPT, HAS_IT, NEW = 0, 1, 2
WORTH_IT = 5_000
"""Partitions; fewer are all looked at."""
OF_EACH, ROUNDS = 40, 20
"""Partitions of each broker that take part at first, beside twice as many as it leads too many."""


def leaders(replicas: Ints, costs: Ints, led: Ints, leads: Flags) -> Ints:
    """P: the column of ``replicas`` that should lead.

    ``replicas`` P×N: places of brokers, below 0 where there are fewer. ``costs`` P×N: ``KEPT``, ``HAS_IT`` or ``NEW``.
    ``led`` B: what each broker leads besides. ``leads`` B: brokers that the mean is of (alive); others lead as little
    as possible. Counts differ by one at most wherever that can be had.
    """
    total = len(replicas) + int(led[leads].sum())
    mean, more = divmod(total, max(1, int(leads.sum())))
    low = np.where(leads, np.maximum(0, mean - led), 0)
    high = np.where(leads, np.maximum(0, mean + bool(more) - led), 0)
    dear = NEW * len(replicas) + 1  # one leader in a better place outweighs all that is kept
    every = _Rows(replicas, costs, low, high, (0, dear, 3 * dear))
    found = _sifted(every) if len(replicas) >= WORTH_IT else None
    return every.led(np.zeros(len(led), np.int64)) if found is None else found


@dataclass(frozen=True, slots=True)
class _Rows:
    """As of ``leaders``; ``low`` and ``high`` B: how many each broker should lead. ``prices``: of one up to ``low``, of
    one up to ``high``, and of one above.
    """

    replicas: Ints
    costs: Ints
    low: Ints
    high: Ints
    prices: tuple[int, int, int]

    def led(self, kept: Ints) -> Ints:
        """The columns, by a flow. ``kept`` B: partitions that a broker leads and that do not take part."""
        count, brokers = len(self.replicas), len(self.low)
        rows, columns = np.nonzero(self.replicas >= 0)
        supplies = np.zeros(count + brokers + 1, np.int64)
        supplies[:count] = 1
        supplies[-1] = -count
        arcs = Arcs(supplies)
        arcs.add(rows, count + self.replicas[rows, columns], 1, self.costs[rows, columns])
        sink = np.full(brokers, count + brokers)
        cheap = np.maximum(0, self.low - kept)
        rooms = (cheap, np.maximum(0, self.high - kept) - cheap, np.full(brokers, count))
        for room, price in zip(rooms, self.prices, strict=True):
            arcs.add(count + np.arange(brokers), sink, room, price)
        chosen = arcs.solved()[0] > 0
        found = np.zeros(count, np.int64)
        found[rows[chosen]] = columns[chosen]
        return found

    def only(self, which: Flags) -> _Rows:
        return replace(self, replicas=self.replicas[which], costs=self.costs[which])

    def at(self, columns: Ints) -> Ints:
        """P: the brokers there."""
        found: Ints = self.replicas[np.arange(len(columns)), columns]
        return found


def _sifted(every: _Rows) -> Ints | None:
    """The columns, by a flow of some of the partitions; None where it takes them all."""
    brokers = len(every.low)
    first: Ints = np.where(every.replicas >= 0, every.costs, NEW + 1).argmin(axis=1)
    at = every.at(first)
    taking = _at_first(at, np.bincount(at, minlength=brokers), every.low)
    taking |= every.costs[np.arange(len(first)), first] != KEPT  # they change in any case, and are the first to be used
    for _ in range(ROUNDS):
        part, kept = every.only(taking), np.bincount(at[~taking], minlength=brokers)
        chosen = part.led(kept)
        potential = _potentials(part, chosen, kept)
        if potential is None:
            return None
        offers = np.where(every.replicas >= 0, every.costs - potential[every.replicas], BEYOND)
        tempted = ~taking & (offers.min(axis=1) < offers[np.arange(len(first)), first])
        if not tempted.any():
            first[taking] = chosen
            return first
        taking |= tempted
    return None


def _at_first(at: Ints, counts: Ints, low: Ints) -> Flags:
    """P: so many of each broker, from all over the cluster."""
    wanted = OF_EACH + 2 * np.maximum(0, counts - low)
    order = np.argsort(at, kind="stable")
    rank = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    taking = np.zeros(len(at), np.bool_)
    of = at[order]
    taking[order] = rank * wanted[of] % counts[of] < wanted[of]
    return taking


def _potentials(part: _Rows, chosen: Ints, kept: Ints) -> Ints | None:
    """B+1: how dear it is to have one partition less to lead, the last of nobody; None if it can be done better."""
    brokers, at = len(part.low), part.at(chosen)
    counts = kept + np.bincount(at, minlength=brokers)
    steps = np.full((brokers + 1, brokers + 1), BEYOND, np.int64)
    free, dear, dearest = part.prices
    steps[:-1, -1] = np.where(counts < part.low, free, np.where(counts < part.high, dear, dearest))
    given = np.where(counts <= part.low, free, np.where(counts <= part.high, dear, dearest))
    steps[-1, :-1] = np.where(counts > 0, -given, BEYOND)
    rows, columns = np.nonzero(part.replicas >= 0)
    extra = part.costs[rows, columns] - part.costs[rows, chosen[rows]]
    np.minimum.at(steps, (at[rows], part.replicas[rows, columns]), extra)
    return shortest(steps)
