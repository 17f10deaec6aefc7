"""The demand as a minimum-cost flow (OR-tools): the placement with the least bytes moved, exactly.

A partition sends its replicas to its racks, a rack to the brokers that hold it already (free) or to the pool of the
rack (the bytes of the partition), a pool to its brokers, and each broker to the sink within its bounds. The bounds are
laminar on both sides, so the answer is integral and the flow is exact. Pools keep the flow at about nine arcs per
partition instead of one per partition and broker; in a rack with so few receivers that a partition could need them all,
there is no pool, but an arc to each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from ortools.graph.python import min_cost_flow

from kafkadash.planning.solver.demand import Flags, Ints, PlacementDemand


class NoFlow(Exception):
    """No placement meets the bounds."""


@dataclass(frozen=True, slots=True)
class PlacementFlow:
    """``stays`` P×W. ``from_pool`` P×R: new replicas that anybody in the rack may take; ``given`` B: how many of those
    a broker takes. ``direct``: partitions and the brokers that get a new replica of them, two arrays of one length.
    """

    stays: Flags
    from_pool: Ints
    given: Ints
    direct: tuple[Ints, Ints]


@dataclass(slots=True)
class FlowArcs:
    """Arcs as they are added, lower bounds taken out of the supplies."""

    supplies: Ints
    tails: list[Ints] = field(default_factory=list)
    heads: list[Ints] = field(default_factory=list)
    room: list[Ints] = field(default_factory=list)
    costs: list[Ints] = field(default_factory=list)
    lowest: list[Ints] = field(default_factory=list)

    def add(self, tails: Ints, heads: Ints, most: Ints | int, cost: Ints | int, least: Ints | int = 0) -> None:
        shape = np.broadcast_shapes(np.shape(tails), np.shape(heads))
        parts = [np.broadcast_to(part, shape).ravel() for part in (tails, heads, most, cost, least)]
        starts, ends, top, price, bottom = (part.astype(np.int64) for part in parts)
        if bottom.any():
            np.subtract.at(self.supplies, starts, bottom)
            np.add.at(self.supplies, ends, bottom)
        self.tails.append(starts)
        self.heads.append(ends)
        self.room.append(top - bottom)
        self.costs.append(price)
        self.lowest.append(bottom)

    def solved(self) -> list[Ints]:
        """The flow of each group of arcs. Raises NoFlow."""
        solver = min_cost_flow.SimpleMinCostFlow()
        arcs = solver.add_arcs_with_capacity_and_unit_cost(
            np.concatenate(self.tails).astype(np.int32),
            np.concatenate(self.heads).astype(np.int32),
            np.concatenate(self.room),
            np.concatenate(self.costs),
        )
        solver.set_nodes_supplies(np.arange(len(self.supplies), dtype=np.int32), self.supplies)
        status = solver.solve()
        if status != solver.OPTIMAL:
            raise NoFlow(str(status))
        ends = np.cumsum([len(part) for part in self.tails])[:-1]
        return [part + low for part, low in zip(np.split(solver.flows(arcs), ends), self.lowest, strict=True)]


def solve(demand: PlacementDemand, explicit: Ints | None = None) -> PlacementFlow:
    """The cheapest flow. ``explicit``: partitions whose new replicas do not come from a pool. Raises NoFlow."""
    network = _FlowNetwork(demand, round_bytes(demand), explicit)
    network.to_sink([(demand.least, demand.most, 0)])
    return network.solved()


def least_violation(demand: PlacementDemand, explicit: Ints | None = None) -> PlacementDemand:
    """The same with bounds of brokers widened by as little as makes it possible. Raises NoFlow where others bind.

    Where that leaves a choice, it takes few bytes (to a thousand-millionth of all), so that what is as even as it can
    be stays as it is.
    """
    costs = 1 + demand.bytes // max(1, int((demand.bytes * demand.factors).sum()) >> 30)
    network = _FlowNetwork(demand, costs, explicit)
    none, one = np.zeros_like(demand.least), int((costs * demand.factors).sum()) + 1
    # Free up to the least, dear above the most: what is short costs one each, what is too much two.
    most = np.full_like(none, int(demand.factors.sum()))
    steps = ((demand.least, 0), (demand.most - demand.least, one), (most, 3 * one))
    network.to_sink([(none, room, cost) for room, cost in steps])
    flow = network.solved()
    counts = np.bincount(demand.held[flow.stays], minlength=demand.brokers) + flow.given
    counts += np.bincount(flow.direct[1], minlength=demand.brokers)
    return replace(demand, least=np.minimum(demand.least, counts), most=np.maximum(demand.most, counts))


def stays_evenly(demand: PlacementDemand) -> Flags:
    """P×W: what stays where as few as possible are new, and as few as then can be had outside the bounds of brokers.

    Raises NoFlow where others bind.
    """
    return _solve_nearest(demand, 4 * int(demand.factors.sum()) + 1, None).stays


def _solve_nearest(demand: PlacementDemand, cost: int, explicit: Ints | None) -> PlacementFlow:
    """Return the flow nearest to the brokers' bounds; a new replica costs ``cost``, one outside the bounds 1 to 3."""
    network = _FlowNetwork(demand, np.full_like(demand.bytes, cost), explicit)
    none = np.zeros_like(demand.least)
    # Free up to the least, dear above the most: what is short costs 1 each, what is too much 2.
    steps = ((demand.least, 0), (demand.most - demand.least, 1), (np.full_like(none, int(demand.factors.sum())), 3))
    network.to_sink([(none, room, price) for room, price in steps])
    return network.solved()


def round_bytes(demand: PlacementDemand) -> Ints:
    """The bytes of each partition in the unit of the demand."""
    costs: Ints = (demand.bytes + demand.unit // 2) // demand.unit
    return costs


class _FlowNetwork:
    """Nodes are numbered: partitions, their racks, pools, brokers, the sink. Groups of arcs are kept in this order."""

    def __init__(self, demand: PlacementDemand, costs: Ints, explicit: Ints | None) -> None:
        self._demand = demand
        count, racks = demand.partitions, demand.racks
        self._in_rack = count + np.arange(count * racks).reshape(count, racks)
        self._pools = count * (1 + racks) + np.arange(racks)
        self._brokers = count * (1 + racks) + racks + np.arange(demand.brokers)
        supplies = np.zeros(demand.nodes, np.int64)
        supplies[:count] = demand.factors
        supplies[-1] = -int(demand.factors.sum())
        self._arcs = FlowArcs(supplies)
        self._arcs.add(np.arange(count)[:, None], self._in_rack, demand.rack_most, 0, demand.rack_least)
        self._stays = self._to_holders()
        pooled = np.broadcast_to(demand.pooled, (count, racks)).copy()
        if explicit is not None:
            pooled[explicit] = False
        self._taken = self._to_pools(pooled, costs)
        self._fed = self._from_pools()
        self._direct = _find_direct_pairs(demand, pooled)
        rows, brokers = self._direct
        self._arcs.add(self._in_rack[rows, demand.rack_of[brokers]], self._brokers[brokers], 1, costs[rows])

    def to_sink(self, steps: Sequence[tuple[Ints, Ints, int]]) -> None:
        """Add the arcs for what each broker may hold, in steps of (least, most, cost of each)."""
        sink = np.full(self._demand.brokers, self._demand.nodes - 1)
        for least, most, cost in steps:
            self._arcs.add(self._brokers, sink, most, cost, least)

    def solved(self) -> PlacementFlow:
        """Raises NoFlow."""
        demand = self._demand
        _, kept, taken, given, direct, *_ = self._arcs.solved()
        stays = np.zeros_like(demand.may_stay)
        stays[self._stays] = kept > 0
        from_pool = np.zeros((demand.partitions, demand.racks), np.int64)
        from_pool[self._taken] = taken
        gifts = np.zeros(demand.brokers, np.int64)
        gifts[self._fed] = given
        used = direct > 0
        return PlacementFlow(stays, from_pool, gifts, (self._direct[0][used], self._direct[1][used]))

    def _to_holders(self) -> tuple[Ints, Ints]:
        """Rows and columns of what may stay."""
        demand = self._demand
        rows, columns = np.nonzero(demand.may_stay)
        holders, must = demand.held[rows, columns], demand.must_stay[rows, columns].astype(np.int64)
        self._arcs.add(self._in_rack[rows, demand.rack_of[holders]], self._brokers[holders], 1, 0, must)
        return rows, columns

    def _to_pools(self, pooled: Flags, costs: Ints) -> tuple[Ints, Ints]:
        """Partitions and racks."""
        rows, racks = np.nonzero(pooled)
        self._arcs.add(self._in_rack[rows, racks], self._pools[racks], self._demand.rack_most[rows, racks], costs[rows])
        return rows, racks

    def _from_pools(self) -> Ints:
        """Brokers that a pool feeds."""
        demand = self._demand
        fed = demand.receivers[demand.pooled[demand.rack_of[demand.receivers]]]
        self._arcs.add(self._pools[demand.rack_of[fed]], self._brokers[fed], int(demand.factors.sum()), 0)
        return fed


def _find_direct_pairs(demand: PlacementDemand, pooled: Flags) -> tuple[Ints, Ints]:
    """Partitions and receivers of racks in which they have no pool, without those that may stay where they are."""
    rows: list[Ints] = []
    brokers: list[Ints] = []
    for rack in range(demand.racks):
        free = np.flatnonzero(~pooled[:, rack])
        if not len(free):
            continue
        for broker in demand.receivers[demand.rack_of[demand.receivers] == rack]:
            stays = ((demand.held[free] == broker) & demand.may_stay[free]).any(axis=1)
            rows.append(free[~stays])
            brokers.append(np.full(len(rows[-1]), broker))
    empty = np.zeros(0, np.int64)
    return (np.concatenate(rows), np.concatenate(brokers)) if rows else (empty, empty)
