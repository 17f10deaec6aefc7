"""One observed reassignment (KIP-240) in the words of the pages: state, progress, time left, since when."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any

from kafkadash.domain.progress import seconds_left
from kafkadash.domain.wording import count, duration
from kafkadash.observe.models import Outcome, ReassignmentSnapshot, StartedFrom
from kafkadash.observe.templatetags.figures import percent
from kafkadash.observe.throttle_rows import Throttles

FAR = timedelta(hours=24)
"""A time of completion farther away than this is given with its day."""

OUTCOME_WORDS: Mapping[str, str] = {
    Outcome.COMPLETED: "completed",
    Outcome.CANCELLED: "cancelled",
    Outcome.SUPERSEDED: "superseded by another target",
    Outcome.TOPIC_DELETED: "topic deleted",
    Outcome.UNKNOWN: "ended, outcome unknown",
}


@dataclass(frozen=True, slots=True)
class TargetThrottle:
    """How fetching by one target broker is throttled; ``adding``: it copies the partition, it did not hold it."""

    broker: int
    adding: bool
    words: str


@dataclass(frozen=True)
class ReassignmentRow:
    """A reassignment as a page or a push shows it at ``now``. Figures that nobody could read are None.

    ``throttles`` are those of its brokers and its topic; without them its throttles are unknown.
    """

    snapshot: ReassignmentSnapshot
    now: datetime
    throttles: Throttles | None = None

    @property
    def id(self) -> str:
        return self.snapshot.public_id

    @property
    def name(self) -> str:
        """Topic and partition as Kafka's tools write them."""
        return f"{self.snapshot.topic}-{self.snapshot.partition}"

    @property
    def running(self) -> bool:
        return self.snapshot.outcome == Outcome.RUNNING

    @property
    def percent(self) -> float | None:
        return self.snapshot.percent

    @cached_property
    def copied(self) -> bool:
        """Every adding replica holds what the leader held when asked."""
        return self.percent is not None and self.percent >= 100.0

    @cached_property
    def in_isr(self) -> int | None:
        """How many adding replicas are in the ISR; None while one of them is not known."""
        flags = [replica.get("in_isr") for replica in self.replicas]
        return None if None in flags or len(flags) < len(self.snapshot.adding) else sum(map(bool, flags))

    @property
    def replicas(self) -> Sequence[Mapping[str, Any]]:
        return [
            {**replica, "taken_at": datetime.fromisoformat(replica["taken_at"]) if replica["taken_at"] else None}
            for replica in self.snapshot.replicas_progress
        ]

    @property
    def in_sync_words(self) -> str:
        if self.snapshot.outcome == Outcome.COMPLETED:
            return "yes"
        adding = len(self.snapshot.adding)
        if not adding:
            return "adds none"
        if self.in_isr is None:
            return "unknown"
        if adding == 1 or self.in_isr in (0, adding):
            return "yes" if self.in_isr == adding else "no"
        return f"{self.in_isr} of {adding}"

    @property
    def state(self) -> str:
        """What it does, in words."""
        if not self.running:
            return OUTCOME_WORDS[self.snapshot.outcome]
        if self.stuck:
            return f"stuck: adding = removing {', '.join(map(str, self.stuck))}, cancel it"
        if not self.snapshot.adding:
            return "dropping replicas"
        if self.in_isr == len(self.snapshot.adding):
            return "in sync, finishing"
        if self.percent is None:
            return "copying, progress unknown"
        return "catching up" if self._catches_up else "copying"

    @property
    def _catches_up(self) -> bool:
        """Everything is copied, and the ISR does not have it yet."""
        copying = self.running and not self.stuck and self.snapshot.adding and self.percent is not None
        return bool(copying) and self.copied and self.in_isr != len(self.snapshot.adding)

    @property
    def stuck(self) -> Sequence[int]:
        """Brokers that are added and removed at once: it never completes (the original set was submitted over it)."""
        if not self.running:
            return ()
        return [broker for broker in self.snapshot.adding if broker in self.snapshot.removing]

    @property
    def leader_throttle(self) -> str:
        """How its leader's sending is throttled (KIP-240's leader throttle)."""
        if self.throttles is None:
            return "unknown"
        return self.throttles.leader_words(self.snapshot.topic, self.snapshot.partition, self.snapshot.leader)

    @property
    def target_throttles(self) -> Sequence[TargetThrottle]:
        """Of every target broker in order; the first is the preferred leader."""
        return [
            TargetThrottle(broker, broker in self.snapshot.adding, self._throttle_of(broker))
            for broker in self.snapshot.target
        ]

    @property
    def adding_throttles(self) -> Sequence[TargetThrottle]:
        """Of those that copy something."""
        return [TargetThrottle(broker, adding=True, words=self._throttle_of(broker)) for broker in self.snapshot.adding]

    def _throttle_of(self, broker: int) -> str:
        if self.throttles is None:
            return "unknown"
        return self.throttles.target_words(self.snapshot.topic, self.snapshot.partition, broker)

    @property
    def state_hint(self) -> str:
        return "copied, not in the ISR yet" if self._catches_up else ""

    @property
    def remaining_bytes(self) -> float | None:
        if self.snapshot.size_bytes is None or self.percent is None:
            return None
        return self.snapshot.size_bytes * (100.0 - self.percent) / 100.0

    @cached_property
    def seconds_left(self) -> float | None:
        return seconds_left(self.snapshot.size_bytes, self.percent, self.snapshot.rate_bytes)

    @property
    def eta(self) -> datetime | None:
        """When the copy is complete if it goes on like this; None where ``eta_words`` says why there is none."""
        left = self.seconds_left
        if self.copied or left is None or math.isinf(left) or left > timedelta(days=365).total_seconds():
            return None
        return (self.snapshot.sampled_at or self.now) + timedelta(seconds=left)

    @property
    def eta_far(self) -> bool:
        return self.eta is not None and self.eta - self.now > FAR

    @property
    def eta_words(self) -> str:
        """Why there is no time of completion."""
        if not self.running or self.eta is not None:
            return ""
        if not self.snapshot.adding:
            return "no copy"
        if self.copied:
            return "finishing" if self.in_isr == len(self.snapshot.adding) else "not in ISR yet"
        if self.snapshot.rate_bytes is None:
            return "not known"
        return "no progress" if self.rests else "unknown"

    @property
    def rests(self) -> bool:
        """At its rate the copy never ends, or takes longer than anybody waits."""
        copying = self.running and self.snapshot.adding and not self.copied
        return bool(copying) and self.snapshot.rate_bytes is not None and self.seconds_left is not None and not self.eta

    @property
    def took(self) -> str:
        """How long it ran, as well as is known: an upper bound when nobody saw it begin."""
        ended = self.snapshot.ended_at
        if ended is None:
            return ""
        begun = self.snapshot.started_after
        if begun is None:
            return f"seen for {duration((ended - self.snapshot.started_before).total_seconds())}"
        return f"in {duration((ended - begun).total_seconds())}"

    @property
    def started_source(self) -> str:
        """Where the started interval comes from; words that fit after the times."""
        return StartedFrom(self.snapshot.started_from).label

    @property
    def ours(self) -> bool:
        return bool(self.snapshot.claimed_by)

    @property
    def submitted_at(self) -> datetime | None:
        """When we submitted it; None where it was not us, or more than once, so that nobody knows which one arrived."""
        row = self.snapshot
        exact = row.started_from == StartedFrom.SUBMITTED and row.started_after == row.started_before
        return row.started_before if exact else None

    @property
    def title(self) -> str:
        """The heading of its own page."""
        if not self.running:
            return f"{self.name} is not running: {self.state}."
        if self.percent is None:
            return f"{self.name} is moving; how far cannot be told."
        return f"{self.name} is moving, {percent(self.percent)} copied."


@dataclass(frozen=True, slots=True)
class InFlight:
    """All running reassignments of a cluster taken together.

    ``percent`` weighs by size where all sizes are known, else every partition alike. ``unknown``: how many copy
    something and have no progress that could be read. ``dropping``: how many only remove replicas.
    """

    running: int
    unknown: int
    dropping: int
    percent: float | None
    remaining_bytes: float | None

    def title(self, name: str, age: str) -> str:
        """The answer of the reassignments page; ``age`` is set when the data is too old to speak of now."""
        moving = count(self.running, "partition")
        if age:
            if not self.running:
                return f"Cannot tell what moves in {name}: nothing moved {age} ago."
            return f"Cannot tell what moves in {name}: {moving} moved {age} ago."
        if not self.running:
            return f"Nothing moves in {name}."
        if self.dropping == self.running:
            return f"{moving} {'drops' if self.running == 1 else 'drop'} replicas; nothing is copied."
        verb = "is" if self.running == 1 else "are"
        if self.percent is None:
            return f"{moving} {verb} moving; how far cannot be told."
        known = " as far as is known" if self.unknown else ""
        return f"{moving} {verb} moving, {percent(self.percent)} copied{known}."
