"""A request planned with the least bytes: its demand is solved, placed, led, and proven."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from kafkadash.domain.plan import Row
from kafkadash.domain.planner import wanting
from kafkadash.domain.planner.certificate import bound, prices_of
from kafkadash.domain.planner.columns import UNKNOWN, Columns
from kafkadash.domain.planner.demand import NOBODY, Answer, Flags, Ints
from kafkadash.domain.planner.held_against import least_for_disks
from kafkadash.domain.planner.leader_flow import HAS_IT, KEPT, NEW, leaders
from kafkadash.domain.planner.modes import Case, TooFew, case_of, demand_of
from kafkadash.domain.planner.placed import Solved, fitted, widened
from kafkadash.domain.planner.planned import Planned, answer, arriving, disk_notices, overflows
from kafkadash.domain.planner.request import BALANCE, LEADERS, PlanRequest, Proof
from kafkadash.domain.planner.topology import Partition, Topology
from kafkadash.domain.problem import Problem

Say = Callable[[str, float], None]
"""Is told what is being done, and the share of the whole that is done."""


def exact(topology: Topology, request: PlanRequest, say: Say | None = None) -> Planned:
    """The plan, or all that is in its way. The request must have been judged (``request_problems``)."""
    tell = say or (lambda _stage, _fraction: None)
    case = case_of(topology, request)
    problems = list(wanting.moving_that_must(case, request))
    if problems:
        return answer((), problems, [])
    if request.mode == LEADERS:
        return _only_leaders(case)
    if not len(case.columns.rows):
        left = wanting.left_on_down(topology, case, case.aim.beside, request)
        return answer((), [], [*wanting.idle(case, request), *wanting.left_out(case), *left])
    tell("placing replicas", 0.1)
    try:
        demand = demand_of(case.columns, case.aim)
    except TooFew as few:
        return answer((), list(wanting.too_few(case, few, request)), [])
    problems = [*wanting.too_full(case, demand, request), *wanting.lost_racks(case, demand, request)]
    if problems:
        return answer((), problems, [])
    solved = fitted(topology, case, demand, request)
    tell("proving that nothing moves less", 0.6)
    proof = _proof(case, solved, request)
    tell("choosing leaders", 0.85)
    rows = _rows(case, solved.answer, request)
    return _judged(topology, case, request, (solved, rows, proof))


def _proof(case: Case, solved: Solved, request: PlanRequest) -> Proof:
    """Against what was asked for, wider where that could not be had; in bytes, of which an empty replica has none."""
    found, ids = solved.answer, case.columns.ids
    costly = widened(solved.demand, solved.met)
    wide = replace(costly, bytes=case.columns.weights())
    prices = prices_of(wide, found.stays, found.new)
    if prices is None:
        prices = prices_of(costly, found.stays, found.new)
    if prices is None:
        prices = np.zeros(wide.brokers, np.int64)
    changed = np.flatnonzero((wide.least != solved.demand.least) | (wide.most != solved.demand.most))
    moved_rows = np.count_nonzero(found.new >= 0, axis=1) > 0
    outside = {int(ids[one.broker]): one.why for one in solved.outside or ()}
    return Proof(
        moved=found.moved(wide),
        bound=bound(wide, prices),
        prices={int(ids[b]): int(prices[b]) for b in np.flatnonzero(prices)},
        widened={int(ids[b]): (int(wide.least[b]), int(wide.most[b])) for b in changed},
        disk_bound=least_for_disks(case, wide, request, outside),
        estimated=int((moved_rows & (case.columns.sizes == UNKNOWN)).sum()),
        outside=outside,
    )


def _judged(
    topology: Topology, case: Case, request: PlanRequest, made: tuple[Solved, list[tuple[Row, Partition]], Proof | None]
) -> Planned:
    """With what is to be said about it; over its disk limit it is no plan."""
    solved, rows, proof = made
    notices = [
        *wanting.idle(case, request),
        *wanting.left_out(case),
        *wanting.uneven(case, solved.demand, solved.met),
        *wanting.left_on_down(topology, case, solved.answer.counts(solved.met) + case.aim.beside, request),
        *wanting.silent(rows),
    ]
    notices += wanting.outside(case, solved.outside or ())
    problems: list[Problem] = []
    if request.disk_limit is not None:
        copied = arriving(rows)
        problems += overflows(copied, topology, request.disk_limit)
        notices += disk_notices(copied, topology, request.disk_limit)
    return answer((row for row, _ in rows), problems, notices, proof)


def _only_leaders(case: Case) -> Planned:
    nothing = Answer(case.columns.held >= 0, np.zeros((len(case.columns.rows), 0), np.int64))
    every = np.ones(len(case.columns.rows), np.bool_)
    rows = list(_ordered(case, _targets(case.columns, nothing), every))
    return answer((row for row, _ in rows), [], [*wanting.left_out(case), *wanting.silent(rows)])


def _rows(case: Case, found: Answer, request: PlanRequest) -> list[tuple[Row, Partition]]:
    """Rows that change something, with preferred leaders chosen among those that are open."""
    columns, targets = case.columns, _targets(case.columns, found)
    changed = _differ(columns.held, targets)
    if not request.leaders:
        open_ = np.zeros_like(changed)
    elif request.mode == BALANCE or request.rebalance:
        open_ = np.ones_like(changed)
    elif case.aim.strict:
        open_ = changed & (columns.held[:, 0] != targets[:, 0])
    else:
        open_ = changed
    return list(_ordered(case, targets, open_))


def _ordered(case: Case, targets: Ints, open_: Flags) -> Iterator[tuple[Row, Partition]]:
    """With the preferred leader first; of those that are open it may be another one."""
    columns = case.columns
    led = _led(case, targets, open_)
    rows = np.flatnonzero(_differ(columns.held, led))
    ids = np.append(columns.ids, -1)[led[rows]].tolist()
    for row, brokers in zip(rows.tolist(), ids, strict=True):
        topic, partition = columns.rows[row]
        target = tuple(broker for broker in brokers if broker >= 0)
        yield Row(topic.name, topic.id, partition.partition, partition.replicas, target), partition


def _differ(one: Ints, other: Ints) -> Flags:
    """P: whether the rows differ; columns that one of them does not have are empty."""
    width = max(one.shape[1], other.shape[1])
    wide = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=NOBODY) for part in (one, other)]
    found: Flags = np.logical_or.reduce(wide[0] != wide[1], axis=1)
    return found


def _led(case: Case, targets: Ints, open_: Flags) -> Ints:
    """``targets`` with the chosen leader in the first column; what came before it moves back by one."""
    if not open_.any():
        return targets
    columns, whole = case.columns, case.whole
    brokers = len(columns.ids)
    led = np.bincount(whole.held[~case.chosen, 0], minlength=brokers)
    led += np.bincount(targets[~open_, 0], minlength=brokers)
    some = targets[open_]
    able = np.where(columns.alive[some] & (some >= 0), some, NOBODY)
    able = np.where(able.max(axis=1, keepdims=True) >= 0, able, some)  # all away: one of them nevertheless
    held = columns.held[open_]
    has_it = np.logical_or.reduce(some[:, :, None] == held[:, None, :], axis=2)
    costs = np.where(some == held[:, :1], KEPT, np.where(has_it, HAS_IT, NEW))
    chosen = leaders(able, costs, led, columns.alive & ~case.aim.leaving)
    order = np.argsort(np.where(np.arange(some.shape[1]) == chosen[:, None], -1, np.arange(some.shape[1])), axis=1)
    result = targets.copy()
    result[open_] = np.take_along_axis(some, order, axis=1)
    return result


def _targets(columns: Columns, found: Answer) -> Ints:
    """P×N: places of brokers. A new replica takes the place of one that leaves, so that what stays keeps its place in
    the order; below 0 at the end where there are fewer.
    """
    held, stays, new = columns.held, found.stays, found.new
    gone = (held >= 0) & ~stays
    targets = np.full((len(held), held.shape[1] + new.shape[1]), -1, np.int64)
    targets[:, : held.shape[1]] = np.where(stays, held, -1)
    rank = np.cumsum(gone, axis=1) - 1
    many = (new >= 0).sum(axis=1)
    rows, places = np.nonzero(gone & (rank < many[:, None]))
    targets[rows, places] = new[rows, rank[rows, places]]
    filled = np.minimum(gone.sum(axis=1), many)
    rows, places = np.nonzero((np.arange(new.shape[1]) >= filled[:, None]) & (new >= 0))
    targets[rows, held.shape[1] + places - filled[rows]] = new[rows, places]
    order = np.argsort(targets < 0, axis=1, kind="stable")
    packed = np.take_along_axis(targets, order, axis=1)
    most = int((packed >= 0).sum(axis=1).max()) if len(packed) else 0
    return packed[:, :most]
