"""Leaders by a flow: as even as can be, and among those as few changes as that takes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from kafkadash.domain.planner import leader_flow
from kafkadash.domain.planner.leader_flow import HAS_IT, KEPT, NEW, leaders


def judged(replicas: np.ndarray, costs: np.ndarray, led: np.ndarray, columns: tuple[int, ...]) -> tuple[int, int, int]:
    """How uneven, and how much is changed."""
    counts = led + np.bincount([replicas[row, column] for row, column in enumerate(columns)], minlength=len(led))
    mean, more = divmod(int(counts.sum()), len(led))
    short, over = np.maximum(0, mean - counts).sum(), np.maximum(0, counts - mean - bool(more)).sum()
    price = sum(int(costs[row, column]) for row, column in enumerate(columns))
    return int(short + 2 * over), price, int(counts.max() - counts.min())


@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_more_even_and_nothing_as_even_changes_less(seed: int) -> None:
    chance = np.random.default_rng(seed)
    brokers, count = int(chance.integers(2, 5)), int(chance.integers(1, 7))
    width = int(chance.integers(1, min(3, brokers) + 1))
    replicas = np.array([chance.permutation(brokers)[:width] for _ in range(count)])
    costs = chance.choice([HAS_IT, NEW], (count, width))
    costs[:, 0] = KEPT
    led = chance.integers(0, 3, brokers)
    found = leaders(replicas, costs, led, np.ones(brokers, np.bool_))
    every = [judged(replicas, costs, led, columns) for columns in itertools.product(range(width), repeat=count)]
    assert judged(replicas, costs, led, tuple(found.tolist()))[:2] == min(every)[:2]


def test_counts_differ_by_one_at_most_where_that_can_be_had() -> None:
    replicas = np.array([(place % 5, (place + 1) % 5, (place + 2) % 5) for place in range(503)])
    replicas[:, [0, 1]] = (
        replicas[:, [1, 0]] * (np.arange(503) % 3 > 0)[:, None]
        + replicas[:, [0, 1]] * (np.arange(503) % 3 == 0)[:, None]
    )
    costs = np.full_like(replicas, HAS_IT)
    costs[:, 0] = KEPT
    none = np.zeros(5, np.int64)
    found = leaders(replicas, costs, none, np.ones(5, np.bool_))
    assert judged(replicas, costs, none, tuple(found.tolist()))[2] <= 1


def test_a_broker_that_is_down_leads_nothing_that_another_can() -> None:
    replicas = np.array([[0, 1], [0, 2], [0, -1]])
    found = leaders(replicas, np.array([[0, 1], [0, 1], [0, 0]]), np.zeros(3, np.int64), np.array([False, True, True]))
    assert found.tolist() == [1, 1, 0]


@pytest.mark.parametrize("seed", range(30))
def test_some_partitions_tell_what_is_best_for_all(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    chance = np.random.default_rng(seed)
    brokers, count = int(chance.integers(4, 12)), int(chance.integers(20, 400))
    width = int(chance.integers(2, 4))
    keys = chance.random((count, brokers)) / (1 + np.arange(brokers) * chance.random())
    replicas = np.argsort(keys, axis=1)[:, :width]
    replicas[chance.random(count) < 0.1, -1] = -1
    costs = chance.choice([HAS_IT, NEW], (count, width))
    costs[chance.random(count) < 0.9, 0] = KEPT
    led = chance.integers(0, 10, brokers)
    leads = np.arange(brokers) != 0
    monkeypatch.setattr(leader_flow, "WORTH_IT", count + 1)
    best = leaders(replicas, costs, led, leads)
    monkeypatch.setattr(leader_flow, "WORTH_IT", 0)
    monkeypatch.setattr(leader_flow, "OF_EACH", 1)
    found = leaders(replicas, costs, led, leads)
    assert (replicas[np.arange(count), found] >= 0).all()
    assert _priced(replicas, costs, led, found) == _priced(replicas, costs, led, best)


def _priced(replicas: np.ndarray, costs: np.ndarray, led: np.ndarray, columns: np.ndarray) -> tuple[int, int]:
    """How uneven brokers are without the first, and what it lets lead, and how much is changed."""
    rows = np.arange(len(replicas))
    counts = np.bincount(replicas[rows, columns], minlength=len(led))
    mean, more = divmod(int(len(replicas) + led[1:].sum()), len(led) - 1)
    low, high = np.maximum(0, mean - led), np.maximum(0, mean + bool(more) - led)
    low[0] = high[0] = 0
    uneven = np.maximum(0, np.minimum(counts, high) - low).sum() + 3 * np.maximum(0, counts - high).sum()
    return int(uneven), int(costs[rows, columns].sum())
