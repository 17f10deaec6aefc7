"""Charts of what is written: trends of a cluster, and the throughput of a topic or a broker.

Rates are per second, from stored points (``traffic.collector``). Bytes are estimated; records are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict

from django.db.models import Avg, DateTimeField, F, FloatField, Func, Max, QuerySet, TextField, Value
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.charts import ChartLine, ChartPanel, ChartSpec, largest_rows
from kafkadash.core.formatting import DAY, HOUR, MINUTE, format_size
from kafkadash.monitoring.freshness import FactFreshness, freshness_of
from kafkadash.monitoring.models import ClusterPoint, CollectorKind, CollectorRun, TopicTraffic
from kafkadash.monitoring.traffic.collector import shard_of

REFETCH_S = 60
_EPOCH = datetime(2000, 1, 1, tzinfo=UTC)
_UNITS = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "B"))


@dataclass(frozen=True, slots=True)
class TrafficRange:
    """How far back a chart goes, and how long one of its intervals is; both in seconds."""

    name: str
    words: str
    length_s: int
    step_s: int

    def span(self, now: datetime) -> tuple[datetime, int]:
        """Return the begin of the first interval, and how many there are; the last one holds ``now``."""
        end = (now.timestamp() // self.step_s + 1) * self.step_s
        return datetime.fromtimestamp(end - self.length_s, UTC), self.length_s // self.step_s


RANGES = (TrafficRange("hour", "hour", HOUR, MINUTE), TrafficRange("day", "day", DAY, 5 * MINUTE))
TREND = TrafficRange("trend", "24 h", DAY, 5 * MINUTE)


def range_named(name: str | None) -> TrafficRange:
    """Return the range of that name, the first one for a name that is none."""
    return next((each for each in RANGES if each.name == name), RANGES[0])


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

    @property
    def end(self) -> float:
        return self.begin.timestamp() + len(self.times) * self.step_s


def read_series(points: QuerySet[Any], chosen: TrafficRange, now: datetime, **figures: Any) -> TrafficSeries:
    """Read aggregates (``figures``: name → expression) of points by interval, with one query."""
    begin, length = chosen.span(now)
    values: dict[str, list[float | None]] = {name: [None] * length for name in figures}
    interval = Func(
        Value(timedelta(seconds=chosen.step_s)),
        F("taken_at"),
        Value(_EPOCH),
        function="date_bin",
        output_field=DateTimeField(),
    )
    rows = points.filter(taken_at__gte=begin).annotate(interval=interval).values("interval").annotate(**figures)
    for row in rows.order_by("interval"):
        place = round((row["interval"] - begin).total_seconds() / chosen.step_s)
        if 0 <= place < length:
            for name in figures:
                values[name][place] = row[name]
    return TrafficSeries(begin, chosen.step_s, values)


def _element(column: str, key: str, place: int) -> Any:
    """Return an element of a packed list as a number; names of topics may look like numbers, so no key transform."""
    path = (F(column), Value(key), Value(str(place)))
    text = Func(*path, function="jsonb_extract_path_text", output_field=TextField())
    return Cast(text, FloatField())


# ---- trends of a cluster


@dataclass(frozen=True, slots=True)
class TrendTile:
    """A figure of a cluster with its last 24 hours. ``value``: newest known, '' where none is known."""

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
    """``cell`` writes a value; ``bytes``: whether the axis has decimal units of bytes."""

    key: str
    title: str
    note: str
    cell: Callable[[float], str]


def format_record_rate(value: float) -> str:
    """Records per second: "1,204/s", "0.4/s"."""
    return f"{value:,.1f}/s" if 0 < value < 10 else f"{value:,.0f}/s"


def format_byte_rate(value: float) -> str:
    """Bytes per second in decimal units: "4.5 MB/s"."""
    return f"{format_size(value)}/s"


_TRENDS = (
    _TrendFigure("bytes", "Bytes in", "estimated", format_byte_rate),
    _TrendFigure("records", "Records in", "all topics", format_record_rate),
    _TrendFigure("lag", "Consumer lag", "records, all groups", lambda value: f"{value:,.0f}"),
    _TrendFigure("under_replicated", "Under-replicated", "partitions", lambda value: f"{value:,.0f}"),
    _TrendFigure("disk", "Disk used", "all log directories", lambda value: f"{value:,.1f} %"),
)


def trends_context(cluster: Cluster, now: datetime, run: CollectorRun | None) -> TrendsContext:
    """Return five figures with their last 24 hours; one query."""
    series = read_series(
        ClusterPoint.objects.filter(cluster=cluster),
        TREND,
        now,
        bytes=Avg("bytes_rate"),
        records=Avg("records_rate"),
        lag=Max("lag"),
        under_replicated=Max("under_replicated"),
        disk=Max(Cast(F("disk_used"), FloatField()) * 100.0 / F("disk_total")),
    )
    return {
        "cluster": cluster,
        "now": now,
        "freshness": freshness_of(run, now),
        "refetch_s": REFETCH_S,
        "tiles": [_build_tile(figure, series) for figure in _TRENDS],
    }


def _build_tile(figure: _TrendFigure, series: TrafficSeries) -> TrendTile:
    values = series.values[figure.key]
    known = [(value, place) for place, value in enumerate(values) if value is not None]
    if not known:
        spec = ChartSpec(series.times, series.begin.timestamp(), series.end, [], spark=True)
        return TrendTile(figure.key, figure.title, "", figure.note, f"{figure.title}: no data in the last 24 h.", spec)
    newest, (highest, place) = known[-1][0], max(known)
    divisor, unit = _scale(highest) if figure.key == "bytes" else (1.0, "")
    line = ChartLine(figure.title, 1, [None if v is None else round(v / divisor, 3) for v in values], 1.5)
    spec = ChartSpec(
        series.times,
        series.begin.timestamp(),
        series.end,
        [line],
        unit={"bytes": f"{unit}/s", "records": "/s", "disk": "%"}.get(figure.key, ""),
        top=100.0 if figure.key == "disk" else 1.0,
        spark=True,
    )
    at = datetime.fromtimestamp(series.times[place], UTC)
    summary = f"{figure.title}: {figure.cell(newest)}, highest {figure.cell(highest)} at {at:%H:%M} in the last 24 h."
    return TrendTile(figure.key, figure.title, figure.cell(newest), figure.note, summary, spec)


def _scale(highest: float) -> tuple[float, str]:
    """Return by what bytes are divided, and the unit, so that the highest value has a short number."""
    return next((each for each in _UNITS if highest >= each[0]), _UNITS[-1])


@require_safe
@needs(VIEW)
def trends(request: HttpRequest, slug: str) -> HttpResponse:
    """The panel alone, fetched again while a page is open."""
    cluster = cluster_for(request, slug, VIEW)
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.TRAFFIC).first()
    return render(request, "monitoring/_trends.html", {**trends_context(cluster, timezone.now(), run)})


# ---- throughput of a topic, of a broker


class ThroughputContext(TypedDict):
    cluster: Cluster
    now: datetime
    freshness: FactFreshness
    refetch_s: int
    ranges: tuple[TrafficRange, ...]
    chosen: TrafficRange
    panels: list[ChartPanel]


def topic_throughput(
    cluster: Cluster, topic: str, chosen: TrafficRange, now: datetime, run: CollectorRun | None
) -> ThroughputContext:
    """Return records and bytes per second written to a topic; one query."""
    points = TopicTraffic.objects.filter(cluster=cluster, shard=shard_of(topic), format=1)
    records, octets = Avg(_element("topics", topic, 0)), Avg(_element("topics", topic, 1))
    series = read_series(points, chosen, now, records=records, bytes=octets)
    return _throughput(cluster, "topic", series, chosen, now, run)


def broker_throughput(
    cluster: Cluster, broker: int, chosen: TrafficRange, now: datetime, run: CollectorRun | None
) -> ThroughputContext:
    """Return records and bytes per second written to the partitions that a broker leads; one query."""
    points = ClusterPoint.objects.filter(cluster=cluster, format=1)
    records, octets = Avg(_element("brokers", str(broker), 0)), Avg(_element("brokers", str(broker), 1))
    series = read_series(points, chosen, now, records=records, bytes=octets)
    return _throughput(cluster, "broker", series, chosen, now, run)


def _throughput(
    cluster: Cluster,
    subject: str,
    series: TrafficSeries,
    chosen: TrafficRange,
    now: datetime,
    run: CollectorRun | None,
) -> ThroughputContext:
    highest = max((value for value in series.values["bytes"] if value is not None), default=0.0)
    divisor, unit = _scale(highest)
    octets = [None if value is None else round(value / divisor, 3) for value in series.values["bytes"]]
    records = [None if value is None else round(value, 3) for value in series.values["records"]]
    return {
        "cluster": cluster,
        "now": now,
        "freshness": freshness_of(run, now),
        "refetch_s": REFETCH_S,
        "ranges": RANGES,
        "chosen": chosen,
        "panels": [
            _build_panel(f"{subject}-bytes", _BYTES_IN, series, octets, f"{unit}/s"),
            _build_panel(f"{subject}-records", _RECORDS_IN, series, records, "/s"),
        ],
    }


@dataclass(frozen=True, slots=True)
class _TrafficFigure:
    """``note`` names the source of the values; ``empty`` says why there may be none."""

    title: str
    note: str
    empty: str


_BYTES_IN = _TrafficFigure(
    "Bytes in",
    "Estimated: new records × bytes per record on disk.",
    "Bytes are unknown for compacted and tiered topics, and until log directories and configs are read.",
)
_RECORDS_IN = _TrafficFigure("Records in", "Counted from log ends.", "Rates are known from the second refresh on.")


def _build_panel(
    key: str, figure: _TrafficFigure, series: TrafficSeries, values: Sequence[float | None], unit: str
) -> ChartPanel:
    line = ChartLine(figure.title.lower(), 1, values, 2)
    spec = ChartSpec(series.times, series.begin.timestamp(), series.end, [line], unit=unit)

    def cell(value: float) -> str:
        return f"{value:,.1f} {unit}"

    known = [(value, place) for place, value in enumerate(values) if value is not None]
    summary = "No data in this time."
    if known:
        newest, last = known[-1]
        highest, place = max(known)
        summary = f"{cell(newest)} at {_clock(series, last)}; highest {cell(highest)} at {_clock(series, place)}."
    return ChartPanel(key, figure.title, summary, spec, largest_rows(spec, cell), figure.note, figure.empty)


def _clock(series: TrafficSeries, place: int) -> str:
    return f"{datetime.fromtimestamp(series.times[place], UTC):%H:%M}"
