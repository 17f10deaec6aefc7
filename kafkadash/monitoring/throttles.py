"""The page of throttles: a summary of the rates in force, and every throttle with the moves that need it."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import Case, Count, F, IntegerField, Q, QuerySet, Value, When
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.kafka.throttles import (
    DISK_RATE,
    FOLLOWER_LIST,
    FOLLOWER_RATE,
    LEADER_LIST,
    LEADER_RATE,
    LISTS,
    RATES,
    WORDS,
    ThrottledReplicas,
    rate_of,
    throttled_replicas,
)
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, load_standing, not_read
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    ConfigSource,
    MoveOutcome,
    ReassignmentSnapshot,
    ThrottledResource,
    ThrottleState,
)
from kafkadash.monitoring.templatetags.figures import rate


@dataclass(frozen=True, slots=True)
class RateInForce:
    """A rate that holds on a broker. ``bytes_per_second`` is None when its text is no number."""

    key: str
    bytes_per_second: int | None
    source: str
    orphan: bool

    @property
    def words(self) -> str:
        return WORDS[self.key]

    @property
    def short(self) -> str:
        return {LEADER_RATE: "outbound", FOLLOWER_RATE: "inbound"}.get(self.key, "between log directories")

    @property
    def source_words(self) -> str:
        return ConfigSource(self.source).label


@dataclass(frozen=True, slots=True)
class ThrottleLimit:
    """Rate at which a replica is throttled, None where it is not; ``unknown`` says why nobody knows, "" where it is
    known.
    """

    unknown: str = ""
    bytes_per_second: int | None = None

    def __str__(self) -> str:
        if self.unknown or self.bytes_per_second is None:
            return self.unknown or "not throttled"
        return str(rate(self.bytes_per_second))


UNLIMITED = ThrottleLimit()
UNKNOWN_LIMIT = ThrottleLimit("unknown")


class ClusterThrottles:
    """Rates and lists of one cluster, those of ``brokers`` and ``topics`` only.

    Two queries, and a third once a listed replica sits on a broker of which no rate is known.

    ``known`` says whether throttles were ever read: without that, what is not here is not known instead of not set.
    """

    def __init__(
        self,
        cluster: Cluster,
        *,
        known: bool,
        brokers: Iterable[int] = (),
        topics: Iterable[str] = (),
    ):
        self.known = known
        self._cluster = cluster
        rows = ThrottleState.objects.filter(cluster=cluster)
        rates = rows.filter(
            resource__in=[ThrottledResource.CLUSTER, ThrottledResource.BROKER],
            name__in=["", *map(str, brokers)],
            key__in=RATES,
        )
        self._rates = {(row.name, row.key): row for row in rates}
        lists = rows.filter(resource=ThrottledResource.TOPIC, name__in=list(topics)) if topics else ()
        self._lists: Mapping[tuple[str, str], ThrottledReplicas] = {
            (row.name, row.key): throttled_replicas(row.value) for row in lists
        }

    def rate(self, broker: int, key: str, *, own: bool = False) -> RateInForce | None:
        """Return the rate in force: the broker's own, else (unless ``own``) the cluster default; None if unset."""
        row = self._rates.get((str(broker), key)) or (None if own else self._rates.get(("", key)))
        return RateInForce(key, rate_of(row.value), row.source, row.orphan) if row else None

    def rates(self, broker: BrokerState) -> Sequence[RateInForce] | None:
        """Return the rates in force on a broker; None where they are not known.

        A broker that is away, or was never asked, may have unread rates: finding none does not mean that none is set.
        """
        offline = broker.gone_at is not None or bool(broker.fenced)
        found = [held for key in RATES if (held := self.rate(broker.broker_id, key, own=offline)) is not None]
        if not self.known or (not found and (offline or broker.config_at is None)):
            return None
        return found

    def leader_limit(self, topic: str, partition: int, leader: int | None) -> ThrottleLimit:
        """Return how the leader's sending of this partition is throttled (KIP-240's leader throttle)."""
        if leader is None:
            return UNKNOWN_LIMIT
        return self._find_limit(topic, partition, leader, LEADER_RATE, LEADER_LIST)

    def target_limit(self, topic: str, partition: int, broker: int) -> ThrottleLimit:
        """Return how fetching of this partition by a target broker is throttled."""
        return self._find_limit(topic, partition, broker, FOLLOWER_RATE, FOLLOWER_LIST)

    def _find_limit(self, topic: str, partition: int, broker: int, rate_key: str, list_key: str) -> ThrottleLimit:
        if not self.known:
            return ThrottleLimit("unknown, no data yet")
        held, listed = self.rate(broker, rate_key), self._lists.get((topic, list_key))
        if listed is None or not listed.names(partition, broker):
            return UNLIMITED
        if self.rate(broker, rate_key, own=True) is None and broker not in self._asked:
            return ThrottleLimit("unknown, no data of the broker")
        if held is None:
            return UNLIMITED
        if held.bytes_per_second is None:
            return ThrottleLimit("unknown, not a number")
        return ThrottleLimit(bytes_per_second=held.bytes_per_second)

    @cached_property
    def _asked(self) -> frozenset[int]:
        """The brokers that are there and were asked: of any other, no rate found is not none set."""
        there = BrokerState.objects.filter(cluster=self._cluster, gone_at=None, config_at__isnull=False)
        return frozenset(there.exclude(fenced=True).values_list("broker_id", flat=True))


def list_words(value: str) -> str:
    """A topic's list of throttled replicas, summarised."""
    held = throttled_replicas(value)
    if held.everything:
        return "all replicas"
    if held.unreadable:
        return f"invalid entry “{held.unreadable[:60]}”"
    if held.empty:
        return "empty list"
    partitions = choose_plural("# partition|# partitions", len({partition for partition, _ in held.pairs}))
    return f"{choose_plural('# replica|# replicas', len(held.pairs))} of {partitions}"


MOST_NAMED = 8
ON = FilterChoice("on", "kind of throttle", {"cluster": "Cluster default", "broker": "Brokers", "topic": "Topics"})
NEED = FilterChoice(
    "need", "choice of throttles", {"orphan": "Orphan", "ours": "Set by kafkadash", "foreign": "Set by others"}
)
_NEEDS = {"orphan": Q(orphan=True), "ours": ~Q(claimed_by="") & Q(removed_at=None), "foreign": Q(claimed_by="")}
_COMPARED_WITHIN = timedelta(seconds=5)
"""Seconds after a reading in which the owner of a throttle is compared."""


@dataclass(frozen=True, slots=True)
class ThrottleGroup:
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
            return "no"
        return "yes" if self.needed == self.number else f"{self.needed:,} of {self.number:,}"

    @property
    def names(self) -> Sequence[str]:
        return self.all_names[:MOST_NAMED]

    @property
    def where(self) -> str:
        if self.resource == ThrottledResource.CLUSTER:
            return "all brokers without their own rate"
        if self.resource == ThrottledResource.TOPIC:
            return choose_plural("# topic|# topics", self.number)
        rest = self.number - len(self.names)
        which = ", ".join(self.names) + (f" and {rest:,} more" if rest else "")
        return f"{choose_plural('broker|brokers', self.number)} {which}"

    @property
    def words(self) -> str:
        return WORDS[self.key]


@dataclass(frozen=True, slots=True)
class ThrottleRow:
    """Throttle in a list. ``needed_by``: number of moves or copies that go through it; None if unknown."""

    row: ThrottleState
    needed_by: int | None
    freshness: FactFreshness
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
        label = ConfigSource(self.row.source).label
        return f"{label}, which is down; from its znode" if self.row.from_znode else label

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


def throttle_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[ON, NEED],
        texts=["q"],
        sorts={"on": [_RESOURCES, _NUMBER, F("name"), F("key")], "since": [F("first_seen_at"), F("pk")]},
        descending_first={"since"},
    )


_RESOURCES = Case(When(resource="cluster", then=Value(0)), When(resource="broker", then=Value(1)), default=Value(2))
# Broker 10 comes after broker 9. Only names of brokers are numbers for sure.
_NUMBER = Case(When(resource="broker", then=Cast("name", IntegerField())), default=Value(0))


class ThrottlesContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    run: CollectorRun | None
    freshness: FactFreshness
    groups: list[ThrottleGroup]
    orphans: int
    title: str


def throttles_context(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> ThrottlesContext:
    """Return a short context of the throttles in force, and whether any of them is needed by nothing."""
    read = known or load_standing(cluster, now)
    freshness = read.freshness_of(CollectorKind.CONFIGS)
    rows = ThrottleState.objects.filter(cluster=cluster, removed_at=None)
    moves = _MovesInFlight(cluster, read.runs.get(CollectorKind.REASSIGNMENTS))
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
        "run": read.runs.get(CollectorKind.CONFIGS),
        "freshness": freshness,
        "groups": groups,
        "orphans": sum(group.orphans for group in groups),
        "title": _describe_throttles(cluster.name, groups, freshness),
    }


class ThrottleListContext(TypedDict):
    listing: ListQuery
    page: Page[Any]
    total: int
    rows: list[ThrottleRow]


def throttle_list_context(
    cluster: Cluster, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> ThrottleListContext:
    """Return the context of one page of all throttles, each with the number of moves that need it."""
    rows = ThrottleState.objects.filter(cluster=cluster)
    kept = _filter_throttles(rows, listing)
    page = listing.page_of(kept.order_by(*listing.order()))
    moves = _MovesInFlight(cluster, runs.get(CollectorKind.REASSIGNMENTS))
    interval = runs[CollectorKind.CONFIGS].interval_s if CollectorKind.CONFIGS in runs else 30.0
    bootstrap = cluster.bootstrap_servers.split(",")[0].strip()
    return {
        "listing": listing,
        "page": page,
        "total": rows.count(),
        "rows": [
            ThrottleRow(
                row,
                moves.needing(row),
                FactFreshness(row.read_at, interval, now),
                bootstrap,
            )
            for row in page.object_list
        ],
    }


def _filter_throttles(rows: QuerySet[ThrottleState], listing: ListQuery) -> QuerySet[ThrottleState]:
    if on := listing.values["on"]:
        rows = rows.filter(resource=on)
    if need := listing.values["need"]:
        rows = rows.filter(_NEEDS[need])
    if text := listing.values["q"]:
        rows = rows.filter(Q(name__icontains=text) | Q(key__icontains=text))
    return rows


class _MovesInFlight:
    """Running moves, to look up which of them go through a throttle."""

    def __init__(self, cluster: Cluster, run: CollectorRun | None) -> None:
        self.known = bool(run and run.succeeded_at)
        running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
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


def _rate_groups(rates: Sequence[ThrottleState], moves: _MovesInFlight) -> list[ThrottleGroup]:
    together: dict[tuple[str, str, str], list[ThrottleState]] = defaultdict(list)
    for row in rates:
        together[row.resource, row.key, row.value].append(row)
    return [
        ThrottleGroup(
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


def _list_groups(lists: Mapping[str, tuple[int, int, int | None]]) -> list[ThrottleGroup]:
    return [ThrottleGroup(ThrottledResource.TOPIC, key, None, (), *lists[key]) for key in LISTS if key in lists]


def _describe_throttles(name: str, groups: Sequence[ThrottleGroup], freshness: FactFreshness) -> str:
    if freshness.taken_at is None:
        return f"{name}: no throttle data yet"
    rates = [group for group in groups if group.resource != ThrottledResource.TOPIC]
    if freshness.stale and freshness.age_s is not None:
        total = choose_plural("# throttle|# throttles", sum(group.number for group in groups))
        return f"{name}: {total} set {format_duration(freshness.age_s)} ago"
    if orphans := sum(group.orphans for group in groups):
        return f"{name}: {choose_plural('# orphan throttle|# orphan throttles', orphans)}"
    if not groups:
        return f"{name}: no throttles set"
    if not rates:
        return f"{name}: throttle lists without rates, no effect"
    if len(rates) == len(groups) and all(group.key != DISK_RATE for group in rates):
        return f"{name}: throttle rates without replica lists, no effect"
    brokers = {broker for group in rates for broker in group.all_names}
    everywhere = any(group.resource == ThrottledResource.CLUSTER for group in rates)
    where = "all brokers" if everywhere else choose_plural("# broker|# brokers", len(brokers))
    lowest = min((group.bytes_per_second for group in rates if group.bytes_per_second is not None), default=None)
    return f"{name}: {where} throttled{f', lowest {rate(lowest)}' if lowest is not None else ''}"


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def throttles(request: HttpRequest, slug: str) -> HttpResponse:
    """Show a summary and the list of all throttles; the URL filters, sorts and pages the list."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.CONFIGS)
    runs, now = bar["standing"].runs, bar["now"]
    shown = throttles_context(cluster, now, bar["standing"])
    has_orphans = any(group.orphans for group in shown["groups"])
    context = {
        **bar,
        "tab": "throttles",
        "live_keys": [
            f"throttles:{slug}",
            read_hint(CollectorKind.CONFIGS, slug),
            read_hint(CollectorKind.REASSIGNMENTS, slug),
        ],
        "not_read": not_read(cluster, runs, (CollectorKind.CONFIGS, CollectorKind.REASSIGNMENTS)),
        "throttles": shown,
        "may_remove": has_orphans and not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
        **throttle_list_context(cluster, throttle_listing(request.GET), runs, now),
    }
    return render(request, "monitoring/throttles.html", context)
