"""What each mode asks for, as a demand: who may stay, who must, who may be given replicas, and how many at the end."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from kafkadash.domain.planner.columns import Columns
from kafkadash.domain.planner.decode import place
from kafkadash.domain.planner.demand import Answer, Demand, Flags, Ints
from kafkadash.domain.planner.flow import NoFlow, least_violation
from kafkadash.domain.planner.water import broker_bounds, rack_bounds


@dataclass(frozen=True, slots=True)
class Aim:
    """``leaving`` B: brokers that keep nothing. ``receives`` B: may be given new replicas. ``beside`` B: replicas of
    partitions that are not planned. ``strict``: what need not leave stays where it is. ``factor``: replicas of each
    partition at the end, None as now. ``most_replicas``: of a broker.
    """

    leaving: Flags
    receives: Flags
    beside: Ints
    strict: bool = True
    factor: int | None = None
    most_replicas: int | None = None


class TooFew(Exception):
    """Some partitions find too few brokers for their replicas; ``rows`` P says which."""

    def __init__(self, rows: Flags) -> None:
        super().__init__(f"{int(rows.sum())} partitions")
        self.rows = rows


def demand_of(columns: Columns, aim: Aim) -> Demand:
    """Raises TooFew."""
    held = columns.held
    present = held >= 0
    may_stay = present & ~aim.leaving[held]
    must_stay = may_stay if aim.strict else may_stay & ~columns.alive[held]
    factors = present.sum(axis=1) if aim.factor is None else np.full(len(held), aim.factor, np.int64)
    stays, room = _by_rack(columns, must_stay), _by_rack(columns, may_stay & ~aim.receives[held])
    room += np.bincount(columns.rack_of[aim.receives], minlength=len(columns.racks))
    few = room.sum(axis=1) < factors
    if few.any():
        raise TooFew(few)
    rack_least, rack_most = rack_bounds(factors, stays, room)
    kept = np.bincount(held[must_stay], minlength=len(columns.ids)) + aim.beside
    could = np.bincount(held[may_stay], minlength=len(columns.ids)) + aim.beside
    ceiling = int(factors.sum()) + int(aim.beside.sum()) if aim.most_replicas is None else aim.most_replicas
    most = np.maximum(kept, np.where(aim.receives, ceiling, np.minimum(could, ceiling)))
    beside = np.bincount(columns.rack_of, weights=aim.beside, minlength=len(columns.racks)).astype(np.int64)
    total = int(factors.sum()) + int(aim.beside.sum())
    bounds = (rack_least.sum(axis=0) + beside, rack_most.sum(axis=0) + beside)
    low, high = broker_bounds(total, kept, most, columns.rack_of, *bounds)
    return Demand(
        columns.costs(),
        factors,
        held,
        may_stay,
        must_stay,
        columns.rack_of,
        aim.receives,
        low - aim.beside,
        high - aim.beside,
        rack_least,
        rack_most,
    )


def answered(demand: Demand) -> tuple[Demand, Answer]:
    """The placement, and the demand that it meets: with wider bounds where the wanted ones cannot be met.

    Raises NoFlow where no bounds of brokers help, NotPlaced.
    """
    try:
        return demand, place(demand)
    except NoFlow:
        wider = least_violation(demand)
        return wider, place(wider)


def repair(columns: Columns, aim: Aim) -> tuple[Demand, Answer]:
    """Rack violations mended with the least bytes, and what that leaves open made even.

    The demand is that of the bytes, which are what is proven.
    """
    demand = demand_of(columns, replace(aim, strict=False))
    free = replace(demand, least=np.zeros_like(demand.least), most=np.full_like(demand.most, int(demand.factors.sum())))
    mended = place(free)
    fixed = _with_stays(columns, demand, mended.stays, aim)
    _, even = answered(fixed)
    return free, even


def _with_stays(columns: Columns, demand: Demand, stays: Flags, aim: Aim) -> Demand:
    """The same with these replicas fixed; only the others are placed, as evenly as that allows."""
    kept = np.bincount(demand.held[stays], minlength=demand.brokers) + aim.beside
    most = np.where(demand.receives, int(demand.factors.sum() + aim.beside.sum()), kept)
    beside = np.bincount(columns.rack_of, weights=aim.beside, minlength=demand.racks).astype(np.int64)
    bounds = (demand.rack_least.sum(axis=0) + beside, demand.rack_most.sum(axis=0) + beside)
    total = int(demand.factors.sum() + aim.beside.sum())
    low, high = broker_bounds(total, kept, np.maximum(kept, most), columns.rack_of, *bounds)
    return replace(demand, must_stay=stays, may_stay=stays, least=low - aim.beside, most=high - aim.beside)


def targets(columns: Columns, answer: Answer) -> list[tuple[int, tuple[int, ...]]]:
    """Row and replicas in order, for each partition whose replicas change. A new replica takes the place of one that
    leaves, so that what stays keeps its place in the order.
    """
    present = columns.held >= 0
    changed = np.flatnonzero((present & ~answer.stays).any(axis=1) | (answer.new >= 0).any(axis=1))
    found = []
    for row in changed:
        new = [int(columns.ids[broker]) for broker in answer.new[row] if broker >= 0]
        target = []
        for broker, stays in zip(columns.held[row], answer.stays[row], strict=True):
            if stays:
                target.append(int(columns.ids[broker]))
            elif broker >= 0 and new:
                target.append(new.pop(0))
        found.append((int(row), (*target, *new)))
    return found


def _by_rack(columns: Columns, which: Flags) -> Ints:
    """P×R: how many of these replicas are in each rack."""
    counts = np.zeros((len(which), len(columns.racks)), np.int64)
    rows, places = np.nonzero(which)
    np.add.at(counts, (rows, columns.rack_of[columns.held[rows, places]]), 1)
    return counts
