"""The exact flow: never more bytes than the best possible, and a proof that anybody can check."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kafkadash.domain.planner import demand as demands
from kafkadash.domain.planner.certificate import bound, prices_of
from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Answer, Demand
from kafkadash.domain.planner.flow import NoFlow, least_violation
from tests.domain.small_demands import least_bytes, small_demand

SEEDS = range(60)


def met(demand: Demand, answer: Answer) -> None:
    """Every rule of the demand, by plain counting."""
    counts = answer.counts(demand)
    assert (counts >= demand.least).all()
    assert (counts <= demand.most).all()
    for row in range(demand.partitions):
        stays = demand.held[row][answer.stays[row]].tolist()
        new = [broker for broker in answer.new[row].tolist() if broker >= 0]
        assert len({*stays, *new}) == demand.factors[row] == len(stays) + len(new)
        assert demand.receives[new].all()
        assert not (demand.must_stay[row] & ~answer.stays[row]).any()
        assert not (answer.stays[row] & ~demand.may_stay[row]).any()
        in_racks = np.bincount(demand.rack_of[[*stays, *new]], minlength=demand.racks)
        assert (in_racks >= demand.rack_least[row]).all()
        assert (in_racks <= demand.rack_most[row]).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_it_moves_the_least_and_proves_it(seed: int) -> None:
    demand = small_demand(seed)
    if demand is None:
        return
    best = least_bytes(demand)
    if best is None:
        with pytest.raises(NoFlow):
            place(demand)
        demand = least_violation(demand)
        best = least_bytes(demand)
    answer = place(demand)
    met(demand, answer)
    assert answer.moved(demand) == best
    prices = prices_of(demand, answer.stays, answer.new)
    assert prices is not None
    assert bound(demand, prices) == best


@pytest.mark.parametrize("seed", range(40))
def test_rounded_bytes_are_proven_but_for_what_rounding_may_cost(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with partitions of a terabyte in a cluster of a million."""
    demand = small_demand(seed)
    best = None if demand is None else least_bytes(demand)
    if demand is None or best is None:
        return
    monkeypatch.setattr(demands, "MOST_COST", 2**12)
    assert demand.unit > 1
    answer = place(demand)
    met(demand, answer)
    rounding = demand.unit * int(demand.factors.sum())
    assert best <= answer.moved(demand) <= best + rounding
    prices = prices_of(demand, answer.stays, answer.new)
    assert prices is not None
    assert best - 2 * rounding <= bound(demand, prices) <= best


@pytest.mark.parametrize("seed", range(20))
def test_no_prices_give_a_bound_above_the_best(seed: int) -> None:
    """The proof cannot be cheated: made up prices only ever prove less."""
    demand = small_demand(seed)
    best = None if demand is None else least_bytes(demand)
    if demand is None or best is None:
        return
    chance = np.random.default_rng(seed)
    for spread in (0, 10, 10_000, 10_000_000):
        prices = chance.integers(-spread, spread + 1, demand.brokers)
        assert bound(demand, prices) <= best


def test_a_plan_that_moves_too_much_has_no_proof() -> None:
    nothing = np.zeros((2, 2), np.bool_)
    two = np.array([2, 2], np.int64)
    demand = Demand(
        bytes=np.array([100, 1], np.int64),
        factors=np.array([1, 1], np.int64),
        held=np.array([[0], [0]], np.int64),
        may_stay=~nothing[:, :1],
        must_stay=nothing[:, :1],
        rack_of=np.array([0, 0], np.int64),
        receives=np.array([True, True]),
        least=two // 2,
        most=two // 2,
        rack_least=np.ones((2, 1), np.int64),
        rack_most=np.ones((2, 1), np.int64),
    )
    assert place(demand).moved(demand) == 1
    dear = Answer(np.array([[False], [True]]), np.array([[1], [-1]], np.int64))
    assert prices_of(demand, dear.stays, dear.new) is None
    met(demand, dear)


def test_what_nothing_meets_is_widened_as_little_as_possible() -> None:
    demand = next(d for d in map(small_demand, SEEDS) if d is not None and d.partitions > 3)
    impossible = replace(demand, least=demand.least + demand.brokers, most=demand.most + demand.brokers)
    with pytest.raises(NoFlow):
        place(impossible)
    wider = least_violation(impossible)
    met(wider, place(wider))
    assert (wider.most == impossible.most).all()
    assert int((impossible.least - wider.least).sum()) == int(impossible.least.sum() - demand.factors.sum())
