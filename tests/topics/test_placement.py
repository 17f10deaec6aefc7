"""KIP-36 by one partition after the other, typed assignments, and names that Kafka allows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.core.messages import CodedMessage
from kafkadash.planning.solver.kafka_placement import assign_replicas
from kafkadash.topics.errors import TopicErrorCode
from kafkadash.topics.names import MOST_CHARACTERS, check_topic_name
from kafkadash.topics.placement import (
    MOST_PARTITIONS,
    check_assignment,
    format_assignment,
    place_partitions,
    read_assignment,
)

pytestmark = pytest.mark.domain

SIX = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_placement__is_the_example_of_the_proposal() -> None:
    assert format_assignment(place_partitions(SIX, 8, 3, start=0, shift=0)) == (
        "0:3:1,3:1:5,1:5:4,5:4:2,4:2:0,2:0:3,0:4:2,3:2:0"
    )


@given(
    sizes=st.lists(st.integers(1, 5), min_size=1, max_size=4),
    partitions=st.integers(0, 60),
    factor=st.integers(1, 6),
    start=st.integers(0, 19),
    shift=st.integers(0, 19),
    first=st.integers(0, 45),
)
def test_placement__of_any_cluster__is_that_of_the_planner(
    sizes: list[int], partitions: int, factor: int, start: int, shift: int, first: int
) -> None:
    named = [f"r{rack}" for rack, many in enumerate(sizes) for _ in range(many)]
    racks = {id_ * 7 % 101: rack for id_, rack in enumerate(named)}
    factor, start, shift = min(factor, len(racks)), start % len(racks), shift % len(racks)
    found = place_partitions(racks, partitions, factor, start=start, shift=shift, first=first)
    at_once = assign_replicas(racks, partitions, factor, start=start, shift=shift, first=first)
    assert list(found) == [tuple(row) for row in at_once.tolist()]


@pytest.mark.parametrize("factor", [0, 7])
def test_placement__of_more_replicas_than_brokers__is_refused(factor: int) -> None:
    with pytest.raises(ValueError, match=f"replication factor {factor} with 6 brokers"):
        place_partitions(SIX, 1, factor, start=0, shift=0)


@pytest.mark.parametrize("text", ["1:2:3,2:3:1", " 1 : 2:3 ,\n2:3:1\n"])
def test_assignment__is_read_as_kafkas_tool_takes_it(text: str) -> None:
    assert read_assignment(text) == ((1, 2, 3), (2, 3, 1))


def fault_of(text: str) -> str | None:
    read = read_assignment(text)
    fault = read if isinstance(read, CodedMessage) else check_assignment(read, {1, 2, 3})
    return fault.code if fault else None


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("", TopicErrorCode.ASSIGNMENT_MISSING),
        (" , ", TopicErrorCode.ASSIGNMENT_MISSING),
        ("1:x", TopicErrorCode.ASSIGNMENT_FORMAT),
        ("1:-2", TopicErrorCode.ASSIGNMENT_FORMAT),
        ("1::2", TopicErrorCode.ASSIGNMENT_FORMAT),
        ("1:٢", TopicErrorCode.ASSIGNMENT_FORMAT),
        ("9999999999", TopicErrorCode.ASSIGNMENT_FORMAT),
        ("1:2,3", TopicErrorCode.ASSIGNMENT_UNEVEN),
        ("1:1", TopicErrorCode.ASSIGNMENT_REPEATS),
        ("1:4", TopicErrorCode.ASSIGNMENT_BROKER),
        ("1," * (MOST_PARTITIONS + 1), TopicErrorCode.ASSIGNMENT_TOO_LONG),
        ("1:2,2:3", None),
    ],
)
def test_assignment__that_kafka_would_refuse__has_a_code(text: str, code: TopicErrorCode | None) -> None:
    assert fault_of(text) == code


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("orders.v2_eu-1", None),
        ("a" * MOST_CHARACTERS, None),
        ("a" * (MOST_CHARACTERS + 1), TopicErrorCode.NAME_TOO_LONG),
        ("", TopicErrorCode.NAME_CHARACTERS),
        ("my topic", TopicErrorCode.NAME_CHARACTERS),
        ("größe", TopicErrorCode.NAME_CHARACTERS),
        ("a/b", TopicErrorCode.NAME_CHARACTERS),
        ("a\x00", TopicErrorCode.NAME_CHARACTERS),
        (".", TopicErrorCode.NAME_DOTS),
        ("..", TopicErrorCode.NAME_DOTS),
        ("__consumer_offsets", TopicErrorCode.NAME_INTERNAL),
    ],
)
def test_name__that_kafka_would_refuse__has_a_code(name: str, code: TopicErrorCode | None) -> None:
    fault = check_topic_name(name)
    assert (fault.code if fault else None) == code
