"""What the samples of a group come to: each of its partitions judged, and all of them together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafkadash.domain.lag import WINDOW, LagState, Sample, judge
from kafkadash.observe.group_window import NOT_KNOWN, Window

WORST_FIRST = (
    LagState.STOP,
    LagState.STALL,
    LagState.ERR,
    LagState.REWIND,
    LagState.WARN,
    LagState.UNKNOWN,
    LagState.OK,
)
"""The order in which partitions of a group are looked at."""
_MOST = 2**63 - 1  # what a column takes: anybody may commit the greatest offset there is
_RANKS: Mapping[LagState, int] = {state: rank for rank, state in enumerate(WORST_FIRST)}


@dataclass(frozen=True, slots=True)
class PartitionLag:
    """One partition as a group reads it; offsets and lag in records, rates in records per second over the window.

    ``known``: how many of its samples have a commit. ``lost``: records that were deleted before they were read.
    """

    topic: str
    partition: int
    state: LagState
    committed: int | None
    start: int | None
    end: int | None
    lag: int | None
    known: int
    commits: Sequence[int]
    ends: Sequence[int]
    read_rate: float | None
    written_rate: float | None

    @property
    def rank(self) -> int:
        """The worst is 0."""
        return _RANKS[self.state]

    @property
    def lost(self) -> int | None:
        if self.committed is None or self.start is None:
            return None
        return max(0, self.start - self.committed)

    @property
    def name(self) -> str:
        return f"{self.topic}-{self.partition}"


def partition_lags(
    window: Window, times: Sequence[float], *, has_members: bool | None, allowed: int
) -> Iterable[PartitionLag]:
    """Every partition of the window, in its order. ``times`` of the samples, oldest first."""
    now = times[-1] if times else 0.0
    for (topic, number), start, commits, ends in window.by_partition():
        committed, end = _known(commits[-1]), _known(ends[-1])
        lag = None if committed is None or end is None else max(0, end - committed)
        known = sum(commit != NOT_KNOWN for commit in commits)
        yield PartitionLag(
            topic,
            number,
            _state(commits, ends, lag, known, now, has_members, allowed),
            committed,
            _known(start),
            end,
            lag,
            known,
            commits,
            ends,
            _rate(commits, times),
            _rate(ends, times),
        )


def _state(
    commits: Sequence[int],
    ends: Sequence[int],
    lag: int | None,
    known: int,
    now: float,
    has_members: bool | None,
    allowed: int,
) -> LagState:
    if lag is not None and lag <= allowed and known >= WINDOW:
        return LagState.OK  # as the rule begins, and true of most: no samples are built for it
    samples = [
        Sample(_known(commit), None if NOT_KNOWN in (commit, end) else max(0, end - commit))
        for commit, end in zip(commits, ends, strict=True)
    ]
    seen = [end for end in reversed(ends) if end != NOT_KNOWN]
    return judge(samples, lag=lag, ends=seen, now=now, has_members=has_members, allowed=allowed)


def _known(number: int) -> int | None:
    return None if number == NOT_KNOWN else number


def _rate(offsets: Sequence[int], times: Sequence[float]) -> float | None:
    """Per second between the first and the last known; None of fewer than two."""
    first = next((at for at, offset in enumerate(offsets) if offset != NOT_KNOWN), None)
    if first is None or offsets[-1] == NOT_KNOWN or times[-1] <= times[first]:
        return None
    return (offsets[-1] - offsets[first]) / (times[-1] - times[first])


@dataclass(frozen=True, slots=True)
class GroupLag:
    """All partitions of a group together. ``verdict`` and ``worst`` are None where there is no partition."""

    verdict: LagState | None
    worst: PartitionLag | None
    counts: Mapping[str, int]
    topics: Mapping[str, Sequence[int | str | None]]
    lag: int | None
    lag_unknown: int
    read_rate: float | None
    written_rate: float | None
    lost: int | None


def group_lag(partitions: Sequence[PartitionLag]) -> GroupLag:
    counts = Counter(partition.state for partition in partitions)
    lags = [partition.lag for partition in partitions if partition.lag is not None]
    losses = [lost for lost in (partition.lost for partition in partitions) if lost is not None]
    worst = min(partitions, key=lambda p: (p.rank, -(p.lag or 0)), default=None)
    return GroupLag(
        verdict=_verdict(counts),
        worst=worst,
        counts={state.value: counts[state] for state in WORST_FIRST if counts[state]},
        topics=_topics(partitions),
        lag=min(sum(lags), _MOST) if lags else None,
        lag_unknown=sum(p.lag is None and p.committed is not None for p in partitions),
        read_rate=_sum([p.read_rate for p in partitions]),
        written_rate=_sum([p.written_rate for p in partitions]),
        lost=min(sum(losses), _MOST) if losses else None,
    )


def _verdict(counts: Mapping[LagState, int]) -> LagState | None:
    if any(state.failing for state in counts):
        return LagState.ERR
    for state in (LagState.WARN, LagState.OK, LagState.UNKNOWN):
        if counts.get(state):
            return state
    return None


def _topics(partitions: Sequence[PartitionLag]) -> dict[str, Sequence[int | str | None]]:
    """topic → how many of its partitions, their lag or None, their worst state."""
    found: dict[str, tuple[int, int | None, int]] = {}
    for one in partitions:
        number, lag, rank = found.get(one.topic, (0, None, len(WORST_FIRST) - 1))
        if one.lag is not None:
            lag = (lag or 0) + one.lag
        found[one.topic] = (number + 1, lag, min(rank, one.rank))
    return {topic: [number, lag, WORST_FIRST[rank].value] for topic, (number, lag, rank) in found.items()}


def _sum(rates: Sequence[float | None]) -> float | None:
    known = [rate for rate in rates if rate is not None]
    return sum(known) if known else None
