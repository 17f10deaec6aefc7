"""Lag of a group in a topic over an hour, a day, a week or a year, from the pipeline's rollups."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Max

from kafkadash.clusters.models import Cluster
from kafkadash.domain.refusals import lookups as said
from kafkadash.observe.history.names import stored_name
from kafkadash.observe.history.partitions import DAY, HOUR, MINUTE
from kafkadash.observe.history.standing import pipeline_standing
from kafkadash.observe.models import Rollup, Series, SeriesKind

_TABLE_ROWS = 24


@dataclass(frozen=True, slots=True)
class Range:
    """``grain``: seconds of a bucket that is drawn; ``chosen_by``: of those by which the worst topic is found."""

    name: str
    words: str
    length: timedelta
    grain: int
    chosen_by: int
    bucket: str


RANGES = (
    Range("hour", "hour", timedelta(hours=1), MINUTE, MINUTE, "minute"),
    Range("day", "day", timedelta(days=1), MINUTE, HOUR, "minute"),
    Range("week", "week", timedelta(days=7), HOUR, HOUR, "hour"),
    Range("year", "year", timedelta(days=365), DAY, DAY, "day"),
)
DEFAULT_RANGE = RANGES[1]
_FIGURES = ("p50", "p95", "most")
_LABELS = {"p50": "p50", "p95": "p95", "most": "largest"}


def range_named(name: str | None) -> Range:
    """The range of that name, or the default for a name that is none."""
    return next((r for r in RANGES if r.name == name), DEFAULT_RANGE)


@dataclass(frozen=True, slots=True)
class Lines:
    """``values``: figure → one per bucket, None where there is none; the first bucket begins at ``begin``."""

    begin: datetime
    grain: int
    values: Mapping[str, Sequence[int | None]]

    def at(self, bucket: int) -> datetime:
        return self.begin + timedelta(seconds=bucket * self.grain)

    @property
    def buckets(self) -> int:
        return len(self.values["most"])

    @property
    def newest(self) -> int | None:
        """The last bucket of which something is known."""
        return max((n for n, value in enumerate(self.values["most"]) if value is not None), default=None)

    @property
    def known(self) -> int:
        return sum(value is not None for value in self.values["most"])


def group_history_context(
    cluster: Cluster, group: str, topic: str | None, chosen: Range, now: datetime
) -> dict[str, Any]:
    """Five queries, however long the range and however many topics."""
    own = Series.objects.filter(cluster=cluster, kind=SeriesKind.GROUP, group=stored_name(group))
    series = dict(own.values_list("topic", "pk"))
    shown = topic if topic in series else _worst(series, chosen, now)
    lines = _lines(series.get(shown or ""), chosen, now)
    newest = lines.newest
    return {
        "cluster": cluster,
        "group": group,
        "now": now,
        "chosen": chosen,
        "ranges": RANGES,
        "topics": sorted(series),
        "topic": shown or "",
        "problem": said.NO_HISTORY_OF_TOPIC(topic=topic[:249]) if topic and topic not in series else "",
        "standing": pipeline_standing(now),
        "lines": lines,
        "known": newest is not None,
        "newest_at": None if newest is None else lines.at(newest),
        "summary": _summary(lines, chosen),
        "chart": json.dumps(_chart(lines), separators=(",", ":")),
        "table_step": math.ceil(lines.buckets / _TABLE_ROWS),
        "rows": _table(lines),
    }


def _worst(series: Mapping[str, int], chosen: Range, now: datetime) -> str | None:
    """The topic with the largest lag of the time, or the first where nothing is known of any."""
    begin, end = _span(chosen, now)
    found = (
        Rollup.objects.filter(
            series__in=series.values(), grain=chosen.chosen_by, bucket__gte=begin, bucket__lt=end, most__isnull=False
        )
        .values_list("series_id")
        .annotate(largest=Max("most"))
        .order_by("-largest", "series_id")
        .first()
    )
    names = {pk: name for name, pk in series.items()}
    return names[found[0]] if found else min(series, default=None)


def _span(chosen: Range, now: datetime) -> tuple[datetime, datetime]:
    """Whole buckets; the one that has only begun is the last."""
    end = datetime.fromtimestamp((now.timestamp() // chosen.grain + 1) * chosen.grain, UTC)
    return end - chosen.length, end


def _lines(series: int | None, chosen: Range, now: datetime) -> Lines:
    begin, end = _span(chosen, now)
    buckets = round((end - begin).total_seconds() / chosen.grain)
    values: dict[str, list[int | None]] = {name: [None] * buckets for name in _FIGURES}
    rows = Rollup.objects.filter(series=series, grain=chosen.grain, bucket__gte=begin, bucket__lt=end)
    for bucket, *figures in rows.values_list("bucket", *_FIGURES) if series is not None else ():
        place = round((bucket - begin).total_seconds() / chosen.grain)
        for name, value in zip(_FIGURES, figures, strict=True):
            values[name][place] = value
    if values["most"][-1] is None:
        for line in values.values():
            line.pop()  # the bucket that has only begun is left out until there is something in it
    return Lines(begin, chosen.grain, values)


def _summary(lines: Lines, chosen: Range) -> str:
    newest = lines.newest
    if newest is None:
        return f"Nothing is known of the last {chosen.words}."
    p95 = [(value, bucket) for bucket, value in enumerate(lines.values["p95"]) if value is not None]
    worst, bucket = max(p95, key=lambda one: (one[0], one[1]), default=(None, newest))
    said_worst = (
        f"p95 was at most {worst:,} records, at {_clock(lines.at(bucket), chosen)}" if worst is not None else ""
    )
    now = lines.values["p95"][newest]
    said_now = f"{now:,} in the newest {chosen.bucket}" if now is not None else ""
    missing = lines.buckets - lines.known
    gaps = f"Nothing is known of {missing:,} of {lines.buckets:,} {chosen.bucket}s" if missing else ""
    return ". ".join(filter(None, (", ".join(filter(None, (said_worst, said_now))), gaps))) + "."


def _clock(at: datetime, chosen: Range) -> str:
    return at.strftime("%H:%M" if chosen.length <= timedelta(days=1) else "%-d %b %H:%M")


def _chart(lines: Lines) -> dict[str, Any]:
    """As ``static/js/charts.js`` reads it."""
    top = max((value for value in lines.values["most"] if value is not None), default=0)
    inks = {"p50": 3, "p95": 1, "most": 2}
    return {
        "x": [lines.at(bucket).timestamp() for bucket in range(lines.buckets)],
        "range": [lines.begin.timestamp(), lines.at(lines.buckets).timestamp()],
        "unit": "",  # the heading has it: beside the figures there is no room for "records"
        "min": 0,
        "max": max(10, round(top * 1.12)),
        "series": [
            {"label": _LABELS[name], "ink": inks[name], "width": 1.5 if name == "p95" else 1, "y": values}
            for name, values in lines.values.items()
        ],
    }


@dataclass(frozen=True, slots=True)
class TableRow:
    """The largest of some buckets, in the order of the lines; None where nothing is known."""

    at: datetime
    values: Sequence[int | None]


def _table(lines: Lines) -> list[TableRow]:
    size = max(1, math.ceil(lines.buckets / _TABLE_ROWS))
    rows = []
    for start in range(0, lines.buckets, size):
        some = [
            max((value for value in lines.values[name][start : start + size] if value is not None), default=None)
            for name in _FIGURES
        ]
        rows.append(TableRow(lines.at(start), some))
    return rows[::-1]
