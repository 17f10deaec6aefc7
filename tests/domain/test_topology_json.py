"""The interchange format of a topology."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.planner.topology import Broker, Directory, Partition, Topic, Topology
from kafkadash.domain.planner.topology_json import BadTopology, read_topology, write_topology

IDS = st.integers(0, 2**31 - 1)
BYTES = st.none() | st.integers(0, 2**50)
DIRECTORIES = st.builds(Directory, st.text(min_size=1, max_size=5), BYTES, BYTES, st.booleans())
PARTITIONS = st.builds(
    Partition,
    IDS,
    st.lists(IDS, min_size=1, max_size=4, unique=True).map(tuple),
    st.lists(IDS, max_size=3).map(tuple),
    st.none() | IDS,
    BYTES,
    st.none() | st.floats(0, 1e12),
    st.booleans(),
)


@st.composite
def topologies(draw: st.DrawFn) -> Topology:
    brokers = {
        id_: Broker(
            id_,
            draw(st.none() | st.text(max_size=3)),
            draw(st.booleans()),
            draw(st.booleans()),
            draw(st.lists(DIRECTORIES, max_size=2).map(tuple)),
        )
        for id_ in draw(st.sets(IDS, max_size=3))
    }
    topics = {
        name: Topic(
            name,
            tuple(
                sorted(
                    draw(st.lists(PARTITIONS, max_size=3, unique_by=lambda p: p.partition)), key=lambda p: p.partition
                )
            ),
            draw(st.text(max_size=4)),
            draw(st.booleans()),
            draw(st.none() | IDS),
        )
        for name in draw(st.sets(st.text(min_size=1, max_size=4), max_size=3))
    }
    return Topology(brokers, topics, draw(st.text(max_size=4)))


@given(topologies())
def test_written_and_read__is_the_same(topology: Topology) -> None:
    assert read_topology(write_topology(topology)) == topology


def test_read__the_format_of_the_planner__what_is_missing_is_not_known() -> None:
    topology = read_topology(
        '{"brokers":[{"id":0,"rack":"a","disk_bytes":4000,"alive":true},{"id":1}],'
        '"topics":[{"name":"t","partitions":[{"partition":0,"replicas":[0,1],"isr":[0],"leader":0,"size_bytes":123,'
        '"bytes_in_per_s":1.0},{"partition":1,"replicas":[1]}]}]}'
    )
    assert topology.brokers[0] == Broker(0, "a", dirs=(Directory("", 4000),))
    assert topology.brokers[0].disk_bytes == 4000
    assert topology.brokers[1] == Broker(1)
    assert topology.brokers[1].disk_bytes is None
    assert topology.topics["t"].partitions == (
        Partition(0, (0, 1), (0,), 0, 123, 1.0),
        Partition(1, (1,), (), None, None, None),
    )


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (
            "{",
            (
                "The topology is not JSON: Expecting property name enclosed in double quotes: line 1 column 2 "
                "(char 1). Export it again."
            ),
        ),
        (b"\xff{", "The topology is not UTF-8. Export it again."),
        ("[]", "The topology has to be an object."),
        ("{}", "The topology has no list “brokers”. Add it."),
        ({"brokers": []}, "The topology has no list “topics”. Add it."),
        ({"brokers": [{"rack": "a"}], "topics": []}, "Entry 1 of “brokers” has no “id”. Add it."),
        ({"brokers": [{"id": 1}, {"id": 1}], "topics": []}, "Broker 1 is in the topology twice. Leave it once."),
        ({"brokers": [{"id": 1, "rack": 7}], "topics": []}, "Broker 1: “rack” has to be a text or null."),
        (
            {"brokers": [{"id": 1, "disk_bytes": -1}], "topics": []},
            "Broker 1: “disk_bytes” has to be a whole number from 0 on.",
        ),
        (
            {"brokers": [{"id": 2**31}], "topics": []},
            "Entry 1 of “brokers”: “id” has to be 2,147,483,647 at most.",
        ),
        ({"brokers": [], "topics": [{"partitions": []}]}, "Entry 1 of “topics” has no “name”. Add it."),
        (
            {"brokers": [], "topics": [{"name": "t", "partitions": [{"partition": 0, "replicas": [1, 1]}]}]},
            "Topic t, partition 0: “replicas” has to be a list of at least one broker, and none twice.",
        ),
        (
            {"brokers": [], "topics": [{"name": "t", "partitions": [{"partition": 0, "replicas": [1]}] * 2}]},
            "Topic t has partition 0 twice. Leave it once.",
        ),
        (
            {
                "brokers": [],
                "topics": [{"name": "t", "partitions": [{"partition": 0, "replicas": [1], "leader": True}]}],
            },
            "Topic t, partition 0: “leader” has to be a whole number from 0 on.",
        ),
    ],
)
def test_read__what_is_no_topology__says_where_and_why(content: str | bytes | dict[str, Any], sentence: str) -> None:
    with pytest.raises(BadTopology) as raised:
        read_topology(json.dumps(content) if isinstance(content, dict) else content)
    assert str(raised.value) == sentence


def test_room__of_directories_that_take_replicas__up_to_the_limit() -> None:
    full, half, closed = Directory("/a", 100, 90), Directory("/b", 100, 50), Directory("/c", 100, 0, cordoned=True)
    assert Broker(1, dirs=(full, half, closed)).room(0.8) == 30
    assert Broker(1, dirs=(full, half, Directory("/d", None, 5))).room(0.8) is None
    assert Broker(1).room(0.8) is None


def test_racks__are_told_only_where_all_registered_brokers_name_one_of_several() -> None:
    assert Topology({1: Broker(1, "a"), 2: Broker(2, "b"), 3: Broker(3, None, alive=False)}).racks == {1: "a", 2: "b"}
    assert Topology({1: Broker(1, "a"), 2: Broker(2, "b"), 3: Broker(3)}).racks == {}
    assert Topology({1: Broker(1, "a"), 2: Broker(2, "a")}).racks == {}
