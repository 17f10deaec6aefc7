"""From a flow to brokers: who in a rack takes which of the new replicas that came from its pool.

Every broker of a rack takes as many as the flow gives it, and no broker one of a partition that it holds. Replicas are
dealt in a fixed order and exchanged where that does not fit. What finds no exchange is told; then those partitions are
solved with an arc to each broker.
"""

from __future__ import annotations

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Ints
from kafkadash.domain.planner.flow import Flow, solve

ROUNDS = 40
SEED = 36
MOST_SOLVED = 3


class NotPlaced(Exception):
    """Some new replicas found no broker; ``partitions`` are theirs."""

    def __init__(self, partitions: Ints) -> None:
        super().__init__(f"{len(partitions)} partitions")
        self.partitions = partitions


def place(demand: Demand) -> Answer:
    """The answer of the flow, with brokers. Raises NoFlow where bounds cannot be met, NotPlaced if no way is found."""
    explicit: Ints | None = None
    for _ in range(MOST_SOLVED):
        try:
            return decoded(demand, solve(demand, explicit))
        except NotPlaced as left:
            explicit = left.partitions if explicit is None else np.union1d(explicit, left.partitions)
    return decoded(demand, solve(demand, np.arange(demand.partitions)))


def decoded(demand: Demand, flow: Flow) -> Answer:
    """Raises NotPlaced."""
    stays = flow.stays.copy()
    pairs = [flow.direct]
    for rack in np.flatnonzero(demand.pooled):
        units = np.repeat(np.arange(demand.partitions), flow.from_pool[:, rack])
        brokers = np.flatnonzero((demand.rack_of == rack) & (flow.given > 0))
        slots = np.repeat(brokers, flow.given[brokers])
        pairs.append((units, _dealt(demand, stays, units, slots)))
    rows, brokers = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    again = (demand.held[rows] == brokers[:, None]) & demand.may_stay[rows]  # it holds that one: it stays, for nothing
    fresh = ~again.any(axis=1)
    where, column = np.nonzero(again)
    stays[rows[where], column] = True
    return Answer(stays, _columns(demand.partitions, rows[fresh], brokers[fresh]))


def _dealt(demand: Demand, stays: np.ndarray, units: Ints, slots: Ints) -> Ints:
    """The broker of each unit; ``units`` are partitions, some more than once. Raises NotPlaced."""
    chance = np.random.default_rng(SEED)
    slots = slots[chance.permutation(len(slots))]
    bad = _clashing(demand, stays, units, slots)
    for _ in range(ROUNDS):
        wrong = np.flatnonzero(bad)
        if not len(wrong):
            return slots
        others = chance.choice(len(units), size=len(wrong), replace=False)
        apart = ~np.isin(others, wrong)
        wrong, others = wrong[apart], others[apart]
        tried = slots.copy()
        tried[wrong], tried[others] = slots[others], slots[wrong]
        worse = _clashing(demand, stays, units, tried)
        # An exchange counts where neither of its partitions clashes afterwards; the others are taken back.
        failed = worse[wrong] | worse[others]
        tried[wrong[failed]], tried[others[failed]] = slots[wrong[failed]], slots[others[failed]]
        slots, bad = tried, _clashing(demand, stays, units, tried)
    slots, bad = _one_by_one(demand, stays, units, slots, bad)
    if bad.any():
        raise NotPlaced(np.unique(units[bad]))
    return slots


def _clashing(demand: Demand, stays: np.ndarray, units: Ints, slots: Ints) -> np.ndarray:
    """Whether the broker of a unit holds that partition already, or gets it twice."""
    holds: np.ndarray = ((demand.held[units] == slots[:, None]) & stays[units]).any(axis=1)
    order = np.lexsort((slots, units))
    twice = (np.diff(units[order]) == 0) & (np.diff(slots[order]) == 0)
    holds[order[1:][twice]] = True
    return holds


def _one_by_one(
    demand: Demand, stays: np.ndarray, units: Ints, slots: Ints, bad: np.ndarray
) -> tuple[Ints, np.ndarray]:
    """Each clash that is left against every other unit."""
    slots = slots.copy()
    has: dict[int, set[int]] = {}

    def brokers_of(partition: int) -> set[int]:
        if partition not in has:
            has[partition] = set(demand.held[partition][stays[partition]].tolist())
            has[partition] |= set(slots[np.flatnonzero(units == partition)].tolist())
        return has[partition]

    for unit in np.flatnonzero(bad):
        mine = int(units[unit])
        taken = set(demand.held[mine][stays[mine]].tolist())
        taken |= set(slots[np.flatnonzero((units == mine) & (np.arange(len(units)) != unit))].tolist())
        for other in range(len(units)):
            its, partition = int(slots[other]), int(units[other])
            if partition == mine or its in taken or bad[other] or int(slots[unit]) in brokers_of(partition):
                continue
            slots[unit], slots[other] = its, slots[unit]
            has.pop(partition, None)
            has.pop(mine, None)
            break
    return slots, _clashing(demand, stays, units, slots)


def _columns(count: int, rows: Ints, brokers: Ints) -> Ints:
    """P×N: brokers by partition, in the order of their numbers, ``NOBODY`` where there are fewer."""
    order = np.lexsort((brokers, rows))
    rows, brokers = rows[order], brokers[order]
    each = np.bincount(rows, minlength=count)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
    new = np.full((count, int(each.max()) if len(each) else 0), NOBODY, np.int64)
    new[rows, place] = brokers
    return new
