"""Small random demands, and the least bytes of each by a solver that knows nothing of flows (HiGHS, in SciPy).

Small clusters whose disks are balanced, and the least bytes of that by a solver that knows nothing of it (HiGHS).

Random small clusters and requests from a seed, and the least bytes of each by a solver that knows no flows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from kafkadash.planning.solver.demand import NOBODY, Flags, Ints, PlacementDemand
from kafkadash.planning.solver.disk_balance import target_of
from kafkadash.planning.solver.modes import TooFew, broker_bounds, case_of, demand_of, rack_bounds
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.request import ADD, BALANCE, DRAIN, REPAIR_RACKS, REPLACE, SET_RF, PlanRequest
from kafkadash.planning.solver.verification import as_proven
from kafkadash.planning.topology import ClusterTopology, LogDirectory, PlannedBroker, PlannedPartition, PlannedTopic


def small_demand(seed: int) -> PlacementDemand | None:
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
    return PlacementDemand(
        sizes, factors, held, may_stay, must_stay, rack_of, receives, least, most, rack_least, rack_most
    )


def least_bytes(demand: PlacementDemand) -> int | None:
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


NO_BOUND = np.inf


def disks(demand: PlacementDemand, seed: int) -> tuple[Ints, Flags]:
    """Bytes that are not planned, and the brokers that are judged: all that may hold something."""
    chance = np.random.default_rng(seed)
    beside = chance.integers(0, 1 + int(demand.bytes.sum()) // demand.brokers, demand.brokers)
    beside[chance.random(demand.brokers) < 0.6] = 0
    holds = demand.receives.copy()
    rows, columns = np.nonzero(demand.may_stay)
    holds[demand.held[rows, columns]] = True
    return beside, holds


def least_balanced(demand: PlacementDemand, beside: Ints, judged: Flags, eps: float) -> int | None:
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


def _of_demand(demand: PlacementDemand) -> list[LinearConstraint]:
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


def _of_rack(demand: PlacementDemand, beside: Ints, judged: Flags, rack: int, eps: float) -> LinearConstraint:
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


LARGEST = 9
"""Brokers of a cluster."""


@dataclass(frozen=True, slots=True)
class Compared:
    """Bytes: what the plan moves, what its proof says is the least, and what the other solver says."""

    seed: int
    request: PlanRequest
    moved: int
    bound: int
    least: int


def random_cluster(seed: int) -> ClusterTopology:
    """3 to 9 brokers in 1 to 3 racks of any size, one of them away or fenced now and then; up to 20 partitions of
    lognormal sizes, some empty, with replicas of chance.
    """
    chance = np.random.default_rng(seed)
    ids = [int(id_) for id_ in 1 + chance.permutation(40)[: int(chance.integers(3, LARGEST + 1))]]
    names = "abc"[: int(chance.integers(1, 4))]
    brokers = {}
    for id_ in ids:
        state = chance.random()
        brokers[id_] = PlannedBroker(
            id_,
            names[int(chance.integers(0, len(names)))],
            alive=state > 0.06,
            fenced=state > 0.95,
            dirs=(LogDirectory("/d", 10**15, 0),),
        )
    topics = {}
    for number in range(int(chance.integers(1, 4))):
        factor = int(chance.integers(1, min(4, len(ids)) + 1))
        partitions = []
        for index in range(int(chance.integers(1, 8))):
            replicas = tuple(int(id_) for id_ in chance.permutation(ids)[:factor])
            alive = tuple(id_ for id_ in replicas if brokers[id_].alive)
            size = int(np.exp(chance.normal(10, 1.8))) if chance.random() > 0.05 else 0
            partitions.append(PlannedPartition(index, replicas, alive, alive[0] if alive else None, size))
        topics[f"t{number}"] = PlannedTopic(f"t{number}", tuple(partitions), f"id-t{number}", min_isr=1)
    return ClusterTopology(brokers, topics)


def random_requests(seed: int, cluster: ClusterTopology) -> list[PlanRequest]:
    """One of each mode that moves data."""
    chance = np.random.default_rng(seed + 1_000_000)
    ids = [int(id_) for id_ in chance.permutation(sorted(cluster.brokers))]
    rebalance = bool(chance.random() < 0.5)
    return [
        PlanRequest(ADD, (ids[0],), rebalance=rebalance),
        PlanRequest(DRAIN, (ids[0],), rebalance=rebalance, accept_fewer_racks=True),
        PlanRequest(REPLACE, (ids[0],), (ids[1],), rebalance=rebalance, accept_fewer_racks=True),
        PlanRequest(REPAIR_RACKS, rebalance=rebalance),
        PlanRequest(SET_RF, factor=int(chance.integers(1, 4)), rebalance=rebalance),
        PlanRequest(BALANCE, most_replicas=None if chance.random() < 0.7 else 12),
    ]


def compared(seed: int) -> Iterator[Compared]:
    """The plans that can be made of this seed's cluster. The other solver gets what the proof says is proven."""
    cluster = random_cluster(seed)
    for request in random_requests(seed, cluster):
        planned = plan(cluster, request)
        if planned.problems or planned.proof is None:
            continue
        case = case_of(cluster, request)
        try:
            demand = demand_of(case.columns, case.aim)
        except TooFew:
            raise AssertionError(f"{request} of seed {seed} was planned, and cannot be") from None
        # In true bytes: the planner takes an empty partition for one byte, so that it does not move for nothing.
        least = least_bytes(replace(as_proven(case, demand, planned.proof), bytes=case.columns.sizes))
        assert least is not None, f"{request} of seed {seed} was planned, and cannot be"
        yield Compared(seed, request, planned.proof.moved, planned.proof.lowest, least)
