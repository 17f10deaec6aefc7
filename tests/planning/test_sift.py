"""Placing a few partitions is as good as placing all, and says so itself where it is not enough."""

from __future__ import annotations

import numpy as np
import pytest

from kafkadash.planning.solver import placement as sift
from kafkadash.planning.solver.certificate import compute_bound, prices_of
from kafkadash.planning.solver.demand import PlacementDemand
from kafkadash.planning.solver.flow import NoFlow
from kafkadash.planning.solver.modes import broker_bounds, rack_bounds
from kafkadash.planning.solver.placement import place
from tests.planning.other_solver import least_bytes, small_demand
from tests.planning.test_placement_and_disks import met

pytestmark = pytest.mark.domain


@pytest.fixture(autouse=True)
def _few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sift, "WORTH_IT", 0)
    monkeypatch.setattr(sift, "SPARE", 1)
    monkeypatch.setattr(sift, "LARGEST_SHARE", 1.0)


@pytest.mark.parametrize("seed", range(60))
def test_it_is_never_worse_than_the_best(seed: int) -> None:
    demand = small_demand(seed)
    best = None if demand is None else least_bytes(demand)
    if demand is None:
        return
    answer = sift.place_by_pruning(demand)
    if best is None:
        assert answer is None
        return
    assert answer is not None
    met(demand, answer)
    assert answer.moved(demand) == best


@pytest.mark.parametrize("factor", [1, 2, 3, 4])
@pytest.mark.parametrize("seed", range(5))
def test_most_partitions_take_no_part_and_it_is_proven_all_the_same(
    seed: int, factor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three racks: with one, two or four replicas a partition may choose among them."""
    demand = _uneven(seed, factor)
    seen = []
    part = sift._restrict_demand

    def watched(whole: PlacementDemand, taking: np.ndarray) -> PlacementDemand:
        seen.append(np.count_nonzero(taking))
        return part(whole, taking)

    monkeypatch.setattr(sift, "_restrict_demand", watched)
    answer = sift.place_by_pruning(demand)
    assert answer is not None
    met(demand, answer)
    assert answer.moved(demand) == place(demand).moved(demand) > 0
    prices = prices_of(demand, answer.stays, answer.new)
    assert prices is not None
    assert compute_bound(demand, prices) == answer.moved(demand)
    assert seen[0] <= seen[-1] < demand.partitions * 0.8


def test_what_cannot_be_met_is_left_to_all_of_them() -> None:
    demand = _uneven(1, 3)
    impossible = PlacementDemand(
        **{name: getattr(demand, name) for name in demand.__slots__} | {"most": demand.least - 1}
    )
    assert sift.place_by_pruning(impossible) is None
    with pytest.raises(NoFlow):
        place(impossible)


def _uneven(seed: int, factor: int) -> PlacementDemand:
    """800 partitions on 24 brokers, some of which are chosen oftener, and one of which leaves."""
    chance = np.random.default_rng(seed)
    brokers, count = 24, 800
    rack_of = np.arange(brokers) % 3
    # Columns are brokers by rack and by lot within it, so that the racks of a partition are spread.
    turn = np.argsort(np.argsort(chance.random((count, brokers // 3, 3)) / (8 + np.arange(8))[:, None], axis=1), axis=1)
    first = chance.integers(0, 3, count)[:, None]
    keys = turn.reshape(count, brokers) * 3 + (rack_of + first) % 3
    held = np.argsort(keys, axis=1)[:, :factor]
    leaving = np.arange(brokers) == 0
    may_stay = ~leaving[held]
    factors = np.full(count, factor)
    room = np.zeros((count, 3), np.int64) + np.bincount(rack_of[~leaving], minlength=3)
    rack_least, rack_most = rack_bounds(factors, np.zeros((count, 3), np.int64), room)
    nothing, most = np.zeros(brokers, np.int64), np.where(leaving, 0, count)
    bounds = (rack_least.sum(axis=0), rack_most.sum(axis=0))
    least, most = broker_bounds(count * factor, nothing, most, rack_of, *bounds)
    sizes = np.exp(chance.normal(10, 1.8, count)).astype(np.int64)
    must_stay = np.zeros_like(may_stay)
    return PlacementDemand(
        sizes, factors, held, may_stay, must_stay, rack_of, ~leaving, least, most, rack_least, rack_most
    )
