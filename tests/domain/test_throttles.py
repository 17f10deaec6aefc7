"""What of a throttle is needed by a reassignment in flight."""

from __future__ import annotations

import pytest

from kafkadash.domain.throttles import (
    DISK_RATE,
    FOLLOWER_RATE,
    LEADER_RATE,
    InFlight,
    in_flight,
    list_needed,
    listed_partitions,
    rate_needed,
)

# Partition 3 of orders moves among brokers 1, 2, 4; broker 1 copies between its disks, broker 2 does not, 3 is unknown.
MOVING = in_flight([("orders", 3, (4, 2, 1))], {1: 2, 2: 0, 3: None})
NOTHING = in_flight([], {1: 0, 2: 0})


@pytest.mark.parametrize(
    ("value", "partitions"),
    [
        ("0:1,0:2,12:3", {0, 12}),
        ("0:1, 1:2", {0, 1}),
        ("*", None),
        ("", set()),
        ("nonsense,7", {7}),
    ],
)
def test_listed_partitions(value: str, partitions: set[int] | None) -> None:
    assert listed_partitions(value) == partitions


@pytest.mark.parametrize(
    ("topic", "value", "needed"),
    [
        ("orders", "3:1", True),
        ("orders", "2:1,3:9", True),
        ("orders", "*", True),
        ("orders", "2:1", False),
        ("orders", "33:1", False),
        ("payments", "*", False),
        ("payments", "3:1", False),
    ],
)
def test_a_list_is_needed_while_a_partition_that_it_names_moves(topic: str, value: str, needed: bool) -> None:
    assert list_needed(topic, value, MOVING) is needed
    assert not list_needed(topic, value, NOTHING)


@pytest.mark.parametrize("key", [LEADER_RATE, FOLLOWER_RATE])
def test_a_rate_is_needed_on_the_brokers_of_what_moves(key: str) -> None:
    assert [rate_needed(key, broker, MOVING) for broker in (1, 2, 4, 3, None)] == [True, True, True, False, True]
    assert not rate_needed(key, 1, NOTHING)
    assert not rate_needed(key, None, NOTHING)


def test_the_rate_between_disks_is_needed_where_copies_are_under_way_or_not_known() -> None:
    assert [rate_needed(DISK_RATE, broker, MOVING) for broker in (1, 2, 3, None)] == [True, False, True, True]
    assert [rate_needed(DISK_RATE, broker, NOTHING) for broker in (1, 2, None)] == [False, False, False]
    assert rate_needed(DISK_RATE, None, InFlight())
