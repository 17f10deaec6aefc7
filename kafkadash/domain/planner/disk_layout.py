"""Replicas and the brokers that they are on for now, while disks are balanced: what they weigh, what may go where.

Replicas are numbered by their bytes, the smallest is 0, so that lists of numbers are sorted by size. Each one stays in
its rack; what a partition has in a rack is settled before.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterable

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Ints

BEYOND = 2**62
MOST_OF_A_PARTITION = 2**15
"""Replicas: more than Kafka lets a partition have (their number is a 16 bit integer)."""


class Layout:
    """``sizes`` P: bytes. ``beside`` B: bytes that are not planned. ``room`` and ``widest`` B as of ``within_room``,
    here with ``BEYOND`` where it is not judged.

    ``load``, ``counts``, ``on``: of a broker its bytes, its planned replicas and those of them that may move.
    ``homeless``: replicas that are on no broker yet. ``log``: replicas in the order in which they went, and from where.
    ``spare``: partitions and brokers on which a replica may stay and none is.
    """

    def __init__(
        self, demand: Demand, answer: Answer, sizes: Ints, beside: Ints, room: Ints, widest: Ints, *, afresh: bool
    ) -> None:
        self.demand, self.sizes = demand, sizes
        rows, brokers, racks, fixed = _afresh(demand, answer) if afresh else _as_answered(demand, answer)
        order = np.lexsort((racks, rows, sizes[rows]))
        rows, brokers, racks, fixed = rows[order], brokers[order], racks[order], fixed[order]
        self._rows, self.sizes_sorted = rows, sizes[rows]
        self._in_rack = [np.flatnonzero(racks == rack) for rack in range(demand.racks)]
        self.size: list[int] = self.sizes_sorted.tolist()
        self.row: list[int] = rows.tolist()
        self.rack: list[int] = racks.tolist()
        self.at: list[int] = brokers.tolist()
        self._place(rows, brokers)
        there = brokers != NOBODY
        load = beside.astype(np.int64).copy()
        np.add.at(load, brokers[there], self.sizes_sorted[there])
        self.load: list[int] = load.tolist()
        self.counts: list[int] = np.bincount(brokers[there], minlength=demand.brokers).tolist()
        loose = np.flatnonzero(there & ~fixed)
        loose = loose[np.argsort(brokers[loose], kind="stable")]
        first = np.searchsorted(brokers[loose], np.arange(demand.brokers + 1))
        self.on: list[list[int]] = [loose[first[b] : first[b + 1]].tolist() for b in range(demand.brokers)]
        self.log: list[tuple[int, int]] = []
        self.spare = self._not_taken() if afresh else []
        self.rack_of: list[int] = demand.rack_of.tolist()
        self.homeless: list[int] = np.flatnonzero(~there).tolist()
        self.receives: list[bool] = demand.receives.tolist()
        self.least: list[int] = demand.least.tolist()
        self.most: list[int] = demand.most.tolist()
        self._room: list[int] = room.tolist()
        self._widest: list[int] = widest.tolist()
        at_home = self._at_home(rows, brokers)
        for unit in np.flatnonzero(there & ~at_home & (room[brokers] < BEYOND)).tolist():
            self._room[self.at[unit]] -= self.size[unit]

    def _place(self, rows: Ints, brokers: Ints) -> None:
        """P×K: the brokers of each partition, one place for each of its replicas."""
        order = np.argsort(rows, kind="stable")
        each = np.bincount(rows, minlength=self.demand.partitions)
        place = np.empty_like(rows)
        place[order] = np.arange(len(rows)) - np.repeat(np.cumsum(each) - each, each)
        self._now = np.full((self.demand.partitions, int(each.max()) if len(each) else 0), NOBODY, np.int64)
        self._now[rows, place] = brokers
        self._slot: list[int] = place.tolist()

    def _at_home(self, rows: Ints, brokers: Ints) -> np.ndarray:
        demand = self.demand
        homes: np.ndarray = ((demand.held[rows] == brokers[:, None]) & demand.may_stay[rows]).any(axis=1)
        return homes

    def _not_taken(self) -> list[tuple[int, int]]:
        """Partitions, and brokers on which a replica of them may stay and none is."""
        demand = self.demand
        now = np.full((demand.partitions, 1), NOBODY) if not self._now.size else self._now
        free = demand.may_stay & ~(demand.held[:, :, None] == now[:, None, :]).any(axis=2)
        at, columns = np.nonzero(free & (demand.held != NOBODY))
        return list(zip(at.tolist(), demand.held[at, columns].tolist(), strict=True))

    def loose_of(self, rows: Iterable[int]) -> dict[int, list[int]]:
        """Of these partitions, the replicas that may move and are somewhere."""
        wanted = set(rows)
        found: dict[int, list[int]] = {}
        for unit in (unit for on in self.on for unit in on) if wanted else ():
            if self.row[unit] in wanted:
                found.setdefault(self.row[unit], []).append(unit)
        return found

    def moved(self, rack: int) -> int:
        """Bytes that are copied to its brokers."""
        brokers = np.array(self.at, np.int64)[self._in_rack[rack]]
        rows, sizes = self._rows[self._in_rack[rack]], self.sizes_sorted[self._in_rack[rack]]
        copied = (brokers != NOBODY) & ~self._at_home(rows, brokers)
        return int(sizes[copied].sum())

    def is_home(self, unit: int, broker: int) -> bool:
        """It is there today and may stay: nothing is copied."""
        row = self.row[unit]
        held = self.demand.held[row].tolist()
        return broker in held and bool(self.demand.may_stay[row, held.index(broker)])

    def fits(self, unit: int, broker: int) -> bool:
        """The broker may be given it: it has none of the partition, and room while nothing is deleted yet."""
        row = self.row[unit]
        if broker in self._now[row].tolist():
            return False
        held = self.demand.held[row].tolist()
        if broker in held:
            return bool(self.demand.may_stay[row, held.index(broker)])
        return self.receives[broker] and self.size[unit] <= min(self._room[broker], self._widest[broker])

    def put(self, unit: int, broker: int) -> None:
        """It goes there from where it is."""
        self.log.append((unit, self.at[unit]))
        source, size = self.at[unit], self.size[unit]
        if source != NOBODY:
            del self.on[source][bisect_left(self.on[source], unit)]
            self.load[source] -= size
            self.counts[source] -= 1
            if self._room[source] < BEYOND and not self.is_home(unit, source):
                self._room[source] += size
        insort(self.on[broker], unit)
        self.at[unit] = broker
        self._now[self.row[unit], self._slot[unit]] = broker
        self.load[broker] += size
        self.counts[broker] += 1
        if self._room[broker] < BEYOND and not self.is_home(unit, broker):
            self._room[broker] -= size

    def back_to(self, mark: int) -> None:
        """All that was done since the log had this length is taken back."""
        for unit, source in self.log[: mark - 1 if mark else None : -1]:
            self.put(unit, source)
        del self.log[mark:]

    def upto(self, size: int) -> int:
        """All replicas below this number are of at most so many bytes."""
        return int(np.searchsorted(self.sizes_sorted, size, side="right"))

    def met(self) -> bool:
        """Every replica is on a broker, and no broker has more or fewer than it may."""
        within = (low <= now <= high for low, now, high in zip(self.least, self.counts, self.most, strict=True))
        return all(within) and NOBODY not in self.at

    def answer(self) -> Answer:
        demand = self.demand
        now = np.where(self._now == NOBODY, demand.brokers, self._now)
        stays = ((demand.held[:, :, None] == now[:, None, :]).any(axis=2)) & demand.may_stay
        stays &= demand.held != NOBODY
        kept = np.where(stays, demand.held, NOBODY)
        fresh = np.where((now[:, :, None] == kept[:, None, :]).any(axis=2), demand.brokers, now)
        fresh.sort(axis=1)
        new = np.where(fresh == demand.brokers, NOBODY, fresh)
        width = int(np.count_nonzero(new != NOBODY, axis=1).max()) if len(new) else 0
        return Answer(stays, new[:, :width])


Units = tuple[Ints, Ints, Ints, np.ndarray]
"""Of each replica its partition, its broker (``NOBODY`` where it has none yet), its rack, and whether it must stay."""


def _as_answered(demand: Demand, answer: Answer) -> Units:
    rows, columns = np.nonzero(answer.stays)
    brokers, fixed = demand.held[rows, columns], demand.must_stay[rows, columns]
    more, places = np.nonzero(answer.new != NOBODY)
    given = answer.new[more, places]
    every = np.concatenate([brokers, given])
    return (
        np.concatenate([rows, more]),
        every,
        demand.rack_of[every],
        np.concatenate([fixed, np.zeros(len(more), np.bool_)]),
    )


def _afresh(demand: Demand, answer: Answer) -> Units:
    """What is new in a rack for evenness alone goes back to a replica of the rack that the answer leaves; what has to
    be new has no broker.
    """
    rows, brokers, racks, fixed = _as_answered(demand, answer)
    kept = int(np.count_nonzero(answer.stays))
    left_rows, left_columns = np.nonzero(demand.may_stay & ~answer.stays)
    left = demand.held[left_rows, left_columns]
    news = _numbered(rows[kept:], racks[kept:], demand.racks)
    olds = _numbered(left_rows, demand.rack_of[left], demand.racks)
    _, back, there = np.intersect1d(news, olds, assume_unique=True, return_indices=True)
    brokers = brokers.copy()
    brokers[kept:] = NOBODY
    brokers[kept + back] = left[there]
    return rows, brokers, racks, fixed


def _numbered(rows: Ints, racks: Ints, many: int) -> Ints:
    """A number of its own for the first, second … replica of a partition in a rack."""
    keys = rows * many + racks
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    nth = np.empty_like(keys)
    nth[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return keys * MOST_OF_A_PARTITION + nth
