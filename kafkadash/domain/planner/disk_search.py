"""An exact search for new replicas that exchanges could not fit (OR-tools' CP-SAT, alone and with a fixed measure of
work, so the same input finds the same placement)."""

from __future__ import annotations

import numpy as np
from ortools.sat.python import cp_model

from kafkadash.domain.planner.demand import Flags, Ints
from kafkadash.domain.planner.disk_placing import BEYOND, Placing

MOST_CHOICES = 20_000
"""Pairs of replica and broker that are searched; above it only the brokers that are over, and those with most room."""
WORK = 8.0
"""Of the solver's own measure, about a second each."""
SEED = 36


def searched(placing: Placing) -> None:
    """Places them anew where that leaves less over the rooms than there is now."""
    brokers = _brokers(placing)
    units = _units(placing, brokers)
    found = _Search(placing, brokers, units).found()
    if found is None:
        return
    before = placing.violation(), placing.brokers, placing.load, placing.counts
    after = placing.brokers.copy()
    after[units] = found
    _set(placing, after)
    if placing.violation() < before[0]:
        placing.changed = True
    else:
        _, placing.brokers, placing.load, placing.counts = before


def _set(placing: Placing, brokers: Ints) -> None:
    placing.counts = placing.counts + np.bincount(brokers, minlength=len(placing.counts))
    placing.counts -= np.bincount(placing.brokers, minlength=len(placing.counts))
    placing.brokers, placing.load = brokers, np.zeros_like(placing.load)
    np.add.at(placing.load, brokers, placing.weights)


def _brokers(placing: Placing) -> Ints:
    """All receivers, or those most over and those with the most room, so many that the search stays small."""
    receivers = placing.demand.receivers
    if len(placing.rows) * len(receivers) <= MOST_CHOICES:
        return receivers
    over, slack = placing.over()[receivers], (placing.room - placing.load)[receivers]
    worst = receivers[np.argsort(-over, kind="stable")][:4]
    racks = placing.demand.rack_of[receivers]
    near = np.argsort(np.where(np.isin(racks, placing.demand.rack_of[worst]), -slack, BEYOND), kind="stable")
    return np.unique(np.concatenate([worst, receivers[near][:8]]))


def _units(placing: Placing, brokers: Ints) -> Ints:
    """What is on them now, the heaviest of it where that is too much."""
    units = np.flatnonzero(np.isin(placing.brokers, brokers))
    return units[-max(1, MOST_CHOICES // max(1, len(brokers))) :]


class _Search:
    """A choice for each partition and broker; several new replicas of a partition are alike."""

    def __init__(self, placing: Placing, brokers: Ints, units: Ints) -> None:
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
        """One for each broker that does not have it, each starting from where it is."""
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
        """What is to be least: the bytes over the rooms, and of single replicas over the widest."""
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
