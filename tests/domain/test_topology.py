"""Counting offline and under-replicated partitions."""

from __future__ import annotations

import pytest

from kafkadash.domain.topology import PartitionShape, health, two_digits


def test_health__counts_each_partition_once_per_trouble() -> None:
    counts = health(
        [
            PartitionShape(1, (1, 2, 3), (1, 2, 3)),
            PartitionShape(1, (1, 2, 3), (1, 2)),
            PartitionShape(None, (1, 2), ()),
        ]
    )
    assert (counts.partitions, counts.offline, counts.under_replicated, counts.explained_by_move) == (3, 1, 2, 0)


def test_health__replica_being_added_is_not_in_sync_yet__is_explained_by_the_move() -> None:
    moving = PartitionShape(2, (4, 2, 3, 1), (1, 2, 3), adding=frozenset({4}))
    assert health([moving]).explained_by_move == 1


def test_health__an_old_replica_is_missing_too__the_move_explains_nothing() -> None:
    moving = PartitionShape(2, (4, 2, 3, 1), (1, 2), adding=frozenset({4}))
    counts = health([moving])
    assert (counts.under_replicated, counts.explained_by_move) == (1, 0)


def test_health__nothing__is_zero_of_zero() -> None:
    assert health([]).partitions == 0


@pytest.mark.parametrize(
    ("value", "rounded"), [(0, 0), (7, 7), (99, 99), (123, 120), (456_789_000, 460_000_000), (999, 1000)]
)
def test_two_digits__keeps_two_significant_digits(value: int, rounded: int) -> None:
    assert two_digits(value) == rounded
