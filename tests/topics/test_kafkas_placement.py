"""Placements of new partitions beside those of Kafka's own class for KIP-36 (AdminUtils, last in Kafka 3.9)."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from py4j import java_gateway
from py4j.java_gateway import JavaGateway, find_jar_path
from py4j.protocol import get_return_value

from kafkadash.core.racks import alternate_racks
from kafkadash.devtools.playground.jars import fetch, find_java
from kafkadash.topics.placement import place_partitions

pytestmark = pytest.mark.agreement
LOCK = Path(__file__).with_name("kafka-3.9.2-placement.lock")
CLUSTERS = 60
MOST_BROKERS = 12


@pytest.fixture(scope="module")
def kafkas_classes() -> Iterator[Any]:
    """Yield ``org.apache.kafka.admin`` in a Java process of its own."""
    gateway = JavaGateway.launch_gateway(
        classpath=os.pathsep.join([fetch(LOCK).classpath, find_jar_path()]),
        java_path=str(find_java().path),
        javaopts=["-Xmx64m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"],
        die_on_exit=True,
    )
    # Spark, once used in this process, asks its own classes about each exception; here there are none of them.
    with mock.patch.object(java_gateway, "get_return_value", get_return_value):
        yield gateway.jvm.org.apache.kafka.admin, gateway.jvm.java.util
    gateway.shutdown()
    gateway.java_process.stdin.close()
    gateway.java_process.wait(10)


def test_placement__is_that_of_kafkas_class(kafkas_classes: Any) -> None:
    admin, util = kafkas_classes
    draw = random.Random(36)
    for _ in range(CLUSTERS):
        named = draw.randint(1, 5)
        many = draw.randint(1, MOST_BROKERS)
        racks = {broker: f"rack{draw.randrange(named)}" for broker in draw.sample(range(100), many)}
        factor, partitions, first = draw.randint(1, many), draw.randint(1, 40), draw.choice([0, 0, 3, 25])
        start = draw.randrange(many)
        theirs = _place(admin, util, racks, partitions, factor, start, first)
        ours = place_partitions(racks, partitions, factor, start=start, shift=start, first=first)
        assert dict(enumerate(ours, first)) == theirs, (racks, partitions, factor, start, first)


def test_list_of_brokers__is_that_of_kafkas_class(kafkas_classes: Any) -> None:
    admin, util = kafkas_classes
    racks = {broker: f"rack{broker * 5 % 7 % 3}" for broker in range(17)}
    listed = util.HashMap()
    for broker, rack in racks.items():
        listed.put(broker, rack)
    assert tuple(admin.AdminUtils.getRackAlternatedBrokerList(listed)) == alternate_racks(racks)


def _place(
    admin: Any, util: Any, racks: Mapping[int, str], partitions: int, factor: int, start: int, first: int
) -> dict[int, tuple[int, ...]]:
    """Kafka draws start and shift by itself, or takes one number for both."""
    brokers = util.ArrayList()
    for broker, rack in racks.items():
        brokers.add(admin.BrokerMetadata(broker, util.Optional.of(rack)))
    placed = admin.AdminUtils.assignReplicasToBrokers(brokers, partitions, factor, start, first)
    return {number: tuple(placed[number]) for number in placed}
