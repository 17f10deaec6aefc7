"""Verification of a plan against its request and its proof, without a solver and without sums of the planner.

The demand is made anew from request and topology, what the rows add and remove follows from the live assignment, and
the bound is computed from the prices of the certificate. Wrong prices only ever prove less.

``disk_bound`` is the least that balancing the disks moves, for any planner. Take a plan that meets the request: broker
b, which holds D bytes today, ends with F = D + in - out, at least ``least`` of its rack and at most ``most``
(``disk_balance.target_of``), and what may not stay (L bytes) leaves it. Then

- in ≥ least - D + out ≥ least - D + L where it lacks bytes, and in ≥ 0 everywhere: all that comes into a rack is at
  least the sum of what its brokers lack.
- out ≥ max(L, D - most): a partition of its own that is larger than ``most`` may stay beside eps of the mean, and one
  that comes from elsewhere brings its own bytes with it. What comes into a rack is what leaves it and what the rack has
  more at the end: in ≥ Y - ΣD + Σ max(L, D - most), where Y bytes are on its judged brokers at the end.

So a rack takes in at least h(Y), the larger of the two. Where the bounds of the racks settle Y (each partition has as
many replicas in each rack whatever is planned) the sum over the racks is the bound. Otherwise ``least`` and ``most``
grow with Y, both sums are convex in it, and racks share what there is: min Σ h(Y) over Y within each rack's bounds and
ΣY within what the cluster has. For every price μ of a byte, Σ min (h(Y) - μY) + μ·ΣY is no more than that (weak
duality), so any μ gives a bound and the best one found is taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kafkadash.changes.plan import PartitionMove
from kafkadash.core.formatting import format_size
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.planning.problem_codes import CheckedRule, CheckErrorCode, RuleCode
from kafkadash.planning.solver.certificate import compute_bound
from kafkadash.planning.solver.demand import NOBODY, Flags, Ints, PlacementDemand, SolverAnswer
from kafkadash.planning.solver.disk_balance import LACKS, STUCK, target_of
from kafkadash.planning.solver.modes import ModeCase, TooFew, case_of, demand_of
from kafkadash.planning.solver.request import BALANCE, LEADERS, PlanProof, PlanRequest
from kafkadash.planning.topology import ClusterTopology

Reals = NDArray[np.float64]

ROUNDING = 1e-12
"""Tolerance of a sum of floats: far more than its rounding errors."""
STEPS = 120


def disk_bound(
    demand: PlacementDemand,
    sizes: Ints,
    beside: Ints,
    judged: Flags,
    eps: float,
    above: Flags | None = None,
    below: Flags | None = None,
) -> int:
    """No plan for this demand that brings the disks of ``judged`` (B) within eps moves fewer bytes.

    ``sizes`` P: bytes, none above what the demand reckons for a new replica. ``beside`` B: bytes that are not planned.
    ``above`` and ``below`` B: brokers that are not held to the most or the least, because the plan that is proven could
    not bring them there.
    """
    if (sizes > demand.bytes).any():
        return 0
    spared = (np.zeros_like(judged) if flags is None else flags for flags in (above, below))
    today = _LiveAssignment(demand, sizes, beside, judged, *spared)
    settled, curves = 0, []
    for rack in range(demand.racks):
        low, high = today.between(rack)
        if low == high:
            settled += today.at_least(rack, low, eps)
            curves.append((np.array([float(low)]), np.zeros(1)))
        else:
            curves.append(today.curve(rack, low, high, eps))
    shared = _maximize_bound(curves, *today.altogether())
    return settled + max(0, int(shared * (1 - ROUNDING)) - (demand.brokers if shared else 0))


class _LiveAssignment:
    """Bytes per broker and rack before anything moves, and what any plan may make of them."""

    def __init__(
        self, demand: PlacementDemand, sizes: Ints, beside: Ints, judged: Flags, above: Flags, below: Flags
    ) -> None:
        self._demand, self._sizes, self._judged = demand, sizes, judged
        self._sheds, self._takes = judged & ~above, judged & demand.receives & ~below
        held = demand.held != NOBODY
        self._holds = beside + self._bytes(held)
        self._leaves = self._bytes(held & ~demand.may_stay)
        self._kept = beside + self._bytes(demand.must_stay)
        self._could = beside + self._bytes(demand.may_stay)
        least, most = demand.rack_least, demand.rack_most
        factors = demand.factors[:, None]
        self._fewest = np.maximum(least, factors - most.sum(axis=1, keepdims=True) + most)
        self._highest = np.minimum(most, factors - least.sum(axis=1, keepdims=True) + least)
        self._beside = beside
        self._total = int((demand.factors * sizes).sum() + beside.sum())

    def _bytes(self, which: Flags) -> Ints:
        total = np.zeros(self._demand.brokers, np.int64)
        rows, columns = np.nonzero(which)
        np.add.at(total, self._demand.held[rows, columns], self._sizes[rows])
        return total

    def _of(self, rack: int) -> Flags:
        of_rack: Flags = self._demand.rack_of == rack
        return of_rack

    def _not_judged(self, which: Flags) -> tuple[int, int]:
        """Bytes that brokers which are not judged hold at the end: at least, at most."""
        others = which & ~self._judged
        most = self._total if (others & self._demand.receives).any() else int(self._could[others].sum())
        return int(self._kept[others].sum()), most

    def between(self, rack: int) -> tuple[int, int]:
        """Bytes on the judged brokers of a rack at the end: at least, at most."""
        which = self._of(rack)
        beside, (least, most) = int(self._beside[which].sum()), self._not_judged(which)
        low = beside + int((self._sizes * self._fewest[:, rack]).sum()) - most
        high = beside + int((self._sizes * self._highest[:, rack]).sum()) - least
        return max(0, low), max(0, high)

    def altogether(self) -> tuple[int, int]:
        """The same of all racks."""
        least, most = self._not_judged(np.ones(self._demand.brokers, np.bool_))
        return max(0, self._total - most), self._total - least

    def _largest(self, rack: int, above: float) -> Ints:
        """Bytes of the replicas that the rack may have and that are larger, at most one for each broker."""
        rows = np.flatnonzero((self._sizes > above) & (self._highest[:, rack] > 0))
        sizes = np.repeat(self._sizes[rows], self._highest[rows, rack])
        sizes.sort()
        return sizes[::-1][: int(self._of(rack).sum())]

    def _largest_on(self, above: float) -> Ints:
        """B: bytes of the largest partition on it that is larger; 0 where none is."""
        largest = np.zeros(self._demand.brokers, np.int64)
        rows, columns = np.nonzero((self._demand.held != NOBODY) & (self._sizes > above)[:, None])
        np.maximum.at(largest, self._demand.held[rows, columns], self._sizes[rows])
        return largest

    def at_least(self, rack: int, total: int, eps: float) -> int:
        """h where the bytes of the rack are settled."""
        judged = self._of(rack) & self._judged
        many = int(judged.sum())
        if not many:
            return 0
        target = target_of(total, many, self._largest(rack, total / many).tolist(), eps)
        holds, leaves = self._holds, self._leaves
        lacks = target.least - holds + leaves
        largest = self._largest_on(target.most)
        most = np.where(largest > 0, largest + target.slack, target.most)
        goes = np.where(self._sheds, np.maximum(leaves, holds - most), leaves)
        given = total - int(holds[judged].sum()) + int(goes[judged].sum())
        return max(0, given, int(np.maximum(lacks, 0)[judged & self._takes].sum()))

    def curve(self, rack: int, low: int, high: int, eps: float) -> tuple[Reals, Reals]:
        """Corners of h: bytes of the rack, and what comes in at the least. Straight between them."""
        judged = self._of(rack) & self._judged
        many = int(judged.sum())
        if not many:
            return np.array([float(low), float(high)]), np.zeros(2)
        smallest_most = (1 + eps) * low / many
        large = float(self._largest(rack, smallest_most).sum())
        sheds, takes = judged & self._sheds, judged & self._takes
        stays = (self._holds - self._leaves).astype(np.float64)
        spared = stays - self._largest_on(smallest_most)
        down, up = (1 - eps) / many, (1 + eps) / many
        corners = np.concatenate([[low, high, large], stays[takes] / down + large, spared[sheds] / up])
        totals = np.unique(np.clip(corners, low, high))
        lacked = np.maximum(down * (totals[:, None] - large) - stays[takes], 0).sum(axis=1)
        more = totals - float(stays[judged].sum())
        given = more + np.maximum(spared[sheds] - up * totals[:, None], 0).sum(axis=1)
        totals, lacked, given = _with_crossings(totals, lacked, given)
        return totals, np.maximum(np.maximum(lacked, given), 0)


def _with_crossings(totals: Reals, one: Reals, other: Reals) -> tuple[Reals, Reals, Reals]:
    """And where two of these, or one and 0, cross between corners."""
    found = [totals]
    for ahead in (one - other, one, other):
        before, after = ahead[:-1], ahead[1:]
        cross = before * after < 0
        share = before[cross] / (before[cross] - after[cross])
        found.append(totals[:-1][cross] + share * (totals[1:] - totals[:-1])[cross])
    every = np.unique(np.concatenate(found))
    return every, np.interp(every, totals, one), np.interp(every, totals, other)


def _maximize_bound(curves: list[tuple[Reals, Reals]], least: int, most: int) -> float:
    """The best bound of any price; concave in it, so thirds of the range are left out until nothing is left."""

    def bound(price: float) -> float:
        each = sum(float((cost - price * total).min()) for total, cost in curves)
        return each + price * (least if price > 0 else most)

    low, high = -2.0, 2.0
    best = bound(0.0)
    for _ in range(STEPS):
        third = (high - low) / 3
        values = bound(low + third), bound(high - third)
        best = max(best, *values)
        low, high = (low + third, high) if values[0] < values[1] else (low, high - third)
    return best


MOST_PROBLEMS = 100


def demand_rules(
    rows: Sequence[PartitionMove], topology: ClusterTopology, request: PlanRequest, proof: PlanProof | None
) -> list[CheckedRule]:
    """Return the rules for a plan made for this request: only what was asked, racks, counts, least movement."""
    case = case_of(topology, request)
    try:
        demand = as_proven(case, demand_of(case.columns, case.aim), proof)
    except TooFew as few:
        problem = coded(CheckErrorCode.NO_PLAN_MEETS_IT, partitions=int(few.rows.sum()))
        return [CheckedRule(RuleCode.ONLY_AS_ASKED, passed=False, figure="", problems=(problem,))]
    made, strangers = _apply_rows(case, demand, rows)
    only = [*strangers, *_find_disallowed(case, demand, made, request)]
    return [
        CheckedRule(
            RuleCode.ONLY_AS_ASKED,
            not only,
            f"{max(0, len(rows) - len(only)):,} of {len(rows):,}",
            _limit_problems(only),
        ),
        _check_racks(case, demand, made),
        _check_counts(case, demand, made),
        *([] if proof is None else [_check_least_movement(case, demand, made, proof, request)]),
        *([] if proof is None or proof.disk_bound is None else [_check_disks(case, demand, made, proof, request)]),
    ]


def least_for_disks(
    case: ModeCase, demand: PlacementDemand, request: PlanRequest, outside: Mapping[int, str]
) -> int | None:
    """Bytes that balancing the disks takes at the least; None where it was not asked for."""
    if not balances_disks(request) or request.eps is None:
        return None
    above, below = (case.columns.places([b for b, why in outside.items() if why == one]) for one in (STUCK, LACKS))
    return disk_bound(demand, demand.bytes, bytes_beside(case), demand.receives, request.eps, above, below)


def balances_disks(request: PlanRequest) -> bool:
    """Return whether disks are balanced within eps; else they are filled as evenly as the requested moves allow."""
    return request.eps is not None and (request.mode == BALANCE or request.rebalance)


def bytes_beside(case: ModeCase) -> Ints:
    """B: bytes on each broker of partitions that are not planned."""
    load = np.zeros(len(case.columns.ids), np.int64)
    held, costs = case.whole.held[~case.chosen], case.whole.costs()[~case.chosen]
    rows, columns = np.nonzero(held >= 0)
    np.add.at(load, held[rows, columns], costs[rows])
    return load


@dataclass(frozen=True, slots=True)
class _MadePlan:
    """``counts`` P×R and B: replicas per rack and partition, and per broker, at the end."""

    answer: SolverAnswer
    in_racks: Ints
    on_brokers: Ints


def as_proven(case: ModeCase, demand: PlacementDemand, proof: PlanProof | None) -> PlacementDemand:
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


def _apply_rows(
    case: ModeCase, demand: PlacementDemand, rows: Sequence[PartitionMove]
) -> tuple[_MadePlan, list[CodedMessage]]:
    """Return the plan that the rows make, and the problems of rows whose partition was not to be planned."""
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
    strangers: list[CodedMessage] = []
    if known < len(targets):
        planned = {(topic.name, partition.partition) for topic, partition in columns.rows}
        strangers = [
            coded(CheckErrorCode.ROW_OUTSIDE, row=row.name) for key, row in targets.items() if key not in planned
        ]
    answer = SolverAnswer(stays, new)
    in_racks = demand.stayed_in_racks(stays) + demand.in_racks(new)
    return _MadePlan(answer, in_racks, answer.counts(demand)), strangers


def _find_disallowed(
    case: ModeCase, demand: PlacementDemand, made: _MadePlan, request: PlanRequest
) -> Iterator[CodedMessage]:
    """Replicas that had to stay, had to leave, or went where none may go."""
    columns = case.columns
    for row, place in zip(*np.nonzero(demand.must_stay & ~made.answer.stays), strict=True):
        broker = int(columns.ids[demand.held[row, place]])
        yield coded(CheckErrorCode.ROW_TAKES_WHAT_STAYS, row=_name(case, row), broker=broker)
    for row, place in zip(*np.nonzero(made.answer.stays & ~demand.may_stay & (demand.held >= 0)), strict=True):
        broker = int(columns.ids[demand.held[row, place]])
        yield coded(CheckErrorCode.ROW_KEEPS_WHAT_LEAVES, row=_name(case, row), broker=broker)
    new = made.answer.new
    for row, place in zip(*np.nonzero((new >= 0) & ~demand.receives[new]), strict=True):
        yield coded(CheckErrorCode.ROW_ON_LEFT_OUT, row=_name(case, row), brokers=(int(columns.ids[new[row, place]]),))
    if request.mode == LEADERS:
        return
    wrong = (made.answer.stays.sum(axis=1) + np.count_nonzero(new >= 0, axis=1)) != demand.factors
    for row in np.flatnonzero(wrong):
        yield coded(CheckErrorCode.ROW_WITH_WRONG_FACTOR, row=_name(case, row), factor=int(demand.factors[row]))


def _check_racks(case: ModeCase, demand: PlacementDemand, made: _MadePlan) -> CheckedRule:
    code, columns = RuleCode.SPREAD_OVER_RACKS, case.columns
    total = len(columns.rows)
    if len(columns.racks) < 2:
        return CheckedRule(code, passed=True, figure="no racks")
    bad = (made.in_racks < demand.rack_least) | (made.in_racks > demand.rack_most)
    problems = []
    for row in np.flatnonzero(np.logical_or.reduce(bad, axis=1)):
        rack = int(np.flatnonzero(bad[row])[0])
        low, high = int(demand.rack_least[row, rack]), int(demand.rack_most[row, rack])
        held = int(made.in_racks[row, rack])
        problems.append(
            coded(
                CheckErrorCode.ROW_UNEVEN_IN_RACK,
                row=_name(case, row),
                held=held,
                rack=columns.racks[rack],
                wanted=(low, high),
            )
        )
    return CheckedRule(code, not problems, f"{total - len(problems):,} of {total:,}", _limit_problems(problems))


def _check_counts(case: ModeCase, demand: PlacementDemand, made: _MadePlan) -> CheckedRule:
    """Replicas of each broker within what was asked for, those included that are not planned."""
    on, beside = made.on_brokers, case.aim.beside
    problems = [
        coded(
            CheckErrorCode.BROKER_OUT_OF_BOUNDS,
            broker=int(case.columns.ids[broker]),
            replicas=int(on[broker] + beside[broker]),
            low=int(demand.least[broker] + beside[broker]),
            high=int(demand.most[broker] + beside[broker]),
        )
        for broker in np.flatnonzero((on < demand.least) | (on > demand.most))
    ]
    return CheckedRule(
        RuleCode.COUNTS, not problems, f"{int((on + beside).sum()):,} replicas", _limit_problems(problems)
    )


def _check_least_movement(
    case: ModeCase, demand: PlacementDemand, made: _MadePlan, proof: PlanProof, request: PlanRequest
) -> CheckedRule:
    """The bound is what the prices come to, and the bytes are what the rows move."""
    prices = np.array([proof.prices.get(int(id_), 0) for id_ in case.columns.ids], np.int64)
    demand = replace(demand, bytes=case.columns.weights())
    proven, moved = compute_bound(demand, prices), made.answer.moved(demand)
    problems = []
    if proven != proof.bound:
        problems.append(coded(CheckErrorCode.BOUND_DIFFERS, proven=proven, report=proof.bound))
    disks = least_for_disks(case, demand, request, proof.outside)
    if disks != proof.disk_bound:
        problems.append(coded(CheckErrorCode.BOUND_DIFFERS, proven=disks, report=proof.disk_bound))
    if moved != proof.moved:
        problems.append(coded(CheckErrorCode.MOVED_DIFFERS, rows=moved, report=proof.moved))
    return CheckedRule(
        RuleCode.LEAST_MOVEMENT,
        not problems,
        f"{format_size(moved)}, bound {format_size(proof.lowest)}",
        tuple(problems),
    )


def _check_disks(
    case: ModeCase, demand: PlacementDemand, made: _MadePlan, proof: PlanProof, request: PlanRequest
) -> CheckedRule:
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
                held, wanted = int(load[broker]), int(mean)
                problems.append(
                    coded(CheckErrorCode.BROKER_NOT_WITHIN_EPS, broker=id_, held=held, mean=wanted, eps=100 * eps)
                )
    return CheckedRule(RuleCode.DISKS_WITHIN_EPS, not problems, f"{100 * eps:g} %", _limit_problems(problems))


def _name(case: ModeCase, row: np.integer[Any]) -> str:
    topic, partition = case.columns.rows[row]
    return f"{topic.name}-{partition.partition}"


def _limit_problems(problems: Sequence[CodedMessage]) -> tuple[CodedMessage, ...]:
    more = len(problems) - MOST_PROBLEMS
    return (*problems[:MOST_PROBLEMS], coded(CheckErrorCode.MORE_FAULTS, more=more)) if more > 0 else tuple(problems)
