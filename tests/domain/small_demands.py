"""Small random demands, and the least bytes of each by a solver that knows nothing of flows (HiGHS, in SciPy)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from kafkadash.domain.planner.demand import NOBODY, Demand, Flags, Ints
from kafkadash.domain.planner.water import broker_bounds, rack_bounds


def small_demand(seed: int) -> Demand | None:
    """None where chance gave some partition fewer brokers than it needs one of."""
    chance = np.random.default_rng(seed)
    sizes_of_racks = chance.integers(1, 5, int(chance.integers(1, 4)))
    rack_of = np.repeat(np.arange(len(sizes_of_racks)), sizes_of_racks)
    brokers, racks = len(rack_of), len(sizes_of_racks)
    count, width = int(chance.integers(1, 25)), int(chance.integers(1, min(4, brokers) + 1))
    held = np.full((count, width), NOBODY)
    for row in range(count):
        many = int(chance.integers(1, width + 1))
        held[row, :many] = chance.choice(brokers, many, replace=False)
    factors = (held >= 0).sum(axis=1)
    if chance.random() < 0.3:
        factors = chance.integers(1, min(4, brokers) + 1, count)
    sizes = np.exp(chance.normal(10, 1.8, count)).astype(np.int64) * (chance.random(count) > 0.05)
    leaving = chance.random(brokers) < 0.15
    receives = ~leaving
    if chance.random() < 0.3:
        receives &= chance.random(brokers) < 0.6
    may_stay = (held >= 0) & ~leaving[held]
    must_stay = may_stay & (may_stay.sum(axis=1) <= factors)[:, None] & (chance.random() < 0.3)
    stays, room = _by_rack(held, must_stay, rack_of, racks), _by_rack(held, may_stay & ~receives[held], rack_of, racks)
    room += np.bincount(rack_of[receives], minlength=racks)
    factors = np.minimum(factors, room.sum(axis=1))
    if not factors.all():
        return None
    rack_least, rack_most = rack_bounds(factors, stays, room)
    kept, could = np.bincount(held[must_stay], minlength=brokers), np.bincount(held[may_stay], minlength=brokers)
    most = np.where(receives, count, could)
    total, bounds = int(factors.sum()), (rack_least.sum(axis=0), rack_most.sum(axis=0))
    least, most = broker_bounds(total, kept, most, rack_of, *bounds)
    return Demand(sizes, factors, held, may_stay, must_stay, rack_of, receives, least, most, rack_least, rack_most)


def least_bytes(demand: Demand) -> int | None:
    """None where nothing meets it. A variable for each partition and broker."""
    count, brokers, racks = demand.partitions, demand.brokers, demand.racks
    cost, low, high = (np.zeros((count, brokers)) for _ in range(3))
    for row in range(count):
        high[row, demand.receives], cost[row, demand.receives] = 1, demand.bytes[row]
        for broker, may, must in zip(demand.held[row], demand.may_stay[row], demand.must_stay[row], strict=True):
            if may:
                low[row, broker], high[row, broker], cost[row, broker] = must, 1, 0
    of_partition, of_broker = lil_matrix((count, count * brokers)), lil_matrix((brokers, count * brokers))
    of_rack = lil_matrix((count * racks, count * brokers))
    for row in range(count):
        for broker in range(brokers):
            place = row * brokers + broker
            of_partition[row, place] = of_broker[broker, place] = 1
            of_rack[row * racks + demand.rack_of[broker], place] = 1
    solved = milp(
        cost.ravel(),
        constraints=[
            LinearConstraint(of_partition.tocsr(), demand.factors, demand.factors),
            LinearConstraint(of_broker.tocsr(), demand.least, demand.most),
            LinearConstraint(of_rack.tocsr(), demand.rack_least.ravel(), demand.rack_most.ravel()),
        ],
        bounds=Bounds(low.ravel(), high.ravel()),
        integrality=np.ones(count * brokers),
    )
    return None if solved.x is None else round(solved.fun)


def _by_rack(held: Ints, which: Flags, rack_of: Ints, racks: int) -> Ints:
    counts = np.zeros((len(held), racks), np.int64)
    rows, columns = np.nonzero(which)
    np.add.at(counts, (rows, rack_of[held[rows, columns]]), 1)
    return counts
