"""Catch-up of replicas outside the ISR that no reassignment adds: records behind, rate and time left.

Both ends come from ListOffsets with replica_id −2, so each broker answers for its own copy. A position is the offset up
to which a replica needs nothing more: its log end, or the leader's log start where retention has passed it by.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import Enum
from typing import ClassVar, TypeVar

from kafkadash.monitoring.reassignments.progress import ANEW_AFTER_S, RateMeter, bytes_per_second

Number = TypeVar("Number", int, float)

LONGEST_S = 365 * 86_400.0
"""A time left beyond this is none."""


class CatchUpState(Enum):
    """State of a replica outside the ISR. Worst first."""

    STILL = "still"
    FALLING = "falling"
    UNREAD = "unread"
    SKIPPED = "skipped"
    MEASURING = "measuring"
    CLOSING = "closing"
    LEVEL = "level"


@dataclass(frozen=True, slots=True)
class FollowerReading:
    """Offsets of one refresh, None where they were not read; times in seconds since the epoch."""

    leader: int | None
    leader_start: int | None = None
    leader_end: int | None = None
    leader_at: float = 0.0
    own_end: int | None = None
    own_at: float = 0.0
    leader_bytes: int | None = None
    error: str = ""


@dataclass(frozen=True, slots=True)
class FollowerSample:
    """A replica as last read, with what the next reading needs to go on measuring.

    ``taken_at``: of the older of both ends. ``grown_at``: since when the position is what it is. ``error``: Kafka's
    text where an end was not read.
    """

    stored_as_list: ClassVar = True

    topic: str
    topic_id: str
    partition: int
    leader: int | None
    lag: int | None = None
    bytes_behind: int | None = None
    rate_bytes: float | None = None
    taken_at: float | None = None
    grown_at: float = 0.0
    own: RateMeter | None = None
    leading: RateMeter | None = None
    error: str = ""

    def advance(self, now: FollowerReading) -> FollowerSample:
        """The sample after one more reading. One that is missing an end leaves the meters as they were."""
        if now.leader_end is None or now.leader_start is None or now.own_end is None:
            return replace(
                self, leader=now.leader, lag=None, bytes_behind=None, rate_bytes=None, taken_at=None, error=now.error
            )
        position = max(now.own_end, now.leader_start)
        moved = self.own is None or position != self.own.value
        stood_s = now.own_at - self.grown_at if self.own else 0.0
        # The rate before a pause is not the rate after it.
        own = None if moved and stood_s >= ANEW_AFTER_S else self.own
        own = own.add(now.own_at, position) if own else RateMeter.start(now.own_at, position)
        leading = self.leading
        leading = (
            leading.add(now.leader_at, now.leader_end) if leading else RateMeter.start(now.leader_at, now.leader_end)
        )
        lag = max(0, now.leader_end - position)
        return replace(
            self,
            leader=now.leader,
            lag=lag,
            bytes_behind=_estimate_bytes(lag, now),
            rate_bytes=bytes_per_second(own.per_second(), now.leader_bytes, now.leader_end - now.leader_start),
            taken_at=min(now.own_at, now.leader_at),
            grown_at=now.own_at if moved else self.grown_at,
            own=own,
            leading=leading,
            error="",
        )

    @property
    def rate(self) -> float | None:
        """Records per second that the replica gets; None until it is measured."""
        return None if self.own is None or self.lag is None else self.own.per_second()

    @property
    def written_rate(self) -> float | None:
        """Records per second that its leader gets."""
        return None if self.leading is None or self.lag is None else self.leading.per_second()

    @property
    def state(self) -> CatchUpState:
        if self.lag is None:
            return CatchUpState.UNREAD
        if self.lag == 0:
            return CatchUpState.LEVEL
        rate, written = self.rate, self.written_rate
        if rate is None or written is None or self.own is None:
            return CatchUpState.MEASURING
        if rate <= 0 or self.own.at - self.grown_at >= ANEW_AFTER_S:
            return CatchUpState.STILL
        if rate <= written or self.lag > (rate - written) * LONGEST_S:
            return CatchUpState.FALLING
        return CatchUpState.CLOSING

    @property
    def seconds_left(self) -> float | None:
        """Time until it has what its leader has, while both go on like this. None where that is not known."""
        state = self.state
        if state is CatchUpState.LEVEL:
            return 0.0
        rate, written, lag = self.rate, self.written_rate, self.lag
        if state is not CatchUpState.CLOSING or rate is None or written is None or lag is None:
            return None
        return lag / (rate - written)


def _estimate_bytes(lag: int, now: FollowerReading) -> int | None:
    """By the mean size of a record in the leader's log."""
    if lag == 0:
        return 0
    if now.leader_bytes is None or now.leader_end is None or now.leader_start is None:
        return None
    records = now.leader_end - now.leader_start
    return round(lag * now.leader_bytes / records) if records > 0 else None


@dataclass(frozen=True, slots=True)
class CatchUpFigures:
    """All replicas of a broker that are behind, taken together.

    ``counts``: {state: replicas}. Sums are over the replicas of which a figure is known, None where it is of none;
    ``unsized``: replicas whose lag is known in records only. ``seconds_left`` is of the slowest replica, None as soon
    as it is unknown of one. ``taken_at``: of the oldest sample.
    """

    counts: Mapping[str, int]
    records: int | None
    bytes_behind: int | None
    unsized: int
    rate: float | None
    rate_bytes: float | None
    seconds_left: float | None
    taken_at: float | None


def sum_followers(samples: Iterable[FollowerSample], skipped: int = 0) -> CatchUpFigures:
    """``skipped``: replicas that were not read, because there were too many."""
    every = list(samples)
    counts = Counter(sample.state.value for sample in every)
    if skipped:
        counts[CatchUpState.SKIPPED.value] = skipped
    read = [sample for sample in every if sample.lag is not None]
    behind = [sample for sample in read if sample.lag]
    left = [sample.seconds_left for sample in every]
    known_left = [seconds for seconds in left if seconds is not None]
    return CatchUpFigures(
        counts=dict(counts),
        records=_sum_known(sample.lag for sample in read),
        bytes_behind=_sum_known(sample.bytes_behind for sample in read),
        unsized=sum(sample.bytes_behind is None for sample in read),
        rate=_sum_known(sample.rate for sample in behind),
        rate_bytes=_sum_known(sample.rate_bytes for sample in behind),
        seconds_left=max(known_left) if known_left and len(known_left) == len(left) and not skipped else None,
        taken_at=min((sample.taken_at for sample in read if sample.taken_at is not None), default=None),
    )


def _sum_known(values: Iterable[Number | None]) -> Number | None:
    known = [value for value in values if value is not None]
    return sum(known[1:], known[0]) if known else None
