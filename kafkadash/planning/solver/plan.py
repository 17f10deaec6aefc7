"""Entry point of planning in every mode, for the command, the child process and the pages.

A request is planned with the least bytes: its demand is solved, placed, led, and proven. Problems and notices say why a
request cannot be met, or not as evenly as wanted. Rows that were brought are compared by ``planning.solver.explicit``.

``leaders`` assigns leaders as evenly as the replicas allow, with as few changes as possible, by a flow of its own. A
partition is led by one of its replicas. Brokers are filled evenly first, at any price; then the present leader is
preferred to a replica that has the data, and that to one that has still to copy it. In a large cluster most partitions
keep their leader. So some are solved first, and the resulting prices of the brokers are offered to all: a partition
that would change its leader at them takes part in the next round. When there is none, the leaders of all partitions
together are optimal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kafkadash.changes.plan import PartitionMove, PlanErrorCode, UnfitReason
from kafkadash.core.messages import coded, first_names
from kafkadash.core.problems import InputProblem
from kafkadash.planning.kafka_json import ParsedFile
from kafkadash.planning.solver.certificate import BEYOND, compute_bound, find_shortest_distances, prices_of
from kafkadash.planning.solver.demand import (
    NOBODY,
    UNKNOWN,
    Flags,
    Ints,
    PlacementDemand,
    SolverAnswer,
    TopologyColumns,
)
from kafkadash.planning.solver.disk_balance import LARGE, REST, OutsideTarget
from kafkadash.planning.solver.explicit import MOST_NAMED, plan_explicitly, plan_unfinished
from kafkadash.planning.solver.flow import FlowArcs
from kafkadash.planning.solver.modes import ModeCase, TooFew, case_of, demand_of
from kafkadash.planning.solver.placement import SolvedDemand, fit_to_disks, widen_bounds
from kafkadash.planning.solver.request import (
    BALANCE,
    DRAIN,
    EXPLICIT,
    FINISH,
    LEADERS,
    PLANNED_MODES,
    REPLACE,
    PlanProof,
    PlanRequest,
)
from kafkadash.planning.solver.request_problems import (
    PlanAnswer,
    already_moving,
    build_planned,
    disk_notices,
    find_overflows,
    problems_of,
    sum_arriving,
    why_unfit,
)
from kafkadash.planning.solver.verification import least_for_disks
from kafkadash.planning.topology import ClusterTopology, PlannedPartition

KEPT, HAS_IT, NEW = 0, 1, 2
WORTH_IT = 5_000
"""Partitions; fewer are all looked at."""
OF_EACH, ROUNDS = 40, 20
"""Partitions of each broker that take part at first, beside twice as many as it leads too many."""


def choose_leaders(replicas: Ints, costs: Ints, led: Ints, leads: Flags) -> Ints:
    """P: the column of ``replicas`` that should lead.

    ``replicas`` P×N: places of brokers, below 0 where there are fewer. ``costs`` P×N: ``KEPT``, ``HAS_IT`` or ``NEW``.
    ``led`` B: what each broker leads besides. ``leads`` B: brokers that the mean is of (alive); others lead as little
    as possible. Counts differ by one at most wherever that can be had.
    """
    total = len(replicas) + int(led[leads].sum())
    mean, more = divmod(total, max(1, int(leads.sum())))
    low = np.where(leads, np.maximum(0, mean - led), 0)
    high = np.where(leads, np.maximum(0, mean + bool(more) - led), 0)
    dear = NEW * len(replicas) + 1  # one leader in a better place outweighs all that is kept
    every = _PlannedRows(replicas, costs, low, high, (0, dear, 3 * dear))
    found = _choose_by_pruning(every) if len(replicas) >= WORTH_IT else None
    return every.led(np.zeros(len(led), np.int64)) if found is None else found


@dataclass(frozen=True, slots=True)
class _PlannedRows:
    """Rows as ``choose_leaders`` takes them; ``low`` and ``high`` B: how many each broker should lead. ``prices``: of
    one up to ``low``, of one up to ``high``, and of one above.
    """

    replicas: Ints
    costs: Ints
    low: Ints
    high: Ints
    prices: tuple[int, int, int]

    def led(self, kept: Ints) -> Ints:
        """The columns, by a flow. ``kept`` B: partitions that a broker leads and that do not take part."""
        count, brokers = len(self.replicas), len(self.low)
        rows, columns = np.nonzero(self.replicas >= 0)
        supplies = np.zeros(count + brokers + 1, np.int64)
        supplies[:count] = 1
        supplies[-1] = -count
        arcs = FlowArcs(supplies)
        arcs.add(rows, count + self.replicas[rows, columns], 1, self.costs[rows, columns])
        sink = np.full(brokers, count + brokers)
        cheap = np.maximum(0, self.low - kept)
        rooms = (cheap, np.maximum(0, self.high - kept) - cheap, np.full(brokers, count))
        for room, price in zip(rooms, self.prices, strict=True):
            arcs.add(count + np.arange(brokers), sink, room, price)
        chosen = arcs.solved()[0] > 0
        found = np.zeros(count, np.int64)
        found[rows[chosen]] = columns[chosen]
        return found

    def only(self, which: Flags) -> _PlannedRows:
        return replace(self, replicas=self.replicas[which], costs=self.costs[which])

    def at(self, columns: Ints) -> Ints:
        """P: the brokers there."""
        found: Ints = self.replicas[np.arange(len(columns)), columns]
        return found


def _choose_by_pruning(every: _PlannedRows) -> Ints | None:
    """The columns, by a flow of some of the partitions; None where it takes them all."""
    brokers = len(every.low)
    first: Ints = np.where(every.replicas >= 0, every.costs, NEW + 1).argmin(axis=1)
    at = every.at(first)
    taking = _at_first(at, np.bincount(at, minlength=brokers), every.low)
    taking |= every.costs[np.arange(len(first)), first] != KEPT  # they change in any case, and are the first to be used
    for _ in range(ROUNDS):
        part, kept = every.only(taking), np.bincount(at[~taking], minlength=brokers)
        chosen = part.led(kept)
        potential = _compute_potentials(part, chosen, kept)
        if potential is None:
            return None
        offers = np.where(every.replicas >= 0, every.costs - potential[every.replicas], BEYOND)
        tempted = ~taking & (offers.min(axis=1) < offers[np.arange(len(first)), first])
        if not tempted.any():
            first[taking] = chosen
            return first
        taking |= tempted
    return None


def _at_first(at: Ints, counts: Ints, low: Ints) -> Flags:
    """P: so many of each broker, from all over the cluster."""
    wanted = OF_EACH + 2 * np.maximum(0, counts - low)
    order = np.argsort(at, kind="stable")
    rank = np.arange(len(at)) - np.repeat(np.cumsum(counts) - counts, counts)
    taking = np.zeros(len(at), np.bool_)
    of = at[order]
    taking[order] = rank * wanted[of] % counts[of] < wanted[of]
    return taking


def _compute_potentials(part: _PlannedRows, chosen: Ints, kept: Ints) -> Ints | None:
    """B+1: how dear it is to have one partition less to lead, the last of nobody; None if it can be done better."""
    brokers, at = len(part.low), part.at(chosen)
    counts = kept + np.bincount(at, minlength=brokers)
    steps = np.full((brokers + 1, brokers + 1), BEYOND, np.int64)
    free, dear, dearest = part.prices
    steps[:-1, -1] = np.where(counts < part.low, free, np.where(counts < part.high, dear, dearest))
    given = np.where(counts <= part.low, free, np.where(counts <= part.high, dear, dearest))
    steps[-1, :-1] = np.where(counts > 0, -given, BEYOND)
    rows, columns = np.nonzero(part.replicas >= 0)
    extra = part.costs[rows, columns] - part.costs[rows, chosen[rows]]
    np.minimum.at(steps, (at[rows], part.replicas[rows, columns]), extra)
    return find_shortest_distances(steps)


def too_few(case: ModeCase, few: TooFew, request: PlanRequest) -> Iterator[InputProblem]:
    """Topics whose replicas have no place left, a problem for each topic and number of replicas."""
    if request.mode == REPLACE and not request.rebalance:
        held = [case.columns.rows[row] for row in np.flatnonzero(few.rows)]
        names = [f"{topic.name}-{p.partition}" for topic, p in held]
        brokers = tuple(sorted(set(request.replacements)))
        code = PlanErrorCode.REPLACEMENT_HOLDS_IT
        yield InputProblem(coded(code, partitions=first_names(names, MOST_NAMED), brokers=brokers))
        return
    short: dict[tuple[str, int], int] = {}
    for row in np.flatnonzero(few.rows):
        topic, partition = case.columns.rows[row]
        factor = len(partition.replicas) if case.aim.factor is None else case.aim.factor
        key, room = (topic.name, factor), int(few.room[row])
        short[key] = min(room, short.get(key, room))
    for (name, factor), room in short.items():
        yield InputProblem(coded(PlanErrorCode.TOO_FEW_BROKERS, topic=name, replicas=factor, brokers=room))


def too_full(case: ModeCase, demand: PlacementDemand, request: PlanRequest) -> Iterator[InputProblem]:
    """Yield the problems where the maximum of replicas per broker leaves too little room."""
    if request.most_replicas is None:
        return
    kept = np.bincount(demand.held[demand.must_stay], minlength=demand.brokers) + case.aim.beside
    over = np.flatnonzero(kept > request.most_replicas)
    for broker in over[:MOST_NAMED]:
        id_, held = int(case.columns.ids[broker]), int(kept[broker])
        code = PlanErrorCode.KEEPS_MORE_THAN_ALLOWED
        yield InputProblem(coded(code, broker=id_, replicas=held, most=request.most_replicas))
    total = int(demand.factors.sum()) + int(case.aim.beside.sum())
    could = np.bincount(demand.held[demand.may_stay], minlength=demand.brokers) + case.aim.beside
    room = int(np.where(demand.receives, request.most_replicas, np.minimum(could, request.most_replicas)).sum())
    if not len(over) and room < total:
        yield InputProblem(
            coded(PlanErrorCode.NO_ROOM_AT_THE_MAXIMUM, most=request.most_replicas, room=room, total=total)
        )


def lost_racks(case: ModeCase, demand: PlacementDemand, request: PlanRequest) -> Iterator[InputProblem]:
    """Racks that lose their last broker, where that leaves partitions in fewer racks than they are in."""
    columns = case.columns
    if request.accept_fewer_racks or request.mode not in (DRAIN, REPLACE) or len(columns.racks) < 2:
        return
    named = np.array([bool(rack) for rack in columns.racks])
    rows, places = np.nonzero(demand.held >= 0)
    now = np.zeros((len(demand.held), len(columns.racks)), np.bool_)
    now[rows, columns.rack_of[demand.held[rows, places]]] = True
    before = np.count_nonzero(now & named, axis=1)
    after = np.minimum(demand.factors, np.count_nonzero((demand.rack_most > 0) & named, axis=1))
    fewer = Counter((int(b), int(a)) for b, a in zip(before, after, strict=True) if a < b)
    if not fewer:
        return
    lost = np.flatnonzero(named & ~np.isin(np.arange(len(columns.racks)), columns.rack_of[demand.receives]))
    leaving = columns.ids[case.aim.leaving & np.isin(columns.rack_of, lost)].tolist()
    names = [columns.racks[rack] for rack in np.unique(columns.rack_of[np.isin(columns.ids, leaving)])]
    parts = tuple((number, a, b) for (b, a), number in sorted(fewer.items(), reverse=True))
    code, racks = PlanErrorCode.LAST_OF_A_RACK, first_names(names, 8)
    yield InputProblem(coded(code, brokers=tuple(leaving), racks=racks, fewer=parts))


def left_out(case: ModeCase) -> Iterator[InputProblem]:
    """Partitions that are not planned because they move already."""
    busy = [
        f"{topic.name}-{p.partition}" for (topic, p), moves in zip(case.whole.rows, case.busy, strict=True) if moves
    ]
    if busy:
        yield InputProblem(coded(PlanErrorCode.MOVING_LEFT_OUT, partitions=first_names(busy, MOST_NAMED)))


def find_idle_brokers(case: ModeCase, request: PlanRequest) -> Iterator[InputProblem]:
    """Brokers that are to be emptied and are empty."""
    if request.mode not in (DRAIN, REPLACE):
        return
    held = np.bincount(case.whole.held[case.whole.held >= 0], minlength=len(case.whole.ids))
    empty = sorted(set(request.brokers) - set(case.whole.ids[held > 0].tolist()))
    if empty and len(empty) == len(set(request.brokers)):
        yield InputProblem(coded(PlanErrorCode.NOTHING_TO_DRAIN, brokers=tuple(empty)))
    elif empty:
        yield InputProblem(coded(PlanErrorCode.HOLDS_NOTHING, brokers=tuple(empty)))


def moving_that_must(case: ModeCase, request: PlanRequest) -> Iterator[InputProblem]:
    """Partitions on brokers that are to be emptied, and that move already: the brokers would not be empty."""
    if request.mode not in (DRAIN, REPLACE):
        return
    leaving = set(request.brokers)
    for (topic, p), moves in zip(case.whole.rows, case.busy, strict=True):
        if moves and not leaving.isdisjoint(p.replicas):
            yield already_moving(f"{topic.name}-{p.partition}")


def find_uneven_brokers(case: ModeCase, wanted: PlacementDemand, met: PlacementDemand) -> Iterator[InputProblem]:
    """Brokers that cannot have as many replicas as would be even."""
    ids = case.columns.ids
    short, over = np.flatnonzero(met.least < wanted.least), np.flatnonzero(met.most > wanted.most)
    if not len(short) and not len(over):
        return
    parts: list[tuple[int, int, int] | int] = []
    for brokers, bounds in ((over, "most"), (short, "least")):
        for broker in brokers[:MOST_NAMED]:
            have = int(getattr(met, bounds)[broker] + case.aim.beside[broker])
            want = int(getattr(wanted, bounds)[broker] + case.aim.beside[broker])
            parts.append((int(ids[broker]), have, want))
    more = len(short) + len(over) - len(parts)
    yield InputProblem(coded(PlanErrorCode.AS_EVEN_AS_POSSIBLE, brokers=(*parts, more) if more > 0 else tuple(parts)))


def left_on_down(
    topology: ClusterTopology, case: ModeCase, counts: Ints, request: PlanRequest
) -> Iterator[InputProblem]:
    """Brokers that are down and hold replicas at the end, in modes that empty none. ``counts`` B: replicas then."""
    if request.mode in (DRAIN, REPLACE):
        return
    for place in np.flatnonzero(counts):
        id_, held = int(case.whole.ids[place]), int(counts[place])
        broker = topology.brokers.get(id_)
        if broker is not None and broker.up:
            continue
        why = why_unfit(broker) if broker is not None else UnfitReason.AWAY
        yield InputProblem(coded(PlanErrorCode.LEFT_ON_ONE_DOWN, replicas=held, broker=id_, why=why))


def find_unbalanced_disks(case: ModeCase, brokers: Sequence[OutsideTarget]) -> Iterator[InputProblem]:
    """Brokers whose disks could not be brought within eps."""
    for one in brokers[:MOST_NAMED]:
        broker, held, mean = int(case.columns.ids[one.broker]), float(one.bytes), float(one.mean)
        if one.why == LARGE:
            topic, partition = case.columns.rows[one.row]
            code, name = PlanErrorCode.OUTSIDE_FOR_A_LARGE_ONE, f"{topic.name}-{partition.partition}"
            yield InputProblem(coded(code, broker=broker, held=held, mean=mean, partition=name))
        else:
            code = PlanErrorCode.OUTSIDE_FOR_THE_REST if one.why == REST else PlanErrorCode.OUTSIDE_AND_STUCK
            yield InputProblem(coded(code, broker=broker, held=held, mean=mean))
    if len(brokers) > MOST_NAMED:
        yield InputProblem(coded(PlanErrorCode.MORE_OUTSIDE, brokers=len(brokers) - MOST_NAMED))


def find_leaderless(rows: Sequence[tuple[PartitionMove, PlannedPartition]]) -> Iterator[InputProblem]:
    """Partitions without a leader: nothing can be copied."""
    found = [row.name for row, partition in rows if partition.leader is None and row.adding]
    if found:
        yield InputProblem(coded(PlanErrorCode.LEADER_MISSING, partitions=first_names(found)))


Say = Callable[[str, float], None]
"""Is told what is being done, and the share of the whole that is done."""


def plan_exactly(topology: ClusterTopology, request: PlanRequest, say: Say | None = None) -> PlanAnswer:
    """The plan, or all that is in its way. The request must have been judged (``request_problems``)."""
    tell = say or (lambda _stage, _fraction: None)
    case = case_of(topology, request)
    problems = list(moving_that_must(case, request))
    if problems:
        return build_planned((), problems, [])
    if request.mode == LEADERS:
        return _only_leaders(case)
    if not len(case.columns.rows):
        left = left_on_down(topology, case, case.aim.beside, request)
        return build_planned((), [], [*find_idle_brokers(case, request), *left_out(case), *left])
    tell("placing replicas", 0.1)
    try:
        demand = demand_of(case.columns, case.aim)
    except TooFew as few:
        return build_planned((), list(too_few(case, few, request)), [])
    problems = [*too_full(case, demand, request), *lost_racks(case, demand, request)]
    if problems:
        return build_planned((), problems, [])
    solved = fit_to_disks(topology, case, demand, request)
    tell("proving minimal movement", 0.6)
    proof = _proof(case, solved, request)
    tell("choosing leaders", 0.85)
    rows = _rows(case, solved.answer, request)
    return _judge_plan(topology, case, request, (solved, rows, proof))


def _proof(case: ModeCase, solved: SolvedDemand, request: PlanRequest) -> PlanProof:
    """Against what was asked for, wider where that could not be had; in bytes, of which an empty replica has none."""
    found, ids = solved.answer, case.columns.ids
    costly = widen_bounds(solved.demand, solved.met)
    wide = replace(costly, bytes=case.columns.weights())
    prices = prices_of(wide, found.stays, found.new)
    if prices is None:
        prices = prices_of(costly, found.stays, found.new)
    if prices is None:
        prices = np.zeros(wide.brokers, np.int64)
    changed = np.flatnonzero((wide.least != solved.demand.least) | (wide.most != solved.demand.most))
    moved_rows = np.count_nonzero(found.new >= 0, axis=1) > 0
    outside = {int(ids[one.broker]): one.why for one in solved.outside or ()}
    return PlanProof(
        moved=found.moved(wide),
        bound=compute_bound(wide, prices),
        prices={int(ids[b]): int(prices[b]) for b in np.flatnonzero(prices)},
        widened={int(ids[b]): (int(wide.least[b]), int(wide.most[b])) for b in changed},
        disk_bound=least_for_disks(case, wide, request, outside),
        estimated=int((moved_rows & (case.columns.sizes == UNKNOWN)).sum()),
        outside=outside,
    )


def _judge_plan(
    topology: ClusterTopology,
    case: ModeCase,
    request: PlanRequest,
    made: tuple[SolvedDemand, list[tuple[PartitionMove, PlannedPartition]], PlanProof | None],
) -> PlanAnswer:
    """With what is to be said about it; over its disk limit it is no plan."""
    solved, rows, proof = made
    notices = [
        *find_idle_brokers(case, request),
        *left_out(case),
        *find_uneven_brokers(case, solved.demand, solved.met),
        *left_on_down(topology, case, solved.answer.counts(solved.met) + case.aim.beside, request),
        *find_leaderless(rows),
    ]
    notices += find_unbalanced_disks(case, solved.outside or ())
    problems: list[InputProblem] = []
    if request.disk_limit is not None:
        copied = sum_arriving(rows)
        problems += find_overflows(copied, topology, request.disk_limit)
        notices += disk_notices(copied, topology, request.disk_limit)
    return build_planned((row for row, _ in rows), problems, notices, proof)


def _only_leaders(case: ModeCase) -> PlanAnswer:
    nothing = SolverAnswer(case.columns.held >= 0, np.zeros((len(case.columns.rows), 0), np.int64))
    every = np.ones(len(case.columns.rows), np.bool_)
    rows = list(_order_replicas(case, _targets(case.columns, nothing), every))
    return build_planned((row for row, _ in rows), [], [*left_out(case), *find_leaderless(rows)])


def _rows(case: ModeCase, found: SolverAnswer, request: PlanRequest) -> list[tuple[PartitionMove, PlannedPartition]]:
    """Rows that change something, with preferred leaders chosen among those that are open."""
    columns, targets = case.columns, _targets(case.columns, found)
    changed = _rows_differ(columns.held, targets)
    if not request.leaders:
        open_ = np.zeros_like(changed)
    elif request.mode == BALANCE or request.rebalance:
        open_ = np.ones_like(changed)
    elif case.aim.strict:
        open_ = changed & (columns.held[:, 0] != targets[:, 0])
    else:
        open_ = changed
    return list(_order_replicas(case, targets, open_))


def _order_replicas(case: ModeCase, targets: Ints, open_: Flags) -> Iterator[tuple[PartitionMove, PlannedPartition]]:
    """With the preferred leader first; of those that are open it may be another one."""
    columns = case.columns
    led = _put_leaders_first(case, targets, open_)
    rows = np.flatnonzero(_rows_differ(columns.held, led))
    ids = np.append(columns.ids, -1)[led[rows]].tolist()
    for row, brokers in zip(rows.tolist(), ids, strict=True):
        topic, partition = columns.rows[row]
        target = tuple(broker for broker in brokers if broker >= 0)
        yield PartitionMove(topic.name, topic.id, partition.partition, partition.replicas, target), partition


def _rows_differ(one: Ints, other: Ints) -> Flags:
    """P: whether the rows differ; columns that one of them does not have are empty."""
    width = max(one.shape[1], other.shape[1])
    wide = [np.pad(part, ((0, 0), (0, width - part.shape[1])), constant_values=NOBODY) for part in (one, other)]
    found: Flags = np.logical_or.reduce(wide[0] != wide[1], axis=1)
    return found


def _put_leaders_first(case: ModeCase, targets: Ints, open_: Flags) -> Ints:
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
    chosen = choose_leaders(able, costs, led, columns.alive & ~case.aim.leaving)
    order = np.argsort(np.where(np.arange(some.shape[1]) == chosen[:, None], -1, np.arange(some.shape[1])), axis=1)
    result = targets.copy()
    result[open_] = np.take_along_axis(some, order, axis=1)
    return result


def _targets(columns: TopologyColumns, found: SolverAnswer) -> Ints:
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


def plan(
    topology: ClusterTopology, request: PlanRequest, brought: ParsedFile | None = None, say: Say | None = None
) -> PlanAnswer:
    """The plan, or all that is in its way. ``brought``: the rows of a mode in which nothing is chosen.

    Raises ValueError where the mode is none of those planned here, or rows were not brought to one that needs them.
    """
    problems = problems_of(request, topology)
    if problems:
        return build_planned((), problems, ())
    if request.mode in PLANNED_MODES:
        return plan_exactly(topology, request, say)
    if request.mode not in (EXPLICIT, FINISH) or brought is None:
        raise ValueError(f"mode {request.mode!r} is not planned here, or its rows are missing")
    if say is not None:
        say("comparing with the cluster", 0.0)
    if request.mode == FINISH:
        return plan_unfinished(brought, topology, disk_limit=request.disk_limit)
    return plan_explicitly(brought, topology, change_rf=request.change_rf, disk_limit=request.disk_limit)
