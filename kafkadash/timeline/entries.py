"""Shapes of the timeline: what is asked for (scope and span), and one entry of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from kafkadash.core.messages import CodedMessage

BUCKETS = 96
"""Intervals into which the chart divides the time."""


class EntryKind(StrEnum):
    """Kinds of entries, each a filter. Those that collectors find have the names of ``EventKind``."""

    FINDINGS = "findings"
    CHANGES = "changes"
    MOVES = "moves"
    LEADERS = "leaders"
    CONTROLLERS = "controllers"
    BROKERS = "brokers"
    TOPICS = "topics"
    CONFIGS = "configs"
    THROTTLES = "throttles"
    GROUPS = "groups"
    MAINTENANCE = "maintenance"

    @property
    def words(self) -> str:
        return _WORDS.get(self, self.value.capitalize())


KIND_NAMES = frozenset(kind.value for kind in EntryKind)
_WORDS = {EntryKind.MOVES: "Reassignments", EntryKind.LEADERS: "Leaders", EntryKind.CHANGES: "Change requests"}


@dataclass(frozen=True, slots=True)
class TimeSpan:
    """Time from ``begin`` up to ``end``."""

    begin: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.begin).total_seconds()

    @property
    def step(self) -> timedelta:
        """Length of an interval of the chart."""
        return (self.end - self.begin) / BUCKETS

    def list_begins(self, intervals: int = BUCKETS) -> list[datetime]:
        """Return the begin of each interval; by default, of those of the chart."""
        step = (self.end - self.begin) / intervals
        return [self.begin + number * step for number in range(intervals)]


@dataclass(frozen=True, slots=True)
class TimelineScope:
    """Cluster, and the broker, topic or group that entries must be about; '' and None: any.

    ``group_key``: as of ``GroupState``. ``kinds``: those that are listed; all are counted.
    """

    cluster_id: int
    slug: str
    kinds: frozenset[EntryKind]
    broker: int | None = None
    topic: str = ""
    group: str = ""
    group_key: str = ""

    @property
    def is_narrow(self) -> bool:
        return self.broker is not None or bool(self.topic or self.group_key)

    def wants(self, *kinds: EntryKind) -> bool:
        return bool(self.kinds.intersection(kinds))


@dataclass(frozen=True, slots=True)
class EntryLine:
    """Detail of an entry: a subject with its values. ``before`` is None where only ``after`` is told."""

    subject: str = ""
    url: str = ""
    what: str = ""
    before: str | None = None
    after: str = ""
    note: str = ""


@dataclass(frozen=True, slots=True)
class TimelineEntry:
    """Entry at ``at``; ``not_before`` is the time before it at which it had not happened, None if not known or exact.

    ``source``: who saw it. ``state``: HealthState of a mark, '' for none. ``more``: subjects without a line.
    """

    key: str
    kind: EntryKind
    at: datetime
    message: CodedMessage
    source: str
    not_before: datetime | None = None
    count: int = 1
    state: str = ""
    url: str = ""
    lines: Sequence[EntryLine] = ()
    more: int = 0
    code: str = ""

    @property
    def text(self) -> str:
        return self.message.cause

    @property
    def is_short(self) -> bool:
        """Return whether all lines are shown at once."""
        return len(self.lines) + bool(self.more) <= SHOWN_LINES


SHOWN_LINES = 3


@dataclass(frozen=True, slots=True)
class KindCount:
    """Entries of one kind in one interval of the chart; ``bucket`` counts from 0."""

    bucket: int
    kind: EntryKind
    count: int


def count_kinds(counts: Collection[KindCount]) -> dict[EntryKind, int]:
    found = dict.fromkeys(EntryKind, 0)
    for each in counts:
        found[each.kind] += each.count
    return found
