"""Sections of a plan on its pages: partitions, exceptions first and then by topic, and brokers and racks as bars."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import Q, QuerySet
from django.http import QueryDict

from kafkadash.core.json_columns import unpack_dataclass
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.racks import short_labels
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import BrokerImpact, PlanImpact, TopicImpact
from kafkadash.planning.models import PlanReport, PlanTopic
from kafkadash.planning.plan_store import MovedRow, first_exceptions_of, first_rows_of, rows_of

TOPICS_PAGE = 25
ROWS_PAGE = 100
MOST_NAMED = 4
_EXCEPTIONS = "exceptions"


@dataclass(frozen=True, slots=True)
class PlannedReplica:
    """A replica as a chip. ``change``: "out" leaves, "in" arrives. ``leader``: leads now, is preferred afterwards."""

    broker: int
    rack: str
    words: str
    leader: bool
    change: str
    in_sync: bool = True
    offline: bool = False


@dataclass(frozen=True, slots=True)
class ReplicaChips:
    chips: Sequence[PlannedReplica]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """Row of one partition. ``alone_s``: how long its copies take at the proposed throttle if nothing else moves."""

    moved: MovedRow
    before: ReplicaChips
    after: ReplicaChips
    alone_s: float | None
    words: str


@dataclass(frozen=True, slots=True)
class TopicFold:
    """Fold of one topic: its impact, and the first of its rows. ``rows`` are shown; ``more`` counts the others."""

    impact: TopicImpact
    rows: Sequence[DiffRow]
    more: int
    way: str

    @property
    def note(self) -> str:
        """Note on a special topic: internal, or few replicas; '' for other topics."""
        if self.impact.internal:
            return "internal"
        few = self.impact.replication_factor
        return choose_plural("# replica|# replicas", few) if few <= 2 else ""


class RowWords:
    """Turns stored rows into what is shown, with what the whole plan knows of brokers."""

    def __init__(self, impact: PlanImpact, rate: int, *, elect_leaders: bool) -> None:
        self._rate, self._elect = rate, elect_leaders
        self._racks = {broker.id: broker.rack for broker in impact.brokers if broker.rack is not None}
        self._labels = short_labels(set(self._racks.values()))
        self._alive = frozenset(broker.id for broker in impact.brokers if broker.alive)

    @property
    def shortened(self) -> bool:
        """Return whether racks have letters in place of their names."""
        return any(label != rack for rack, label in self._labels.items())

    @property
    def labels(self) -> Mapping[str, str]:
        """Rack → what stands for it in a chip."""
        return dict(sorted(self._labels.items()))

    def row(self, moved: MovedRow) -> DiffRow:
        copied = moved.copied_bytes
        return DiffRow(
            moved=moved,
            before=self._chips(moved.current, moved.leader, "leader", moved.removing, ("out", "removed")),
            after=self._chips(moved.target, moved.target[0], "preferred leader", moved.adding, ("in", "added")),
            alone_s=None if copied is None else copied / self._rate,
            words=", ".join(moved.why) or self._leader_words(moved),
        )

    def rows(self, moved: Iterable[MovedRow]) -> list[DiffRow]:
        return [self.row(row) for row in moved]

    def _chips(
        self,
        replicas: Sequence[int],
        leader: int | None,
        leads: str,
        changed: Collection[int],
        change: tuple[str, str],
    ) -> ReplicaChips:
        mark, verb = change
        chips = []
        for broker in replicas:
            rack = self._racks.get(broker)
            words = [
                f"broker {broker}" if rack is None else f"broker {broker} in rack {rack}",
                leads if broker == leader else "",
                verb if broker in changed else "",
            ]
            chips.append(
                PlannedReplica(
                    broker=broker,
                    rack="" if rack is None else self._labels[rack],
                    words=", ".join(filter(None, words)),
                    leader=broker == leader,
                    change=mark if broker in changed else "",
                )
            )
        return ReplicaChips(chips)

    def _leader_words(self, moved: MovedRow) -> str:
        """Return the words on a new leader; '' where the leader stays or cannot be told."""
        if not self._elect and moved.leader in moved.target:
            return ""
        then = next((broker for broker in moved.target if broker in self._alive), None)
        if then is None or then == moved.leader:
            return ""
        return f"leader moves to {then}" if moved.leader is not None else f"no leader now; leader moves to {then}"


def plan_listing(query: QueryDict) -> ListQuery:
    """Return the query of a plan's lists: exceptions alone, one broker's rows, all brokers' bars, a page."""
    listing = ListQuery(
        query,
        choices=(
            FilterChoice("rows", "view of partitions", {"": "by topic", _EXCEPTIONS: "exceptions"}),
            FilterChoice("brokers", "view of brokers", {"": "changed", "all": "all"}),
        ),
        texts=("on",),
        sorts={"size": ("ordinal",)},
    )
    broker = listing.values["on"]
    if broker and _parse_broker(broker) is None:
        listing.problems.append(message_text(ReassignmentErrorCode.FILTER_NO_BROKER, typed=broker[:60]))
        listing.values["on"] = ""
    return listing


def diff_context(report: PlanReport, impact: PlanImpact, words: RowWords, listing: ListQuery) -> dict[str, Any]:
    """The section "Partitions": one page of it, read without the rows of topics whose folds do not show them."""
    broker = _parse_broker(listing.values["on"])
    context: dict[str, Any] = {
        "listing": listing,
        "broker": broker,
        "exception_count": report.exceptions,
        "words": words,
        "impact": impact,
    }
    if listing.values["rows"] == _EXCEPTIONS:
        listed, rows = _list_exceptions(report, broker, listing)
        return {**context, "page": listed, "exceptions": words.rows(rows), "folds": None}
    topics = _filter_topics(report, broker)
    page = listing.page_of(topics if broker is not None else topics.defer("rows"), TOPICS_PAGE)
    whole = broker is None and page.number == 1
    return {
        **context,
        "page": page,
        "exceptions": words.rows(first_exceptions_of(report)) if whole else (),
        "folds": [_fold(topic, broker, words) for topic in page.object_list],
    }


class TopicRowsContext(TypedDict):
    listing: ListQuery
    broker: int | None
    page: Page[Any]
    rows: list[DiffRow]
    topic: TopicImpact
    exception_count: int
    words: RowWords


def topic_rows_context(topic: PlanTopic, words: RowWords, listing: ListQuery) -> TopicRowsContext:
    """All rows of one topic, by partition; filtered and paged."""
    broker = _parse_broker(listing.values["on"])
    rows = _filter_rows(rows_of(topic), broker)
    if listing.values["rows"] == _EXCEPTIONS:
        rows = [row for row in rows if row.why]
    page = listing.page_of(rows, ROWS_PAGE)
    return {
        "listing": listing,
        "broker": broker,
        "page": page,
        "rows": words.rows(page.object_list),
        "topic": unpack_dataclass(TopicImpact, topic.summary),
        "exception_count": topic.exceptions,
        "words": words,
    }


def brokers_words(brokers: Sequence[int]) -> str:
    """Few by id, many by their number: "1, 2, 5", "12 brokers"."""
    if len(brokers) > MOST_NAMED:
        return f"{len(brokers):,} brokers"
    return ", ".join(map(str, brokers))


def _fold(topic: PlanTopic, broker: int | None, words: RowWords) -> TopicFold:
    impact = unpack_dataclass(TopicImpact, topic.summary)
    if broker is None:
        shown, number = first_rows_of(topic), impact.moved
    else:
        touching = _filter_rows(rows_of(topic), broker)
        shown, number = touching[: len(topic.first)], len(touching)
    way = "order only"
    if impact.leaving or impact.arriving:
        way = f"{brokers_words(impact.leaving) or 'none'} → {brokers_words(impact.arriving) or 'none'}"
    return TopicFold(impact, words.rows(shown), number - len(shown), way)


def _filter_topics(report: PlanReport, broker: int | None) -> QuerySet[PlanTopic]:
    topics = report.topics.all()
    if broker is None:
        return topics
    return topics.filter(Q(summary__leaving__contains=[broker]) | Q(summary__arriving__contains=[broker]))


def _list_exceptions(report: PlanReport, broker: int | None, listing: ListQuery) -> tuple[Page[Any], list[MovedRow]]:
    """A page of them and its rows. Unpacks the topics of the page only; with a broker those that it is part of."""
    topics = _filter_topics(report, broker).filter(exceptions__gt=0)
    if broker is not None:
        page = listing.page_of([r for t in topics for r in _filter_rows(rows_of(t), broker) if r.why], ROWS_PAGE)
        return page, list(page.object_list)
    page = listing.page_of(range(report.exceptions), ROWS_PAGE)
    first, last = page.start_index() - 1, page.end_index()
    chosen: list[int] = []
    passed = skipped = 0
    for id_, number in topics.values_list("pk", "exceptions"):
        if passed + number <= first:
            skipped += number
        elif passed < last:
            chosen.append(id_)
        passed += number
    rows = [row for topic in report.topics.filter(pk__in=chosen) for row in rows_of(topic) if row.why]
    return page, rows[max(0, first - skipped) : max(0, last - skipped)]


def _filter_rows(rows: Iterable[MovedRow], broker: int | None) -> list[MovedRow]:
    if broker is None:
        return list(rows)
    return [row for row in rows if broker in row.adding or broker in row.removing]


def _parse_broker(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None


MOST_BROKERS = 60
"""Bars on a page; the others have an address."""
MOST_CELLS = 90
"""Up to so many brokers each has a cell; beyond, only those that change most."""
CELLS_OF_MANY = 30
VISIBLE_CHANGE = 0.02
"""Share of the scale below which a difference is not marked as a change."""
_UNITS = ((10**9, "GB"), (10**6, "MB"), (10**3, "kB"), (1, "B"))
_STEPS = (1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


@dataclass(frozen=True, slots=True)
class BrokerFound:
    """Figures of a broker as read after a run; None is unknown."""

    replicas: int | None = None
    leaders: int | None = None
    bytes: int | None = None


@dataclass(frozen=True, slots=True)
class ReportBar:
    """A figure before and after on a scale; None is not known. ``limit`` is a share of the scale.

    ``base``: what is on the scale besides the figure, in the figure's unit, as other data on a disk. ``found``: the
    figure as read after a run, shown where ``with_found`` is set.
    """

    before: int | None
    after: int | None
    scale: float | None
    factor: int = 1
    unit: str = ""
    limit: float | None = None
    base: int = 0
    found: int | None = None
    with_found: bool = False

    @property
    def known(self) -> bool:
        return self.before is not None and self.after is not None

    @property
    def drawn(self) -> bool:
        return self.known and bool(self.scale)

    @property
    def base_width(self) -> str:
        """Return where both bars begin."""
        return f"{self._percent_of(self.base):.1f}%"

    @property
    def before_width(self) -> str:
        return self._width(self.before)

    @property
    def after_width(self) -> str:
        return self._width(self.after)

    @property
    def found_width(self) -> str:
        return self._width(self.found)

    @property
    def percents(self) -> str:
        """Return how full the scale is before and after, with the base, as "70.9 % → 71.2 %"; '' where not drawn."""
        if self.before is None or self.after is None or not self.drawn:
            return ""
        return " → ".join(f"{self._percent_of(self.base + value):.1f} %" for value in (self.before, self.after))

    @property
    def limit_at(self) -> str:
        return "" if self.limit is None else f"{100 * self.limit:.1f}%"

    @property
    def changed(self) -> str:
        """Return "up" or "down" where the change can be seen."""
        if self.before is None or self.after is None or not self.scale:
            return ""
        if abs(self.after - self.before) < VISIBLE_CHANGE * self.scale:
            return ""
        return "up" if self.after > self.before else "down"

    @property
    def before_text(self) -> str:
        return self._text(self.before)

    @property
    def after_text(self) -> str:
        return self._text(self.after)

    @property
    def found_text(self) -> str:
        return self._text(self.found)

    def _text(self, value: int | None) -> str:
        if value is None:
            return "unknown"
        if self.factor == 1:
            return f"{value:,}"
        scaled = value / self.factor
        return f"{scaled:,.0f}" if scaled >= 100 or not value else f"{scaled:,.1f}"

    def _width(self, value: int | None) -> str:
        base = self._percent_of(self.base)
        return f"{self._percent_of(self.base + (value or 0)) - base:.1f}%"

    def _percent_of(self, value: int) -> float:
        return 100 * min(1.0, max(0.0, value / self.scale)) if self.scale else 0.0


@dataclass(frozen=True, slots=True)
class BrokerLine:
    """A row of the table of bars. ``peak_percent``: of its disks at worst while the plan runs, None if not known."""

    impact: BrokerImpact
    disk: ReportBar
    replicas: ReportBar
    leaders: ReportBar
    disk_of: str
    peak_percent: float | None
    over_limit: bool

    @property
    def peak_matters(self) -> bool:
        """Return whether the peak is visibly higher than before and after, or above the limit."""
        own = self.impact
        if self.peak_percent is None or own.peak_bytes is None or not own.disk_bytes:
            return False
        grows = max(0, (own.bytes_after or 0) - (own.bytes_before or 0))
        return self.over_limit or own.bytes_in - grows >= VISIBLE_CHANGE * own.disk_bytes


@dataclass(frozen=True)
class BrokerBars:
    """Bars of some brokers. ``disk_of``: the size of the disk that all of them have, '' where they differ.

    ``with_found``: the bars show also what was read after a run.
    """

    lines: Sequence[BrokerLine]
    total: int
    changed: int
    limited: bool
    disk_of: str
    limit_percent: float | None
    with_found: bool = False


@dataclass(frozen=True, slots=True)
class ReportCell:
    """A broker in a map. ``change``: "gains" or "empties"; ``percent`` of its disks in use, None where unknown;
    ``other_percent`` of them by others than replicas.
    """

    id: int
    replicas: int
    leaders: int
    bytes: int | None
    percent: float | None
    other_percent: float = 0.0
    delta: int = 0
    change: str = ""

    @property
    def empty(self) -> bool:
        return not self.replicas


@dataclass(frozen=True, slots=True)
class MapRack:
    """``name`` is None for the brokers that name none; '' is a name. ``hidden`` of its brokers have no cell."""

    name: str | None
    replicas: int
    cells: Sequence[ReportCell]
    hidden: int


@dataclass(frozen=True, slots=True)
class RackPair:
    before: Sequence[MapRack]
    after: Sequence[MapRack]
    note: str
    limit_percent: float | None


@dataclass(frozen=True)
class _BarScales:
    impact: PlanImpact
    found: Mapping[int, BrokerFound] = field(default_factory=dict)

    @cached_property
    def replicas(self) -> float:
        planned = [max(b.replicas_before, b.replicas_after) for b in self.impact.brokers]
        return _round_up_scale(max([*planned, *(each.replicas or 0 for each in self.found.values())], default=0))

    @cached_property
    def leaders(self) -> float:
        planned = [max(b.leaders_before, b.leaders_after) for b in self.impact.brokers]
        return _round_up_scale(max([*planned, *(each.leaders or 0 for each in self.found.values())], default=0))

    @cached_property
    def unit(self) -> tuple[int, str]:
        """Unit for all brokers, so that they can be compared: the unit of the most bytes that any broker holds."""
        planned = [max(b.bytes_before or 0, b.bytes_after or 0) for b in self.impact.brokers]
        return _choose_unit(max([*planned, *(each.bytes or 0 for each in self.found.values())], default=0))


def broker_bars(impact: PlanImpact, *, everything: bool, found: Mapping[int, BrokerFound] | None = None) -> BrokerBars:
    """By id: all of a small cluster or with ``everything``, else those that change, at most ``MOST_BROKERS``.

    ``found``: broker → what was read after the run; a broker that is not in it is unknown. None before a run.
    """
    scales = _BarScales(impact, found or {})
    shown = sorted(impact.brokers, key=lambda b: b.id)
    if len(shown) > MOST_BROKERS and not everything:
        shown = [broker for broker in shown if is_changed(broker)][:MOST_BROKERS]
    disks = {broker.disk_bytes for broker in shown}
    shared = next(iter(disks)) if len(disks) == 1 else None
    return BrokerBars(
        lines=[
            _line(broker, scales, impact.disk_limit, named=shared is None, with_found=found is not None)
            for broker in shown
        ],
        total=len(impact.brokers),
        changed=sum(is_changed(broker) for broker in impact.brokers),
        limited=len(shown) < len(impact.brokers),
        disk_of=_size(shared) if shared else "",
        limit_percent=None if impact.disk_limit is None else 100 * impact.disk_limit,
        with_found=found is not None,
    )


def rack_pair(impact: PlanImpact) -> RackPair:
    """Racks and brokers keep their places in both maps: by name and id."""
    by_rack: defaultdict[str | None, list[BrokerImpact]] = defaultdict(list)
    for broker in sorted(impact.brokers, key=lambda b: b.id):
        by_rack[broker.rack].append(broker)
    names = sorted(by_rack, key=lambda name: (name is None, name or ""))
    shown = _with_cells(impact)
    scale = _BarScales(impact).replicas
    return RackPair(
        before=[
            _rack(name, by_rack[name], [_build_cell_before(b) for b in by_rack[name] if b.id in shown], after=False)
            for name in names
        ],
        after=[
            _rack(
                name, by_rack[name], [_build_cell_after(b, scale) for b in by_rack[name] if b.id in shown], after=True
            )
            for name in names
        ],
        note=spread_words(impact),
        limit_percent=None if impact.disk_limit is None else 100 * impact.disk_limit,
    )


def spread_words(impact: PlanImpact) -> str:
    before, after, lost = impact.violations_before, impact.violations_after, impact.racks_lost
    if before is None or after is None or lost is None:
        return "Rack spread unknown: some brokers have no rack, or there is only one rack."
    loses = "No partition loses a rack."
    if lost:
        loses = choose_plural("# partition ends in fewer racks.|# partitions end in fewer racks.", lost)
    return f"{loses} {choose_plural('# violation|# violations', before)} before, {after:,} after."


def is_changed(broker: BrokerImpact) -> bool:
    """Return whether one of the broker's figures changes."""
    return (
        broker.replicas_before != broker.replicas_after
        or broker.leaders_before != broker.leaders_after
        or broker.bytes_before != broker.bytes_after
    )


def _line(
    broker: BrokerImpact, scales: _BarScales, limit: float | None, *, named: bool, with_found: bool
) -> BrokerLine:
    factor, unit = scales.unit
    found = scales.found.get(broker.id, BrokerFound())
    peak = _percent(broker.peak_bytes, broker.disk_bytes)
    other = broker.other_bytes
    disk = ReportBar(
        broker.bytes_before,
        broker.bytes_after,
        None if other is None else broker.disk_bytes,
        factor,
        unit,
        limit if broker.disk_bytes else None,
        other or 0,
        found.bytes,
        with_found,
    )
    return BrokerLine(
        impact=broker,
        disk=disk,
        replicas=ReportBar(
            broker.replicas_before, broker.replicas_after, scales.replicas, found=found.replicas, with_found=with_found
        ),
        leaders=ReportBar(
            broker.leaders_before, broker.leaders_after, scales.leaders, found=found.leaders, with_found=with_found
        ),
        disk_of=_size(broker.disk_bytes) if named else "",
        peak_percent=peak,
        over_limit=peak is not None and limit is not None and peak > 100 * limit,
    )


def _with_cells(impact: PlanImpact) -> frozenset[int]:
    """Brokers that have a cell: all of a small cluster, of a large one those whose replicas change most."""
    if len(impact.brokers) <= MOST_CELLS:
        return frozenset(broker.id for broker in impact.brokers)
    changed = [broker for broker in impact.brokers if broker.replicas_after != broker.replicas_before]
    changed.sort(key=lambda b: (-abs(b.replicas_after - b.replicas_before), b.id))
    return frozenset(broker.id for broker in changed[:CELLS_OF_MANY])


def _build_cell_before(broker: BrokerImpact) -> ReportCell:
    other, percent = _disk_percents(broker, broker.bytes_before)
    return ReportCell(broker.id, broker.replicas_before, broker.leaders_before, broker.bytes_before, percent, other)


def _build_cell_after(broker: BrokerImpact, scale: float) -> ReportCell:
    delta = broker.replicas_after - broker.replicas_before
    change = "gains" if delta >= max(1, VISIBLE_CHANGE * scale) else ""
    if broker.replicas_before and not broker.replicas_after:
        change = "empties"
    other, percent = _disk_percents(broker, broker.bytes_after)
    return ReportCell(
        broker.id, broker.replicas_after, broker.leaders_after, broker.bytes_after, percent, other, delta, change
    )


def _disk_percents(broker: BrokerImpact, replica_bytes: int | None) -> tuple[float, float | None]:
    """Return the percent of the broker's disks that others than replicas use, and of all in use; None if unknown."""
    other = broker.other_bytes
    if other is None or replica_bytes is None:
        return 0.0, None
    return _percent(other, broker.disk_bytes) or 0.0, _percent(other + replica_bytes, broker.disk_bytes)


def _rack(name: str | None, brokers: Sequence[BrokerImpact], cells: Sequence[ReportCell], *, after: bool) -> MapRack:
    replicas = sum(b.replicas_after if after else b.replicas_before for b in brokers)
    return MapRack(name, replicas, cells, len(brokers) - len(cells))


def _percent(part: int | None, whole: int | None) -> float | None:
    return None if part is None or not whole else 100 * part / whole


def _size(value: int | None) -> str:
    if value is None:
        return "unknown"
    factor, unit = _choose_unit(value)
    return f"{value / factor:,.0f} {unit}"


def _choose_unit(value: int) -> tuple[int, str]:
    """Gigabytes at most: a broker's share of a plan would be lost in terabytes with one decimal."""
    return next((unit for unit in _UNITS if value >= unit[0]), _UNITS[-1])


def _round_up_scale(largest: int) -> float:
    """The end of a scale: a round figure with some room above the largest."""
    if largest <= 0:
        return 1.0
    wanted = 1.05 * largest
    decade = 10 ** math.floor(math.log10(wanted))
    return next(float(step * decade) for step in _STEPS if step * decade >= wanted)
