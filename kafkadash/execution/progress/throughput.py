"""How fast a run went, for its chart: points that get coarser as it gets longer, and when the throttle was changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.execution.progress.copies import Lane
from kafkadash.execution.progress.figures import RunNow

STEP_S = 2.0
"""Between two points at first. Rates are means of the last quarter minute, as a quota is met in the mean only."""

MOST_POINTS = 240
MOST_LANES = 8
MOST_MARKS = 100


@dataclass(frozen=True, slots=True)
class ThroughputPoint:
    """Rates at ``at`` (seconds since the epoch), bytes per second: of all copies together, and of each lane of the
    history, None where it was not known. ``percent``: of the whole run.
    """

    at: float
    whole: float | None
    throttle: int
    lanes: tuple[float | None, ...]
    percent: float | None = None


@dataclass(frozen=True, slots=True)
class ThrottleMark:
    at: float
    before: int
    after: int


@dataclass(frozen=True, slots=True)
class ThroughputHistory:
    """``lanes``: the brokers and directions with most to do, and those that were binding; at most ``MOST_LANES``.

    ``step_s``: between two points now; it doubles when there are too many.
    """

    lanes: tuple[Lane, ...] = ()
    points: tuple[ThroughputPoint, ...] = ()
    marks: tuple[ThrottleMark, ...] = ()
    step_s: float = STEP_S

    def line(self, lane: Lane) -> tuple[float | None, ...]:
        """Return a value for each point, or None. Raises ValueError for a lane that is not kept."""
        place = self.lanes.index(lane)
        return tuple(point.lanes[place] if place < len(point.lanes) else None for point in self.points)


def add_sample(
    history: ThroughputHistory, run: RunNow, rates: Mapping[Lane, float | None], whole: float | None
) -> ThroughputHistory:
    """With a point for now, if it is time for one. ``rates`` are means of about the last quarter minute."""
    at = round(run.at.timestamp(), 1)
    lanes = _choose_lanes(history, run)
    marks = history.marks
    throttle = run.throttle or 0
    before = history.points[-1].throttle if history.points else throttle
    if marks and history.points and marks[-1].at >= history.points[-1].at:
        before = marks[-1].after
    if before != throttle:
        marks = (*marks, ThrottleMark(at, before, throttle))[-MOST_MARKS:]
    points = history.points
    if not points or at - points[-1].at >= history.step_s - 0.5:
        points = (*points, ThroughputPoint(at, whole, throttle, tuple(rates.get(lane) for lane in lanes), run.percent))
    step = history.step_s
    if len(points) > MOST_POINTS:
        points, step = _halve_points(points), step * 2
    return ThroughputHistory(lanes, points, marks, step)


def _choose_lanes(history: ThroughputHistory, run: RunNow) -> tuple[Lane, ...]:
    """Once chosen they stay; one that becomes the limit of the run later is taken up while there is room."""
    if not history.lanes:
        largest = sorted(run.brokers, key=lambda b: (-(b.total_bytes or 0), b.broker, b.direction))
        return tuple((b.broker, b.direction) for b in largest[: MOST_LANES - 2])
    if run.binding is None or run.binding in history.lanes or len(history.lanes) >= MOST_LANES:
        return history.lanes
    return (*history.lanes, run.binding)


def _halve_points(points: Sequence[ThroughputPoint]) -> tuple[ThroughputPoint, ...]:
    """Each two as one, the newest as it is."""
    pairs = [(points[n], points[n + 1]) for n in range(0, len(points) - 2, 2)]
    merged = [
        ThroughputPoint(
            second.at,
            _mean(first.whole, second.whole),
            second.throttle,
            tuple(_mean(a, b) for a, b in _pad_values(first.lanes, second.lanes)),
            second.percent,
        )
        for first, second in pairs
    ]
    return (*merged, *points[2 * len(pairs) :])


def _pad_values(
    first: Sequence[float | None], second: Sequence[float | None]
) -> list[tuple[float | None, float | None]]:
    return [(first[n] if n < len(first) else None, rate) for n, rate in enumerate(second)]


def _mean(first: float | None, second: float | None) -> float | None:
    if first is None or second is None:
        return second if first is None else first
    return (first + second) / 2
