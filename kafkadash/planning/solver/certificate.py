"""Proof that a plan moves the least bytes: a price for each broker, and the bound that follows from such prices.

Say a replica on broker b costs λ(b) less, and b pays for as many replicas as it may hold at the cheapest. Then each
partition can be placed for itself, at its own best, and the total is no more than any plan can cost (weak duality). The
placement is a flow, so there are prices for which the bound equals the minimum: they are the potentials of the brokers
in the residual graph of an optimal flow. With the prices no solver is needed: ``compute_bound`` goes through the
partitions once.
"""

from __future__ import annotations

import numpy as np

from kafkadash.planning.solver.demand import NOBODY, Flags, Ints, PlacementDemand

BEYOND = 2**60
"""More than anything costs."""
AT_ONCE = 100_000
"""Partitions that are looked at together, which bounds the memory."""


def compute_bound(demand: PlacementDemand, prices: Ints) -> int:
    """No plan that meets the demand moves fewer bytes than this, whatever the prices (B, bytes) are."""
    paid = np.where(prices > 0, demand.least, demand.most) * prices
    total = int(paid.sum())
    for begin in range(0, demand.partitions, AT_ONCE):
        total += int(compute_least_costs(demand.only(slice(begin, begin + AT_ONCE)), prices).sum())
    return total


def compute_least_costs(demand: PlacementDemand, prices: Ints) -> Ints:
    """P: what each partition costs at the least, each for itself, at the prices.

    Where all can stay, a new replica saves at most the difference of two prices and costs the bytes of the partition:
    whoever is larger than that stays.
    """
    price = prices[demand.held]
    best: Ints = np.where(demand.may_stay, -price, 0).sum(axis=1)
    highest = int(prices[demand.receivers].max(initial=-BEYOND))
    lowest = np.where(demand.may_stay, price, BEYOND).min(axis=1, initial=BEYOND)
    choosing = ~demand.settled | (demand.bytes < highest - lowest)
    if choosing.any():
        best[choosing] = _enumerate_least_costs(demand.only(choosing), prices)
    return best


def _enumerate_least_costs(demand: PlacementDemand, prices: Ints) -> Ints:
    """The same by looking at all that they can choose from."""
    offers = _price_offers(demand, prices)
    least, most = demand.rack_least[:, :, None], demand.rack_most[:, :, None]
    place = np.arange(offers.shape[2])
    forced = np.where(place < least, offers, 0).sum(axis=(1, 2))
    optional = np.where((place >= least) & (place < most), offers, BEYOND).reshape(demand.partitions, -1)
    optional.sort(axis=1)
    left = demand.factors - demand.rack_least.sum(axis=1)
    chosen = np.where(np.arange(optional.shape[1]) < left[:, None], optional, 0).sum(axis=1)
    stayed = np.where(demand.must_stay, -prices[demand.held], 0).sum(axis=1)
    found: Ints = forced + chosen + stayed
    return found


def _price_offers(demand: PlacementDemand, prices: Ints) -> Ints:
    """P×R×K: what a replica in each rack costs, the cheapest first; what must stay is 0 here, it is no choice."""
    held, may_stay, must_stay = demand.held, demand.may_stay, demand.must_stay
    count, width = held.shape
    most_new = int(demand.factors.max()) if count else 0
    offers = np.full((count, demand.racks, 2 * width + most_new), BEYOND, np.int64)
    rows = np.arange(count)
    for column in range(width):
        brokers = held[:, column]
        cost = np.where(may_stay[:, column], -prices[brokers], BEYOND)
        # What must stay comes first, whatever it costs; its price is added apart.
        offers[rows, demand.rack_of[brokers], column] = np.where(must_stay[:, column], -BEYOND, cost)
    for rack in range(demand.racks):
        receivers = demand.receivers[demand.rack_of[demand.receivers] == rack]
        dearest = receivers[np.argsort(-prices[receivers], kind="stable")][: most_new + width]
        for place, broker in enumerate(dearest):
            stays = ((held == broker) & may_stay).any(axis=1)
            offers[:, rack, width + place] = np.where(stays, BEYOND, demand.bytes - prices[broker])
    offers.sort(axis=2)
    return np.where(offers == -BEYOND, 0, offers)


def prices_of(demand: PlacementDemand, stays: Flags, new: Ints) -> Ints | None:
    """The prices under which this placement costs its own bound; None where it can be made cheaper.

    ``new`` P×N: the brokers of the new replicas, ``NOBODY`` where fewer. The residual graph is taken together to its
    brokers: from b to c leads the cheapest way in which one partition gives up its replica on b for one on c. A way
    around that costs less than nothing would make the plan cheaper; without one the distances are the potentials. Where
    the flow had to round bytes, each step is taken to cost that much more, and the bound is lower by as little.
    """
    steps = _build_exchange_costs(demand, stays, new)
    potential = find_shortest_distances(steps)
    if potential is None and demand.unit > 1:
        potential = find_shortest_distances(np.where(steps < BEYOND, steps + demand.unit, BEYOND))
    if potential is None:
        return None
    prices: Ints = potential[:-1] - potential[-1]
    return prices


def find_shortest_distances(steps: Ints) -> Ints | None:
    """Distances of all from wherever is nearest (Bellman and Ford); None where a way around costs less than nothing.

    ``steps`` N×N: from the row's to the column's, ``BEYOND`` where none leads.
    """
    potential = np.zeros(len(steps), np.int64)
    for _ in range(len(steps) + 1):
        through = np.where(steps < BEYOND, potential[:, None] + steps, BEYOND).min(axis=0)
        shorter = np.minimum(potential, through)
        if (shorter == potential).all():
            return potential
        potential = shorter
    return None


def _build_exchange_costs(demand: PlacementDemand, stays: Flags, new: Ints) -> Ints:
    """(B+1)×(B+1): what it costs when one replica passes from the row's broker to the column's.

    The last is nobody: a broker passes one on to nobody by keeping it, above its least a broker may pass one on for
    nobody's sake.
    """
    brokers = demand.brokers
    steps = np.full((brokers + 1, brokers + 1), BEYOND, np.int64)
    np.fill_diagonal(steps, 0)
    counts = np.bincount(demand.held[stays], minlength=brokers) + np.bincount(new[new >= 0], minlength=brokers)
    steps[:-1, -1] = np.where(counts < demand.most, 0, BEYOND)
    steps[-1, :-1] = np.where(counts > demand.least, 0, BEYOND)
    for begin in range(0, demand.partitions, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        _ExchangeGraph(demand.only(part), stays[part], new[part]).shorten(steps)
    return steps


class _ExchangeGraph:
    """Graph of the replicas that partitions, as they are placed, can give up and be given instead."""

    def __init__(self, demand: PlacementDemand, stays: Flags, new: Ints) -> None:
        self._demand = demand
        self._stays = stays
        in_rack = demand.stayed_in_racks(stays) + demand.in_racks(new)
        self._gives, self._takes = in_rack > demand.rack_least, in_rack < demand.rack_most
        self._has = np.concatenate([np.where(stays | demand.may_stay, demand.held, NOBODY), new], axis=1)
        # What is given up: whether, the broker, and whether that replica was paid for.
        self._left = [(stays[:, c] & ~demand.must_stay[:, c], demand.held[:, c], 0) for c in range(stays.shape[1])]
        self._left += [(new[:, c] >= 0, new[:, c], 1) for c in range(new.shape[1])]

    def shorten(self, steps: Ints) -> None:
        """By the cheapest exchanges of these partitions."""
        held = self._demand.held
        for flag, broker, paid in self._left:
            for column in range(held.shape[1]):
                free = self._demand.may_stay[:, column] & ~self._stays[:, column]
                rows = np.flatnonzero(flag & free)
                self._for_held(steps, rows, broker[rows], held[rows, column], paid)
            for rack in range(self._demand.racks):
                self._for_receivers(steps, np.flatnonzero(flag), broker, paid, rack)

    def _for_held(self, steps: Ints, rows: Ints, source: Ints, target: Ints, paid: int) -> None:
        """For a replica that is held and was left."""
        rack_of = self._demand.rack_of
        there = rack_of[target]
        possible = self._allowed(rows, rack_of[source], there)
        cost = -paid * self._demand.bytes[rows]
        np.minimum.at(steps, (source[possible], target[possible]), cost[possible])

    def _allowed(self, rows: Ints, here: Ints, there: Ints) -> Flags:
        """Return whether the bounds of racks let a replica pass from ``here`` to ``there``."""
        allowed: Flags = (here == there) | (self._gives[rows, here] & self._takes[rows, there])
        return allowed

    def _for_receivers(self, steps: Ints, rows: Ints, broker: Ints, paid: int, rack: int) -> None:
        """For a new one in this rack.

        Among receivers that hold nothing of the partition all cost the same: of each giver the cheapest partition is
        looked at, and the next ones for those receivers that have it already.
        """
        demand = self._demand
        receivers = demand.receivers[demand.rack_of[demand.receivers] == rack]
        if not len(receivers) or not len(rows):
            return
        known = np.append(steps[:-1, receivers].max(axis=1), 0)
        cost = np.zeros(demand.partitions, np.int64) if paid else demand.bytes
        rows = rows[cost[rows] < known[broker[rows]]]
        rows = rows[self._allowed(rows, demand.rack_of[broker[rows]], np.full(len(rows), rack))]
        rows = rows[np.lexsort((cost[rows], broker[rows]))]
        givers, first = np.unique(broker[rows], return_index=True)
        last = np.append(first[1:], len(rows))
        waiting = givers[:, None] != receivers
        while len(givers):
            row = rows[first]
            ready = waiting & ~(self._has[row][:, :, None] == receivers).any(axis=1)
            here = steps[givers[:, None], receivers]
            steps[givers[:, None], receivers] = np.where(ready, np.minimum(here, cost[row][:, None]), here)
            waiting &= ~ready
            first = first + 1
            more = waiting.any(axis=1) & (first < last)
            givers, first, last, waiting = givers[more], first[more], last[more], waiting[more]
