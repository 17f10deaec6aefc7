"""The lag of a group over the last hours: runs of equal figures laid into intervals, in lines, bands and words."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kafkadash.domain.lag import LagState
from kafkadash.domain.lag_group import STATES
from kafkadash.domain.lag_words import WORDS
from kafkadash.domain.wording import count, duration, listed_shortly

T = TypeVar("T", int, float)
_CALM = (LagState.OK, LagState.UNKNOWN)
# A state that is worse than another when both were seen in one interval.
_WORSE = (LagState.OK, LagState.UNKNOWN, LagState.WARN, LagState.REWIND, LagState.ERR, LagState.STALL, LagState.STOP)


@dataclass(frozen=True, slots=True)
class Run:
    """Figures that held from ``since`` to ``until`` (seconds since the epoch). Lag in records, time lag in seconds.

    ``worst_lag`` is that of the partition with most, ``rest_lag`` of all others together; None where not known.
    """

    since: float
    until: float
    worst: LagState
    worst_lag: int | None
    rest_lag: int | None
    time_lag_s: float | None
    rest_time_lag_s: float | None


@dataclass(frozen=True, slots=True)
class Band:
    """A stretch in which the group was in one state that is not well; seconds since the epoch."""

    start: int
    end: int
    state: LagState
    open: bool

    @property
    def tone(self) -> str:
        return STATES[self.state].value


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """``step_s`` seconds an interval, the first begins at ``start``. Lines have a value for each, None is a gap."""

    start: int
    step_s: int
    worst: Sequence[int | None]
    rest: Sequence[int | None]
    time: Sequence[float | None]
    rest_time: Sequence[float | None]
    bands: Sequence[Band]

    @property
    def end(self) -> int:
        return self.at(len(self.worst))

    def at(self, interval: int) -> int:
        return self.start + interval * self.step_s

    @property
    def known(self) -> bool:
        return any(value is not None for value in self.worst)


def group_history(runs: Iterable[Run], now: float, length_s: int, step_s: int) -> GroupHistory:
    """The greatest of each interval; an interval in which nobody looked is a gap."""
    last = math.floor(now / step_s)
    first = last + 1 - math.ceil(length_s / step_s)
    number = last + 1 - first
    worst: list[int | None] = [None] * number
    rest: list[int | None] = [None] * number
    time: list[float | None] = [None] * number
    rest_time: list[float | None] = [None] * number
    states: list[LagState | None] = [None] * number
    for run in runs:
        begin, end = math.floor(run.since / step_s), min(last, math.floor(run.until / step_s))
        for at in range(max(0, begin - first), end - first + 1):
            worst[at] = _greater(worst[at], run.worst_lag)
            rest[at] = _greater(rest[at], run.rest_lag)
            time[at] = _greater(time[at], run.time_lag_s)
            rest_time[at] = _greater(rest_time[at], run.rest_time_lag_s)
            seen = states[at]
            states[at] = run.worst if seen is None else max(seen, run.worst, key=_WORSE.index)
    if number > 1 and states[-1] is None:  # it has only begun
        for column in (worst, rest, time, rest_time, states):
            column.pop()
    start = first * step_s
    return GroupHistory(start, step_s, worst, rest, time, rest_time, _bands(states, start, step_s))


def _greater(one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _bands(states: Sequence[LagState | None], start: int, step_s: int) -> list[Band]:
    found: list[Band] = []
    for at, state in enumerate(states):
        if state is None or state in _CALM:
            continue
        begin, end = start + at * step_s, start + (at + 1) * step_s
        is_open = at == len(states) - 1
        if found and found[-1].end == begin and found[-1].state is state:
            found[-1] = Band(found[-1].start, end, state, is_open)
        else:
            found.append(Band(begin, end, state, is_open))
    return found


def lag_summary(seen: GroupHistory, clock: Callable[[int], str]) -> str:
    """One line about the lag; ``clock`` says a time in seconds as words."""
    sums = [None if a is None else a + (b or 0) for a, b in zip(seen.worst, seen.rest, strict=True)]
    known = [value for value in sums if value is not None]
    if not known:
        return "No lag is known of this time."
    top = max(known)
    if not top:
        return f"Nothing waited at any look.{_gaps(seen)}"
    if known[-1] == top:
        most = f"{count(top, 'record')} {'waits' if top == 1 else 'wait'}, the most of this time."
    else:
        at = clock(seen.at(sums.index(top)))
        most = f"Up to {count(top, 'record')} waited, at {at}; {known[-1]:,} at the last look."
    return f"{most}{_bands_words(seen, clock)}{_gaps(seen)}"


def time_summary(seen: GroupHistory, clock: Callable[[int], str]) -> str:
    known = [value for value in seen.time if value is not None]
    if not known:
        return "No time lag is known of this time."
    top = max(known)
    at = clock(seen.at(seen.time.index(top)))
    longest = f"Up to {duration(top)}, at {at}. " if top >= 1 else "Below 1 s throughout. "
    return f"{longest}How long the next record has waited, estimated from log ends."


def _bands_words(seen: GroupHistory, clock: Callable[[int], str]) -> str:
    if not seen.bands:
        return ""
    words = [
        f"{WORDS[band.state].lower()} {'since' if band.open else 'from'} {clock(band.start)}"
        f"{'' if band.open else f' to {clock(band.end)}'}"
        for band in reversed(seen.bands)
    ]
    text = listed_shortly(words)
    return f" {text[:1].upper()}{text[1:]}."


def _gaps(seen: GroupHistory) -> str:
    first = next((n for n, value in enumerate(seen.worst) if value is not None), 0)
    missing = sum(value is None for value in seen.worst[first:])
    return f" In {missing} of {len(seen.worst) - first} intervals nothing is known." if missing else ""
