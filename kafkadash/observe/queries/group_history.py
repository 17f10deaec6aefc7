"""The charts of a group's lag and time lag."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from kafkadash.domain.group_history import GroupHistory, Run, group_history, lag_summary, time_summary
from kafkadash.domain.lag import LagState
from kafkadash.domain.lag_words import WORDS
from kafkadash.domain.wording import HOUR
from kafkadash.observe.models import GroupLagPoint, GroupState

T = TypeVar("T", int, float)
_TABLE_ROWS = 24
_LONG_S = 600  # from here on the axis of the time lag is in minutes


@dataclass(frozen=True, slots=True)
class Range:
    """How far back the charts go, and how long one interval of them is; both in seconds."""

    name: str
    words: str
    length_s: int
    step_s: int


RANGES = (Range("hour", "hour", HOUR, 60), Range("day", "day", 24 * HOUR, 600))
DEFAULT_RANGE = RANGES[0]


def range_named(name: str | None) -> Range:
    """The range of that name, or the default for a name that is none."""
    return next((r for r in RANGES if r.name == name), DEFAULT_RANGE)


def history_context(row: GroupState, now: datetime, chosen: Range, interval_s: float) -> dict[str, Any]:
    """Both charts with their lines in words and their tables. An interval is longer than that of the collector."""
    step = max(chosen.step_s, math.ceil(1.5 * interval_s))
    seen = group_history(_runs(row, now - timedelta(seconds=chosen.length_s)), now.timestamp(), chosen.length_s, step)
    in_minutes = max((value for value in seen.time if value is not None), default=0) >= _LONG_S
    single = row.partitions == 1
    return {
        "chosen": chosen,
        "ranges": RANGES,
        "known": seen.known,
        "single": single,
        "ink": "warning" if seen.bands else "1",
        "interval_s": step,
        "table_interval_s": step * _table_step(seen),
        "lag_summary": lag_summary(seen, lambda at: _clock(at, now)),
        "time_summary": time_summary(seen, lambda at: _clock(at, now)),
        "lag_chart": _spec(seen, "", [_line("all others together", 2, seen.rest)] * (not single), seen.worst),
        "time_chart": _spec(
            seen,
            "min" if in_minutes else "s",
            [_line("longest of the others", 2, _scaled(seen.rest_time, in_minutes))] * (not single),
            _scaled(seen.time, in_minutes),
        ),
        "rows": _table(seen),
    }


def _runs(row: GroupState, start: datetime) -> list[Run]:
    """Stored runs; the newest goes on to the group's last look."""
    points = GroupLagPoint.objects.filter(group=row, at__gte=start).order_by("at", "since")
    runs = [_run(p, p.at) for p in points]
    newest = GroupLagPoint.objects.filter(group=row, at=row.point_at).last() if row.point_at else None
    return runs if newest is None else [*runs, _run(newest, row.taken_at)]


def _run(point: GroupLagPoint, until: datetime) -> Run:
    rest = None if point.lag is None else point.lag - (point.worst_lag or 0)
    return Run(
        point.since.timestamp(),
        until.timestamp(),
        LagState(point.worst),
        point.worst_lag,
        rest,
        point.time_lag_s,
        point.rest_time_lag_s,
    )


def _line(label: str, ink: int | str, values: Sequence[float | None]) -> dict[str, Any]:
    return {"label": label, "ink": ink, "width": 1.5, "y": list(values)}


def _scaled(values: Sequence[float | None], in_minutes: bool) -> list[float | None]:
    return [None if v is None else round(v / 60, 2) if in_minutes else round(v, 1) for v in values]


def _spec(seen: GroupHistory, unit: str, others: list[dict[str, Any]], worst: Sequence[float | None]) -> str:
    """As ``static/js/charts.js`` reads it."""
    lines = [*others, _line("worst partition", "warning" if seen.bands else 1, worst) | {"width": 2}]
    top = max((value for line in lines for value in line["y"] if value is not None), default=0)
    spec: Mapping[str, Any] = {
        "x": [seen.at(n) for n in range(len(seen.worst))],
        "range": [seen.start, seen.end],
        "unit": unit,
        "min": 0,
        "max": max(top * 1.12, 1 if unit else 10),
        "series": lines,
        "bands": [{"from": b.start, "to": b.end, "state": b.tone, "label": WORDS[b.state].lower()} for b in seen.bands],
    }
    return json.dumps(spec, separators=(",", ":"))


@dataclass(frozen=True, slots=True)
class TableRow:
    """The greatest of an interval: lag in records, time lag in seconds; ``words`` of the states that were not well."""

    at: datetime
    worst: int | None
    rest: int | None
    time: float | None
    rest_time: float | None
    words: str


def _table_step(seen: GroupHistory) -> int:
    return max(1, math.ceil(len(seen.worst) / _TABLE_ROWS))


def _table(seen: GroupHistory) -> list[TableRow]:
    size, rows = _table_step(seen), []
    for begin in range(0, len(seen.worst), size):
        start, end = seen.at(begin), seen.at(begin + size)
        own = dict.fromkeys(WORDS[b.state] for b in seen.bands if b.start < end and b.end > start)
        part = slice(begin, begin + size)
        worst, rest = _greatest(seen.worst[part]), _greatest(seen.rest[part])
        time, rest_time = _greatest(seen.time[part]), _greatest(seen.rest_time[part])
        rows.append(TableRow(datetime.fromtimestamp(start, UTC), worst, rest, time, rest_time, ", ".join(own)))
    return rows[::-1]


def _greatest(values: Sequence[T | None]) -> T | None:
    return max((value for value in values if value is not None), default=None)


def _clock(at: int, now: datetime) -> str:
    then = datetime.fromtimestamp(at, UTC)
    return f"{then:%H:%M}" if now - then < timedelta(hours=20) else f"{then:%-d %b %H:%M}"
