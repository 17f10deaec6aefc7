"""Counting offline and under-replicated partitions."""

from __future__ import annotations

import pytest

from kafkadash.domain.topology import Health, PartitionShape, health, together, two_digits


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


@pytest.mark.parametrize(
    ("leader", "isr", "min_isr", "under", "at"),
    [
        (1, (1, 2, 3), 2, 0, 0),
        (1, (1, 2), 2, 0, 1),
        (1, (1,), 2, 1, 0),
        (None, (3,), 1, 1, 1),
        (None, (1, 2), 1, 1, 0),
    ],
)
def test_health__min_insync_replicas__counts_as_kafka_topics_does(
    leader: int | None, isr: tuple[int, ...], min_isr: int, under: int, at: int
) -> None:
    """Under: no leader, or fewer in the ISR than asked for. At: exactly as many, with a leader or without."""
    counts = health([PartitionShape(leader, (1, 2, 3), isr)], min_isr)
    assert (counts.under_min_isr, counts.at_min_isr) == (under, at)


def test_health__min_insync_replicas_not_known__is_no_count() -> None:
    counts = health([PartitionShape(1, (1, 2), (1,))])
    assert (counts.under_min_isr, counts.at_min_isr, counts.at_min_isr_moving) == (None, None, None)


def test_health__at_min_isr_only_because_of_a_move__is_told_apart() -> None:
    moving = PartitionShape(1, (4, 1, 2), (1, 2), frozenset({4}))
    counts = health([moving, PartitionShape(1, (1, 2, 3), (1, 2))], 2)
    assert (counts.at_min_isr, counts.at_min_isr_moving) == (2, 1)


def test_health__offline_replicas_and_preferred_leaders__are_counted() -> None:
    counts = health([PartitionShape(1, (1, 2), (1,), offline_replicas=(2,)), PartitionShape(2, (1, 2), (1, 2))])
    assert (counts.offline_replicas, counts.preferred_leaders) == (1, 1)


def test_together__what_only_some_know__is_the_sum_over_these() -> None:
    known = health([PartitionShape(1, (1, 2), (1,))], 2)
    unknown = health([PartitionShape(1, (1, 2), (1,))])
    assert together([known, unknown]).under_min_isr == 1
    assert together([unknown, unknown]).under_min_isr is None
    assert together([known, unknown]).under_replicated == 2


def test_together__nothing__is_zero_and_known() -> None:
    assert together([]) == Health(under_min_isr=0, at_min_isr=0, at_min_isr_moving=0)
