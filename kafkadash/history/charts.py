"""History pages of clusters, groups, topics, brokers and the quorum, from the rollups of the pipeline.

Each view takes ``?range=hour``, ``day``, ``week`` or ``year`` and uses nine queries at most. A panel shows a series as
text, as a chart and as a table; a bucket has one value or is a gap.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, TypeVar

from django.db.models import Max
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core import formatting as wording
from kafkadash.core.charts import ChartLine, ChartMark, ChartSpec, Ink
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.history.errors import HistoryErrorCode
from kafkadash.history.models import Rollup, Series, SeriesKind
from kafkadash.history.partitions import DAY, HOUR, MINUTE
from kafkadash.history.schedule import PIPELINE
from kafkadash.history.standing import PipelineStatus, pipeline_standing
from kafkadash.history.week import read_cluster_week, read_topic_week
from kafkadash.monitoring.annotations import read_marks
from kafkadash.monitoring.brokers import find_broker
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.groups.names import key_of_slug, stored_name
from kafkadash.monitoring.models import CollectorKind, GroupState
from kafkadash.monitoring.topics import find_topic
from kafkadash.monitoring.traffic.pages import format_byte_rate, format_record_rate

Name = TypeVar("Name", str, int)


@dataclass(frozen=True, slots=True)
class HistoryRange:
    """``grain``: seconds of a bucket that is drawn; ``chosen_by``: of those by which the worst series is found."""

    name: str
    words: str
    length: timedelta
    grain: int
    chosen_by: int
    bucket: str

    def span(self, now: datetime) -> tuple[datetime, datetime]:
        """Whole buckets; the one that has only begun is the last."""
        end = datetime.fromtimestamp((now.timestamp() // self.grain + 1) * self.grain, UTC)
        return end - self.length, end


RANGES = (
    HistoryRange("hour", "hour", timedelta(hours=1), MINUTE, MINUTE, "minute"),
    HistoryRange("day", "day", timedelta(days=1), MINUTE, HOUR, "minute"),
    HistoryRange("week", "week", timedelta(days=7), HOUR, HOUR, "hour"),
    HistoryRange("year", "year", timedelta(days=365), DAY, DAY, "day"),
)
DEFAULT_RANGE = RANGES[1]
LONGEST_MARKED = timedelta(days=7)


SHORTEST_RANGE = RANGES[0]


def range_named(name: str | None) -> HistoryRange | None:
    """Return the range of that name, the default for a name that is none; None without a name."""
    return None if name is None else next((r for r in RANGES if r.name == name), DEFAULT_RANGE)


@dataclass(frozen=True, slots=True)
class SeriesLines:
    """``values``: column → one per bucket, None where there is none; the first bucket begins at ``begin``."""

    begin: datetime
    grain: int
    values: Mapping[str, Sequence[float | None]]

    def at(self, bucket: int) -> datetime:
        return self.begin + timedelta(seconds=bucket * self.grain)

    @property
    def buckets(self) -> int:
        return len(next(iter(self.values.values())))

    @property
    def newest(self) -> int | None:
        """The last bucket of which something is known."""
        return max((n for values in self.values.values() for n, v in enumerate(values) if v is not None), default=None)

    @property
    def oldest_at(self) -> datetime | None:
        """The first bucket of which something is known."""
        known = (n for values in self.values.values() for n, v in enumerate(values) if v is not None)
        place = min(known, default=None)
        return None if place is None else self.at(place)

    @property
    def newest_at(self) -> datetime | None:
        return None if self.newest is None else self.at(self.newest)

    @property
    def known(self) -> int:
        """Buckets of which something is known."""
        return sum(any(value is not None for value in bucket) for bucket in zip(*self.values.values(), strict=True))


def read_lines(
    series: Collection[int], columns: Sequence[str], chosen: HistoryRange, now: datetime
) -> Mapping[int | None, SeriesLines]:
    """Return the lines of each series with one query, and under None lines without values; no query without series."""
    begin, end = chosen.span(now)
    buckets = round(chosen.length.total_seconds() / chosen.grain)
    values: dict[int | None, dict[str, list[float | None]]] = {
        key: {name: [None] * buckets for name in columns} for key in (*series, None)
    }
    rows = Rollup.objects.filter(series__in=series, grain=chosen.grain, bucket__gte=begin, bucket__lt=end)
    for key, bucket, *figures in rows.values_list("series_id", "bucket", *columns) if series else ():
        place = round((bucket - begin).total_seconds() / chosen.grain)
        for name, value in zip(columns, figures, strict=True):
            values[key][name][place] = value
    return {key: SeriesLines(begin, chosen.grain, _drop_begun_bucket(lines)) for key, lines in values.items()}


def _drop_begun_bucket(lines: Mapping[str, list[float | None]]) -> Mapping[str, Sequence[float | None]]:
    """Leave out the bucket that has only begun until something is known of it."""
    if any(line[-1] is not None for line in lines.values()):
        return lines
    return {name: line[:-1] for name, line in lines.items()}


def worst_of(series: Mapping[Name, int], chosen: HistoryRange, now: datetime) -> Name | None:
    """Return the one with the largest value of the time, or the first where none is known.

    One query; a second one where no bucket of the coarser grain is over yet.
    """
    begin, end = chosen.span(now)
    names = {pk: name for name, pk in series.items()}
    for grain in dict.fromkeys((chosen.chosen_by, chosen.grain)):
        found = (
            Rollup.objects.filter(
                series__in=series.values(), grain=grain, bucket__gte=begin, bucket__lt=end, most__isnull=False
            )
            .values_list("series_id")
            .annotate(largest=Max("most"))
            .order_by("-largest", "series_id")
            .first()
        )
        if found:
            return names[found[0]]
    return min(series, default=None)


_TABLE_ROWS = 24


@dataclass(frozen=True, slots=True)
class ChartMeasure:
    """A unit. ``steps``: (from which top on, what the axis says, by what it is divided), the largest first.

    ``sentence`` names the unit, ``cell`` does so where the head of its column does not. ``least``: the lowest top of an
    axis.
    """

    steps: Sequence[tuple[float, str, float]]
    least: float
    sentence: Callable[[int], str]
    cell: Callable[[int], str]


def _format_number(value: int) -> str:
    return f"{value:,}"


# The heading has the unit: beside the figures of the axis there is no room for "records".
RECORDS = ChartMeasure([(0, "", 1)], 10, lambda value: choose_plural("# record|# records", value), _format_number)
REPLICAS = ChartMeasure([(0, "", 1)], 10, lambda value: choose_plural("# replica|# replicas", value), _format_number)
BYTES = ChartMeasure(
    [(1e12, "TB", 1e12), (1e9, "GB", 1e9), (1e6, "MB", 1e6), (1e3, "kB", 1e3), (0, "B", 1)],
    10,
    wording.format_size,
    wording.format_size,
)
BYTE_RATE = ChartMeasure(
    [(least, f"{unit}/s", by) for least, unit, by in BYTES.steps], 10, format_byte_rate, format_byte_rate
)
MILLISECONDS = ChartMeasure([(20_000, "s", 1000), (0, "ms", 1)], 100, lambda value: f"{value:,} ms", _format_number)


def _format_thousandths(value: int) -> str:
    return format_record_rate(value / 1000)


# Stored in thousandths of a record per second, so that slow topics do not have a rate of 0.
RECORD_RATE = ChartMeasure([(0, "/s", 1000)], 1000, _format_thousandths, _format_thousandths)


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """``column`` of the lines that were read; ``ink`` as ``static/js/charts.js`` has it."""

    column: str
    label: str
    ink: Ink
    width: float = 1


PERCENTILES = (SeriesLine("p50", "p50", 3), SeriesLine("p95", "p95", 1, 1.5), SeriesLine("most", "max", 2))
RATES = (SeriesLine("mean", "mean", 1, 1.5), SeriesLine("most", "max", 2))


@dataclass(frozen=True, slots=True)
class ShownSeries:
    """Content of a panel. ``leads``: the column that the summary is about; the summary calls it ``subject``.

    ``of``: a sentence that says of what a value is. ``events``: a column that counts what is marked in the
    chart, and what one and several of them are called. ``empty``: why there may be nothing, or ''. ``left_out``: a
    column that counts the partitions that a sum leaves out, or ''. ``shortest``: seconds of its shortest buckets.
    """

    kind: SeriesKind
    key: str
    title: str
    measure: ChartMeasure
    lines: Sequence[SeriesLine]
    leads: str
    subject: str
    of: str
    events: tuple[str, str] | None = None
    empty: str = ""
    left_out: str = ""
    shortest: int = MINUTE

    @property
    def columns(self) -> list[str]:
        return [line.column for line in self.lines]

    @property
    def events_head(self) -> str:
        """Head of the column of events: "Leader changes"."""
        return self.events[1].rpartition("# ")[2].capitalize() if self.events else ""


@dataclass(frozen=True, slots=True)
class HistoryTableRow:
    """The largest of some buckets, in the order of the lines; '' where nothing is known. ``events``: in those known.

    ``marks``: labels of the marks in these buckets.
    """

    at: datetime
    values: Sequence[str]
    events: int | None
    marks: str


@dataclass(frozen=True, slots=True)
class HistoryPanel:
    """Panel as ``history/_history_panel.html`` shows it. ``table_step``: buckets of a row."""

    shown: ShownSeries
    known: bool
    summary: str
    chart: str
    table_step: int
    rows: Sequence[HistoryTableRow]
    marked: bool


def build_panel(
    shown: ShownSeries, lines: SeriesLines, chosen: HistoryRange, marks: Sequence[ChartMark] = ()
) -> HistoryPanel:
    """``marks``: events of the cluster; a series that counts events of its own shows these alone."""
    size = max(1, math.ceil(lines.buckets / _TABLE_ROWS))
    known = any(value is not None for name in shown.columns for value in lines.values[name])
    drawn = [] if shown.events else [mark for mark in marks if mark.at < lines.at(lines.buckets).timestamp()]
    chart = _build_spec(shown, lines, drawn).data
    summary, rows = _describe_panel(shown, lines, chosen), _table(shown, lines, drawn, size)
    return HistoryPanel(shown, known, summary, chart, size, rows, bool(drawn))


def _describe_panel(shown: ShownSeries, lines: SeriesLines, chosen: HistoryRange) -> str:
    known = [(value, bucket) for bucket, value in enumerate(lines.values[shown.leads]) if value is not None]
    if not known:
        return f"No data for the last {chosen.words}."
    worst, bucket = max(known)
    newest, last = known[-1]
    most = shown.measure.sentence(round(worst))
    text = f"{shown.subject}: peak {most} at {_format_clock(lines.at(bucket), chosen)}"
    if bucket == last:
        text += ", the latest value."
    else:
        text += f"; latest {shown.measure.cell(round(newest))} at {_format_clock(lines.at(last), chosen)}."
    gaps = _describe_gaps(lines, [bucket for _, bucket in known], chosen)
    return " ".join([text, *_describe_left_out(shown, lines, last), *gaps])


def _describe_left_out(shown: ShownSeries, lines: SeriesLines, bucket: int) -> Iterator[str]:
    number = lines.values[shown.left_out][bucket] if shown.left_out else None
    if number:
        partitions = choose_plural("# partition|# partitions", round(number))
        yield f"Latest sum without {partitions}, whose rate is unknown."


def _describe_gaps(lines: SeriesLines, known: Sequence[int], chosen: HistoryRange) -> Iterator[str]:
    first = known[0]
    if first:
        yield f"No data before {_format_clock(lines.at(first), chosen)}."
    after = lines.buckets - first
    if missing := after - len(known):
        yield f"No data in {missing:,} of {f'the last {after:,}' if first else f'{after:,}'} {chosen.bucket}s."


def _format_clock(at: datetime, chosen: HistoryRange) -> str:
    if chosen.bucket == "day":
        return at.strftime("%-d %b")
    return at.strftime("%H:%M" if chosen.length <= timedelta(days=1) else "%-d %b %H:%M")


def _build_spec(shown: ShownSeries, lines: SeriesLines, marks: Sequence[ChartMark]) -> ChartSpec:
    largest = max((value for name in shown.columns for value in lines.values[name] if value is not None), default=0)
    top = max(shown.measure.least, largest * 1.12)
    _, unit, by = next(step for step in shown.measure.steps if top >= step[0])
    return ChartSpec(
        [lines.at(bucket).timestamp() for bucket in range(lines.buckets)],
        lines.begin.timestamp(),
        lines.at(lines.buckets).timestamp(),
        [
            ChartLine(line.label, line.ink, [_scale_value(v, by) for v in lines.values[line.column]], line.width)
            for line in shown.lines
        ],
        unit,
        shown.measure.least / by,
        marks=[
            *marks,
            *(
                ChartMark(lines.at(bucket).timestamp(), choose_plural(shown.events[1], number))
                for bucket, number in enumerate(_count_events(shown, lines))
                if number and shown.events
            ),
        ],
    )


def _scale_value(value: float | None, by: float) -> float | None:
    return value if value is None or by == 1 else round(value / by, 3)


def _count_events(shown: ShownSeries, lines: SeriesLines) -> list[int | None]:
    """Return one number of events per bucket."""
    if not shown.events:
        return []
    return [None if number is None else round(number) for number in lines.values[shown.events[0]]]


def _table(shown: ShownSeries, lines: SeriesLines, marks: Sequence[ChartMark], size: int) -> list[HistoryTableRow]:
    rows, events = [], _count_events(shown, lines)
    for start in range(0, lines.buckets, size):
        part = slice(start, start + size)
        some = [
            max((value for value in lines.values[name][part] if value is not None), default=None)
            for name in shown.columns
        ]
        words = ["" if value is None else shown.measure.cell(round(value)) for value in some]
        counted = [number for number in events[part] if number is not None]
        begin, end = lines.at(start), lines.at(min(start + size, lines.buckets))
        labels = dict.fromkeys(mark.label for mark in marks if begin.timestamp() <= mark.at < end.timestamp())
        rows.append(HistoryTableRow(begin, words, sum(counted) if counted else None, ", ".join(labels)))
    return rows[::-1]


_GROUP = ShownSeries(
    SeriesKind.GROUP,
    "group-history",
    "Lag, records",
    RECORDS,
    PERCENTILES,
    "p95",
    "p95",
    "Across all partitions and samples.",
)
_CLUSTER_LAG = ShownSeries(
    SeriesKind.CLUSTER,
    "cluster-lag-history",
    "Lag, records",
    RECORDS,
    PERCENTILES,
    "p95",
    "p95",
    "Across all groups, partitions and samples.",
    empty="Possibly no consumer group has committed offsets.",
)
_TOPIC_LAG = ShownSeries(
    SeriesKind.TOPIC,
    "topic-lag-history",
    "Lag, records",
    RECORDS,
    PERCENTILES,
    "p95",
    "p95",
    "Across all groups, partitions and samples.",
    empty="Possibly no consumer group reads the topic.",
)
_TOPIC_SIZE = ShownSeries(
    SeriesKind.TOPIC,
    "topic-size-history",
    "Size on disk",
    BYTES,
    [SeriesLine("other", "all replicas", 1, 1.5)],
    "other",
    "Size",
    "All replicas, as last read.",
    empty="Sizes require a response from every broker.",
)
_BROKER_BYTES = ShownSeries(
    SeriesKind.BROKER,
    "broker-bytes-history",
    "Replica bytes",
    BYTES,
    [SeriesLine("total", "all replicas", 1, 1.5), SeriesLine("most", "largest replica", 2)],
    "total",
    "Total",
    "The total is the mean replica size times the number of replicas: an estimate while these change.",
)
_BROKER_REPLICAS = ShownSeries(
    SeriesKind.BROKER,
    "broker-replicas-history",
    "Replicas",
    REPLICAS,
    [SeriesLine("other", "replicas", 1, 1.5)],
    "other",
    "Replicas",
    "Replicas in the log directories, as last read.",
)
_NODE_LAG = ShownSeries(
    SeriesKind.QUORUM,
    "node-lag-history",
    "Lag, ms",
    MILLISECONDS,
    PERCENTILES,
    "p95",
    "p95",
    "Across all samples, on the leader’s clock.",
    events=("changes", "# leader change|# leader changes"),
    empty="The leader has no lag. Choose another node.",
)
_NODE_FETCH = ShownSeries(
    SeriesKind.QUORUM,
    "node-fetch-history",
    "Last fetch age, ms",
    MILLISECONDS,
    [SeriesLine("other", "last fetch age", 1, 1.5)],
    "other",
    "Last fetch age",
    "Across all samples, on the leader’s clock.",
    empty="The leader does not fetch. Choose another node.",
)
_BYTES_IN = ShownSeries(
    SeriesKind.BYTES_IN,
    "bytes-in-history",
    "Bytes in (estimated)",
    BYTE_RATE,
    RATES,
    "mean",
    "Mean",
    "Bytes per second: new records × bytes per record on disk.",
    empty="Bytes are unknown for compacted and tiered topics, and until log directories and configs are read.",
    left_out="other",
    shortest=HOUR,
)
_RECORDS_IN = ShownSeries(
    SeriesKind.RECORDS_IN,
    "records-in-history",
    "Records in",
    RECORD_RATE,
    RATES,
    "mean",
    "Mean",
    "Records per second, counted from log ends.",
    empty="Rates are known from the second refresh on.",
    left_out="other",
    shortest=HOUR,
)
_TRAFFIC = (_BYTES_IN, _RECORDS_IN)


def group_history_context(
    cluster: Cluster, group: str, topic: str | None, chosen: HistoryRange | None, now: datetime
) -> dict[str, Any]:
    """Return the history of one topic of the group; by default the topic with the largest lag."""
    series = _read_series(cluster, SeriesKind.GROUP, "topic", group=stored_name(group))
    shown = topic if topic in series else worst_of(series, chosen or DEFAULT_RANGE, now)
    unknown = topic and topic not in series
    return {
        "group": group,
        "choices": sorted(series),
        "choice": shown or "",
        "choice_name": "topic",
        "problem": message_text(HistoryErrorCode.NO_HISTORY_OF_TOPIC, topic=topic[:249]) if topic and unknown else "",
        **_context(cluster, {SeriesKind.GROUP: series.get(shown or "")}, [_GROUP], chosen, now),
    }


def cluster_history_context(cluster: Cluster, chosen: HistoryRange | None, now: datetime) -> dict[str, Any]:
    """Return lag and traffic of all topics of the cluster, and its rates by hour of the week."""
    shown = (_CLUSTER_LAG, *_TRAFFIC)
    series = _find_series(cluster, shown)
    return {"week": read_cluster_week(cluster), **_context(cluster, series, shown, chosen, now)}


def topic_history_context(cluster: Cluster, topic: str, chosen: HistoryRange | None, now: datetime) -> dict[str, Any]:
    shown = (_TOPIC_LAG, _TOPIC_SIZE, *_TRAFFIC)
    series, week = _find_series(cluster, shown, topic=topic), read_topic_week(cluster, topic)
    return {"topic": topic, "week": week, **_context(cluster, series, shown, chosen, now)}


def broker_history_context(cluster: Cluster, broker: int, chosen: HistoryRange | None, now: datetime) -> dict[str, Any]:
    shown = (_BROKER_BYTES, _BROKER_REPLICAS, *_TRAFFIC)
    series = _find_series(cluster, shown, node=broker)
    return {"broker": broker, **_context(cluster, series, shown, chosen, now)}


def quorum_history_context(
    cluster: Cluster, node: str | None, chosen: HistoryRange | None, now: datetime
) -> dict[str, Any]:
    """Return the history of one node of the quorum; by default the node that was farthest behind."""
    series = _read_series(cluster, SeriesKind.QUORUM, "node")
    chosen_node = next((known for known in series if str(known) == node), None)
    shown = worst_of(series, chosen or DEFAULT_RANGE, now) if chosen_node is None else chosen_node
    return {
        "choices": sorted(series),
        "choice": shown,
        "choice_name": "node",
        "zookeeper": cluster.mode == ClusterMode.ZOOKEEPER,
        "problem": message_text(HistoryErrorCode.NO_HISTORY_OF_NODE, typed=node[:20])
        if node and series and chosen_node is None
        else "",
        **_context(
            cluster,
            {SeriesKind.QUORUM: None if shown is None else series[shown]},
            [_NODE_LAG, _NODE_FETCH],
            chosen,
            now,
        ),
    }


def _read_series(cluster: Cluster, kind: SeriesKind, by: str, **about: Any) -> Mapping[Any, int]:
    return dict(Series.objects.filter(cluster=cluster, kind=kind, **about).values_list(by, "pk"))


def _find_series(
    cluster: Cluster, shown: Sequence[ShownSeries], *, topic: str = "", node: int = Series.NO_NODE
) -> Mapping[str, int]:
    """Return kind → series of a topic, of a broker, or of the whole cluster."""
    kinds = {one.kind for one in shown}
    found = Series.objects.filter(cluster=cluster, kind__in=kinds, group="", topic=topic, node=node)
    return dict(found.values_list("kind", "pk"))


class HistoryContext(TypedDict):
    cluster: Cluster
    now: datetime
    chosen: HistoryRange
    ranges: tuple[HistoryRange, ...]
    standing: PipelineStatus
    newest_at: datetime | None
    panels: list[HistoryPanel]


def _context(
    cluster: Cluster,
    series: Mapping[str, int | None],
    shown: Sequence[ShownSeries],
    asked: HistoryRange | None,
    now: datetime,
) -> HistoryContext:
    """``series``: by kind. Without a range that was asked for, a history that has only begun is shown over the shortest
    one.
    """
    chosen = asked or DEFAULT_RANGE
    lines = _read_values(series, shown, chosen, now)
    oldest_at = min((each.oldest_at for each in lines if each.oldest_at is not None), default=None)
    if asked is None and oldest_at is not None and oldest_at >= now - SHORTEST_RANGE.length:
        chosen = SHORTEST_RANGE
        lines = _read_values(series, shown, chosen, now)
    # A year has more events than a chart has room for.
    marks = read_marks(cluster.pk, *chosen.span(now)) if chosen.length <= LONGEST_MARKED else []
    panels = [
        build_panel(one, each, chosen, marks)
        for one, each in zip(shown, lines, strict=True)
        if chosen.grain >= one.shortest
    ]
    return {
        "cluster": cluster,
        "now": now,
        "chosen": chosen,
        "ranges": RANGES,
        "standing": pipeline_standing(now),
        "newest_at": max((each.newest_at for each in lines if each.newest_at is not None), default=None),
        "panels": panels,
    }


def _read_values(
    series: Mapping[str, int | None], shown: Sequence[ShownSeries], chosen: HistoryRange, now: datetime
) -> list[SeriesLines]:
    """Return the lines of each panel; one query."""
    named = {column for one in shown for column in (*one.columns, one.left_out, *(one.events or ())[:1])} - {""}
    stored = (named - {"total"}) | ({"mean", "other"} if "total" in named else set())
    found = read_lines([key for key in series.values() if key is not None], sorted(stored), chosen, now)
    return [_add_total(one, found[series.get(one.kind)]) for one in shown]


def _add_total(shown: ShownSeries, lines: SeriesLines) -> SeriesLines:
    """``total``: bytes of all replicas. A rollup has the mean size of one, and their number."""
    if "total" not in shown.columns:
        return lines
    pairs = zip(lines.values["mean"], lines.values["other"], strict=True)
    total = [None if mean is None or number is None else mean * number for mean, number in pairs]
    return SeriesLines(lines.begin, lines.grain, {**lines.values, "total": total})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def cluster_history(request: HttpRequest, slug: str) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    context = cluster_history_context(cluster, range_named(request.GET.get("range")), bar["now"])
    return _render_page(request, "cluster", {**bar, "tab": "overview", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def group_history(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """``?topic=`` one of those that the group reads."""
    cluster = cluster_for(request, slug, VIEW)
    known = GroupState.objects.filter(cluster=cluster, key=key_of_slug(group)).values_list("name", flat=True).first()
    if known is None:
        raise MissingObject(CollectionErrorCode.GROUP_NOT_SEEN, cluster=cluster.name, group=group)
    bar = cluster_bar(cluster, CollectorKind.GROUPS)
    chosen, topic = range_named(request.GET.get("range")), request.GET.get("topic")
    context = {"address": group, **group_history_context(cluster, known, topic, chosen, bar["now"])}
    return _render_page(request, "group", {**bar, "tab": "groups", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def topic_history(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    find_topic(cluster, topic)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    context = topic_history_context(cluster, topic, range_named(request.GET.get("range")), bar["now"])
    return _render_page(request, "topic", {**bar, "tab": "topics", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def broker_history(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    find_broker(cluster, broker_id)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    context = broker_history_context(cluster, broker_id, range_named(request.GET.get("range")), bar["now"])
    return _render_page(request, "broker", {**bar, "tab": "brokers", **context})


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def quorum_history(request: HttpRequest, slug: str) -> HttpResponse:
    """``?node=`` one of the quorum's."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.QUORUM)
    chosen = range_named(request.GET.get("range"))
    context = quorum_history_context(cluster, request.GET.get("node"), chosen, bar["now"])
    return _render_page(request, "quorum", {**bar, "tab": "quorum", **context})


def _render_page(request: HttpRequest, of: str, context: dict[str, Any]) -> HttpResponse:
    return render(request, f"history/{of}_history.html", {**context, "live_keys": [PIPELINE]})
