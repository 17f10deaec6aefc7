"""Every mode on random clusters: what comes out is what was asked for, moves the least, and is at rest afterwards.

Every mode of planning through its one entrance.

Other replication factors where not everybody is in sync: what is dropped, and that nothing is copied for that.

Plans of random small clusters in every mode, and what another solver calls the least (``make proof`` does 600).

What ``make bench-planner`` asks for, on a cluster that is small enough for every day.

What Kafka's own generate would copy.

KIP-36, by its own examples and by its rules followed one partition after the other.
"""

from __future__ import annotations

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.changes.plan import PartitionMove, PlanErrorCode, UnfitReason
from kafkadash.changes.plan import PlanErrorCode as Code
from kafkadash.core.messages import coded
from kafkadash.core.racks import alternate_racks, judge_spread
from kafkadash.planning.checker import CheckRequest, check
from kafkadash.planning.kafka_json import read_reassignment
from kafkadash.planning.problem_codes import RuleCode
from kafkadash.planning.solver.kafka_placement import assign_replicas, generated_bytes
from kafkadash.planning.solver.plan import plan, plan_exactly
from kafkadash.planning.solver.request import (
    ADD,
    BALANCE,
    DRAIN,
    EXPLICIT,
    LEADERS,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    PlanRequest,
)
from kafkadash.planning.topology import ClusterTopology, PlannedBroker, PlannedPartition, PlannedTopic
from tests.bench.planner_case import CASES, case, measured
from tests.planning.other_solver import compared, random_cluster
from tests.planning.topologies import RACKS, broker, clusters, moved, topology

pytestmark = pytest.mark.domain


def asked_of(cluster: ClusterTopology, mode: str) -> PlanRequest:
    ids = sorted(cluster.brokers)
    own = {
        ADD: {"brokers": (ids[-1],)},
        DRAIN: {"brokers": (ids[0],)},
        REPLACE: {"brokers": (ids[0],), "replacements": (ids[-1],)},
    }.get(mode, {})
    return PlanRequest(mode, accept_fewer_racks=True, **own)  # type: ignore[arg-type]


REQUESTS = st.one_of(
    st.sampled_from([ADD, DRAIN, REPLACE, REPAIR_RACKS, BALANCE, LEADERS]).flatmap(
        lambda mode: st.tuples(st.just(mode), st.just(None), st.booleans())
    ),
    st.tuples(st.just(SET_RF), st.integers(1, 3), st.booleans()),
)


@given(clusters(), REQUESTS)
def test_a_plan__is_what_was_asked_for_moves_the_least_and_is_at_rest_afterwards(
    cluster: ClusterTopology, wanted: tuple[str, int | None, bool]
) -> None:
    mode, factor, rebalance = wanted
    request = replace(asked_of(cluster, mode), factor=factor, rebalance=rebalance and mode != LEADERS)
    planned = plan_exactly(cluster, request)
    if planned.problems:
        assert {problem.code for problem in planned.problems} <= {Code.TOO_FEW_BROKERS, Code.REPLACEMENT_HOLDS_IT}
        return
    rules = check(planned.rows, cluster, CheckRequest.of_request(request), None, planned.proof)
    assert [(rule.code, rule.problems) for rule in rules if rule.passed is False] == []
    if planned.proof is not None:
        # Each empty replica is taken for a byte while placing, so that it does not move for nothing.
        empty = sum(len(p.replicas) for topic in cluster.topics.values() for p in topic.partitions if not p.size_bytes)
        assert 0 <= planned.proof.moved - planned.proof.lowest <= empty
        assert [rule.figure for rule in rules if rule.code == RuleCode.LEAST_MOVEMENT] != []
    if mode == SET_RF and rebalance:
        return  # a leader has to stay while replicas are dropped, and may move once they are
    again = plan_exactly(moved(cluster, planned.rows), request)
    assert [row for row in again.rows if row.adding] == []
    if mode != ADD:  # whose new replicas may lead from then on
        assert again.rows == ()


@given(clusters(racks=True))
def test_repair__leaves_no_violation_that_can_be_mended_and_touches_nothing_else(cluster: ClusterTopology) -> None:
    request = PlanRequest(REPAIR_RACKS)
    planned = plan_exactly(cluster, request)
    racks = cluster.racks
    many = len(set(racks.values()))

    def violated(clusters_: ClusterTopology) -> set[tuple[str, int]]:
        return {
            (name, p.partition)
            for name, topic in clusters_.topics.items()
            for p in topic.partitions
            if judge_spread(p.replicas, racks, many).violates
        }

    before, after = violated(cluster), violated(moved(cluster, planned.rows))
    assert {(row.topic, row.partition) for row in planned.rows if row.adding} <= before or not racks
    sizes = Counter(racks.values())
    if sizes and min(sizes.values()) >= 4:  # else a rack may have too few brokers for its share
        assert after == set()


def test_set_rf__down__the_leader_stays_and_those_out_of_sync_go_first() -> None:
    own = [broker(n) for n in range(1, 5)]
    cluster = topology({"t": [[1, 2, 3], [2, 3, 4]]}, own)
    behind = PlannedPartition(0, (1, 2, 3), (2, 3), 2, 10)
    cluster = replace(cluster, topics={"t": replace(cluster.topics["t"], partitions=(behind,))})
    [row] = plan_exactly(cluster, PlanRequest(SET_RF, factor=1)).rows
    assert row.target == (2,)
    [row] = plan_exactly(cluster, PlanRequest(SET_RF, factor=2)).rows
    assert set(row.target) == {2, 3}


def test_balance__a_partition_that_moves_already__is_left_out_and_named() -> None:
    cluster = topology({"t": [[1, 2], [1, 2], [1, 2], [1, 2]]})
    first = replace(cluster.topics["t"].partitions[0], moving=True)
    topic = replace(cluster.topics["t"], partitions=(first, *cluster.topics["t"].partitions[1:]))
    planned = plan_exactly(replace(cluster, topics={"t": topic}), PlanRequest(BALANCE))
    assert 0 not in {row.partition for row in planned.rows}
    assert planned.notices[0].message == coded(Code.MOVING_LEFT_OUT, partitions=("t-0",))


def counts(cluster: ClusterTopology, rows: tuple[PartitionMove, ...]) -> Counter[int]:
    return Counter(b for t in moved(cluster, rows).topics.values() for p in t.partitions for b in p.replicas)


def test_add__only_the_new_broker_receives_until_it_has_its_share() -> None:
    own = [broker(n, "a") for n in range(1, 5)]
    cluster = topology({"t": [[1, 2, 3]] * 8}, own)
    planned = plan_exactly(cluster, PlanRequest(ADD, brokers=(4,)))
    assert {b for row in planned.rows for b in row.adding} == {4}
    assert counts(cluster, planned.rows) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert planned.proof is not None
    assert planned.proof.exact
    assert planned.proof.moved == 60


@pytest.mark.parametrize(("pattern", "excluded", "topics"), [("o.*", "", {"orders"}), ("", "o.*", {"users", "no"})])
def test_topics__are_chosen_by_the_whole_name(pattern: str, excluded: str, topics: set[str]) -> None:
    cluster = topology({"orders": [[1, 2], [1, 2]], "users": [[1, 2], [1, 2]], "no": [[1, 2]]})
    request = PlanRequest(DRAIN, (1,), pattern=pattern, excluded=excluded, accept_fewer_racks=True)
    assert {row.topic for row in plan_exactly(cluster, request).rows} == topics


def test_most_replicas__leaves_no_room__tells_the_numbers() -> None:
    cluster = topology({"t": [[1, 2]] * 9})
    [problem] = plan_exactly(cluster, PlanRequest(BALANCE, most_replicas=2)).problems
    assert problem.message == coded(Code.NO_ROOM_AT_THE_MAXIMUM, most=2, room=12, total=18)


def test_set_rf__down__of_many_partitions__is_as_even_as_dropping_alone_allows() -> None:
    own = [broker(n, "abc"[n % 3]) for n in range(30)]
    placed = [[n % 30, (n + 1 + n % 7) % 30, (n + 11 + n % 5) % 30] for n in range(3_000)]
    cluster = topology({"t": placed}, own)
    planned = plan_exactly(cluster, PlanRequest(SET_RF, factor=2))
    assert not any(row.adding for row in planned.rows)
    after = counts(cluster, planned.rows)
    assert after.total() == 6_000
    assert max(after.values()) - min(after.values()) <= 2
    assert [notice.code for notice in planned.notices] == [Code.AS_EVEN_AS_POSSIBLE]
    assert all(row.target[0] == row.current[0] for row in planned.rows)


def test_balance__with_eps__brings_disks_within_it_and_is_at_rest_afterwards() -> None:
    own = [broker(n, "abc"[n % 3], total=10**9, used=0) for n in range(12)]
    cluster = topology({"t": [[3 * (n % 3), 1 + 3 * (n % 4), 2 + 3 * (n % 2)] for n in range(240)]}, own)
    topic = cluster.topics["t"]
    sized = tuple(replace(p, size_bytes=1000 + 7919 * p.partition % 5000) for p in topic.partitions)
    cluster = replace(cluster, topics={"t": replace(topic, partitions=sized)})
    request = PlanRequest(BALANCE, eps=0.05, disk_limit=0.9)
    planned = plan_exactly(cluster, request)
    assert planned.proof is not None
    assert planned.proof.ratio is not None
    assert planned.proof.ratio < 1.1
    assert planned.proof.outside == {}
    rules = check(planned.rows, cluster, CheckRequest.of_request(request), None, planned.proof)
    assert {rule.code: rule.passed for rule in rules if not rule.passed} == {}
    assert RuleCode.DISKS_WITHIN_EPS in {rule.code for rule in rules}
    assert plan_exactly(moved(cluster, planned.rows), request).rows == ()


def test_empty_partitions__are_proven_in_bytes_of_which_they_have_none() -> None:
    cluster = topology({"t": [[1, 2], [1, 2]], "u": [[1, 3]]}, size=0)
    planned = plan_exactly(cluster, PlanRequest(DRAIN, (1,)))
    assert len(planned.rows) == 3
    assert planned.proof is not None
    assert (planned.proof.moved, planned.proof.bound, planned.proof.exact) == (0, 0, True)


def test_a_drain_of_some_topics__leaves_those_that_were_not_asked_for() -> None:
    cluster = topology({"t": [[1, 2]], "u": [[1, 3]]})
    request = PlanRequest(DRAIN, (1,), excluded="u")
    planned = plan_exactly(cluster, request)
    assert [row.name for row in planned.rows] == ["t-0"]
    rules = check(planned.rows, cluster, CheckRequest.of_request(request), None, planned.proof)
    assert [rule.code for rule in rules if not rule.passed] == []


def test_leaders__take_no_replica_from_anybody_however_few_a_broker_may_have() -> None:
    cluster = topology({"t": [[1, 2], [1, 2]]})
    request = PlanRequest(LEADERS, most_replicas=1)
    planned = plan_exactly(cluster, request)
    assert len(planned.rows) == 1
    rules = check(planned.rows, cluster, CheckRequest.of_request(request), None, planned.proof)
    assert [rule.code for rule in rules if not rule.passed] == []


def test_repair__keeps_the_maximum_of_replicas_on_a_broker() -> None:
    own = [broker(1, "a"), broker(2, "a"), broker(3, "b"), broker(4, "b")]
    cluster = topology({"t": [[1, 2]] * 4, "u": [[3]]}, own)
    planned = plan_exactly(cluster, PlanRequest(REPAIR_RACKS, most_replicas=3))
    assert planned.problems == ()
    after = counts(cluster, planned.rows)
    assert max(after.values()) <= 3
    assert after[3] + after[4] == 5


def test_what_cannot_be_even__is_left_as_it_is_where_that_is_no_worse() -> None:
    own = [broker(n, rack) for n, rack in enumerate("cdabcd")]
    placed = [[4, 1, 3, 2], [5, 2, 4, 3], [1, 0, 3], [2, 3, 0, 1]]
    cluster = topology({"t": placed, "u": [[4], [3, 2, 5, 4], [5, 0, 3]]}, own)
    request = PlanRequest(BALANCE)
    planned = plan_exactly(cluster, request)
    again = plan_exactly(moved(cluster, planned.rows), request)
    assert [row for row in again.rows if row.adding] == []


CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6], [3, 5, 1]]})


def test_a_drain__is_planned_with_all_that_was_asked() -> None:
    planned = plan(CLUSTER, PlanRequest(DRAIN, brokers=(3,), targets=(1, 2, 6), disk_limit=0.8))
    assert planned.problems == ()
    assert [(row.name, set(row.target)) for row in planned.rows] == [
        ("t-0", {1, 2, 6}),
        ("t-1", {6, 1, 2}),
        ("t-3", {6, 5, 1}),
    ]


@pytest.mark.parametrize(
    ("down", "why"), [({"alive": False}, UnfitReason.AWAY), ({"fenced": True}, UnfitReason.FENCED)]
)
def test_what_stays_on_a_broker_that_is_down__is_told(down: dict[str, Any], why: UnfitReason) -> None:
    brokers = [broker(1), broker(2), broker(3, **down), broker(4), broker(5), broker(6)]
    placed = {"t": [[1, 3], [3, 4], [5, 6]]}
    for request in (PlanRequest(SET_RF, factor=3), PlanRequest(BALANCE), PlanRequest(DRAIN, (3,))):
        planned = plan(topology(placed, brokers), request)
        targets = {("t", partition): tuple(replicas) for partition, replicas in enumerate(placed["t"])}
        targets |= {(row.topic, row.partition): row.target for row in planned.rows}
        held = sum(3 in replicas for replicas in targets.values())
        expected = coded(PlanErrorCode.LEFT_ON_ONE_DOWN, replicas=held, broker=3, why=why)
        told = [notice.message for notice in planned.notices if notice.code == expected.code]
        assert told == ([expected] if held else [])
        assert held or request.mode != SET_RF


def test_rows_that_were_brought__are_compared_with_the_cluster() -> None:
    brought = read_reassignment('{"version":1,"partitions":[{"topic":"t","partition":0,"replicas":[4,2,3]}]}')
    planned = plan(CLUSTER, PlanRequest(EXPLICIT), brought)
    assert [(row.name, row.current, row.target) for row in planned.rows] == [("t-0", (1, 2, 3), (4, 2, 3))]


def test_rows_that_are_needed_and_not_brought__are_a_fault_of_the_caller() -> None:
    with pytest.raises(ValueError, match="rows"):
        plan(CLUSTER, PlanRequest(EXPLICIT))


IDS = range(1, 8)


@st.composite
def lagging(draw: st.DrawFn, *, factors: st.SearchStrategy[int]) -> ClusterTopology:
    """Clusters in three racks of which some replicas are not in sync; one that is leads."""
    brokers = {id_: PlannedBroker(id_, "abc"[id_ % 3]) for id_ in IDS}
    partitions = []
    for number in range(draw(st.integers(1, 12))):
        replicas = tuple(draw(st.permutations(IDS))[: draw(factors)])
        in_sync = tuple(id_ for id_ in replicas if draw(st.booleans())) or replicas[:1]
        leader = draw(st.sampled_from(in_sync))
        partitions.append(PlannedPartition(number, replicas, in_sync, leader, draw(st.integers(0, 1000))))
    return ClusterTopology(brokers, {"t": PlannedTopic("t", tuple(partitions), "id-t")})


def planned(cluster: ClusterTopology, request: PlanRequest) -> Iterator[tuple[PartitionMove, PlannedPartition]]:
    """With no rule of the checker broken."""
    made = plan(cluster, request)
    assert made.problems == ()
    rules = check(made.rows, cluster, CheckRequest.of_request(request), None, made.proof)
    assert [(rule.code, rule.problems) for rule in rules if rule.passed is False] == []
    of = {p.partition: p for p in cluster.topics["t"].partitions}
    return ((row, of[row.partition]) for row in made.rows)


@given(lagging(factors=st.just(4)), st.integers(1, 3))
def test_fewer_for_all__nothing_is_copied_and_those_in_sync_stay(cluster: ClusterTopology, factor: int) -> None:
    rows = list(planned(cluster, PlanRequest(SET_RF, factor=factor)))
    assert len(rows) == len(cluster.topics["t"].partitions)
    for row, partition in rows:
        assert row.adding == ()
        assert len(row.target) == factor
        assert partition.leader in row.target
        kept = len(set(row.target) & set(partition.isr))
        assert kept == min(factor, len(partition.isr))


@given(lagging(factors=st.integers(1, 5)), st.booleans())
def test_fewer_for_some_and_more_for_others__each_keeps_its_leader(cluster: ClusterTopology, rebalance: bool) -> None:
    for row, partition in planned(cluster, PlanRequest(SET_RF, factor=3, rebalance=rebalance)):
        assert len(set(row.target)) == 3
        if len(partition.replicas) > 3:
            assert partition.leader in row.target


def test_fewer__one_that_is_away_goes_first() -> None:
    brokers = {id_: PlannedBroker(id_, "abc"[id_ % 3], alive=id_ != 2) for id_ in IDS}
    topic = PlannedTopic("t", (PlannedPartition(0, (1, 2, 3), (1, 2, 3), 1, 10),))
    [(row, _)] = planned(ClusterTopology(brokers, {"t": topic}), PlanRequest(SET_RF, factor=2))
    assert row.target == (1, 3)
    several = replace(topic, partitions=(topic.partitions[0], PlannedPartition(1, (4,), (4,), 4, 10)))
    rows = planned(ClusterTopology(brokers, {"t": several}), PlanRequest(SET_RF, factor=2))
    assert next(row.target for row, partition in rows if partition.partition == 0) == (1, 3)


@pytest.mark.parametrize("seed", range(10_000, 10_040))
def test_no_plan_moves_more_than_the_least_and_its_proof_says_so(seed: int) -> None:
    for one in compared(seed):
        assert one.bound == one.least == one.moved, one


@given(st.integers(0, 10_000), st.permutations(range(41)))
def test_other_ids_of_brokers__cost_the_same(seed: int, named: list[int]) -> None:
    cluster = random_cluster(seed)
    brokers = {100 + named[id_]: replace(b, id=100 + named[id_]) for id_, b in cluster.brokers.items()}

    def renamed(ids: tuple[int, ...]) -> tuple[int, ...]:
        return tuple(100 + named[id_] for id_ in ids)

    topics = {
        name: replace(
            topic,
            partitions=tuple(
                replace(
                    p,
                    replicas=renamed(p.replicas),
                    isr=renamed(p.isr),
                    leader=None if p.leader is None else 100 + named[p.leader],
                )
                for p in topic.partitions
            ),
        )
        for name, topic in cluster.topics.items()
    }
    one, other = plan(cluster, PlanRequest(BALANCE)), plan(ClusterTopology(brokers, topics), PlanRequest(BALANCE))
    assert [p.code for p in one.problems] == [p.code for p in other.problems]
    assert (one.proof and one.proof.moved) == (other.proof and other.proof.moved)


RACKS_OF = [(101, 100, 100), (200, 50, 50), (1, 1, 1), (7,), (2, 2), (3, 2)]


@pytest.mark.parametrize(
    ("sizes", "factor"), [(sizes, factor) for sizes in RACKS_OF for factor in (1, 3, 5) if factor <= sum(sizes)]
)
def test_racks_of_any_size__every_partition_is_spread_as_evenly_as_they_allow(
    sizes: tuple[int, ...], factor: int
) -> None:
    own = [broker(1000 * rack + n, "abc"[rack], total=10**9) for rack, many in enumerate(sizes) for n in range(many)]
    ids = [one.id for one in own]
    placed = [[ids[(7 * n + k) % len(ids)] for k in range(factor)] for n in range(400)]
    planned = plan(topology({"t": placed}, own), PlanRequest(BALANCE))
    assert planned.problems == ()
    assert planned.proof is not None
    assert planned.proof.exact
    target = {row.partition: row.target for row in planned.rows}
    held = dict.fromkeys(ids, 0)
    for number, before in enumerate(placed):
        replicas = target.get(number, tuple(before))
        per_rack = [sum(id_ // 1000 == rack for id_ in replicas) for rack in range(len(sizes))]
        assert sum(min(1, own) for own in per_rack) == min(factor, len(sizes))
        for rack, many in enumerate(sizes):
            assert per_rack[rack] <= -(-factor // len(sizes)) or min(sizes) < -(-factor // len(sizes))
            assert per_rack[rack] <= many
        for id_ in replicas:
            held[id_] += 1
    for rack in range(len(sizes)):
        inside = [many for id_, many in held.items() if id_ // 1000 == rack]
        assert max(inside) - min(inside) <= 1


def test_a_dead_broker_that_is_not_drained__keeps_what_it_has_and_gets_nothing() -> None:
    own = [broker(1), broker(2), broker(3), broker(4, alive=False), broker(5), broker(6)]
    cluster = topology({"t": [[4, 2, 3], [4, 5, 6], [1, 2, 3]] * 4}, own)
    for request in (PlanRequest(BALANCE), PlanRequest(ADD, (6,)), PlanRequest(DRAIN, (3,))):
        planned = plan(cluster, request)
        assert planned.problems == ()
        for row in planned.rows:
            assert (4 in row.current) == (4 in row.target)
    emptied = plan(cluster, PlanRequest(DRAIN, (4,)))
    assert len(emptied.rows) == 8
    assert not [row for row in emptied.rows if 4 in row.target]


PARTITIONS = 3_000


@pytest.mark.parametrize("name", CASES)
def test_the_least_is_moved_and_every_rule_kept(name: str) -> None:
    found = measured(case(name, PARTITIONS))
    assert found.moved == found.bound > 0
    assert found.again == found.rack_violations == 0
    assert not found.broken
    if found.evens:
        assert found.uneven <= 1
        assert found.leaders_uneven is not None
        assert found.leaders_uneven <= 1


GENERATED_CLUSTER = topology({"t": [[1, 2, 3], [3, 1, 2], [4, 5, 6]] * 9, "u": [[1, 2]]})


def test_a_drain__all_partitions_of_its_topics_are_placed_anew() -> None:
    request = PlanRequest(DRAIN, (3,), accept_fewer_racks=True)
    left = {id_: rack for id_, rack in RACKS.items() if id_ != 3}
    drawn = zlib.crc32(b"t")
    anew = assign_replicas(left, 27, 3, start=drawn % 5, shift=drawn // 5 % 5)
    held = [set(partition.replicas) for partition in GENERATED_CLUSTER.topics["t"].partitions]
    expected = sum(10 * len(set(row) - old) for row, old in zip(anew.tolist(), held, strict=True))
    found = generated_bytes(plan(GENERATED_CLUSTER, request).rows, GENERATED_CLUSTER, request)
    assert found == expected > 180  # which is what the drain itself copies


def test_one_broker_is_left() -> None:
    cluster = topology({"t": [[1], [2]]}, [broker(1, "a"), broker(2, "a")])
    request = PlanRequest(DRAIN, (2,))
    assert generated_bytes(plan(cluster, request).rows, cluster, request) == 10


@pytest.mark.parametrize("mode", [SET_RF, BALANCE])
def test_what_generate_does_not_do_or_nothing_to_move__has_no_figure(mode: str) -> None:
    request = PlanRequest(mode, factor=2)
    assert (
        generated_bytes(plan(GENERATED_CLUSTER, request).rows if mode == SET_RF else (), GENERATED_CLUSTER, request)
        is None
    )


def test_unknown_sizes_or_mixed_racks__have_no_figure() -> None:
    request = PlanRequest(ADD, (6,), ignore_racks=False)
    rows = plan(GENERATED_CLUSTER, PlanRequest(DRAIN, (3,), accept_fewer_racks=True)).rows
    partitions = tuple(replace(p, size_bytes=None) for p in GENERATED_CLUSTER.topics["t"].partitions)
    unsized = {**GENERATED_CLUSTER.topics, "t": replace(GENERATED_CLUSTER.topics["t"], partitions=partitions)}
    assert generated_bytes(rows, replace(GENERATED_CLUSTER, topics=unsized), request) is None
    mixed = {**GENERATED_CLUSTER.brokers, 6: replace(GENERATED_CLUSTER.brokers[6], rack=None)}
    assert generated_bytes(rows, replace(GENERATED_CLUSTER, brokers=mixed), request) is None


SIX = {0: "rack1", 1: "rack3", 2: "rack3", 3: "rack2", 4: "rack2", 5: "rack1"}


def test_brokers_of_racks_alternate() -> None:
    assert alternate_racks(SIX) == (0, 3, 1, 5, 4, 2)


def test_the_example_with_racks_of_equal_size() -> None:
    found = assign_replicas(SIX, 12, 3, start=0, shift=0)
    assert [tuple(row) for row in found.tolist()] == [
        (0, 3, 1),
        (3, 1, 5),
        (1, 5, 4),
        (5, 4, 2),
        (4, 2, 0),
        (2, 0, 3),
        (0, 4, 2),
        (3, 2, 0),
        (1, 0, 3),
        (5, 3, 1),
        (4, 1, 5),
        (2, 5, 4),
    ]


def test_the_example_with_racks_of_different_size() -> None:
    found = assign_replicas({0: "rack1", 1: "rack2", 2: "rack2"}, 3, 2, start=0, shift=0)
    assert found.tolist() == [[0, 1], [1, 0], [2, 0]]


@pytest.mark.parametrize("factor", [0, 7])
def test_a_factor_that_no_cluster_has_brokers_for(factor: int) -> None:
    with pytest.raises(ValueError, match=f"replication factor {factor} with 6 brokers"):
        assign_replicas(SIX, 1, factor, start=0, shift=0)
