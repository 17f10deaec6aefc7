"""Requests that can be planned, and those that cannot, each with its one sentence."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import (
    ADD,
    BALANCE,
    DRAIN,
    EXPLICIT,
    LEADERS,
    MODES,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    PlanRequest,
)
from kafkadash.domain.planner.request_problems import limit_passed_today, problems_of, receivers
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.problem import ProblemCode
from tests.domain.topologies import RACKS, broker, topology

PLACED = {"t": [[1, 2, 3], [3, 1, 2]], "u": [[4, 5, 6]]}
CLUSTER = topology(PLACED)


def with_brokers(*others: object) -> Topology:
    return topology(PLACED, [*(broker(id_) for id_ in RACKS), *others])  # type: ignore[list-item]


def said(request: PlanRequest, cluster: Topology = CLUSTER) -> list[str]:
    return [problem.sentence for problem in problems_of(request, cluster)]


@pytest.mark.parametrize(
    "request_",
    [
        PlanRequest(ADD, (6,)),
        PlanRequest(DRAIN, (3,), disk_limit=0.8),
        PlanRequest(REPLACE, (3,), (6,)),
        PlanRequest(REPAIR_RACKS),
        PlanRequest(SET_RF, factor=6),
        PlanRequest(BALANCE, eps=0.0, disk_limit=1.0),
        PlanRequest(LEADERS, pattern="t", excluded="u"),
        PlanRequest(EXPLICIT),
    ],
    ids=lambda request: request.mode,
)
def test_what_can_be_planned__has_no_problem(request_: PlanRequest) -> None:
    assert said(request_) == []


def test_draining_all__is_refused() -> None:
    assert said(PlanRequest(DRAIN, tuple(RACKS))) == [
        "All brokers of the cluster would be drained; nobody is left to hold the replicas. Leave at least one."
    ]


def test_nobody_is_left_among_those_that_may_be_given_replicas__is_refused() -> None:
    assert [problem.code for problem in problems_of(PlanRequest(DRAIN, (3,), targets=(3,)), CLUSTER)] == [
        ProblemCode.NO_TARGET
    ]


def test_one_that_is_not_registered_but_holds_replicas__can_be_drained_and_given_none() -> None:
    cluster = topology({"t": [[1, 9]]})
    assert said(PlanRequest(DRAIN, (9,)), cluster) == []
    assert said(PlanRequest(DRAIN, (1,), targets=(9,)), cluster) == [
        "No replicas can go to broker 9: not in this cluster. Name brokers of the cluster only."
    ]
    there = "there are 1, 2, 3, 4, 5 and 6. Name brokers of the cluster only."
    for request in (PlanRequest(ADD, (9,)), PlanRequest(REPLACE, (1,), (9,))):
        assert said(request, cluster) == [f"There is no broker 9 in this cluster; {there}"]


def test_all_that_is_wrong_is_said_at_once() -> None:
    request = PlanRequest(REPLACE, (8,), (9,), pattern="(", eps=2.0)
    assert [problem.code for problem in problems_of(request, CLUSTER)] == [
        ProblemCode.EPS,
        ProblemCode.REGULAR_EXPRESSION,
        ProblemCode.UNKNOWN_BROKER,
    ]


@pytest.mark.parametrize(
    ("away", "why"),
    [
        (replace(broker(7, "a"), alive=False), "is away"),
        (replace(broker(7, "a"), fenced=True), "is fenced"),
        (replace(broker(7, "a"), dirs=(replace(broker(7).dirs[0], cordoned=True),)), "is cordoned"),
    ],
    ids=["away", "fenced", "cordoned"],
)
def test_one_that_can_be_given_nothing__is_neither_added_nor_takes_over(away: object, why: str) -> None:
    for request in (PlanRequest(ADD, (7,)), PlanRequest(REPLACE, (3,), (7,))):
        sentence = f"Broker 7 {why} and can be given no replicas now. Name another one, or wait until it can."
        assert sentence in said(request, with_brokers(away))


def test_some_racks_only__are_refused_where_replicas_are_placed_and_racks_count() -> None:
    cluster = with_brokers(broker(7), broker(8))
    sentence = (
        "Brokers 7 and 8 name no rack while others do, so the spread over racks cannot be kept. "
        "Set broker.rack there, or plan without regard to racks."
    )
    assert said(PlanRequest(ADD, (7,)), cluster) == [sentence]
    assert said(PlanRequest(ADD, (7,), ignore_racks=True), cluster) == []
    assert said(PlanRequest(LEADERS), cluster) == []


def test_one_that_is_away_need_not_name_its_rack() -> None:
    assert said(PlanRequest(DRAIN, (3,)), with_brokers(replace(broker(7), alive=False))) == []


SENTENCE = (
    "Broker 8 uses 90.0 % of its disk today, 900 B of 1.0 kB (the fullest of 2), and the disk limit is 80 %. "
    "Allow more, make room there, or let only others be given replicas."
)


def test_nobody_below_the_disk_limit__is_a_problem_where_replicas_may_go() -> None:
    cluster = with_brokers(broker(7, "a", used=850), broker(8, "b", used=900))
    assert said(PlanRequest(ADD, (7, 8), disk_limit=0.8), cluster) == [SENTENCE]
    for request in (
        PlanRequest(ADD, (6, 7, 8), disk_limit=0.8),
        PlanRequest(DRAIN, (3,), disk_limit=0.8),
        PlanRequest(DRAIN, (7, 8), disk_limit=0.8),
        PlanRequest(ADD, (7, 8), disk_limit=0.9),
        PlanRequest(ADD, (7, 8)),
    ):
        assert said(request, cluster) == []


def test_a_limit_chosen_for_the_plan__is_above_what_is_used_today_wherever_replicas_may_go() -> None:
    cluster = with_brokers(broker(7, "a", used=850), broker(8, "b", used=900))
    (problem,) = limit_passed_today(PlanRequest(DRAIN, (3,), disk_limit=0.8), cluster)
    assert problem.sentence == SENTENCE
    for request in (
        PlanRequest(DRAIN, (7, 8), disk_limit=0.8),
        PlanRequest(DRAIN, (3,), targets=(1, 2, 4, 5, 6), disk_limit=0.8),
        PlanRequest(ADD, (6,), disk_limit=0.8),
        PlanRequest(DRAIN, (3,), disk_limit=0.9),
        PlanRequest(DRAIN, (3,)),
        PlanRequest(LEADERS, disk_limit=0.1),
    ):
        assert limit_passed_today(request, cluster) == []


def test_who_may_be_given_replicas() -> None:
    ids = {
        (mode, free): [one.id for one in receivers(PlanRequest(mode, (3,), (6,), rebalance=free), CLUSTER)]
        for mode in MODES
        for free in (False, True)
    }
    assert (ids[ADD, False], ids[ADD, True]) == ([3], list(RACKS))
    assert (ids[DRAIN, False], ids[DRAIN, True]) == ([1, 2, 4, 5, 6], [1, 2, 4, 5, 6])
    assert (ids[REPLACE, False], ids[REPLACE, True]) == ([6], [1, 2, 4, 5, 6])
    assert (ids[LEADERS, False], ids[EXPLICIT, False]) == ([], [])


def test_nothing_is_planned_of_a_request_with_a_problem() -> None:
    planned = plan(CLUSTER, PlanRequest(DRAIN, (9,)))
    assert planned.rows == ()
    assert [problem.code for problem in planned.problems] == [ProblemCode.UNKNOWN_BROKER]
