"""The throttle ledger (04-changes.md §4): what a run set on one broker or topic, what stood there before, what is owed.

All values. ``ledger_rates`` and ``ledger_lists`` say what becomes of an entry: by what a read shows, by what a step
wants, and by what Kafka answered. Nothing here calls anybody or reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum

from kafkadash.domain.executor_state import UNANSWERED
from kafkadash.domain.executor_throttles import Pair
from kafkadash.domain.throttled_replicas import WORDS
from kafkadash.domain.throttles import FOLLOWER_RATE, LEADER_RATE

AGAIN_EVERY = timedelta(minutes=1)
"""What somebody else takes away from us is set again at most so often."""

SHOWS_LATE = timedelta(seconds=6)
"""So long a broker may still show what stood there before a change that Kafka has confirmed."""

BROKER_RATES = (LEADER_RATE, FOLLOWER_RATE)
"""Set together: a destination leads other partitions that are sources."""


class EntryState(StrEnum):
    """The values are stored. An entry stands in the database before its call."""

    INTENT = "intent"
    SET = "set"
    CLEARING = "clearing"
    CLEARED = "cleared"
    OBLIGED = "obliged"


class Source(StrEnum):
    """Where a value comes from, as far as it matters here; the values are those of ``observe.models.ConfigSource``."""

    TOPIC = "topic"
    BROKER = "broker"
    CLUSTER_DEFAULT = "cluster_default"
    STATIC = "static"
    DEFAULT = "default"
    OTHER = "other"


OWN = frozenset({Source.TOPIC, Source.BROKER})
"""Set on the broker or topic itself. Anything else shows through and comes back when the own value is deleted."""


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """One key of one broker or topic; ``resource`` is "broker" or "topic", ``name`` the broker's id or the topic."""

    resource: str
    name: str
    key: str

    def __str__(self) -> str:
        """As an order names it."""
        return f"{self.resource} {self.name} {self.key}"

    @property
    def words(self) -> str:
        return f"{self.resource} {self.name}, {WORDS[self.key]}"


@dataclass(frozen=True, slots=True)
class Read:
    """What stands at a place. ``value`` is None where nothing does; ``unreadable`` says why that is not known.

    ``gone``: the topic does not exist any more.
    """

    value: str | None = None
    source: str = Source.DEFAULT
    unreadable: str = ""
    gone: bool = False

    @property
    def own(self) -> str | None:
        """The value that is set here itself. Kafka shows a list that was never set as '' by default."""
        return self.value if self.source in OWN else None


@dataclass(frozen=True, slots=True)
class Entry:
    """What the run did at one place.

    Of a rate, ``value`` is ours as last known to be set, ``asked`` what is being set now, ``late`` what lost calls may
    still set, separated by blanks. Of a list, ``pairs`` are ours, each with its own state (CLEARED: a lost call may
    still add it), and ``already`` those of them that stood there before and are never subtracted. ``previous`` is what
    stood there before us, None for nothing, with its ``Source``. ``lost_at``: of the last call of which nobody has the
    answer; ``again_at``: when what others had taken away was last set again; ``missing_at``: when a rate of ours was
    first read as taken away and was not set again since.
    """

    place: Place
    state: EntryState = EntryState.INTENT
    value: str = ""
    asked: str = ""
    late: str = ""
    pairs: Mapping[Pair, EntryState] = field(default_factory=dict)
    already: frozenset[Pair] = frozenset()
    previous: str | None = None
    previous_source: str = ""
    words: str = ""
    changed_at: datetime | None = None
    lost_at: datetime | None = None
    again_at: datetime | None = None
    missing_at: datetime | None = None

    @property
    def open(self) -> bool:
        return self.state is not EntryState.CLEARED

    @property
    def restores(self) -> str | None:
        """What a rate goes back to: the value that was set on the broker itself; None: ours is deleted.

        A cluster default or static value comes back by itself and is never written.
        """
        return self.previous if self.previous_source in OWN else None

    def may_come_late(self, now: datetime) -> bool:
        return self.lost_at is not None and now - self.lost_at < UNANSWERED

    def may_show_late(self, now: datetime) -> bool:
        """Whether a read may be of the time before our last change here; nobody is accused on such a one."""
        return self.changed_at is not None and now - self.changed_at < SHOWS_LATE

    def watched_until_shown(self, now: datetime) -> datetime:
        """``lost_at`` of an entry that was just cleared: it is read until brokers must have heard of it."""
        least = now - UNANSWERED + SHOWS_LATE
        return least if self.lost_at is None else max(self.lost_at, least)

    def may_set_again(self, now: datetime) -> bool:
        return self.again_at is None or now - self.again_at >= AGAIN_EVERY


class Found(StrEnum):
    """What a read showed that somebody has to hear of; the values are verbs of audit events."""

    VANISHED = "throttle_vanished"
    FOREIGN = "throttle_foreign"
    LEFT = "throttle_left"
    LATE = "throttle_late"
    OBLIGED = "throttle_obliged"


@dataclass(frozen=True, slots=True)
class Settled:
    """An entry after a read. ``missing``: ours was taken away and may not be set again yet.

    ``foreign`` is the value of somebody else that stands where ours should.
    """

    entry: Entry
    found: Found | None = None
    missing: bool = False
    foreign: str | None = None
