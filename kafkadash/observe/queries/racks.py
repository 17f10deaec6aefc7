"""The racks of a cluster: which broker stands where, which partitions are not spread as they could be."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Sum
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.rack_spread import Spread
from kafkadash.domain.wording import count, duration
from kafkadash.observe.listing import Listing
from kafkadash.observe.models import BrokerState, BrokerWeights, ClusterState, CollectorRun, TopicState
from kafkadash.observe.partition_rows import PartitionLine, partition_lines, rack_labels, running_moves
from kafkadash.observe.queries.brokers import DirectoryRow, broker_state, directory_row
from kafkadash.observe.rack_judge import RackJudge
from kafkadash.observe.rack_words import fix_words, moves_words
from kafkadash.observe.standing import Freshness, ReadingDoubts, doubts_about, metadata_freshness

TOPICS_PAGE = 20
MOST_OF_A_TOPIC = 10
MOST_CELLS = 90
"""With more brokers, racks show their sums and only the cells that hold a violation."""
MOST_COUNTED = 20_000
"""Partitions of violating topics up to which violations are counted per broker."""


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
class Rack:
    """``name`` is None for the brokers that name none; '' is a name."""

    name: str | None
    cells: Sequence[RackCell]
    brokers: int
    replicas: int

    @property
    def hidden(self) -> int:
        return self.brokers - len(self.cells)


@dataclass(frozen=True)
class Violation:
    line: PartitionLine
    spread: Spread
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
    violations: Sequence[Violation]

    @property
    def shown(self) -> Sequence[Violation]:
        return self.violations[:MOST_OF_A_TOPIC]

    @property
    def more(self) -> int:
        return len(self.violations) - len(self.shown)

    @property
    def fix(self) -> str:
        """For the whole topic."""
        if len(self.violations) == 1:
            return self.violations[0].fix
        moves = sum(violation.spread.moves for violation in self.violations)
        return moves_words(moves).replace("fixes it", "fixes them").replace("fix it", "fix them")


def rack_listing(query: QueryDict) -> Listing:
    return Listing(
        query, texts=["q"], sorts={"violations": [F("rack_violations"), F("name")]}, descending_first={"violations"}
    )


def racks_context(
    cluster: Cluster, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    freshness = metadata_freshness(runs, now)
    judge = RackJudge(cluster)
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    violating = TopicState.objects.filter(cluster=cluster, rack_violations__gt=0) if judge.known else None
    sums = {"number": Sum("rack_violations"), "all": Sum("partition_count")}
    totals = violating.aggregate(**sums) if violating is not None else {}
    number = totals.get("number") or 0
    counted = violating is not None and (totals.get("all") or 0) <= MOST_COUNTED
    page, rows = None, []
    if violating is not None:
        if text := listing.values["q"]:
            violating = violating.filter(name__icontains=text)
        page = listing.page_of(violating.order_by(*listing.order()), TOPICS_PAGE)
        rows = _violating(cluster, page.object_list, judge)
    per_broker = _per_broker(cluster, judge) if counted and number else Counter()
    return {
        "listing": listing,
        "page": page,
        "rows": rows,
        "judge": judge,
        "figures": figures,
        "number": number,
        "counted": counted,
        "freshness": freshness,
        "title": _title(cluster.name, judge, figures, number, freshness, doubts_about(cluster)),
        "racks": _racks(cluster, per_broker if counted or not number else None, freshness),
        "most_cells": MOST_CELLS,
    }


def _violating(cluster: Cluster, topics: Any, judge: RackJudge) -> list[ViolatingTopic]:
    """The topics with what is wrong now; one whose partitions were judged otherwise meanwhile is left out."""
    listed = list(topics)
    moves = running_moves(cluster, [topic.name for topic in listed])
    labels = rack_labels(cluster)
    rows = []
    for topic in listed:
        found = [
            Violation(line, spread, min(len(line.replicas), len(judge.racks)))
            for line in partition_lines([topic], moves, labels)
            if (spread := judge.judge(line)) is not None and spread.violates
        ]
        if found:
            rows.append(ViolatingTopic(topic, found))
    return rows


def _per_broker(cluster: Cluster, judge: RackJudge) -> Counter[int]:
    """How many violating partitions have a replica on this broker, in a rack that holds too many of them."""
    topics = list(TopicState.objects.filter(cluster=cluster, rack_violations__gt=0).defer("config"))
    moves = running_moves(cluster, [topic.name for topic in topics])
    held: Counter[int] = Counter()
    for line in partition_lines(topics, moves):
        spread = judge.judge(line)
        if spread is not None and spread.violates:
            held.update({broker for broker in line.replicas if judge.rack_of.get(broker) in spread.crowded})
    return held


def _racks(cluster: Cluster, per_broker: Mapping[int, int] | None, freshness: Freshness) -> list[Rack]:
    """Racks by name, brokers by id; those without a rack last."""
    brokers = list(BrokerState.objects.filter(cluster=cluster, gone_at=None).defer("config").order_by("broker_id"))
    weights = {w.broker_id: w for w in BrokerWeights.objects.filter(cluster=cluster).defer("data")}
    by_rack: dict[str | None, list[BrokerState]] = defaultdict(list)
    for broker in brokers:
        by_rack[broker.rack].append(broker)
    racks = []
    for name in sorted(by_rack, key=lambda rack: (rack is None, rack or "")):
        cells = [_cell(broker, weights.get(broker.broker_id), per_broker, freshness) for broker in by_rack[name]]
        shown = cells if len(brokers) <= MOST_CELLS else [cell for cell in cells if cell.mark]
        racks.append(Rack(name, shown[:MOST_CELLS], len(cells), sum(broker.replicas for broker in by_rack[name])))
    return racks


def _cell(
    broker: BrokerState, weights: BrokerWeights | None, per_broker: Mapping[int, int] | None, freshness: Freshness
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


def _title(
    name: str, judge: RackJudge, figures: ClusterState, number: int, freshness: Freshness, doubts: ReadingDoubts
) -> str:
    if freshness.taken_at is None:
        return f"Cannot tell how {name} lies over its racks: nothing was collected yet."
    if freshness.stale and freshness.age_s is not None:
        return f"Cannot tell how {name} lies over its racks: it was last seen {duration(freshness.age_s)} ago."
    if not judge.known:
        if judge.one_rack:
            return f"All brokers of {name} are in one rack: losing it loses the cluster."
        return f"Racks of {name} cannot be judged: {judge.why_not}."
    if figures.rack_violations is None and not number:
        return f"The racks of {name} were not judged yet."
    total = figures.partitions if figures.partitions is not None else number
    racks = count(len(judge.racks), "rack")
    if not number and doubts:
        return f"Cannot tell how all of {name} lies over its racks: {doubts.words}."
    if not number:
        return f"All {count(total, 'partition')} of {name} are spread over {racks} as evenly as they can be."
    verb = "is" if number == 1 else "are"
    return f"{number:,} of {count(total, 'partition')} {verb} not spread over {racks} as evenly as could be."
