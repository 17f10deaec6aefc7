"""What a plan has to be, in columns: the input of the exact flow and of its proof.

Partitions are numbered 0 … P−1, brokers 0 … B−1 and racks 0 … R−1 by their place; W is the largest number of replicas
that any partition has now. A cluster without racks is one rack.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOBODY = -1
"""In ``held``: this partition has fewer replicas."""


MOST_COST = 2**60
"""Above it, multiplied by the number of nodes, OR-tools refuses costs (BAD_COST_RANGE)."""


@dataclass(frozen=True, slots=True)
class Demand:
    """``bytes`` P: what a new replica costs. ``factors`` P: replicas at the end. ``held`` P×W: who has one now.

    ``may_stay`` and ``must_stay`` P×W say it of each of those. ``rack_of`` B; ``receives`` B: may be given new ones.
    ``least`` and ``most`` B: replicas at the end. ``rack_least`` and ``rack_most`` P×R: replicas of a partition in a
    rack at the end.
    """

    bytes: Ints
    factors: Ints
    held: Ints
    may_stay: Flags
    must_stay: Flags
    rack_of: Ints
    receives: Flags
    least: Ints
    most: Ints
    rack_least: Ints
    rack_most: Ints

    @property
    def partitions(self) -> int:
        return len(self.bytes)

    @property
    def brokers(self) -> int:
        return len(self.rack_of)

    @property
    def racks(self) -> int:
        return int(self.rack_least.shape[1])

    @property
    def nodes(self) -> int:
        """Of its network, if no partition is left out: see ``flow``."""
        return self.partitions * (1 + self.racks) + self.racks + self.brokers + 1

    @property
    def unit(self) -> int:
        """Costs are rounded to multiples of so many bytes, which keeps them in the range that OR-tools takes."""
        largest = int(self.bytes.max()) if self.partitions else 0
        return max(1, -(-largest * self.nodes // MOST_COST))

    @property
    def receivers(self) -> Ints:
        """Brokers that may be given new replicas."""
        return np.flatnonzero(self.receives)

    @property
    def pooled(self) -> Flags:
        """R: racks with so many receivers that no partition can need all of them; there a new replica is anybody's."""
        several = np.bincount(self.rack_of[self.receives], minlength=self.racks)
        enough: Flags = several > (int(self.factors.max()) if self.partitions else 0)
        return enough

    @property
    def settled(self) -> Flags:
        """P: partitions that are as they should be if all replicas stay that may."""
        in_racks = self.stayed_in_racks(self.may_stay)
        whole = np.count_nonzero(self.may_stay, axis=1) == self.factors
        fits: Flags = whole & ((in_racks >= self.rack_least) & (in_racks <= self.rack_most)).all(axis=1)
        return fits

    def only(self, which: Flags | Ints | slice) -> Demand:
        """Some of the partitions; the bounds of brokers are still those of all."""
        return replace(
            self,
            bytes=self.bytes[which],
            factors=self.factors[which],
            held=self.held[which],
            may_stay=self.may_stay[which],
            must_stay=self.must_stay[which],
            rack_least=self.rack_least[which],
            rack_most=self.rack_most[which],
        )

    def stayed_in_racks(self, stays: Flags) -> Ints:
        """P×R: how many of the replicas that stay are in each rack."""
        return self.in_racks(np.where(stays, self.held, NOBODY))

    def in_racks(self, brokers: Ints) -> Ints:
        """P×R: how many of these brokers (P×N, ``NOBODY`` where fewer) are in each rack."""
        rows, columns = np.nonzero(brokers >= 0)
        places = rows * self.racks + self.rack_of[brokers[rows, columns]]
        return np.bincount(places, minlength=len(brokers) * self.racks).reshape(len(brokers), self.racks)


@dataclass(frozen=True, slots=True)
class Answer:
    """``stays`` P×W: which of the replicas held now stay. ``new`` P×N: brokers that get one, ``NOBODY`` where fewer."""

    stays: Flags
    new: Ints

    def moved(self, demand: Demand) -> int:
        """Bytes of all new replicas."""
        many: Ints = np.count_nonzero(self.new != NOBODY, axis=1)
        return int((many * demand.bytes).sum())

    def counts(self, demand: Demand) -> Ints:
        """B: replicas at the end."""
        kept = np.bincount(demand.held[self.stays], minlength=demand.brokers)
        return kept + np.bincount(self.new[self.new != NOBODY], minlength=demand.brokers)
