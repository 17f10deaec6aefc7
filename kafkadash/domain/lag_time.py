"""Time lag: for how long the next record that a group will read has been waiting.

Read off a line through (time, log end) points, all of them on our own clock and as old as the look that brought them:
record timestamps, which producers set, and brokers' clocks play no part. The way of kafka-lag-exporter's lookup table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple


class EndPoint(NamedTuple):
    """``at`` in seconds, ``end`` the log end offset that was read then."""

    at: float
    end: int


class How(StrEnum):
    MEASURED = "measured"
    """The log end passed the commit between two looks."""
    ESTIMATED = "estimated"
    """It did before the first look; as if records were always written at the rate between first and last look."""
    AT_LEAST = "at least"
    """It did before the first look, and nothing was written since: older than all that was seen."""


class TimeLag(NamedTuple):
    """In seconds, as of the newest point."""

    seconds: float
    how: How = How.MEASURED


def time_lag(committed: int | None, points: Sequence[EndPoint]) -> TimeLag | None:
    """``points`` oldest first, ends in any order (those before a fall are of another log and are left out).

    None where it is not known: no commit, a commit beyond the log end, or fewer than two points.
    """
    if committed is None or len(points) < 2:
        return None
    if committed == points[-1].end >= points[-2].end and points[-1].at > points[-2].at:
        return TimeLag(0.0)  # as below, and true of most
    line = compressed(points)
    if len(line) < 2 or committed > line[-1].end:
        return None
    first, last = line[0], line[-1]
    if committed == last.end:
        return TimeLag(0.0)
    if committed < first.end:
        return _before(committed, first, last)
    # The commit's record was written when the end left this offset: after the last point at which it was not there.
    place = max(n for n, point in enumerate(line) if point.end <= committed)
    below, above = line[place], line[place + 1]
    share = (committed - below.end) / (above.end - below.end)
    return TimeLag(max(0.0, last.at - (below.at + share * (above.at - below.at))))


def compressed(points: Iterable[EndPoint]) -> list[EndPoint]:
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


def _before(committed: int, first: EndPoint, last: EndPoint) -> TimeLag:
    seen = last.at - first.at
    written = last.end - first.end
    if not written:
        return TimeLag(seen, How.AT_LEAST)
    return TimeLag(seen + (first.end - committed) * seen / written, How.ESTIMATED)
