"""Which replicas stay where a partition gets fewer: no bytes move, all that matters is how even brokers become.

A flow in which everything costs nothing is slow to solve, so most partitions are decided one after the other, each for
the emptiest of its brokers; what that leaves uneven the flow makes good with the partitions that are left to it.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Answer, Demand, Flags, Ints
from kafkadash.domain.planner.flow import NoFlow

SEED = 836
FEWEST_LEFT = 2_000
SHARES_LEFT = (33, 10, 3)
"""One of so many replicas of a broker is left to the flow, but not fewer than ``FEWEST_LEFT`` of all; then more."""


def dropped(demand: Demand) -> Answer | None:
    """What stays; None where some partition needs a new replica, where there are few, or where most cannot be decided
    before the rest.
    """
    choices = demand.may_stay.sum(axis=1)
    if demand.partitions <= FEWEST_LEFT or (choices < demand.factors).any():
        return None
    for share in SHARES_LEFT:
        try:
            return place(_mostly(demand, share))
        except NoFlow:
            continue
    return None


def _mostly(demand: Demand, share: int) -> Demand:
    """The same with most partitions decided."""
    # In an order that has nothing to do with who holds what, or whole stretches would share the same few brokers.
    order = np.random.default_rng(SEED).permutation(demand.partitions)
    free = np.zeros(demand.partitions, np.bool_)
    load = np.zeros(demand.brokers, np.int64)
    enough = demand.least - np.maximum(demand.least // share, FEWEST_LEFT // max(1, demand.brokers))
    stays = demand.must_stay.copy()
    for row in order.tolist():
        free[row] = not _keep(demand, row, stays, (load, enough))
    stays[free] = demand.may_stay[free]
    in_racks = demand.stayed_in_racks(stays)
    bad = (in_racks < demand.rack_least) | (in_racks > demand.rack_most)
    free |= np.logical_or.reduce(bad, axis=1) | (stays.sum(axis=1) != demand.factors)
    decided = ~free[:, None]
    return replace(
        demand,
        receives=np.zeros_like(demand.receives),
        may_stay=np.where(decided, stays, demand.may_stay),
        must_stay=np.where(decided, stays, demand.must_stay),
    )


def _keep(demand: Demand, row: int, stays: Flags, loads: tuple[Ints, Ints]) -> bool:
    """As many as the partition gets: first where its racks need one, then the emptiest brokers.

    ``loads``: what each broker has by now, and how much is enough before the flow. False where that was enough.
    """
    load, enough = loads
    held = demand.held[row]
    in_racks = np.zeros(demand.racks, np.int64)
    chosen = np.flatnonzero(stays[row]).tolist()
    np.add.at(in_racks, demand.rack_of[held[chosen]], 1)
    waiting = [column for column in np.flatnonzero(demand.may_stay[row]).tolist() if not stays[row, column]]
    while len(chosen) < demand.factors[row] and waiting:
        ranked = []
        for column in waiting:
            rack = demand.rack_of[held[column]]
            full = in_racks[rack] >= demand.rack_most[row, rack]
            met = in_racks[rack] >= demand.rack_least[row, rack]
            ranked.append((bool(full), bool(met), int(load[held[column]]), column))
        column = min(ranked)[3]
        waiting.remove(column)
        chosen.append(column)
        in_racks[demand.rack_of[held[column]]] += 1
    brokers = held[chosen]
    if (load[brokers] >= enough[brokers]).any():
        return False
    stays[row, chosen] = True
    load[brokers] += 1
    return True
