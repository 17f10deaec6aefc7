"""What balancing the disks moves at the least, whoever plans it.

Take a plan that meets the request: broker b, which holds D bytes today, ends with F = D + in - out, at least what is
``least`` in its rack and at most ``most`` (``disk_targets``), and what may not stay (L bytes) leaves it. Then

- in ≥ least - D + out ≥ least - D + L where it lacks bytes, and in ≥ 0 everywhere: all that comes into a rack is at
  least the sum of what its brokers lack.
- out ≥ max(L, D - most): a partition of its own that is larger than ``most`` may stay beside eps of the mean, and one
  that comes from elsewhere brings its own bytes with it. What comes into a rack is what leaves it and what the rack has
  more at the end: in ≥ Y - ΣD + Σ max(L, D - most), where Y bytes are on its judged brokers at the end.

So a rack takes in at least h(Y), the larger of the two. Where the bounds of the racks settle Y (each partition has as
many replicas in each rack whatever is planned) the sum over the racks is the bound. Otherwise ``least`` and ``most``
grow with Y, both sums are convex in it, and racks share what there is: min Σ h(Y) over Y within each rack's bounds and
ΣY within what the cluster has. For every price μ of a byte, Σ min (h(Y) - μY) + μ·ΣY is no more than that (weak
duality), so any μ gives a bound and the best one found is taken.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from kafkadash.domain.planner.demand import NOBODY, Demand, Flags, Ints
from kafkadash.domain.planner.disk_targets import target_of

Reals = NDArray[np.float64]

ROUNDING = 1e-12
"""Of a sum of floats: far more than their errors come to."""
STEPS = 120


def disk_bound(
    demand: Demand,
    sizes: Ints,
    beside: Ints,
    judged: Flags,
    eps: float,
    above: Flags | None = None,
    below: Flags | None = None,
) -> int:
    """No plan for this demand that brings the disks of ``judged`` (B) within eps moves fewer bytes.

    ``sizes`` P: bytes, none above what the demand reckons for a new replica. ``beside`` B: bytes that are not planned.
    ``above`` and ``below`` B: brokers that are not held to the most or the least, because the plan that is proven could
    not bring them there.
    """
    if (sizes > demand.bytes).any():
        return 0
    spared = (np.zeros_like(judged) if flags is None else flags for flags in (above, below))
    today = _Today(demand, sizes, beside, judged, *spared)
    settled, curves = 0, []
    for rack in range(demand.racks):
        low, high = today.between(rack)
        if low == high:
            settled += today.at_least(rack, low, eps)
            curves.append((np.array([float(low)]), np.zeros(1)))
        else:
            curves.append(today.curve(rack, low, high, eps))
    shared = _shared(curves, *today.altogether())
    return settled + max(0, int(shared * (1 - ROUNDING)) - (demand.brokers if shared else 0))


class _Today:
    """Bytes per broker and rack before anything moves, and what any plan may make of them."""

    def __init__(self, demand: Demand, sizes: Ints, beside: Ints, judged: Flags, above: Flags, below: Flags) -> None:
        self._demand, self._sizes, self._judged = demand, sizes, judged
        self._sheds, self._takes = judged & ~above, judged & demand.receives & ~below
        held = demand.held != NOBODY
        self._holds = beside + self._bytes(held)
        self._leaves = self._bytes(held & ~demand.may_stay)
        self._kept = beside + self._bytes(demand.must_stay)
        self._could = beside + self._bytes(demand.may_stay)
        least, most = demand.rack_least, demand.rack_most
        factors = demand.factors[:, None]
        self._fewest = np.maximum(least, factors - most.sum(axis=1, keepdims=True) + most)
        self._highest = np.minimum(most, factors - least.sum(axis=1, keepdims=True) + least)
        self._beside = beside
        self._total = int((demand.factors * sizes).sum() + beside.sum())

    def _bytes(self, which: Flags) -> Ints:
        total = np.zeros(self._demand.brokers, np.int64)
        rows, columns = np.nonzero(which)
        np.add.at(total, self._demand.held[rows, columns], self._sizes[rows])
        return total

    def _of(self, rack: int) -> Flags:
        of_rack: Flags = self._demand.rack_of == rack
        return of_rack

    def _not_judged(self, which: Flags) -> tuple[int, int]:
        """Bytes that brokers which are not judged hold at the end: at least, at most."""
        others = which & ~self._judged
        most = self._total if (others & self._demand.receives).any() else int(self._could[others].sum())
        return int(self._kept[others].sum()), most

    def between(self, rack: int) -> tuple[int, int]:
        """Bytes on the judged brokers of a rack at the end: at least, at most."""
        which = self._of(rack)
        beside, (least, most) = int(self._beside[which].sum()), self._not_judged(which)
        low = beside + int((self._sizes * self._fewest[:, rack]).sum()) - most
        high = beside + int((self._sizes * self._highest[:, rack]).sum()) - least
        return max(0, low), max(0, high)

    def altogether(self) -> tuple[int, int]:
        """The same of all racks."""
        least, most = self._not_judged(np.ones(self._demand.brokers, np.bool_))
        return max(0, self._total - most), self._total - least

    def _largest(self, rack: int, above: float) -> Ints:
        """Bytes of the replicas that the rack may have and that are larger, at most one for each broker."""
        rows = np.flatnonzero((self._sizes > above) & (self._highest[:, rack] > 0))
        sizes = np.repeat(self._sizes[rows], self._highest[rows, rack])
        sizes.sort()
        return sizes[::-1][: int(self._of(rack).sum())]

    def _largest_on(self, above: float) -> Ints:
        """B: bytes of the largest partition on it that is larger; 0 where none is."""
        largest = np.zeros(self._demand.brokers, np.int64)
        rows, columns = np.nonzero((self._demand.held != NOBODY) & (self._sizes > above)[:, None])
        np.maximum.at(largest, self._demand.held[rows, columns], self._sizes[rows])
        return largest

    def at_least(self, rack: int, total: int, eps: float) -> int:
        """h where the bytes of the rack are settled."""
        judged = self._of(rack) & self._judged
        many = int(judged.sum())
        if not many:
            return 0
        target = target_of(total, many, self._largest(rack, total / many).tolist(), eps)
        holds, leaves = self._holds, self._leaves
        lacks = target.least - holds + leaves
        largest = self._largest_on(target.most)
        most = np.where(largest > 0, largest + target.slack, target.most)
        goes = np.where(self._sheds, np.maximum(leaves, holds - most), leaves)
        given = total - int(holds[judged].sum()) + int(goes[judged].sum())
        return max(0, given, int(np.maximum(lacks, 0)[judged & self._takes].sum()))

    def curve(self, rack: int, low: int, high: int, eps: float) -> tuple[Reals, Reals]:
        """Corners of h: bytes of the rack, and what comes in at the least. Straight between them."""
        judged = self._of(rack) & self._judged
        many = int(judged.sum())
        if not many:
            return np.array([float(low), float(high)]), np.zeros(2)
        smallest_most = (1 + eps) * low / many
        large = float(self._largest(rack, smallest_most).sum())
        sheds, takes = judged & self._sheds, judged & self._takes
        stays = (self._holds - self._leaves).astype(np.float64)
        spared = stays - self._largest_on(smallest_most)
        down, up = (1 - eps) / many, (1 + eps) / many
        corners = np.concatenate([[low, high, large], stays[takes] / down + large, spared[sheds] / up])
        totals = np.unique(np.clip(corners, low, high))
        lacked = np.maximum(down * (totals[:, None] - large) - stays[takes], 0).sum(axis=1)
        more = totals - float(stays[judged].sum())
        given = more + np.maximum(spared[sheds] - up * totals[:, None], 0).sum(axis=1)
        totals, lacked, given = _with_crossings(totals, lacked, given)
        return totals, np.maximum(np.maximum(lacked, given), 0)


def _with_crossings(totals: Reals, one: Reals, other: Reals) -> tuple[Reals, Reals, Reals]:
    """And where two of these, or one and 0, cross between corners."""
    found = [totals]
    for ahead in (one - other, one, other):
        before, after = ahead[:-1], ahead[1:]
        cross = before * after < 0
        share = before[cross] / (before[cross] - after[cross])
        found.append(totals[:-1][cross] + share * (totals[1:] - totals[:-1])[cross])
    every = np.unique(np.concatenate(found))
    return every, np.interp(every, totals, one), np.interp(every, totals, other)


def _shared(curves: list[tuple[Reals, Reals]], least: int, most: int) -> float:
    """The best bound of any price; concave in it, so thirds of the range are left out until nothing is left."""

    def bound(price: float) -> float:
        each = sum(float((cost - price * total).min()) for total, cost in curves)
        return each + price * (least if price > 0 else most)

    low, high = -2.0, 2.0
    best = bound(0.0)
    for _ in range(STEPS):
        third = (high - low) / 3
        values = bound(low + third), bound(high - third)
        best = max(best, *values)
        low, high = (low + third, high) if values[0] < values[1] else (low, high - third)
    return best
