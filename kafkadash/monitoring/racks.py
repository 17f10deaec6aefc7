"""The page of racks: a map of the brokers of each rack, and the partitions that are not spread as evenly as possible.

``RackJudge`` judges the spread over the racks that registered brokers name, or says why it cannot be judged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import F, Sum
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration
from kafkadash.core.listing import ListQuery
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.racks import RackSpread, judge_spread, racks_known
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.brokers import DirectoryRow, broker_state, directory_row
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import (
    FactFreshness,
    ReadingDoubts,
    doubts_about,
    metadata_freshness,
    named_brokers,
    not_read,
)
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    ClusterState,
    CollectorKind,
    CollectorRun,
    TopicState,
)
from kafkadash.monitoring.partitions import PartitionLine, partition_lines, rack_labels, running_moves


class RackJudge:
    """``why_not`` is '' where spread is judged: where every broker names its rack and there are two racks at least.

    Partitions with the same replicas are judged once: thousands of a page have few placements.
    """

    def __init__(self, cluster: Cluster) -> None:
        brokers = BrokerState.objects.filter(cluster=cluster, gone_at=None).order_by("broker_id")
        named = list(brokers.values_list("broker_id", "rack"))
        self.rack_of: dict[int, str] = {broker: rack for broker, rack in named if rack is not None}
        self.racks: list[str] = sorted(set(self.rack_of.values()))
        self.unnamed: list[int] = [broker for broker, rack in named if rack is None]
        self.known = bool(named) and racks_known([rack for _, rack in named])
        self.one_rack = bool(named) and not self.unnamed and len(self.racks) == 1
        self.why_not = "" if self.known else self._why_not(len(named))
        self._judged: dict[tuple[int, ...], RackSpread] = {}

    def judge(self, line: PartitionLine) -> RackSpread | None:
        """None where racks are not known. A partition that moves is judged by where it goes."""
        if not self.known:
            return None
        leaving = line.move.removing if line.move else ()
        replicas = tuple(broker for broker in line.replicas if broker not in leaving)
        if replicas not in self._judged:
            self._judged[replicas] = judge_spread(replicas, self.rack_of, len(self.racks))
        return self._judged[replicas]

    def _why_not(self, brokers: int) -> str:
        if not brokers:
            return "no brokers known"
        if len(self.unnamed) == brokers:
            return "broker.rack is not set"
        if self.unnamed:
            return f"{named_brokers(self.unnamed)} {choose_plural('has|have', len(self.unnamed))} no rack"
        return "all brokers in one rack"


def fix_words(spread: RackSpread) -> str:
    """Return the fix that spreads the partition evenly: "needs 1 more rack", "2 moves to fix"."""
    if spread.missing == spread.moves:
        return choose_plural("needs # more rack|needs # more racks", spread.missing)
    return moves_words(spread.moves)


def moves_words(moves: int) -> str:
    return choose_plural("# move to fix|# moves to fix", moves)


TOPICS_PAGE = 20
MOST_OF_A_TOPIC = 10
MOST_CELLS = 90
"""With more brokers, racks show their sums and only the cells that hold a violation."""
MOST_COUNTED = 20_000
"""Partitions of violating topics up to which violations are counted per broker and rack."""


@dataclass(frozen=True)
class ViolationCounts:
    """Violating partitions by broker and by rack, of those that the rack holds too many replicas of.

    ``topics``: rack → primary keys of the topics that these are of.
    """

    brokers: Counter[int] = field(default_factory=Counter)
    racks: Counter[str] = field(default_factory=Counter)
    topics: defaultdict[str, set[int]] = field(default_factory=lambda: defaultdict(set))


@dataclass(frozen=True, slots=True)
class RackCell:
    """A broker in the map. ``violations`` is None where they were not counted."""

    broker: BrokerState
    state: str
    word: str
    violations: int | None
    bytes: int | None
    fullest: DirectoryRow | None

    @property
    def mark(self) -> str:
        """The state of the cell: hatched where it holds a violation or is away."""
        if self.state in ("critical", "warning"):
            return self.state
        return "warning" if self.violations else ""


@dataclass(frozen=True, slots=True)
class RackCard:
    """``name`` is None for the brokers that name none; '' is a name. ``violations`` is None where not counted.

    ``certain``: the data is fresh and complete, so that no violation is a fact of now.
    """

    name: str | None
    cells: Sequence[RackCell]
    brokers: int
    replicas: int
    violations: int | None
    certain: bool

    @property
    def state(self) -> str:
        """State of the spread: warning, ok or unknown."""
        if self.violations:
            return "warning"
        return "ok" if self.violations == 0 and self.certain else "unknown"

    @property
    def hidden(self) -> int:
        return self.brokers - len(self.cells)


@dataclass(frozen=True)
class RackViolation:
    line: PartitionLine
    spread: RackSpread
    possible: int

    @property
    def fix(self) -> str:
        return fix_words(self.spread)

    @property
    def racks_words(self) -> str:
        """Used of possible; crowded ones by name where all possible racks are used."""
        if self.spread.missing:
            return f"{len(self.spread.per_rack)} of {self.possible} possible"
        return f"crowded: {', '.join(self.spread.crowded)}"


@dataclass(frozen=True)
class ViolatingTopic:
    """A topic with its partitions that are not spread; ``shown`` are the first of them."""

    topic: TopicState
    violations: Sequence[RackViolation]

    @property
    def shown(self) -> Sequence[RackViolation]:
        return self.violations[:MOST_OF_A_TOPIC]

    @property
    def more(self) -> int:
        return len(self.violations) - len(self.shown)

    @property
    def fix(self) -> str:
        """For the whole topic."""
        if len(self.violations) == 1:
            return self.violations[0].fix
        return moves_words(sum(violation.spread.moves for violation in self.violations))


def rack_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        texts=["q"],
        exact=["rack"],
        sorts={"violations": [F("rack_violations"), F("name")]},
        descending_first={"violations"},
    )


class RacksContext(TypedDict):
    listing: ListQuery
    page: Page[Any] | None
    rows: list[ViolatingTopic]
    judge: RackJudge
    figures: ClusterState
    number: Any
    counted: Any
    freshness: FactFreshness
    title: str
    racks: list[RackCard]
    most_cells: int


def racks_context(
    cluster: Cluster, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> RacksContext:
    freshness = metadata_freshness(runs, now)
    judge = RackJudge(cluster)
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    violating = TopicState.objects.filter(cluster=cluster, rack_violations__gt=0) if judge.known else None
    sums = {"number": Sum("rack_violations"), "all": Sum("partition_count")}
    totals = violating.aggregate(**sums) if violating is not None else {}
    number = totals.get("number") or 0
    counted = violating is not None and (totals.get("all") or 0) <= MOST_COUNTED
    counts = _count_violations(cluster, judge) if counted and number else ViolationCounts()
    page, rows = None, []
    if violating is not None:
        if text := listing.values["q"]:
            violating = violating.filter(name__icontains=text)
        rack = _read_rack(listing, counted=counted)
        if rack:
            violating = violating.filter(pk__in=counts.topics[rack])
        page = listing.page_of(violating.order_by(*listing.order()), TOPICS_PAGE)
        rows = _list_violating_topics(cluster, page.object_list, judge, rack)
    doubts = doubts_about(cluster)
    evaluated = judge.known and (figures.rack_violations is not None or number > 0)
    return {
        "listing": listing,
        "page": page,
        "rows": rows,
        "judge": judge,
        "figures": figures,
        "number": number,
        "counted": counted,
        "freshness": freshness,
        "title": _describe_racks(cluster.name, judge, figures, number, freshness, doubts),
        "racks": _build_cards(
            cluster,
            counts if counted or not number else None,
            freshness,
            evaluated=evaluated,
            certain=not freshness.stale and not doubts,
        ),
        "most_cells": MOST_CELLS,
    }


def _read_rack(listing: ListQuery, *, counted: bool) -> str:
    """Return the rack that the list is filtered by; '' for all racks."""
    rack = listing.values["rack"]
    if rack and not counted:
        listing.problems.append(message_text(CollectionErrorCode.RACKS_NOT_COUNTED))
        listing.values["rack"] = rack = ""
    return rack


def _list_violating_topics(cluster: Cluster, topics: Any, judge: RackJudge, rack: str) -> list[ViolatingTopic]:
    """The topics with what is wrong now; one whose partitions were judged otherwise meanwhile is left out.

    ``rack``: only partitions that it holds too many replicas of; '' for all.
    """
    listed = list(topics)
    moves = running_moves(cluster, [topic.name for topic in listed])
    labels = rack_labels(cluster)
    rows = []
    for topic in listed:
        found = [
            RackViolation(line, spread, min(len(line.replicas), len(judge.racks)))
            for line in partition_lines([topic], moves, labels)
            if (spread := judge.judge(line)) is not None and spread.violates and (not rack or rack in spread.crowded)
        ]
        if found:
            rows.append(ViolatingTopic(topic, found))
    return rows


def _count_violations(cluster: Cluster, judge: RackJudge) -> ViolationCounts:
    """Return how many violating partitions have too many replicas in each rack, and on its brokers; two queries."""
    topics = list(TopicState.objects.filter(cluster=cluster, rack_violations__gt=0).defer("config"))
    moves = running_moves(cluster, [topic.name for topic in topics])
    counts = ViolationCounts()
    for line in partition_lines(topics, moves):
        spread = judge.judge(line)
        if spread is None or not spread.violates:
            continue
        counts.brokers.update({broker for broker in line.replicas if judge.rack_of.get(broker) in spread.crowded})
        counts.racks.update(spread.crowded)
        for rack in spread.crowded:
            counts.topics[rack].add(line.topic.pk)
    return counts


def _build_cards(
    cluster: Cluster, counts: ViolationCounts | None, freshness: FactFreshness, *, evaluated: bool, certain: bool
) -> list[RackCard]:
    """Racks by name, brokers by id; those without a rack last. ``counts`` is None where violations are too many."""
    brokers = list(BrokerState.objects.filter(cluster=cluster, gone_at=None).defer("config").order_by("broker_id"))
    weights = {w.broker_id: w for w in BrokerWeights.objects.filter(cluster=cluster).defer("data")}
    per_broker = None if counts is None else counts.brokers
    by_rack: dict[str | None, list[BrokerState]] = defaultdict(list)
    for broker in brokers:
        by_rack[broker.rack].append(broker)
    racks = []
    for name in sorted(by_rack, key=lambda rack: (rack is None, rack or "")):
        cells = [_cell(broker, weights.get(broker.broker_id), per_broker, freshness) for broker in by_rack[name]]
        shown = cells if len(brokers) <= MOST_CELLS else [cell for cell in cells if cell.mark]
        racks.append(
            RackCard(
                name,
                shown[:MOST_CELLS],
                len(cells),
                sum(broker.replicas for broker in by_rack[name]),
                None if counts is None or name is None or not evaluated else counts.racks[name],
                certain,
            )
        )
    return racks


def _cell(
    broker: BrokerState, weights: BrokerWeights | None, per_broker: Mapping[int, int] | None, freshness: FactFreshness
) -> RackCell:
    state, word = broker_state(broker, freshness)
    directories = [directory_row(d) for d in weights.dirs] if weights else []
    known = [d for d in directories if d.percent is not None]
    return RackCell(
        broker=broker,
        state=state,
        word=word,
        violations=None if per_broker is None else per_broker.get(broker.broker_id, 0),
        bytes=weights.replica_bytes if weights else None,
        fullest=max(known, key=lambda d: d.percent or 0.0, default=None),
    )


def _describe_racks(
    name: str, judge: RackJudge, figures: ClusterState, number: int, freshness: FactFreshness, doubts: ReadingDoubts
) -> str:
    if freshness.taken_at is None:
        return f"{name}: no rack data yet"
    if freshness.stale and freshness.age_s is not None:
        return f"{name}: rack data is {format_duration(freshness.age_s)} old"
    if not judge.known:
        return f"{name}: {judge.why_not}" if judge.one_rack else f"{name}: rack spread unknown, {judge.why_not}"
    if figures.rack_violations is None and not number:
        return f"{name}: racks not evaluated yet"
    if number:
        total = choose_plural("# partition|# partitions", max(number, figures.partitions or 0))
        return f"{name}: {number:,} of {total} unbalanced across racks"
    if doubts:
        return f"{name}: rack spread unknown, {doubts.words}"
    offline = (figures.brokers_fenced or 0) + (figures.brokers_gone or 0)
    but = f", {choose_plural('# broker|# brokers', offline)} offline" if offline else ""
    return f"{name}: racks balanced{but}"


_KINDS = (CollectorKind.METADATA, CollectorKind.LOG_DIRS)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def racks(request: HttpRequest, slug: str) -> HttpResponse:
    """The map of racks and brokers, and the partitions that are not spread as they could be."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    runs = bar["standing"].runs
    racks = racks_context(cluster, rack_listing(request.GET), runs, bar["now"])
    context = {
        **bar,
        "tab": "racks",
        "live_keys": [read_hint(kind, slug) for kind in _KINDS],
        "not_read": not_read(cluster, runs, _KINDS),
        **racks,
        "may_repair": racks["judge"].known
        and racks["number"]
        and not cluster.read_only
        and is_allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "monitoring/racks.html", context)
