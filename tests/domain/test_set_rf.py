"""Other replication factors where not everybody is in sync: what is dropped, and that nothing is copied for that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.checker import Asked, check
from kafkadash.domain.plan import Row
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import SET_RF, PlanRequest
from kafkadash.domain.planner.topology import Broker, Partition, Topic, Topology

IDS = range(1, 8)


@st.composite
def lagging(draw: st.DrawFn, *, factors: st.SearchStrategy[int]) -> Topology:
    """Clusters in three racks of which some replicas are not in sync; one that is leads."""
    brokers = {id_: Broker(id_, "abc"[id_ % 3]) for id_ in IDS}
    partitions = []
    for number in range(draw(st.integers(1, 12))):
        replicas = tuple(draw(st.permutations(IDS))[: draw(factors)])
        in_sync = tuple(id_ for id_ in replicas if draw(st.booleans())) or replicas[:1]
        leader = draw(st.sampled_from(in_sync))
        partitions.append(Partition(number, replicas, in_sync, leader, draw(st.integers(0, 1000))))
    return Topology(brokers, {"t": Topic("t", tuple(partitions), "id-t")})


def planned(cluster: Topology, request: PlanRequest) -> Iterator[tuple[Row, Partition]]:
    """With no rule of the checker broken."""
    made = plan(cluster, request)
    assert made.problems == ()
    rules = check(made.rows, cluster, Asked.of_request(request), None, made.proof)
    assert [(rule.name, rule.problems) for rule in rules if rule.passed is False] == []
    of = {p.partition: p for p in cluster.topics["t"].partitions}
    return ((row, of[row.partition]) for row in made.rows)


@given(lagging(factors=st.just(4)), st.integers(1, 3))
def test_fewer_for_all__nothing_is_copied_and_those_in_sync_stay(cluster: Topology, factor: int) -> None:
    rows = list(planned(cluster, PlanRequest(SET_RF, factor=factor)))
    assert len(rows) == len(cluster.topics["t"].partitions)
    for row, partition in rows:
        assert row.adding == ()
        assert len(row.target) == factor
        assert partition.leader in row.target
        kept = len(set(row.target) & set(partition.isr))
        assert kept == min(factor, len(partition.isr))


@given(lagging(factors=st.integers(1, 5)), st.booleans())
def test_fewer_for_some_and_more_for_others__each_keeps_its_leader(cluster: Topology, rebalance: bool) -> None:
    for row, partition in planned(cluster, PlanRequest(SET_RF, factor=3, rebalance=rebalance)):
        assert len(set(row.target)) == 3
        if len(partition.replicas) > 3:
            assert partition.leader in row.target


def test_fewer__one_that_is_away_goes_first() -> None:
    brokers = {id_: Broker(id_, "abc"[id_ % 3], alive=id_ != 2) for id_ in IDS}
    topic = Topic("t", (Partition(0, (1, 2, 3), (1, 2, 3), 1, 10),))
    [(row, _)] = planned(Topology(brokers, {"t": topic}), PlanRequest(SET_RF, factor=2))
    assert row.target == (1, 3)
    several = replace(topic, partitions=(topic.partitions[0], Partition(1, (4,), (4,), 4, 10)))
    rows = planned(Topology(brokers, {"t": several}), PlanRequest(SET_RF, factor=2))
    assert next(row.target for row, partition in rows if partition.partition == 0) == (1, 3)
