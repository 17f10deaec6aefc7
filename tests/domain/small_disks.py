"""Small clusters whose disks are balanced, and the least bytes of that by a solver that knows nothing of it (HiGHS)."""

from __future__ import annotations

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from kafkadash.domain.planner.demand import Demand, Flags, Ints
from kafkadash.domain.planner.disk_targets import target_of

NO_BOUND = np.inf


def disks(demand: Demand, seed: int) -> tuple[Ints, Flags]:
    """Bytes that are not planned, and the brokers that are judged: all that may hold something."""
    chance = np.random.default_rng(seed)
    beside = chance.integers(0, 1 + int(demand.bytes.sum()) // demand.brokers, demand.brokers)
    beside[chance.random(demand.brokers) < 0.6] = 0
    holds = demand.receives.copy()
    rows, columns = np.nonzero(demand.may_stay)
    holds[demand.held[rows, columns]] = True
    return beside, holds


def least_balanced(demand: Demand, beside: Ints, judged: Flags, eps: float) -> int | None:
    """Bytes that move at the least with all of ``judged`` within eps; None where nothing meets that.

    Where the racks' bytes are settled a large partition may be beside eps of the mean, as ``disk_targets`` has it.
    """
    count, brokers, racks = demand.partitions, demand.brokers, demand.racks
    cost, low, high = (np.zeros((count, brokers)) for _ in range(3))
    for row in range(count):
        high[row, demand.receives], cost[row, demand.receives] = 1, demand.bytes[row]
        for broker, may, must in zip(demand.held[row], demand.may_stay[row], demand.must_stay[row], strict=True):
            if may:
                low[row, broker], high[row, broker], cost[row, broker] = must, 1, 0
    rules = [
        *_of_demand(demand),
        *(_of_rack(demand, beside, judged & (demand.rack_of == rack), rack, eps) for rack in range(racks)),
    ]
    solved = milp(
        cost.ravel(),
        constraints=rules,
        bounds=Bounds(low.ravel(), high.ravel()),
        integrality=np.ones(count * brokers),
        options={"mip_rel_gap": 0},
    )
    return None if solved.x is None else round(solved.fun)


def _of_demand(demand: Demand) -> list[LinearConstraint]:
    count, brokers, racks = demand.partitions, demand.brokers, demand.racks
    of_partition, of_broker = lil_matrix((count, count * brokers)), lil_matrix((brokers, count * brokers))
    of_rack = lil_matrix((count * racks, count * brokers))
    for row in range(count):
        for broker in range(brokers):
            place = row * brokers + broker
            of_partition[row, place] = of_broker[broker, place] = 1
            of_rack[row * racks + demand.rack_of[broker], place] = 1
    return [
        LinearConstraint(of_partition.tocsr(), demand.factors, demand.factors),
        LinearConstraint(of_broker.tocsr(), demand.least, demand.most),
        LinearConstraint(of_rack.tocsr(), demand.rack_least.ravel(), demand.rack_most.ravel()),
    ]


def _of_rack(demand: Demand, beside: Ints, judged: Flags, rack: int, eps: float) -> LinearConstraint:
    count, brokers = demand.partitions, demand.brokers
    those = np.flatnonzero(judged)
    rules = lil_matrix((2 * len(those), count * brokers))
    least, most = np.full(2 * len(those), -NO_BOUND), np.full(2 * len(those), NO_BOUND)
    alone = judged.sum() == (demand.rack_of == rack).sum()
    settled = alone and bool((demand.rack_least[:, rack] == demand.rack_most[:, rack]).all())
    total = int(beside[those].sum() + (demand.bytes * demand.rack_least[:, rack]).sum())
    largest = np.sort(np.repeat(demand.bytes, demand.rack_least[:, rack]))[::-1][: len(those)]
    target = target_of(total, len(those), largest.tolist(), eps) if settled and len(those) else None
    for n, broker in enumerate(those):
        own = np.arange(count) * brokers + broker
        if target is not None:
            spared = np.where(demand.bytes > target.most, demand.bytes + target.slack - target.most, 0)
            rules[n, own], most[n] = demand.bytes - spared, target.most - beside[broker]
            rules[len(those) + n, own], least[len(those) + n] = demand.bytes, target.least - beside[broker]
            continue
        for sign, start in ((1, 0), (-1, len(those))):
            share = (1 + sign * eps) / len(those)
            bounds_on = most if sign > 0 else least
            rules[start + n, own] = demand.bytes
            for other in those:
                places = np.arange(count) * brokers + other
                rules[start + n, places] = rules[start + n, places].toarray() - share * demand.bytes
            bounds_on[start + n] = share * beside[those].sum() - beside[broker]
    return LinearConstraint(rules.tocsr(), least, most)
