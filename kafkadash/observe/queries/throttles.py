"""Throttles that are set: what is in force in a few lines, and every one of them with what needs it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Cast
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.throttled_replicas import WORDS, rate_of, throttled_replicas
from kafkadash.domain.throttles import DISK_RATE, LISTS, RATES
from kafkadash.domain.wording import count, duration
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import (
    BrokerWeights,
    CollectorRun,
    ConfigSource,
    Kind,
    Outcome,
    ReassignmentSnapshot,
    ThrottledResource,
    ThrottleState,
)
from kafkadash.observe.standing import Freshness, Standing, standing
from kafkadash.observe.templatetags.figures import rate
from kafkadash.observe.throttle_rows import list_words

MOST_NAMED = 8
ON = Choice("on", "kind of throttle", {"cluster": "Cluster default", "broker": "Brokers", "topic": "Topics"})
NEED = Choice(
    "need", "choice of throttles", {"orphan": "Needed by nothing", "ours": "Ours", "foreign": "Owner unknown"}
)
_NEEDS = {"orphan": Q(orphan=True), "ours": ~Q(claimed_by="") & Q(removed_at=None), "foreign": Q(claimed_by="")}
_COMPARED_WITHIN = timedelta(seconds=5)
"""Whose a throttle is, is compared right after the reading that finds it."""


@dataclass(frozen=True, slots=True)
class Group:
    """The same rate on some brokers, or lists of some topics (whose names are left out).

    ``needed``: through how many of them anything in flight goes; None where that is not known.
    """

    resource: str
    key: str
    bytes_per_second: int | None
    all_names: Sequence[str]
    number: int
    orphans: int
    needed: int | None

    @property
    def needed_words(self) -> str:
        """How many of them anything in flight goes through, as far as was seen."""
        if self.needed is None:
            return "unknown"
        if not self.needed:
            return "by nothing now"
        return "yes" if self.needed == self.number else f"{self.needed:,} of {self.number:,}"

    @property
    def names(self) -> Sequence[str]:
        return self.all_names[:MOST_NAMED]

    @property
    def where(self) -> str:
        if self.resource == ThrottledResource.CLUSTER:
            return "all brokers without a rate of their own"
        if self.resource == ThrottledResource.TOPIC:
            return count(self.number, "topic")
        rest = self.number - len(self.names)
        which = ", ".join(self.names) + (f" and {rest:,} more" if rest else "")
        return f"{'broker' if self.number == 1 else 'brokers'} {which}"

    @property
    def words(self) -> str:
        return WORDS[self.key]


@dataclass(frozen=True, slots=True)
class ThrottleRow:
    """One throttle. ``needed_by``: how many moves or copies go through it; None where that cannot be told."""

    row: ThrottleState
    needed_by: int | None
    freshness: Freshness
    bootstrap: str

    @property
    def words(self) -> str:
        return WORDS.get(self.row.key, self.row.key)

    @property
    def is_rate(self) -> bool:
        return self.row.key in RATES

    @property
    def bytes_per_second(self) -> int | None:
        return rate_of(self.row.value)

    @property
    def list_words(self) -> str:
        return list_words(self.row.value)

    @property
    def source_words(self) -> str:
        return ConfigSource(self.row.source).label

    @property
    def just_found(self) -> bool:
        return self.freshness.now - self.row.first_seen_at < _COMPARED_WITHIN

    @property
    def look(self) -> str:
        """The command that shows what is set, for whoever decides to remove it."""
        entity = {
            ThrottledResource.CLUSTER.value: "--entity-type brokers --entity-default",
            ThrottledResource.BROKER.value: f"--entity-type brokers --entity-name {self.row.name}",
            ThrottledResource.TOPIC.value: f"--entity-type topics --entity-name {self.row.name}",
        }[self.row.resource]
        return f"kafka-configs --bootstrap-server {self.bootstrap} --describe {entity}"


def throttle_listing(query: QueryDict) -> Listing:
    return Listing(
        query,
        choices=[ON, NEED],
        texts=["q"],
        sorts={"on": [_RESOURCES, _NUMBER, F("name"), F("key")], "since": [F("first_seen_at"), F("pk")]},
        descending_first={"since"},
    )


_RESOURCES = Case(When(resource="cluster", then=Value(0)), When(resource="broker", then=Value(1)), default=Value(2))
# Broker 10 comes after broker 9. Only names of brokers are numbers for sure.
_NUMBER = Case(When(resource="broker", then=Cast("name", IntegerField())), default=Value(0))


def throttles_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """What is in force, in a few lines, and whether something of it is needed by nothing."""
    read = known or standing(cluster, now)
    freshness = read.freshness_of(Kind.CONFIGS)
    rows = ThrottleState.objects.filter(cluster=cluster, removed_at=None)
    moves = _Moves(cluster, read.runs.get(Kind.REASSIGNMENTS))
    rates = list(rows.filter(key__in=RATES).order_by(_RESOURCES, _NUMBER, "key"))
    lists = {
        key: (number, orphans, needed if moves.known else None)
        for key, number, orphans, needed in rows.filter(key__in=LISTS)
        .values("key")
        .annotate(
            number=Count("pk"),
            orphans=Count("pk", filter=Q(orphan=True)),
            needed=Count("pk", filter=Q(name__in=moves.topics)),
        )
        .values_list("key", "number", "orphans", "needed")
    }
    groups = [*_rate_groups(rates, moves), *_list_groups(lists)]
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "run": read.runs.get(Kind.CONFIGS),
        "freshness": freshness,
        "groups": groups,
        "orphans": sum(group.orphans for group in groups),
        "title": _title(cluster.name, groups, freshness),
    }


def throttle_list_context(
    cluster: Cluster, listing: Listing, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    """One page of all throttles with what needs each."""
    rows = ThrottleState.objects.filter(cluster=cluster)
    kept = _filtered(rows, listing)
    page = listing.page_of(kept.order_by(*listing.order()))
    moves = _Moves(cluster, runs.get(Kind.REASSIGNMENTS))
    interval = runs[Kind.CONFIGS].interval_s if Kind.CONFIGS in runs else 30.0
    bootstrap = cluster.bootstrap_servers.split(",")[0].strip()
    return {
        "listing": listing,
        "page": page,
        "total": rows.count(),
        "rows": [
            ThrottleRow(row, moves.needing(row), Freshness(row.read_at, interval, now), bootstrap)
            for row in page.object_list
        ],
    }


def _filtered(rows: QuerySet[ThrottleState], listing: Listing) -> QuerySet[ThrottleState]:
    if on := listing.values["on"]:
        rows = rows.filter(resource=on)
    if need := listing.values["need"]:
        rows = rows.filter(_NEEDS[need])
    if text := listing.values["q"]:
        rows = rows.filter(Q(name__icontains=text) | Q(key__icontains=text))
    return rows


class _Moves:
    """What is in flight now, to be asked what goes through a throttle."""

    def __init__(self, cluster: Cluster, run: CollectorRun | None) -> None:
        self.known = bool(run and run.succeeded_at)
        running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
        self._by_topic: dict[str, list[int]] = defaultdict(list)
        self._by_broker: Counter[int] = Counter()
        self._all = 0
        for topic, partition, replicas in running.values_list("topic", "partition", "replicas"):
            self._all += 1
            self._by_topic[topic].append(partition)
            self._by_broker.update(set(replicas))
        self._copies: dict[int, int | None] = {}
        for broker, dirs in BrokerWeights.objects.filter(cluster=cluster).values_list("broker_id", "dirs"):
            self._copies[broker] = _sum_known([stored.get("copies") for stored in dirs])

    @property
    def topics(self) -> list[str]:
        return list(self._by_topic)

    def needing(self, row: ThrottleState) -> int | None:
        if row.key == DISK_RATE:
            if row.resource == ThrottledResource.CLUSTER:
                return _sum_known(self._copies.values()) if self._copies else None
            return self._copies.get(int(row.name))
        if not self.known:
            return None
        if row.resource == ThrottledResource.CLUSTER:
            return self._all
        if row.resource == ThrottledResource.BROKER:
            return self._by_broker[int(row.name)]
        named = throttled_replicas(row.value)
        listed = {partition for partition, _ in named.pairs}
        return sum(named.everything or partition in listed for partition in self._by_topic.get(row.name, ()))


def _sum_known(numbers: Collection[int | None]) -> int | None:
    """None where one of them is not known."""
    known = [number for number in numbers if number is not None]
    return sum(known) if len(known) == len(numbers) else None


def _rate_groups(rates: Sequence[ThrottleState], moves: _Moves) -> list[Group]:
    together: dict[tuple[str, str, str], list[ThrottleState]] = defaultdict(list)
    for row in rates:
        together[row.resource, row.key, row.value].append(row)
    return [
        Group(
            resource=resource,
            key=key,
            bytes_per_second=rate_of(value),
            all_names=[row.name for row in rows],
            number=len(rows),
            orphans=sum(row.orphan for row in rows),
            needed=_sum_known([None if number is None else bool(number) for number in map(moves.needing, rows)]),
        )
        for (resource, key, value), rows in together.items()
    ]


def _list_groups(lists: Mapping[str, tuple[int, int, int | None]]) -> list[Group]:
    return [Group(ThrottledResource.TOPIC, key, None, (), *lists[key]) for key in LISTS if key in lists]


def _title(name: str, groups: Sequence[Group], freshness: Freshness) -> str:
    if freshness.taken_at is None:
        return f"Cannot tell what is throttled in {name}: configs were not read yet."
    rates = [group for group in groups if group.resource != ThrottledResource.TOPIC]
    total = sum(group.number for group in groups)
    if freshness.stale and freshness.age_s is not None:
        seen = f"{count(total, 'throttle')} {'was' if total == 1 else 'were'} set {duration(freshness.age_s)} ago"
        return f"Cannot tell what is throttled in {name}: {seen}."
    orphans = sum(group.orphans for group in groups)
    if orphans:
        return f"{count(orphans, 'throttle')} of {name} {'is' if orphans == 1 else 'are'} needed by nothing in flight."
    if not groups:
        return f"Nothing is throttled in {name}."
    if not rates:
        return f"No rate is set in {name}: its lists of throttled replicas slow nothing down."
    brokers = {name for group in rates for name in group.all_names}
    everywhere = any(group.resource == ThrottledResource.CLUSTER for group in rates)
    where = "all brokers" if everywhere else count(len(brokers), "broker")
    lowest = min((group.bytes_per_second for group in rates if group.bytes_per_second is not None), default=None)
    at = f", the lowest is {rate(lowest)}" if lowest is not None else ""
    if len(rates) == len(groups) and all(group.key != DISK_RATE for group in rates):
        return f"Rates are set on {where} of {name}{at}; no topic lists a replica, so nothing is slowed down."
    return f"Rates are set on {where} of {name}{at}."
