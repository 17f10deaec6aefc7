"""Rules of consumer lag: the state of each partition from a window of samples, and of a group from its partitions.

The rules are those of Burrow's evaluator (github.com/linkedin/Burrow, core/internal/evaluator/caching.go), with two
additions: fewer samples than the minimum judge nothing, and a form for windows without commit times. OffsetFetch
returns no commit time, so a polled window only knows whether the offset moved: whether the group has members then
distinguishes a stalled consumer from a stopped one. ``pipeline.jobs.figures`` holds the same rules as columns; both
must agree on ``tests/monitoring/lag_cases.py``.

The collector judges each partition once per refresh (``partition_lag``) and the group from them (``group_lag``);
``monitoring.groups.wording`` has the texts for pages and findings.

Time lag is how long the next record that a group will read has been waiting, as in kafka-lag-exporter's lookup table:
it is read off a line through (time, log end) points, all on our own clock. Record timestamps, which producers set, and
brokers' clocks are not used. ``compute_trend`` gives rates of reading and writing over a window, and the time until no
lag is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

from kafkadash.core.status import HealthState

WINDOW = 10
"""Samples of a window; as long as fewer are known, nothing is judged."""


class LagState(StrEnum):
    """State of a partition's lag; a whole group has only OK, WARN, ERR and UNKNOWN.

    A partition is ERR if its offset does not move and the group's members are unknown: it is certain that nothing is
    read, and uncertain only whether this is a stall or a stop. UNKNOWN would hide the certain part.
    """

    OK = "ok"
    WARN = "warn"
    """The lag never got smaller over the window."""
    STALL = "stall"
    """The offset stands still although somebody should be reading."""
    STOP = "stop"
    """Nobody commits any more."""
    REWIND = "rewind"
    """The offset went back and has not come up to where it was."""
    ERR = "err"
    UNKNOWN = "unknown"

    @property
    def failing(self) -> bool:
        """Return whether records wait and no member is known to read them. One such partition makes the group ERR."""
        return self in _FAILING


_FAILING = frozenset({LagState.STALL, LagState.STOP, LagState.REWIND, LagState.ERR})


class WindowCondition(StrEnum):
    """Condition of a partition's window of samples; a polled window is one without commit times."""

    FEW_SAMPLES = "few_samples"
    """The current lag is unknown, or fewer commits are known than a window needs."""
    LAG_ALLOWED = "lag_allowed"
    SILENT = "silent"
    """With commit times: the last commit is longer ago than the window lasts, and the end was never reached."""
    SET_BACK = "set_back"
    """The newest commit lies below the highest; a later commit that reaches the highest forgives that."""
    CAUGHT_UP = "caught_up"
    """Some sample's lag was allowed."""
    STILL_TIMED = "still_timed"
    """All commits are the same, with commit times: somebody goes on committing."""
    STILL_AT_END = "still_at_end"
    """All commits are the same, and the log ended there once: a lag of zero, even where a sample's lag is unknown."""
    STILL_MEMBERS_UNKNOWN = "still_members_unknown"
    STILL_WITH_MEMBERS = "still_with_members"
    STILL = "still"
    FEW_LAGS = "few_lags"
    """Fewer than two lags are known."""
    NEVER_FELL = "never_fell"


LAG_RULE: tuple[tuple[WindowCondition, LagState], ...] = (
    (WindowCondition.FEW_SAMPLES, LagState.UNKNOWN),
    (WindowCondition.LAG_ALLOWED, LagState.OK),
    (WindowCondition.SILENT, LagState.STOP),
    (WindowCondition.SET_BACK, LagState.REWIND),
    (WindowCondition.CAUGHT_UP, LagState.OK),
    (WindowCondition.STILL_TIMED, LagState.STALL),
    (WindowCondition.STILL_AT_END, LagState.OK),
    (WindowCondition.STILL_MEMBERS_UNKNOWN, LagState.ERR),
    (WindowCondition.STILL_WITH_MEMBERS, LagState.STALL),
    (WindowCondition.STILL, LagState.STOP),
    (WindowCondition.FEW_LAGS, LagState.UNKNOWN),
    (WindowCondition.NEVER_FELL, LagState.WARN),
)
"""The first condition that holds gives the state; OK where none holds. Collectors apply it to samples, the pipeline to
figures of windows as columns (``pipeline.jobs.figures``).
"""


class LagSample(NamedTuple):
    """Sample of a partition. ``committed`` is an offset, ``lag`` is in records; each is None if unknown or missing.

    ``commit_at`` in seconds, on the clock that ``now`` is read from; None where only the offset is known.
    """

    committed: int | None
    lag: int | None
    commit_at: float | None = None


def judge_partition(
    samples: Sequence[LagSample],
    *,
    lag: int | None,
    ends: Sequence[int],
    now: float,
    has_members: bool | None,
    allowed: int = 0,
    minimum: int = WINDOW,
) -> LagState:
    """The state of one partition. ``samples`` oldest first; ``lag`` is the current one and ``allowed`` tolerable.

    ``ends`` are the log end offsets seen, newest first (of a polled window: those of its samples). A window has commit
    times if every known commit in it has one; otherwise it is a polled one, and ``now`` is not looked at.
    ``has_members`` None: nobody could say. Only samples with a known commit count towards ``minimum``.
    """
    commits = [sample.committed for sample in samples if sample.committed is not None]
    if early := judge_without_samples(len(commits), lag, allowed, minimum):
        return early
    times = [s.commit_at for s in samples if s.committed is not None and s.commit_at is not None]
    lags = [sample.lag for sample in samples if sample.lag is not None]
    window = _SampledWindow(commits, times, lags, ends, now, has_members, allowed)
    for holds, state in _SAMPLED_RULE:
        if holds(window):
            return state
    return LagState.OK


class _SampledWindow:
    """Known figures of a window, oldest first; ``ends`` newest first."""

    __slots__ = ("allowed", "commits", "lags", "last", "members", "silent", "still", "timed", "was_at_end")

    def __init__(
        self,
        commits: list[int],
        times: list[float],
        lags: list[int],
        ends: Sequence[int],
        now: float,
        members: bool | None,
        allowed: int,
    ) -> None:
        self.commits, self.lags, self.members, self.allowed = commits, lags, members, allowed
        self.last = last = commits[-1]
        self.timed = len(times) == len(commits)
        self.still = commits.count(last) == len(commits)
        self.was_at_end = bool(ends) and min(ends) <= last
        self.silent = self.timed and now - times[-1] > times[-1] - times[0]


_HOLDS: Mapping[WindowCondition, Callable[[_SampledWindow], bool | None]] = {
    WindowCondition.SILENT: lambda w: w.silent and not w.was_at_end,
    WindowCondition.SET_BACK: lambda w: w.last < max(w.commits),
    WindowCondition.CAUGHT_UP: lambda w: bool(w.lags) and min(w.lags) <= w.allowed,
    WindowCondition.STILL_TIMED: lambda w: w.still and w.timed,
    WindowCondition.STILL_AT_END: lambda w: w.still and w.was_at_end,
    WindowCondition.STILL_MEMBERS_UNKNOWN: lambda w: w.still and w.members is None,
    WindowCondition.STILL_WITH_MEMBERS: lambda w: w.still and w.members,
    WindowCondition.STILL: lambda w: w.still,
    WindowCondition.FEW_LAGS: lambda w: len(w.lags) < 2,
    WindowCondition.NEVER_FELL: lambda w: all(before <= after for before, after in pairwise(w.lags)),
}
# FEW_SAMPLES and LAG_ALLOWED need no samples.
_SAMPLED_RULE = tuple((_HOLDS[condition], state) for condition, state in LAG_RULE if condition in _HOLDS)


def judge_without_samples(known: int, lag: int | None, allowed: int, minimum: int = WINDOW) -> LagState | None:
    """Return the state if it does not depend on the samples, of which ``known`` have a commit; else None.

    Most partitions need no samples, so a collector with 200,000 partitions calls this function first.
    """
    if lag is None or known < max(1, minimum):
        return _STATES[WindowCondition.FEW_SAMPLES]
    return _STATES[WindowCondition.LAG_ALLOWED] if lag <= allowed else None


_STATES = dict(LAG_RULE)


class OffsetSample(NamedTuple):
    """``at`` in seconds since the epoch, when commits began to be read, on our clock; brokers' clocks are never used.
    The log end is read after them: at once as a rule, later by as much as a coordinator is silent (``Committed``).

    ``committed`` is an offset, None where there is no commit; ``end`` the log end offset, None where no leader told.
    """

    at: float
    committed: int | None
    end: int | None


def lag_of(committed: int | None, end: int | None) -> int | None:
    """Records between the commit and the log end, as kafka-consumer-groups counts them; never negative.

    None where either is not known, and for a commit beyond the log end (the topic was truncated, or deleted and made
    anew): at its next fetch the consumer is told OFFSET_OUT_OF_RANGE and starts at the oldest or at the newest record,
    by its own ``auto.offset.reset``, so how much it has left to read is not known. It is neither 0 nor negative.
    """
    if committed is None or end is None or committed > end:
        return None
    return end - committed


def count_records_beyond(committed: int | None, end: int | None) -> int:
    """By how many records a commit lies beyond the log end; 0 where it does not."""
    return 0 if committed is None or end is None else max(0, committed - end)


def count_lost_records(committed: int | None, start: int | None) -> int | None:
    """Records that were deleted before they were committed: those from the commit to the log start.

    An upper bound, as offsets of a compacted or transactional topic are not all records. None where not known.
    """
    return None if committed is None or start is None else max(0, start - committed)


def samples_of(looks: Sequence[OffsetSample]) -> list[LagSample]:
    """A window without commit times, as ``lag.judge`` takes it."""
    return [LagSample(sample.committed, lag_of(sample.committed, sample.end)) for sample in looks]


def ends_of(looks: Sequence[OffsetSample]) -> list[int]:
    """The log ends of a window, newest first, as ``lag.judge`` takes them."""
    return [sample.end for sample in reversed(looks) if sample.end is not None]


class EndPoint(NamedTuple):
    """``at`` in seconds, ``end`` the log end offset that was read then."""

    at: float
    end: int


class LagBasis(StrEnum):
    MEASURED = "measured"
    """The log end passed the commit between two looks."""
    ESTIMATED = "estimated"
    """The log end passed the commit before the first look; computed with the rate between first and last look."""
    AT_LEAST = "at least"
    """The log end passed the commit before the first look, and nothing was written since: older than all looks."""


class TimeLag(NamedTuple):
    """In seconds, as of the newest point."""

    seconds: float
    how: LagBasis = LagBasis.MEASURED


def time_lag(committed: int | None, points: Sequence[EndPoint]) -> TimeLag | None:
    """``points`` oldest first, ends in any order (those before a fall are of another log and are left out).

    None where it is not known: no commit, a commit beyond the log end, or fewer than two points.
    """
    if committed is None or len(points) < 2:
        return None
    if committed == points[-1].end >= points[-2].end and points[-1].at > points[-2].at:
        return TimeLag(0.0)  # as below, and true of most
    line = compress_points(points)
    if len(line) < 2 or committed > line[-1].end:
        return None
    first, last = line[0], line[-1]
    if committed == last.end:
        return TimeLag(0.0)
    if committed < first.end:
        return _estimate_before(committed, first, last)
    # The commit's record was written when the end left this offset: after the last point at which it was not there.
    place = max(n for n, point in enumerate(line) if point.end <= committed)
    below, above = line[place], line[place + 1]
    share = (committed - below.end) / (above.end - below.end)
    return TimeLag(max(0.0, last.at - (below.at + share * (above.at - below.at))))


def compress_points(points: Iterable[EndPoint]) -> list[EndPoint]:
    """Without points in the middle of a stretch of equal ends, and without those before the end or the clock fell."""
    line: list[EndPoint] = []
    for point in points:
        if line and (point.end < line[-1].end or point.at < line[-1].at):
            line.clear()
        if line and point.at == line[-1].at:
            line.pop()
        if len(line) > 1 and line[-2].end == line[-1].end == point.end:
            line.pop()
        line.append(point)
    return line


def _estimate_before(committed: int, first: EndPoint, last: EndPoint) -> TimeLag:
    seen = last.at - first.at
    written = last.end - first.end
    if not written:
        return TimeLag(seen, LagBasis.AT_LEAST)
    return TimeLag(seen + (first.end - committed) * seen / written, LagBasis.ESTIMATED)


class LagDrain(StrEnum):
    EMPTY = "empty"
    """Nothing waits."""
    KEEPS_UP = "keeps up"
    """Fewer records wait than are read between two looks: they are on their way, whichever way the lag goes."""
    DRAINS = "drains"
    NEVER = "never"
    """Read no faster than written."""
    UNKNOWN = "unknown"


class LagTrend(NamedTuple):
    """Records per second over the window, None where not known: ``read`` (offsets committed) and ``written``.

    ``drain_s`` in seconds, only with ``LagDrain.DRAINS``; an estimate, as if both rates stayed as they are.
    """

    read: float | None
    written: float | None
    drain: LagDrain
    drain_s: float | None = None

    @property
    def net(self) -> float | None:
        """By how many records a second the lag shrinks; negative where it grows."""
        return None if self.read is None or self.written is None else self.read - self.written


def compute_trend(looks: Sequence[OffsetSample], lag: int | None) -> LagTrend:
    """``looks`` oldest first; ``lag`` is the current one. An offset that was set back begins its rate anew."""
    read = _compute_rate((sample.at, sample.committed) for sample in looks)
    written = _compute_rate((sample.at, sample.end) for sample in looks)
    if lag is None:
        return LagTrend(read, written, LagDrain.UNKNOWN)
    if lag == 0:
        return LagTrend(read, written, LagDrain.EMPTY)
    if read is None or written is None:
        return LagTrend(read, written, LagDrain.UNKNOWN)
    if lag <= read * _mean_interval(looks):
        return LagTrend(read, written, LagDrain.KEEPS_UP)
    if read <= written:
        return LagTrend(read, written, LagDrain.NEVER)
    return LagTrend(read, written, LagDrain.DRAINS, lag / (read - written))


def _compute_rate(values: Iterable[tuple[float, int | None]]) -> float | None:
    """Between the first and the last known value since one fell, or since the clock did; None for fewer than two."""
    first = last = None
    for at, value in values:
        if value is None:
            continue
        if first is None or last is None or value < last[1] or at <= last[0]:
            first = (at, value)
        last = (at, value)
    if first is None or last is None or last[0] <= first[0]:
        return None
    return (last[1] - first[1]) / (last[0] - first[0])


def _mean_interval(looks: Sequence[OffsetSample]) -> float:
    """Seconds between two looks, in the mean."""
    return max(0.0, looks[-1].at - looks[0].at) / (len(looks) - 1) if len(looks) > 1 else 0.0


class UnjudgedLag(StrEnum):
    """Why a partition cannot be judged; '' where it can."""

    JUDGED = ""
    NO_COMMIT = "no commit"
    BEYOND = "beyond the log end"
    NO_END = "log end not known"
    COLLECTING = "collecting"
    NO_TREND = "no trend"


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """Lag of one partition of a group at its newest sample.

    ``looks`` is the window, oldest first, at most ``WINDOW``. ``start`` is the log start offset, None where not known.
    ``moved_at`` in seconds: when the committed offset last changed, None if no change was seen; then ``seen_since``
    is the time of the first sample. ``member`` is the assigned member: '' if none is assigned, None where not known.
    """

    topic: str
    partition: int
    state: LagState
    looks: Sequence[OffsetSample]
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
        return count_lost_records(self.committed, self.start)

    @property
    def waiting(self) -> int | None:
        """Records that can still be read: the lag without what was deleted."""
        return None if self.lag is None else max(0, self.lag - (self.lost or 0))

    @property
    def beyond(self) -> int:
        """By how many records the commit lies beyond the log end; 0 where it does not."""
        return count_records_beyond(self.committed, self.end)

    @property
    def fallen(self) -> int:
        """By how many records the commit lies below the highest of the window."""
        commits = [sample.committed for sample in self.looks if sample.committed is not None]
        return max(commits) - commits[-1] if commits else 0

    @property
    def known(self) -> int:
        """Samples of the window that count: "collecting 4/10"."""
        return _count_known(self.looks)

    @property
    def unjudged(self) -> UnjudgedLag:
        if self.state is not LagState.UNKNOWN:
            return UnjudgedLag.JUDGED
        if self.committed is None:
            return UnjudgedLag.NO_COMMIT
        if self.end is None:
            return UnjudgedLag.NO_END
        if self.beyond:
            return UnjudgedLag.BEYOND
        return UnjudgedLag.COLLECTING if self.known < WINDOW else UnjudgedLag.NO_TREND

    @property
    def in_doubt(self) -> bool:
        """Not judged, and more waited than is allowed when its lag was last known in the window."""
        if self.state is not LagState.UNKNOWN:
            return False
        lags = (lag_of(sample.committed, sample.end) for sample in reversed(self.looks))
        last = next((lag for lag in lags if lag is not None), None)
        return last is not None and last > self.allowed

    @property
    def time_lag(self) -> TimeLag | None:
        if self.lag is None:
            return None
        return time_lag(
            self.committed, [EndPoint(sample.at, sample.end) for sample in self.looks if sample.end is not None]
        )

    @property
    def trend(self) -> LagTrend:
        return compute_trend(self.looks, self.lag)


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
        """State of the worst partition, shown on the group's badge. ERR means a stall, a stop or a rewind."""
        return self.worst.state if self.worst else LagState.UNKNOWN

    @property
    def failing(self) -> int:
        """Partitions that stall, stopped or were set back."""
        return sum(number for state, number in self.counts.items() if state.failing)


def partition_lag(
    topic: str,
    partition: int,
    looks: Sequence[OffsetSample],
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
    newest = window[-1] if window else OffsetSample(0.0, None, None)
    lag = lag_of(newest.committed, newest.end)
    state = judge_without_samples(_count_known(window), lag, allowed) or judge_partition(
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
        if worst is None or _severity_key(each) > _severity_key(worst):
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


STATES: Mapping[LagState, HealthState] = {
    LagState.OK: HealthState.OK,
    LagState.WARN: HealthState.WARNING,
    LagState.STALL: HealthState.WARNING,
    LagState.STOP: HealthState.WARNING,
    LagState.REWIND: HealthState.WARNING,
    LagState.ERR: HealthState.WARNING,
    LagState.UNKNOWN: HealthState.UNKNOWN,
}
"""Colour and shape of a pill. Critical is kept for clusters that fail: a group that does not read is its owner's."""


def _count_known(looks: Sequence[OffsetSample]) -> int:
    return sum(sample.committed is not None for sample in looks)


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


def _severity_key(each: PartitionLag) -> tuple[int, int]:
    lag = each.lag
    return _SEVERITY[each.state], -1 if lag is None else lag


def _rolled_up(counts: Mapping[LagState, int]) -> LagState:
    if any(number and state.failing for state, number in counts.items()):
        return LagState.ERR
    if counts[LagState.WARN]:
        return LagState.WARN
    return LagState.OK if counts[LagState.OK] else LagState.UNKNOWN
