"""A demand placed: solved, and where the wanted bounds cannot be met, met as nearly as possible."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kafkadash.domain.planner.by_size import by_size
from kafkadash.domain.planner.columns import UNKNOWN, Columns
from kafkadash.domain.planner.decode import NotPlaced, decoded
from kafkadash.domain.planner.demand import Answer, Demand, Flags, Ints
from kafkadash.domain.planner.disk_balance import Outside, balanced
from kafkadash.domain.planner.disk_placing import NOT_KNOWN
from kafkadash.domain.planner.disk_room import within_room
from kafkadash.domain.planner.dropping import dropped
from kafkadash.domain.planner.flow import NoFlow, least_violation, solve, stays_evenly
from kafkadash.domain.planner.held_against import balances_disks, bytes_beside
from kafkadash.domain.planner.modes import Aim, Case, TooFew, demand_of, even, fixed
from kafkadash.domain.planner.request import REPAIR_RACKS, SET_RF, PlanRequest
from kafkadash.domain.planner.sift import sifted
from kafkadash.domain.planner.topology import Topology

MOST_TRIED = 6


@dataclass(frozen=True, slots=True)
class Solved:
    """``demand`` is what was asked for, ``met`` what is met: with wider bounds where the wanted ones cannot be had.

    ``over``: a broker would be given more than its disk has room for. ``outside``: brokers whose disks could not be
    brought within eps; None where that was not asked for.
    """

    demand: Demand
    met: Demand
    answer: Answer
    over: bool = False
    outside: tuple[Outside, ...] | None = None


def fitted(topology: Topology, case: Case, demand: Demand, request: PlanRequest) -> Solved:
    """With new replicas by size, and within the disk limit. Brokers that are too full for their even share get less,
    as long as their racks have others; where that is not enough the first answer tells how much is missing.
    """
    beside = bytes_beside(case)
    first, over = _within(topology, case, _placed(demand, case.aim, request, beside), request)
    receives, solved = case.aim.receives, first
    for _ in range(MOST_TRIED):
        if not over.any():
            return solved
        left = receives & (over == 0)
        racks = np.bincount(demand.rack_of[receives], minlength=demand.racks)
        if ((racks > 0) & (np.bincount(demand.rack_of[left], minlength=demand.racks) == 0)).any():
            break
        receives = left
        aim = replace(case.aim, receives=receives)
        try:
            narrower = demand_of(case.columns, aim)
        except TooFew:
            break
        again = _placed(narrower, aim, request, beside)
        solved, over = _within(topology, case, replace(again, demand=demand), request)
    return replace(first, over=True) if over.any() else solved


def answered(demand: Demand) -> tuple[Demand, Answer]:
    """The placement, and the demand that it meets: with wider bounds where the wanted ones cannot be met.

    Raises NoFlow where no bounds of brokers help, NotPlaced.
    """
    met, explicit = demand, None
    for _ in range(MOST_TRIED):
        try:
            return met, _solved(met, explicit)
        except NotPlaced as left:
            explicit = left.partitions if explicit is None else np.union1d(explicit, left.partitions)
        except NoFlow:
            # From what was wanted, with all that is known by now of who cannot go where: no wider than needed.
            met = least_violation(demand, explicit)
    every = np.arange(demand.partitions)
    try:
        return demand, decoded(demand, solve(demand, every))
    except NoFlow:
        met = least_violation(demand, every)
        return met, decoded(met, solve(met, every))


def _solved(demand: Demand, explicit: Ints | None) -> Answer:
    """By some of the partitions where they are enough, and by all. Raises NoFlow, NotPlaced."""
    found = sifted(demand) if explicit is None else None
    return decoded(demand, solve(demand, explicit)) if found is None else found


def repair(columns: Columns, aim: Aim) -> tuple[Demand, Answer]:
    """Rack violations mended with the least bytes, and what that leaves open made even.

    The demand is that of the bytes, which are what is proven.
    """
    solved = _in_two_steps(demand_of(columns, replace(aim, strict=False, free=True)), aim)
    return solved.met, solved.answer


def widened(wanted: Demand, met: Demand) -> Demand:
    """What was wanted, with bounds of brokers as wide as those that were met."""
    return replace(wanted, least=np.minimum(wanted.least, met.least), most=np.maximum(wanted.most, met.most))


def _placed(demand: Demand, aim: Aim, request: PlanRequest, beside: Ints) -> Solved:
    if request.mode == REPAIR_RACKS and not request.rebalance:
        solved = _in_two_steps(demand, aim)
    elif request.mode == SET_RF and (fewer := dropped(demand)) is not None:
        solved = Solved(demand, *fewer)
    else:
        solved = Solved(demand, *answered(demand))
    return replace(solved, answer=by_size(solved.met, solved.answer, beside))


def _in_two_steps(demand: Demand, aim: Aim) -> Solved:
    _, placed = answered(fixed(demand, _kept_evenly(demand, aim), aim))
    return Solved(demand, replace(demand, most=np.maximum(demand.most, placed.counts(demand))), placed)


def _kept_evenly(demand: Demand, aim: Aim) -> Flags:
    """P×W: what stays where the least is moved and brokers do not matter; of several that could go, whose going helps.

    Where each partition is placed for itself, the least bytes are the fewest new replicas. The others all stay.
    """
    settled = demand.settled
    stays = demand.may_stay.copy()
    aimed = even(replace(demand, must_stay=np.where(settled[:, None], demand.may_stay, demand.must_stay)), aim)
    kept = np.bincount(demand.held[stays & settled[:, None]], minlength=demand.brokers)
    part = aimed.only(~settled)
    part = replace(
        part,
        must_stay=demand.must_stay[~settled],
        least=np.maximum(0, aimed.least - kept),
        most=np.maximum(0, aimed.most - kept),
    )
    stays[~settled] = stays_evenly(part)
    return stays


def _within(topology: Topology, case: Case, solved: Solved, request: PlanRequest) -> tuple[Solved, Ints]:
    """With disks within eps where that is asked for; B: bytes that brokers are over their room, after replicas changed
    places to mend that.
    """
    columns, over = case.columns, np.zeros(len(case.columns.ids), np.int64)
    room = widest = None
    if request.disk_limit is not None:
        room, widest = _rooms(topology, columns, request.disk_limit)
    if balances_disks(request) and request.eps is not None:
        beside, judged = bytes_beside(case), solved.met.receives
        done = balanced(solved.met, solved.answer, solved.met.bytes, beside, judged, request.eps, room, widest)
        solved = replace(solved, answer=done.answer, outside=done.outside)
    if room is not None and widest is not None:
        found, over = within_room(solved.met, solved.answer, room, widest, columns.sizes != UNKNOWN)
        solved = replace(solved, answer=found)
    return solved, over


def _rooms(topology: Topology, columns: Columns, limit: float) -> tuple[Ints, Ints]:
    """B: bytes that each broker may still be given in all and at once; ``NOT_KNOWN`` where Kafka does not tell."""
    room, widest = (np.full(len(columns.ids), NOT_KNOWN, np.int64) for _ in range(2))
    for place, id_ in enumerate(columns.ids.tolist()):
        broker = topology.brokers.get(id_)
        own = broker.rooms(limit) if broker is not None else None
        if own is not None:
            room[place], widest[place] = sum(own), max(own, default=0)
    return room, widest
