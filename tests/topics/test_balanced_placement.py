"""Balanced placement of new partitions: even racks, even brokers, and what these hold already."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.topics.placement import BrokerLoad, place_evenly

pytestmark = pytest.mark.domain


def spread(counts: Counter[int], brokers: Iterable[int]) -> int:
    found = [counts[broker] for broker in brokers]
    return max(found) - min(found)


@given(
    racks=st.integers(1, 4),
    in_rack=st.integers(1, 4),
    loads=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 90)), min_size=16, max_size=16),
    partitions=st.integers(1, 30),
    factor=st.integers(1, 6),
)
def test_partitions__on_racks_of_one_size__are_even(
    racks: int, in_rack: int, loads: list[tuple[int, int]], partitions: int, factor: int
) -> None:
    brokers = {id_ * 3 % 97: BrokerLoad(f"r{id_ % racks}", *load) for id_, load in enumerate(loads[: racks * in_rack])}
    factor = min(factor, len(brokers))
    rows = place_evenly(brokers, partitions, factor)
    assert len(rows) == partitions
    assert all(len(set(row)) == factor for row in rows)
    assert spread(Counter(row[0] for row in rows), brokers) <= 1
    assert spread(Counter(broker for row in rows for broker in row), brokers) <= 2
    for row in rows:
        per_rack = Counter(brokers[broker].rack for broker in row)
        assert max(per_rack.values()) - min(per_rack[f"r{n}"] for n in range(racks)) <= 1


def test_what_is_left_over__goes_to_brokers_that_hold_least() -> None:
    brokers = {1: BrokerLoad("", 9, 3), 2: BrokerLoad("", 5, 9), 3: BrokerLoad("", 7, 1), 4: BrokerLoad("", 6, 2)}
    assert place_evenly(brokers, 2, 2) == ((3, 2), (4, 1))
    assert place_evenly(brokers, 3, 1) == ((3,), (4,), (1,))


def test_followers__of_a_leader__are_many() -> None:
    brokers = {broker: BrokerLoad("") for broker in range(6)}
    rows = place_evenly(brokers, 60, 3)
    assert {second for first, second, _ in rows if first == 0} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("factor", [0, 3])
def test_factor__that_brokers_cannot_hold__is_refused(factor: int) -> None:
    with pytest.raises(ValueError, match=f"replication factor {factor} with 2 brokers"):
        place_evenly({1: BrokerLoad(""), 2: BrokerLoad("")}, 1, factor)
