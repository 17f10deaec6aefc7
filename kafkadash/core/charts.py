"""Charts as ``static/js/charts.js`` draws them and ``_chart.html`` shows them: lines over time, marks, bands, limits.

Times are seconds since the epoch. A value that is None is a gap. Legend and table come from the same lines.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

Ink = Literal[1, 2, 3, 4, 5, 6, "other", "context", "limit", "warning", "critical"]
TABLE_ROWS = 24
FEWEST_STEPS = 5
_LEAST_FILLED = 2  # a chart is filled by half at least


@dataclass(frozen=True, slots=True)
class ChartRange:
    """How far back a chart goes, and how long one of its intervals is; both in seconds. ``name`` is in addresses."""

    name: str
    words: str
    length_s: int
    step_s: int


def find_range(ranges: Sequence[ChartRange], name: str | None, default: int = 0) -> ChartRange:
    """Return the range of that name; the one at the place ``default`` for a name that is none."""
    return next((each for each in ranges if each.name == name), ranges[default])


@dataclass(frozen=True, slots=True)
class ChartLine:
    """Line of a chart. ``values`` are in the unit of the chart, one for each time."""

    label: str
    ink: Ink
    values: Sequence[float | None]
    width: float = 1.5
    stepped: bool = False
    dashed: bool = False

    def as_json(self) -> dict[str, Any]:
        line: dict[str, Any] = {"label": self.label, "ink": self.ink, "width": self.width, "y": list(self.values)}
        return line | ({"stepped": True} if self.stepped else {}) | ({"dashed": True} if self.dashed else {})


@dataclass(frozen=True, slots=True)
class ChartMark:
    """A vertical line at a time: a finding, a run, a change of the controller."""

    at: float
    label: str


@dataclass(frozen=True, slots=True)
class ChartBand:
    """A stretch of time with a state: critical, warning or unknown."""

    begin: float
    end: float
    state: str
    label: str


@dataclass(frozen=True, slots=True)
class ChartLimit:
    """A horizontal line, such as a threshold."""

    value: float
    label: str
    ink: Ink = "limit"


@dataclass(frozen=True, slots=True)
class ChartSpec:
    """A chart: ``times`` of the values, from ``begin`` to ``end``. ``top``: the lowest top of the axis."""

    times: Sequence[float]
    begin: float
    end: float
    lines: Sequence[ChartLine]
    unit: str = ""
    top: float = 1.0
    marks: Sequence[ChartMark] = ()
    bands: Sequence[ChartBand] = ()
    limits: Sequence[ChartLimit] = ()
    spark: bool = False

    @property
    def known(self) -> bool:
        return any(value is not None for line in self.lines for value in line.values)

    @property
    def highest(self) -> float:
        """Top of the axis: above all values and limits."""
        values = [value for line in self.lines for value in line.values if value is not None]
        return max(self.top, 1.12 * max([*values, *(limit.value for limit in self.limits)], default=0.0))

    @property
    def shown_from(self) -> float:
        """Begin of what is shown: where nothing is known of most of the time, about as long as something is."""
        columns = zip(*(line.values for line in self.lines), strict=True)
        known = (at for at, values in zip(self.times, columns, strict=True) if any(v is not None for v in values))
        first = next(known, None) if self.lines else None
        if first is None:
            return self.begin
        least = FEWEST_STEPS * (self.times[1] - self.times[0]) if len(self.times) > 1 else 0.0
        return max(self.begin, self.end - max(_LEAST_FILLED * (self.end - first), least))

    @property
    def data(self) -> str:
        """Return the JSON of the attribute ``data-chart``."""
        spec: dict[str, Any] = {
            "x": list(self.times),
            "range": [self.shown_from, self.end],
            "unit": self.unit,
            "min": 0,
            "max": round(self.highest, 3),
            "series": [line.as_json() for line in self.lines],
        }
        if self.spark:
            spec["spark"] = True
        if self.marks:
            spec["marks"] = [{"x": mark.at, "label": mark.label} for mark in self.marks]
        if self.bands:
            spec["bands"] = [{"from": b.begin, "to": b.end, "state": b.state, "label": b.label} for b in self.bands]
        if self.limits:
            spec["limits"] = [{"y": limit.value, "label": limit.label, "ink": limit.ink} for limit in self.limits]
        return json.dumps(spec, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class ChartTableRow:
    """The largest or smallest values from ``at`` on, in the order of the lines; '' where none is known.

    ``events``: its marks.
    """

    at: datetime
    values: Sequence[str]
    events: str = ""


@dataclass(frozen=True, slots=True)
class ChartPanel:
    """A chart with its text, its table and its own id, as ``_chart.html`` shows it.

    ``note`` names the source of the figures and what they leave out. ``empty``: what to show where nothing is known.
    ``picked``: which value of an interval ``rows`` have, the largest or the smallest.
    """

    key: str
    title: str
    summary: str
    spec: ChartSpec
    rows: Sequence[ChartTableRow] = field(default_factory=list)
    note: str = ""
    empty: str = ""
    picked: Literal["largest", "smallest"] = "largest"


def largest_rows(spec: ChartSpec, cell: Callable[[float], str]) -> list[ChartTableRow]:
    """Return the table twin: the largest value of each line in equal parts of the time, the newest first."""
    return _pick_rows(spec, cell, max)


def smallest_rows(spec: ChartSpec, cell: Callable[[float], str]) -> list[ChartTableRow]:
    """Return the table twin of a chart in which low values are the trouble, such as availability."""
    return _pick_rows(spec, cell, min)


def _pick_rows(
    spec: ChartSpec, cell: Callable[[float], str], pick: Callable[[Sequence[float]], float]
) -> list[ChartTableRow]:
    step, rows = max(1, math.ceil(len(spec.times) / TABLE_ROWS)), []
    for start in range(0, len(spec.times), step):
        texts = []
        for line in spec.lines:
            known = [value for value in line.values[start : start + step] if value is not None]
            texts.append(cell(pick(known)) if known else "")
        begin = spec.times[start]
        end = spec.times[start + step] if start + step < len(spec.times) else math.inf
        labels = [mark.label for mark in spec.marks if begin <= mark.at < end]
        labels += [band.label for band in spec.bands if band.begin < end and band.end > begin]
        events = ", ".join(dict.fromkeys(labels))
        rows.append(ChartTableRow(datetime.fromtimestamp(begin, UTC), texts, events))
    return rows[::-1]
