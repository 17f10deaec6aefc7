"""A consumer group as the sum of its partitions: what state it is in, which partition is the worst, and how much waits.

The collector judges each partition once a look (``partition_lag``) and rolls its group up (``group_lag``); pages and
findings say both in the words of ``lag_words``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.domain.lag import WINDOW, LagState, clear, judge
from kafkadash.domain.lag_look import Look, beyond, ends_of, lag_of, lost, samples_of
from kafkadash.domain.lag_time import EndPoint, TimeLag, time_lag
from kafkadash.domain.lag_trend import Trend, trend
from kafkadash.domain.status import State


class Unjudged(StrEnum):
    """Why a partition cannot be judged; '' where it can."""

    JUDGED = ""
    NO_COMMIT = "no commit"
    BEYOND = "beyond the log end"
    NO_END = "log end not known"
    COLLECTING = "collecting"
    NO_TREND = "no trend"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition of a group as of its newest look.

    ``looks`` is the window, oldest first, at most ``WINDOW``. ``start`` is the log start offset, None where not known.
    ``moved_at`` in seconds: when the committed offset was last seen to move, None if it was never seen to; then
    ``seen_since`` is when it was first looked at. ``member`` is assigned to it: '' for nobody, None where not known.
    """

    topic: str
    partition: int
    state: LagState
    looks: Sequence[Look]
    start: int | None = None
    allowed: int = 0
    moved_at: float | None = None
    seen_since: float | None = None
    member: str | None = None

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def committed(self) -> int | None:
        return self.looks[-1].committed if self.looks else None

    @property
    def end(self) -> int | None:
        return self.looks[-1].end if self.looks else None

    @property
    def lag(self) -> int | None:
        """In records, as Kafka counts; None where not known."""
        return lag_of(self.committed, self.end)

    @property
    def lost(self) -> int | None:
        """Records that were deleted before they were committed, at most; None where not known."""
        return lost(self.committed, self.start)

    @property
    def waiting(self) -> int | None:
        """Records that can still be read: the lag without what was deleted."""
        return None if self.lag is None else max(0, self.lag - (self.lost or 0))

    @property
    def beyond(self) -> int:
        """By how many records the commit lies beyond the log end; 0 where it does not."""
        return beyond(self.committed, self.end)

    @property
    def fallen(self) -> int:
        """By how many records the commit lies below the highest of the window."""
        commits = [look.committed for look in self.looks if look.committed is not None]
        return max(commits) - commits[-1] if commits else 0

    @property
    def known(self) -> int:
        """Samples of the window that count: "collecting 4/10"."""
        return _known(self.looks)

    @property
    def unjudged(self) -> Unjudged:
        if self.state is not LagState.UNKNOWN:
            return Unjudged.JUDGED
        if self.committed is None:
            return Unjudged.NO_COMMIT
        if self.end is None:
            return Unjudged.NO_END
        if self.beyond:
            return Unjudged.BEYOND
        return Unjudged.COLLECTING if self.known < WINDOW else Unjudged.NO_TREND

    @property
    def in_doubt(self) -> bool:
        """Not judged, and more waited than is allowed when its lag was last known in the window."""
        if self.state is not LagState.UNKNOWN:
            return False
        lags = (lag_of(look.committed, look.end) for look in reversed(self.looks))
        last = next((lag for lag in lags if lag is not None), None)
        return last is not None and last > self.allowed

    @property
    def time_lag(self) -> TimeLag | None:
        if self.lag is None:
            return None
        return time_lag(self.committed, [EndPoint(look.at, look.end) for look in self.looks if look.end is not None])

    @property
    def trend(self) -> Trend:
        return trend(self.looks, self.lag)


@dataclass(frozen=True, slots=True)
class GroupLag:
    """A group as of one look. ``state`` is OK, WARN, ERR or UNKNOWN; ``counts`` has all states of its partitions.

    ``worst`` is the partition that gives the group its state, with the most records waiting; None without partitions.
    ``lag`` in records, the sum over partitions whose lag is known, None where none is; ``lag_unknown`` counts others.
    ``members`` None: nobody could say. ``lost``: records deleted before they were committed, in ``lost_in`` partitions.
    ``in_doubt``: partitions that cannot be judged now, and in which more waited than is allowed.
    """

    state: LagState
    worst: PartitionLag | None
    counts: Mapping[LagState, int]
    partitions: int
    members: int | None
    lag: int | None
    lag_unknown: int
    allowed: int
    lost: int = 0
    lost_in: int = 0
    most_lost: PartitionLag | None = None
    beyond_in: int = 0
    in_doubt: int = 0

    @property
    def verdict(self) -> LagState:
        """What stands on its pill: the state of the worst partition, ERR is a stall, a stop or a rewind."""
        return self.worst.state if self.worst else LagState.UNKNOWN

    @property
    def failing(self) -> int:
        """Partitions that stall, stopped or were set back."""
        return sum(number for state, number in self.counts.items() if state.failing)


def partition_lag(
    topic: str,
    partition: int,
    looks: Sequence[Look],
    *,
    has_members: bool | None,
    start: int | None = None,
    allowed: int = 0,
    moved_at: float | None = None,
    seen_since: float | None = None,
    member: str | None = None,
) -> PartitionLag:
    """Judges the newest ``WINDOW`` of ``looks``, oldest first. A look that brought no lag judges nothing."""
    window = looks[-WINDOW:]
    newest = window[-1] if window else Look(0.0, None, None)
    lag = lag_of(newest.committed, newest.end)
    state = clear(_known(window), lag, allowed) or judge(
        samples_of(window), lag=lag, ends=ends_of(window), now=newest.at, has_members=has_members, allowed=allowed
    )
    return PartitionLag(topic, partition, state, window, start, allowed, moved_at, seen_since, member)


def group_lag(partitions: Iterable[PartitionLag], *, members: int | None, allowed: int = 0) -> GroupLag:
    """Rolls up the partitions of one group. One that cannot be judged hides nothing of what the others tell."""
    counts: Counter[LagState] = Counter()
    worst = most_lost = None
    lag = unknown = all_lost = lost_in = beyond_in = in_doubt = 0
    for each in partitions:
        counts[each.state] += 1
        own = each.lag
        lag, unknown = lag + (own or 0), unknown + (own is None)
        beyond_in += each.beyond > 0
        in_doubt += each.in_doubt
        if gone := each.lost:
            all_lost, lost_in = all_lost + gone, lost_in + 1
            if most_lost is None or gone > (most_lost.lost or 0):
                most_lost = each
        if worst is None or _badness(each) > _badness(worst):
            worst = each
    number = counts.total()
    return GroupLag(
        _rolled_up(counts),
        worst,
        {state: counts[state] for state in LagState},
        number,
        members,
        lag if number > unknown else None,
        unknown,
        allowed,
        all_lost,
        lost_in,
        most_lost,
        beyond_in,
        in_doubt,
    )


STATES: Mapping[LagState, State] = {
    LagState.OK: State.OK,
    LagState.WARN: State.WARNING,
    LagState.STALL: State.WARNING,
    LagState.STOP: State.WARNING,
    LagState.REWIND: State.WARNING,
    LagState.ERR: State.WARNING,
    LagState.UNKNOWN: State.UNKNOWN,
}
"""Colour and shape of a pill. Critical is kept for clusters that fail: a group that does not read is its owner's."""


def _known(looks: Sequence[Look]) -> int:
    return sum(look.committed is not None for look in looks)


# A partition that cannot be judged goes behind the healthy ones as long as there are any: the group is then what those
# tell, and how many are not known is said beside it.
_SEVERITY: Mapping[LagState, int] = {
    LagState.UNKNOWN: 0,
    LagState.OK: 1,
    LagState.WARN: 2,
    LagState.REWIND: 3,
    LagState.ERR: 3,
    LagState.STALL: 3,
    LagState.STOP: 3,
}


def _badness(each: PartitionLag) -> tuple[int, int]:
    lag = each.lag
    return _SEVERITY[each.state], -1 if lag is None else lag


def _rolled_up(counts: Mapping[LagState, int]) -> LagState:
    if any(number and state.failing for state, number in counts.items()):
        return LagState.ERR
    if counts[LagState.WARN]:
        return LagState.WARN
    return LagState.OK if counts[LagState.OK] else LagState.UNKNOWN
