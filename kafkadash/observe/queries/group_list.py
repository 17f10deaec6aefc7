"""The list of all consumer groups of a cluster: filtered, sorted and paged in the database, without their windows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, F, QuerySet
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.lag import LagState
from kafkadash.domain.lag_group import STATES
from kafkadash.domain.lag_words import WORDS
from kafkadash.domain.status import State
from kafkadash.domain.wording import count, duration, listed
from kafkadash.observe.group_lag import WORST_FIRST
from kafkadash.observe.group_names import slug_of
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import CollectorRun, GroupState, Kind, UnjudgedGroup
from kafkadash.observe.standing import Freshness, freshness_of

MOST_OTHERS = 100
"""Groups that are not judged, on one page."""

NOTHING = "nothing"
"""In addresses: groups that have committed nothing."""
VERDICTS = Choice(
    "verdict", "verdict", {**{state.value: WORDS[state] for state in WORST_FIRST}, NOTHING: "Nothing committed"}
)
KAFKA_STATES = Choice(
    "state",
    "state",
    {
        "stable": "Stable",
        "empty": "Empty",
        "rebalancing": "Rebalancing",
        "dead": "Dead",
        "other": "Another state",
    },
)
# Of both protocols (org.apache.kafka.common.GroupState); each is in one of the filters.
_STATES: Mapping[str, tuple[str, ...]] = {
    "stable": ("Stable",),
    "empty": ("Empty",),
    "rebalancing": ("PreparingRebalance", "CompletingRebalance", "Assigning", "Reconciling"),
    "dead": ("Dead",),
}
_DO: Mapping[LagState, tuple[str, str]] = {
    LagState.STOP: ("has stopped", "have stopped"),
    LagState.STALL: ("stalls", "stall"),
    LagState.ERR: ("stands still", "stand still"),
    LagState.REWIND: ("was set back", "were set back"),
    LagState.WARN: ("falls behind", "fall behind"),
}


@dataclass(frozen=True, slots=True)
class GroupLine:
    """One group in a list; ``old``: its own data is too old to say how it does now."""

    group: GroupState
    freshness: Freshness

    @property
    def slug(self) -> str:
        return slug_of(self.group.name)

    @property
    def old(self) -> bool:
        return self.freshness.stale

    @property
    def state(self) -> State:
        """Colour and shape; nothing old is green."""
        if self.old or not self.group.worst:
            return State.UNKNOWN
        return STATES[LagState(self.group.worst)]

    @property
    def word(self) -> str:
        if not self.group.worst:
            return "Nothing committed"
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
class Segment:
    """A filter by verdict with how many groups it leaves."""

    value: str
    word: str
    number: int
    state: str


def group_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[VERDICTS, KAFKA_STATES],
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


def group_list_context(
    cluster: Cluster, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    """One page of groups with the tally of all of them."""
    run = runs.get(Kind.GROUPS)
    freshness = freshness_of(run, now)
    tally = tally_of(cluster)
    page = listing.page_of(_filtered(cluster, listing))
    others = list(others_of(cluster)[: MOST_OTHERS + 1])
    return {
        "listing": listing,
        "page": page,
        "total": sum(tally.values()),
        "segments": _segments(tally),
        "states": KAFKA_STATES.words,
        "freshness": freshness,
        "title": title_of(cluster.name, tally, freshness, other_words(cluster)),
        "other_groups": others[:MOST_OTHERS],
        "others_more": len(others) > MOST_OTHERS,
        "rows": [GroupLine(row, _freshness(row, run, freshness, now)) for row in page.object_list],
    }


def present(cluster: Cluster) -> QuerySet[GroupState]:
    """Groups that Kafka lists, as far as is known."""
    return GroupState.objects.filter(cluster=cluster, gone_at=None)


def group_freshness(row: GroupState, run: CollectorRun | None, now: datetime) -> Freshness:
    """Of one group: its coordinator may not have answered while others did."""
    return _freshness(row, run, freshness_of(run, now), now)


def _freshness(row: GroupState, run: CollectorRun | None, of_kind: Freshness, now: datetime) -> Freshness:
    return Freshness(row.taken_at, run.interval_s if run else of_kind.interval_s, now)


def _filtered(cluster: Cluster, listing: Listing) -> QuerySet[GroupState]:
    rows = present(cluster).defer("times", "counts")
    if verdict := listing.values["verdict"]:
        rows = rows.filter(worst="" if verdict == NOTHING else verdict)
    if state := listing.values["state"]:
        named = [word for words in _STATES.values() for word in words]
        rows = rows.exclude(state__in=named) if state == "other" else rows.filter(state__in=_STATES[state])
    if topic := listing.values["topic"]:
        rows = rows.filter(topics__has_key=topic)
    if text := listing.values["q"]:
        rows = rows.filter(name__icontains=text)
    return rows.order_by(*listing.order())


def tally_of(cluster: Cluster) -> dict[str, int]:
    """How many groups have a worst partition in each state; '' for those that have none."""
    found = present(cluster).values("worst").annotate(number=Count("pk"))
    return {row["worst"]: row["number"] for row in found}


def _segments(tally: Mapping[str, int]) -> list[Segment]:
    every = Segment("", "All", sum(tally.values()), "")
    own = [Segment(s.value, WORDS[s], tally.get(s.value, 0), STATES[s].value) for s in WORST_FIRST]
    return [every, *own, Segment(NOTHING, VERDICTS.words[NOTHING], tally.get("", 0), State.UNKNOWN.value)]


def others_of(cluster: Cluster) -> QuerySet[UnjudgedGroup]:
    """Groups that are no consumer groups, by name."""
    return UnjudgedGroup.objects.filter(cluster=cluster).order_by("name")


def other_words(cluster: Cluster) -> str:
    """How many groups there are that are not judged, such as "2 share groups are not judged"; "" without any."""
    kinds = others_of(cluster).order_by("kind").values_list("kind").annotate(number=Count("pk"))
    found = [(number, count(number, f"{kind} group")) for kind, number in kinds]
    if not found:
        return ""
    return f"{listed([words for _, words in found])} {'is' if sum(n for n, _ in found) == 1 else 'are'} not judged"


def title_of(name: str, tally: Mapping[str, int], freshness: Freshness, others: str = "") -> str:
    """``others``: as ``other_words``; said beside what is said of consumer groups."""
    title = _title(name, tally, freshness)
    if not others or freshness.stale:
        return title
    return f"{title.removesuffix('.')}; {others}."


def _title(name: str, tally: Mapping[str, int], freshness: Freshness) -> str:
    total = sum(tally.values())
    if freshness.taken_at is None:
        return f"Cannot tell which groups {name} has: they were not read yet."
    groups = count(total, "group")
    if freshness.stale and freshness.age_s is not None:
        seen = f"{groups} {'was' if total == 1 else 'were'} there {duration(freshness.age_s)} ago"
        return f"Cannot tell how the groups of {name} do: {seen}."
    if not total:
        return f"{name} has no consumer groups."
    wrong = [f"{tally[s.value]:,} {words[tally[s.value] != 1]}" for s, words in _DO.items() if tally.get(s.value)]
    if wrong:
        return f"Of {groups}, {listed(wrong)}."
    unknown, well = tally.get(LagState.UNKNOWN.value, 0), tally.get(LagState.OK.value, 0)
    if unknown == total:
        those = f"None of {groups} of {name} can" if total > 1 else f"The only group of {name} cannot"
        return f"{those} be judged yet."
    if unknown:
        return f"Of {groups}, {well:,} {'keeps' if well == 1 else 'keep'} up; {unknown:,} cannot be judged yet."
    if not well:
        return f"{count(total, 'group')} of {name} {'has' if total == 1 else 'have'} committed nothing."
    if well < total:
        return (
            f"All {well:,} groups of {name} that have committed something keep up."
            if well > 1
            else (f"The only group of {name} that has committed something keeps up.")
        )
    return f"The only group of {name} keeps up." if total == 1 else f"All {groups} of {name} keep up."


@dataclass(frozen=True, slots=True)
class ReaderLine:
    """A group that reads a topic: how many partitions of it, their lag, and the worst of their states."""

    group: GroupState
    freshness: Freshness
    partitions: int
    lag: int | None
    worst: LagState

    @property
    def slug(self) -> str:
        return slug_of(self.group.name)

    @property
    def state(self) -> State:
        return State.UNKNOWN if self.freshness.stale else STATES[self.worst]

    @property
    def word(self) -> str:
        return f"Was {WORDS[self.worst]}" if self.freshness.stale else WORDS[self.worst]


def readers_of(cluster: Cluster, topic: str, run: CollectorRun | None, now: datetime, most: int) -> list[ReaderLine]:
    """Groups that read the topic, the worst first."""
    rows = present(cluster).filter(topics__has_key=topic).order_by("rank", F("lag").desc(nulls_last=True), "name")
    found = []
    for row in rows.defer("times", "counts")[:most]:
        number, lag, worst = row.topics[topic]
        found.append(ReaderLine(row, group_freshness(row, run, now), number, lag, LagState(worst)))
    return found
