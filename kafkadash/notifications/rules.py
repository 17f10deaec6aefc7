"""Which route takes which event, and when a storm becomes a digest. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo

from kafkadash.core.status import HealthState

STORM_EVENTS = 10
STORM_WITHIN = timedelta(minutes=1)
"""More events than that of one route in that time become digests, at most one in each such time."""

LEVELS: Mapping[str, frozenset[str]] = {
    "critical": frozenset({HealthState.CRITICAL}),
    "unknown": frozenset({HealthState.CRITICAL, HealthState.UNKNOWN}),
    "warning": frozenset({HealthState.CRITICAL, HealthState.UNKNOWN, HealthState.WARNING}),
}
"""States of findings that a route of each severity takes. Unknown: a cluster that nobody can judge."""


class SentChanges(StrEnum):
    """Events of changes that a route takes."""

    NONE = "none"
    WAITING = "waiting"
    ALL = "all"


@dataclass(frozen=True, slots=True)
class RouteHours:
    """Hours of a route; ``weekdays`` are numbers from 0 for Monday, every day where empty.

    Between equal times it holds all day. One that ends before it begins holds over midnight, as part of the day on
    which it began.
    """

    time_zone: str = "UTC"
    weekdays: frozenset[int] = frozenset()
    begins: time = time(0)
    ends: time = time(0)

    def include(self, at: datetime) -> bool:
        local = at.astimezone(ZoneInfo(self.time_zone))
        day, clock = local.weekday(), local.time()
        if self.begins < self.ends:
            inside = self.begins <= clock < self.ends
        elif self.begins == self.ends:
            inside = True
        elif clock < self.ends:
            inside, day = True, (day - 1) % 7
        else:
            inside = clock >= self.begins
        return inside and (not self.weekdays or day in self.weekdays)


@dataclass(frozen=True, slots=True)
class RouteFilter:
    """Events that a route takes; ``cluster`` is the id of one, None for all; ``kinds``: all where empty."""

    cluster: int | None = None
    findings: bool = True
    changes: SentChanges = SentChanges.NONE
    severity: str = "warning"
    kinds: frozenset[str] = frozenset()
    hours: RouteHours = field(default_factory=RouteHours)

    def takes_finding(self, cluster: int | None, kind: str, state: str, at: datetime) -> bool:
        fits = self.findings and state in LEVELS[self.severity] and (not self.kinds or kind in self.kinds)
        return fits and self._applies(cluster, at)

    def takes_change(self, cluster: int | None, at: datetime, *, waits: bool) -> bool:
        """Return whether an event of a change is taken; ``waits``: that it waits for approval."""
        fits = self.changes is SentChanges.ALL or (waits and self.changes is SentChanges.WAITING)
        return fits and self._applies(cluster, at)

    def _applies(self, cluster: int | None, at: datetime) -> bool:
        return self.cluster in (None, cluster) and self.hours.include(at)


@dataclass(frozen=True, slots=True)
class RouteTraffic:
    """Messages of a route in the last ``STORM_WITHIN``: how many events they have, and when the newest was made."""

    events: int = 0
    newest_at: datetime | None = None

    def digest_at(self, events: int, now: datetime) -> datetime | None:
        """Return when a digest of so many further events is due; None where they are no storm.

        The first one of a storm is due now, unless a message was just made.
        """
        if self.events + events <= STORM_EVENTS:
            return None
        return now if self.newest_at is None else max(now, self.newest_at + STORM_WITHIN)
