"""Pages of topics: the list, and one topic with its partitions, reassignments and configs.

The list is filtered, sorted and paged in the database, without unpacking any partition.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import LARGEST_INT, format_duration, format_size, read_whole_number
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural, message_text
from kafkadash.core.racks import RackSpread
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.kafka.config_values import MIN_ISR
from kafkadash.kafka.throttles import LISTS
from kafkadash.monitoring.brokers import leader_sizes
from kafkadash.monitoring.catch_up.pages import FollowerLine, load_followers
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.configs import ConfigRow, config_rows
from kafkadash.monitoring.eligible_replicas import LeaderCandidates, load_candidates
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import (
    FactFreshness,
    ReadingDoubts,
    doubts_about,
    freshness_of,
    metadata_freshness,
    not_read,
    silent_brokers,
)
from kafkadash.monitoring.groups.pages import ReaderLine, list_share_readers, readers_of
from kafkadash.monitoring.models import (
    ClusterState,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
    ThrottledResource,
    ThrottleState,
    TopicState,
)
from kafkadash.monitoring.offers import FeatureLack, KafkaFeature, load_lack
from kafkadash.monitoring.partitions import PartitionLine, PartitionTrouble, partition_lines, rack_labels, running_moves
from kafkadash.monitoring.racks import RackJudge, fix_words
from kafkadash.monitoring.reassignments.pages import ReassignmentRow
from kafkadash.monitoring.throttles import list_words
from kafkadash.monitoring.tiers.rules import PartitionTiers
from kafkadash.monitoring.tiers.stored import StoredTiers, load_tiers
from kafkadash.monitoring.topic_leaders import TopicLeaders, count_leaders
from kafkadash.monitoring.traffic.pages import topic_throughput
from kafkadash.monitoring.transactions.pages import MOST_LINES, StableLine, list_stable_lines

# Filter → (its word, the column that counts partitions in this state); in the order of how bad it is.
_COUNTED: Mapping[str, tuple[str, str]] = {
    "offline": ("Offline", "offline_partitions"),
    "under-min-isr": ("Under min-ISR", "under_min_isr"),
    "at-min-isr": ("At min-ISR", "at_min_isr"),
    "under-replicated": ("Under-replicated", "under_replicated"),
    "racks": ("Rack violation", "rack_violations"),
}
TOPIC_STATES = FilterChoice(
    "state", "state", {**{name: word for name, (word, _) in _COUNTED.items()}, "moving": "Moving"}
)
INTERNAL = FilterChoice("internal", "choice of internal topics", {"hide": "Hide internal", "only": "Only internal"})
_CRITICAL = ("offline", "under-min-isr")


@dataclass(frozen=True, slots=True)
class TopicMark:
    """A state with the number of partitions in it."""

    state: str
    words: str


@dataclass(frozen=True, slots=True)
class TopicLine:
    """Topic in a list. ``moving`` partitions are in a running reassignment; ``expected`` partitions miss only replicas
    that are still being copied.
    """

    topic: TopicState
    moving: int
    expected: int
    stale: bool

    @property
    def marks(self) -> Sequence[TopicMark]:
        """All that is wrong, worst first."""
        found = []
        for name, (word, column) in _COUNTED.items():
            number = getattr(self.topic, column)
            if number and name == "under-replicated":
                number -= self.expected
            if number and name == "at-min-isr":
                number = min(number, self._fewer_than_assigned)
            if number:
                found.append(
                    TopicMark(
                        "critical" if name in _CRITICAL else "warning", f"{number:,} {word[:1].lower()}{word[1:]}"
                    )
                )
        return found

    @property
    def _fewer_than_assigned(self) -> int:
        """At most so many are at min-ISR because a replica is missing; the filter counts those built so as well."""
        slack = self.topic.min_isr is not None and self.topic.replication_factor > self.topic.min_isr
        return self.topic.under_replicated - self.expected if slack else 0

    @property
    def preferred_percent(self) -> float | None:
        if self.topic.preferred_leaders is None or not self.topic.partition_count:
            return None
        return 100.0 * self.topic.preferred_leaders / self.topic.partition_count


@dataclass(frozen=True, slots=True)
class StateSegment:
    """A filter by state with how many topics it leaves; ``number`` is None where that is not known."""

    value: str
    word: str
    number: int | None


def topic_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[TOPIC_STATES, INTERNAL],
        texts=["q"],
        sorts={
            "name": [F("name")],
            "partitions": [F("partition_count"), F("name")],
            "rf": [F("replication_factor"), F("name")],
            "size": [F("size_bytes"), F("name")],
            "changed": [F("changed_at"), F("name")],
        },
        descending_first={"partitions", "rf", "size", "changed"},
    )


class TopicListContext(TypedDict):
    listing: ListQuery
    page: Page[Any]
    tally: dict[str, Any]
    segments: list[StateSegment]
    freshness: FactFreshness
    doubts: ReadingDoubts
    title: str
    rows: list[TopicLine]


def topic_list_context(
    cluster: Cluster, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> TopicListContext:
    """Return the context of one page of topics, with the counts of all topics."""
    freshness = metadata_freshness(runs, now)
    tally = _tally(cluster)
    doubts = doubts_about(cluster)
    page = listing.page_of(_filter_topics(cluster, listing))
    topics = list(page.object_list)
    moving = _moving_by_topic(cluster, [topic.name for topic in topics])
    expected = _count_explained(cluster, [topic for topic in topics if topic.name in moving and topic.under_replicated])
    return {
        "listing": listing,
        "page": page,
        "tally": tally,
        "segments": _segments(tally),
        "freshness": freshness,
        "doubts": doubts,
        "title": _describe_topics(cluster.name, tally, _count_unexplained(cluster), freshness, doubts),
        "rows": [
            TopicLine(topic, moving.get(topic.name, 0), expected[topic.name], freshness.stale) for topic in topics
        ],
    }


def _running_reassignments(cluster: Cluster) -> QuerySet[ReassignmentSnapshot]:
    return ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)


def _filter_topics(cluster: Cluster, listing: ListQuery) -> QuerySet[TopicState]:
    rows = TopicState.objects.filter(cluster=cluster).defer("partitions", "config")
    state = listing.values["state"]
    if state == "moving":
        rows = rows.filter(name__in=_running_reassignments(cluster).values("topic"))
    elif state:
        rows = rows.filter(**{f"{_COUNTED[state][1]}__gt": 0})
    if listing.values["internal"]:
        rows = rows.filter(internal=listing.values["internal"] == "only")
    if text := listing.values["q"]:
        rows = rows.filter(name__icontains=text)
    return rows.order_by(*listing.order())


def _tally(cluster: Cluster) -> dict[str, Any]:
    """How many topics there are, and how many of them are in each state."""
    counts: dict[str, Any] = TopicState.objects.filter(cluster=cluster).aggregate(
        topics=Count("pk"),
        internal=Count("pk", filter=Q(internal=True)),
        all_partitions=Sum("partition_count"),
        judged_isr=Count("under_min_isr"),
        judged_racks=Count("rack_violations"),
        **{column: Count("pk", filter=Q(**{f"{column}__gt": 0})) for _, column in _COUNTED.values()},
    )
    if counts["topics"] and not counts["judged_isr"]:
        counts["under_min_isr"] = counts["at_min_isr"] = None
    if counts["topics"] and not counts["judged_racks"]:
        counts["rack_violations"] = None
    counts["moving"] = _running_reassignments(cluster).values("topic").distinct().count()
    return counts


def _segments(tally: Mapping[str, Any]) -> list[StateSegment]:
    known = [StateSegment(name, word, tally[column]) for name, (word, column) in _COUNTED.items()]
    return [StateSegment("", "All", tally["topics"]), *known, StateSegment("moving", "Moving", tally["moving"])]


def _moving_by_topic(cluster: Cluster, names: Sequence[str]) -> dict[str, int]:
    grouped = _running_reassignments(cluster).filter(topic__in=names).values("topic").annotate(partitions=Count("pk"))
    return {row["topic"]: row["partitions"] for row in grouped}


def _count_explained(cluster: Cluster, topics: Sequence[TopicState]) -> Counter[str]:
    """Count, per moving topic, the partitions that miss only replicas being added. Only these topics are unpacked."""
    packed = TopicState.objects.filter(pk__in=[topic.pk for topic in topics]).defer("config")
    moves = running_moves(cluster, [topic.name for topic in topics])
    return Counter(line.topic.name for line in partition_lines(packed, moves) if line.shape.explained_by_move)


def _count_unexplained(cluster: Cluster) -> int | None:
    """Under-replicated partitions of the cluster that no move explains; None where that was not counted."""
    counts = ClusterState.objects.filter(cluster=cluster).values_list("under_replicated", "under_replicated_moving")
    under, moving = counts.first() or (None, None)
    return None if under is None or moving is None else under - moving


def _describe_topics(
    name: str, tally: Mapping[str, Any], unexplained: int | None, freshness: FactFreshness, doubts: ReadingDoubts
) -> str:
    if freshness.taken_at is None:
        return f"{name}: no topic data yet"
    topics = choose_plural("# topic|# topics", tally["topics"])
    if freshness.stale and freshness.age_s is not None:
        return f"{name}: {topics} known {format_duration(freshness.age_s)} ago"
    but = f"; {doubts.words}" if doubts else ""
    if not tally["topics"]:
        return f"{name}: no {'visible ' if doubts else ''}topics{but}"
    by_moves = " by reassignments" if unexplained == 0 else ""
    worst_first = (
        ("offline_partitions", "with offline partitions"),
        ("under_min_isr", "under min-ISR"),
        ("under_replicated", f"under-replicated{by_moves}"),
    )
    for column, state in worst_first:
        if tally[column]:
            return f"{name}: {tally[column]:,} of {topics} {state}{but}"
    if doubts:
        return f"{name}: topic state unknown{but}"
    return f"{name}: {tally['topics']:,} of {topics} in sync"


MOST_MOVES = 25
MOST_GROUPS = 25
PARTITION_STATES = FilterChoice(
    "state",
    "state",
    {
        "offline": "Offline",
        "under-min-isr": "Under min-ISR",
        "at-min-isr": "At min-ISR",
        "under-replicated": "Under-replicated",
        "racks": "Rack violation",
        "moving": "Moving",
        "not-preferred": "Non-preferred leader",
    },
)


@dataclass(frozen=True)
class TopicPartitionRow:
    """A partition with its spread over the racks; ``spread`` is None where racks cannot be judged.

    ``size_percent``: its size beside that of the topic's largest partition; None where a size is unknown.
    ``candidates``: stored ELR, None where all replicas are in sync or nothing was read. ``tiers``: of a tiered topic.
    """

    line: PartitionLine
    spread: RackSpread | None
    size_percent: float | None = None
    candidates: LeaderCandidates | None = None
    behind: Sequence[FollowerLine] = ()
    tiers: PartitionTiers | None = None

    @property
    def remote_bytes(self) -> int | None:
        """Return an estimate of the bytes in remote storage."""
        return self.tiers.remote_bytes if self.tiers else None

    @property
    def electable(self) -> bool:
        """Return whether the preferred replica is in sync and another one leads."""
        return self.line.leader is not None and self.line.preferred is False and self.line.replicas[0] in self.line.isr

    @property
    def troubled(self) -> bool:
        return self.line.shape.offline or self.line.shape.under_replicated

    @property
    def rack_words(self) -> str:
        return fix_words(self.spread) if self.spread is not None and self.spread.violates else ""


_IS: Mapping[str, Callable[[TopicPartitionRow], bool]] = {
    "offline": lambda p: p.line.trouble is PartitionTrouble.OFFLINE,
    "under-min-isr": lambda p: _in_sync_is(p, lambda held, needed: held < needed),
    "at-min-isr": lambda p: _in_sync_is(p, lambda held, needed: held == needed),
    "under-replicated": lambda p: p.line.shape.under_replicated,
    "racks": lambda p: p.spread is not None and p.spread.violates,
    "moving": lambda p: p.line.move is not None,
    "not-preferred": lambda p: p.line.preferred is False,
}


def partition_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[PARTITION_STATES],
        texts=["broker"],
        sorts={"partition": [F("partition")], "size": [F("size")], "state": [F("state")]},
        descending_first={"size"},
    )


class TopicContext(TypedDict):
    topic: TopicState
    listing: ListQuery
    page: Page[Any]
    rows: list[TopicPartitionRow]
    eligible_at: datetime | None
    no_eligible: FeatureLack | None
    tiers: StoredTiers | None
    size_skew: str
    leaders: TopicLeaders
    counts: dict[Any, Any]
    segments: list[tuple[str, ...]]
    freshness: FactFreshness
    tier_freshness: FactFreshness
    config_freshness: FactFreshness
    title: str
    configs: list[ConfigRow]
    min_isr_source: Any
    racks_sentence: str
    rack_violations: int | None
    moves: list[ReassignmentRow]
    moves_more: bool
    throttle_lists: list[ListRow]
    groups: list[ReaderLine]
    groups_more: bool
    share_groups: list[tuple[str, str]]
    group_freshness: FactFreshness
    throttles_known: bool
    stable_lines: list[StableLine]
    stable_number: int
    stable_more: bool
    stable_freshness: FactFreshness


def topic_context(
    cluster: Cluster, topic: TopicState, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> TopicContext:
    freshness = metadata_freshness(runs, now)
    moves = running_moves(cluster, [topic.name])
    racks = RackJudge(cluster)
    labels = rack_labels(cluster)
    silent = silent_brokers(cluster)
    every = [TopicPartitionRow(line, racks.judge(line)) for line in partition_lines([topic], moves, labels, silent)]
    kept = _filter_partitions(every, listing)
    sizes = leader_sizes(cluster, topic.name, {p.line.number: p.line.leader for p in every})
    largest = max(sizes.values(), default=0)
    page = listing.page_of(_sort_partitions(kept, listing, sizes))
    configs = runs.get(CollectorKind.CONFIGS)
    lists = ThrottleState.objects.filter(cluster=cluster, resource=ThrottledResource.TOPIC, name=topic.name)
    config = topic.config or {}
    troubled = topic.offline_partitions or topic.under_replicated
    candidates = load_candidates(cluster, [topic.topic_id]) if troubled else {}
    lacking = {broker for p in every if len(p.line.isr) < len(p.line.replicas) for broker in p.line.missing}
    behind = load_followers(topic, lacking, runs, now) if topic.under_replicated else {}
    tiers, disk_freshness = load_tiers(cluster, topic), freshness_of(runs.get(CollectorKind.LOG_DIRS), now)
    group_freshness = freshness_of(runs.get(CollectorKind.GROUPS), now)
    stable_freshness = freshness_of(runs.get(CollectorKind.TRANSACTIONS), now)
    stable_lines = list_stable_lines(cluster, topic.name, topic.topic_id, stable_freshness)
    readers = readers_of(cluster, topic.name, runs.get(CollectorKind.GROUPS), now, MOST_GROUPS + 1)
    return {
        "topic": topic,
        "listing": listing,
        "page": page,
        "rows": [
            replace(
                _add_size(each, sizes.get(each.line.number), largest),
                candidates=candidates.get((topic.topic_id, each.line.number)),
                behind=behind.get(each.line.number, ()),
                tiers=tiers.partitions.get(each.line.number) if tiers else None,
            )
            for each in page.object_list
        ],
        "eligible_at": next((own.taken_at for own in candidates.values()), None),
        "no_eligible": load_lack(cluster, KafkaFeature.ELIGIBLE_REPLICAS) if candidates else None,
        "tiers": tiers,
        "size_skew": _describe_size_skew(list(sizes.values())),
        "leaders": count_leaders([each.line for each in every], sizes),
        "counts": {name: sum(map(matches, every)) for name, matches in _IS.items()},
        "segments": [(name, word) for name, word in PARTITION_STATES.words.items()],
        "freshness": freshness,
        "tier_freshness": replace(disk_freshness, taken_at=tiers.taken_at if tiers else None),
        "config_freshness": freshness_of(configs, now),
        "title": _topic_title(topic, every, freshness),
        "configs": config_rows(topic.config),
        "min_isr_source": config[MIN_ISR][1] if MIN_ISR in config else "default",
        "racks_sentence": racks.why_not,
        "rack_violations": sum(p.spread is not None and p.spread.violates for p in every) if racks.known else None,
        "moves": [ReassignmentRow(row, now) for _, row in sorted(moves.items())[:MOST_MOVES]],
        "moves_more": len(moves) > MOST_MOVES,
        "throttle_lists": [ListRow(row, list_words(row.value)) for row in lists.filter(key__in=LISTS).order_by("key")],
        "groups": readers[:MOST_GROUPS],
        "groups_more": len(readers) > MOST_GROUPS,
        "share_groups": list_share_readers(cluster, topic.name, MOST_GROUPS),
        "group_freshness": group_freshness,
        "throttles_known": bool(configs and configs.succeeded_at),
        "stable_lines": stable_lines[:MOST_LINES],
        "stable_number": len(stable_lines),
        "stable_more": len(stable_lines) > MOST_LINES,
        "stable_freshness": stable_freshness,
    }


def _add_size(row: TopicPartitionRow, size: int | None, largest: int) -> TopicPartitionRow:
    percent = 100.0 * size / largest if size is not None and largest else None
    return TopicPartitionRow(replace(row.line, size_bytes=size), row.spread, percent)


def _describe_size_skew(sizes: Sequence[int]) -> str:
    """Return text such as "Largest partition 840.0 MB, 2.1 × the mean"; '' for less than two known sizes."""
    if len(sizes) < 2 or not sum(sizes):
        return ""
    mean = sum(sizes) / len(sizes)
    return f"Largest partition {format_size(max(sizes))}, {max(sizes) / mean:,.1f} × the mean."


def _filter_partitions(every: Sequence[TopicPartitionRow], listing: ListQuery) -> list[TopicPartitionRow]:
    kept = list(every)
    if state := listing.values["state"]:
        kept = [p for p in kept if _IS[state](p)]
    if typed := listing.values["broker"]:
        broker = read_whole_number(typed, LARGEST_INT)
        if broker is None:
            listing.problems.append(message_text(CollectionErrorCode.PARTITIONS_NO_BROKER, typed=typed[:60]))
            listing.values["broker"] = ""
        else:
            kept = [p for p in kept if broker in p.line.replicas]
    return kept


def _sort_partitions(
    kept: list[TopicPartitionRow], listing: ListQuery, sizes: Mapping[int, int]
) -> list[TopicPartitionRow]:
    """Unknown sizes come last whichever way."""
    sign = -1 if listing.descending else 1
    keys: Mapping[str, Callable[[TopicPartitionRow], Any]] = {
        "partition": lambda p: sign * p.line.number,
        "state": lambda p: (sign * p.line.trouble.rank, p.line.number),
        "size": lambda p: (p.line.number not in sizes, sign * sizes.get(p.line.number, 0), p.line.number),
    }
    return sorted(kept, key=keys[listing.sort])


def _in_sync_is(partition: TopicPartitionRow, compare: Callable[[int, int], bool]) -> bool:
    """Return whether ``compare`` holds for ISR size and min.insync.replicas, as Kafka's tool does; False if unknown."""
    needed = partition.line.topic.min_isr
    return needed is not None and compare(len(set(partition.line.isr)), needed)


@dataclass(frozen=True, slots=True)
class ListRow:
    """A list of throttled replicas in words."""

    row: ThrottleState
    words: str


def _topic_title(topic: TopicState, every: Sequence[TopicPartitionRow], freshness: FactFreshness) -> str:
    partitions = choose_plural("# partition|# partitions", len(every))
    if freshness.stale and freshness.age_s is not None:
        return f"{topic.name}: {partitions} known {format_duration(freshness.age_s)} ago"
    troubles = Counter(p.line.trouble for p in every)
    for trouble, words in (
        (PartitionTrouble.OFFLINE, "offline"),
        (PartitionTrouble.LEADER_SILENT, "with unreachable leader"),
        (PartitionTrouble.UNDER_MIN_ISR, "under min-ISR"),
        (PartitionTrouble.AT_MIN_ISR, "at min-ISR"),
        (PartitionTrouble.UNDER_REPLICATED, "under-replicated"),
        (PartitionTrouble.IN_DOUBT, "on unreachable brokers"),
        (PartitionTrouble.CATCHING_UP, "moving"),
    ):
        if number := troubles[trouble]:
            return f"{topic.name}: {number:,} of {partitions} {words}"
    return f"{topic.name}: {len(every):,} of {partitions} in sync"


_KINDS = (CollectorKind.METADATA, CollectorKind.LOG_DIRS, CollectorKind.CONFIGS)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def topics(request: HttpRequest, slug: str) -> HttpResponse:
    """All topics; filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    runs = bar["standing"].runs
    context = {
        **bar,
        "tab": "topics",
        "live_keys": [read_hint(kind, slug) for kind in (*_KINDS, CollectorKind.REASSIGNMENTS)],
        "not_read": not_read(cluster, runs, _KINDS),
        **topic_list_context(cluster, topic_listing(request.GET), runs, bar["now"]),
        "may_create": not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
    }
    return render(request, "monitoring/topics.html", context)


def find_topic(cluster: Cluster, name: str, **required: Any) -> TopicState:
    """Return the newest topic of a name, with columns as required. Raises MissingObject."""
    row = None
    if "\x00" not in name:  # which PostgreSQL takes in no text
        row = TopicState.objects.filter(cluster=cluster, name=name, **required).order_by("-changed_at").first()
    if row is None:
        raise MissingObject(CollectionErrorCode.TOPIC_NOT_SEEN, cluster=cluster.name, topic=name)
    return row


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def topic(request: HttpRequest, slug: str, topic: str) -> HttpResponse:
    """Show one topic by its name. A deleted topic has no page: a new topic may have its name by now."""
    cluster = cluster_for(request, slug, VIEW)
    row = find_topic(cluster, topic)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    runs = bar["standing"].runs
    kinds = (
        *_KINDS,
        CollectorKind.REASSIGNMENTS,
        CollectorKind.GROUPS,
        CollectorKind.CATCH_UP,
        CollectorKind.TRANSACTIONS,
    )
    misled = row.preferred_leaders is not None and row.preferred_leaders < row.partition_count
    may_propose = not cluster.read_only and is_allowed(request.user, PROPOSE, cluster)
    shown = topic_context(cluster, row, partition_listing(request.GET), runs, bar["now"])
    context = {
        **bar,
        "tab": "topics",
        "live_keys": [read_hint(kind, slug) for kind in kinds],
        "not_read": not_read(cluster, runs, kinds),
        **shown,
        "may_elect": misled and may_propose,
        "may_choose": may_propose and any(each.electable for each in shown["rows"]),
        "may_elect_uncleanly": bool(row.offline_partitions) and may_propose,
        "may_propose": may_propose,
        "may_grow": may_propose and not row.internal,
        "may_delete": may_propose and row.deletable,
        "throughput": topic_throughput(
            cluster, row.name, request.GET.get("traffic"), bar["now"], runs.get(CollectorKind.TRAFFIC)
        ),
    }
    return render(request, "monitoring/topic.html", context)
