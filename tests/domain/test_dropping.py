"""Fewer replicas without a flow: as near to even as the flow would bring the brokers."""

from __future__ import annotations

import numpy as np
import pytest

from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Demand, Ints
from kafkadash.domain.planner.dropping import dropped
from kafkadash.domain.planner.flow import least_violation
from kafkadash.domain.planner.modes import TooFew, case_of, demand_of
from kafkadash.domain.planner.request import SET_RF, PlanRequest
from tests.domain.random_requests import random_cluster
from tests.domain.test_exact_flow import met


def outside(demand: Demand, counts: Ints) -> int:
    """As the flow weighs it: one too few costs less than one too many."""
    within = np.minimum(np.maximum(counts - demand.least, 0), demand.most - demand.least)
    return int((within + 3 * np.maximum(counts - demand.most, 0)).sum())


@pytest.mark.parametrize("factor", [1, 2])
def test_brokers_end_as_near_to_their_bounds_as_the_flow_brings_them(factor: int) -> None:
    compared = 0
    for seed in range(120):
        case = case_of(random_cluster(seed), PlanRequest(SET_RF, factor=factor))
        try:
            demand = demand_of(case.columns, case.aim)
        except TooFew:
            continue
        found = dropped(demand)
        if found is None or not demand.partitions:
            continue
        wider, answer = found
        met(wider, answer)
        flow = place(least_violation(demand))
        assert outside(demand, answer.counts(demand)) == outside(demand, flow.counts(demand)), seed
        compared += 1
    assert compared > 30


def test_a_partition_that_needs_a_new_replica__is_left_to_the_flow() -> None:
    case = case_of(random_cluster(3), PlanRequest(SET_RF, factor=3))
    demand = demand_of(case.columns, case.aim)
    assert (demand.may_stay.sum(axis=1) < demand.factors).any()
    assert dropped(demand) is None
