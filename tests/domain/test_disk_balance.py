"""Disks within eps of the mean of their rack, every rule of the demand kept, and few bytes moved for it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Answer, Demand, Ints
from kafkadash.domain.planner.disk_balance import LACKS, LARGE, REST, STUCK, Balanced, balanced
from kafkadash.domain.planner.disk_bound import disk_bound
from kafkadash.domain.planner.disk_room import within_room
from kafkadash.domain.planner.flow import NoFlow
from tests.bench.planner_clusters import cluster
from tests.bench.planner_disks import arriving, carried_out
from tests.bench.planner_disks import demand as demand_of
from tests.domain.small_demands import small_demand
from tests.domain.small_disks import disks, least_balanced
from tests.domain.test_disk_bound import loose
from tests.domain.test_exact_flow import met

EPS = 0.05
THIRTY = np.arange(30) % 3
UNEVEN = np.concatenate([[0] * 7 + [1] * 2, THIRTY[:21]])


def nothing(demand: Demand) -> Ints:
    return np.zeros(demand.brokers, np.int64)


def loads(demand: Demand, answer: Answer) -> Ints:
    """B: bytes at the end, by plain counting."""
    total = nothing(demand)
    for row in range(demand.partitions):
        for broker in (*demand.held[row][answer.stays[row]], *(b for b in answer.new[row] if b >= 0)):
            total[broker] += demand.bytes[row]
    return total


def outside(demand: Demand, total: Ints, eps: float = EPS) -> set[int]:
    """Of those that receive."""
    found: set[int] = set()
    for rack in range(demand.racks):
        those = np.flatnonzero((demand.rack_of == rack) & demand.receives)
        mean = total[those].mean()
        found |= {int(b) for b in those if abs(total[b] - mean) > eps * mean + 1}
    return found


def stage(demand: Demand) -> Balanced:
    return balanced(demand, place(demand), demand.bytes, nothing(demand), demand.receives, EPS)


@pytest.mark.parametrize("rack_of", [THIRTY, UNEVEN], ids=["even racks", "racks of 14, 9 and 7"])
@pytest.mark.parametrize(("leaving", "empty"), [(0, 0), (3, 0), (0, 3)])
def test_a_cluster_comes_within_eps_for_little_more_than_the_bound(rack_of: Ints, leaving: int, empty: int) -> None:
    demand = demand_of(cluster(3000, 3, rack_of, empty=empty, one_topic_each=True), leaving)
    done = stage(demand)
    met(demand, done.answer)
    assert done.outside == ()
    assert outside(demand, loads(demand, done.answer)) == set()
    least = disk_bound(demand, demand.bytes, nothing(demand), demand.receives, EPS)
    assert least <= done.answer.moved(demand) <= 1.03 * least
    assert stage(carried_out(demand, done.answer)).answer.moved(demand) == 0


def test_what_is_within_eps_already_is_left_alone() -> None:
    demand = demand_of(cluster(300, 3, THIRTY))
    answer = place(demand)
    assert balanced(demand, answer, np.ones_like(demand.bytes), nothing(demand), demand.receives, 0.2).answer is answer


def test_only_what_leaves_moves_where_the_rest_must_stay() -> None:
    demand = demand_of(cluster(3000, 3, THIRTY, one_topic_each=True), 3, strict=True)
    answer = place(demand)
    done = stage(demand)
    met(demand, done.answer)
    assert done.answer.moved(demand) == answer.moved(demand)
    before, after = (outside(demand, loads(demand, one)) for one in (answer, done.answer))
    assert {one.broker for one in done.outside} == after
    assert {one.why for one in done.outside} <= {STUCK, LACKS}
    assert len(after) <= len(before)


def test_no_broker_is_given_more_than_it_has_room_for() -> None:
    demand = demand_of(cluster(3000, 3, THIRTY, one_topic_each=True), 3)
    usual = int(arriving(demand, place(demand)).mean())
    room = np.where(np.arange(demand.brokers) % 4 == 0, usual // 2, -1)
    widest = np.where(np.arange(demand.brokers) % 4 == 1, int(np.median(demand.bytes)), -1)
    free = arriving(demand, stage(demand).answer)
    assert ((free > room) & (room >= 0)).any()
    known = np.ones(demand.partitions, np.bool_)
    answer, over = within_room(demand, place(demand), room, widest, known)
    assert not over.any()
    done = balanced(demand, answer, demand.bytes, nothing(demand), demand.receives, EPS, room, widest)
    met(demand, done.answer)
    coming = arriving(demand, done.answer)
    assert (coming <= np.where(room < 0, coming, room)).all()
    rows, columns = np.nonzero(done.answer.new >= 0)
    bound = widest[done.answer.new[rows, columns]]
    assert ((bound < 0) | (demand.bytes[rows] <= bound)).all()
    assert {one.broker for one in done.outside} == outside(demand, loads(demand, done.answer))


def test_a_partition_larger_than_a_broker_may_hold_is_named() -> None:
    columns = cluster(3000, 3, THIRTY, one_topic_each=True)
    sizes = columns.sizes.copy()
    sizes[7] = sizes.sum()
    demand = demand_of(replace(columns, sizes=sizes))
    done = stage(demand)
    met(demand, done.answer)
    assert sorted((one.why, one.row) for one in done.outside if one.why != REST) == [(LARGE, 7)] * 3
    total = loads(demand, done.answer)
    assert {one.broker for one in done.outside} == outside(demand, total)
    least = disk_bound(demand, demand.bytes, nothing(demand), demand.receives, EPS)
    assert least <= done.answer.moved(demand) <= 1.03 * least
    others = [one.bytes for one in done.outside if one.why == REST]
    assert len(others) == 27
    assert max(others) < 1.15 * min(others)
    assert stage(carried_out(demand, done.answer)).answer.moved(demand) == 0


def test_tiny_clusters_against_the_best_there_is() -> None:
    """A few replicas each, where no step may fit; every rule is kept whatever they are."""
    possible = reached = best = 0
    for seed in range(120):
        demand = small_demand(seed)
        if demand is None:
            continue
        try:
            answer = place(demand)
        except NoFlow:
            continue
        beside, holds = disks(demand, seed)
        done = balanced(demand, answer, demand.bytes, beside, holds, 0.4)
        met(demand, done.answer)
        if demand.brokers * demand.partitions > 60:
            continue
        least = least_balanced(demand, beside, holds, 0.4)
        if least is None:
            continue
        possible += 1
        reached += all(one.why not in {STUCK, LACKS} for one in done.outside)
        best += done.answer.moved(demand) == least
    assert (possible, reached, best) == (34, 34, 30)


def test_counts_may_be_free() -> None:
    demand = loose(demand_of(cluster(2000, 3, THIRTY[:24], one_topic_each=True)))
    done = stage(demand)
    met(demand, done.answer)
    assert done.outside == ()
