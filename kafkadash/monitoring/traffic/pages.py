"""Charts of what is written: trends of a cluster, and the throughput of a topic or a broker.

Rates are per second, from stored points (``traffic.collector``). Bytes are estimated; records are counted. A sum leaves
out partitions whose figures are unknown; their number stands beside it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any, TypedDict

from django.db.models import Avg, DateTimeField, F, FloatField, Func, Max, Q, QuerySet, Subquery, TextField, Value
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.charts import ChartLine, ChartMark, ChartPanel, ChartRange, ChartSpec, find_range, largest_rows
from kafkadash.core.formatting import DAY, HOUR, MINUTE, format_size, size_unit
from kafkadash.core.messages import choose_plural
from kafkadash.core.revalidation import revalidated
from kafkadash.monitoring.annotations import read_marks
from kafkadash.monitoring.freshness import FactFreshness, freshness_of
from kafkadash.monitoring.models import ClusterPoint, ClusterTrend, CollectorKind, CollectorRun, TopicTraffic
from kafkadash.monitoring.traffic.rules import SLOT_S, SLOTS, shard_of

REFETCH_S = 60
RANGES = (ChartRange("hour", "hour", HOUR, MINUTE), ChartRange("day", "day", DAY, 5 * MINUTE))
TREND = RANGES[1]
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class TrafficSeries:
    """Values by interval, None where nothing is known."""

    begin: datetime
    step_s: int
    values: Mapping[str, Sequence[float | None]]

    @property
    def times(self) -> list[float]:
        length = len(next(iter(self.values.values()), ()))
        return [self.begin.timestamp() + place * self.step_s for place in range(length)]

    def newest(self, name: str) -> float | None:
        """Return the newest known value."""
        return next((value for value in reversed(self.values[name]) if value is not None), None)

    def clock(self, place: int) -> str:
        return f"{datetime.fromtimestamp(self.times[place], UTC):%H:%M}"

    @property
    def end(self) -> datetime:
        return self.begin + timedelta(seconds=self.step_s * len(self.times))

    def spec(
        self,
        lines: Sequence[ChartLine],
        unit: str = "",
        top: float = 1.0,
        marks: Sequence[ChartMark] = (),
        *,
        spark: bool = False,
    ) -> ChartSpec:
        times = self.times
        return ChartSpec(times, times[0], times[-1] + self.step_s, lines, unit, top, marks, spark=spark)


def read_series(points: QuerySet[Any], chosen: ChartRange, now: datetime, **figures: Any) -> TrafficSeries:
    """Read aggregates (``figures``: name → expression) of points by interval, with one query.

    The last interval holds ``now``.
    """
    end = (now.timestamp() // chosen.step_s + 1) * chosen.step_s
    begin, length = datetime.fromtimestamp(end - chosen.length_s, UTC), chosen.length_s // chosen.step_s
    values: dict[str, list[float | None]] = {name: [None] * length for name in figures}
    interval = Func(
        Value(timedelta(seconds=chosen.step_s)),
        F("taken_at"),
        Value(_EPOCH),
        function="date_bin",
        output_field=DateTimeField(),
    )
    # Names of their own: one that is a column's would hide the column from the aggregates after it.
    aggregates = {f"figure_{name}": figure for name, figure in figures.items()}
    rows = points.filter(taken_at__gte=begin).annotate(interval=interval).values("interval").annotate(**aggregates)
    for row in rows.order_by("interval"):
        place = round((row["interval"] - begin).total_seconds() / chosen.step_s)
        if 0 <= place < length:
            for name in figures:
                values[name][place] = row[f"figure_{name}"]
    return TrafficSeries(begin, chosen.step_s, values)


def _element(column: str, key: str, place: int) -> Any:
    """Return an element of a packed list as a number; names of topics may look like numbers, so no key transform."""
    path = (F(column), Value(key), Value(str(place)))
    text = Func(*path, function="jsonb_extract_path_text", output_field=TextField())
    return Cast(text, FloatField())


def _without(partitions: float | None) -> str:
    """Return the text that names partitions left out of a sum; '' for none."""
    return choose_plural("without # partition|without # partitions", round(partitions)) if partitions else ""


# ---- trends of a cluster


@dataclass(frozen=True, slots=True)
class TrendTile:
    """A figure of a cluster with its last 24 hours. ``value`` is that of the newest point, '' where it is unknown.

    ``note`` says what the value is of, and what it leaves out.
    """

    key: str
    title: str
    value: str
    note: str
    summary: str
    spec: ChartSpec


class TrendsContext(TypedDict):
    cluster: Cluster
    now: datetime
    freshness: FactFreshness
    refetch_s: int
    tiles: list[TrendTile]


@dataclass(frozen=True, slots=True)
class _TrendFigure:
    """``cell`` writes a value. ``unit`` of the axis; None: bytes per second. ``left_out``: figures of the newest point
    that count what the value leaves out.
    """

    key: str
    title: str
    note: str
    cell: Callable[[float], str]
    unit: str | None = ""
    top: float = 1.0
    left_out: Sequence[str] = ()


def read_topic_rates(cluster: Cluster, topics: Collection[str], now: datetime) -> dict[str, tuple[float, float | None]]:
    """Return records and bytes per second written to topics, as last measured; bytes None where they are unknown.

    A topic is left out of which the rate of some partition is unknown. Stale measurements tell nothing. Two queries.
    """
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.TRAFFIC).first()
    freshness = freshness_of(run, now)
    if freshness.stale or freshness.taken_at is None:
        return {}
    wanted = set(topics)
    rows = TopicTraffic.objects.filter(
        cluster=cluster, format=1, shard__in={shard_of(topic) for topic in wanted}, taken_at=freshness.taken_at
    )
    return {
        topic: (records, None if without_bytes else octets)
        for measured in rows.values_list("topics", flat=True)
        for topic, (records, octets, unknown, without_bytes) in measured.items()
        if topic in wanted and not unknown
    }


def format_record_rate(value: float) -> str:
    """Records per second: "1,204/s", "0.4/s"."""
    return f"{value:,.1f}/s" if 0 < value < 10 else f"{value:,.0f}/s"


def format_byte_rate(value: float) -> str:
    """Bytes per second in decimal units: "4.5 MB/s"."""
    return f"{format_size(value)}/s"


def format_count(value: float) -> str:
    return f"{value:,.0f}"


_TRENDS = (
    _TrendFigure("bytes", "Bytes in", "estimated", format_byte_rate, None, left_out=("unknown", "without_bytes")),
    _TrendFigure("records", "Records in", "all topics", format_record_rate, "/s", left_out=("unknown",)),
    _TrendFigure("lag", "Consumer lag", "records, where known", format_count),
    _TrendFigure("under_replicated", "Under-replicated", "partitions, moving ones included", format_count),
    _TrendFigure("disk", "Disk used", "all log directories", lambda value: f"{value:,.1f} %", "%", 100.0),
)


def trends_context(cluster: Cluster, now: datetime, run: CollectorRun | None) -> TrendsContext:
    """Return five figures with their last 24 hours; one query."""
    points = ClusterPoint.objects.filter(cluster=cluster)
    is_newest = Q(taken_at=Subquery(points.order_by("-taken_at").values("taken_at")[:1]))
    columns = {
        "bytes": F("bytes_rate"),
        "records": F("records_rate"),
        "lag": F("lag"),
        "under_replicated": F("under_replicated"),
        "disk": Cast(F("disk_used"), FloatField()) * 100.0 / F("disk_total"),
    }
    now_of = {**columns, "unknown": F("unknown"), "without_bytes": F("without_bytes")}
    series = read_series(
        points,
        TREND,
        now,
        **{name: Max(column) for name, column in columns.items()},
        **{f"newest_{name}": Max(column, filter=is_newest) for name, column in now_of.items()},
    )
    return {
        "cluster": cluster,
        "now": now,
        "freshness": freshness_of(run, now),
        "refetch_s": REFETCH_S,
        "tiles": [_build_tile(figure, series) for figure in _TRENDS],
    }


def _build_tile(figure: _TrendFigure, series: TrafficSeries) -> TrendTile:
    values, newest = series.values[figure.key], series.newest(f"newest_{figure.key}")
    known = [(value, place) for place, value in enumerate(values) if value is not None]
    value = "" if newest is None else figure.cell(newest)
    left_out = _without(sum(series.newest(f"newest_{name}") or 0 for name in figure.left_out))
    note = ", ".join(filter(None, (figure.note, left_out)))
    summary = f"{figure.title}: {value or 'unknown'} now"
    if not known:
        return TrendTile(
            figure.key, figure.title, value, note, f"{summary}; no data in 24 h.", series.spec([], spark=True)
        )
    highest, place = max(known)
    divisor, unit = (1, figure.unit) if figure.unit is not None else _rate_unit(highest)
    line = ChartLine(f"{figure.title}, highest", 1, [None if v is None else round(v / divisor, 3) for v in values])
    summary += f"; highest {figure.cell(highest)} at {series.clock(place)} in 24 h."
    return TrendTile(figure.key, figure.title, value, note, summary, series.spec([line], unit, figure.top, spark=True))


def _rate_unit(highest: float) -> tuple[int, str]:
    divisor, unit = size_unit(highest)
    return divisor, f"{unit}/s"


@require_safe
@needs(VIEW)
@revalidated
def trends(request: HttpRequest, slug: str) -> HttpResponse:
    """The panel alone, fetched again while a page is open."""
    cluster = cluster_for(request, slug, VIEW)
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.TRAFFIC).first()
    return render(request, "monitoring/_trends.html", {**trends_context(cluster, timezone.now(), run)})


# ---- trend of a cluster in a list


@dataclass(frozen=True, slots=True)
class TrendLine:
    """Records in of 24 h. ``value`` is that of now, '' where it is unknown.

    ``path``: lines in the box ``box``; '' where there is only one slot to draw.
    """

    value: str
    words: str
    path: str
    box: str


_LINE_TOP, _LINE_BOTTOM = 2.0, 20.0


def build_trend_line(trend: ClusterTrend | None, freshness: FactFreshness, now: datetime) -> TrendLine | None:
    """Return the line of a stored trend; None where no rate was ever known. A slot without a rate is a gap."""
    if trend is None or trend.format != 1 or all(rate is None for rate in trend.slots):
        return None
    known = [place for place, rate in enumerate(trend.slots) if rate is not None]
    highest = max(rate for rate in trend.slots if rate is not None)
    value = "" if freshness.stale or trend.rate is None else format_record_rate(trend.rate)
    at = f"{trend.taken_at.astimezone(UTC):%H:%M:%S} UTC"
    words = f"Records in: {value or 'unknown'} at {at}, highest {format_record_rate(highest)} in 24 h"
    if len(known) == 1:
        return TrendLine(value, words, "", "")
    passed = max(0, math.floor((now - trend.slot_at).total_seconds() / SLOT_S))
    end = len(trend.slots) + passed
    # A trend that has only begun fills half of its box, as charts do.
    begin = max(end - SLOTS, end - 2 * (end - known[0]))
    return TrendLine(value, words, _draw_slots(tuple(trend.slots), begin, highest), f"{begin} 0 {end - begin} 22")


@lru_cache(maxsize=2_000)  # boards show the same until the next reading
def _draw_slots(slots: tuple[float | None, ...], begin: int, highest: float) -> str:
    """Return a path with a line for each run of known slots from ``begin`` on; each slot is as wide as 1."""
    path, drawing = [], False
    per_record = (_LINE_BOTTOM - _LINE_TOP) / highest if highest else 0.0
    for place in range(max(0, begin), len(slots)):
        rate = slots[place]
        if rate is not None:
            path.append(f"{'V' if drawing else f'M{place} '}{_LINE_BOTTOM - per_record * rate:.1f}H{place + 1}")
        drawing = rate is not None
    return "".join(path)


# ---- throughput of a topic, of a broker


class ThroughputContext(TypedDict):
    cluster: Cluster
    now: datetime
    freshness: FactFreshness
    ranges: tuple[ChartRange, ...]
    chosen: ChartRange
    panels: list[ChartPanel]


def topic_throughput(
    cluster: Cluster, topic: str, asked: str | None, now: datetime, run: CollectorRun | None
) -> ThroughputContext:
    """Return records and bytes per second written to a topic, over the range that was asked for."""
    points = TopicTraffic.objects.filter(cluster=cluster, shard=shard_of(topic), format=1)
    return _throughput(cluster, "topic", points, ("topics", topic), asked, now, run)


def broker_throughput(
    cluster: Cluster, broker: int, asked: str | None, now: datetime, run: CollectorRun | None
) -> ThroughputContext:
    """Return records and bytes per second written to the partitions that a broker leads."""
    points = ClusterPoint.objects.filter(cluster=cluster, format=1)
    return _throughput(cluster, "broker", points, ("brokers", str(broker)), asked, now, run)


def _throughput(
    cluster: Cluster,
    subject: str,
    points: QuerySet[Any],
    packed: tuple[str, str],
    asked: str | None,
    now: datetime,
    run: CollectorRun | None,
) -> ThroughputContext:
    """``packed``: column and key of lists that begin with records, bytes, unknown and without_bytes."""
    chosen = find_range(RANGES, asked)
    series = read_series(
        points,
        chosen,
        now,
        records=Avg(_element(*packed, 0)),
        bytes=Avg(_element(*packed, 1)),
        unknown=Max(_element(*packed, 2)),
        without_bytes=Max(_element(*packed, 3)),
    )
    unknown, without_bytes = series.newest("unknown") or 0, series.newest("without_bytes") or 0
    divisor, unit = _rate_unit(max((value for value in series.values["bytes"] if value is not None), default=0.0))
    marks = read_marks(cluster.pk, series.begin, series.end)
    left_out = _without(unknown + without_bytes)
    return {
        "cluster": cluster,
        "now": now,
        "freshness": freshness_of(run, now),
        "ranges": RANGES,
        "chosen": chosen,
        "panels": [
            _build_panel(f"{subject}-bytes", _BYTES_IN, series, marks, divisor, unit, left_out),
            _build_panel(f"{subject}-records", _RECORDS_IN, series, marks, 1, "/s", _without(unknown)),
        ],
    }


@dataclass(frozen=True, slots=True)
class _TrafficFigure:
    """``column`` of the series. ``note`` names the source of the values; ``empty`` says why there may be none."""

    column: str
    title: str
    note: str
    empty: str


_BYTES_IN = _TrafficFigure(
    "bytes",
    "Bytes in",
    "Estimated: new records × bytes per record on disk.",
    "Bytes are unknown for compacted and tiered topics, and until log directories and configs are read.",
)
_RECORDS_IN = _TrafficFigure(
    "records", "Records in", "Counted from log ends.", "Rates are known from the second refresh on."
)


def _build_panel(
    key: str,
    figure: _TrafficFigure,
    series: TrafficSeries,
    marks: Sequence[ChartMark],
    divisor: int,
    unit: str,
    left_out: str,
) -> ChartPanel:
    values = [None if value is None else round(value / divisor, 3) for value in series.values[figure.column]]
    spec = series.spec([ChartLine(figure.title.lower(), 1, values, 2)], unit, marks=marks)

    def cell(value: float) -> str:
        return f"{value:,.1f}{unit if unit.startswith('/') else f' {unit}'}"

    known = [(value, place) for place, value in enumerate(values) if value is not None]
    summary = "No data in this time."
    if known:
        newest, last = known[-1]
        highest, place = max(known)
        summary = f"{cell(newest)} at {series.clock(last)}; highest {cell(highest)} at {series.clock(place)}."
        summary += f" Sum {left_out}, whose rate is unknown." if left_out else ""
    return ChartPanel(key, figure.title, summary, spec, largest_rows(spec, cell), figure.note, figure.empty)
