"""Who led the controllers when, as far as it was seen; looks are seconds apart, so a short reign may go unseen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import pairwise

FLAPPING_CHANGES = 3
"""More changes of the leader than this within ``FLAPPING_WITHIN`` are flapping."""

FLAPPING_WITHIN = timedelta(minutes=10)


@dataclass(frozen=True, slots=True)
class Reign:
    """One leader's epoch. ``first_seen`` and ``last_seen`` are the first and the last answer kept that named it."""

    leader_id: int
    epoch: int
    first_seen: datetime
    last_seen: datetime


@dataclass(frozen=True, slots=True)
class Change:
    """Another epoch than ``before`` was named for the first time at ``at``.

    ``unseen`` counts epochs in between that no answer named: elections without a winner, or reigns too short to see.
    """

    before: Reign
    after: Reign

    @property
    def at(self) -> datetime:
        return self.after.first_seen

    @property
    def reigned_s(self) -> float:
        """For how many seconds ``before`` was the leader, as far as seen: from its first answer to this change."""
        return (self.at - self.before.first_seen).total_seconds()

    @property
    def unseen(self) -> int:
        return max(0, self.after.epoch - self.before.epoch - 1)


def changes(reigns: Sequence[Reign]) -> list[Change]:
    """Changes between reigns in the order of their epochs. What is known first is no change: nobody saw it begin."""
    ordered = sorted(reigns, key=lambda reign: (reign.epoch, reign.first_seen))
    return [Change(before, after) for before, after in pairwise(ordered)]


def recent_changes(seen: Sequence[Change], now: datetime) -> int:
    """How many of them are not older than ``FLAPPING_WITHIN``."""
    return sum(now - change.at <= FLAPPING_WITHIN for change in seen)


def is_flapping(seen: Sequence[Change], now: datetime) -> bool:
    return recent_changes(seen, now) > FLAPPING_CHANGES
