"""Leaders by a flow: as even as can be, and among those as few changes as that takes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

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
