"""Placement of a demand: solved exactly, and where the wanted bounds cannot be met, met as nearly as possible.

``by_size``: chooses the brokers of new replicas so that disks fill evenly, the largest first, each to the emptiest
eligible broker. The number for each broker is fixed, and a replica costs the same wherever it goes in its rack, so
neither the counts nor the bytes moved change.

``assign_brokers``: turns a flow into brokers. Every broker of a rack takes as many replicas from the rack's pool as the
flow gives it, and none of a partition that it holds. Replicas are dealt in a fixed order and exchanged where that does
not fit. Partitions that find no exchange are reported (NotPlaced), and then solved with an arc to each broker.

``place_by_pruning``: solves a large cluster by the few partitions that can matter, the smallest ones, which cost least
to move. Most partitions are kept as they are, the others are placed exactly, and the prices of that placement are
offered to all: a partition that could be placed cheaper at them takes part in the next round. When there is none, those
prices prove that all partitions together are placed with the least bytes.

``drop_replicas``: chooses the replicas that stay where a partition gets fewer; no bytes move, and only the evenness of
brokers matters. A flow in which everything costs nothing is slow to solve. Here partitions are decided one after the
other, each for the emptiest of its brokers, and then exchanged along paths: from a broker with too many to one that may
have more, partition by partition each keeping its replica on the next broker instead of this one. When no such path is
left, no choice of replicas brings the brokers nearer to their bounds.

``within_room``: keeps the disk limit as a hard bound, also during the move, when a broker holds old and new copies at
once. The replicas that stay, and the number and bytes of new replicas, are settled before; new replicas change places
until no broker is given more than it has room for. Two of them are exchanged within a rack, then one goes to a broker
that may hold one more and leaves one that may hold one less, then racks are crossed where the bounds of the racks allow
it. What is left over is searched exactly (``search_placement``: OR-tools' CP-SAT, with one thread and a fixed measure
of work, so that the same input gives the same placement). None of this changes the bytes moved, so a proof of them
stays true.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from kafkadash.planning.solver.certificate import compute_least_costs, prices_of
from kafkadash.planning.solver.demand import (
    NOBODY,
    UNKNOWN,
    Flags,
    Ints,
    PlacementDemand,
    SolverAnswer,
    TopologyColumns,
)
from kafkadash.planning.solver.disk_balance import OutsideTarget, balance_disks
from kafkadash.planning.solver.flow import NoFlow, PlacementFlow, least_violation, solve, stays_evenly
from kafkadash.planning.solver.modes import ModeAim, ModeCase, TooFew, demand_of, fix_replicas, spread_evenly
from kafkadash.planning.solver.request import REPAIR_RACKS, SET_RF, PlanRequest
from kafkadash.planning.solver.verification import balances_disks, bytes_beside
from kafkadash.planning.topology import ClusterTopology

if TYPE_CHECKING:
    from ortools.sat.python import cp_model

NOT_KNOWN = -1
"""A room that is not known, and so is not judged."""
BEYOND = 2**62


class NewPlacement:
    """The new replicas, numbered by their weight (the lightest is 0), and where each one goes for now."""

    def __init__(self, demand: PlacementDemand, answer: SolverAnswer, room: Ints, widest: Ints, known: Flags) -> None:
        self.demand, self._given = demand, answer
        self.room = np.where(room == NOT_KNOWN, BEYOND, room)
        self.widest = np.where(widest == NOT_KNOWN, BEYOND, widest)
        rows, columns = np.nonzero(answer.new != NOBODY)
        weights = np.where(known, demand.bytes, 0)[rows]
        order = np.lexsort((columns, rows, weights))
        self.rows, self._columns, self.weights = rows[order], columns[order], weights[order]
        self.brokers = answer.new[self.rows, self._columns]
        self.load = np.zeros(demand.brokers, np.int64)
        np.add.at(self.load, self.brokers, self.weights)
        self.counts = answer.counts(demand)
        self.changed = False

    def answer(self) -> SolverAnswer:
        """Brokers of a partition in the order of their numbers, as the decode has them."""
        new = np.full_like(self._given.new, NOBODY)
        new[self.rows, self._columns] = self.brokers
        filled = np.where(new == NOBODY, self.demand.brokers, new)
        filled.sort(axis=1)
        return SolverAnswer(self._given.stays, np.where(filled == self.demand.brokers, NOBODY, filled))

    def shortfall(self) -> Ints:
        over = np.maximum(self.load - self.room, 0)
        np.maximum.at(over, self.brokers, self.weights - self.widest[self.brokers])
        return over

    def violation(self) -> int:
        """Bytes over the rooms, and of single replicas over the widest."""
        return int(self.over().sum())

    def over(self) -> Ints:
        """B: the same of each broker."""
        over = np.maximum(self.load - self.room, 0)
        np.add.at(over, self.brokers, np.maximum(self.weights - self.widest[self.brokers], 0))
        return over

    def least_violation(self) -> int:
        """No placement is over by less: what all rooms together lack (those of a rack, where racks are settled), and
        what single replicas have more than the largest room.
        """
        demand, receivers = self.demand, self.demand.receivers
        if not len(receivers):
            return 0
        single = int(np.maximum(self.weights - self.room[receivers].max(), 0).sum())
        settled = (demand.rack_least[self.rows] == demand.rack_most[self.rows]).all()
        group = demand.rack_of if settled else np.zeros_like(demand.rack_of)
        lack, open_ = np.zeros(demand.racks, np.int64), np.zeros(demand.racks, np.bool_)
        known = demand.receives & (self.room < BEYOND)
        np.add.at(lack, group[self.brokers], self.weights)
        np.subtract.at(lack, group[known], self.room[known])
        open_[group[demand.receives & ~known]] = True
        return max(single, int(np.maximum(lack, 0)[~open_].sum()))

    @property
    def stays(self) -> Flags:
        return self._given.stays

    def in_racks(self) -> Ints:
        """P×R: replicas at the end."""
        racks = self.demand.stayed_in_racks(self.stays)
        np.add.at(racks, (self.rows, self.demand.rack_of[self.brokers]), 1)
        return racks


MOST_PAIRS_TRIED = 60
"""Replicas of a broker that are tried, the largest first, before it is left to the exact search."""
MOST_PARTNERS = 24
NEIGHBOURS = 12
"""Replicas of nearly the wanted size that are looked at when the first cannot be taken."""


def within_room(
    demand: PlacementDemand, answer: SolverAnswer, room: Ints, widest: Ints, sizes_known: Flags
) -> tuple[SolverAnswer, Ints]:
    """The answer with new replicas placed so that each broker has room for them, and what it is short of.

    ``room`` B: bytes that a broker may be given in all. ``widest`` B: bytes of the largest single replica that it may
    be given. ``NOT_KNOWN`` is not judged. ``sizes_known`` P: partitions without a known size weigh nothing here.
    Returned B: bytes that a broker is over its room (or its largest new replica over the widest), 0 for all where the
    limit is met; the least found in all where it cannot be.
    """
    placing = NewPlacement(demand, answer, room, widest, sizes_known)
    if placing.violation() and demand.partitions:
        _exchange_replicas(placing)
        if placing.violation() > placing.least_violation():
            search_placement(placing)
    return (placing.answer() if placing.changed else answer), placing.shortfall()


def _exchange_replicas(placing: NewPlacement) -> None:
    """The broker that is most over first; one that no step helps is left as it is."""
    steps = _ExchangeSteps(placing)
    waiting = [(-int(over), int(broker)) for broker, over in enumerate(placing.over()) if over]
    heapq.heapify(waiting)
    while waiting:
        _, broker = heapq.heappop(waiting)
        while steps.over(broker) and steps.eased(broker):
            pass
    steps.write()


class _ExchangeSteps:
    """Exchanges that lower one broker's excess and give nobody one. Plain lists: they are many and small."""

    def __init__(self, placing: NewPlacement) -> None:
        self._placing, demand = placing, placing.demand
        self._demand = demand
        self._rows, self._at = placing.rows.tolist(), placing.brokers.tolist()
        self._weights = placing.weights.tolist()
        self._room, self._widest = placing.room.tolist(), placing.widest.tolist()
        self._load, self._counts = placing.load.tolist(), placing.counts.tolist()
        self._least, self._most = demand.least.tolist(), demand.most.tolist()
        self._rack_of = demand.rack_of.tolist()
        self._on: list[list[int]] = [[] for _ in range(demand.brokers)]
        for unit, broker in enumerate(self._at):
            self._on[broker].append(unit)
        self._receivers = demand.receivers.tolist()
        order = np.argsort(placing.rows, kind="stable")
        self._by_row = order.tolist()
        self._first = np.searchsorted(placing.rows[order], np.arange(demand.partitions + 1)).tolist()

    def write(self) -> None:
        self._placing.brokers = np.array(self._at, np.int64)
        self._placing.load = np.array(self._load, np.int64)
        self._placing.counts = np.array(self._counts, np.int64)

    def over(self, broker: int) -> int:
        widest, on = self._widest[broker], self._on[broker]
        first = bisect_right(on, widest, key=self._weights.__getitem__)
        single: int = sum(self._weights[unit] - widest for unit in on[first:])
        return single + max(0, -self._slack(broker))

    def eased(self, broker: int) -> bool:
        """Make a step that lowers the broker's excess with one of its largest replicas; return whether one was made."""
        partners = sorted((b for b in self._receivers if b != broker and self._slack(b) > 0), key=self._by_slack)
        near = [b for b in partners if self._rack_of[b] == self._rack_of[broker]][:MOST_PARTNERS]
        far = [b for b in partners if self._rack_of[b] != self._rack_of[broker]][:MOST_PARTNERS]
        only_wide = self._load[broker] <= self._room[broker]
        heaviest = self._on[broker][: -MOST_PAIRS_TRIED - 1 : -1]
        tried = [u for u in heaviest if self._weights[u] > (self._widest[broker] if only_wide else 0)]
        for others, step in (
            (near, self._exchange),
            (near, self._pass_on),
            (far, self._exchange),
            (far, self._pass_on),
        ):
            for unit in tried:
                if any(step(unit, other) for other in others):
                    return True
        return False

    def _slack(self, broker: int) -> int:
        slack: int = self._room[broker] - self._load[broker]
        return slack

    def _by_slack(self, broker: int) -> tuple[int, int]:
        return -self._slack(broker), broker

    def _exchange(self, unit: int, other: int) -> bool:
        """With a lighter one of the other: the heaviest that takes all of the excess, or as much as there is room."""
        broker, weight, theirs = self._at[unit], self._weights[unit], self._on[other]
        if weight > self._widest[other]:
            return False
        excess = self._load[broker] - self._room[broker]
        lowest = bisect_left(theirs, weight - self._slack(other), key=self._weights.__getitem__)
        wanted = bisect_right(theirs, weight - max(excess, 0), key=self._weights.__getitem__)
        fits = bisect_right(theirs, min(weight - 1, self._widest[broker]), key=self._weights.__getitem__)
        down = range(min(wanted, fits) - 1, lowest - 1, -1)[:NEIGHBOURS]
        up = range(max(wanted, lowest), fits)[:NEIGHBOURS]
        for place in (*down, *up):
            back = theirs[place]
            if self._allowed(unit, other, back):
                self._put(unit, other)
                self._put(back, broker)
                return True
        return False

    def _pass_on(self, unit: int, other: int) -> bool:
        """Without one in return, where both brokers' counts allow it."""
        broker, weight = self._at[unit], self._weights[unit]
        if weight > min(self._slack(other), self._widest[other]):
            return False
        if self._counts[broker] <= self._least[broker] or self._counts[other] >= self._most[other]:
            return False
        if not self._allowed(unit, other, None):
            return False
        self._put(unit, other)
        return True

    def _allowed(self, unit: int, other: int, back: int | None) -> bool:
        """Return whether no broker gets a partition that it has or had, and the partitions' racks stay as allowed."""
        broker = self._at[unit]
        if back is not None and self._rows[back] == self._rows[unit]:
            return False
        goes = self._may_go(self._rows[unit], broker, other)
        return goes and (back is None or self._may_go(self._rows[back], other, broker))

    def _may_go(self, row: int, source: int, target: int) -> bool:
        new = [self._at[u] for u in self._by_row[self._first[row] : self._first[row + 1]]]
        if target in new or target in self._demand.held[row].tolist():
            return False
        here, there = self._rack_of[source], self._rack_of[target]
        if here == there:
            return True
        kept = self._demand.held[row][self._placing.stays[row]].tolist()
        racks = [self._rack_of[broker] for broker in (*kept, *new)]
        least, most = self._demand.rack_least[row, here], self._demand.rack_most[row, there]
        return bool(racks.count(here) > least and racks.count(there) < most)

    def _put(self, unit: int, target: int) -> None:
        source, weight = self._at[unit], self._weights[unit]
        on = self._on[source]
        del on[bisect_left(on, unit)]
        insort(self._on[target], unit)
        self._at[unit] = target
        self._load[source] -= weight
        self._load[target] += weight
        self._counts[source] -= 1
        self._counts[target] += 1
        self._placing.changed = True


MOST_CHOICES = 20_000
"""Pairs of replica and broker that are searched; above it only the brokers that are over, and those with most room."""
WORK = 8.0
"""Work limit in the solver's own unit, about a second each."""
SEED = 36


def search_placement(placing: NewPlacement) -> None:
    """Places them anew where that leaves less over the rooms than there is now."""
    brokers = _choose_brokers(placing)
    units = _choose_units(placing, brokers)
    found = _RoomSearch(placing, brokers, units).found()
    if found is None:
        return
    before = placing.violation(), placing.brokers, placing.load, placing.counts
    after = placing.brokers.copy()
    after[units] = found
    _assign_brokers(placing, after)
    if placing.violation() < before[0]:
        placing.changed = True
    else:
        _, placing.brokers, placing.load, placing.counts = before


def _assign_brokers(placing: NewPlacement, brokers: Ints) -> None:
    placing.counts = placing.counts + np.bincount(brokers, minlength=len(placing.counts))
    placing.counts -= np.bincount(placing.brokers, minlength=len(placing.counts))
    placing.brokers, placing.load = brokers, np.zeros_like(placing.load)
    np.add.at(placing.load, brokers, placing.weights)


def _choose_brokers(placing: NewPlacement) -> Ints:
    """All receivers, or those most over and those with the most room, so many that the search stays small."""
    receivers = placing.demand.receivers
    if len(placing.rows) * len(receivers) <= MOST_CHOICES:
        return receivers
    over, slack = placing.over()[receivers], (placing.room - placing.load)[receivers]
    worst = receivers[np.argsort(-over, kind="stable")][:4]
    racks = placing.demand.rack_of[receivers]
    near = np.argsort(np.where(np.isin(racks, placing.demand.rack_of[worst]), -slack, BEYOND), kind="stable")
    return np.unique(np.concatenate([worst, receivers[near][:8]]))


def _choose_units(placing: NewPlacement, brokers: Ints) -> Ints:
    """Return the units on these brokers now, only the heaviest where there are too many."""
    units = np.flatnonzero(np.isin(placing.brokers, brokers))
    return units[-max(1, MOST_CHOICES // max(1, len(brokers))) :]


class _RoomSearch:
    """A choice for each partition and broker; several new replicas of a partition are alike."""

    def __init__(self, placing: NewPlacement, brokers: Ints, units: Ints) -> None:
        from ortools.sat.python import cp_model  # takes a second to load and is seldom needed

        self._placing, self._units = placing, units
        self._model = cp_model.CpModel()
        self._at: dict[int, list[tuple[int, bool]]] = {}
        fixed = np.ones(len(placing.rows), np.bool_)
        fixed[units] = False
        self._rows, each = np.unique(placing.rows[units], return_counts=True)
        of_rows = np.flatnonzero(np.isin(placing.rows, self._rows))
        for row, broker, rests in zip(placing.rows[of_rows], placing.brokers[of_rows], fixed[of_rows], strict=True):
            self._at.setdefault(int(row), []).append((int(broker), bool(rests)))
        self._choices: dict[tuple[int, int], cp_model.IntVar] = {}
        for row, many in zip(self._rows.tolist(), each.tolist(), strict=True):
            self._model.add(sum(self._of_row(row, brokers)) == many)
        self._counts(fixed)
        self._racks(brokers, fixed)
        self._over(fixed)

    def found(self) -> Ints | None:
        """The broker of each unit; None where the work did not suffice for any placement."""
        from ortools.sat.python import cp_model

        solver = cp_model.CpSolver()
        solver.parameters.num_workers = 1
        solver.parameters.random_seed = SEED
        solver.parameters.max_deterministic_time = WORK
        if solver.solve(self._model) not in {cp_model.OPTIMAL, cp_model.FEASIBLE}:
            return None
        chosen: dict[int, list[int]] = {}
        for (row, broker), choice in self._choices.items():
            if solver.boolean_value(choice):
                chosen.setdefault(row, []).append(broker)
        return np.array([chosen[row].pop(0) for row in self._placing.rows[self._units].tolist()], np.int64)

    def _of_row(self, row: int, brokers: Ints) -> list[cp_model.IntVar]:
        """Return one variable for each broker that may get the row, with a hint at the present brokers."""
        now = {broker for broker, rests in self._at[row] if not rests}
        taken = {broker for broker, rests in self._at[row] if rests} | set(self._placing.demand.held[row].tolist())
        found = []
        for broker in brokers.tolist():
            if broker in now or broker not in taken:
                choice = self._model.new_bool_var("")
                self._model.add_hint(choice, broker in now)
                self._choices[row, broker] = choice
                found.append(choice)
        return found

    def _counts(self, fixed: Flags) -> None:
        placing, demand = self._placing, self._placing.demand
        besides = placing.counts - np.bincount(placing.brokers[~fixed], minlength=demand.brokers)
        for broker, choices in self._by(1).items():
            low, high = demand.least[broker] - besides[broker], demand.most[broker] - besides[broker]
            self._model.add_linear_constraint(sum(self._choices[c] for c in choices), int(low), int(high))

    def _racks(self, brokers: Ints, fixed: Flags) -> None:
        placing, demand = self._placing, self._placing.demand
        if len(np.unique(demand.rack_of[brokers])) == 1:
            return
        besides = placing.in_racks()
        np.subtract.at(besides, (placing.rows[~fixed], demand.rack_of[placing.brokers[~fixed]]), 1)
        for row, choices in self._by(0).items():
            for rack in range(demand.racks):
                there = [self._choices[c] for c in choices if demand.rack_of[c[1]] == rack]
                low, high = (int(b[row, rack] - besides[row, rack]) for b in (demand.rack_least, demand.rack_most))
                if there:
                    self._model.add_linear_constraint(sum(there), low, high)

    def _over(self, fixed: Flags) -> None:
        """Minimize the bytes over the rooms of brokers, and the bytes of single replicas over the widest."""
        placing = self._placing
        weight = dict(zip(placing.rows.tolist(), placing.weights.tolist(), strict=True))
        besides = np.zeros_like(placing.load)
        np.add.at(besides, placing.brokers[fixed], placing.weights[fixed])
        total = int(placing.weights.sum())
        lost: list[cp_model.LinearExprT] = []
        for broker, choices in self._by(1).items():
            room, widest = int(placing.room[broker]), int(placing.widest[broker])
            if room < total:
                over = self._model.new_int_var(0, total, "")
                coming = sum(weight[row] * self._choices[row, b] for row, b in choices)
                self._model.add(coming + int(besides[broker]) - over <= room)
                lost.append(over)
            lost += [(weight[r] - widest) * self._choices[r, b] for r, b in choices if weight[r] > widest]
        self._model.minimize(sum(lost))

    def _by(self, side: int) -> dict[int, list[tuple[int, int]]]:
        """The choices of each partition (0) or broker (1)."""
        found: dict[int, list[tuple[int, int]]] = {}
        for choice in self._choices:
            found.setdefault(choice[side], []).append(choice)
        return found


def by_size(demand: PlacementDemand, answer: SolverAnswer, beside: Ints) -> SolverAnswer:
    """``beside`` B: bytes on each broker of partitions that are not planned. A rack in which that way leaves a replica
    without a place stays as it was.
    """
    load = beside.astype(np.int64)
    rows, columns = np.nonzero(answer.stays)
    np.add.at(load, demand.held[rows, columns], demand.bytes[rows])
    new = answer.new.copy()
    rows, columns = np.nonzero(answer.new != NOBODY)
    racks = demand.rack_of[answer.new[rows, columns]]
    for rack in np.unique(racks):
        of_rack = racks == rack
        _deal_rack(demand, answer, new, (rows[of_rack], columns[of_rack]), load)
    new.sort(axis=1)
    return SolverAnswer(answer.stays, new[:, ::-1])


def _deal_rack(demand: PlacementDemand, answer: SolverAnswer, new: Ints, cells: tuple[Ints, Ints], load: Ints) -> None:
    """The cells of one rack in ``new``."""
    rows, columns = cells
    before = answer.new[rows, columns]
    slots = np.bincount(before, minlength=demand.brokers).tolist()
    heap = [(int(load[broker]), broker) for broker in np.flatnonzero(slots).tolist()]
    heapq.heapify(heap)
    sizes = demand.bytes[rows]
    found: dict[int, int] = {}
    taken: dict[int, set[int]] = {}
    for unit in np.lexsort((columns, rows, -sizes)).tolist():
        row = int(rows[unit])
        if row not in taken:
            # What may stay and does not would be no move at all there: the flow has already decided against it.
            taken[row] = set(demand.held[row][demand.may_stay[row] | answer.stays[row]].tolist())
        aside = []
        while heap and heap[0][1] in taken[row]:
            aside.append(heapq.heappop(heap))
        if not heap:
            return
        held, broker = heapq.heappop(heap)
        found[unit] = broker
        taken[row].add(broker)
        slots[broker] -= 1
        if slots[broker]:
            heapq.heappush(heap, (held + int(sizes[unit]), broker))
        for one in aside:
            heapq.heappush(heap, one)
    order = np.fromiter(found, np.int64, len(found))
    chosen = np.fromiter(found.values(), np.int64, len(found))
    new[rows[order], columns[order]] = chosen
    np.add.at(load, chosen, sizes[order])


ROUNDS = 40
MOST_SOLVED = 3


class NotPlaced(Exception):
    """Some new replicas found no broker; ``partitions`` are theirs."""

    def __init__(self, partitions: Ints) -> None:
        super().__init__(f"{len(partitions)} partitions")
        self.partitions = partitions


def place(demand: PlacementDemand) -> SolverAnswer:
    """The answer of the flow, with brokers. Raises NoFlow where bounds cannot be met, NotPlaced if no way is found."""
    explicit: Ints | None = None
    for _ in range(MOST_SOLVED):
        try:
            return assign_brokers(demand, solve(demand, explicit))
        except NotPlaced as left:
            explicit = left.partitions if explicit is None else np.union1d(explicit, left.partitions)
    return assign_brokers(demand, solve(demand, np.arange(demand.partitions)))


def assign_brokers(demand: PlacementDemand, flow: PlacementFlow) -> SolverAnswer:
    """Raises NotPlaced."""
    stays = flow.stays.copy()
    pairs = [flow.direct]
    for rack in np.flatnonzero(demand.pooled):
        units = np.repeat(np.arange(demand.partitions), flow.from_pool[:, rack])
        brokers = np.flatnonzero((demand.rack_of == rack) & (flow.given > 0))
        slots = np.repeat(brokers, flow.given[brokers])
        pairs.append((units, _deal_brokers(demand, stays, units, slots)))
    rows, brokers = (np.concatenate([pair[side] for pair in pairs]) for side in (0, 1))
    again = (demand.held[rows] == brokers[:, None]) & demand.may_stay[rows]  # it holds that one: it stays, for nothing
    fresh = ~again.any(axis=1)
    where, column = np.nonzero(again)
    stays[rows[where], column] = True
    return SolverAnswer(stays, _group_by_partition(demand.partitions, rows[fresh], brokers[fresh]))


def _deal_brokers(demand: PlacementDemand, stays: np.ndarray, units: Ints, slots: Ints) -> Ints:
    """The broker of each unit; ``units`` are partitions, some more than once. Raises NotPlaced."""
    chance = np.random.default_rng(SEED)
    slots = slots[chance.permutation(len(slots))]
    bad = _find_clashes(demand, stays, units, slots)
    for _ in range(ROUNDS):
        wrong = np.flatnonzero(bad)
        if not len(wrong):
            return slots
        others = chance.choice(len(units), size=len(wrong), replace=False)
        apart = ~np.isin(others, wrong)
        wrong, others = wrong[apart], others[apart]
        tried = slots.copy()
        tried[wrong], tried[others] = slots[others], slots[wrong]
        worse = _find_clashes(demand, stays, units, tried)
        # An exchange counts where neither of its partitions clashes afterwards; the others are taken back.
        failed = worse[wrong] | worse[others]
        tried[wrong[failed]], tried[others[failed]] = slots[wrong[failed]], slots[others[failed]]
        slots, bad = tried, _find_clashes(demand, stays, units, tried)
    slots, bad = _one_by_one(demand, stays, units, slots, bad)
    if bad.any():
        raise NotPlaced(np.unique(units[bad]))
    return slots


def _find_clashes(demand: PlacementDemand, stays: np.ndarray, units: Ints, slots: Ints) -> np.ndarray:
    """Return for each unit whether its broker holds that partition already, or gets it twice."""
    holds: np.ndarray = ((demand.held[units] == slots[:, None]) & stays[units]).any(axis=1)
    order = np.lexsort((slots, units))
    twice = (np.diff(units[order]) == 0) & (np.diff(slots[order]) == 0)
    holds[order[1:][twice]] = True
    return holds


def _one_by_one(
    demand: PlacementDemand, stays: np.ndarray, units: Ints, slots: Ints, bad: np.ndarray
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
    return slots, _find_clashes(demand, stays, units, slots)


def _group_by_partition(count: int, rows: Ints, brokers: Ints) -> Ints:
    """P×N: brokers by partition, in the order of their numbers, ``NOBODY`` where there are fewer."""
    order = np.lexsort((brokers, rows))
    rows, brokers = rows[order], brokers[order]
    each = np.bincount(rows, minlength=count)
    place = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
    new = np.full((count, int(each.max()) if len(each) else 0), NOBODY, np.int64)
    new[rows, place] = brokers
    return new


WORTH_IT = 5_000
"""Partitions; fewer are solved at once."""
SPARE, MORE = 20, 8
"""Replicas that each broker offers beyond those that it has too many; times as many where that was not enough."""
SIFT_ROUNDS, PLACED = 12, 3
LARGEST_SHARE = 0.7
"""Share of the partitions; with more of them pruning gains nothing."""


def place_by_pruning(demand: PlacementDemand) -> SolverAnswer | None:
    """A placement of the least bytes; None where all partitions have to be solved at once to know."""
    if demand.partitions < WORTH_IT:
        return None
    settled = demand.settled
    spare = SPARE
    taking = ~settled | _select_cheapest(demand, settled, spare)
    for _ in range(SIFT_ROUNDS):
        if np.count_nonzero(taking) > LARGEST_SHARE * demand.partitions:
            return None
        part = _restrict_demand(demand, taking)
        answer = _place_part(part)
        if answer is None:
            spare *= MORE
            taking |= _select_cheapest(demand, settled, spare)
            continue
        prices = prices_of(part, answer.stays, answer.new)
        if prices is None:
            return None
        tempted = _find_improvable(demand, prices, np.flatnonzero(~taking))
        if not len(tempted):
            return _extend_answer(demand, taking, answer)
        taking[tempted] = True
    return None


def _select_cheapest(demand: PlacementDemand, settled: Flags, spare: int) -> Flags:
    """P: the cheapest partitions of each broker, as many as it has too many and some more."""
    counts = np.bincount(demand.held[demand.may_stay], minlength=demand.brokers)
    wanted = spare + np.where(counts > demand.most, counts - demand.least, 0)
    rows = np.flatnonzero(settled)
    rows = rows[np.argsort(demand.bytes[rows], kind="stable")]
    leaving = demand.may_stay[rows] & ~demand.must_stay[rows]
    brokers = np.where(leaving, demand.held[rows], demand.brokers).ravel().astype(np.int32)
    order = np.argsort(brokers, kind="stable")
    many = np.bincount(brokers, minlength=demand.brokers + 1)
    begin = np.cumsum(many) - many
    most = np.minimum(wanted, many[:-1])
    chosen = [order[start : start + some] for start, some in zip(begin[:-1], most, strict=True)]
    offered = np.zeros(demand.partitions, np.bool_)
    offered[rows[np.concatenate(chosen) // demand.held.shape[1]]] = True
    return offered


def _restrict_demand(demand: PlacementDemand, taking: Flags) -> PlacementDemand:
    """The partitions that take part, and what the others leave of the bounds."""
    kept = np.bincount(demand.held[demand.may_stay & ~taking[:, None]], minlength=demand.brokers)
    return replace(demand.only(taking), least=demand.least - kept, most=demand.most - kept)


def _place_part(part: PlacementDemand) -> SolverAnswer | None:
    """None where that cannot be had with these partitions alone."""
    explicit: Ints | None = None
    for _ in range(PLACED):
        try:
            return assign_brokers(part, solve(part, explicit))
        except NoFlow:
            return None
        except NotPlaced as left:
            explicit = left.partitions if explicit is None else np.union1d(explicit, left.partitions)
    return None


def _find_improvable(demand: PlacementDemand, prices: Ints, rows: Ints) -> Ints:
    """Which of these partitions, that stay as they are, would rather not at the prices."""
    gain = int(prices[demand.receivers].max(initial=0)) - int(prices.min(initial=0))
    rows = rows[demand.bytes[rows] < gain]
    some = demand.only(rows)
    kept = np.where(some.may_stay, -prices[some.held], 0).sum(axis=1)
    tempted: Ints = rows[compute_least_costs(some, prices) < kept]
    return tempted


def _extend_answer(demand: PlacementDemand, taking: Flags, answer: SolverAnswer) -> SolverAnswer:
    stays = demand.may_stay.copy()
    stays[taking] = answer.stays
    new = np.full((demand.partitions, answer.new.shape[1]), NOBODY, np.int64)
    new[taking] = answer.new
    return SolverAnswer(stays, new)


DROP_SEED = 836
ATTEMPTS = 20
"""For each replica that is one too many or too few somewhere."""

Step = tuple[int, int, int]
"""A partition, the column of the replica that it gives up, and the column of the one that it keeps instead."""


def drop_replicas(demand: PlacementDemand) -> tuple[PlacementDemand, SolverAnswer] | None:
    """Return the demand that is met by dropping replicas, with wider bounds if necessary, and the replicas that stay.

    None where some partition needs a new replica.
    """
    if (demand.may_stay.sum(axis=1) < demand.factors).any():
        return None
    stays = _drop_greedily(demand)
    if (stays.sum(axis=1) != demand.factors).any() or not _in_racks(demand, stays):
        return None
    exchange = _ExchangeStep(demand, stays)
    exchange.even_out()
    nothing = np.zeros((demand.partitions, 0), np.int64)
    answer = SolverAnswer(exchange.stays, nothing)
    counts = answer.counts(demand)
    met = replace(demand, least=np.minimum(demand.least, counts), most=np.maximum(demand.most, counts))
    return met, answer


def _drop_greedily(demand: PlacementDemand) -> Flags:
    """P×W. In an order that has nothing to do with who holds what, or whole stretches would share the same brokers."""
    stays = demand.must_stay.copy()
    load = np.bincount(demand.held[stays], minlength=demand.brokers).tolist()
    rack_of, factors = demand.rack_of.tolist(), demand.factors.tolist()
    waiting = demand.may_stay & ~stays
    fixed = stays.sum(axis=1).tolist()
    for row in np.random.default_rng(DROP_SEED).permutation(demand.partitions).tolist():
        left = factors[row] - fixed[row]
        if left <= 0:
            continue
        held = demand.held[row].tolist()
        open_ = np.flatnonzero(waiting[row]).tolist()
        if left < len(open_):
            open_ = _choose_emptiest(
                demand, row, open_, (held, load, rack_of), left, np.flatnonzero(stays[row]).tolist()
            )
        for column in open_:
            stays[row, column] = True
            load[held[column]] += 1
    return stays


def _choose_emptiest(
    demand: PlacementDemand,
    row: int,
    open_: list[int],
    known: tuple[list[int], list[int], list[int]],
    left: int,
    kept: list[int],
) -> list[int]:
    """So many of these columns: first where the racks need one, then on the emptiest brokers."""
    held, load, rack_of = known
    least, most = demand.rack_least[row].tolist(), demand.rack_most[row].tolist()
    in_racks = [0] * demand.racks
    for column in kept:
        in_racks[rack_of[held[column]]] += 1
    chosen: list[int] = []
    for _ in range(left):
        best = min(
            (in_racks[rack] >= most[rack], in_racks[rack] >= least[rack], load[held[column]], column)
            for column in open_
            if column not in chosen
            for rack in (rack_of[held[column]],)
        )[3]
        chosen.append(best)
        in_racks[rack_of[held[best]]] += 1
    return chosen


def _in_racks(demand: PlacementDemand, stays: Flags) -> bool:
    counts = demand.stayed_in_racks(stays)
    return bool(((counts >= demand.rack_least) & (counts <= demand.rack_most)).all())


class _ExchangeStep:
    """Which partitions could keep their replica on another broker, by the two brokers."""

    def __init__(self, demand: PlacementDemand, stays: Flags) -> None:
        self._demand, self.stays = demand, stays
        self._racks = demand.stayed_in_racks(stays)
        self._counts = np.bincount(demand.held[stays], minlength=demand.brokers)
        self._steps: defaultdict[tuple[int, int], list[Step]] = defaultdict(list)
        self._ways = np.zeros((demand.brokers, demand.brokers), np.bool_)
        choice = (demand.may_stay & ~stays).any(axis=1) & (stays & ~demand.must_stay).any(axis=1)
        for row in np.flatnonzero(choice).tolist():
            self._offer(row)

    def even_out(self) -> None:
        """Brokers with too many give to those with fewer, the furthest out first; then those with too few get some."""
        demand = self._demand
        for level in range(int(max(0, (self._counts - demand.most).max())), -1, -1):
            self._bring(demand.most + level, np.greater)
        for level in range(int(max(0, (demand.least - self._counts).max())), -1, -1):
            self._bring(demand.least - level, np.less)

    def _bring(self, bound: Ints, wrong: np.ufunc) -> None:
        """Move replicas along ways until all brokers are within this bound, or no way is left."""
        # Each way mends one replica; one that breaks off half way leaves as much to mend as there was.
        for _ in range(ATTEMPTS * int(np.abs(self._counts - bound)[wrong(self._counts, bound)].sum())):
            if not wrong(self._counts, bound).any():
                return
            way = self._way(self._counts > bound, self._counts < bound)
            if way is None:
                return
            self._go(way)

    def _offer(self, row: int) -> None:
        """All exchanges of this partition as it stands."""
        demand = self._demand
        held = demand.held[row]
        for gives in np.flatnonzero(self.stays[row] & ~demand.must_stay[row]).tolist():
            for takes in np.flatnonzero(demand.may_stay[row] & ~self.stays[row]).tolist():
                if self._allowed((row, gives, takes)):
                    one, other = int(held[gives]), int(held[takes])
                    self._steps[one, other].append((row, gives, takes))
                    self._ways[one, other] = True

    def _allowed(self, step: Step) -> bool:
        row, gives, takes = step
        demand = self._demand
        if not self.stays[row, gives] or self.stays[row, takes]:
            return False
        one, other = demand.rack_of[demand.held[row, [gives, takes]]]
        return bool(
            one == other
            or (
                self._racks[row, one] > demand.rack_least[row, one]
                and self._racks[row, other] < demand.rack_most[row, other]
            )
        )

    def _way(self, sources: Flags, targets: Flags) -> list[int] | None:
        """Brokers of a shortest way from one of the sources to one of the targets; None where there is none."""
        brokers = self._demand.brokers
        before = np.full(brokers, -1)
        reached, wave = sources.copy(), np.flatnonzero(sources)
        while len(wave):
            hits = self._ways[wave] & ~reached
            fresh = np.flatnonzero(np.logical_or.reduce(hits, axis=0))
            before[fresh] = wave[np.argmax(hits[:, fresh], axis=0)]
            reached[fresh] = True
            ends = fresh[targets[fresh]]
            if len(ends):
                way = [int(ends[0])]
                while before[way[-1]] >= 0:
                    way.append(int(before[way[-1]]))
                return way[::-1]
            wave = fresh
        return None

    def _go(self, way: list[int]) -> None:
        """All of it, or nothing where an exchange on it is not possible any more."""
        edges = list(pairwise(way))
        for one, other in edges:
            steps = self._steps[one, other]
            while steps and not self._allowed(steps[-1]):
                steps.pop()
            if not steps:
                self._ways[one, other] = False
                return
        for one, other in edges:
            step = next(self._possible(one, other), None)
            if step is None:  # a partition that is on the way twice
                self._ways[one, other] = False
                return
            self._take(step)

    def _possible(self, one: int, other: int) -> Iterator[Step]:
        steps = self._steps[one, other]
        while steps:
            step = steps.pop()
            if self._allowed(step):
                yield step

    def _take(self, step: Step) -> None:
        row, gives, takes = step
        one, other = (int(self._demand.held[row, column]) for column in (gives, takes))
        self.stays[row, gives], self.stays[row, takes] = False, True
        racks = self._demand.rack_of
        self._racks[row, racks[one]] -= 1
        self._racks[row, racks[other]] += 1
        self._counts[one] -= 1
        self._counts[other] += 1
        self._offer(row)


MOST_TRIED = 6


@dataclass(frozen=True, slots=True)
class SolvedDemand:
    """``demand`` is what was asked for, ``met`` what is met: with wider bounds where the wanted ones cannot be had.

    ``over``: a broker would be given more than its disk has room for. ``outside``: brokers whose disks could not be
    brought within eps; None where that was not asked for.
    """

    demand: PlacementDemand
    met: PlacementDemand
    answer: SolverAnswer
    over: bool = False
    outside: tuple[OutsideTarget, ...] | None = None


def fit_to_disks(
    topology: ClusterTopology, case: ModeCase, demand: PlacementDemand, request: PlanRequest
) -> SolvedDemand:
    """With new replicas by size, and within the disk limit. Brokers that are too full for their even share get less,
    as long as their racks have others; where that is not enough the first answer tells how much is missing.
    """
    beside = bytes_beside(case)
    first, over = _fit_disks(topology, case, _solve_mode(demand, case.aim, request, beside), request)
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
        again = _solve_mode(narrower, aim, request, beside)
        solved, over = _fit_disks(topology, case, replace(again, demand=demand), request)
    return replace(first, over=True) if over.any() else solved


def solve_demand(demand: PlacementDemand) -> tuple[PlacementDemand, SolverAnswer]:
    """The placement, and the demand that it meets: with wider bounds where the wanted ones cannot be met.

    Raises NoFlow where no bounds of brokers help, NotPlaced.
    """
    met, explicit = demand, None
    for _ in range(MOST_TRIED):
        try:
            return met, _solve_placement(met, explicit)
        except NotPlaced as left:
            explicit = left.partitions if explicit is None else np.union1d(explicit, left.partitions)
        except NoFlow:
            # From what was wanted, with all that is known by now of who cannot go where: no wider than needed.
            met = least_violation(demand, explicit)
    every = np.arange(demand.partitions)
    try:
        return demand, assign_brokers(demand, solve(demand, every))
    except NoFlow:
        met = least_violation(demand, every)
        return met, assign_brokers(met, solve(met, every))


def _solve_placement(demand: PlacementDemand, explicit: Ints | None) -> SolverAnswer:
    """By some of the partitions where they are enough, and by all. Raises NoFlow, NotPlaced."""
    found = place_by_pruning(demand) if explicit is None else None
    return assign_brokers(demand, solve(demand, explicit)) if found is None else found


def repair_racks(columns: TopologyColumns, aim: ModeAim) -> tuple[PlacementDemand, SolverAnswer]:
    """Rack violations mended with the least bytes, and what that leaves open made even.

    The demand is that of the bytes, which are what is proven.
    """
    solved = _in_two_steps(demand_of(columns, replace(aim, strict=False, free=True)), aim)
    return solved.met, solved.answer


def widen_bounds(wanted: PlacementDemand, met: PlacementDemand) -> PlacementDemand:
    """Return the wanted demand with the bounds of brokers widened to include those of ``met``."""
    return replace(wanted, least=np.minimum(wanted.least, met.least), most=np.maximum(wanted.most, met.most))


def _solve_mode(demand: PlacementDemand, aim: ModeAim, request: PlanRequest, beside: Ints) -> SolvedDemand:
    if request.mode == REPAIR_RACKS and not request.rebalance:
        solved = _in_two_steps(demand, aim)
    elif request.mode == SET_RF and (fewer := drop_replicas(demand)) is not None:
        solved = SolvedDemand(demand, *fewer)
    else:
        solved = SolvedDemand(demand, *solve_demand(demand))
    return replace(solved, answer=by_size(solved.met, solved.answer, beside))


def _in_two_steps(demand: PlacementDemand, aim: ModeAim) -> SolvedDemand:
    _, placed = solve_demand(fix_replicas(demand, _kept_evenly(demand, aim), aim))
    return SolvedDemand(demand, replace(demand, most=np.maximum(demand.most, placed.counts(demand))), placed)


def _kept_evenly(demand: PlacementDemand, aim: ModeAim) -> Flags:
    """P×W: what stays where the least is moved and brokers do not matter; of several that could go, whose going helps.

    Where each partition is placed for itself, the least bytes are the fewest new replicas. The others all stay.
    """
    settled = demand.settled
    stays = demand.may_stay.copy()
    aimed = spread_evenly(replace(demand, must_stay=np.where(settled[:, None], demand.may_stay, demand.must_stay)), aim)
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


def _fit_disks(
    topology: ClusterTopology, case: ModeCase, solved: SolvedDemand, request: PlanRequest
) -> tuple[SolvedDemand, Ints]:
    """With disks within eps where that is asked for; B: bytes that brokers are over their room, after replicas changed
    places to mend that.
    """
    columns, over = case.columns, np.zeros(len(case.columns.ids), np.int64)
    room = widest = None
    if request.disk_limit is not None:
        room, widest = _compute_rooms(topology, columns, request.disk_limit)
    if balances_disks(request) and request.eps is not None:
        beside, judged = bytes_beside(case), solved.met.receives
        done = balance_disks(solved.met, solved.answer, solved.met.bytes, beside, judged, request.eps, room, widest)
        solved = replace(solved, answer=done.answer, outside=done.outside)
    if room is not None and widest is not None:
        found, over = within_room(solved.met, solved.answer, room, widest, columns.sizes != UNKNOWN)
        solved = replace(solved, answer=found)
    return solved, over


def _compute_rooms(topology: ClusterTopology, columns: TopologyColumns, limit: float) -> tuple[Ints, Ints]:
    """B: bytes that each broker may still be given in all and at once; ``NOT_KNOWN`` where Kafka does not tell."""
    room, widest = (np.full(len(columns.ids), NOT_KNOWN, np.int64) for _ in range(2))
    for place, id_ in enumerate(columns.ids.tolist()):
        broker = topology.brokers.get(id_)
        own = broker.rooms(limit) if broker is not None else None
        if own is not None:
            room[place], widest[place] = sum(own), max(own, default=0)
    return room, widest
