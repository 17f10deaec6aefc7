"""Which route takes which event, which receivers that makes, and when a storm becomes a digest. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from enum import StrEnum
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from kafkadash.core.status import HealthState
from kafkadash.notifications.kinds import KnownKind

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
    which it began. In a time zone that is not known any more it holds always: nobody knows when it would not.
    """

    time_zone: str = "UTC"
    weekdays: frozenset[int] = frozenset()
    begins: time = time(0)
    ends: time = time(0)

    @property
    def zone(self) -> ZoneInfo | None:
        """Return the time zone; None where the server does not know it (any more)."""
        try:
            return ZoneInfo(self.time_zone)
        except (ZoneInfoNotFoundError, ValueError):
            return None

    def include(self, at: datetime) -> bool:
        if (zone := self.zone) is None:
            return True
        local = at.astimezone(zone)
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


@dataclass(frozen=True, slots=True)
class ReceiverFilters:
    """Receiver that is enabled, with what its routes take."""

    number: int
    name: str
    filters: Sequence[RouteFilter]


@dataclass(frozen=True, slots=True)
class CoveringReceiver:
    """Receiver that would be sent an event now; ``some_kinds``: not of every kind that there may be."""

    number: int
    name: str
    some_kinds: bool = False


@dataclass(frozen=True, slots=True)
class CoverageCell:
    """Receivers of findings of one state, or of a part of the events of changes.

    ``kinds`` counts the kinds of such events that there may be, ``missed`` those that no receiver is sent.
    """

    receivers: tuple[CoveringReceiver, ...]
    kinds: int
    missed: int


@dataclass(frozen=True, slots=True)
class CoverageRow:
    """Clusters of which the same receivers are sent the same; without any it is kafkadash itself."""

    clusters: tuple[str, ...]
    critical: CoverageCell
    unknown: CoverageCell
    warning: CoverageCell
    waiting_changes: CoverageCell
    other_changes: CoverageCell


def list_coverage(
    receivers: Iterable[ReceiverFilters],
    clusters: Iterable[tuple[int, str]],
    kinds: Collection[KnownKind],
    at: datetime,
) -> list[CoverageRow]:
    """Return who is sent events at this time: of clusters, given by id and name, and last of kafkadash itself.

    Clusters that differ in nothing are one row. Those with critical findings for nobody come first.
    """
    routes = [(each, [(own.cluster, _find_taken(own, kinds, at)) for own in each.filters]) for each in receivers]
    possible = _list_columns([kind for kind in kinds if not kind.own], changes=True)
    names: dict[tuple[CoverageCell, ...], list[str]] = {}
    for number, name in clusters:
        names.setdefault(_cover_cluster(routes, number, possible), []).append(name)
    rows = [CoverageRow(tuple(found), *cells) for cells, found in names.items()]
    rows.sort(key=lambda row: -row.critical.missed)
    of_kafkadash = _list_columns([kind for kind in kinds if kind.own], changes=False)
    return [*rows, CoverageRow((), *_cover_cluster(routes, None, of_kafkadash))]


_WAITING_CHANGE, _OTHER_CHANGE = "change.waiting", "change.other"


def _find_taken(own: RouteFilter, kinds: Iterable[KnownKind], at: datetime) -> frozenset[str]:
    """Return the kinds of findings and the events of changes that a route takes now of its cluster, or of all."""
    taken = {kind.value for kind in kinds if own.takes_finding(own.cluster, kind.value, kind.state, at)}
    if own.takes_change(own.cluster, at, waits=True):
        taken.add(_WAITING_CHANGE)
    if own.takes_change(own.cluster, at, waits=False):
        taken.add(_OTHER_CHANGE)
    return frozenset(taken)


def _list_columns(kinds: Collection[KnownKind], *, changes: bool) -> Sequence[frozenset[str]]:
    """Return the events that there may be in each column of a row. Every change is of a cluster."""
    states = (HealthState.CRITICAL, HealthState.UNKNOWN, HealthState.WARNING)
    findings = [frozenset(kind.value for kind in kinds if kind.state == state) for state in states]
    return [*findings, *(frozenset({event} if changes else ()) for event in (_WAITING_CHANGE, _OTHER_CHANGE))]


def _cover_cluster(
    routes: Iterable[tuple[ReceiverFilters, Sequence[tuple[int | None, frozenset[str]]]]],
    cluster: int | None,
    columns: Sequence[frozenset[str]],
) -> tuple[CoverageCell, ...]:
    found: list[list[CoveringReceiver]] = [[] for _ in columns]
    reached: list[set[str]] = [set() for _ in columns]
    for receiver, own_routes in routes:
        taken = frozenset[str]().union(*(events for own, events in own_routes if own in (None, cluster)))
        for column, possible in enumerate(columns):
            if events := taken & possible:
                some = len(events) < len(possible)
                found[column].append(CoveringReceiver(receiver.number, receiver.name, some))
                reached[column] |= events
    return tuple(
        CoverageCell(tuple(found[column]), len(possible), len(possible) - len(reached[column]))
        for column, possible in enumerate(columns)
    )
