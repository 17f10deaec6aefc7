"""Random small clusters and requests from a seed, and the least bytes of each by a solver that knows no flows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from kafkadash.domain.planner.held_against import as_proven
from kafkadash.domain.planner.modes import TooFew, case_of, demand_of
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import ADD, BALANCE, DRAIN, REPAIR_RACKS, REPLACE, SET_RF, PlanRequest
from kafkadash.domain.planner.topology import Broker, Directory, Partition, Topic, Topology
from tests.domain.small_demands import least_bytes

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


def random_cluster(seed: int) -> Topology:
    """3 to 9 brokers in 1 to 3 racks of any size, one of them away or fenced now and then; up to 20 partitions of
    lognormal sizes, some empty, with replicas of chance.
    """
    chance = np.random.default_rng(seed)
    ids = [int(id_) for id_ in 1 + chance.permutation(40)[: int(chance.integers(3, LARGEST + 1))]]
    names = "abc"[: int(chance.integers(1, 4))]
    brokers = {}
    for id_ in ids:
        state = chance.random()
        brokers[id_] = Broker(
            id_,
            names[int(chance.integers(0, len(names)))],
            alive=state > 0.06,
            fenced=state > 0.95,
            dirs=(Directory("/d", 10**15, 0),),
        )
    topics = {}
    for number in range(int(chance.integers(1, 4))):
        factor = int(chance.integers(1, min(4, len(ids)) + 1))
        partitions = []
        for index in range(int(chance.integers(1, 8))):
            replicas = tuple(int(id_) for id_ in chance.permutation(ids)[:factor])
            alive = tuple(id_ for id_ in replicas if brokers[id_].alive)
            size = int(np.exp(chance.normal(10, 1.8))) if chance.random() > 0.05 else 0
            partitions.append(Partition(index, replicas, alive, alive[0] if alive else None, size))
        topics[f"t{number}"] = Topic(f"t{number}", tuple(partitions), f"id-t{number}", min_isr=1)
    return Topology(brokers, topics)


def random_requests(seed: int, cluster: Topology) -> list[PlanRequest]:
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
