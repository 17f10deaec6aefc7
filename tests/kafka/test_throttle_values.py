"""What of a throttle is needed by a reassignment in flight."""

from __future__ import annotations

import pytest

from kafkadash.kafka.throttles import (
    DISK_RATE,
    FOLLOWER_RATE,
    LEADER_RATE,
    MovesOfTopic,
    in_flight,
    list_needed,
    listed_partitions,
    rate_needed,
    rate_of,
    throttled_replicas,
)

pytestmark = pytest.mark.domain

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
    assert rate_needed(DISK_RATE, None, MovesOfTopic())


@pytest.mark.parametrize("value", ["0:101,1:102", " 0:101 , 1:102 ", "1:102,0:101,"])
def test_a_list_names_its_pairs_and_no_others(value: str) -> None:
    listed = throttled_replicas(value)
    assert listed.names(0, 101)
    assert listed.names(1, 102)
    assert not listed.names(0, 102)
    assert not listed.empty


def test_a_star_names_everything() -> None:
    assert throttled_replicas(" * ").names(7, 3)


def test_an_empty_list_is_set_but_off() -> None:
    assert throttled_replicas("").empty
    assert not throttled_replicas("").names(0, 1)


TOO_LONG = "9" * 5000  # longer than any text that int() takes


@pytest.mark.parametrize(
    "value", ["1", "a:b", "0:1,x", "1:-2", "0:1;1:2", f"0:{TOO_LONG}", f"{TOO_LONG}:1", "0:2147483648", "0:²"]
)
def test_what_is_no_list_names_nothing_and_says_so(value: str) -> None:
    listed = throttled_replicas(value)
    assert listed.unreadable
    assert not listed.names(0, 1)
    assert not listed.empty


def test_a_rate_that_is_no_number_is_not_zero() -> None:
    assert rate_of("10000000") == 10_000_000
    assert rate_of("0") == 0
    assert rate_of("") is None
    assert rate_of("-1") is None
    assert rate_of(TOO_LONG) is None
