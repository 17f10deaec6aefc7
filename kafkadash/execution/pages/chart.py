"""Charts of a run: its throughput with the throttle in force, and its progress with the time left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from typing import TypedDict

from kafkadash.core.charts import ChartLine, ChartMark, ChartPanel, ChartSpec, Ink, largest_rows
from kafkadash.execution.models import Execution
from kafkadash.execution.pages.counts import freshness_of_figures
from kafkadash.execution.progress.figures import FlowDirection, RunNow
from kafkadash.execution.progress.throughput import ThroughputHistory, ThroughputPoint
from kafkadash.execution.worker.measure import stored_progress, stored_samples
from kafkadash.monitoring.freshness import FactFreshness
from kafkadash.planning.options import MB, format_megabytes

BROKER_INKS: Sequence[Ink] = (2, 3, 4, 5, 6)
"""Brokers with a line of their own, those that sent or received most, and their colours."""
REFETCH_S = 10
LONGEST_FORECAST = 4
"""A forecast longer than so many times the run so far is left out: it would press the run into a corner."""
_AT_THROTTLE = 0.9
_WAYS = {FlowDirection.IN: "into", FlowDirection.OUT: "out of"}


class ForecastEnd(StrEnum):
    """When a run may end: by its time left, and by the ends of that range. The values are labels of lines."""

    EXPECTED = "expected"
    EARLIEST = "earliest"
    LATEST = "latest"


@dataclass(frozen=True, slots=True)
class BrokerFlow:
    """Throughput into or out of one broker, bytes per second at each point; None where it is unknown."""

    broker: int
    way: FlowDirection
    values: Sequence[float | None]

    @property
    def label(self) -> str:
        return f"{_WAYS[self.way]} broker {self.broker}"

    @property
    def sum(self) -> float:
        return sum(value or 0.0 for value in self.values)


class RunChartContext(TypedDict):
    number: int
    now: datetime
    sampled_at: datetime | None
    freshness: FactFreshness
    ended: bool
    refetch_s: int
    panels: list[ChartPanel]


def chart_context(execution: Execution, now: datetime) -> RunChartContext:
    """Return both charts. One query where the run was read without its samples."""
    history = stored_samples(execution) or ThroughputHistory()
    ended, freshness = execution.ended_at is not None, freshness_of_figures(execution, now)
    return {
        "number": execution.request_id,
        "now": now,
        "sampled_at": _to_datetime(history.points[-1].at) if history.points else None,
        "freshness": freshness,
        "ended": ended,
        "refetch_s": REFETCH_S,
        "panels": [
            _throughput_panel(history, ended=ended),
            _progress_panel(history, None if ended or freshness.stale else stored_progress(execution)),
        ],
    }


def _select_flows(history: ThroughputHistory) -> list[BrokerFlow]:
    """Return the flows with the most throughput, the largest first; of equal ones, inbound before outbound."""
    flows = [BrokerFlow(broker, way, history.line((broker, way))) for broker, way in history.lanes]
    return sorted(
        (flow for flow in flows if flow.sum), key=lambda flow: (-flow.sum, flow.way is FlowDirection.OUT, flow.broker)
    )[: len(BROKER_INKS)]


def _throughput_panel(history: ThroughputHistory, *, ended: bool) -> ChartPanel:
    points, flows = history.points, _select_flows(history)
    lines = [
        ChartLine(
            "throttle of each broker", "limit", [p.throttle / MB for p in points], 1.25, stepped=True, dashed=True
        ),
        *(
            ChartLine(flow.label, ink, _to_megabytes(flow.values))
            for ink, flow in zip(BROKER_INKS, flows, strict=False)
        ),
        ChartLine("all copies together", 1, _to_megabytes([point.whole for point in points]), 2),
    ]
    spec = _build_spec(points, lines if len(points) > 1 else [], "MB/s")
    marks = [
        ChartMark(round(mark.at), f"{_mark_text(mark.before)} → {_mark_text(mark.after)}") for mark in history.marks
    ]
    spec = replace(spec, marks=marks)
    return ChartPanel(
        "run-throughput",
        "Throughput",
        _describe_throughput(points, flows, ended=ended),
        spec,
        largest_rows(spec, lambda value: f"{value:,.1f} MB/s"),
        "Rates are means of the last 15 s.",
        "Rates are shown from the second sample on.",
    )


def _build_spec(points: Sequence[ThroughputPoint], lines: Sequence[ChartLine], unit: str) -> ChartSpec:
    begin = math.floor(points[0].at) if points else 0
    end = math.ceil(points[-1].at) if points else 0
    return ChartSpec([round(point.at) for point in points], begin, end, lines, unit)


def _mark_text(rate: int) -> str:
    return f"{format_megabytes(rate)} MB/s"


def _to_megabytes(values: Sequence[float | None]) -> list[float | None]:
    return [None if value is None else round(value / MB, 2) for value in values]


def _describe_throughput(points: Sequence[ThroughputPoint], flows: Sequence[BrokerFlow], *, ended: bool) -> str:
    if not points:
        return "Nothing was measured." if ended else "Nothing is measured yet."
    last = points[-1]
    at = f"{_to_datetime(last.at):%H:%M:%S}"
    whole = "" if last.whole is None else f" All copies together: {last.whole / MB:,.1f} MB/s."
    known = [(flow.values[-1], flow) for flow in flows if flow.values[-1] is not None]
    if not known:
        return f"At {at}, broker rates are unknown. Throttle: {format_megabytes(last.throttle)} MB/s.{whole}"
    rate, flow = max(known, key=lambda each: each[0] or 0.0)
    near = "at" if (rate or 0.0) >= _AT_THROTTLE * last.throttle else "below"
    throttle = f"{near} the throttle of {format_megabytes(last.throttle)} MB/s"
    return f"{(rate or 0.0) / MB:,.1f} MB/s {flow.label} at {at}, {throttle}.{whole}"


def _progress_panel(history: ThroughputHistory, seen: RunNow | None) -> ChartPanel:
    """Percent over time; of a run that goes on, also the time at which it is expected to end, with its range."""
    points = [point for point in history.points if point.percent is not None]
    spec = _build_spec(points, [], "%")
    times, copied = [float(at) for at in spec.times], [point.percent for point in points]
    lines, end, forecast = [], spec.end, _forecast_ends(points, seen)
    if forecast and copied:
        times += sorted(set(forecast.values()))
        end = times[-1]
        copied += [None] * (len(times) - len(copied))
        for each, at in forecast.items():
            ends: list[float | None] = [None] * len(times)
            ends[len(points) - 1], ends[times.index(at)] = points[-1].percent, 100.0
            ink: Ink = "other" if each is ForecastEnd.EXPECTED else "context"
            lines.append(ChartLine(each.value, ink, ends, 1.5, dashed=True))
    if len(points) > 1:
        lines.append(ChartLine("copied", 1, copied, 2))
    spec = replace(spec, times=times, end=end, lines=lines, top=100.0)
    summary = "No progress is known yet."
    if points:
        percent = math.floor((points[-1].percent or 0.0) * 10) / 10
        summary = f"{percent:.1f} % copied at {_to_datetime(points[-1].at):%H:%M:%S}."
        if forecast:
            summary += f" Expected to end at {_to_datetime(forecast[ForecastEnd.EXPECTED]):%H:%M:%S}."
    return ChartPanel(
        "run-progress",
        "Progress",
        summary,
        spec,
        largest_rows(spec, lambda value: f"{value:,.1f} %"),
        "Percent of all bytes to copy.",
        "Progress is shown from the second sample on.",
    )


def _forecast_ends(points: Sequence[ThroughputPoint], seen: RunNow | None) -> dict[ForecastEnd, float]:
    """Return when the run ends by its time left: expected, and the range around it; nothing where that is unknown."""
    if not points or seen is None or seen.eta_s is None or not math.isfinite(seen.eta_s):
        return {}
    now, so_far = points[-1].at, max(1.0, points[-1].at - points[0].at)
    ends = {
        ForecastEnd.EXPECTED: seen.eta_s,
        ForecastEnd.EARLIEST: seen.eta_low_s,
        ForecastEnd.LATEST: seen.eta_high_s,
    }
    known = {each: s for each, s in ends.items() if s is not None and 1 <= s <= LONGEST_FORECAST * so_far}
    return {each: float(round(now + s)) for each, s in known.items()} if ForecastEnd.EXPECTED in known else {}


def _to_datetime(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
