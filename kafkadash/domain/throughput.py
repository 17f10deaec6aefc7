"""How fast a run went, for its chart: points that get coarser as it gets longer, and when the throttle was changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kafkadash.domain.run_memory import Lane
from kafkadash.domain.run_progress import Direction, RunNow

FORMAT = 1
STEP_S = 15.0
"""Between two points at first: a quota is met in the mean of so long only."""

MOST_POINTS = 240
MOST_LANES = 8
MOST_MARKS = 100


@dataclass(frozen=True, slots=True)
class Point:
    """The mean from the point before until ``at`` (seconds since the epoch), bytes per second: of all copies together,
    and of each lane of the history, None where it was not known.
    """

    at: float
    whole: float | None
    throttle: int
    lanes: tuple[float | None, ...]


@dataclass(frozen=True, slots=True)
class ThrottleMark:
    at: float
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class History:
    """``lanes``: the brokers and directions with most to do, and those that were binding; at most ``MOST_LANES``.

    ``step_s``: between two points now; it doubles when there are too many.
    """

    lanes: tuple[Lane, ...] = ()
    points: tuple[Point, ...] = ()
    marks: tuple[ThrottleMark, ...] = ()
    step_s: float = STEP_S

    def line(self, lane: Lane) -> tuple[float | None, ...]:
        """One value for each point. Raises ValueError for a lane that is not kept."""
        place = self.lanes.index(lane)
        return tuple(point.lanes[place] if place < len(point.lanes) else None for point in self.points)

    def as_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "step": self.step_s,
            "lanes": [[broker, way.value] for broker, way in self.lanes],
            "points": [[p.at, _whole(p.whole), p.throttle, [_whole(r) for r in p.lanes]] for p in self.points],
            "marks": [[m.at, m.before, m.after] for m in self.marks],
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> History | None:
        """None for a format that is not known here."""
        if stored.get("format") != FORMAT:
            return None
        return cls(
            tuple((broker, Direction(way)) for broker, way in stored["lanes"]),
            tuple(Point(at, whole, throttle, tuple(lanes)) for at, whole, throttle, lanes in stored["points"]),
            tuple(ThrottleMark(*mark) for mark in stored["marks"]),
            stored["step"],
        )


def sampled(history: History, run: RunNow, rates: Mapping[Lane, float | None], whole: float | None) -> History:
    """With a point for now, if it is time for one. ``rates`` are means of about the last quarter minute."""
    at = round(run.at.timestamp(), 1)
    lanes = _lanes(history, run)
    marks = history.marks
    throttle = run.throttle or 0
    before = history.points[-1].throttle if history.points else throttle
    if marks and history.points and marks[-1].at >= history.points[-1].at:
        before = marks[-1].after
    if before != throttle:
        marks = (*marks, ThrottleMark(at, before, throttle))[-MOST_MARKS:]
    points = history.points
    if not points or at - points[-1].at >= history.step_s - 0.5:
        points = (*points, Point(at, whole, throttle, tuple(rates.get(lane) for lane in lanes)))
    step = history.step_s
    if len(points) > MOST_POINTS:
        points, step = _halved(points), step * 2
    return History(lanes, points, marks, step)


def _lanes(history: History, run: RunNow) -> tuple[Lane, ...]:
    """Once chosen they stay; one that becomes the limit of the run later is taken up while there is room."""
    if not history.lanes:
        largest = sorted(run.brokers, key=lambda b: (-(b.total_bytes or 0), b.broker, b.direction))
        return tuple((b.broker, b.direction) for b in largest[: MOST_LANES - 2])
    if run.binding is None or run.binding in history.lanes or len(history.lanes) >= MOST_LANES:
        return history.lanes
    return (*history.lanes, run.binding)


def _halved(points: Sequence[Point]) -> tuple[Point, ...]:
    """Each two as one, the newest as it is."""
    pairs = [(points[n], points[n + 1]) for n in range(0, len(points) - 2, 2)]
    merged = [
        Point(
            second.at,
            _mean(first.whole, second.whole),
            second.throttle,
            tuple(_mean(a, b) for a, b in _padded(first.lanes, second.lanes)),
        )
        for first, second in pairs
    ]
    return (*merged, *points[2 * len(pairs) :])


def _padded(first: Sequence[float | None], second: Sequence[float | None]) -> list[tuple[float | None, float | None]]:
    return [(first[n] if n < len(first) else None, rate) for n, rate in enumerate(second)]


def _mean(first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return second if first is None else first
    return (first + second) / 2


def _whole(rate: float | None) -> int | None:
    return None if rate is None else round(rate)
