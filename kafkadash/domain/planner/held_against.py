"""A plan held against what was asked for, and against its proof: no solver, and nothing that the planner summed up.

The demand is made anew of request and topology, what the rows add and remove follows from the live assignment, and the
bound is what the prices of the certificate come to. Prices cannot cheat: made up ones only ever prove less.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.certificate import bound
from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Ints
from kafkadash.domain.planner.disk_balance import LACKS, STUCK
from kafkadash.domain.planner.disk_bound import disk_bound
from kafkadash.domain.planner.modes import Case, TooFew, case_of, demand_of
from kafkadash.domain.planner.request import BALANCE, LEADERS, PlanRequest, Proof
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.refusals import checked as said
from kafkadash.domain.rule import Rule
from kafkadash.domain.wording import count, size

MOST_PROBLEMS = 100


def demand_rules(rows: Sequence[Row], topology: Topology, request: PlanRequest, proof: Proof | None) -> list[Rule]:
    """Of a plan that was made for this request: only what was asked, racks, counts, least movement."""
    case = case_of(topology, request)
    try:
        demand = as_proven(case, demand_of(case.columns, case.aim), proof)
    except TooFew as few:
        problem = said.NO_PLAN_MEETS_IT.cause(partitions=count(int(few.rows.sum()), "partition"))
        return [Rule("only what was asked", passed=False, figure="", problems=(problem,))]
    made, strangers = _made(case, demand, rows)
    only = [*strangers, *_disallowed(case, demand, made, request)]
    return [
        Rule("only what was asked", not only, f"{max(0, len(rows) - len(only)):,} of {len(rows):,}", _first(only)),
        _racks(case, demand, made),
        _counts(case, demand, made),
        *([] if proof is None else [_least(case, demand, made, proof, request)]),
        *([] if proof is None or proof.disk_bound is None else [_disks(case, demand, made, proof, request)]),
    ]


def least_for_disks(case: Case, demand: Demand, request: PlanRequest, outside: Mapping[int, str]) -> int | None:
    """Bytes that balancing the disks takes at the least; None where it was not asked for."""
    if not balances_disks(request) or request.eps is None:
        return None
    above, below = (case.columns.places([b for b, why in outside.items() if why == one]) for one in (STUCK, LACKS))
    return disk_bound(demand, demand.bytes, bytes_beside(case), demand.receives, request.eps, above, below)


def balances_disks(request: PlanRequest) -> bool:
    """Where only what was asked for may move, disks are filled as evenly as that allows."""
    return request.eps is not None and (request.mode == BALANCE or request.rebalance)


def bytes_beside(case: Case) -> Ints:
    """B: bytes on each broker of partitions that are not planned."""
    load = np.zeros(len(case.columns.ids), np.int64)
    held, costs = case.whole.held[~case.chosen], case.whole.costs()[~case.chosen]
    rows, columns = np.nonzero(held >= 0)
    np.add.at(load, held[rows, columns], costs[rows])
    return load


@dataclass(frozen=True, slots=True)
class _Made:
    """``counts`` P×R and B: replicas per rack and partition, and per broker, at the end."""

    answer: Answer
    in_racks: Ints
    on_brokers: Ints


def as_proven(case: Case, demand: Demand, proof: Proof | None) -> Demand:
    """With the wider bounds that the proof names: that nothing more even could be had is not proven here."""
    if proof is None or not proof.widened:
        return demand
    least, most = demand.least.copy(), demand.most.copy()
    places = {int(id_): place for place, id_ in enumerate(case.columns.ids)}
    for broker, (low, high) in proof.widened.items():
        if broker in places:
            least[places[broker]] = min(low, least[places[broker]])
            most[places[broker]] = max(high, most[places[broker]])
    return replace(demand, least=least, most=most)


def _made(case: Case, demand: Demand, rows: Sequence[Row]) -> tuple[_Made, list[str]]:
    """What the rows come to, and those that are of no partition that was to be planned."""
    columns = case.columns
    targets = {(row.topic, row.partition): row for row in rows}
    places = {int(id_): place for place, id_ in enumerate(columns.ids)}
    stays = columns.held >= 0
    width = max((len(row.target) for row in rows), default=0)
    new = np.full((len(columns.rows), width), NOBODY, np.int64)
    known = 0
    for index, (topic, partition) in enumerate(columns.rows):
        row = targets.get((topic.name, partition.partition))
        if row is None:
            continue
        known += 1
        for column, broker in enumerate(partition.replicas):
            stays[index, column] = broker in row.target
        added = [places[broker] for broker in row.target if broker not in partition.replicas and broker in places]
        new[index, : len(added)] = added
    strangers: list[str] = []
    if known < len(targets):
        planned = {(topic.name, partition.partition) for topic, partition in columns.rows}
        strangers = [said.ROW_OUTSIDE.cause(row=row.name) for key, row in targets.items() if key not in planned]
    answer = Answer(stays, new)
    in_racks = demand.stayed_in_racks(stays) + demand.in_racks(new)
    return _Made(answer, in_racks, answer.counts(demand)), strangers


def _disallowed(case: Case, demand: Demand, made: _Made, request: PlanRequest) -> Iterator[str]:
    """Replicas that had to stay, had to leave, or went where none may go."""
    columns = case.columns
    for row, place in zip(*np.nonzero(demand.must_stay & ~made.answer.stays), strict=True):
        broker = int(columns.ids[demand.held[row, place]])
        yield said.ROW_TAKES_WHAT_STAYS.cause(row=_name(case, row), broker=broker)
    for row, place in zip(*np.nonzero(made.answer.stays & ~demand.may_stay & (demand.held >= 0)), strict=True):
        broker = int(columns.ids[demand.held[row, place]])
        yield said.ROW_KEEPS_WHAT_LEAVES.cause(row=_name(case, row), broker=broker)
    new = made.answer.new
    for row, place in zip(*np.nonzero((new >= 0) & ~demand.receives[new]), strict=True):
        yield said.ROW_ON_LEFT_OUT.cause(row=_name(case, row), brokers=int(columns.ids[new[row, place]]))
    if request.mode == LEADERS:
        return
    wrong = (made.answer.stays.sum(axis=1) + np.count_nonzero(new >= 0, axis=1)) != demand.factors
    for row in np.flatnonzero(wrong):
        yield said.ROW_WITH_WRONG_FACTOR.cause(row=_name(case, row), factor=int(demand.factors[row]))


def _racks(case: Case, demand: Demand, made: _Made) -> Rule:
    name, columns = "spread over racks", case.columns
    total = len(columns.rows)
    if len(columns.racks) < 2:
        return Rule(name, passed=True, figure="no racks")
    bad = (made.in_racks < demand.rack_least) | (made.in_racks > demand.rack_most)
    problems = []
    for row in np.flatnonzero(np.logical_or.reduce(bad, axis=1)):
        rack = int(np.flatnonzero(bad[row])[0])
        low, high = int(demand.rack_least[row, rack]), int(demand.rack_most[row, rack])
        wanted = f"{low}" if low == high else f"{low} to {high}"
        held = count(int(made.in_racks[row, rack]), "replica")
        problems.append(
            said.ROW_UNEVEN_IN_RACK.cause(row=_name(case, row), held=held, rack=columns.racks[rack], wanted=wanted)
        )
    return Rule(name, not problems, f"{total - len(problems):,} of {total:,}", _first(problems))


def _counts(case: Case, demand: Demand, made: _Made) -> Rule:
    """Replicas of each broker within what was asked for, those included that are not planned."""
    on, beside = made.on_brokers, case.aim.beside
    problems = [
        said.BROKER_OUT_OF_BOUNDS.cause(
            broker=int(case.columns.ids[broker]),
            replicas=count(int(on[broker] + beside[broker]), "replica"),
            low=int(demand.least[broker] + beside[broker]),
            high=int(demand.most[broker] + beside[broker]),
        )
        for broker in np.flatnonzero((on < demand.least) | (on > demand.most))
    ]
    return Rule("counts", not problems, f"{int((on + beside).sum()):,} replicas", _first(problems))


def _least(case: Case, demand: Demand, made: _Made, proof: Proof, request: PlanRequest) -> Rule:
    """The bound is what the prices come to, and the bytes are what the rows move."""
    prices = np.array([proof.prices.get(int(id_), 0) for id_ in case.columns.ids], np.int64)
    demand = replace(demand, bytes=case.columns.weights())
    proven, moved = bound(demand, prices), made.answer.moved(demand)
    problems = []
    if proven != proof.bound:
        problems.append(said.BOUND_DIFFERS.cause(proven=f"{proven:,} B", report=f"{proof.bound:,} B"))
    disks = least_for_disks(case, demand, request, proof.outside)
    if disks != proof.disk_bound:
        known = f"{disks:,} B" if disks is not None else "none"
        problems.append(said.BOUND_DIFFERS.cause(proven=known, report=f"{proof.disk_bound or 0:,} B"))
    if moved != proof.moved:
        problems.append(said.MOVED_DIFFERS.cause(rows=f"{moved:,} B", report=f"{proof.moved:,} B"))
    return Rule("least movement", not problems, f"{size(moved)}, bound {size(proof.lowest)}", tuple(problems))


def _disks(case: Case, demand: Demand, made: _Made, proof: Proof, request: PlanRequest) -> Rule:
    """Within eps of the mean of their rack, but for those that the proof says could not be."""
    load = bytes_beside(case)
    for which, brokers in ((made.answer.stays, demand.held), (made.answer.new >= 0, made.answer.new)):
        rows, columns = np.nonzero(which)
        np.add.at(load, brokers[rows, columns], demand.bytes[rows])
    eps, problems = request.eps or 0.0, []
    for rack in range(demand.racks):
        judged = np.flatnonzero((demand.rack_of == rack) & demand.receives)
        mean = load[judged].mean() if len(judged) else 0.0
        for broker in judged[np.abs(load[judged] - mean) > eps * mean + 1]:
            id_ = int(case.columns.ids[broker])
            if id_ not in proof.outside:
                held, wanted = size(int(load[broker])), size(int(mean))
                problems.append(said.BROKER_NOT_WITHIN_EPS.cause(broker=id_, held=held, mean=wanted, eps=100 * eps))
    return Rule("disks within eps", not problems, f"{100 * eps:g} %", _first(problems))


def _name(case: Case, row: np.integer[Any]) -> str:
    topic, partition = case.columns.rows[row]
    return f"{topic.name}-{partition.partition}"


def _first(problems: Sequence[str]) -> tuple[str, ...]:
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], said.MORE_FAULTS.cause(more=more)) if more > 0 else tuple(problems)
