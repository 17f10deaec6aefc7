"""Disk balance: brings disks within eps of the mean of their rack with the fewest bytes moved.

Replica counts and racks are settled before; each replica stays in its rack. A single partition may be larger than the
target of a broker. Its broker may then hold eps of the mean beside it, and the others need no more than they can have
without it, a little less than their even share.

What has to move goes first, the largest into the emptiest broker of its rack. Then brokers with too many or too few
replicas hand over the smallest ones, and then bytes go from the fullest to the emptiest: the largest replica that is
not above the need, with a small one in return where the counts ask for it. Wherever replicas fit, a broker gives or
gets no more than its excess or its lack; every plan has to move that much (``verification.disk_bound``).

Replicas are numbered by their bytes, the smallest is 0, so that lists of numbers are sorted by size.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice

import numpy as np

from kafkadash.planning.solver.demand import NOBODY, Flags, Ints, PlacementDemand, SolverAnswer

OF_SHARE = 0.2
"""Share of eps within which the other brokers must be of their mean, where large partitions leave them less."""


@dataclass(frozen=True, slots=True)
class DiskTarget:
    """Bytes of a broker of one rack: ``least`` to ``most``; ``mean`` and ``slack`` (eps of it)."""

    mean: float
    least: int
    most: int
    slack: int

    def most_with(self, largest: int) -> int:
        """Return the most bytes of a broker whose largest partition has ``largest`` bytes."""
        return largest + self.slack if largest > self.most else self.most


def target_of(total: int, brokers: int, largest: Sequence[int], eps: float) -> DiskTarget:
    """``total`` bytes on ``brokers``. ``largest``: bytes of the rack's replicas, at least all that may be above
    ``most``.
    """
    mean = total / brokers if brokers else 0.0
    most = int((1 + eps) * mean)
    giants = [size for size in largest if size > most]
    others = brokers - len(giants)
    share = (total - sum(giants)) / others if others > 0 else 0.0
    least = min((1 - eps) * mean, (1 - eps * OF_SHARE) * share)
    return DiskTarget(mean, max(0, int(least)), most, int(eps * mean))


BEYOND = 2**62
MOST_OF_A_PARTITION = 2**15
"""Replicas: more than Kafka lets a partition have (their number is a 16 bit integer)."""


class DiskLayout:
    """``sizes`` P: bytes. ``beside`` B: bytes that are not planned. ``room`` and ``widest`` B as of ``within_room``,
    here with ``BEYOND`` where it is not judged.

    ``load``, ``counts``, ``on``: of a broker its bytes, its planned replicas and those of them that may move.
    ``homeless``: replicas that are on no broker yet. ``log``: replicas in the order in which they went, and from where.
    ``spare``: partitions and brokers on which a replica may stay and none is.
    """

    def __init__(
        self,
        demand: PlacementDemand,
        answer: SolverAnswer,
        sizes: Ints,
        beside: Ints,
        room: Ints,
        widest: Ints,
        *,
        afresh: bool,
    ) -> None:
        self.demand, self.sizes = demand, sizes
        rows, brokers, racks, fixed = _reset_units(demand, answer) if afresh else _as_answered(demand, answer)
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
        """Return the replicas of these partitions that may move and have a broker: row → units."""
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
        """Return whether the replica is on the broker today and may stay: nothing is copied."""
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
        """Move the replica to the broker from where it is."""
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

    def answer(self) -> SolverAnswer:
        demand = self.demand
        now = np.where(self._now == NOBODY, demand.brokers, self._now)
        stays = ((demand.held[:, :, None] == now[:, None, :]).any(axis=2)) & demand.may_stay
        stays &= demand.held != NOBODY
        kept = np.where(stays, demand.held, NOBODY)
        fresh = np.where((now[:, :, None] == kept[:, None, :]).any(axis=2), demand.brokers, now)
        fresh.sort(axis=1)
        new = np.where(fresh == demand.brokers, NOBODY, fresh)
        width = int(np.count_nonzero(new != NOBODY, axis=1).max()) if len(new) else 0
        return SolverAnswer(stays, new[:, :width])


Units = tuple[Ints, Ints, Ints, np.ndarray]
"""Columns of the replicas: partition, broker (``NOBODY`` where it has none yet), its rack, and whether it must stay."""


def _as_answered(demand: PlacementDemand, answer: SolverAnswer) -> Units:
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


def _reset_units(demand: PlacementDemand, answer: SolverAnswer) -> Units:
    """Return the units: a replica new in a rack for evenness alone goes back to a replica of the rack that the answer
    leaves; a replica that has to be new has no broker.
    """
    rows, brokers, racks, fixed = _as_answered(demand, answer)
    kept = int(np.count_nonzero(answer.stays))
    left_rows, left_columns = np.nonzero(demand.may_stay & ~answer.stays)
    left = demand.held[left_rows, left_columns]
    news = _number_replicas(rows[kept:], racks[kept:], demand.racks)
    olds = _number_replicas(left_rows, demand.rack_of[left], demand.racks)
    _, back, there = np.intersect1d(news, olds, assume_unique=True, return_indices=True)
    brokers = brokers.copy()
    brokers[kept:] = NOBODY
    brokers[kept + back] = left[there]
    return rows, brokers, racks, fixed


def _number_replicas(rows: Ints, racks: Ints, many: int) -> Ints:
    """A number of its own for the first, second … replica of a partition in a rack."""
    keys = rows * many + racks
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    nth = np.empty_like(keys)
    nth[order] = np.arange(len(keys)) - np.searchsorted(ordered, ordered)
    return keys * MOST_OF_A_PARTITION + nth


BEYOND_NEED = 0.005
"""Share of the mean that a broker may give or get beyond its need at the last step, which ends at eps - 0.5 %."""
PARTNERS = 8
NEIGHBOURS = 8
"""Replicas of nearly the wanted size that are looked at when the first may not go there."""
DUST = 50
"""A step that meets less than one of so many parts of the need is none."""
PASSES = 50
DETOURS = 200
"""Tries to bring a broker within eps by way of one that has to give again itself."""

Pair = tuple[int, int, int, int, int]
"""Giver, taker, the bytes wanted, the most bytes to settle it, and the most that leaves both within eps."""


class RackDisks:
    """The judged brokers of a rack. A step never brings one outside that is within eps."""

    def __init__(
        self, layout: DiskLayout, brokers: list[int], target: DiskTarget, large: list[int], *, counts: bool
    ) -> None:
        self._layout, self._brokers, self._counts = layout, brokers, counts
        self._window = int(BEYOND_NEED * target.mean)
        largest: dict[int, int] = {}
        for unit in large:
            largest.setdefault(layout.at[unit], layout.size[unit])
        self._most = np.array([target.most_with(largest.get(b, 0)) for b in brokers], np.int64)
        self._least = np.full(len(brokers), target.least)
        self._takes = np.array([layout.receives[b] for b in brokers], np.bool_)
        self._small = 2 * target.slack
        self._movable = layout.upto(target.most)
        self._load = np.array([layout.load[b] for b in brokers], np.int64)
        self._gave_up = np.zeros((2, len(brokers)), np.bool_)

    def need(self) -> int:
        """Bytes that have to move at the least from here."""
        lack = np.where(self._takes, np.maximum(self._least - self._load, 0), 0)
        return max(int(np.maximum(self._load - self._most, 0).sum()), int(lack.sum()))

    def settle(self) -> None:
        """Until nobody finds a step any more."""
        if not self._brokers:
            return
        self._large_first()
        self._even()
        if self._counts:
            for _ in range(DETOURS):
                if not self._detour():
                    return

    def _large_first(self) -> None:
        """Move large replicas from brokers that cannot give enough in small ones, while brokers lack that much: first
        from the broker with most to give in large ones, each to the broker with the least lack that is enough.
        """
        givers = [(-self._in_large(giver), giver) for giver in range(len(self._brokers)) if self._in_large(giver) > 0]
        heapify(givers)
        while givers:
            _, giver = heappop(givers)
            mine, large = self._layout.on[self._brokers[giver]], self._in_large(giver)
            place = bisect_left(mine, self._layout.upto(large - 1))
            wanted = self._layout.size[mine[min(place, len(mine) - 1)]]
            if self._given_whole(giver, wanted) and self._in_large(giver) > 0:
                heappush(givers, (-self._in_large(giver), giver))

    def _in_large(self, giver: int) -> int:
        """Bytes of its excess that its small replicas do not come to."""
        layout, mine = self._layout, self._layout.on[self._brokers[giver]]
        excess = int(self._load[giver] - self._most[giver])
        if excess <= 0 or not mine or layout.size[mine[-1]] <= self._small:
            return 0
        return excess - sum(layout.size[unit] for unit in mine[: bisect_left(mine, layout.upto(self._small))])

    def _given_whole(self, giver: int, wanted: int) -> bool:
        lack = self._least - self._load
        takers = [n for n in self._emptiest() if n != giver]
        for taker in sorted(takers, key=lambda n: (lack[n] < wanted, abs(int(lack[n]) - wanted))):
            possible = self._pair(giver, taker, wanted, wanted)[-1]
            found = self._replica(giver, taker, wanted, wanted) if wanted <= possible else None
            if found is not None and 2 * found[0] > wanted:
                self._make(giver, taker, *found[1:])
                return True
        return False

    def _even(self) -> None:
        for _ in range(PASSES):
            self._gave_up[:] = False
            if not self._evened():
                return

    def _evened(self) -> bool:
        """Even out the disks in steps; return whether any step was made."""
        stepped = False
        while True:
            excess = np.maximum(self._load - self._most, 0)
            lack = np.where(self._takes, np.maximum(self._least - self._load, 0), 0)
            open_excess, open_lack = (np.where(up, 0, x) for up, x in zip(self._gave_up, (excess, lack), strict=True))
            spare = int(open_excess.sum() - open_lack.sum())
            giving = spare >= 0 and open_excess.any()
            if not giving and not open_lack.any():
                return stepped
            one = int((open_excess if giving else open_lack).argmax())
            need = int((excess if giving else lack)[one])
            others, useful = (self._emptiest(), lack) if giving else (self._fullest(), excess)
            # What the other side does not need counts only while this side has more to do in all.
            pairs = [
                self._pair(*((one, n) if giving else (n, one)), need, int(useful[n]) + abs(spare))
                for n in others
                if n != one
            ]
            if self._step([pair for pair in pairs if pair[2] > 0]):
                stepped = True
            else:
                self._gave_up[0 if giving else 1, one] = True

    def _emptiest(self) -> list[int]:
        return [n for n in np.argsort(self._load, kind="stable").tolist() if self._takes[n]]

    def _fullest(self) -> list[int]:
        """Measured from what each may hold at the most."""
        order: list[int] = np.argsort(self._most - self._load, kind="stable").tolist()
        return order

    def _pair(self, giver: int, taker: int, need: int, useful: int) -> Pair:
        possible = min(int(self._load[giver] - self._least[giver]), int(self._most[taker] - self._load[taker]))
        wanted = min(need, useful, possible)
        return giver, taker, wanted, min(need + self._window, possible) if wanted == need else wanted, possible

    def _step(self, pairs: list[Pair]) -> bool:
        """The step that meets the most of the need; a real exchange only where no other meets any."""
        best: tuple[int, int, int, int, int | None] | None = None
        for giver, taker, wanted, most, _ in pairs[:PARTNERS]:
            found = self._replica(giver, taker, wanted, most)
            if found is not None and (best is None or found[0] > best[0]):
                best = (found[0], giver, taker, found[1], found[2])
                if found[0] >= wanted:
                    break
        need = max((pair[2] for pair in pairs), default=0)
        if best is None or best[0] * DUST < need:
            best = self._exchange(pairs) or best
        if best is None or best[0] * DUST < need:
            return False
        self._make(*best[1:])
        return True

    def _detour(self) -> bool:
        """The broker that is most over gives one to a broker that this brings outside, and that one gives smaller
        ones; taken back where it does not leave less outside in all.
        """
        outside = self._outside()
        for giver in np.argsort(self._most - self._load, kind="stable").tolist():
            need = int(self._load[giver] - self._most[giver])
            if need <= 0:
                return False
            possible = int(self._load[giver] - self._least[giver])
            others = [n for n in self._emptiest() if n != giver]
            found = self._exchange([(giver, n, need, need, possible) for n in others])
            if found is None:
                continue
            mark = len(self._layout.log)
            self._make(*found[1:])
            self._even()
            if self._outside() < outside:
                return True
            self._layout.back_to(mark)
            self._load = np.array([self._layout.load[b] for b in self._brokers], np.int64)
        return False

    def _outside(self) -> int:
        """Bytes in all."""
        lack = np.where(self._takes, np.maximum(self._least - self._load, 0), 0)
        return int(np.maximum(self._load - self._most, 0).sum() + lack.sum())

    def _make(self, giver: int, taker: int, unit: int, back: int | None) -> None:
        self._put(unit, giver, taker)
        if back is not None:
            self._put(back, taker, giver)

    def _put(self, unit: int, source: int, target: int) -> None:
        self._layout.put(unit, self._brokers[target])
        self._load[source] -= self._layout.size[unit]
        self._load[target] += self._layout.size[unit]

    def _replica(self, giver: int, taker: int, wanted: int, most: int) -> tuple[int, int, int | None] | None:
        """Bytes that pass, the replica, and a small one in return where counts ask for it."""
        layout = self._layout
        source, target = self._brokers[giver], self._brokers[taker]
        back: int | None = None
        last, full = layout.counts[source] <= layout.least[source], layout.counts[target] >= layout.most[target]
        if (self._counts and (last or full)) or (last and not layout.receives[source]):
            back = next((u for u in layout.on[target][:NEIGHBOURS] if layout.fits(u, source)), None)
            if back is None:
                return None
        less, mine = layout.size[back] if back is not None else 0, layout.on[source]
        place = bisect_left(mine, layout.upto(wanted + less - 1))
        top = bisect_left(mine, min(layout.upto(most + less), self._movable))
        for unit in (*mine[place:top][:NEIGHBOURS], *mine[max(0, place - NEIGHBOURS) : place][::-1]):
            if layout.size[unit] > less and unit < self._movable and layout.fits(unit, target):
                return layout.size[unit] - less, unit, back
        return None

    def _exchange(self, pairs: list[Pair]) -> tuple[int, int, int, int, int | None] | None:
        """Two replicas, or one and a small one, that leave both within eps; what moves the least for the need."""
        layout, best = self._layout, None
        for giver, taker, wanted, _, possible in pairs:
            source, target = self._brokers[giver], self._brokers[taker]
            mine, theirs = layout.on[source], layout.on[target]
            place = bisect_left(mine, layout.upto(wanted))
            for unit in mine[place : place + 3 * NEIGHBOURS]:
                if unit >= self._movable or not layout.fits(unit, target):
                    continue
                at = bisect_left(theirs, layout.upto(layout.size[unit] - possible - 1))
                for back in theirs[at : at + NEIGHBOURS]:
                    gain, cost = layout.size[unit] - layout.size[back], layout.size[unit] + layout.size[back]
                    met = min(gain, wanted)
                    if gain > 0 and (best is None or met * best[0] > best[1] * cost) and layout.fits(back, source):
                        best = (cost, met, giver, taker, unit, back)
        return None if best is None else (best[1], *best[2:])


ROUNDS = 8
GOOD_ENOUGH = 1.01
"""Share of the least that a rack has to move: no other way is tried."""
LARGE, REST, STUCK, LACKS = "large", "rest", "stuck", "lacks"


@dataclass(frozen=True, slots=True)
class OutsideTarget:
    """A broker that could not be brought within eps: its bytes, the mean of its rack, and why.

    ``LARGE``: one partition, ``row``, is larger than a broker may hold. ``REST``: such partitions leave the other
    brokers of the rack less than the mean. ``STUCK``: it holds too much, and what may move does not suffice, or there
    is no room for it. ``LACKS``: it holds too little, for the same reasons. No bound may hold those two to what was
    asked for.
    """

    broker: int
    bytes: int
    mean: int
    why: str
    row: int = NOBODY


@dataclass(frozen=True, slots=True)
class BalancedDisks:
    answer: SolverAnswer
    outside: tuple[OutsideTarget, ...]

    def those(self, why: str, brokers: int) -> Flags:
        """B: brokers that are outside for this reason."""
        flags = np.zeros(brokers, np.bool_)
        flags[[one.broker for one in self.outside if one.why == why]] = True
        return flags


def balance_disks(
    demand: PlacementDemand,
    answer: SolverAnswer,
    sizes: Ints,
    beside: Ints,
    judged: Flags,
    eps: float,
    room: Ints | None = None,
    widest: Ints | None = None,
) -> BalancedDisks:
    """The answer changed so that the bytes of each broker of ``judged`` (B) are within eps of the mean of its rack.

    ``sizes`` P: bytes, what the caller takes for unknown ones. ``beside`` B: bytes of partitions that are not planned.
    ``room`` and ``widest`` as of ``within_room``: nothing goes where that has no room. Counts, racks and what must stay
    are as the demand has them, also afterwards.
    """
    rooms = [
        np.full(demand.brokers, BEYOND) if bound is None else np.where(bound < 0, BEYOND, bound)
        for bound in (room, widest)
    ]

    def laid_out(*, afresh: bool) -> _DiskBalancer:
        return _DiskBalancer(DiskLayout(demand, answer, sizes, beside, *rooms, afresh=afresh), judged, eps)

    if not any(laid_out(afresh=False).outside()):
        return BalancedDisks(answer, ())
    done = laid_out(afresh=True)
    done.settle()
    done.even()
    if not done.layout.met():  # replicas that clash may leave no place; what the answer has is one
        done = laid_out(afresh=False)
        done.even_bytes()
    return BalancedDisks(done.layout.answer(), tuple(done.outside()))


class _DiskBalancer:
    """All racks: what has to be placed, counts, and who ends outside."""

    def __init__(self, layout: DiskLayout, judged: Flags, eps: float) -> None:
        self.layout, self._eps = layout, eps
        demand = layout.demand
        self._racks: list[list[int]] = [np.flatnonzero(demand.rack_of == rack).tolist() for rack in range(demand.racks)]
        self._judged: list[list[int]] = [
            np.flatnonzero((demand.rack_of == rack) & judged).tolist() for rack in range(demand.racks)
        ]
        racks = np.array(layout.rack, np.int64)
        # At the most one for each broker can be larger than its even share.
        self._large: list[list[int]] = [
            np.flatnonzero(racks == rack)[::-1][: len(brokers)].tolist() for rack, brokers in enumerate(self._racks)
        ]

    def settle(self) -> None:
        """Place the homeless replicas: the largest first, in the emptiest broker of the rack that may have one more."""
        layout = self.layout
        self._keep_on_emptier()
        heaps = [[(layout.load[b], b) for b in brokers if layout.receives[b]] for brokers in self._racks]
        for heap in heaps:
            heapq.heapify(heap)
        left = [
            unit for unit in reversed(layout.homeless) if not self._give(unit, heaps[layout.rack[unit]], layout.most)
        ]
        anybody = [len(layout.size)] * len(layout.most)
        for unit in left:
            self._give(unit, self._takers(self._racks[layout.rack[unit]], anybody), anybody)

    def _keep_on_emptier(self) -> None:
        """Keep the replicas on the emptier brokers where a partition gives up some of its replicas in a rack."""
        layout = self.layout
        of_row = layout.loose_of(row for row, _ in layout.spare)
        for row, broker in sorted(layout.spare, key=lambda one: (-layout.sizes[one[0]], one)):
            those = [u for u in of_row.get(row, ()) if layout.rack[u] == layout.rack_of[broker]]
            fullest = max(those, key=lambda u: (layout.load[layout.at[u]], u), default=None)
            if fullest is not None and layout.load[layout.at[fullest]] - layout.size[fullest] > layout.load[broker]:
                layout.put(fullest, broker)

    def even(self) -> None:
        """Counts are evened out with the smallest replicas, which leaves bytes nearly as they are; where brokers that
        lack bytes have no count to spare afterwards, bytes have to come first. Each rack as it is better.
        """
        for rack in range(len(self._racks)):
            before = self._tried(rack)
            for _ in range(ROUNDS):
                missing = before[1]
                if not missing:
                    break
                before = self._tried(rack)  # else planning the result again would find what this did not
                if before[1] >= missing:
                    break

    def _tried(self, rack: int) -> tuple[int, int, int]:
        layout = self.layout
        least, mark = layout.moved(rack) + self._rack(rack).need(), len(layout.log)
        self._even(rack, counts_first=True)
        first = self._worth(rack)
        if first <= (0, 0, GOOD_ENOUGH * least):
            return first
        layout.back_to(mark)
        self._even(rack, counts_first=False)
        second = self._worth(rack)
        if second <= first:
            return second
        layout.back_to(mark)
        self._even(rack, counts_first=True)
        return first

    def _even(self, rack: int, *, counts_first: bool) -> None:
        if not counts_first:
            self._rack(rack, counts=False).settle()
        self._shed(self._racks[rack])
        self._fill(self._racks[rack])
        self._rack(rack).settle()

    def _shed(self, brokers: list[int]) -> None:
        """The smallest of those that have too many: first to those that have too few."""
        layout = self.layout
        needy, able = self._takers(brokers, layout.least), self._takers(brokers, layout.most)
        much = [(b, layout.counts[b] - layout.most[b]) for b in brokers]
        for unit in sorted((u for b, over in much if over > 0 for u in layout.on[b][:over]), reverse=True):
            if not self._give(unit, needy, layout.least):
                self._give(unit, able, layout.most)
        for giver, _ in much:  # what nobody could have
            for unit in layout.on[giver][:]:
                if layout.counts[giver] <= layout.most[giver]:
                    break
                if not self._give(unit, needy, layout.least):
                    self._give(unit, able, layout.most)

    def _fill(self, brokers: list[int]) -> None:
        """Fill brokers that still have too few replicas with the smallest replicas of all brokers that can give one."""
        layout = self.layout
        needy = self._takers(brokers, layout.least)
        lacking = sum(layout.least[b] - layout.counts[b] for _, b in needy)
        able = [(layout.on[b], layout.counts[b] - layout.least[b]) for b in brokers]
        smallest = heapq.merge(*(on[: min(lacking, spare)] for on, spare in able if spare > 0))
        for unit in sorted(islice(smallest, lacking), reverse=True):
            self._give(unit, needy, layout.least)
        givers = [(layout.on[b][0], b) for b in brokers if layout.on[b] and layout.counts[b] > layout.least[b]]
        heapq.heapify(givers)
        while needy and givers:  # where one of those may not go to any of them
            unit, giver = heapq.heappop(givers)
            self._give(unit, needy, layout.least)
            rest = bisect_right(layout.on[giver], unit)
            if layout.counts[giver] > layout.least[giver] and rest < len(layout.on[giver]):
                heapq.heappush(givers, (layout.on[giver][rest], giver))

    def _takers(self, brokers: list[int], bound: list[int]) -> list[tuple[int, int]]:
        layout = self.layout
        heap = [(layout.load[b], b) for b in brokers if layout.receives[b] and layout.counts[b] < bound[b]]
        heapq.heapify(heap)
        return heap

    def _give(self, unit: int, takers: list[tuple[int, int]], bound: list[int]) -> bool:
        """To the emptiest of them that may have it and has fewer replicas than its bound."""
        layout, passed, given = self.layout, [], False
        while takers and not given:
            load, broker = heapq.heappop(takers)
            if layout.counts[broker] >= bound[broker]:
                continue  # full, and nobody takes from who takes
            if load != layout.load[broker]:
                heapq.heappush(takers, (layout.load[broker], broker))
                continue
            if layout.fits(unit, broker):
                layout.put(unit, broker)
                given = True
            passed.append((layout.load[broker], broker))
        for one in passed:
            heapq.heappush(takers, one)
        return given

    def even_bytes(self) -> None:
        for rack in range(len(self._racks)):
            self._rack(rack).settle()

    def _rack(self, rack: int, *, counts: bool = True) -> RackDisks:
        return RackDisks(self.layout, self._judged[rack], self.target(rack), self._large[rack], counts=counts)

    def _worth(self, rack: int) -> tuple[int, int, int]:
        """The less the better: replicas beyond the bounds, bytes not where they are wanted, bytes that move."""
        layout, target, largest = self.layout, self.target(rack), self._large_on(rack)
        beyond = sum(
            max(0, layout.counts[b] - layout.most[b], layout.least[b] - layout.counts[b]) for b in self._racks[rack]
        )
        missing = 0
        for broker in self._judged[rack]:
            load, (size, _) = layout.load[broker], largest.get(broker, (0, NOBODY))
            missing += max(0, load - target.most_with(size), target.least - load)
        return beyond, missing, layout.moved(rack)

    def target(self, rack: int) -> DiskTarget:
        layout, brokers = self.layout, self._judged[rack]
        largest = [layout.size[unit] for unit in self._large[rack]]
        return target_of(sum(layout.load[b] for b in brokers), len(brokers), largest, self._eps)

    def outside(self) -> Iterator[OutsideTarget]:
        """Brokers that are not within eps."""
        for rack, brokers in enumerate(self._judged):
            target, largest = self.target(rack), self._large_on(rack)
            for broker in brokers:
                load, (size, row) = self.layout.load[broker], largest.get(broker, (0, NOBODY))
                if target.most < load <= target.most_with(size):
                    yield OutsideTarget(broker, load, round(target.mean), LARGE, row)
                elif load > target.most:
                    yield OutsideTarget(broker, load, round(target.mean), STUCK)
                elif load < target.least:
                    yield OutsideTarget(broker, load, round(target.mean), LACKS)
                elif load < (1 - self._eps) * target.mean - 1:
                    yield OutsideTarget(broker, load, round(target.mean), REST)

    def _large_on(self, rack: int) -> dict[int, tuple[int, int]]:
        """Broker → bytes and partition of the largest on it."""
        layout, found = self.layout, dict[int, tuple[int, int]]()
        for unit in self._large[rack]:
            found.setdefault(layout.at[unit], (layout.size[unit], layout.row[unit]))
        return found
