"""The throughput of a run as a chart with the throttle in force, its sentence and its table."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypedDict

from kafkadash.execution.models import Execution
from kafkadash.execution.pages.counts import freshness_of_figures
from kafkadash.execution.progress.figures import FlowDirection
from kafkadash.execution.progress.throughput import ThrottleMark, ThroughputHistory, ThroughputPoint
from kafkadash.execution.worker.measure import stored_samples
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.planning.options import MB, format_megabytes

MOST_LINES = 3
"""Brokers with a line of their own: those that sent or received most."""
TABLE_ROWS = 24
REFETCH_S = 10
LEAST_TOP_MB = 1.0
_AT_THROTTLE = 0.9
_WAYS = {FlowDirection.IN: "into", FlowDirection.OUT: "out of"}


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Throughput into or out of one broker, bytes per second at each point; None where it is not known."""

    broker: int
    way: FlowDirection
    values: Sequence[float | None]

    @property
    def label(self) -> str:
        return f"{_WAYS[self.way]} broker {self.broker}"

    @property
    def sum(self) -> float:
        return sum(value or 0.0 for value in self.values)


@dataclass(frozen=True, slots=True)
class ThroughputTableRow:
    """Row of the table for one point; ``values`` in the order of the lines."""

    at: datetime
    values: Sequence[float | None]
    throttle: int
    note: str


class RunChartContext(TypedDict):
    number: int
    now: datetime
    sampled_at: datetime | None
    freshness: FactFreshness
    ended: bool
    refetch_s: int
    lines: list[ChartLine]
    summary: str
    chart: str
    rows: list[ThroughputTableRow]


def chart_context(execution: Execution, now: datetime) -> RunChartContext:
    """The panel: chart, sentence, table. One query where the run was read without its samples."""
    history = stored_samples(execution) or ThroughputHistory()
    points, lines = history.points, _select_lines(history)
    return {
        "number": execution.request_id,
        "now": now,
        "sampled_at": _to_datetime(points[-1].at) if points else None,
        "freshness": freshness_of_figures(execution, now),
        "ended": execution.ended_at is not None,
        "refetch_s": REFETCH_S,
        "lines": lines,
        "summary": _describe_chart(points, lines, ended=execution.ended_at is not None),
        "chart": json.dumps(_chart(history, lines), separators=(",", ":")) if len(points) > 1 else "",
        "rows": _table(history, lines),
    }


def _select_lines(history: ThroughputHistory) -> list[ChartLine]:
    """Return the lines with the most throughput, the largest first; of equal ones, inbound before outbound."""
    lines = [ChartLine(broker, way, history.line((broker, way))) for broker, way in history.lanes]
    return sorted(
        (line for line in lines if line.sum), key=lambda line: (-line.sum, line.way is FlowDirection.OUT, line.broker)
    )[:MOST_LINES]


def _describe_chart(points: Sequence[ThroughputPoint], lines: Sequence[ChartLine], *, ended: bool) -> str:
    if not points:
        return "Nothing was measured." if ended else "Nothing was measured yet."
    last = points[-1]
    at = f"{_to_datetime(last.at):%H:%M:%S}"
    known = [(line.values[-1], line) for line in lines if line.values[-1] is not None]
    whole = "" if last.whole is None else f"; all copies together {last.whole / MB:,.1f} MB/s"
    if not known:
        return f"At {at} no broker's rate was known; the throttle was {format_megabytes(last.throttle)} MB/s{whole}."
    rate, line = max(known, key=lambda each: each[0] or 0.0)
    near = "at" if (rate or 0.0) >= _AT_THROTTLE * last.throttle else "below"
    throttle = f"{near} its throttle of {format_megabytes(last.throttle)}"
    return f"{(rate or 0.0) / MB:,.1f} MB/s {line.label} at {at}, {throttle}{whole}."


def _chart(history: ThroughputHistory, lines: Sequence[ChartLine]) -> dict[str, Any]:
    """Return the chart's data as ``static/js/charts.js`` reads it."""
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


def _table(history: ThroughputHistory, lines: Sequence[ChartLine]) -> list[ThroughputTableRow]:
    """Evenly chosen points, the newest first; a change of the throttle stands at the first one after it."""
    points = history.points
    step = max(1, math.ceil(len(points) / TABLE_ROWS))
    rows, before = [], -math.inf
    for place, point in enumerate(points):
        if (len(points) - 1 - place) % step:
            continue
        notes = [_mark_words(mark) for mark in history.marks if before < mark.at <= point.at]
        values = [line.values[place] for line in lines]
        rows.append(ThroughputTableRow(_to_datetime(point.at), values, point.throttle, ", ".join(notes)))
        before = point.at
    return rows[::-1]


def _mark_words(mark: ThrottleMark) -> str:
    return f"{format_megabytes(mark.before)} → {format_megabytes(mark.after)}"


def _to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
