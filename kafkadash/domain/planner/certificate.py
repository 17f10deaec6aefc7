"""The proof that a plan moves the least: a price for each broker, and the bound that follows from any such prices.

Say a replica on broker b costs λ(b) less, and that b pays for as many replicas as it may hold at the cheapest. Then
each partition can be placed for itself, at its own best, and what that comes to is no more than any plan can cost
(weak duality). The placement is a flow, so there are prices for which the bound is the least itself: they are the
potentials of the brokers in the residual graph of an optimal flow. Whoever has the prices needs no solver: ``bound``
goes through the partitions once.
"""

from __future__ import annotations

import numpy as np

from kafkadash.domain.planner.demand import Demand, Flags, Ints

BEYOND = 2**60
"""More than anything costs."""
AT_ONCE = 100_000
"""Partitions that are looked at together, which bounds the memory."""


def bound(demand: Demand, prices: Ints) -> int:
    """No plan that meets the demand moves fewer bytes than this, whatever the prices (B, bytes) are."""
    paid = np.where(prices > 0, demand.least, demand.most) * prices
    total = int(paid.sum())
    for begin in range(0, demand.partitions, AT_ONCE):
        total += _cheapest(demand, prices, slice(begin, begin + AT_ONCE))
    return total


def _cheapest(demand: Demand, prices: Ints, part: slice) -> int:
    """What these partitions cost at the least, each for itself, at the prices."""
    racks, factors = demand.racks, demand.factors[part]
    offers = _offers(demand, prices, part)
    least, most = demand.rack_least[part][:, :, None], demand.rack_most[part][:, :, None]
    place = np.arange(offers.shape[2])
    forced = np.where(place < least, offers, 0).sum(axis=(1, 2))
    optional = np.where((place >= least) & (place < most), offers, BEYOND).reshape(len(factors), -1)
    optional.sort(axis=1)
    left = factors - demand.rack_least[part].sum(axis=1)
    chosen = np.where(np.arange(optional.shape[1]) < left[:, None], optional, 0).sum(axis=1)
    stayed = np.where(demand.must_stay[part], -prices[np.maximum(demand.held[part], 0)], 0).sum(axis=1)
    return int((forced + chosen + stayed).sum()) if racks else 0


def _offers(demand: Demand, prices: Ints, part: slice) -> Ints:
    """P×R×K: what a replica in each rack costs, the cheapest first; what must stay is 0 here, it is no choice."""
    held, may_stay, must_stay = demand.held[part], demand.may_stay[part], demand.must_stay[part]
    size, (count, width) = demand.bytes[part], held.shape
    most_new = int(demand.factors.max()) if count else 0
    offers = np.full((count, demand.racks, 2 * width + most_new), BEYOND, np.int64)
    rows = np.arange(count)
    for column in range(width):
        brokers = np.maximum(held[:, column], 0)
        cost = np.where(may_stay[:, column], -prices[brokers], BEYOND)
        # What must stay comes first, whatever it costs; its price is added apart.
        offers[rows, demand.rack_of[brokers], column] = np.where(must_stay[:, column], -BEYOND, cost)
    for rack in range(demand.racks):
        receivers = demand.receivers[demand.rack_of[demand.receivers] == rack]
        cheapest = receivers[np.argsort(-prices[receivers], kind="stable")][: most_new + width]
        for place, broker in enumerate(cheapest):
            stays = ((held == broker) & may_stay).any(axis=1)
            offers[:, rack, width + place] = np.where(stays, BEYOND, size - prices[broker])
    offers.sort(axis=2)
    return np.where(offers == -BEYOND, 0, offers)


def prices_of(demand: Demand, stays: Flags, new: Ints) -> Ints | None:
    """The prices under which this placement costs its own bound; None where it can be made cheaper.

    ``new`` P×N: the brokers of the new replicas, ``NOBODY`` where fewer. The residual graph is taken together to its
    brokers: from b to c leads the cheapest way in which one partition gives up its replica on b for one on c. A way
    around that costs less than nothing would make the plan cheaper; without one the distances are the potentials.
    """
    steps = _steps(demand, stays, new)
    potential = np.zeros(len(steps), np.int64)
    for _ in range(len(steps) + 1):
        through = np.where(steps < BEYOND, potential[:, None] + steps, BEYOND).min(axis=0)
        shorter = np.minimum(potential, through)
        if (shorter == potential).all():
            prices: Ints = potential[:-1] - potential[-1]
            return prices
        potential = shorter
    return None


def _steps(demand: Demand, stays: Flags, new: Ints) -> Ints:
    """(B+1)×(B+1): what it costs when one replica passes from the row's broker to the column's.

    The last is nobody: a broker passes one on to nobody by keeping it, above its least a broker may pass one on for
    nobody's sake.
    """
    brokers = demand.brokers
    steps = np.full((brokers + 1, brokers + 1), BEYOND, np.int64)
    counts = np.bincount(demand.held[stays], minlength=brokers) + np.bincount(new[new >= 0], minlength=brokers)
    steps[:-1, -1] = np.where(counts < demand.most, 0, BEYOND)
    steps[-1, :-1] = np.where(counts > demand.least, 0, BEYOND)
    for begin in range(0, demand.partitions, AT_ONCE):
        part = slice(begin, begin + AT_ONCE)
        _add_steps(demand, stays[part], new[part], part, steps)
    return steps


def _add_steps(demand: Demand, stays: Flags, new: Ints, part: slice, steps: Ints) -> None:
    """The cheapest exchanges within these partitions: what is given up for what is held and left, or for a receiver.

    Among receivers of a rack that hold nothing of the partition all cost the same, so for each pair of (what is given
    up, rack) the cheapest partition is enough, but for the receivers that it has already.
    """
    held, may_stay, must_stay = demand.held[part], demand.may_stay[part], demand.must_stay[part]
    size = demand.bytes[part]
    in_rack = np.zeros((len(size), demand.racks), np.int64)
    rows, columns = np.nonzero(stays)
    np.add.at(in_rack, (rows, demand.rack_of[held[rows, columns]]), 1)
    rows, columns = np.nonzero(new >= 0)
    np.add.at(in_rack, (rows, demand.rack_of[new[rows, columns]]), 1)
    gives, takes = in_rack > demand.rack_least[part], in_rack < demand.rack_most[part]
    left = [(stays[:, c] & ~must_stay[:, c], held[:, c], 0) for c in range(held.shape[1])]
    left += [(new[:, c] >= 0, new[:, c], 1) for c in range(new.shape[1])]
    for flag, broker, moved in left:
        for column in range(held.shape[1]):
            free = may_stay[:, column] & ~stays[:, column]
            _shorten(demand, steps, flag & free, broker, held[:, column], -moved * size, gives, takes)
    _to_receivers(demand, steps, left, (held, stays, may_stay, new), size, (gives, takes))


def _shorten(
    demand: Demand, steps: Ints, which: Flags, source: Ints, target: Ints, cost: Ints, gives: Flags, takes: Flags
) -> None:
    """By the exchanges of the partitions of ``which``, where the bounds of their racks allow it."""
    rows = np.flatnonzero(which)
    source, target = source[rows], target[rows]
    racks = demand.rack_of[source], demand.rack_of[target]
    possible = (racks[0] == racks[1]) | (gives[rows, racks[0]] & takes[rows, racks[1]])
    np.minimum.at(steps, (source[possible], target[possible]), cost[rows][possible])


def _to_receivers(
    demand: Demand,
    steps: Ints,
    left: list[tuple[Flags, Ints, int]],
    placed: tuple[Ints, Flags, Flags, Ints],
    size: Ints,
    bounds: tuple[Flags, Flags],
) -> None:
    """For each broker that gives and each rack: the cheapest few partitions, so that every receiver finds one."""
    held, stays, may_stay, new = placed
    for flag, broker, moved in left:
        for rack in range(demand.racks):
            receivers = demand.receivers[demand.rack_of[demand.receivers] == rack]
            rows = np.flatnonzero(flag)
            if not len(receivers) or not len(rows):
                continue
            source = broker[rows]
            same = demand.rack_of[source] == rack
            rows = rows[same | (bounds[0][rows, demand.rack_of[source]] & bounds[1][rows, rack])]
            cost = (1 - moved) * size[rows]
            order = np.lexsort((cost, broker[rows]))
            rows, cost = rows[order], cost[order]
            first = np.searchsorted(broker[rows], np.arange(demand.brokers + 1))
            for giver in np.flatnonzero(np.diff(first)):
                _from_one(steps, int(giver), receivers, rows[first[giver] : first[giver + 1]],
                          cost[first[giver] : first[giver + 1]], held, stays, may_stay, new)  # fmt: skip


def _from_one(
    steps: Ints,
    giver: int,
    receivers: Ints,
    rows: Ints,
    cost: Ints,
    held: Ints,
    stays: Flags,
    may_stay: Flags,
    new: Ints,
) -> None:
    """The cheapest partition first; a receiver that has it already, or may keep it, waits for the next."""
    waiting = receivers[receivers != giver]
    for row, price in zip(rows, cost, strict=True):
        has = {*held[row][stays[row] | may_stay[row]].tolist(), *new[row].tolist()}
        ready = np.array([receiver for receiver in waiting if receiver not in has], np.int64)
        steps[giver, ready] = np.minimum(steps[giver, ready], price)
        waiting = np.array([receiver for receiver in waiting if receiver in has], np.int64)
        if not len(waiting):
            return
