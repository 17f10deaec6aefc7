"""Counting what is wrong with partitions."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionShape:
    """A partition as metadata tells it; ``adding`` are the replicas a running reassignment brings in."""

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: frozenset[int] = frozenset()

    @property
    def offline(self) -> bool:
        """No leader: neither producers nor consumers can use it."""
        return self.leader is None

    @property
    def under_replicated(self) -> bool:
        return len(set(self.isr)) < len(set(self.replicas))

    @property
    def explained_by_move(self) -> bool:
        """Under-replicated only because replicas that are being added have not caught up yet."""
        return self.under_replicated and bool(self.adding) and set(self.replicas) - set(self.isr) <= self.adding


@dataclass(frozen=True, slots=True)
class Health:
    partitions: int
    offline: int
    under_replicated: int
    explained_by_move: int


def health(partitions: Iterable[PartitionShape]) -> Health:
    """Counts over partitions; ``explained_by_move`` is a part of ``under_replicated``."""
    total = offline = under = explained = 0
    for shape in partitions:
        total += 1
        offline += shape.offline
        under += shape.under_replicated
        explained += shape.explained_by_move
    return Health(total, offline, under, explained)


def two_digits(value: int) -> int:
    """``value`` rounded to two significant digits, so that a stored figure used for sorting rarely changes."""
    digits = len(str(abs(value)))
    return round(value, 2 - digits) if digits > 2 else value
