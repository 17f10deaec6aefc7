from __future__ import annotations

import pytest

from kafkadash.domain.rack_spread import racks_known, spread

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}


@pytest.mark.parametrize(
    ("replicas", "rack_of", "racks", "moves", "missing", "crowded"),
    [
        ([1, 2, 3], RACKS, 3, 0, 0, ()),
        ([1, 4, 2], RACKS, 3, 1, 1, ("a",)),
        ([1, 4], RACKS, 3, 1, 1, ("a",)),
        ([1, 2, 3, 4], RACKS, 3, 0, 0, ()),
        ([1, 4, 2, 5, 3], RACKS, 3, 0, 0, ()),
        ([0, 1], {0: "x", 1: "x", 2: "y"}, 2, 1, 1, ("x",)),
        ([0, 1, 2], {0: "x", 1: "x", 2: "y"}, 2, 0, 0, ()),
        ([1, 4, 9], RACKS, 3, 1, 1, ("a",)),
        ([9], RACKS, 3, 0, 0, ()),
        ([], RACKS, 3, 0, 0, ()),
    ],
)
def test_spread(
    replicas: list[int],
    rack_of: dict[int, str],
    racks: int,
    moves: int,
    missing: int,
    crowded: tuple[str, ...],
) -> None:
    seen = spread(replicas, rack_of, racks)
    assert (seen.moves, seen.missing, seen.crowded) == (moves, missing, crowded)
    assert seen.violates == (moves > 0)


def test_racks_are_known_only_if_all_brokers_name_one_and_there_are_two() -> None:
    assert racks_known(["a", "b"])
    assert racks_known(["", "b"])
    assert not racks_known(["a", None])
    assert not racks_known(["a", "a"])
    assert not racks_known([])
