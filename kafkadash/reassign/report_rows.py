"""The partitions of a plan as its pages list them: exceptions first, then a fold per topic, and one topic alone."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.core.paginator import Page
from django.db.models import Q, QuerySet
from django.http import QueryDict

from kafkadash.domain.impact import Impact, TopicImpact
from kafkadash.domain.messages import message_text
from kafkadash.domain.rack_labels import short_labels
from kafkadash.observe.listing import Choice, Listing
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import PlanReport, PlanTopic
from kafkadash.reassign.plan_store import MovedRow, first_exceptions_of, first_rows_of, rows_of

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
class Chips:
    chips: Sequence[PlannedReplica]


@dataclass(frozen=True, slots=True)
class DiffRow:
    """One partition. ``alone_s``: how long its copies take at the proposed throttle if nothing else moves."""

    moved: MovedRow
    before: Chips
    after: Chips
    alone_s: float | None
    words: str


@dataclass(frozen=True, slots=True)
class Fold:
    """One topic: what its line says, and the first of its rows. ``rows`` of it are shown, ``more`` are not."""

    impact: TopicImpact
    rows: Sequence[DiffRow]
    more: int
    way: str

    @property
    def note(self) -> str:
        """What is special about it in a word."""
        if self.impact.internal:
            return "internal"
        few = self.impact.replication_factor
        return f"{few} replica{'' if few == 1 else 's'}" if few <= 2 else ""


class RowWords:
    """Turns stored rows into what is shown, with what the whole plan knows of brokers."""

    def __init__(self, impact: Impact, rate: int, *, elect_leaders: bool) -> None:
        self._rate, self._elect = rate, elect_leaders
        self._racks = {broker.id: broker.rack for broker in impact.brokers if broker.rack is not None}
        self._labels = short_labels(set(self._racks.values()))
        self._alive = frozenset(broker.id for broker in impact.brokers if broker.alive)

    @property
    def shortened(self) -> bool:
        """Whether racks have letters in place of their names."""
        return any(label != rack for rack, label in self._labels.items())

    @property
    def labels(self) -> Mapping[str, str]:
        """Rack → what stands for it in a chip."""
        return dict(sorted(self._labels.items()))

    def row(self, moved: MovedRow) -> DiffRow:
        copied = moved.copied_bytes
        return DiffRow(
            moved=moved,
            before=self._chips(moved.current, moved.leader, "leads", moved.removing, ("out", "leaves")),
            after=self._chips(moved.target, moved.target[0], "preferred leader", moved.adding, ("in", "arrives")),
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
    ) -> Chips:
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
        return Chips(chips)

    def _leader_words(self, moved: MovedRow) -> str:
        """Who leads afterwards where that is somebody else; '' where it stays or cannot be told."""
        if not self._elect and moved.leader in moved.target:
            return ""
        then = next((broker for broker in moved.target if broker in self._alive), None)
        if then is None or then == moved.leader:
            return ""
        return f"leader moves to {then}" if moved.leader is not None else f"has no leader; {then} leads then"


def plan_listing(query: QueryDict) -> Listing:
    """What the address asks of the lists of a plan: exceptions alone, one broker's rows, all brokers' bars, a page."""
    listing = Listing(
        query,
        choices=(
            Choice("rows", "view of partitions", {"": "by topic", _EXCEPTIONS: "exceptions"}),
            Choice("brokers", "view of brokers", {"": "those that change", "all": "all"}),
        ),
        texts=("on",),
        sorts={"size": ("ordinal",)},
    )
    asked = listing.values["on"]
    if asked and _broker(asked) is None:
        listing.problems.append(message_text(ReassignmentErrorCode.FILTER_NO_BROKER, typed=asked[:60]))
        listing.values["on"] = ""
    return listing


def diff_context(report: PlanReport, impact: Impact, words: RowWords, listing: Listing) -> dict[str, Any]:
    """The section "Partitions": one page of it, read without the rows of topics whose folds do not show them."""
    broker = _broker(listing.values["on"])
    context: dict[str, Any] = {
        "listing": listing,
        "broker": broker,
        "exception_count": report.exceptions,
        "words": words,
        "impact": impact,
    }
    if listing.values["rows"] == _EXCEPTIONS:
        listed, rows = _exceptions(report, broker, listing)
        return {**context, "page": listed, "exceptions": words.rows(rows), "folds": None}
    topics = _topics(report, broker)
    page = listing.page_of(topics if broker is not None else topics.defer("rows"), TOPICS_PAGE)
    whole = broker is None and page.number == 1
    return {
        **context,
        "page": page,
        "exceptions": words.rows(first_exceptions_of(report)) if whole else (),
        "folds": [_fold(topic, broker, words) for topic in page.object_list],
    }


def topic_rows_context(topic: PlanTopic, words: RowWords, listing: Listing) -> dict[str, Any]:
    """All rows of one topic, by partition; filtered and paged."""
    broker = _broker(listing.values["on"])
    rows = _touching(rows_of(topic), broker)
    if listing.values["rows"] == _EXCEPTIONS:
        rows = [row for row in rows if row.why]
    page = listing.page_of(rows, ROWS_PAGE)
    return {
        "listing": listing,
        "broker": broker,
        "page": page,
        "rows": words.rows(page.object_list),
        "topic": TopicImpact.from_json(topic.summary),
        "exception_count": topic.exceptions,
        "words": words,
    }


def brokers_words(brokers: Sequence[int]) -> str:
    """Few by id, many by their number: "1, 2, 5", "12 brokers"."""
    if len(brokers) > MOST_NAMED:
        return f"{len(brokers):,} brokers"
    return ", ".join(map(str, brokers))


def _fold(topic: PlanTopic, broker: int | None, words: RowWords) -> Fold:
    impact = TopicImpact.from_json(topic.summary)
    if broker is None:
        shown, number = first_rows_of(topic), impact.moved
    else:
        touching = _touching(rows_of(topic), broker)
        shown, number = touching[: len(topic.first)], len(touching)
    way = "order only"
    if impact.leaving or impact.arriving:
        way = f"{brokers_words(impact.leaving) or 'none'} → {brokers_words(impact.arriving) or 'none'}"
    return Fold(impact, words.rows(shown), number - len(shown), way)


def _topics(report: PlanReport, broker: int | None) -> QuerySet[PlanTopic]:
    topics = report.topics.all()
    if broker is None:
        return topics
    return topics.filter(Q(summary__leaving__contains=[broker]) | Q(summary__arriving__contains=[broker]))


def _exceptions(report: PlanReport, broker: int | None, listing: Listing) -> tuple[Page[Any], list[MovedRow]]:
    """A page of them and its rows. Unpacks the topics of the page only; with a broker those that it is part of."""
    topics = _topics(report, broker).filter(exceptions__gt=0)
    if broker is not None:
        page = listing.page_of([r for t in topics for r in _touching(rows_of(t), broker) if r.why], ROWS_PAGE)
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


def _touching(rows: Iterable[MovedRow], broker: int | None) -> list[MovedRow]:
    if broker is None:
        return list(rows)
    return [row for row in rows if broker in row.adding or broker in row.removing]


def _broker(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 11 else None
