"""Every mode of planning through its one entrance."""

from __future__ import annotations

from typing import Any

import pytest

from kafkadash.domain.kafka_json import read_reassignment
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import BALANCE, DRAIN, EXPLICIT, SET_RF, PlanRequest
from kafkadash.domain.problem import ProblemCode
from kafkadash.domain.refusals import placing
from kafkadash.domain.wording import count
from tests.domain.topologies import broker, topology

CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [3, 5, 1]]})


def test_a_drain__is_planned_with_all_that_was_asked() -> None:
    planned = plan(CLUSTER, PlanRequest(DRAIN, brokers=(3,), targets=(1, 2, 6), disk_limit=0.8))
    assert planned.problems == ()
    assert [(row.name, set(row.target)) for row in planned.rows] == [
        ("t-0", {1, 2, 6}),
        ("t-1", {6, 1, 2}),
        ("t-3", {6, 5, 1}),
    ]


@pytest.mark.parametrize("down", [{"alive": False}, {"fenced": True}])
def test_what_stays_on_a_broker_that_is_down__is_said(down: dict[str, Any]) -> None:
    brokers = [broker(1), broker(2), broker(3, **down), broker(4), broker(5), broker(6)]
    placed = {"t": [[1, 3], [3, 4], [5, 6]]}
    for request in (PlanRequest(SET_RF, factor=3), PlanRequest(BALANCE), PlanRequest(DRAIN, (3,))):
        planned = plan(topology(placed, brokers), request)
        targets = {("t", partition): tuple(replicas) for partition, replicas in enumerate(placed["t"])}
        targets |= {(row.topic, row.partition): row.target for row in planned.rows}
        held = sum(3 in replicas for replicas in targets.values())
        expected = placing.LEFT_ON_ONE_DOWN(
            replicas=count(held, "replica"),
            stay="stays" if held == 1 else "stay",
            broker=3,
            is_down="is fenced" if "fenced" in down else "is away",
        )
        said = [str(notice) for notice in planned.notices if notice.code == ProblemCode.LEFT_ON_ONE_DOWN]
        assert said == ([expected] if held else [])
        assert held or request.mode != SET_RF


def test_rows_that_were_brought__are_compared_with_the_cluster() -> None:
    brought = read_reassignment('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,2,3]}]}')
    planned = plan(CLUSTER, PlanRequest(EXPLICIT), brought)
    assert [(row.name, row.current, row.target) for row in planned.rows] == [("t-0", (1, 2, 3), (4, 2, 3))]


def test_rows_that_are_needed_and_not_brought__are_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="rows"):
        plan(CLUSTER, PlanRequest(EXPLICIT))
