"""Counting what is wrong with partitions, in the terms of ``kafka-topics`` (org.apache.kafka.tools.TopicCommand)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PartitionShape:
    """A partition as metadata tells it; ``adding`` are the replicas a running reassignment brings in.

    ``offline_replicas`` are those on brokers or directories that are away.
    """

    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    adding: frozenset[int] = frozenset()
    offline_replicas: tuple[int, ...] = ()

    @property
    def offline(self) -> bool:
        """No leader: neither producers nor consumers can use it."""
        return self.leader is None

    @property
    def under_replicated(self) -> bool:
        return len(self.isr) < len(self.replicas)

    @property
    def explained_by_move(self) -> bool:
        """Under-replicated only because replicas that are being added have not caught up yet."""
        return bool(self.adding) and self.under_replicated and set(self.replicas) - set(self.isr) <= self.adding

    @property
    def led_by_preferred(self) -> bool:
        return bool(self.replicas) and self.leader == self.replicas[0]

    def under_min_isr(self, min_isr: int) -> bool:
        """Producers with acks=all fail: fewer replicas in sync than min.insync.replicas, or no leader at all."""
        return self.leader is None or len(self.isr) < min_isr

    def at_min_isr(self, min_isr: int) -> bool:
        """One more replica out of sync, and producers with acks=all fail. Counts as Kafka's tool does: by the ISR."""
        return len(self.isr) == min_isr


@dataclass(frozen=True, slots=True)
class Health:
    """Counts of partitions (``offline_replicas``: of replicas).

    The two about min.insync.replicas are None where it is not known; ``explained_by_move`` is a part of
    ``under_replicated``, and ``at_min_isr_moving`` of ``at_min_isr``.
    """

    partitions: int = 0
    offline: int = 0
    under_replicated: int = 0
    explained_by_move: int = 0
    offline_replicas: int = 0
    preferred_leaders: int = 0
    under_min_isr: int | None = None
    at_min_isr: int | None = None
    at_min_isr_moving: int | None = None


def health(partitions: Iterable[PartitionShape], min_isr: int | None = None) -> Health:
    """Counts over partitions for which the same min.insync.replicas is in force."""
    total = offline = under = explained = away = preferred = below = at = at_moving = 0
    for shape in partitions:
        total += 1
        offline += shape.leader is None
        moved = shape.explained_by_move
        under += shape.under_replicated
        explained += moved
        away += len(shape.offline_replicas)
        preferred += shape.led_by_preferred
        if min_isr is not None:
            below += shape.under_min_isr(min_isr)
            if shape.at_min_isr(min_isr):
                at += 1
                at_moving += moved
    if min_isr is None:
        return Health(total, offline, under, explained, away, preferred)
    return Health(total, offline, under, explained, away, preferred, below, at, at_moving)


def together(parts: Iterable[Health]) -> Health:
    """The sum. What only some parts know is summed over these; it is None where none of several knows it."""
    own = list(parts)
    knowing = [part for part in own if part.under_min_isr is not None]
    known = bool(knowing) or not any(part.partitions for part in own)
    return Health(
        partitions=sum(part.partitions for part in own),
        offline=sum(part.offline for part in own),
        under_replicated=sum(part.under_replicated for part in own),
        explained_by_move=sum(part.explained_by_move for part in own),
        offline_replicas=sum(part.offline_replicas for part in own),
        preferred_leaders=sum(part.preferred_leaders for part in own),
        under_min_isr=sum(part.under_min_isr or 0 for part in knowing) if known else None,
        at_min_isr=sum(part.at_min_isr or 0 for part in knowing) if known else None,
        at_min_isr_moving=sum(part.at_min_isr_moving or 0 for part in knowing) if known else None,
    )


def two_digits(value: int) -> int:
    """``value`` rounded to two significant digits, so that a stored figure used for sorting rarely changes."""
    digits = len(str(abs(value)))
    return round(value, 2 - digits) if digits > 2 else value
