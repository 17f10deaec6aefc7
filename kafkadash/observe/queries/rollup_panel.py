"""A panel with the chart of a series: its lines in words, the chart, and the same as a table."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from kafkadash.domain import wording
from kafkadash.domain.wording import count
from kafkadash.observe.queries.rollups import Lines, Range

_TABLE_ROWS = 24


@dataclass(frozen=True, slots=True)
class Measure:
    """A unit. ``steps``: (from which top on, what the axis says, by what it is divided), the largest first.

    ``sentence`` names the unit, ``cell`` does so where the head of its column does not. ``least``: the lowest top of an
    axis.
    """

    steps: Sequence[tuple[float, str, float]]
    least: float
    sentence: Callable[[int], str]
    cell: Callable[[int], str]


def _plain(value: int) -> str:
    return f"{value:,}"


# The heading has the unit: beside the figures of the axis there is no room for "records".
RECORDS = Measure([(0, "", 1)], 10, lambda value: count(value, "record"), _plain)
REPLICAS = Measure([(0, "", 1)], 10, lambda value: count(value, "replica"), _plain)
BYTES = Measure(
    [(1e12, "TB", 1e12), (1e9, "GB", 1e9), (1e6, "MB", 1e6), (1e3, "kB", 1e3), (0, "B", 1)],
    10,
    wording.size,
    wording.size,
)
MILLISECONDS = Measure([(20_000, "s", 1000), (0, "ms", 1)], 100, lambda value: f"{value:,} ms", _plain)


@dataclass(frozen=True, slots=True)
class Line:
    """``column`` of the lines that were read; ``ink`` as ``static/js/charts.js`` has it."""

    column: str
    label: str
    ink: int
    width: float = 1


PERCENTILES = (Line("p50", "p50", 3), Line("p95", "p95", 1, 1.5), Line("most", "largest", 2))


@dataclass(frozen=True, slots=True)
class Shown:
    """What a panel is about. ``leads``: the column that the summary speaks of, which it calls ``subject``.

    ``of``: a sentence that says of what a value is. ``events``: a column that counts what is marked in the
    chart, and what one of them is called. ``empty``: why there may be nothing, or ''.
    """

    key: str
    title: str
    measure: Measure
    lines: Sequence[Line]
    leads: str
    subject: str
    of: str
    events: tuple[str, str] | None = None
    empty: str = ""

    @property
    def columns(self) -> list[str]:
        return [line.column for line in self.lines]


@dataclass(frozen=True, slots=True)
class TableRow:
    """The largest of some buckets, in the order of the lines; '' where nothing is known. ``events``: in those known."""

    at: datetime
    values: Sequence[str]
    events: int | None


@dataclass(frozen=True, slots=True)
class Panel:
    """As ``observe/_history_panel.html`` shows it. ``table_step``: buckets of a row."""

    shown: Shown
    known: bool
    summary: str
    chart: str
    table_step: int
    rows: Sequence[TableRow]


def panel(shown: Shown, lines: Lines, chosen: Range) -> Panel:
    size = max(1, math.ceil(lines.buckets / _TABLE_ROWS))
    known = any(value is not None for name in shown.columns for value in lines.values[name])
    chart = json.dumps(_chart(shown, lines), separators=(",", ":"))
    return Panel(shown, known, _summary(shown, lines, chosen), chart, size, _table(shown, lines, size))


def _summary(shown: Shown, lines: Lines, chosen: Range) -> str:
    known = [(value, bucket) for bucket, value in enumerate(lines.values[shown.leads]) if value is not None]
    if not known:
        return f"Nothing is known of the last {chosen.words}."
    worst, bucket = max(known)
    newest, last = known[-1]
    said = f"{shown.subject} was at most {shown.measure.sentence(round(worst))}, at {_clock(lines.at(bucket), chosen)}"
    if bucket == last:
        said += ", the last that is known."
    else:
        said += f"; last known {shown.measure.cell(round(newest))}, at {_clock(lines.at(last), chosen)}."
    missing = lines.buckets - len(known)
    gaps = f" Nothing is known of {missing:,} of {lines.buckets:,} {chosen.bucket}s." if missing else ""
    return f"{said}{gaps}"


def _clock(at: datetime, chosen: Range) -> str:
    if chosen.bucket == "day":
        return at.strftime("%-d %b")
    return at.strftime("%H:%M" if chosen.length <= timedelta(days=1) else "%-d %b %H:%M")


def _chart(shown: Shown, lines: Lines) -> dict[str, Any]:
    """As ``static/js/charts.js`` reads it."""
    largest = max((value for name in shown.columns for value in lines.values[name] if value is not None), default=0)
    top = max(shown.measure.least, largest * 1.12)
    _, unit, by = next(step for step in shown.measure.steps if top >= step[0])
    return {
        "x": [lines.at(bucket).timestamp() for bucket in range(lines.buckets)],
        "range": [lines.begin.timestamp(), lines.at(lines.buckets).timestamp()],
        "unit": unit,
        "min": 0,
        "max": round(top / by, 3),
        "series": [
            {
                "label": line.label,
                "ink": line.ink,
                "width": line.width,
                "y": [
                    value if value is None or by == 1 else round(value / by, 3) for value in lines.values[line.column]
                ],
            }
            for line in shown.lines
        ],
        "marks": [
            {"x": lines.at(bucket).timestamp(), "label": count(number, shown.events[1])}
            for bucket, number in enumerate(_events(shown, lines))
            if number and shown.events
        ],
    }


def _scaled(value: float | None, by: float) -> float | None:
    return value if value is None or by == 1 else round(value / by, 3)


def _events(shown: Shown, lines: Lines) -> list[int | None]:
    """One number per bucket."""
    if not shown.events:
        return []
    return [None if number is None else round(number) for number in lines.values[shown.events[0]]]


def _table(shown: Shown, lines: Lines, size: int) -> list[TableRow]:
    rows, events = [], _events(shown, lines)
    for start in range(0, lines.buckets, size):
        part = slice(start, start + size)
        some = [
            max((value for value in lines.values[name][part] if value is not None), default=None)
            for name in shown.columns
        ]
        words = ["" if value is None else shown.measure.cell(round(value)) for value in some]
        counted = [number for number in events[part] if number is not None]
        rows.append(TableRow(lines.at(start), words, sum(counted) if counted else None))
    return rows[::-1]
