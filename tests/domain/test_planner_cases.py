"""What ``make bench-planner`` asks for, on a cluster that is small enough for every day."""

from __future__ import annotations

import pytest

from tests.bench.planner_case import CASES, case, measured

PARTITIONS = 3_000


@pytest.mark.parametrize("name", CASES)
def test_the_least_is_moved_and_every_rule_kept(name: str) -> None:
    found = measured(case(name, PARTITIONS))
    assert found.moved == found.bound > 0
    assert found.again == found.rack_violations == 0
    assert not found.broken
    if found.evens:
        assert found.uneven <= 1
        assert found.leaders_uneven is not None
        assert found.leaders_uneven <= 1
