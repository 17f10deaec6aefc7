"""New replicas and the brokers that they go to for now, while the disk stage changes that."""

from __future__ import annotations

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Flags, Ints

NOT_KNOWN = -1
"""Of a room: nobody could tell, so it is not judged."""
BEYOND = 2**62


class Placing:
    """The new replicas, numbered by their weight (the lightest is 0), and where each one goes for now."""

    def __init__(self, demand: Demand, answer: Answer, room: Ints, widest: Ints, known: Flags) -> None:
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

    def answer(self) -> Answer:
        """Brokers of a partition in the order of their numbers, as the decode has them."""
        new = np.full_like(self._given.new, NOBODY)
        new[self.rows, self._columns] = self.brokers
        filled = np.where(new == NOBODY, self.demand.brokers, new)
        filled.sort(axis=1)
        return Answer(self._given.stays, np.where(filled == self.demand.brokers, NOBODY, filled))

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
