"""KIP-36, by its own examples and by its rules followed one partition after the other."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.planner.kip36 import alternated, assignment

SIX = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_brokers_of_racks_alternate() -> None:
    assert alternated(SIX) == (0, 3, 1, 5, 4, 2)


def test_the_example_with_racks_of_equal_size() -> None:
    found = assignment(SIX, 12, 3, start=0, shift=0)
    assert [tuple(row) for row in found.tolist()] == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
        (3, 2, 0),
        (1, 0, 3),
        (5, 3, 1),
        (4, 1, 5),
        (2, 5, 4),
    ]


def test_the_example_with_racks_of_different_size() -> None:
    found = assignment({0: "rack1", 1: "rack2", 2: "rack2"}, 3, 2, start=0, shift=0)
    assert found.tolist() == [[0, 1], [1, 0], [2, 0]]


def one_by_one(
    racks: dict[int, str], partitions: int, factor: int, start: int, shift: int, first: int
) -> list[list[int]]:
    """As the proposal tells it, with sets and a loop."""
    brokers = alternated(racks)
    many, names = len(brokers), set(racks.values())
    rows = []
    for number in range(first, first + partitions):
        if number > 0 and number % many == 0:
            shift += 1
        place = (number + start) % many
        row, tried = [brokers[place]], 0
        while len(row) < factor:
            broker = brokers[(place + 1 + (shift * len(names) + tried) % (many - 1)) % many]
            has = {racks[each] for each in row}
            if (racks[broker] not in has or has == names) and broker not in row:
                row.append(broker)
            tried += 1
        rows.append(row)
    return rows


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    partitions=st.integers(0, 60),
    factor=st.integers(1, 6),
    start=st.integers(0, 19),
    shift=st.integers(0, 19),
    first=st.integers(0, 45),
)
def test_any_cluster_is_as_if_done_one_by_one(
    sizes: list[int], partitions: int, factor: int, start: int, shift: int, first: int
) -> None:
    named = [f"r{rack}" for rack, many in enumerate(sizes) for _ in range(many)]
    racks = {id_ * 7 % 101: rack for id_, rack in enumerate(named)}
    factor, start, shift = min(factor, len(racks)), start % len(racks), shift % len(racks)
    found = assignment(racks, partitions, factor, start=start, shift=shift, first=first)
    assert found.tolist() == one_by_one(racks, partitions, factor, start, shift, first)


@pytest.mark.parametrize("factor", [0, 7])
def test_a_factor_that_no_cluster_has_brokers_for(factor: int) -> None:
    with pytest.raises(ValueError, match=f"replication factor {factor} with 6 brokers"):
        assignment(SIX, 1, factor, start=0, shift=0)
