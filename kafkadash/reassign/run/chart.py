"""The throughput of a run as a chart with the throttle in force, its sentence and its table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from kafkadash.domain.run_progress import Direction
from kafkadash.domain.throughput import History, Point, ThrottleMark
from kafkadash.reassign.models import Execution
from kafkadash.reassign.rates import MB, megabytes
from kafkadash.reassign.run.measure import stored_samples
from kafkadash.reassign.run.stored import freshness_of_figures

MOST_LINES = 3
"""Brokers with a line of their own: those that sent or received most."""
TABLE_ROWS = 24
REFETCH_S = 10
LEAST_TOP_MB = 1.0
_AT_THROTTLE = 0.9
_WAYS = {Direction.IN: "into", Direction.OUT: "out of"}


@dataclass(frozen=True, slots=True)
class Line:
    """What arrived at one broker, or what it sent, bytes per second at each point; None where nobody can tell."""

    broker: int
    way: Direction
    values: Sequence[float | None]

    @property
    def label(self) -> str:
        return f"{_WAYS[self.way]} broker {self.broker}"

    @property
    def sum(self) -> float:
        return sum(value or 0.0 for value in self.values)


@dataclass(frozen=True, slots=True)
class TableRow:
    """One point of the table; ``values`` in the order of the lines."""

    at: datetime
    values: Sequence[float | None]
    throttle: int
    note: str


def chart_context(execution: Execution, now: datetime) -> dict[str, Any]:
    """The panel: chart, sentence, table. One query where the run was read without its samples."""
    history = stored_samples(execution) or History()
    points, lines = history.points, _lines(history)
    return {
        "number": execution.request_id,
        "now": now,
        "sampled_at": _moment(points[-1].at) if points else None,
        "freshness": freshness_of_figures(execution, now),
        "ended": execution.ended_at is not None,
        "refetch_s": REFETCH_S,
        "lines": lines,
        "summary": _summary(points, lines, ended=execution.ended_at is not None),
        "chart": json.dumps(_chart(history, lines), separators=(",", ":")) if len(points) > 1 else "",
        "rows": _table(history, lines),
    }


def _lines(history: History) -> list[Line]:
    """Those through which most went, the largest first; what arrives before what is sent."""
    lines = [Line(broker, way, history.line((broker, way))) for broker, way in history.lanes]
    return sorted(
        (line for line in lines if line.sum), key=lambda line: (-line.sum, line.way is Direction.OUT, line.broker)
    )[:MOST_LINES]


def _summary(points: Sequence[Point], lines: Sequence[Line], *, ended: bool) -> str:
    if not points:
        return "Nothing was measured." if ended else "Nothing was measured yet."
    last = points[-1]
    at = f"{_moment(last.at):%H:%M:%S}"
    known = [(line.values[-1], line) for line in lines if line.values[-1] is not None]
    whole = "" if last.whole is None else f"; all copies together {last.whole / MB:,.1f} MB/s"
    if not known:
        return f"At {at} no broker's rate was known; the throttle was {megabytes(last.throttle)} MB/s{whole}."
    rate, line = max(known, key=lambda each: each[0] or 0.0)
    near = "at" if (rate or 0.0) >= _AT_THROTTLE * last.throttle else "below"
    throttle = f"{near} its throttle of {megabytes(last.throttle)}"
    return f"{(rate or 0.0) / MB:,.1f} MB/s {line.label} at {at}, {throttle}{whole}."


def _chart(history: History, lines: Sequence[Line]) -> dict[str, Any]:
    """As ``static/js/charts.js`` reads it."""
    points = history.points
    throttles = [point.throttle / MB for point in points]
    measured = [value / MB for line in lines for value in line.values if value is not None]
    highest = max([*measured, *throttles])
    return {
        "x": [round(point.at) for point in points],
        "range": [math.floor(points[0].at), math.ceil(points[-1].at)],
        "unit": "MB/s",
        "min": 0,
        "max": max(LEAST_TOP_MB, round(highest * 1.25, 1)),
        "series": [
            {"label": "throttle", "ink": "limit", "width": 1.25, "stepped": True, "dashed": True, "y": throttles},
            *(
                {
                    "label": line.label,
                    "ink": ink,
                    "width": 2 if ink == 1 else 1.5,
                    "y": [None if value is None else round(value / MB, 2) for value in line.values],
                }
                for ink, line in reversed(list(enumerate(lines, 1)))
            ),
        ],
        "marks": [{"x": round(mark.at), "label": _mark_words(mark)} for mark in history.marks],
    }


def _table(history: History, lines: Sequence[Line]) -> list[TableRow]:
    """Evenly chosen points, the newest first; a change of the throttle stands at the first one after it."""
    points = history.points
    step = max(1, math.ceil(len(points) / TABLE_ROWS))
    rows, before = [], -math.inf
    for place, point in enumerate(points):
        if (len(points) - 1 - place) % step:
            continue
        notes = [_mark_words(mark) for mark in history.marks if before < mark.at <= point.at]
        values = [line.values[place] for line in lines]
        rows.append(TableRow(_moment(point.at), values, point.throttle, ", ".join(notes)))
        before = point.at
    return rows[::-1]


def _mark_words(mark: ThrottleMark) -> str:
    return f"{megabytes(mark.before)} → {megabytes(mark.after)}"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
