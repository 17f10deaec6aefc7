"""The list of all topics of a cluster: filtered, sorted and paged in the database, without unpacking any partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, Q, QuerySet, Sum
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.wording import count, duration, listed
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import ClusterState, CollectorRun, Outcome, ReassignmentSnapshot, TopicState
from kafkadash.observe.partition_rows import partition_lines, running_moves
from kafkadash.observe.standing import Freshness, ReadingDoubts, doubts_about, metadata_freshness

# Filter → (its word, the column that counts partitions in this state); in the order of how bad it is.
_COUNTED: Mapping[str, tuple[str, str]] = {
    "offline": ("Offline", "offline_partitions"),
    "under-min-isr": ("Under min-ISR", "under_min_isr"),
    "at-min-isr": ("At min-ISR", "at_min_isr"),
    "under-replicated": ("Under-replicated", "under_replicated"),
    "racks": ("Rack violation", "rack_violations"),
}
STATES = Choice("state", "state", {**{name: word for name, (word, _) in _COUNTED.items()}, "moving": "Moving"})
INTERNAL = Choice("internal", "choice of internal topics", {"hide": "Hide internal", "only": "Only internal"})
_CRITICAL = ("offline", "under-min-isr")


@dataclass(frozen=True, slots=True)
class Mark:
    """A state with the number of partitions in it."""

    state: str
    words: str


@dataclass(frozen=True, slots=True)
class TopicLine:
    """One topic. ``moving`` partitions are in a running reassignment; ``expected`` of those that miss replicas only
    wait for one to be copied."""

    topic: TopicState
    moving: int
    expected: int
    stale: bool

    @property
    def marks(self) -> Sequence[Mark]:
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
                    Mark("critical" if name in _CRITICAL else "warning", f"{number:,} {word[:1].lower()}{word[1:]}")
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
class Segment:
    """A filter by state with how many topics it leaves; ``number`` is None where that is not known."""

    value: str
    word: str
    number: int | None


def topic_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[STATES, INTERNAL],
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


def topic_list_context(
    cluster: Cluster, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    """One page of topics with the tally of all of them."""
    freshness = metadata_freshness(runs, now)
    tally = _tally(cluster)
    doubts = doubts_about(cluster)
    page = listing.page_of(_filtered(cluster, listing))
    topics = list(page.object_list)
    moving = _moving_by_topic(cluster, [topic.name for topic in topics])
    expected = _explained(cluster, [topic for topic in topics if topic.name in moving and topic.under_replicated])
    return {
        "listing": listing,
        "page": page,
        "tally": tally,
        "segments": _segments(tally),
        "freshness": freshness,
        "doubts": doubts,
        "title": _title(cluster.name, tally, _unexplained(cluster), freshness, doubts),
        "rows": [
            TopicLine(topic, moving.get(topic.name, 0), expected[topic.name], freshness.stale) for topic in topics
        ],
    }


def _running(cluster: Cluster) -> QuerySet[ReassignmentSnapshot]:
    return ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)


def _filtered(cluster: Cluster, listing: Listing) -> QuerySet[TopicState]:
    rows = TopicState.objects.filter(cluster=cluster).defer("partitions", "config")
    state = listing.values["state"]
    if state == "moving":
        rows = rows.filter(name__in=_running(cluster).values("topic"))
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
    counts["moving"] = _running(cluster).values("topic").distinct().count()
    return counts


def _segments(tally: Mapping[str, Any]) -> list[Segment]:
    known = [Segment(name, word, tally[column]) for name, (word, column) in _COUNTED.items()]
    return [Segment("", "All", tally["topics"]), *known, Segment("moving", "Moving", tally["moving"])]


def _moving_by_topic(cluster: Cluster, names: Sequence[str]) -> dict[str, int]:
    grouped = _running(cluster).filter(topic__in=names).values("topic").annotate(partitions=Count("pk"))
    return {row["topic"]: row["partitions"] for row in grouped}


def _explained(cluster: Cluster, topics: Sequence[TopicState]) -> Counter[str]:
    """Of topics that move: how many partitions miss only replicas that are being added. Only these are unpacked."""
    packed = TopicState.objects.filter(pk__in=[topic.pk for topic in topics]).defer("config")
    moves = running_moves(cluster, [topic.name for topic in topics])
    return Counter(line.topic.name for line in partition_lines(packed, moves) if line.shape.explained_by_move)


def _unexplained(cluster: Cluster) -> int | None:
    """Under-replicated partitions of the cluster that no move explains; None where that was not counted."""
    counts = ClusterState.objects.filter(cluster=cluster).values_list("under_replicated", "under_replicated_moving")
    under, moving = counts.first() or (None, None)
    return None if under is None or moving is None else under - moving


def _title(
    name: str, tally: Mapping[str, Any], unexplained: int | None, freshness: Freshness, doubts: ReadingDoubts
) -> str:
    if freshness.taken_at is None:
        return f"Cannot tell which topics {name} has: nothing was collected yet."
    topics = count(tally["topics"], "topic")
    if freshness.stale and freshness.age_s is not None:
        seen = f"{topics} {'was' if tally['topics'] == 1 else 'were'} there {duration(freshness.age_s)} ago"
        return f"Cannot tell how the topics of {name} are: {seen}."
    if not tally["topics"]:
        return f"{name} shows no topics: {doubts.words}." if doubts else f"{name} has no topics."
    wrong = []
    if tally["offline_partitions"]:
        wrong.append(f"{tally['offline_partitions']:,} {_have(tally['offline_partitions'])} offline partitions")
    if tally["under_min_isr"]:
        wrong.append(f"{tally['under_min_isr']:,} {'is' if tally['under_min_isr'] == 1 else 'are'} under min-ISR")
    if tally["under_replicated"] and not wrong:
        number = tally["under_replicated"]
        why = ", waiting for moves" if unexplained == 0 else ""
        wrong.append(f"{number:,} {'is' if number == 1 else 'are'} under-replicated{why}")
    if wrong:
        return f"Of {topics}, {listed(wrong)}{f'; {doubts.words}' if doubts else ''}."
    if doubts:
        return f"Cannot tell how all topics of {name} are: {doubts.words}."
    if tally["topics"] == 1:
        return f"The only topic of {name} has all its replicas in sync."
    return f"All {topics} of {name} have all their replicas in sync."


def _have(number: int) -> str:
    return "has" if number == 1 else "have"
