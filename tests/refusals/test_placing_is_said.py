"""What a placement cannot give, as the plan says it, and what people read of a plan that is not what was asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import ADD, BALANCE, DRAIN, REPLACE, SET_RF, PlanRequest, Proof
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.refusals import checked, placing
from kafkadash.domain.rule import Rule
from kafkadash.reassign.plan_work import _faults
from tests.domain.topologies import broker, row, topology
from tests.refusals.driving import Case, case, each

NINE = topology({"t": [[1, 2]] * 9})
SET_TO_TWO = PlanRequest(SET_RF, factor=2)
RACKLESS = [broker(n, "a") for n in range(1, 5)]
SKEWED = topology({"t": [[1, 2], [1, 2], [1, 2]], "u": [[3]]}, RACKLESS)
RACKS = topology({"t": [[1, 2, 3], [1, 2, 3]]})
TWO = topology({"t": [[1, 2], [2, 1]]}, RACKLESS)


def planned(cluster: Topology, request: PlanRequest) -> str:
    found = plan(cluster, request)
    return " ".join(str(one) for one in (*found.problems, *found.notices))


def balanced_of(sizes: Sequence[int], brokers: int = 4) -> str:
    """Of partitions with one replica each on brokers of one rack."""
    cluster = topology(
        {"t": [[1 + n % brokers] for n in range(len(sizes))]}, [broker(n + 1, "a") for n in range(brokers)]
    )
    topic = cluster.topics["t"]
    partitions = tuple(replace(p, size_bytes=size) for p, size in zip(topic.partitions, sizes, strict=True))
    return planned(
        replace(cluster, topics={"t": replace(topic, partitions=partitions)}), PlanRequest(BALANCE, eps=0.05)
    )


def moving(cluster: Topology) -> Topology:
    topic = cluster.topics["t"]
    partitions = (replace(topic.partitions[0], moving=True), *topic.partitions[1:])
    return replace(cluster, topics={**cluster.topics, "t": replace(topic, partitions=partitions)})


@each(
    case(
        placing.KEEPS_MORE_THAN_ALLOWED,
        lambda: planned(SKEWED, PlanRequest(SET_RF, factor=3, most_replicas=2)),
        broker=1,
        replicas="3 replicas",
        most=2,
    ),
    case(
        placing.NO_ROOM_AT_THE_MAXIMUM,
        lambda: planned(NINE, PlanRequest(BALANCE, most_replicas=2)),
        most=2,
        room=12,
        total=18,
    ),
    case(placing.MOVING_LEFT_OUT, lambda: planned(moving(NINE), PlanRequest(BALANCE)), partitions="t-0", are="is"),
    case(
        placing.REPLACEMENT_HOLDS_IT,
        lambda: planned(RACKS, PlanRequest(REPLACE, (1,), (2,), accept_fewer_racks=True)),
        partitions="t-0 and t-1",
        are="are",
        brokers="broker 2",
    ),
    case(placing.OUTSIDE_FOR_A_LARGE_ONE, lambda: balanced_of([900, 10, 10, 10]), broker=1, partition="t-0"),
    case(placing.OUTSIDE_FOR_THE_REST, lambda: balanced_of([900, 10, 10, 10]), broker=2),
    case(
        placing.OUTSIDE_AND_STUCK,
        lambda: balanced_of([50, 50, 60, 10, 70, 80, 30]),
        broker=1,
        held="100 B",
        mean="88 B",
    ),
    case(placing.MORE_OUTSIDE, lambda: balanced_of([900] * 2 + [1] * 6, brokers=8), brokers="3 brokers"),
    case(
        placing.LEFT_ON_ONE_DOWN,
        lambda: planned(
            topology({"t": [[1, 2]] * 3}, [*RACKLESS[:1], broker(2, "a", fenced=True), *RACKLESS[2:]]), SET_TO_TWO
        ),
        replicas="3 replicas",
        stay="stay",
        broker=2,
        is_down="is fenced",
    ),
    case(placing.AS_EVEN_AS_POSSIBLE, lambda: planned(SKEWED, PlanRequest(SET_RF, factor=3))),
)
def test_what_a_placement_cannot_give(one: Case) -> None:
    one.check()


def judged(
    rows: Sequence[Row], request: PlanRequest, cluster: Topology = TWO, proof: Proof | None = None, **limits: Any
) -> str:
    """As the job tells what failed."""
    rules: Sequence[Rule] = check(rows, cluster, Asked.of_request(replace(request, **limits)), None, proof)
    return " ".join(str(fault) for fault in _faults({"rules": [rule.as_json() for rule in rules]}))


ADDED = PlanRequest(ADD, (3,))
CLAIM = Proof(moved=20, bound=20, prices={}, widened={})


@each(
    case(
        checked.ROW_OUTSIDE,
        lambda: judged([row(RACKS, "t", 0, (1, 2, 6))], PlanRequest(BALANCE, topics=("x",)), RACKS),
        row="t-0",
    ),
    case(
        checked.ROW_TAKES_WHAT_STAYS,
        lambda: judged([row(RACKS, "t", 0, (1, 5, 6))], PlanRequest(SET_RF, factor=3), _two_of(RACKS)),
        row="t-0",
        broker=2,
    ),
    case(
        checked.ROW_KEEPS_WHAT_LEAVES,
        lambda: judged([], PlanRequest(DRAIN, (1,), rebalance=True), TWO),
        row="t-0",
        broker=1,
    ),
    case(checked.ROW_WITH_WRONG_FACTOR, lambda: judged([], PlanRequest(SET_RF, factor=3)), row="t-0", factor=3),
    case(
        checked.ROW_UNEVEN_IN_RACK,
        lambda: judged([row(RACKS, "t", 0, (1, 4, 2))], PlanRequest(BALANCE), RACKS),
        row="t-0",
        held="2 replicas",
        rack="a",
        wanted=1,
    ),
    case(checked.BROKER_OUT_OF_BOUNDS, lambda: judged([], ADDED), broker=3, replicas="0 replicas", low=1, high=2),
    case(
        checked.NO_PLAN_MEETS_IT,
        lambda: judged([], PlanRequest(SET_RF, factor=5)),
        partitions="2 partitions",
    ),
    case(checked.BOUND_DIFFERS, lambda: judged([], PlanRequest(BALANCE), proof=CLAIM), report="20 B"),
    case(
        checked.BROKER_NOT_WITHIN_EPS,
        lambda: judged([], PlanRequest(BALANCE, eps=0.05), SKEWED, proof=replace(CLAIM, disk_bound=20)),
        broker=3,
        held="10 B",
        eps=5,
    ),
    case(checked.MOVED_DIFFERS, lambda: judged([], PlanRequest(BALANCE), proof=CLAIM), rows="0 B", report="20 B"),
)
def test_a_plan_that_is_not_what_was_asked_for(one: Case) -> None:
    one.check()


def _two_of(cluster: Topology) -> Topology:
    """With two replicas of each partition, so that a third is to come."""
    topic = cluster.topics["t"]
    partitions = tuple(replace(p, replicas=p.replicas[:2], isr=p.replicas[:2]) for p in topic.partitions)
    return replace(cluster, topics={"t": replace(topic, partitions=partitions)})
