"""The states a thing can be in, and when data is too old to tell one of them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import lru_cache

from kafkadash.core.messages import CodedMessage

QUICKEST_JUDGED_S = 5.0
"""A pace quicker than this (while something moves) is a courtesy; missing it does not make data stale."""


class HealthState(StrEnum):
    """Worst first: this is the order of the status board and of a roll-up."""

    CRITICAL = "critical"
    WARNING = "warning"
    UNKNOWN = "unknown"
    MAINTENANCE = "maintenance"
    OK = "ok"

    @property
    def severity(self) -> int:
        """0 is the worst."""
        return _SEVERITIES[self]

    @property
    def word(self) -> str:
        """Label of the state; a cluster in maintenance is one whose monitoring is switched off."""
        return {HealthState.OK: "OK", HealthState.MAINTENANCE: "not monitored"}.get(self, self.value)


_SEVERITIES = {state: severity for severity, state in enumerate(HealthState)}


@dataclass(frozen=True, slots=True)
class RefreshStatus:
    """How one kind of facts stands: when its newest data was taken, how often it is read, how the last tries went.

    ``failure`` is a ``FailureKind``, '' after a good one, ``error`` says more.
    """

    taken_at: datetime | None = None
    interval_s: float = 30.0
    failures: int = 0
    failure: str = ""
    error: CodedMessage | None = None

    def stale(self, now: datetime) -> bool:
        return self.taken_at is None or is_stale(self.taken_at, self.interval_s, now)

    @property
    def error_text(self) -> str:
        return str(self.error or "")


NEVER = RefreshStatus()
"""Facts that were never read."""


def is_stale(taken_at: datetime, interval_s: float, now: datetime) -> bool:
    """Older than twice its interval."""
    return now - taken_at > _limit_age(interval_s)


@lru_cache(maxsize=1024)
def _limit_age(interval_s: float) -> timedelta:
    return timedelta(seconds=2 * max(interval_s, QUICKEST_JUDGED_S))
