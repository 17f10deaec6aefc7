"""Preferred leaders are spread as evenly as the choices allow."""

from __future__ import annotations

import time
from collections import Counter
from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.planner.leaders import spread_leaders

BROKERS = st.integers(1, 4)
CHOICES = st.lists(st.lists(BROKERS, min_size=1, max_size=3, unique=True), max_size=6)
FIXED = st.dictionaries(BROKERS, st.integers(0, 4))


def unevenness(fixed: dict[int, int], chosen: tuple[int, ...] | list[int]) -> int:
    return sum(number**2 for number in (Counter(fixed) + Counter(chosen)).values())


@given(FIXED, CHOICES)
def test_no_other_choice_is_more_even(fixed: dict[int, int], choices: list[list[int]]) -> None:
    chosen = spread_leaders(fixed, choices)
    assert all(broker in options for broker, options in zip(chosen, choices, strict=True))
    assert unevenness(fixed, chosen) == min(unevenness(fixed, other) for other in product(*choices))


def test_a_way_over_others__is_found() -> None:
    """Broker 1 can only give to 2, and 2 to 3."""
    assert Counter(spread_leaders({1: 0, 2: 1, 3: 0}, [[1, 2], [1, 2], [1], [2, 3], [2, 3]])).keys() == {1, 2, 3}


def test_the_first_choice__is_kept_where_it_makes_no_difference() -> None:
    assert spread_leaders({}, [[5, 1], [1, 5]]) == [5, 1]


def test_a_large_cluster__takes_seconds() -> None:
    choices = [[(n * 7) % 300, (n * 7 + 1) % 300, (n * 7 + 2) % 300] for n in range(50_000)]
    began = time.process_time()
    leads = Counter(spread_leaders({n: 10 * (n % 3) for n in range(300)}, choices))
    assert time.process_time() - began < 10
    totals = [leads[n] + 10 * (n % 3) for n in range(300)]
    assert max(totals) - min(totals) <= 1
