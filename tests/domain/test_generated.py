"""What Kafka's own generate would copy."""

from __future__ import annotations

import zlib
from dataclasses import replace

import pytest

from kafkadash.domain.planner.generated import generated_bytes
from kafkadash.domain.planner.kip36 import assignment
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import ADD, BALANCE, DRAIN, SET_RF, PlanRequest
from tests.domain.topologies import RACKS, broker, topology

CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]] * 9, "u": [[1, 2]]})


def test_a_drain__all_partitions_of_its_topics_are_placed_anew() -> None:
    request = PlanRequest(DRAIN, (3,), accept_fewer_racks=True)
    left = {id_: rack for id_, rack in RACKS.items() if id_ != 3}
    drawn = zlib.crc32(b"t")
    anew = assignment(left, 27, 3, start=drawn % 5, shift=drawn // 5 % 5)
    held = [set(partition.replicas) for partition in CLUSTER.topics["t"].partitions]
    expected = sum(10 * len(set(row) - old) for row, old in zip(anew.tolist(), held, strict=True))
    found = generated_bytes(plan(CLUSTER, request).rows, CLUSTER, request)
    assert found == expected > 180  # which is what the drain itself copies


def test_one_broker_is_left() -> None:
    cluster = topology({"t": [[1], [2]]}, [broker(1, "a"), broker(2, "a")])
    request = PlanRequest(DRAIN, (2,))
    assert generated_bytes(plan(cluster, request).rows, cluster, request) == 10


@pytest.mark.parametrize("mode", [SET_RF, BALANCE])
def test_what_generate_does_not_do_or_nothing_to_move__has_no_figure(mode: str) -> None:
    request = PlanRequest(mode, factor=2)
    assert generated_bytes(plan(CLUSTER, request).rows if mode == SET_RF else (), CLUSTER, request) is None


def test_unknown_sizes_or_mixed_racks__have_no_figure() -> None:
    request = PlanRequest(ADD, (6,), ignore_racks=False)
    rows = plan(CLUSTER, PlanRequest(DRAIN, (3,), accept_fewer_racks=True)).rows
    partitions = tuple(replace(p, size_bytes=None) for p in CLUSTER.topics["t"].partitions)
    unsized = {**CLUSTER.topics, "t": replace(CLUSTER.topics["t"], partitions=partitions)}
    assert generated_bytes(rows, replace(CLUSTER, topics=unsized), request) is None
    mixed = {**CLUSTER.brokers, 6: replace(CLUSTER.brokers[6], rack=None)}
    assert generated_bytes(rows, replace(CLUSTER, brokers=mixed), request) is None
