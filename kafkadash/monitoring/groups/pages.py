"""Pages of consumer groups: the list, the summary for the overview, and one group with its figures and partitions.

The list is filtered, sorted and paged in the database, without reading the windows of samples.
The charts show lag and time lag of a group over the last hours, from stored runs of equal figures.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, TypedDict, TypeVar

from django.core.paginator import Page
from django.db.models import Count, F, Q, QuerySet
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.charts import (
    ChartBand,
    ChartLine,
    ChartMark,
    ChartPanel,
    ChartRange,
    ChartSpec,
    find_range,
    largest_rows,
)
from kafkadash.core.formatting import HOUR, format_duration, join_items, listed_shortly, long_duration
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.core.status import HealthState
from kafkadash.monitoring.annotations import read_marks
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, freshness_of, load_standing, not_read
from kafkadash.monitoring.groups.held_reads import STALLED, read_held
from kafkadash.monitoring.groups.names import key_of_slug, slug_of
from kafkadash.monitoring.groups.rules import (
    STATES,
    WINDOW,
    GroupLag,
    LagDrain,
    LagState,
    LagTrend,
    PartitionLag,
    TimeLag,
    lag_of,
)
from kafkadash.monitoring.groups.shares import SharePartition, read_partitions, read_share_members
from kafkadash.monitoring.groups.window import RANKS, WORST_FIRST, SampledMember, members_of, read_group
from kafkadash.monitoring.groups.wording import (
    WORDS,
    LagVerdict,
    describe_held,
    drain_words,
    group_verdict,
    partition_word,
    time_lag_words,
    unread_verdict,
)
from kafkadash.monitoring.models import CollectorKind, CollectorRun, GroupLagPoint, GroupState, UnjudgedGroup
from kafkadash.monitoring.offers import FeatureLack, KafkaFeature, load_lack
from kafkadash.monitoring.transactions.pages import load_standing_gaps
from kafkadash.monitoring.transactions.rules import committed_lag

T = TypeVar("T", int, float)
_CALM = (LagState.OK, LagState.UNKNOWN)
# A state that is worse than another when both were seen in one interval.
_WORSE = (LagState.OK, LagState.UNKNOWN, LagState.WARN, LagState.REWIND, LagState.ERR, LagState.STALL, LagState.STOP)


@dataclass(frozen=True, slots=True)
class LagRun:
    """Figures that held from ``since`` to ``until`` (seconds since the epoch). Lag in records, time lag in seconds.

    ``worst_lag`` is that of the partition with most, ``total_lag`` of all; None where not known.
    """

    since: float
    until: float
    worst: LagState
    worst_lag: int | None
    total_lag: int | None
    time_lag_s: float | None
    rest_time_lag_s: float | None


@dataclass(frozen=True, slots=True)
class VerdictBand:
    """A stretch in which the group was in one state that is not well; seconds since the epoch."""

    start: int
    end: int
    state: LagState
    open: bool

    @property
    def tone(self) -> str:
        return STATES[self.state].value


@dataclass(frozen=True, slots=True)
class GroupHistory:
    """``step_s`` seconds an interval, the first begins at ``start``. Lines have a value for each, None is a gap."""

    start: int
    step_s: int
    worst: Sequence[int | None]
    total: Sequence[int | None]
    time: Sequence[float | None]
    rest_time: Sequence[float | None]
    bands: Sequence[VerdictBand]

    @property
    def end(self) -> int:
        return self.at(len(self.worst))

    def at(self, interval: int) -> int:
        return self.start + interval * self.step_s

    @property
    def known(self) -> bool:
        return any(value is not None for value in self.worst)


def group_history(runs: Iterable[LagRun], now: float, length_s: int, step_s: int) -> GroupHistory:
    """The greatest of each interval; an interval in which nobody looked is a gap."""
    last = math.floor(now / step_s)
    first = last + 1 - math.ceil(length_s / step_s)
    number = last + 1 - first
    worst: list[int | None] = [None] * number
    total: list[int | None] = [None] * number
    time: list[float | None] = [None] * number
    rest_time: list[float | None] = [None] * number
    states: list[LagState | None] = [None] * number
    for run in runs:
        begin, end = math.floor(run.since / step_s), min(last, math.floor(run.until / step_s))
        for at in range(max(0, begin - first), end - first + 1):
            worst[at] = _max_of_known(worst[at], run.worst_lag)
            total[at] = _max_of_known(total[at], run.total_lag)
            time[at] = _max_of_known(time[at], run.time_lag_s)
            rest_time[at] = _max_of_known(rest_time[at], run.rest_time_lag_s)
            seen = states[at]
            states[at] = run.worst if seen is None else max(seen, run.worst, key=_WORSE.index)
    if number > 1 and states[-1] is None:  # it has only begun
        for column in (worst, total, time, rest_time, states):
            column.pop()
    start = first * step_s
    return GroupHistory(start, step_s, worst, total, time, rest_time, _bands(states, start, step_s))


def _max_of_known(one: T | None, other: T | None) -> T | None:
    if one is None or other is None:
        return other if one is None else one
    return max(one, other)


def _bands(states: Sequence[LagState | None], start: int, step_s: int) -> list[VerdictBand]:
    found: list[VerdictBand] = []
    for at, state in enumerate(states):
        if state is None or state in _CALM:
            continue
        begin, end = start + at * step_s, start + (at + 1) * step_s
        is_open = at == len(states) - 1
        if found and found[-1].end == begin and found[-1].state is state:
            found[-1] = VerdictBand(found[-1].start, end, state, is_open)
        else:
            found.append(VerdictBand(begin, end, state, is_open))
    return found


def lag_summary(seen: GroupHistory, clock: Callable[[int], str]) -> str:
    """Return a one-line summary of the lag. ``clock`` formats a time in seconds as text."""
    known = [value for value in seen.total if value is not None]
    if not known:
        return "No lag data in this period."
    top = max(known)
    if not top:
        return f"No lag in this period.{_describe_gaps(seen)}"
    if known[-1] == top:
        most = f"Lag is {choose_plural('# record|# records', top)}, the peak of this period."
    else:
        at = clock(seen.at(seen.total.index(top)))
        most = f"Peak lag {choose_plural('# record|# records', top)} at {at}; {known[-1]:,} at the last sample."
    return f"{most}{_bands_words(seen, clock)}{_describe_gaps(seen)}"


def time_summary(seen: GroupHistory, clock: Callable[[int], str]) -> str:
    known = [value for value in seen.time if value is not None]
    if not known:
        return "No time lag data in this period."
    top = max(known)
    at = clock(seen.at(seen.time.index(top)))
    longest = f"Peak {format_duration(top)} at {at}. " if top >= 1 else "Below 1 s throughout. "
    return f"{longest}Age of the next record to read, estimated from log end offsets."


def _bands_words(seen: GroupHistory, clock: Callable[[int], str]) -> str:
    if not seen.bands:
        return ""
    words = [
        f"{WORDS[band.state].lower()} {'since' if band.open else 'from'} {clock(band.start)}"
        f"{'' if band.open else f' to {clock(band.end)}'}"
        for band in reversed(seen.bands)
    ]
    text = listed_shortly(words)
    return f" {text[:1].upper()}{text[1:]}."


def _describe_gaps(seen: GroupHistory) -> str:
    first = next((n for n, value in enumerate(seen.worst) if value is not None), 0)
    missing = sum(value is None for value in seen.worst[first:])
    return f" No data in {missing} of {len(seen.worst) - first} intervals." if missing else ""


_TABLE_ROWS = 24
_LONG_S = 600  # from here on the axis of the time lag is in minutes


RANGES = (ChartRange("hour", "hour", HOUR, 60), ChartRange("day", "day", 24 * HOUR, 600))


class GroupHistoryContext(TypedDict):
    chosen: ChartRange
    ranges: tuple[ChartRange, ...]
    lag: ChartPanel
    time: ChartPanel


def history_context(row: GroupState, now: datetime, chosen: ChartRange, interval_s: float) -> GroupHistoryContext:
    """Return both charts. An interval of a chart is longer than that of the collector."""
    step = max(chosen.step_s, math.ceil(1.5 * interval_s))
    seen = group_history(
        _read_runs(row, now - timedelta(seconds=chosen.length_s)), now.timestamp(), chosen.length_s, step
    )
    single = row.partitions == 1
    begin, end = (datetime.fromtimestamp(at, UTC) for at in (seen.start, seen.end))
    marks = read_marks(row.cluster_id, begin, end)
    return {
        "chosen": chosen,
        "ranges": RANGES,
        "lag": _lag_panel(seen, marks, now, interval_s, single=single),
        "time": _time_panel(seen, marks, now, single=single),
    }


def _lag_panel(
    seen: GroupHistory, marks: Sequence[ChartMark], now: datetime, interval_s: float, *, single: bool
) -> ChartPanel:
    lines = [ChartLine("worst partition", 2, seen.worst), ChartLine("all partitions", 1, seen.total, 2)]
    spec = _build_spec(seen, lines[1:] if single else lines, marks, "", 10)
    return ChartPanel(
        "group-lag",
        "Lag, records",
        lag_summary(seen, lambda at: _format_clock(at, now)),
        spec,
        largest_rows(spec, lambda value: f"{value:,.0f}"),
        "Committed offsets against log end offsets, in records.",
        f"Samples are taken every {format_duration(interval_s)}. Choose a longer period to find some.",
    )


def _time_panel(seen: GroupHistory, marks: Sequence[ChartMark], now: datetime, *, single: bool) -> ChartPanel:
    in_minutes = max((value for value in seen.time if value is not None), default=0) >= _LONG_S
    lines = [
        ChartLine("second longest", 2, _scale_values(seen.rest_time, in_minutes)),
        ChartLine("longest", 1, _scale_values(seen.time, in_minutes), 2),
    ]
    spec = _build_spec(seen, lines[1:] if single else lines, marks, "min" if in_minutes else "s", 1)
    return ChartPanel(
        "group-time",
        "Time lag",
        time_summary(seen, lambda at: _format_clock(at, now)),
        spec,
        largest_rows(spec, lambda value: format_duration(value * (60 if in_minutes else 1))),
        "Age of the next record to read, by partition.",
        "Time lag needs a commit and two log end offsets.",
    )


def _build_spec(
    seen: GroupHistory, lines: Sequence[ChartLine], marks: Sequence[ChartMark], unit: str, top: float
) -> ChartSpec:
    bands = [ChartBand(b.start, b.end, b.tone, WORDS[b.state]) for b in seen.bands]
    times = [seen.at(interval) for interval in range(len(seen.worst))]
    return ChartSpec(times, seen.start, seen.end, lines if seen.known else [], unit, top, marks, bands)


def _read_runs(row: GroupState, start: datetime) -> list[LagRun]:
    """Stored runs; the newest goes on to the group's last look."""
    points = GroupLagPoint.objects.filter(group=row, at__gte=start).order_by("at", "since")
    runs = [_run_of_point(p, p.at) for p in points]
    newest = GroupLagPoint.objects.filter(group=row, at=row.point_at).last() if row.point_at else None
    return runs if newest is None else [*runs, _run_of_point(newest, row.taken_at)]


def _run_of_point(point: GroupLagPoint, until: datetime) -> LagRun:
    return LagRun(
        point.since.timestamp(),
        until.timestamp(),
        LagState(point.worst),
        point.worst_lag,
        point.lag,
        point.time_lag_s,
        point.rest_time_lag_s,
    )


def _scale_values(values: Sequence[float | None], in_minutes: bool) -> list[float | None]:
    return [None if v is None else round(v / 60, 2) if in_minutes else round(v, 1) for v in values]


HEAT_ROWS, HEAT_LEVELS = 40, 5


@dataclass(frozen=True, slots=True)
class HeatCell:
    """Lag of a partition at one sample, in records; None is unknown. ``level``: 0 without lag, 5 near the most."""

    lag: int | None
    level: int


@dataclass(frozen=True, slots=True)
class HeatRow:
    """A partition with its lag at each time of the heatmap."""

    name: str
    cells: Sequence[HeatCell]


@dataclass(frozen=True, slots=True)
class LagHeatmap:
    """Lag by partition and sample, partitions with the most lag first. ``more``: partitions that are left out."""

    times: Sequence[datetime]
    rows: Sequence[HeatRow]
    more: int


def lag_heatmap(partitions: Sequence[PartitionLag]) -> LagHeatmap:
    """Return the heatmap of the samples in the window; the levels divide the range from 0 to the most lag evenly."""
    times = sorted({sample.at for each in partitions for sample in each.looks})[-WINDOW:]
    lags = {
        each.name: {sample.at: lag_of(sample.committed, sample.end) for sample in each.looks} for each in partitions
    }
    most = max((lag for own in lags.values() for at in times if (lag := own.get(at)) is not None), default=0)
    order = sorted(lags, key=lambda name: (-max((lag or 0 for lag in lags[name].values()), default=0), name))
    rows = [
        HeatRow(name, [HeatCell(lags[name].get(at), _heat_level(lags[name].get(at), most)) for at in times])
        for name in order[:HEAT_ROWS]
    ]
    return LagHeatmap([datetime.fromtimestamp(at, UTC) for at in times], rows, max(0, len(order) - HEAT_ROWS))


def _heat_level(lag: int | None, most: int) -> int:
    if not lag or not most:
        return 0
    return math.ceil(HEAT_LEVELS * lag / most)


def _format_clock(at: int, now: datetime) -> str:
    then = datetime.fromtimestamp(at, UTC)
    return f"{then:%H:%M}" if now - then < timedelta(hours=20) else f"{then:%-d %b %H:%M}"


MOST_OTHERS = 100
"""Groups that are not judged, on one page."""

NOTHING = "nothing"
"""In addresses: groups that have committed nothing."""
VERDICTS = FilterChoice(
    "verdict", "verdict", {**{state.value: WORDS[state] for state in WORST_FIRST}, NOTHING: "No commits"}
)
KAFKA_STATES = FilterChoice(
    "state",
    "state",
    {
        "stable": "Stable",
        "empty": "Empty",
        "rebalancing": "Rebalancing",
        "dead": "Dead",
        "other": "Other",
    },
)
TYPES = FilterChoice(
    "type",
    "type",
    {"classic": "Classic", "consumer": "Consumer", "streams": "Streams", "share": "Share", "other": "Other types"},
)
_UNJUDGED_TYPES = ("share", "other")
# Of all protocols (org.apache.kafka.common.GroupState); each is in one of the filters.
_STATES: Mapping[str, tuple[str, ...]] = {
    "stable": ("Stable",),
    "empty": ("Empty",),
    "rebalancing": ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"),
    "dead": ("Dead",),
}
_DO: Mapping[LagState, str] = {
    LagState.STOP: "without active members",
    LagState.STALL: "stalled",
    LagState.ERR: "with an error",
    LagState.REWIND: "with offsets moved backwards",
    LagState.WARN: "falling behind",
}


@dataclass(frozen=True, slots=True)
class GroupLine:
    """Group in a list. ``old``: the group's data is stale, so its current state is unknown."""

    group: GroupState
    freshness: FactFreshness

    @property
    def slug(self) -> str:
        return slug_of(self.group.name)

    @property
    def old(self) -> bool:
        return self.freshness.stale

    @property
    def state(self) -> HealthState:
        """Colour and shape; nothing old is green."""
        if self.old or not self.group.worst:
            return HealthState.UNKNOWN
        return STATES[LagState(self.group.worst)]

    @property
    def word(self) -> str:
        if not self.group.worst:
            return "No commits"
        word = WORDS[LagState(self.group.worst)]
        return f"Was {word}" if self.old else word

    @property
    def worst_name(self) -> str:
        if self.group.worst_partition is None:
            return ""
        return f"{self.group.worst_topic}-{self.group.worst_partition}"

    @property
    def topics(self) -> list[str]:
        return sorted(self.group.topics)


@dataclass(frozen=True, slots=True)
class UnjudgedLine:
    """Group without a verdict in a list; ``freshness`` is that of its offsets, where it has some."""

    group: UnjudgedGroup
    freshness: FactFreshness

    @property
    def slug(self) -> str:
        return slug_of(self.group.name)


@dataclass(frozen=True, slots=True)
class GroupSegment:
    """A filter by verdict with how many groups it leaves."""

    value: str
    word: str
    number: int
    state: str


def group_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[VERDICTS, KAFKA_STATES, TYPES],
        texts=["q"],
        exact=["topic"],
        sorts={
            "worst": [F("rank"), F("worst_lag").desc(nulls_last=True), F("name")],
            "name": [F("name")],
            "lag": [F("lag"), F("name")],
            "time": [F("time_lag_s"), F("name")],
            "members": [F("members"), F("name")],
            "partitions": [F("partitions"), F("name")],
            "read": [F("read_rate"), F("name")],
        },
        descending_first={"lag", "time", "members", "partitions", "read"},
    )


class GroupListContext(TypedDict):
    listing: ListQuery
    page: Page[Any]
    total: int
    segments: list[GroupSegment]
    states: Mapping[str, str]
    types: Mapping[str, str]
    freshness: FactFreshness
    title: str
    other_groups: list[UnjudgedLine]
    others_more: bool
    others_only: bool
    rows: list[GroupLine]


def group_list_context(
    cluster: Cluster, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> GroupListContext:
    """Return the context of one page of groups, with the counts of all groups."""
    run = runs.get(CollectorKind.GROUPS)
    freshness = freshness_of(run, now)
    tally = tally_of(cluster)
    page = listing.page_of(_filter_groups(cluster, listing))
    others = list(_filter_others(cluster, listing)[: MOST_OTHERS + 1])
    return {
        "listing": listing,
        "page": page,
        "total": sum(tally.values()),
        "segments": _segments(tally),
        "states": KAFKA_STATES.words,
        "types": TYPES.words,
        "freshness": freshness,
        "title": title_of(cluster.name, tally, freshness, other_words(cluster)),
        "other_groups": [UnjudgedLine(row, _age_unjudged(row, freshness)) for row in others[:MOST_OTHERS]],
        "others_more": len(others) > MOST_OTHERS,
        "others_only": listing.values["type"] in _UNJUDGED_TYPES,
        "rows": [GroupLine(row, _freshness(row, run, freshness, now)) for row in page.object_list],
    }


def present_groups(cluster: Cluster) -> QuerySet[GroupState]:
    """Groups that Kafka lists, as far as is known."""
    return GroupState.objects.filter(cluster=cluster, gone_at=None)


def group_freshness(row: GroupState, run: CollectorRun | None, now: datetime) -> FactFreshness:
    """Return the freshness of one group: its coordinator may have failed to answer while others answered."""
    return _freshness(row, run, freshness_of(run, now), now)


def _freshness(row: GroupState, run: CollectorRun | None, of_kind: FactFreshness, now: datetime) -> FactFreshness:
    return FactFreshness(row.taken_at, run.interval_s if run else of_kind.interval_s, now)


def _filter_groups(cluster: Cluster, listing: ListQuery) -> QuerySet[GroupState]:
    rows = present_groups(cluster).defer("times", "counts")
    if verdict := listing.values["verdict"]:
        rows = rows.filter(worst="" if verdict == NOTHING else verdict)
    if state := listing.values["state"]:
        rows = rows.filter(_match_state(state))
    if kind := listing.values["type"]:
        rows = rows.none() if kind in _UNJUDGED_TYPES else rows.filter(type=TYPES.words[kind])
    if topic := listing.values["topic"]:
        rows = rows.filter(topics__has_key=topic)
    if text := listing.values["q"]:
        rows = rows.filter(name__icontains=text)
    return rows.order_by(*listing.order())


def _filter_others(cluster: Cluster, listing: ListQuery) -> QuerySet[UnjudgedGroup]:
    """Groups without a verdict that match; none of them has the verdict that is asked for."""
    rows = others_of(cluster).defer("offsets", "member_rows")
    kind = listing.values["type"]
    if listing.values["verdict"] or (kind and kind not in _UNJUDGED_TYPES):
        return rows.none()
    if kind:
        rows = rows.filter(is_share=kind == "share")
    if state := listing.values["state"]:
        rows = rows.filter(_match_state(state))
    if topic := listing.values["topic"]:
        rows = rows.filter(topics__has_key=topic)
    if text := listing.values["q"]:
        rows = rows.filter(name__icontains=text)
    return rows


def _match_state(state: str) -> Q:
    named = [word for words in _STATES.values() for word in words]
    return ~Q(state__in=named) if state == "other" else Q(state__in=_STATES[state])


def _age_unjudged(row: UnjudgedGroup, of_kind: FactFreshness) -> FactFreshness:
    return FactFreshness(row.read_at if row.is_share else row.taken_at, of_kind.interval_s, of_kind.now)


def tally_of(cluster: Cluster) -> dict[str, int]:
    """How many groups have a worst partition in each state; '' for those that have none."""
    found = present_groups(cluster).values("worst").annotate(number=Count("pk"))
    return {row["worst"]: row["number"] for row in found}


def _segments(tally: Mapping[str, int]) -> list[GroupSegment]:
    every = GroupSegment("", "All", sum(tally.values()), "")
    own = [GroupSegment(s.value, WORDS[s], tally.get(s.value, 0), STATES[s].value) for s in WORST_FIRST]
    return [every, *own, GroupSegment(NOTHING, VERDICTS.words[NOTHING], tally.get("", 0), HealthState.UNKNOWN.value)]


def others_of(cluster: Cluster) -> QuerySet[UnjudgedGroup]:
    """Groups without a verdict, by name."""
    return UnjudgedGroup.objects.filter(cluster=cluster).order_by("name")


def other_words(cluster: Cluster) -> str:
    """How many groups there are that are not judged, such as "2 share groups not evaluated"; "" without any."""
    kinds = others_of(cluster).order_by("kind").values_list("kind").annotate(number=Count("pk"))
    # A kind may be any word of a client.
    words = [f"{number:,} {kind} {choose_plural('group|groups', number)}" for kind, number in kinds]
    return f"{join_items(words)} not evaluated" if words else ""


def title_of(name: str, tally: Mapping[str, int], freshness: FactFreshness, others: str = "") -> str:
    """``others``: as ``other_words``, after the state of the consumer groups."""
    title = _describe_groups(name, tally, freshness)
    if not others or freshness.stale:
        return title
    return f"{title}; {others}"


def _describe_groups(name: str, tally: Mapping[str, int], freshness: FactFreshness) -> str:
    total = sum(tally.values())
    if freshness.taken_at is None:
        return f"{name}: no consumer group data yet"
    groups = choose_plural("# group|# groups", total)
    if freshness.stale and freshness.age_s is not None:
        return f"{name}: {groups} known {format_duration(freshness.age_s)} ago"
    if not total:
        return f"{name}: no consumer groups"
    wrong = [(number, words) for state, words in _DO.items() if (number := tally.get(state.value))]
    if wrong:
        (first, words), *others = wrong
        rest = "".join(f", {number:,} {each}" for number, each in others)
        return f"{name}: {first:,} of {groups} {words}{rest}"
    unknown, well = tally.get(LagState.UNKNOWN.value, 0), tally.get(LagState.OK.value, 0)
    if unknown == total:
        return f"{name}: {groups} not evaluated yet"
    if unknown:
        return f"{name}: {well:,} of {groups} OK, {unknown:,} unknown"
    if not well:
        return f"{name}: {groups} without commits"
    without = total - well
    return f"{name}: {well:,} of {groups} OK{f', {without:,} without commits' if without else ''}"


@dataclass(frozen=True, slots=True)
class ReaderLine:
    """A group that reads a topic: how many partitions of it, their lag, and the worst of their states."""

    group: GroupState
    freshness: FactFreshness
    partitions: int
    lag: int | None
    worst: LagState

    @property
    def slug(self) -> str:
        return slug_of(self.group.name)

    @property
    def state(self) -> HealthState:
        return HealthState.UNKNOWN if self.freshness.stale else STATES[self.worst]

    @property
    def word(self) -> str:
        return f"Was {WORDS[self.worst]}" if self.freshness.stale else WORDS[self.worst]


def readers_of(cluster: Cluster, topic: str, run: CollectorRun | None, now: datetime, most: int) -> list[ReaderLine]:
    """Groups that read the topic, the worst first."""
    rows = (
        present_groups(cluster).filter(topics__has_key=topic).order_by("rank", F("lag").desc(nulls_last=True), "name")
    )
    found = []
    for row in rows.defer("times", "counts")[:most]:
        number, lag, worst = row.topics[topic]
        found.append(ReaderLine(row, group_freshness(row, run, now), number, lag, LagState(worst)))
    return found


def find_share_readers(cluster: Cluster, topics: Collection[str]) -> QuerySet[UnjudgedGroup]:
    """Share groups that read one of the topics, by name."""
    return others_of(cluster).filter(topics__has_any_keys=sorted(topics), is_share=True)


def list_share_readers(cluster: Cluster, topic: str, most: int) -> list[tuple[str, str]]:
    """Return name and slug of share groups that read the topic."""
    names = find_share_readers(cluster, [topic]).values_list("name", flat=True)[:most]
    return [(name, slug_of(name)) for name in names]


class GroupsContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    freshness: FactFreshness
    title: str
    total: int
    unwell: int
    worst: GroupLine | None


def groups_context(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> GroupsContext:
    """``worst``: the group that is farthest from well, None where all are. Three queries."""
    seen = known or load_standing(cluster, now)
    freshness = seen.freshness_of(CollectorKind.GROUPS)
    tally = tally_of(cluster)
    unwell = sum(
        tally.get(s.value, 0) for s, colour in STATES.items() if colour not in (HealthState.OK, HealthState.UNKNOWN)
    )
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "freshness": freshness,
        "title": title_of(cluster.name, tally, freshness, other_words(cluster)),
        "total": sum(tally.values()),
        "unwell": unwell,
        "worst": _find_worst_group(cluster, seen, now) if unwell else None,
    }


def _find_worst_group(cluster: Cluster, seen: CollectionFreshness, now: datetime) -> GroupLine | None:
    """The first one of the list of groups as it is sorted unless asked otherwise."""
    rows = present_groups(cluster).defer("times", "counts")
    row = rows.order_by("rank", F("worst_lag").desc(nulls_last=True), "name").first()
    return None if row is None else GroupLine(row, group_freshness(row, seen.runs.get(CollectorKind.GROUPS), now))


@dataclass(frozen=True, slots=True)
class SeenGroup:
    """A partition with what takes a while to work out, once."""

    lag: PartitionLag
    time: TimeLag | None
    trend: LagTrend


@dataclass(frozen=True, slots=True)
class FigureTile:
    """``value`` and ``unit``, and ``words`` about it; ``state`` colours it where something is to be seen."""

    name: str
    value: str
    unit: str
    words: str
    state: str = ""


def tiles_of(group: GroupLag, every: Sequence[SeenGroup], *, stale: bool) -> list[FigureTile]:
    """Nothing old is green, nor coloured at all."""
    warned = group.worst is not None and STATES[group.verdict] is HealthState.WARNING and not stale
    state = HealthState.WARNING.value if warned else ""
    reads = [seen.trend.read for seen in every]
    writes = [seen.trend.written for seen in every]
    return [
        _lag_tile(group, every, state),
        _time_lag_tile(every, state),
        _rate_tile("Read", reads),
        _rate_tile("Written", writes),
        _drain_tile(every, stale=stale),
        _loss_tile(group, every, stale=stale),
    ]


def _lag_tile(group: GroupLag, every: Sequence[SeenGroup], state: str) -> FigureTile:
    unknown = f"; {group.lag_unknown:,} unknown" if group.lag_unknown else ""
    if group.lag is None:
        return FigureTile("Lag", "unknown" if every else "none", "", f"of {group.partitions:,} partitions")
    most = max((seen.lag for seen in every if seen.lag.lag is not None), key=lambda each: each.lag or 0)
    words = "no lag"
    if group.lag:
        words = f"{most.name} holds {100 * (most.lag or 0) // group.lag} %" if group.partitions > 1 else most.name
    return FigureTile("Lag", f"{group.lag:,}", choose_plural("record|records", group.lag), words + unknown, state)


def _time_lag_tile(every: Sequence[SeenGroup], state: str) -> FigureTile:
    known = [(seen.time, seen.lag) for seen in every if seen.time is not None]
    if not known:
        return FigureTile("Worst time lag", "unknown", "", "needs a commit and two log end offsets")
    longest, each = max(known, key=lambda pair: pair[0].seconds)
    if not longest.seconds:
        return FigureTile("Worst time lag", time_lag_words(longest), "", "no lag")
    return FigureTile("Worst time lag", time_lag_words(longest), "", each.name, state)


def _rate_tile(name: str, rates: Sequence[float | None]) -> FigureTile:
    """All together, and from the slowest to the fastest partition."""
    known = [rate for rate in rates if rate is not None]
    if not known:
        return FigureTile(name, "unknown", "", "needs two samples")
    low, high = _format_rate(min(known)), _format_rate(max(known))
    words = f"{low} per partition" if low == high else f"{low} to {high} per partition"
    return FigureTile(name, _format_rate(sum(known)), "/s", "over the last samples" if len(known) == 1 else words)


def _format_rate(value: float) -> str:
    return f"{value:,.0f}" if value == 0 or abs(value) >= 10 else f"{value:.1f}"


def _drain_tile(every: Sequence[SeenGroup], *, stale: bool) -> FigureTile:
    by_kind: dict[LagDrain, list[SeenGroup]] = {}
    for seen in every:
        by_kind.setdefault(seen.trend.drain, []).append(seen)
    if own := by_kind.get(LagDrain.NEVER):
        seen = max(own, key=lambda each: each.lag.lag or 0)
        net = seen.trend.net or 0.0
        words = f"net {'−' if net < 0 else ''}{_format_rate(abs(net))} records/s in {seen.lag.name}"
        return FigureTile("Drains in", "never", "", words, "" if stale else HealthState.WARNING.value)
    if own := by_kind.get(LagDrain.DRAINS):
        seen = max(own, key=lambda each: each.trend.drain_s or 0.0)
        words = f"{seen.lag.name}, at current rates"
        return FigureTile("Drains in", format_duration(seen.trend.drain_s or 0.0), "", words)
    if LagDrain.KEEPS_UP in by_kind:
        return FigureTile("Drains in", LagDrain.KEEPS_UP.value, "", "lag is being read")
    if LagDrain.EMPTY in by_kind:
        return FigureTile("Drains in", "no lag", "", "all records are read")
    return FigureTile("Drains in", "unknown", "", "needs two samples of commits and log ends")


def _loss_tile(group: GroupLag, every: Sequence[SeenGroup], *, stale: bool) -> FigureTile:
    if group.lost and group.most_lost is not None:
        place = group.most_lost.name if group.lost_in == 1 else f"{group.lost_in:,} partitions"
        state = "" if stale else HealthState.WARNING.value
        return FigureTile("Data loss", f"≤ {group.lost:,}", "records", f"deleted before commit, in {place}", state)
    if all(seen.lag.lost is None for seen in every):
        return FigureTile("Data loss", "unknown" if every else "none", "", "commit or log start offset unknown")
    return FigureTile("Data loss", "none", "", "commits are past the log start", "" if stale else HealthState.OK.value)


FEWEST = 10
"""Rows that are shown at first, if there are so many; more where more are not well."""
MOST = 100
PARTITION_VERDICTS = FilterChoice("verdict", "verdict", {state.value: WORDS[state] for state in WORST_FIRST})
SHOWS = FilterChoice("show", "choice of rows", {"all": "All"})


@dataclass(frozen=True, slots=True)
class GroupPartitionLine:
    """Partition with its assigned member; ``member`` is None if no member is assigned, or if the member is unknown.

    ``named``: the verdict of the group is about this partition. ``committed_lag``: the lag for read_committed, None
    where that is the same.
    """

    seen: SeenGroup
    member: SampledMember | None
    stale: bool
    named: bool
    committed_lag: int | None = None

    @property
    def lag(self) -> PartitionLag:
        return self.seen.lag

    @property
    def trend(self) -> LagTrend:
        return self.seen.trend

    @property
    def state(self) -> HealthState:
        return HealthState.UNKNOWN if self.stale else STATES[self.lag.state]

    @property
    def word(self) -> str:
        word = partition_word(self.lag)
        return f"Was {word}" if self.stale else word

    @property
    def time_lag(self) -> str:
        return time_lag_words(self.seen.time)

    @property
    def drain(self) -> str:
        return drain_words(self.seen.trend) or "unknown"

    @property
    def commits(self) -> list[int | None]:
        return [sample.committed for sample in self.lag.looks]


@dataclass(frozen=True, slots=True)
class VerdictSegment:
    value: str
    word: str
    number: int
    state: str


def find_group(cluster: Cluster, slug: str) -> GroupState | None:
    """The group that an address names, with its window."""
    rows = GroupState.objects.filter(cluster=cluster, key=key_of_slug(slug))
    return rows.select_related("window").first()


def find_other_group(cluster: Cluster, slug: str) -> UnjudgedGroup | None:
    """The group that an address names, if it is none that is judged."""
    return UnjudgedGroup.objects.filter(cluster=cluster, key=key_of_slug(slug)).first()


def group_partition_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[PARTITION_VERDICTS, SHOWS],
        exact=["topic"],
        sorts={
            "worst": [F("worst")],
            "partition": [F("partition")],
            "lag": [F("lag")],
            "time": [F("time")],
            "committed": [F("committed")],
            "end": [F("end")],
            "read": [F("read")],
            "written": [F("written")],
        },
        descending_first={"lag", "time", "read", "written"},
    )


@dataclass(frozen=True, slots=True)
class CommittedLag:
    """Lag of a group for consumers with read_committed in records, and that of ``partitions`` where it differs.

    ``read_at``: when the oldest of their last stable offsets was read.
    """

    lag: int
    partitions: Mapping[tuple[str, int], int]
    read_at: datetime


def find_committed_lag(
    cluster: Cluster | int, topics: Collection[str], partitions: Sequence[PartitionLag], freshness: FactFreshness
) -> CommittedLag | None:
    """Return the lag for read_committed, None where no transaction holds the group back, or where last stable offsets
    are too old by their ``freshness``. Two queries.

    Only last stable offsets that stand still count: one that moves says nothing about the time after it was read. One
    below what the group committed has moved since, or the group reads uncommitted records.
    """
    gaps = {} if freshness.stale else load_standing_gaps(cluster, topics)
    differing: dict[tuple[str, int], int] = {}
    read_at: list[float] = []
    total = 0
    for each in partitions:
        if each.lag is None or each.committed is None or each.end is None:
            continue
        gap = gaps.get((each.topic, each.partition))
        if gap is not None and each.committed > gap.stable:
            gap = None
        lag = each.lag if gap is None else committed_lag(each.committed, each.end, gap.stable)
        total += lag
        if gap is not None and lag != each.lag:
            differing[each.topic, each.partition] = lag
            read_at.append(gap.read_at)
    return CommittedLag(total, differing, datetime.fromtimestamp(min(read_at), UTC)) if differing else None


class GroupContext(TypedDict):
    group: GroupState
    listing: ListQuery
    page: Page[Any]
    rows: list[GroupPartitionLine]
    rest: int
    rest_words: str
    segments: list[VerdictSegment]
    total: int
    freshness: FactFreshness
    verdict: LagVerdict
    tiles: list[FigureTile]
    topics: list[Any]
    topics_more: int
    members_known: bool
    heatmap: LagHeatmap | None
    history: object
    committed_lag: CommittedLag | None


def group_context(
    row: GroupState, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime, chosen: str | None
) -> GroupContext:
    freshness = group_freshness(row, runs.get(CollectorKind.GROUPS), now)
    members = members_of(row)
    partitions, group = read_group(row, members)
    every = [SeenGroup(each, each.time_lag, each.trend) for each in partitions]
    verdict = _verdict(row, group, freshness, now)
    kept = _sort_partitions(_filter_partitions(every, listing), listing)
    first, rest = _split_first(kept, listing)
    page = listing.page_of(first, MOST)
    owners = {(topic, n): member for member in members for topic, numbers in member.assigned.items() for n in numbers}
    counts = Counter(each.state for each in partitions)
    topics = sorted(row.topics)
    worst = (row.worst_topic, row.worst_partition)
    stable = freshness_of(runs.get(CollectorKind.TRANSACTIONS), now)
    held = find_committed_lag(row.cluster_id, topics, partitions, stable)
    held_lags = held.partitions if held else {}
    return {
        "group": row,
        "listing": listing,
        "page": page,
        "rows": [
            GroupPartitionLine(
                each,
                owners.get(_partition_key(each)),
                freshness.stale,
                _partition_key(each) == worst,
                held_lags.get(_partition_key(each)),
            )
            for each in page.object_list
        ],
        "rest": len(rest),
        "rest_words": _rest_words(rest),
        "segments": [
            VerdictSegment(s.value, WORDS[s], counts[s], STATES[s].value)
            for s in WORST_FIRST
            if counts[s] or listing.values["verdict"] == s.value
        ],
        "total": len(partitions),
        "freshness": freshness,
        "verdict": verdict,
        "tiles": tiles_of(group, every, stale=freshness.stale),
        "topics": topics[:3],
        "topics_more": len(topics) - 3,
        "members_known": row.members is not None,
        "heatmap": lag_heatmap(partitions) if len(partitions) > 1 else None,
        "history": history_context(row, now, find_range(RANGES, chosen), freshness.interval_s),
        "committed_lag": held,
    }


@dataclass(frozen=True, slots=True)
class SharePartitionLine:
    """Share partition with up to three of its members, and how many there are; None where that is not known."""

    share: SharePartition
    members: Sequence[SampledMember]
    number: int | None

    @property
    def more(self) -> int:
        return max(0, (self.number or 0) - len(self.members))


class UnjudgedContext(TypedDict):
    group: UnjudgedGroup
    listing: ListQuery
    page: Page[Any]
    rows: list[SharePartitionLine]
    members: list[SampledMember]
    members_more: int
    freshness: FactFreshness
    listed: FactFreshness
    no_lag: FeatureLack | None


_MEMBERS_NAMED = 3


def share_listing(query: QueryDict) -> ListQuery:
    sorts = {"partition": [F("partition")], "start": [F("start")], "lag": [F("lag")]}
    return ListQuery(query, choices=[], sorts=sorts, descending_first={"lag"})


def unjudged_context(row: UnjudgedGroup, listing: ListQuery, freshness: FactFreshness) -> UnjudgedContext:
    """Return the context of a group without a verdict. ``freshness``: of the collector."""
    members = read_share_members(row)
    readers: dict[tuple[str, int], list[SampledMember]] = {}
    for member in members:
        for topic, numbers in member.assigned.items():
            for number in numbers:
                readers.setdefault((topic, number), []).append(member)
    page = listing.page_of(_sort_shares(read_partitions(row), listing), MOST)
    rows = []
    for share in page.object_list:
        own = readers.get((share.topic, share.partition), [])
        rows.append(SharePartitionLine(share, own[:_MEMBERS_NAMED], None if row.members is None else len(own)))
    return {
        "group": row,
        "listing": listing,
        "page": page,
        "rows": rows,
        "members": members[:MOST],
        "members_more": max(0, len(members) - MOST),
        "freshness": _age_unjudged(row, freshness),
        "listed": FactFreshness(row.taken_at, freshness.interval_s, freshness.now),
        "no_lag": load_lack(row.cluster, KafkaFeature.SHARE_LAG) if row.is_share and row.lag is None else None,
    }


def _sort_shares(shares: list[SharePartition], listing: ListQuery) -> list[SharePartition]:
    """Sort share partitions; unknown values come last in both directions."""
    if listing.sort == "partition":
        return sorted(shares, key=lambda share: share[:2], reverse=listing.descending)
    sign = -1 if listing.descending else 1

    def place(share: SharePartition) -> tuple[bool, int, str, int]:
        value = share.lag if listing.sort == "lag" else share.start
        return value is None, sign * (value or 0), share.topic, share.partition

    return sorted(shares, key=place)


def _partition_key(seen: SeenGroup) -> tuple[str, int]:
    return seen.lag.topic, seen.lag.partition


def _verdict(row: GroupState, group: GroupLag, freshness: FactFreshness, now: datetime) -> LagVerdict:
    if row.gone_at is not None:
        ago = long_duration((now - row.gone_at).total_seconds())
        return LagVerdict(
            HealthState.UNKNOWN,
            "Not listed",
            f"Kafka has not listed this group for {ago}.",
            "The group was deleted, or expired with its last commits. The page shows its last known data.",
        )
    if freshness.stale:
        return unread_verdict(freshness.age_s)
    verdict = group_verdict(group, now.timestamp())
    held = describe_held(read_held(row.held)) if row.worst in STALLED else ""
    return replace(verdict, detail=f"{verdict.detail} {held}") if held else verdict


def _filter_partitions(every: Sequence[SeenGroup], listing: ListQuery) -> list[SeenGroup]:
    verdict, topic = listing.values["verdict"], listing.values["topic"]
    return [
        seen for seen in every if (not verdict or seen.lag.state == verdict) and (not topic or seen.lag.topic == topic)
    ]


def _sort_partitions(kept: Sequence[SeenGroup], listing: ListQuery) -> list[SeenGroup]:
    """Sort the partitions; unknown values come last in both directions."""
    sign = -1 if listing.descending else 1
    if listing.sort == "worst":
        return sorted(kept, key=lambda s: (sign * RANKS[s.lag.state], -(s.lag.lag or 0), s.lag.topic, s.lag.partition))
    if listing.sort == "partition":
        return sorted(kept, key=lambda s: (s.lag.topic, s.lag.partition), reverse=listing.descending)
    value = _VALUES[listing.sort]
    keyed = [(value(each), each) for each in kept]

    def place(pair: tuple[float | None, SeenGroup]) -> tuple[bool, float, str, int]:
        own, each = pair
        return own is None, sign * (own or 0), each.lag.topic, each.lag.partition

    return [each for _, each in sorted(keyed, key=place)]


_VALUES: Mapping[str, Callable[[SeenGroup], float | None]] = {
    "lag": lambda s: s.lag.lag,
    "time": lambda s: s.time.seconds if s.time else None,
    "committed": lambda s: s.lag.committed,
    "end": lambda s: s.lag.end,
    "read": lambda s: s.trend.read,
    "written": lambda s: s.trend.written,
}


def _split_first(kept: list[SeenGroup], listing: ListQuery) -> tuple[list[SeenGroup], list[SeenGroup]]:
    """Split the partitions into those shown first (``FEWEST``, or all not OK up to ``MOST``) and the rest."""
    if listing.filtered or listing.sort != "worst" or listing.descending or listing.page_number:
        return kept, []
    unwell = sum(STATES[each.lag.state] is not HealthState.OK for each in kept)
    number = min(MOST, max(FEWEST, unwell))
    return (kept, []) if len(kept) <= number + 2 else (kept[:number], kept[number:])


def _rest_words(rest: Sequence[SeenGroup]) -> str:
    states = {each.lag.state for each in rest}
    return f", all {WORDS[states.pop()]}" if len(states) == 1 else ""


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def groups(request: HttpRequest, slug: str) -> HttpResponse:
    """All groups that Kafka lists; filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.GROUPS)
    runs = bar["standing"].runs
    context = {
        **bar,
        "tab": "groups",
        "live_keys": [read_hint(CollectorKind.GROUPS, slug), read_hint(CollectorKind.TRANSACTIONS, slug)],
        "not_read": not_read(cluster, runs, [CollectorKind.GROUPS]),
        **group_list_context(cluster, group_listing(request.GET), runs, bar["now"]),
        "may_change": not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "monitoring/groups.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def group(request: HttpRequest, slug: str, group: str) -> HttpResponse:
    """Show one group by its name (``group_names``); ``?range=day`` chooses the time range of the charts."""
    cluster = cluster_for(request, slug, VIEW)
    row = find_group(cluster, group)
    other = find_other_group(cluster, group) if row is None or row.gone_at else None
    if other is not None:
        bar = cluster_bar(cluster, CollectorKind.GROUPS)
        freshness = bar["standing"].freshness_of(CollectorKind.GROUPS)
        context = {**bar, "tab": "groups", "live_keys": [read_hint(CollectorKind.GROUPS, slug)]}
        about = unjudged_context(other, share_listing(request.GET), freshness)
        return render(request, "monitoring/other_group.html", {**context, **about})
    if row is None:
        raise MissingObject(CollectionErrorCode.GROUP_NOT_SEEN, cluster=cluster.name, group=group)
    bar = cluster_bar(cluster, CollectorKind.GROUPS)
    runs, listing = bar["standing"].runs, group_partition_listing(request.GET)
    context = {
        **bar,
        "tab": "groups",
        "slug": group,
        "live_keys": [read_hint(CollectorKind.GROUPS, slug)],
        "not_read": not_read(cluster, runs, [CollectorKind.GROUPS]),
        **group_context(row, listing, runs, bar["now"], request.GET.get("range")),
        "may_change": row.gone_at is None and not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "monitoring/group.html", context)
