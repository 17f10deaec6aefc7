"""Modes of planning as demands: the replicas that may or must stay, the eligible receivers, and the final counts.

The module contains no solver: the checker makes the same demand of the same request, and checks plan and proof against
it. ``rack_bounds`` and ``broker_bounds`` fill racks and brokers evenly, like water.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from kafkadash.planning.solver.demand import (
    Flags,
    Ints,
    PlacementDemand,
    TopologyColumns,
    columns_of,
    find_moving,
    select_partitions,
)
from kafkadash.planning.solver.request import ADD, BALANCE, DRAIN, LEADERS, REPAIR_RACKS, REPLACE, SET_RF, PlanRequest
from kafkadash.planning.topology import ClusterTopology


def rack_bounds(factors: Ints, stays: Ints, room: Ints) -> tuple[Ints, Ints]:
    """P×R: least and most replicas of each partition per rack, as even as what must stay and what has room allows.

    ``factors`` P: replicas at the end. ``stays`` P×R: replicas that must stay there. ``room`` P×R: brokers that may
    hold one at the end, at least as many as stay. Where all racks have room and nothing must stay these are ⌊RF/R⌋ and
    ⌈RF/R⌉. A partition that finds no room for all of its replicas is given what there is.
    """
    most_level = int(factors.max()) if len(factors) else 0
    level = np.zeros(len(factors), np.int64)
    for tried in range(1, most_level + 1):
        filled = np.maximum(stays, np.minimum(tried, room)).sum(axis=1)
        level[filled <= factors] = tried
    least = np.maximum(stays, np.minimum(level[:, None], room))
    most = np.maximum(stays, np.minimum(level[:, None] + 1, room))
    return least, np.where((least.sum(axis=1) >= factors)[:, None], least, most)


def broker_bounds(
    total: int, least: Ints, most: Ints, rack_of: Ints, rack_least: Ints, rack_most: Ints
) -> tuple[Ints, Ints]:
    """B: ⌊target⌋ and ⌈target⌉ of each broker's replicas, ``total`` of them, as even as the bounds allow.

    ``least`` and ``most`` B: what a broker has to hold, and may. ``rack_least`` and ``rack_most`` R: the same of racks.
    Water rises at the same level everywhere; a rack that is full, or has to have more, has a level of its own.
    """
    racks = len(rack_least)

    def held(level: int) -> Ints:
        brokers = np.clip(level, least, most)
        return np.clip(np.bincount(rack_of, weights=brokers, minlength=racks).astype(np.int64), rack_least, rack_most)

    level = _find_highest(lambda tried: int(held(tried).sum()) <= total, total)
    share = held(level)
    spare = total - int(share.sum())
    # What is left over would lift some brokers by one: it goes to racks that have room, in turn.
    room = held(level + 1) - share
    low, high = np.zeros_like(least), np.zeros_like(most)
    for rack in range(racks):
        of_rack = rack_of == rack
        if not of_rack.any():
            continue
        possible = (int(share[rack]), int(share[rack] + min(spare, int(room[rack]))))
        low[of_rack], high[of_rack] = _level_in(possible, least[of_rack], most[of_rack])
    return low, high


def _level_in(amount: tuple[int, int], least: Ints, most: Ints) -> tuple[Ints, Ints]:
    """Least and most of each broker of a rack that gets between so many and so many."""
    fewest, highest = amount
    low = _find_highest(lambda tried: int(np.clip(tried, least, most).sum()) <= fewest, fewest)
    high = _find_highest(lambda tried: int(np.clip(tried, least, most).sum()) <= highest, highest)
    top = np.clip(high, least, most)
    if int(top.sum()) < highest:
        top = np.clip(high + 1, least, most)
    return np.clip(low, least, most), top


def _find_highest(holds: Callable[[int], bool], at_most: int) -> int:
    """The highest level from 0 for which it holds; it holds at 0 or is taken to, and not any more once it does not."""
    low, high = 0, at_most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@dataclass(frozen=True, slots=True)
class ModeAim:
    """``leaving`` B: brokers that keep nothing. ``receives`` B: may be given new replicas. ``beside`` B: replicas of
    partitions that are not planned. ``strict``: what need not leave stays where it is. ``factor``: replicas of each
    partition at the end, None as now. ``most_replicas``: of a broker. ``must`` and ``may`` P×W: of the replicas held,
    instead of what ``strict`` says. ``free``: how many replicas a broker ends with does not matter.
    """

    leaving: Flags
    receives: Flags
    beside: Ints
    strict: bool = True
    factor: int | None = None
    most_replicas: int | None = None
    must: Flags | None = None
    may: Flags | None = None
    free: bool = False


@dataclass(frozen=True, slots=True)
class ModeCase:
    """A request in columns. ``whole`` are all partitions of the cluster, ``chosen`` (flags over them) those that are
    planned, ``columns`` only these. ``busy`` are left out because they move already.
    """

    whole: TopologyColumns
    chosen: Flags
    busy: Flags
    columns: TopologyColumns
    aim: ModeAim


class TooFew(Exception):
    """Some partitions find too few brokers for their replicas; ``rows`` P says which, ``room`` P how many there are."""

    def __init__(self, rows: Flags, room: Ints) -> None:
        super().__init__(f"{int(rows.sum())} partitions")
        self.rows, self.room = rows, room


def case_of(topology: ClusterTopology, request: PlanRequest) -> ModeCase:
    """The request must have been judged (``request_problems``)."""
    whole = columns_of(topology, ignore_racks=request.ignore_racks)
    selected, busy = select_partitions(whole, request), find_moving(whole)
    named = whole.places(request.brokers)
    leaving = named if request.mode in (DRAIN, REPLACE) else np.zeros_like(named)
    relevant = selected if request.rebalance else selected & _select_partitions(whole, request, leaving)
    chosen = relevant & ~busy
    columns = whole.only(chosen)
    receives = _select_receivers(whole, request, named)
    beside = np.bincount(whole.held[~chosen][whole.held[~chosen] >= 0], minlength=len(whole.ids))
    aim = ModeAim(
        leaving,
        receives,
        beside,
        strict=request.mode in (DRAIN, REPLACE, SET_RF) and not request.rebalance,
        factor=request.factor if request.mode == SET_RF else None,
        most_replicas=None if request.mode == LEADERS else request.most_replicas,  # which take no replica from anybody
        free=request.mode == REPAIR_RACKS and not request.rebalance,
    )
    if request.mode == SET_RF and request.factor is not None:
        must, may = _choose_kept(columns, request.factor, everybody=not request.rebalance)
        present = columns.held >= 0
        if not request.rebalance and (np.count_nonzero(present, axis=1) > request.factor).all():
            # Replicas are only taken away: nobody is given any, however even that would be.
            receives = np.zeros_like(receives)
        # Who may be given a replica may keep the one it has, or it would be given that one anew.
        may |= present & receives[columns.held]
        aim = replace(aim, must=must, may=may, receives=receives)
    return ModeCase(whole, chosen, relevant & busy, columns, aim)


def demand_of(columns: TopologyColumns, aim: ModeAim) -> PlacementDemand:
    """Raises TooFew."""
    held = columns.held
    present = held >= 0
    may_stay = present & ~aim.leaving[held]
    if aim.may is not None:
        may_stay &= aim.may
    # What is on a broker that is away cannot be taken from it; it goes where it is asked to leave.
    must_stay = may_stay if aim.strict else may_stay & ~columns.alive[held]
    if aim.must is not None:
        must_stay = may_stay & aim.must
    factors = present.sum(axis=1) if aim.factor is None else np.full(len(held), aim.factor, np.int64)
    stays, room = _by_rack(columns, must_stay), _by_rack(columns, may_stay & ~aim.receives[held])
    room += np.bincount(columns.rack_of[aim.receives], minlength=len(columns.racks))
    few = room.sum(axis=1) < factors
    if few.any():
        raise TooFew(few, room.sum(axis=1))
    rack_least, rack_most = rack_bounds(factors, stays, room)
    demand = PlacementDemand(
        columns.costs(),
        factors,
        held,
        may_stay,
        must_stay,
        columns.rack_of,
        aim.receives,
        np.zeros(len(columns.ids), np.int64),
        np.full(len(columns.ids), int(factors.sum())),
        rack_least,
        rack_most,
    )
    if not aim.free:
        return spread_evenly(demand, aim)
    return demand if aim.most_replicas is None else replace(demand, most=_ceilings(demand, aim)[1] - aim.beside)


def spread_evenly(demand: PlacementDemand, aim: ModeAim) -> PlacementDemand:
    """The same with as many replicas on each broker as on the others, as far as what must stay and has room allows."""
    kept, most = _ceilings(demand, aim)
    total = int(demand.factors.sum()) + int(aim.beside.sum())
    beside = np.bincount(demand.rack_of, weights=aim.beside, minlength=demand.racks).astype(np.int64)
    bounds = (demand.rack_least.sum(axis=0) + beside, demand.rack_most.sum(axis=0) + beside)
    low, high = broker_bounds(total, kept, most, demand.rack_of, *bounds)
    return replace(demand, least=low - aim.beside, most=high - aim.beside)


def _ceilings(demand: PlacementDemand, aim: ModeAim) -> tuple[Ints, Ints]:
    """B: how many replicas stay on each broker whatever happens, and how many it may have; also those not planned."""
    kept = np.bincount(demand.held[demand.must_stay], minlength=demand.brokers) + aim.beside
    could = np.bincount(demand.held[demand.may_stay], minlength=demand.brokers) + aim.beside
    total = int(demand.factors.sum()) + int(aim.beside.sum())
    ceiling = total if aim.most_replicas is None else aim.most_replicas
    return kept, np.maximum(kept, np.where(demand.receives, ceiling, np.minimum(could, ceiling)))


def fix_replicas(demand: PlacementDemand, stays: Flags, aim: ModeAim) -> PlacementDemand:
    """The same with these replicas fixed: only the others are placed, as evenly as that allows."""
    return spread_evenly(replace(demand, must_stay=stays, may_stay=stays), aim)


def _select_receivers(whole: TopologyColumns, request: PlanRequest, named: Flags) -> Flags:
    able = whole.eligible.copy()
    if request.targets is not None:
        able &= whole.places(request.targets)
    if request.mode in (DRAIN, REPLACE):
        able &= ~named
    if request.mode == REPLACE and not request.rebalance:
        able &= whole.places(request.replacements)
    if request.mode == ADD and not request.rebalance:
        able &= named
    if request.mode == LEADERS:
        able[:] = False
    return able


def _select_partitions(whole: TopologyColumns, request: PlanRequest, leaving: Flags) -> Flags:
    """P: which partitions a mode is about, of those whose topics are asked for."""
    present = whole.held >= 0
    if request.mode in (DRAIN, REPLACE):
        return _any(present & leaving[whole.held])
    if request.mode == SET_RF:
        other: Flags = present.sum(axis=1) != request.factor
        return other
    if request.mode == REPAIR_RACKS:
        return find_rack_violations(whole)
    assert request.mode in (ADD, BALANCE, LEADERS)
    return np.ones(len(whole.held), np.bool_)


def find_rack_violations(columns: TopologyColumns) -> Flags:
    """P: whether the replicas are spread over racks less evenly than brokers that may be given replicas allow."""
    present = columns.held >= 0
    counts = _by_rack(columns, present)
    room = _by_rack(columns, present & ~columns.eligible[columns.held])
    room += np.bincount(columns.rack_of[columns.eligible], minlength=len(columns.racks))
    factors = present.sum(axis=1)
    least, most = rack_bounds(factors, np.zeros_like(counts), np.minimum(room, np.maximum(factors, 1)[:, None]))
    return _any((counts < least) | (counts > most))


def _any(flags: Flags) -> Flags:
    """Return for each row whether any flag is set."""
    found: Flags = np.logical_or.reduce(flags, axis=1)
    return found


def _choose_kept(columns: TopologyColumns, factor: int, *, everybody: bool) -> tuple[Flags, Flags]:
    """P×W: which replicas must and which may stay where a partition gets ``factor`` of them.

    Where it gets no fewer all stay, if ``everybody`` has to. Where it gets fewer the leader stays, and whoever is the
    only one in sync; those that are not in sync or away go first: all of them where enough others are there, and only
    they where there are not.
    """
    present = columns.held >= 0
    offline = present & ~columns.alive[columns.held]
    fewer = (present.sum(axis=1) > factor)[:, None]
    leader, in_sync = _flag_leaders(columns)
    good = in_sync & ~offline
    enough = (good.sum(axis=1) >= factor)[:, None]
    may = np.where(fewer & enough, good, present)
    last = leader | (in_sync & (in_sync.sum(axis=1, keepdims=True) == 1))
    must = np.where(fewer, np.where(enough, last, last | good), present if everybody else offline)
    return must & may, may


def _flag_leaders(columns: TopologyColumns) -> tuple[Flags, Flags]:
    """P×W: whether a replica leads, and whether it is in sync."""
    leader, in_sync = np.zeros_like(columns.held, np.bool_), np.zeros_like(columns.held, np.bool_)
    for row, (_, partition) in enumerate(columns.rows):
        for column, broker in enumerate(partition.replicas):
            leader[row, column] = broker == partition.leader
            in_sync[row, column] = broker in partition.isr
    return leader, in_sync


def _by_rack(columns: TopologyColumns, which: Flags) -> Ints:
    """P×R: how many of these replicas are in each rack."""
    counts = np.zeros((len(which), len(columns.racks)), np.int64)
    rows, places = np.nonzero(which)
    np.add.at(counts, (rows, columns.rack_of[columns.held[rows, places]]), 1)
    return counts
