"""Plans of random small clusters in every mode, and what another solver calls the least (``make proof`` does 600)."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.request import ADD, BALANCE, DRAIN, PlanRequest
from kafkadash.domain.planner.topology import Topology
from tests.domain.random_requests import compared, random_cluster
from tests.domain.topologies import broker, topology


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
    one, other = plan(cluster, PlanRequest(BALANCE)), plan(Topology(brokers, topics), PlanRequest(BALANCE))
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
