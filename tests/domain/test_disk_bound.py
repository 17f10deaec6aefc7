"""No plan that balances the disks moves fewer bytes than the bound says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kafkadash.domain.planner.demand import Demand
from kafkadash.domain.planner.disk_bound import disk_bound
from tests.domain.small_demands import small_demand
from tests.domain.small_disks import disks, least_balanced


def loose(demand: Demand) -> Demand:
    """Without bounds of counts, so that disks can be balanced at all."""
    many = int(demand.factors.sum())
    return replace(demand, least=np.zeros_like(demand.least), most=np.full_like(demand.most, many))


@pytest.mark.parametrize("eps", [0.05, 0.3, 0.6])
def test_no_plan_moves_less(eps: float) -> None:
    """Against the best plan there is, on tiny clusters: never above it."""
    judged = telling = 0
    for seed in range(100):
        demand = small_demand(seed)
        if demand is None or demand.brokers * demand.partitions > 90:
            continue
        beside, holds = disks(demand, seed)
        best = least_balanced(loose(demand), beside, holds, eps)
        if best is None:
            continue
        bound = disk_bound(loose(demand), demand.bytes, beside, holds, eps)
        assert bound <= best, seed
        judged += 1
        telling += bound > 0
    assert (judged, telling) == {0.05: (26, 14), 0.3: (37, 24), 0.6: (43, 27)}[eps]
