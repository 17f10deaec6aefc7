"""Draining brokers: what moves and where to, and every request that cannot be met with its code.

A plan brought as Kafka's JSON, compared with the cluster.

What is left of an earlier plan.

Requests that can be planned, and those that cannot, each with its code.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from kafkadash.changes.plan import PlanErrorCode as Code
from kafkadash.changes.plan import UnfitReason, canonical_bytes, way_back
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.problems import InputProblem
from kafkadash.core.racks import judge_spread
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.impact import impact_of
from kafkadash.planning.kafka_json import plan_json, read_reassignment
from kafkadash.planning.problem_codes import FileErrorCode
from kafkadash.planning.solver.explicit import plan_explicitly
from kafkadash.planning.solver.plan import plan
from kafkadash.planning.solver.request import (
    ADD,
    BALANCE,
    DRAIN,
    EXPLICIT,
    FINISH,
    LEADERS,
    MODES,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    PlanRequest,
)
from kafkadash.planning.solver.request_problems import PlanAnswer, limit_passed_today, list_receivers, problems_of
from kafkadash.planning.topology import ClusterTopology, LogDirectory, PlannedBroker, PlannedPartition, PlannedTopic
from tests.planning.topologies import RACKS, broker, clusters, topology

pytestmark = pytest.mark.domain

THREE = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [3, 5, 1]]})


def targets(cluster: ClusterTopology, request: PlanRequest) -> dict[str, tuple[int, ...]]:
    planned = plan(cluster, request)
    assert not planned.problems
    return {row.name: row.target for row in planned.rows}


def refused(cluster: ClusterTopology, request: PlanRequest) -> list[CodedMessage]:
    planned = plan(cluster, request)
    assert planned.rows == ()
    return [problem.message for problem in planned.problems]


def noticed(cluster: ClusterTopology, request: PlanRequest) -> list[CodedMessage]:
    planned = plan(cluster, request)
    assert not planned.problems
    return [notice.message for notice in planned.notices]


def test_drain__the_newcomer_takes_the_place_of_the_leaver_and_another_replica_leads() -> None:
    assert targets(THREE, PlanRequest(DRAIN, (3,))) == {"t-0": (1, 2, 6), "t-1": (2, 6, 1), "t-3": (5, 6, 1)}


def test_drain__rows_know_the_topic_id_and_what_is_now() -> None:
    row = plan(THREE, PlanRequest(DRAIN, (3,))).rows[1]
    assert (row.topic_id, row.current) == ("id-t", (3, 1, 2))


def test_drain__two_replicas_only__may_go_where_least_is_as_long_as_the_spread_stays_even() -> None:
    cluster = topology({"t": [[3, 1]], "load": [[6, 4, 5]] * 4})
    assert targets(cluster, PlanRequest(DRAIN, (3,))) == {"t-0": (1, 2)}


@pytest.mark.parametrize(
    ("request_", "problem"),
    [
        (PlanRequest(DRAIN, ()), coded(Code.NO_BROKER_NAMED)),
        (PlanRequest(DRAIN, (9,)), coded(Code.BROKERS_UNKNOWN, brokers=(9,), known=(1, 2, 3, 4, 5, 6))),
        (PlanRequest(DRAIN, (1, 8, 9)), coded(Code.BROKERS_UNKNOWN, brokers=(8, 9), known=(1, 2, 3, 4, 5, 6))),
        (PlanRequest(DRAIN, (1, 2, 3, 4, 5, 6)), coded(Code.ALL_WOULD_BE_DRAINED)),
        (PlanRequest(DRAIN, (1,), targets=(1,)), coded(Code.NO_TARGET)),
        (PlanRequest(DRAIN, (3,), targets=(7, 6)), coded(Code.TARGETS_UNKNOWN, brokers=(7,))),
        (
            PlanRequest(DRAIN, (3, 6)),
            coded(Code.LAST_OF_A_RACK, brokers=(3, 6), racks=("c",), fewer=((4, 2, 3),)),
        ),
        (PlanRequest(DRAIN, (3, 4, 5, 6)), coded(Code.TOO_FEW_BROKERS, topic="t", replicas=3, brokers=2)),
    ],
)
def test_drain__a_request_that_cannot_be_met__tells_why(request_: PlanRequest, problem: CodedMessage) -> None:
    assert refused(THREE, request_) == [problem]


def test_drain__the_last_of_a_rack__goes_when_fewer_racks_are_accepted() -> None:
    planned = targets(THREE, PlanRequest(DRAIN, (3, 6), accept_fewer_racks=True))
    assert len(planned) == 4
    assert all(len({RACKS[b] for b in target}) == 2 for target in planned.values())


def test_drain__the_last_of_a_rack__is_no_loss_where_other_racks_are_free() -> None:
    assert targets(topology({"t": [[3, 1]]}), PlanRequest(DRAIN, (3, 6))) == {"t-0": (1, 2)}


def test_drain__a_broker_that_holds_nothing() -> None:
    cluster = topology({"t": [[1, 2]]})
    assert plan(cluster, PlanRequest(DRAIN, (3,))).rows == ()
    assert noticed(cluster, PlanRequest(DRAIN, (3,))) == [coded(Code.NOTHING_TO_DRAIN, brokers=(3,))]
    assert noticed(cluster, PlanRequest(DRAIN, (1, 3))) == [coded(Code.HOLDS_NOTHING, brokers=(3,))]


def test_drain__a_partition_that_moves_already__is_named() -> None:
    topic = THREE.topics["t"]
    moving = tuple(replace(p, moving=p.partition < 2) for p in topic.partitions)
    cluster = replace(THREE, topics={"t": replace(topic, partitions=moving)})
    assert refused(cluster, PlanRequest(DRAIN, (3,))) == [
        coded(Code.MOVES_ALREADY, row="t-0"),
        coded(Code.MOVES_ALREADY, row="t-1"),
    ]


def test_drain__some_brokers_name_no_rack__needs_the_word_to_ignore_racks() -> None:
    own = [broker(1), broker(2), broker(3), PlannedBroker(7), PlannedBroker(8)]
    cluster = topology({"t": [[1, 2, 3]]}, own)
    assert refused(cluster, PlanRequest(DRAIN, (3,))) == [coded(Code.RACKS_MIXED, brokers=(7, 8))]
    assert targets(cluster, PlanRequest(DRAIN, (3,), ignore_racks=True)) == {"t-0": (1, 2, 7)}


def test_drain__no_broker_names_a_rack__is_planned_without() -> None:
    cluster = topology({"t": [[1, 2]]}, [PlannedBroker(1), PlannedBroker(2), PlannedBroker(3)])
    assert targets(cluster, PlanRequest(DRAIN, (1,))) == {"t-0": (2, 3)}


def test_drain__a_disk_that_would_overflow__names_broker_numbers_and_limit() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=790)]
    cluster = topology({"t": [[1, 2, 3]]}, own, size=40)
    assert refused(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8)) == [
        coded(Code.DISK_LIMIT, broker=6, share=0.83, used=790, coming=40, total=1000, limit=80.0, room=10)
    ]
    assert targets(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.9)) == {"t-0": (1, 2, 6)}


def test_drain__a_replica_larger_than_any_directory__is_told_apart() -> None:
    two = replace(broker(6), dirs=(LogDirectory("/a", 1000, 790), LogDirectory("/b", 1000, 785)))
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), two], size=20)
    assert refused(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8)) == [
        coded(Code.DISK_LIMIT_OF_A_DIRECTORY, broker=6, replica=20, room=15, limit=80.0)
    ]
    roomy = replace(cluster, brokers={**cluster.brokers, 9: broker(9, "c", used=500)})
    assert targets(replace(roomy), PlanRequest(DRAIN, (3,), disk_limit=0.8)) == {"t-0": (1, 2, 9)}


def test_drain__full_brokers__are_passed_over_for_those_with_room() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=799), broker(9, "c", used=500)]
    cluster = topology({"t": [[1, 2, 3]], "full": [[9]] * 5}, own)
    assert targets(cluster, PlanRequest(DRAIN, (3,)))["t-0"] == (1, 2, 6)
    assert targets(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8))["t-0"] == (1, 2, 9)


def test_drain__what_keeps_the_limit_from_being_judged__is_noticed() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, used=None)]
    cluster = topology({"t": [[1, 2, 3]]}, own, size=None)
    assert noticed(cluster, PlanRequest(DRAIN, (3,), disk_limit=0.8)) == [
        coded(Code.DISK_UNJUDGED, brokers=(6,)),
        coded(Code.SIZE_UNJUDGED, partitions=1),
    ]


def test_drain__dead_fenced_and_cordoned_brokers__are_no_targets() -> None:
    own = [broker(1), broker(2), broker(3), broker(6, fenced=True), broker(7, "c", alive=False), broker(9, "c")]
    cluster = topology({"t": [[1, 2, 3]], "load": [[9]] * 9}, own)
    assert targets(cluster, PlanRequest(DRAIN, (3,)))["t-0"] == (1, 2, 9)


def test_drain__leaders_of_the_drained_broker__are_spread() -> None:
    cluster = topology({"t": [[3, 1, 2], [3, 4, 5], [3, 2, 4], [3, 5, 1]] * 10})
    firsts = Counter(target[0] for target in targets(cluster, PlanRequest(DRAIN, (3,))).values())
    assert max(firsts.values()) - min(firsts.values()) <= 1
    assert set(firsts) == {1, 2, 4, 5, 6}


def _best(
    cluster: ClusterTopology,
    replicas: Sequence[int],
    leaving: frozenset[int],
    racks: Mapping[int, str],
    rack_count: int,
) -> int:
    """The least moves to an even spread that any choice of newcomers leaves: what must stay may not allow none."""
    kept = [id_ for id_ in replicas if id_ not in leaving]
    free = [b.id for b in cluster.brokers.values() if b.eligible and b.id not in leaving and b.id not in kept]
    choices = itertools.combinations(free, len(replicas) - len(kept))
    return min((judge_spread([*kept, *choice], racks, rack_count).moves for choice in choices), default=0)


@given(clusters(), st.data())
def test_drain__of_any_cluster__only_what_must_move_moves_and_everything_holds(
    cluster: ClusterTopology, data: st.DataObject
) -> None:
    leaving = frozenset(data.draw(st.sets(st.sampled_from(sorted(cluster.brokers)), min_size=1, max_size=2)))
    planned = plan(cluster, PlanRequest(DRAIN, tuple(sorted(leaving)), disk_limit=0.9))
    assume(not planned.problems)
    left = {b.rack for b in cluster.brokers.values() if b.id not in leaving}
    racks = {b.id: b.rack for b in cluster.brokers.values() if b.rack is not None}
    rows = {(row.topic, row.partition): row for row in planned.rows}
    for topic in cluster.topics.values():
        for p in topic.partitions:
            row = rows.pop((topic.name, p.partition), None)
            assert (row is not None) == (not leaving.isdisjoint(p.replicas))
            if row:
                assert len(set(row.target)) == len(p.replicas)
                assert leaving.isdisjoint(row.target)
                assert {b for b in p.replicas if b not in leaving} <= set(row.target)
                if racks:
                    before, after = (judge_spread(list(r), racks, len(left)) for r in (p.replicas, row.target))
                    lost = {racks[b] for b in leaving} - left
                    best = _best(cluster, p.replicas, leaving, racks, len(left))
                    assert after.moves <= max(before.moves, best) or lost
    assert not rows


@given(clusters(), st.randoms())
def test_drain__the_order_in_which_things_are_known__changes_nothing(cluster: ClusterTopology, random: object) -> None:
    request = PlanRequest(DRAIN, (1,))
    turned = replace(
        cluster,
        brokers=dict(list(cluster.brokers.items())[::-1]),
        topics={name: replace(t, partitions=t.partitions[::-1]) for name, t in list(cluster.topics.items())[::-1]},
    )
    assert canonical_bytes(plan(cluster, request).rows) == canonical_bytes(plan(turned, request).rows)


@given(clusters())
def test_drain__again__has_nothing_to_do(cluster: ClusterTopology) -> None:
    planned = plan(cluster, PlanRequest(DRAIN, (1,)))
    assume(not planned.problems)
    after = {(row.topic, row.partition): row.target for row in planned.rows}
    moved = {
        name: replace(
            t, partitions=tuple(replace(p, replicas=after.get((name, p.partition), p.replicas)) for p in t.partitions)
        )
        for name, t in cluster.topics.items()
    }
    again = plan(replace(cluster, topics=moved), PlanRequest(DRAIN, (1,)))
    assert (again.rows, again.problems, [notice.code for notice in again.notices]) == (
        (),
        (),
        [Code.NOTHING_TO_DRAIN],
    )


def test_drain__fifty_thousand_replicas_of_a_large_cluster__takes_seconds_and_evens_out() -> None:
    brokers = [broker(n, "abc"[n % 3], total=10**15, used=0) for n in range(30)]
    topics = {
        f"t{t}": PlannedTopic(
            f"t{t}",
            tuple(
                PlannedPartition(n, (a, (a + 1) % 30, (a + 2) % 30), (), a, 1000 + (n * 7919) % 5000)
                for n in range(100)
                for a in [(t * 7 + n) % 30]
            ),
        )
        for t in range(1000)
    }
    cluster = ClusterTopology({b.id: b for b in brokers}, topics)
    began = time.process_time()
    planned = plan(cluster, PlanRequest(DRAIN, (0, 1, 2, 3, 4), disk_limit=0.8))
    assert time.process_time() - began < 10
    assert len(planned.rows) > 20_000
    held = Counter(b for t in topics.values() for p in t.partitions for b in p.replicas)
    for row in planned.rows:
        held.subtract(row.removing)
        held.update(row.adding)
    for rack in range(3):
        own = [held[n] for n in range(5, 30) if n % 3 == rack]
        assert max(own) / min(own) < 1.02


OWN = [*(broker(n) for n in (1, 2, 3, 4, 5)), broker(6, fenced=True), broker(7, "a", alive=False)]
ASSIGNED_CLUSTER = topology({"t": [[1, 2, 3], [2, 3, 1], [7, 1, 2]]}, OWN)


def plan_assignment(
    entries: list[dict[str, Any]], cluster: ClusterTopology = ASSIGNED_CLUSTER, **how: Any
) -> PlanAnswer:
    """Of a file with one entry a line, from line 2 on."""
    lines = ",\n".join(json.dumps({"topic": "t", "partition": 0} | one) for one in entries)
    return plan_explicitly(read_reassignment(f'{{"version":1,"partitions":[\n{lines}\n]}}'), cluster, **how)


def problem(code: Code | FileErrorCode, line: int | None = 2, /, **params: object) -> InputProblem:
    return InputProblem(coded(code, **params), line)


def test_explicit__rows_know_the_topic_id_and_what_is_now_and_those_as_asked_are_left_out() -> None:
    planned = plan_assignment(
        [{"replicas": [4, 2, 3]}, {"partition": 1, "replicas": [2, 3, 1], "log_dirs": ["any"] * 3}]
    )
    assert [(r.name, r.topic_id, r.current, r.target, r.log_dirs) for r in planned.rows] == [
        ("t-0", "id-t", (1, 2, 3), (4, 2, 3), ())
    ]
    assert planned.notices == (problem(Code.SOME_AS_ASKED, None, partitions=1),)


@pytest.mark.parametrize(
    ("entries", "problems"),
    [
        ([{"topic": "x", "replicas": [1]}], [problem(Code.TOPIC_UNKNOWN, topic="x", entries=1)]),
        (
            [{"topic": "x", "replicas": [1]}, {"topic": "x", "partition": 1, "replicas": [1]}],
            [problem(Code.TOPIC_UNKNOWN, topic="x", entries=2)],
        ),
        (
            [{"partition": 9, "replicas": [1, 2, 3]}],
            [problem(Code.PARTITION_UNKNOWN, row="t-9", topic="t", partitions=3)],
        ),
        ([{"replicas": [1, 2, 9]}], [problem(Code.BROKER_UNKNOWN, broker=9, entries=1)]),
        (
            [{"replicas": [1, 2, 6]}],
            [problem(Code.BROKER_UNFIT, broker=6, why=UnfitReason.FENCED, entries=1)],
        ),
        ([{"replicas": [1, 2, 7]}], [problem(Code.BROKER_UNFIT, broker=7, why=UnfitReason.AWAY, entries=1)]),
        ([{"replicas": [1, 2]}], [problem(Code.OTHER_FACTOR, row="t-0", replicas=3, target=2)]),
        ([{"replicas": [1, 2, 3, 4]}], [problem(Code.OTHER_FACTOR, row="t-0", replicas=3, target=4)]),
        ([{"replicas": [1, 2, 3]}], [problem(Code.ALL_AS_ASKED, None, partitions=1)]),
        (
            [{"replicas": [1, 2, 3], "log_dirs": ["/d", "any", "any"]}],
            [problem(Code.DIRECTORIES_ONLY, row="t-0")],
        ),
        (
            [{"replicas": [1, 2, 4], "log_dirs": ["any", "/d", "/d"]}],
            [problem(Code.DIRECTORY_OF_ONE_THAT_STAYS, row="t-0", broker=2, path="/d")],
        ),
        (
            [{"replicas": [1, 2, 4], "log_dirs": ["any", "any", "/x"]}],
            [problem(Code.DIRECTORY_UNKNOWN, row="t-0", broker=4, path="/x", paths=("/d",))],
        ),
        (
            [{"replicas": []}, {"partition": 1, "replicas": [9, 2, 3]}],
            [problem(FileErrorCode.NO_REPLICAS, row="t-0"), problem(Code.BROKER_UNKNOWN, 3, broker=9, entries=1)],
        ),
    ],
)
def test_explicit__what_cannot_be_done__tells_why_and_its_line(
    entries: list[dict[str, Any]], problems: list[InputProblem]
) -> None:
    planned = plan_assignment(entries)
    assert (planned.problems, planned.rows) == (tuple(problems), ())


def test_explicit__a_replication_factor_that_may_change__does() -> None:
    assert [row.target for row in plan_assignment([{"replicas": [1, 2]}], change_rf=True).rows] == [(1, 2)]


def test_explicit__somebody_moves_the_partition_already() -> None:
    topic = ASSIGNED_CLUSTER.topics["t"]
    moving = replace(topic, partitions=(replace(topic.partitions[0], moving=True), *topic.partitions[1:]))
    planned = plan_assignment([{"replicas": [1, 2, 4]}], replace(ASSIGNED_CLUSTER, topics={"t": moving}))
    assert planned.problems == (problem(Code.MOVES_ALREADY, row="t-0"),)


def test_explicit__a_replica_that_stays_on_a_broker_that_is_away__is_noticed() -> None:
    planned = plan_assignment([{"partition": 2, "replicas": [7, 1, 3]}])
    assert len(planned.rows) == 1
    assert planned.notices == (problem(Code.KEPT_ON_ONE_AWAY, None, partitions=1, broker=7),)


def test_explicit__a_disk_that_would_overflow__names_broker_numbers_and_limit() -> None:
    cluster = topology({"t": [[1, 2, 3]]}, [broker(1), broker(2), broker(3), broker(4, used=795)])
    assert plan_assignment([{"replicas": [1, 2, 4]}], cluster, disk_limit=0.8).problems == (
        problem(Code.DISK_LIMIT, None, broker=4, share=0.805, used=795, coming=10, total=1000, limit=80.0, room=5),
    )


@given(clusters(), st.data())
def test_explicit__of_any_cluster__every_entry_is_a_row_or_left_out_or_a_problem_and_rows_pass_the_checker(
    cluster: ClusterTopology, data: st.DataObject
) -> None:
    names = [(topic.name, p.partition) for topic in cluster.topics.values() for p in topic.partitions]
    chosen = data.draw(st.lists(st.sampled_from(names), min_size=1, unique=True))
    change_rf = data.draw(st.booleans())
    asked = {
        key: tuple(data.draw(st.permutations(sorted(cluster.brokers)))[: data.draw(st.integers(1, 4))])
        for key in chosen
    }
    entries = [{"topic": t, "partition": n, "replicas": list(replicas)} for (t, n), replicas in asked.items()]
    planned = plan_assignment(entries, cluster, change_rf=change_rf)
    live = {(topic.name, p.partition): p.replicas for topic in cluster.topics.values() for p in topic.partitions}
    if planned.problems:
        wrong = [key for key, replicas in asked.items() if len(replicas) != len(live[key]) and not change_rf]
        assert len(planned.problems) == (len(wrong) or 1)
        return
    assert {(r.topic, r.partition): r.target for r in planned.rows} == {
        key: replicas for key, replicas in asked.items() if replicas != live[key]
    }
    rules = check(
        planned.rows,
        cluster,
        CheckRequest.of_request(PlanRequest(EXPLICIT, change_rf=change_rf)),
        impact_of(planned.rows, cluster),
    )
    assert [rule for rule in rules if not rule.passed] == []
    # The way back of the plan brings everything to where it was.
    moved = {
        name: replace(
            t, partitions=tuple(replace(p, replicas=asked.get((name, p.partition), p.replicas)) for p in t.partitions)
        )
        for name, t in cluster.topics.items()
    }
    back = plan_explicitly(
        read_reassignment(plan_json(way_back(planned.rows))), replace(cluster, topics=moved), change_rf=change_rf
    )
    assert {(r.topic, r.partition): (r.current, r.target) for r in back.rows} == {
        (r.topic, r.partition): (r.target, r.current) for r in planned.rows
    }


HALF_MOVED_CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]]})


def left(*rows: tuple[str, int, Sequence[int]], cluster: ClusterTopology = HALF_MOVED_CLUSTER) -> PlanAnswer:
    entries = [{"topic": topic, "partition": number, "replicas": replicas} for topic, number, replicas in rows]
    brought = read_reassignment(json.dumps({"version": 1, "partitions": entries}))
    return plan(cluster, PlanRequest(FINISH), brought)


def moving(number: int) -> ClusterTopology:
    topic = HALF_MOVED_CLUSTER.topics["t"]
    partitions = tuple(replace(p, moving=p.partition == number) for p in topic.partitions)
    return replace(HALF_MOVED_CLUSTER, topics={"t": replace(topic, partitions=partitions)})


def test_what_is_as_it_should_be_is_left_out_and_factors_may_change() -> None:
    planned = left(("t", 0, [1, 2, 3]), ("t", 1, [3, 1, 2, 4]))
    assert [(row.name, row.target) for row in planned.rows] == [("t-1", (3, 1, 2, 4))]
    assert planned.notices == (InputProblem(coded(Code.SOME_AS_ASKED, partitions=1)),)


def test_what_moves_now_or_is_gone__is_left_out_and_told() -> None:
    planned = left(("t", 0, [4, 2, 3]), ("t", 1, [3, 4, 2]), ("old", 7, [1]), cluster=moving(0))
    assert [row.name for row in planned.rows] == ["t-1"]
    assert planned.notices == (
        InputProblem(coded(Code.GONE_LEFT_OUT, partitions=("old-7",))),
        InputProblem(coded(Code.MOVING_LEFT_OUT, partitions=("t-0",))),
    )


def test_nothing_left__is_a_problem() -> None:
    as_asked = left(("t", 0, [1, 2, 3]))
    moving_or_gone = left(("t", 0, [4, 2, 3]), ("old", 7, [1]), cluster=moving(0))
    assert [problem.code for problem in as_asked.problems] == [Code.ALL_AS_ASKED]
    assert [problem.code for problem in moving_or_gone.problems] == [Code.NOTHING_LEFT_TO_FINISH]


def test_a_broker_that_is_gone_since__is_in_its_way() -> None:
    assert [problem.code for problem in left(("t", 0, [9, 2, 3])).problems] == [Code.BROKER_UNKNOWN]


PLACED = {"t": [[1, 2, 3], [3, 1, 2]], "u": [[4, 5, 6]]}
CLUSTER = topology(PLACED)


def with_brokers(*others: object) -> ClusterTopology:
    return topology(PLACED, [*(broker(id_) for id_ in RACKS), *others])  # type: ignore[list-item]


def found(request: PlanRequest, cluster: ClusterTopology = CLUSTER) -> list[CodedMessage]:
    return [problem.message for problem in problems_of(request, cluster)]


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
    assert found(request_) == []


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (PlanRequest(DRAIN, tuple(RACKS)), Code.ALL_WOULD_BE_DRAINED),
        (PlanRequest(DRAIN, (3,), targets=(3,)), Code.NO_TARGET),
    ],
)
def test_nobody_is_left_that_may_be_given_replicas__is_refused(request_: PlanRequest, code: Code) -> None:
    assert found(request_) == [coded(code)]


def test_one_that_is_not_registered_but_holds_replicas__can_be_drained_and_given_none() -> None:
    cluster = topology({"t": [[1, 9]]})
    assert found(PlanRequest(DRAIN, (9,)), cluster) == []
    assert found(PlanRequest(DRAIN, (1,), targets=(9,)), cluster) == [coded(Code.TARGETS_UNKNOWN, brokers=(9,))]
    for request in (PlanRequest(ADD, (9,)), PlanRequest(REPLACE, (1,), (9,))):
        assert found(request, cluster) == [coded(Code.BROKERS_UNKNOWN, brokers=(9,), known=(1, 2, 3, 4, 5, 6))]


def test_all_that_is_wrong_is_told_at_once() -> None:
    request = PlanRequest(REPLACE, (8,), (9,), pattern="(", eps=2.0)
    assert [problem.code for problem in found(request)] == [
        Code.EPS_OUTSIDE,
        Code.PATTERN_WRONG,
        Code.BROKERS_UNKNOWN,
    ]


@pytest.mark.parametrize(
    ("away", "why"),
    [
        (replace(broker(7, "a"), alive=False), UnfitReason.AWAY),
        (replace(broker(7, "a"), fenced=True), UnfitReason.FENCED),
        (replace(broker(7, "a"), dirs=(replace(broker(7).dirs[0], cordoned=True),)), UnfitReason.CORDONED),
    ],
    ids=["away", "fenced", "cordoned"],
)
def test_one_that_can_be_given_nothing__is_neither_added_nor_takes_over(away: object, why: UnfitReason) -> None:
    for request in (PlanRequest(ADD, (7,)), PlanRequest(REPLACE, (3,), (7,))):
        unfit = coded(Code.BROKER_UNFIT, broker=7, why=why, entries=1)
        assert unfit in found(request, with_brokers(away))


def test_some_racks_only__are_refused_where_replicas_are_placed_and_racks_count() -> None:
    cluster = with_brokers(broker(7), broker(8))
    assert found(PlanRequest(ADD, (7,)), cluster) == [coded(Code.RACKS_MIXED, brokers=(7, 8))]
    assert found(PlanRequest(ADD, (7,), ignore_racks=True), cluster) == []
    assert found(PlanRequest(LEADERS), cluster) == []


def test_one_that_is_away_need_not_name_its_rack() -> None:
    assert found(PlanRequest(DRAIN, (3,)), with_brokers(replace(broker(7), alive=False))) == []


PASSED_TODAY = coded(Code.DISK_LIMIT_PASSED, broker=8, share=0.9, used=900, total=1000, over=2, limit=80.0)


def test_nobody_below_the_disk_limit__is_a_problem_where_replicas_may_go() -> None:
    cluster = with_brokers(broker(7, "a", used=850), broker(8, "b", used=900))
    assert found(PlanRequest(ADD, (7, 8), disk_limit=0.8), cluster) == [PASSED_TODAY]
    for request in (
        PlanRequest(ADD, (6, 7, 8), disk_limit=0.8),
        PlanRequest(DRAIN, (3,), disk_limit=0.8),
        PlanRequest(DRAIN, (7, 8), disk_limit=0.8),
        PlanRequest(ADD, (7, 8), disk_limit=0.9),
        PlanRequest(ADD, (7, 8)),
    ):
        assert found(request, cluster) == []


def test_a_limit_chosen_for_the_plan__is_above_what_is_used_today_wherever_replicas_may_go() -> None:
    cluster = with_brokers(broker(7, "a", used=850), broker(8, "b", used=900))
    (problem,) = limit_passed_today(PlanRequest(DRAIN, (3,), disk_limit=0.8), cluster)
    assert problem.message == PASSED_TODAY
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
        (mode, free): [one.id for one in list_receivers(PlanRequest(mode, (3,), (6,), rebalance=free), CLUSTER)]
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
    assert [problem.code for problem in planned.problems] == [Code.BROKERS_UNKNOWN]
