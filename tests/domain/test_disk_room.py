"""No broker is given more than it has room for, wherever the new replicas can be placed so; else the least over."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import lil_matrix

from kafkadash.domain.planner.certificate import bound, prices_of
from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Answer, Demand, Flags, Ints
from kafkadash.domain.planner.disk_room import within_room
from kafkadash.domain.planner.flow import NoFlow, least_violation
from tests.domain.small_demands import small_demand
from tests.domain.test_exact_flow import met


def arriving(demand: Demand, answer: Answer) -> Ints:
    """B: bytes of new replicas, by plain counting."""
    coming = np.zeros(demand.brokers, np.int64)
    for row in range(demand.partitions):
        for broker in answer.new[row]:
            if broker >= 0:
                coming[broker] += demand.bytes[row]
    return coming


def without(demand: Demand) -> tuple[Ints, Flags]:
    """No bound on a single replica, and all sizes known."""
    return np.full(demand.brokers, -1), np.ones(demand.partitions, np.bool_)


def small_case(seed: int) -> tuple[Demand, Answer, Ints] | None:
    """A placement of the exact flow, and rooms of which some are too small for it."""
    demand = small_demand(seed)
    if demand is None:
        return None
    try:
        answer = place(demand)
    except NoFlow:
        demand = least_violation(demand)
        answer = place(demand)
    chance = np.random.default_rng(seed)
    coming = arriving(demand, answer)
    room = (chance.permutation(coming) * chance.uniform(0.8, 2, demand.brokers)).astype(np.int64)
    room += int(coming.mean() * chance.choice([0.1, 0.5]))
    if seed % 2:  # so that something fits: what another placement needs, and a little more
        other, _ = within_room(demand, answer, room, *without(demand))
        room = (arriving(demand, other) * chance.uniform(1, 1.1, demand.brokers)).astype(np.int64)
    room[chance.random(demand.brokers) < 0.1] = -1
    return demand, answer, room


def least_over(demand: Demand, answer: Answer, room: Ints) -> int:
    """Bytes over the rooms that every placement with the same stays has at the least (HiGHS)."""
    rows = [row for row in range(demand.partitions) if (answer.new[row] >= 0).any()]
    pairs = [(n, b) for n, row in enumerate(rows) for b in demand.receivers if b not in demand.held[row]]
    many, brokers, racks = len(pairs), demand.brokers, demand.racks
    of_row, of_broker = lil_matrix((len(rows), many + brokers)), lil_matrix((brokers, many + brokers))
    of_rack, of_room = lil_matrix((len(rows) * racks, many + brokers)), lil_matrix((brokers, many + brokers))
    for place_, (n, b) in enumerate(pairs):
        of_row[n, place_] = of_broker[b, place_] = of_rack[n * racks + demand.rack_of[b], place_] = 1
        of_room[b, place_] = demand.bytes[rows[n]]
    for b in range(brokers):
        of_room[b, many + b] = -1
    new = np.count_nonzero(answer.new[rows] >= 0, axis=1)
    kept = np.bincount(demand.held[answer.stays], minlength=brokers)
    stayed = demand.stayed_in_racks(answer.stays)[rows]
    solved = milp(
        np.concatenate([np.zeros(many), np.ones(brokers)]),
        constraints=[
            LinearConstraint(of_row.tocsr(), new, new),
            LinearConstraint(of_broker.tocsr(), demand.least - kept, demand.most - kept),
            LinearConstraint(
                of_rack.tocsr(),
                (demand.rack_least[rows] - stayed).ravel(),
                (demand.rack_most[rows] - stayed).ravel(),
            ),
            LinearConstraint(of_room.tocsr(), -np.inf, np.where(room < 0, np.inf, room)),
        ],
        bounds=Bounds(np.zeros(many + brokers), np.concatenate([np.ones(many), np.full(brokers, np.inf)])),
        integrality=np.concatenate([np.ones(many), np.zeros(brokers)]),
    )
    assert solved.x is not None
    least: int = round(solved.fun)
    return least


@dataclass
class RoomTally:
    """Small clusters that were compared with another solver; those in which something fits, or was made to fit."""

    judged: int = 0
    fitting: int = 0
    repaired: int = 0


def compare_rooms(seeds: Iterable[int]) -> RoomTally:
    """Compare placements of small clusters with the least bytes over that an integer program finds.

    Where something fits it is found; where nothing does no placement is less over. Raises AssertionError.
    """
    tally = RoomTally()
    for seed in seeds:
        case = small_case(seed)
        if case is None or not (case[1].new >= 0).any():
            continue
        demand, answer, room = case
        placed, over = within_room(demand, answer, room, *without(demand))
        met(demand, placed)
        assert (placed.stays == answer.stays).all()
        assert placed.moved(demand) == answer.moved(demand)
        coming = arriving(demand, placed)
        assert (over == np.where(room < 0, 0, np.maximum(coming - room, 0))).all()
        least = least_over(demand, answer, room)
        assert int(over.sum()) == least, seed
        tally.judged += 1
        tally.fitting += not least
        tally.repaired += not least and bool(((arriving(demand, answer) > room) & (room >= 0)).any())
    return tally


def test_it_finds_every_placement_that_fits_and_else_the_least_over() -> None:
    """Of the first 100 tiny clusters; `make proof ARGS=planner` goes on."""
    tally = compare_rooms(range(100))
    assert (tally.judged, tally.fitting, tally.repaired) == (73, 41, 15)


@pytest.mark.parametrize("seed", range(1, 60, 2))
def test_the_proof_of_the_bytes_stays_true(seed: int) -> None:
    case = small_case(seed)
    if case is None:
        return
    demand, answer, room = case
    prices = prices_of(demand, answer.stays, answer.new)
    assert prices is not None
    placed, _ = within_room(demand, answer, room, *without(demand))
    assert bound(demand, prices) == placed.moved(demand)


def one_rack(sizes: list[int], brokers: int, factor: int = 1) -> tuple[Demand, Answer]:
    """All partitions of these sizes are new and go to the first brokers; counts are free."""
    count = len(sizes)
    each = np.full(count, factor, np.int64)
    demand = Demand(
        bytes=np.array(sizes, np.int64),
        factors=each,
        held=np.full((count, 1), -1, np.int64),
        may_stay=np.zeros((count, 1), np.bool_),
        must_stay=np.zeros((count, 1), np.bool_),
        rack_of=np.zeros(brokers, np.int64),
        receives=np.ones(brokers, np.bool_),
        least=np.zeros(brokers, np.int64),
        most=np.full(brokers, count, np.int64),
        rack_least=each[:, None],
        rack_most=each[:, None],
    )
    return demand, Answer(demand.may_stay, np.broadcast_to(np.arange(factor), (count, factor)).copy())


def test_a_replica_too_wide_for_every_directory_goes_where_one_is_wide_enough() -> None:
    demand, answer = one_rack([80, 30, 30], 2)
    placed, over = within_room(demand, answer, np.array([200, 90]), np.array([50, 90]), np.ones(3, np.bool_))
    assert not over.any()
    assert placed.new.tolist() == [[1], [0], [0]]


def test_what_fits_nowhere_is_told_per_broker() -> None:
    demand, answer = one_rack([80, 30], 2)
    _, over = within_room(demand, answer, np.array([100, 20]), np.array([70, 20]), np.ones(2, np.bool_))
    assert over.tolist() in ([10, 10], [10, 0])
    _, over = within_room(demand, answer, np.array([60, 20]), np.array([-1, -1]), np.ones(2, np.bool_))
    assert over.tolist() == [20, 10]


def test_what_is_not_known_is_not_judged() -> None:
    demand, answer = one_rack([80, 30], 2)
    none = np.array([-1, -1])
    same, over = within_room(demand, answer, none, none, np.ones(2, np.bool_))
    assert same is answer
    assert not over.any()
    same, over = within_room(demand, answer, np.array([40, 0]), none, np.array([False, True]))
    assert same is answer
    assert not over.any()


def test_counts_stay_as_they_are_where_exchanging_is_enough() -> None:
    demand, answer = one_rack([50, 40, 10, 5], 2)
    answer = replace(answer, new=np.array([[0], [0], [1], [1]]))
    placed, over = within_room(demand, answer, np.array([65, 65]), np.array([-1, -1]), np.ones(4, np.bool_))
    assert not over.any()
    assert answer.counts(demand).tolist() == placed.counts(demand).tolist() == [2, 2]
