"""One consumer group: how it does, in a sentence, in figures, and partition by partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.lag_group import STATES, GroupLag, PartitionLag
from kafkadash.domain.lag_trend import Trend
from kafkadash.domain.lag_words import (
    WORDS,
    LagVerdict,
    drain_words,
    group_verdict,
    not_read,
    partition_word,
    time_lag_words,
)
from kafkadash.domain.status import State
from kafkadash.domain.wording import long_duration
from kafkadash.observe.group_lag import RANKS, WORST_FIRST, Member, members_of, read_group
from kafkadash.observe.group_names import key_of_slug
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import CollectorRun, GroupState, UnjudgedGroup
from kafkadash.observe.queries.group_history import history_context, range_named
from kafkadash.observe.queries.group_list import group_freshness
from kafkadash.observe.queries.group_tiles import Seen, tiles_of
from kafkadash.observe.standing import Freshness

FEWEST = 10
"""Rows that are shown at first, if there are so many; more where more are not well."""
MOST = 100
VERDICTS = Choice("verdict", "verdict", {state.value: WORDS[state] for state in WORST_FIRST})
SHOWS = Choice("show", "choice of rows", {"all": "All"})


@dataclass(frozen=True, slots=True)
class PartitionLine:
    """One partition with the member that it is assigned to; ``member`` is None where nobody has it, or nobody knows.

    ``named``: the verdict of the group is about this one.
    """

    seen: Seen
    member: Member | None
    stale: bool
    named: bool

    @property
    def lag(self) -> PartitionLag:
        return self.seen.lag

    @property
    def trend(self) -> Trend:
        return self.seen.trend

    @property
    def state(self) -> State:
        return State.UNKNOWN if self.stale else STATES[self.lag.state]

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
        return [look.committed for look in self.lag.looks]


@dataclass(frozen=True, slots=True)
class Segment:
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


def group_partition_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[VERDICTS, SHOWS],
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


def group_context(
    row: GroupState, listing: Listing, run: CollectorRun | None, now: datetime, chosen: str | None
) -> dict[str, Any]:
    freshness = group_freshness(row, run, now)
    members = members_of(row)
    partitions, group = read_group(row, members)
    every = [Seen(each, each.time_lag, each.trend) for each in partitions]
    verdict = _verdict(row, group, freshness, now)
    kept = _sorted(_chosen(every, listing), listing)
    first, rest = _first(kept, listing)
    page = listing.page_of(first, MOST)
    owners = {(topic, n): member for member in members for topic, numbers in member.assigned.items() for n in numbers}
    counts = Counter(each.state for each in partitions)
    topics = sorted(row.topics)
    worst = (row.worst_topic, row.worst_partition)
    return {
        "group": row,
        "listing": listing,
        "page": page,
        "rows": [
            PartitionLine(each, owners.get(_place(each)), freshness.stale, _place(each) == worst)
            for each in page.object_list
        ],
        "rest": len(rest),
        "rest_words": _rest_words(rest),
        "segments": [
            Segment(s.value, WORDS[s], counts[s], STATES[s].value)
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
        "history": history_context(row, now, range_named(chosen), freshness.interval_s),
    }


def _place(seen: Seen) -> tuple[str, int]:
    return seen.lag.topic, seen.lag.partition


def _verdict(row: GroupState, group: GroupLag, freshness: Freshness, now: datetime) -> LagVerdict:
    if row.gone_at is not None:
        ago = long_duration((now - row.gone_at).total_seconds())
        return LagVerdict(
            State.UNKNOWN,
            "Gone",
            f"Kafka no longer lists this group: it was first missed {ago} ago.",
            "It was deleted, or it expired with its last commits. What you see here is history.",
        )
    if freshness.stale:
        return not_read(freshness.age_s)
    return group_verdict(group, now.timestamp())


def _chosen(every: Sequence[Seen], listing: Listing) -> list[Seen]:
    verdict, topic = listing.values["verdict"], listing.values["topic"]
    return [
        seen for seen in every if (not verdict or seen.lag.state == verdict) and (not topic or seen.lag.topic == topic)
    ]


def _sorted(kept: Sequence[Seen], listing: Listing) -> list[Seen]:
    """What is not known comes last whichever way."""
    sign = -1 if listing.descending else 1
    if listing.sort == "worst":
        return sorted(kept, key=lambda s: (sign * RANKS[s.lag.state], -(s.lag.lag or 0), s.lag.topic, s.lag.partition))
    if listing.sort == "partition":
        return sorted(kept, key=lambda s: (s.lag.topic, s.lag.partition), reverse=listing.descending)
    value = _VALUES[listing.sort]
    keyed = [(value(each), each) for each in kept]

    def place(pair: tuple[float | None, Seen]) -> tuple[bool, float, str, int]:
        own, each = pair
        return own is None, sign * (own or 0), each.lag.topic, each.lag.partition

    return [each for _, each in sorted(keyed, key=place)]


_VALUES: Mapping[str, Callable[[Seen], float | None]] = {
    "lag": lambda s: s.lag.lag,
    "time": lambda s: s.time.seconds if s.time else None,
    "committed": lambda s: s.lag.committed,
    "end": lambda s: s.lag.end,
    "read": lambda s: s.trend.read,
    "written": lambda s: s.trend.written,
}


def _first(kept: list[Seen], listing: Listing) -> tuple[list[Seen], list[Seen]]:
    """What the page begins with, and what it leaves for a click: those that are well."""
    if listing.filtered or listing.sort != "worst" or listing.descending or listing.page_number:
        return kept, []
    unwell = sum(STATES[each.lag.state] is not State.OK for each in kept)
    number = min(MOST, max(FEWEST, unwell))
    return (kept, []) if len(kept) <= number + 2 else (kept[:number], kept[number:])


def _rest_words(rest: Sequence[Seen]) -> str:
    states = {each.lag.state for each in rest}
    return f", all {WORDS[states.pop()]}" if len(states) == 1 else ""
