"""Every mode on random clusters: what comes out is what was asked for, moves the least, and is at rest afterwards."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.exact import exact
from kafkadash.domain.planner.request import (
    ADD,
    BALANCE,
    DRAIN,
    LEADERS,
    REPAIR_RACKS,
    REPLACE,
    SET_RF,
    PlanRequest,
)
from kafkadash.domain.planner.topology import Partition, Topology
from kafkadash.domain.problem import ProblemCode
from kafkadash.domain.rack_spread import spread
from tests.domain.moved import moved
from tests.domain.topologies import broker, clusters, topology


def asked_of(cluster: Topology, mode: str) -> PlanRequest:
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
    cluster: Topology, wanted: tuple[str, int | None, bool]
) -> None:
    mode, factor, rebalance = wanted
    request = replace(asked_of(cluster, mode), factor=factor, rebalance=rebalance and mode != LEADERS)
    planned = exact(cluster, request)
    if planned.problems:
        assert {problem.code for problem in planned.problems} == {ProblemCode.TOO_FEW_BROKERS}
        return
    rules = check(planned.rows, cluster, Asked.of_request(request), None, planned.proof)
    assert [(rule.name, rule.problems) for rule in rules if rule.passed is False] == []
    if planned.proof is not None:
        # Each empty replica is taken for a byte while placing, so that it does not move for nothing.
        empty = sum(len(p.replicas) for topic in cluster.topics.values() for p in topic.partitions if not p.size_bytes)
        assert 0 <= planned.proof.moved - planned.proof.lowest <= empty
        assert [rule.figure for rule in rules if rule.name == "least movement"] != []
    if mode == SET_RF and rebalance:
        return  # a leader has to stay while replicas are dropped, and may move once they are
    again = exact(moved(cluster, planned.rows), request)
    assert [row for row in again.rows if row.adding] == []
    if mode != ADD:  # whose new replicas may lead from then on
        assert again.rows == ()


@given(clusters(racks=True))
def test_repair__leaves_no_violation_that_can_be_mended_and_touches_nothing_else(cluster: Topology) -> None:
    request = PlanRequest(REPAIR_RACKS)
    planned = exact(cluster, request)
    racks = cluster.racks
    many = len(set(racks.values()))

    def violated(clusters_: Topology) -> set[tuple[str, int]]:
        return {
            (name, p.partition)
            for name, topic in clusters_.topics.items()
            for p in topic.partitions
            if spread(p.replicas, racks, many).violates
        }

    before, after = violated(cluster), violated(moved(cluster, planned.rows))
    assert {(row.topic, row.partition) for row in planned.rows if row.adding} <= before or not racks
    sizes = Counter(racks.values())
    if sizes and min(sizes.values()) >= 4:  # else a rack may have too few brokers for its share
        assert after == set()


def test_set_rf__down__the_leader_stays_and_those_out_of_sync_go_first() -> None:
    own = [broker(n) for n in range(1, 5)]
    cluster = topology({"t": [[1, 2, 3], [2, 3, 4]]}, own)
    behind = Partition(0, (1, 2, 3), (2, 3), 2, 10)
    cluster = replace(cluster, topics={"t": replace(cluster.topics["t"], partitions=(behind,))})
    [row] = exact(cluster, PlanRequest(SET_RF, factor=1)).rows
    assert row.target == (2,)
    [row] = exact(cluster, PlanRequest(SET_RF, factor=2)).rows
    assert set(row.target) == {2, 3}


def test_balance__a_partition_that_moves_already__is_left_out_and_named() -> None:
    cluster = topology({"t": [[1, 2], [1, 2], [1, 2], [1, 2]]})
    first = replace(cluster.topics["t"].partitions[0], moving=True)
    topic = replace(cluster.topics["t"], partitions=(first, *cluster.topics["t"].partitions[1:]))
    planned = exact(replace(cluster, topics={"t": topic}), PlanRequest(BALANCE))
    assert 0 not in {row.partition for row in planned.rows}
    assert str(planned.notices[0]).startswith("t-0 is being reassigned already")


def counts(cluster: Topology, rows: tuple[Row, ...]) -> Counter[int]:
    return Counter(b for t in moved(cluster, rows).topics.values() for p in t.partitions for b in p.replicas)


def test_add__only_the_new_broker_receives_until_it_has_its_share() -> None:
    own = [broker(n, "a") for n in range(1, 5)]
    cluster = topology({"t": [[1, 2, 3]] * 8}, own)
    planned = exact(cluster, PlanRequest(ADD, brokers=(4,)))
    assert {b for row in planned.rows for b in row.adding} == {4}
    assert counts(cluster, planned.rows) == {1: 6, 2: 6, 3: 6, 4: 6}
    assert planned.proof is not None
    assert planned.proof.exact
    assert planned.proof.moved == 60


@pytest.mark.parametrize(("pattern", "excluded", "topics"), [("o.*", "", {"orders"}), ("", "o.*", {"users", "no"})])
def test_topics__are_chosen_by_the_whole_name(pattern: str, excluded: str, topics: set[str]) -> None:
    cluster = topology({"orders": [[1, 2], [1, 2]], "users": [[1, 2], [1, 2]], "no": [[1, 2]]})
    request = PlanRequest(DRAIN, (1,), pattern=pattern, excluded=excluded, accept_fewer_racks=True)
    assert {row.topic for row in exact(cluster, request).rows} == topics


def test_most_replicas__leaves_no_room__says_the_numbers() -> None:
    cluster = topology({"t": [[1, 2]] * 9})
    [problem] = exact(cluster, PlanRequest(BALANCE, most_replicas=2)).problems
    assert str(problem).startswith("With at most 2 replicas on a broker there is room for 12, and there are 18.")


def test_set_rf__down__of_many_partitions__is_as_even_as_dropping_alone_allows() -> None:
    own = [broker(n, "abc"[n % 3]) for n in range(30)]
    placed = [[n % 30, (n + 1 + n % 7) % 30, (n + 11 + n % 5) % 30] for n in range(3_000)]
    cluster = topology({"t": placed}, own)
    planned = exact(cluster, PlanRequest(SET_RF, factor=2))
    assert not any(row.adding for row in planned.rows)
    after = counts(cluster, planned.rows)
    assert after.total() == 6_000
    assert max(after.values()) - min(after.values()) <= 2
    assert [notice.code for notice in planned.notices] == [ProblemCode.UNEVEN]
    assert all(row.target[0] == row.current[0] for row in planned.rows)


def test_balance__with_eps__brings_disks_within_it_and_is_at_rest_afterwards() -> None:
    own = [broker(n, "abc"[n % 3], total=10**9, used=0) for n in range(12)]
    cluster = topology({"t": [[3 * (n % 3), 1 + 3 * (n % 4), 2 + 3 * (n % 2)] for n in range(240)]}, own)
    topic = cluster.topics["t"]
    sized = tuple(replace(p, size_bytes=1000 + 7919 * p.partition % 5000) for p in topic.partitions)
    cluster = replace(cluster, topics={"t": replace(topic, partitions=sized)})
    request = PlanRequest(BALANCE, eps=0.05, disk_limit=0.9)
    planned = exact(cluster, request)
    assert planned.proof is not None
    assert planned.proof.ratio is not None
    assert planned.proof.ratio < 1.1
    assert planned.proof.outside == {}
    rules = check(planned.rows, cluster, Asked.of_request(request), None, planned.proof)
    assert {rule.name: rule.passed for rule in rules if not rule.passed} == {}
    assert "disks within eps" in {rule.name for rule in rules}
    assert exact(moved(cluster, planned.rows), request).rows == ()


def test_empty_partitions__are_proven_in_bytes_of_which_they_have_none() -> None:
    cluster = topology({"t": [[1, 2], [1, 2]], "u": [[1, 3]]}, size=0)
    planned = exact(cluster, PlanRequest(DRAIN, (1,)))
    assert len(planned.rows) == 3
    assert planned.proof is not None
    assert (planned.proof.moved, planned.proof.bound, planned.proof.exact) == (0, 0, True)


def test_a_drain_of_some_topics__leaves_those_that_were_not_asked_for() -> None:
    cluster = topology({"t": [[1, 2]], "u": [[1, 3]]})
    request = PlanRequest(DRAIN, (1,), excluded="u")
    planned = exact(cluster, request)
    assert [row.name for row in planned.rows] == ["t-0"]
    rules = check(planned.rows, cluster, Asked.of_request(request), None, planned.proof)
    assert [rule.name for rule in rules if not rule.passed] == []


def test_leaders__take_no_replica_from_anybody_however_few_a_broker_may_have() -> None:
    cluster = topology({"t": [[1, 2], [1, 2]]})
    request = PlanRequest(LEADERS, most_replicas=1)
    planned = exact(cluster, request)
    assert len(planned.rows) == 1
    rules = check(planned.rows, cluster, Asked.of_request(request), None, planned.proof)
    assert [rule.name for rule in rules if not rule.passed] == []


def test_repair__keeps_the_maximum_of_replicas_on_a_broker() -> None:
    own = [broker(1, "a"), broker(2, "a"), broker(3, "b"), broker(4, "b")]
    cluster = topology({"t": [[1, 2]] * 4, "u": [[3]]}, own)
    planned = exact(cluster, PlanRequest(REPAIR_RACKS, most_replicas=3))
    assert planned.problems == ()
    after = counts(cluster, planned.rows)
    assert max(after.values()) <= 3
    assert after[3] + after[4] == 5


def test_what_cannot_be_even__is_left_as_it_is_where_that_is_no_worse() -> None:
    own = [broker(n, rack) for n, rack in enumerate("cdabcd")]
    placed = [[4, 1, 3, 2], [5, 2, 4, 3], [1, 0, 3], [2, 3, 0, 1]]
    cluster = topology({"t": placed, "u": [[4], [3, 2, 5, 4], [5, 0, 3]]}, own)
    request = PlanRequest(BALANCE)
    planned = exact(cluster, request)
    again = exact(moved(cluster, planned.rows), request)
    assert [row for row in again.rows if row.adding] == []
