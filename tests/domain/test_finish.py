"""What is left of an earlier plan."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from kafkadash.domain.kafka_json import read_reassignment
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.planned import Planned
from kafkadash.domain.planner.request import FINISH, PlanRequest
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.problem import ProblemCode
from tests.domain.topologies import topology

CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]]})


def left(*rows: tuple[str, int, Sequence[int]], cluster: Topology = CLUSTER) -> Planned:
    entries = [{"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in rows]
    brought = read_reassignment(json.dumps({"version": 1, "partitions": entries}))
    return plan(cluster, PlanRequest(FINISH), brought)


def moving(number: int) -> Topology:
    topic = CLUSTER.topics["t"]
    partitions = tuple(replace(p, moving=p.partition == number) for p in topic.partitions)
    return replace(CLUSTER, topics={"t": replace(topic, partitions=partitions)})


def test_what_is_as_it_should_be_is_left_out_and_factors_may_change() -> None:
    planned = left(("t", 0, [1, 2, 3]), ("t", 1, [3, 1, 2, 4]))
    assert [(row.name, row.target) for row in planned.rows] == [("t-1", (3, 1, 2, 4))]
    assert [str(notice) for notice in planned.notices] == [
        "1 partition of the file is as asked already. Only the others are planned."
    ]


def test_what_moves_now_or_is_gone__is_left_out_and_said() -> None:
    planned = left(("t", 0, [4, 2, 3]), ("t", 1, [3, 4, 2]), ("old", 7, [1]), cluster=moving(0))
    assert [row.name for row in planned.rows] == ["t-1"]
    assert [str(notice) for notice in planned.notices] == [
        "old-7 is not in this cluster any more. What is left of the earlier plan is planned.",
        "t-0 is being reassigned already, and left out of this plan. Plan again when that is done.",
    ]


def test_nothing_left__is_said() -> None:
    for planned in (left(("t", 0, [1, 2, 3])), left(("t", 0, [4, 2, 3]), ("old", 7, [1]), cluster=moving(0))):
        assert [problem.code for problem in planned.problems] == [ProblemCode.NOTHING_TO_DO]


def test_a_broker_that_is_gone_since__is_in_its_way() -> None:
    assert [problem.code for problem in left(("t", 0, [9, 2, 3])).problems] == [ProblemCode.UNKNOWN_BROKER]
