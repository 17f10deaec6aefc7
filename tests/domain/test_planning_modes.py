"""Every mode of planning through its one entrance."""

from __future__ import annotations

import pytest

from kafkadash.domain.kafka_json import read_reassignment
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import DRAIN, EXPLICIT, PlanRequest
from tests.domain.topologies import topology

CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [3, 5, 1]]})


def test_a_drain__is_planned_with_all_that_was_asked() -> None:
    planned = plan(CLUSTER, PlanRequest(DRAIN, brokers=(3,), targets=(1, 2, 6), disk_limit=0.8))
    assert planned.problems == ()
    assert [(row.name, set(row.target)) for row in planned.rows] == [
        ("t-0", {1, 2, 6}),
        ("t-1", {6, 1, 2}),
        ("t-3", {6, 5, 1}),
    ]


def test_rows_that_were_brought__are_compared_with_the_cluster() -> None:
    brought = read_reassignment('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,2,3]}]}')
    planned = plan(CLUSTER, PlanRequest(EXPLICIT), brought)
    assert [(row.name, row.current, row.target) for row in planned.rows] == [("t-0", (1, 2, 3), (4, 2, 3))]


def test_rows_that_are_needed_and_not_brought__are_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="rows"):
        plan(CLUSTER, PlanRequest(EXPLICIT))
