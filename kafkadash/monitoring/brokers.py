"""Pages of brokers: the list of all brokers, one broker with its hosted replicas, log directories and skew.

Hosted replicas come from the packed partitions of all topics and the packed sizes of the broker.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import (
    Avg,
    BooleanField,
    Case,
    Count,
    F,
    FloatField,
    Func,
    JSONField,
    Q,
    QuerySet,
    TextField,
    Value,
    When,
)
from django.db.models.expressions import RawSQL
from django.db.models.functions import Cast
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import format_duration, join_items
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import choose_plural
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.catch_up.pages import CatchUpPanel, CatchUpShown, build_panel, load_catch_up
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.configs import config_rows
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import (
    SILENT,
    UP,
    CollectionFreshness,
    FactFreshness,
    freshness_of,
    load_standing,
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
    MoveOutcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.monitoring.offers import FeatureLack, KafkaFeature, load_lack
from kafkadash.monitoring.partitions import PartitionLine, PartitionTrouble, partition_lines, rack_labels, running_moves
from kafkadash.monitoring.reassignments.pages import ReassignmentRow
from kafkadash.monitoring.throttles import ClusterThrottles, RateInForce
from kafkadash.monitoring.traffic.pages import broker_throughput

MOST_ROWS = 50
DISK_MARKS = (80, 90)
"""Percent of a log directory from which a broker needs a look, and from which it needs one soon."""


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """A log directory; ``percent`` is None where Kafka does not tell its size (before 3.3)."""

    path: str
    total_bytes: int | None
    used_bytes: int | None
    percent: float | None
    cordoned: bool | None
    error: str

    @property
    def limit(self) -> int | None:
        """The highest of the marks that it is over, in percent; None below all of them."""
        passed = [mark for mark in DISK_MARKS if self.percent is not None and self.percent >= mark]
        return max(passed, default=None)

    @property
    def state(self) -> str:
        """State of the usage bar; '' below the marks."""
        if self.error:
            return "warning"
        if self.limit is None:
            return ""
        return "critical" if self.limit == max(DISK_MARKS) else "warning"


class BrokersContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    brokers: list[BrokerShown]
    total: int
    freshness: FactFreshness
    run: CollectorRun | None


def brokers_context(cluster: Cluster, now: datetime, known: CollectionFreshness | None = None) -> BrokersContext:
    """The brokers with their log directories; those that are not up first, at most ``MOST_ROWS``."""
    read = known or load_standing(cluster, now)
    rows = BrokerState.objects.filter(cluster=cluster)
    up = Case(When(UP, then=1), default=0)
    shown = list(rows.order_by(up, "broker_id")[:MOST_ROWS])
    weights = {
        w.broker_id: w
        for w in BrokerWeights.objects.filter(cluster=cluster, broker_id__in=[b.broker_id for b in shown]).defer("data")
    }
    disk_interval = read.runs[CollectorKind.LOG_DIRS].interval_s if CollectorKind.LOG_DIRS in read.runs else 60.0
    freshness = read.freshness_of(CollectorKind.METADATA)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "brokers": sorted(
            (_broker_row(b, weights.get(b.broker_id), disk_interval, freshness, now) for b in shown),
            key=lambda row: row.broker.broker_id,
        ),
        "total": rows.count() if len(shown) == MOST_ROWS else len(shown),
        "freshness": freshness,
        "run": read.runs.get(CollectorKind.METADATA),
    }


def _broker_row(
    broker: BrokerState, weights: BrokerWeights | None, disk_interval: float, freshness: FactFreshness, now: datetime
) -> BrokerShown:
    state, word = broker_state(broker, freshness)
    return BrokerShown(
        broker=broker,
        state=state,
        word=word,
        directories=[directory_row(d) for d in weights.dirs] if weights else [],
        disk_freshness=FactFreshness(weights.taken_at, disk_interval, now) if weights else None,
    )


def broker_state(broker: BrokerState, freshness: FactFreshness) -> tuple[str, str]:
    """Return the broker's state and the word for it; for stale data the state is "unknown" and the word in the past."""
    code = broker_word(broker)
    word = _name_state(broker)
    if freshness.stale:
        return "unknown", f"Was {word}"
    if code == "up":
        return "ok", "Up"
    return ("critical" if broker.replicas else "warning"), word.capitalize()


_BROKER_WORDS = {"up": "up", "fenced": "fenced", "silent": "unreachable"}


def _name_state(broker: BrokerState) -> str:
    """Name the broker's state. Before Kafka 4.0 a broker that is stopped is not listed, registered or not."""
    code = broker_word(broker)
    return name_gone(fencing_told=broker.fenced is not None) if code == "gone" else _BROKER_WORDS[code]


def name_gone(*, fencing_told: bool) -> str:
    """Name the state of brokers that are listed no more. Whoever tells which are fenced lists all registered ones."""
    return "unregistered" if fencing_told else "not listed"


def broker_word(broker: BrokerState) -> str:
    """Return the code of the broker's state when last seen, such as "fenced"."""
    if broker.gone_at is not None:
        return "gone"
    return "fenced" if broker.fenced else "silent" if broker.silent_since is not None else "up"


def directory_row(stored: dict[str, Any]) -> DirectoryRow:
    total, usable = stored["total_bytes"], stored["usable_bytes"]
    used = total - usable if total is not None and usable is not None else None
    return DirectoryRow(
        path=stored["path"],
        total_bytes=total,
        used_bytes=used if used is not None else stored["replica_bytes"],
        percent=100.0 * used / total if used is not None and total else None,
        cordoned=stored["cordoned"],
        error=stored["error"] or "",
    )


FEWEST_PARTITIONS = 50
"""With fewer partitions in a cluster the percentages say nothing."""

WARNS_FROM, ATTENTION_FROM = 10.0, 20.0


def mean_of(values: Iterable[int]) -> float | None:
    """The mean, or None for no values."""
    known = list(values)
    return sum(known) / len(known) if known else None


def skew_percent(value: int, mean: float | None, partitions: int | None) -> float | None:
    """(value − mean) / mean in percent; None where it would say nothing: no mean, or too few partitions."""
    if not mean or partitions is None or partitions < FEWEST_PARTITIONS:
        return None
    return 100.0 * (value - mean) / mean


FENCED = Q(gone_at=None, fenced=True)
GONE = Q(gone_at__isnull=False)
AWAY_FIRST = Case(When(UP, then=Value(1)), default=Value(0))
STATES = FilterChoice("state", "state", {"up": "Up", "silent": "Unreachable", "fenced": "Fenced", "gone": "Not listed"})
_FILTERS = {"up": UP, "silent": SILENT, "fenced": FENCED, "gone": GONE}
NO_RACK = "(none)"
"""Value of the rack filter for brokers that name no rack."""

# How full the fullest directory of a broker is, as a share; the sum of a broker hides one that is full.
_FULLEST = """(
    SELECT max(1 - (d->>'usable_bytes')::float / nullif((d->>'total_bytes')::float, 0))
    FROM monitoring_brokerweights w, jsonb_array_elements(w.dirs) d
    WHERE w.cluster_id = monitoring_brokerstate.cluster_id AND w.broker_id = monitoring_brokerstate.broker_id
)"""


@dataclass(frozen=True, slots=True)
class BrokerSkew:
    """A distance from the mean in percent; ``state`` is '' while it is near."""

    percent: float

    @property
    def state(self) -> str:
        return "warning" if abs(self.percent) >= WARNS_FROM else ""

    @property
    def word(self) -> str:
        return "attention" if abs(self.percent) >= ATTENTION_FROM else "warn" if self.state else ""


@dataclass(frozen=True, slots=True)
class BrokerShown:
    """Broker in a list. ``rates`` is None while throttles were not read."""

    broker: BrokerState
    state: str
    word: str
    directories: Sequence[DirectoryRow]
    disk_freshness: FactFreshness | None
    replica_skew: BrokerSkew | None = None
    leader_skew: BrokerSkew | None = None
    rates: Sequence[RateInForce] | None = None
    catch_up: CatchUpShown | None = None

    @property
    def id(self) -> int:
        return self.broker.broker_id


@dataclass(frozen=True, slots=True)
class BrokerTally:
    """All brokers that are known, by state; those that are gone and still hold replicas apart."""

    up: int
    silent: int
    fenced: int
    gone: int
    gone_hosting: int
    silent_ids: Sequence[int]
    fenced_ids: Sequence[int]
    gone_hosting_ids: Sequence[int]
    mean_replicas: float | None
    mean_leaders: float | None

    @property
    def all(self) -> int:
        return self.up + self.silent + self.fenced + self.gone


def broker_listing(query: QueryDict) -> ListQuery:
    return ListQuery(
        query,
        choices=[STATES],
        texts=["q"],
        exact=["rack"],
        sorts={
            "state": [AWAY_FIRST, F("broker_id")],
            "id": [F("broker_id")],
            "rack": [F("rack"), F("broker_id")],
            "replicas": [F("replicas"), F("broker_id")],
            "leaders": [F("leaders"), F("broker_id")],
            "disk": [F("fullest"), F("broker_id")],
            "changed": [F("changed_at"), F("broker_id")],
        },
        descending_first={"replicas", "leaders", "disk", "changed"},
    )


class BrokerListContext(TypedDict):
    listing: ListQuery
    page: Page[Any]
    tally: BrokerTally
    figures: ClusterState
    racks: list[str | None]
    no_rack: str
    freshness: FactFreshness
    throttles_freshness: FactFreshness
    title: str
    gone_word: str
    fencing_told: bool
    no_fenced: FeatureLack | None
    rows: list[BrokerShown]
    led_as_preferred: float | None


def broker_list_context(
    cluster: Cluster, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> BrokerListContext:
    """Return the context of one page of brokers, with the figures of all brokers."""
    tally = _tally(cluster)
    freshness = metadata_freshness(runs, now)
    page = listing.page_of(_filter_brokers(cluster, listing))
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    fencing_told = figures.brokers is None or figures.brokers_fenced is not None
    gone_word = name_gone(fencing_told=fencing_told)
    racks = BrokerState.objects.filter(cluster=cluster, gone_at=None).order_by("rack").distinct()
    return {
        "listing": listing,
        "page": page,
        "tally": tally,
        "figures": figures,
        "racks": list(racks.values_list("rack", flat=True)[:200]),
        "no_rack": NO_RACK,
        "freshness": freshness,
        "throttles_freshness": freshness_of(runs.get(CollectorKind.CONFIGS), now),
        "title": _describe_brokers(
            cluster.name, tally, (figures.brokers_gone or 0) - tally.gone_hosting, gone_word, freshness
        ),
        "gone_word": gone_word,
        "fencing_told": fencing_told,
        "no_fenced": None if fencing_told else load_lack(cluster, KafkaFeature.FENCED_BROKERS),
        "rows": _lines(cluster, list(page.object_list), tally, figures, runs, now),
        "led_as_preferred": _percent_of(figures.preferred_leaders, figures.partitions),
    }


def _filter_brokers(cluster: Cluster, listing: ListQuery) -> QuerySet[BrokerState]:
    rows = BrokerState.objects.filter(cluster=cluster).defer("config")
    if state := listing.values["state"]:
        rows = rows.filter(_FILTERS[state])
    if rack := listing.values["rack"]:
        rows = rows.filter(rack=None) if rack == NO_RACK else rows.filter(rack=rack)
    if text := listing.values["q"]:
        rows = rows.annotate(id_text=Cast("broker_id", TextField())).filter(
            Q(id_text=text) | Q(host__icontains=text) | Q(rack__icontains=text)
        )
    if listing.sort == "disk":
        rows = rows.annotate(fullest=RawSQL(_FULLEST, (), output_field=FloatField()))  # noqa: S611  a constant
    return rows.order_by(*listing.order())


def _lines(
    cluster: Cluster,
    brokers: Sequence[BrokerState],
    tally: BrokerTally,
    figures: ClusterState,
    runs: Mapping[str, CollectorRun],
    now: datetime,
) -> list[BrokerShown]:
    ids = [broker.broker_id for broker in brokers]
    weights = {w.broker_id: w for w in BrokerWeights.objects.filter(cluster=cluster, broker_id__in=ids).defer("data")}
    configs = runs.get(CollectorKind.CONFIGS)
    throttles = ClusterThrottles(cluster, known=bool(configs and configs.succeeded_at), brokers=ids)
    freshness = metadata_freshness(runs, now)
    disk_interval = runs[CollectorKind.LOG_DIRS].interval_s if CollectorKind.LOG_DIRS in runs else 60.0
    catch_ups = load_catch_up(cluster, ids, runs, now)
    lines = []
    for broker in brokers:
        state, word = broker_state(broker, freshness)
        held = weights.get(broker.broker_id)
        up = broker_word(broker) == "up"
        lines.append(
            BrokerShown(
                broker=broker,
                state=state,
                word=word,
                replica_skew=_skew(broker.replicas, tally.mean_replicas, figures) if up else None,
                leader_skew=_skew(broker.leaders, tally.mean_leaders, figures) if up else None,
                directories=[directory_row(d) for d in held.dirs] if held else [],
                disk_freshness=FactFreshness(held.taken_at, disk_interval, now) if held else None,
                rates=throttles.rates(broker),
                catch_up=catch_ups.get(broker.broker_id),
            )
        )
    return lines


def _skew(value: int, mean: float | None, figures: ClusterState) -> BrokerSkew | None:
    percent = skew_percent(value, mean, figures.partitions)
    return None if percent is None else BrokerSkew(percent)


def _tally(cluster: Cluster) -> BrokerTally:
    """Means are over the brokers that are up: a fenced one leads nothing and would make the others look busy."""
    brokers = BrokerState.objects.filter(cluster=cluster)
    counts = brokers.aggregate(
        mean_replicas=Avg("replicas", filter=UP),
        mean_leaders=Avg("leaders", filter=UP),
        count_up=Count("pk", filter=UP),
        count_silent=Count("pk", filter=SILENT),
        count_fenced=Count("pk", filter=FENCED),
        count_gone=Count("pk", filter=GONE),
        count_hosting=Count("pk", filter=GONE & Q(replicas__gt=0)),
    )
    hosting = brokers.filter(GONE, replicas__gt=0)
    return BrokerTally(
        up=counts["count_up"],
        silent=counts["count_silent"],
        fenced=counts["count_fenced"],
        gone=counts["count_gone"],
        gone_hosting=counts["count_hosting"],
        mean_replicas=counts["mean_replicas"],
        mean_leaders=counts["mean_leaders"],
        silent_ids=_first_ids(brokers.filter(SILENT)) if counts["count_silent"] else (),
        fenced_ids=_first_ids(brokers.filter(FENCED)),
        gone_hosting_ids=_first_ids(hosting),
    )


def _first_ids(brokers: QuerySet[BrokerState]) -> list[int]:
    return list(brokers.order_by("broker_id").values_list("broker_id", flat=True)[:3])


def _percent_of(part: int | None, whole: int | None) -> float | None:
    return 100.0 * part / whole if part is not None and whole else None


def _describe_brokers(name: str, tally: BrokerTally, never_seen: int, gone_word: str, freshness: FactFreshness) -> str:
    """``never_seen``: brokers that are assigned replicas and were down at each reading; they have no row."""
    if freshness.taken_at is None:
        return f"{name}: no broker data yet"
    up = choose_plural("# broker|# brokers", tally.up)
    if freshness.stale and freshness.age_s is not None:
        return f"{name}: {up} up {format_duration(freshness.age_s)} ago"
    absent = []
    if tally.gone_hosting:
        absent.append(f"{_name_brokers(tally.gone_hosting, tally.gone_hosting_ids)} {gone_word} with replicas")
    if never_seen > 0:
        absent.append(choose_plural("# unknown broker with replicas|# unknown brokers with replicas", never_seen))
    if tally.silent:
        absent.append(f"{_name_brokers(tally.silent, tally.silent_ids)} unreachable")
    if tally.fenced:
        absent.append(f"{_name_brokers(tally.fenced, tally.fenced_ids)} fenced")
    if absent:
        return f"{name}: {join_items(absent)}; {tally.up:,} up"
    return f"{name}: {tally.up:,} of {up} up"


def _name_brokers(number: int, ids: Sequence[int]) -> str:
    return named_brokers(ids) if number == len(ids) else f"{number:,} brokers"


_FLAT_OBJECT = r"\s*:\s*(\{[^{}]*\})"


class _HostedReplicas(Func):
    """SQL test whether a topic's packed partitions (replicas in element 3) assign a replica to the broker."""

    function = "jsonb_path_exists"
    template = "%(function)s(%(expressions)s)"
    output_field = BooleanField()


def topics_hosted_by(cluster: Cluster, broker: int) -> QuerySet[TopicState]:
    """Topics with a replica on this broker, by the last metadata. PostgreSQL unpacks all topics that are left to it."""
    hosts = _HostedReplicas(
        F("partitions"),
        Func(Value("$[*][3][*] ? (@ == $broker)"), template="%(expressions)s::jsonpath"),
        Value({"broker": broker}, JSONField()),
    )
    return TopicState.objects.filter(cluster=cluster).alias(hosted=hosts).filter(hosted=True)


def sizes_by_topic(weights: BrokerWeights) -> Mapping[str, Mapping[str, int]]:
    """Topic → partition, as text → bytes, of all replicas on one broker."""
    sizes: dict[str, dict[str, int]] = json.loads(zlib.decompress(weights.data))
    return sizes


def leader_sizes(cluster: Cluster, topic: str, leaders: Mapping[int, int | None]) -> dict[int, int]:
    """Partition → bytes of its leader's replica, where that broker was read; ``leaders``: partition → leader.

    Finds the topic in the text instead of reading all of it: on a large cluster a broker has thousands of topics.
    """
    brokers = {leader for leader in leaders.values() if leader is not None}
    name = re.compile(re.escape(json.dumps(topic)) + _FLAT_OBJECT)
    found: dict[int, Mapping[str, Any]] = {}
    for broker, data in _read_packed_weights(cluster, brokers):
        match = name.search(zlib.decompress(data).decode())
        found[broker] = json.loads(match[1]) if match else {}
    sizes = {}
    for partition, leader in leaders.items():
        size = found.get(leader, {}).get(str(partition)) if leader is not None else None
        if size is not None:
            sizes[partition] = size
    return sizes


def _read_packed_weights(cluster: Cluster, brokers: Iterable[int]) -> Iterator[tuple[int, bytes]]:
    rows = BrokerWeights.objects.filter(cluster=cluster, broker_id__in=list(brokers))
    for broker, data in rows.values_list("broker_id", "data"):
        yield broker, bytes(data)


MOST_TROUBLED = 25
MOST_MOVES = 25
TOPICS_PAGE = 25


@dataclass(frozen=True, slots=True)
class HostedTopic:
    """A topic on this broker. ``size_bytes`` is what its replicas take here; ``state`` None: no longer in metadata."""

    name: str
    size_bytes: int | None
    state: TopicState | None
    replicas: int | None
    leaders: int | None

    @property
    def partitions(self) -> int | None:
        return self.state.partition_count if self.state else None


def broker_topics_listing(query: QueryDict) -> ListQuery:
    """The list of topics on a broker's page has an order and pages of its own."""
    return ListQuery(query, sorts={"size": [F("size_bytes")]}, descending_first={"size"})


def broker_context(
    cluster: Cluster, broker: BrokerState, listing: ListQuery, runs: Mapping[str, CollectorRun], now: datetime
) -> dict[str, Any]:
    freshness = metadata_freshness(runs, now)
    state, word = broker_state(broker, freshness)
    weights = BrokerWeights.objects.filter(cluster=cluster, broker_id=broker.broker_id).first()
    disk_interval = runs[CollectorKind.LOG_DIRS].interval_s if CollectorKind.LOG_DIRS in runs else 60.0
    configs = runs.get(CollectorKind.CONFIGS)
    throttles = ClusterThrottles(cluster, known=bool(configs and configs.succeeded_at), brokers=[broker.broker_id])
    config_interval = configs.interval_s if configs else 30.0
    rates = throttles.rates(broker)
    page, topics = _list_hosted_topics(cluster, broker.broker_id, weights, listing)
    troubled = _list_troubled_partitions(cluster, broker.broker_id)
    return {
        "broker": broker,
        "listing": listing,
        "state": state,
        "word": word,
        "title": _broker_title(broker, freshness),
        "freshness": freshness,
        "directories": [directory_row(d) for d in weights.dirs] if weights else None,
        "disk_freshness": FactFreshness(weights.taken_at if weights else None, disk_interval, now),
        "throttles_known": rates is not None,
        "rates": rates,
        "throttles_freshness": freshness_of(configs, now),
        "configs": config_rows(broker.config),
        "config_freshness": FactFreshness(broker.config_at, config_interval, now),
        "page": page,
        "topics": topics,
        **_against_the_mean(cluster, broker),
        **troubled,
        "catch_up": _build_catch_up(cluster, broker, troubled["troubled"], runs, now),
        **_list_moves(cluster, broker.broker_id, now),
    }


def _list_hosted_topics(
    cluster: Cluster, broker: int, weights: BrokerWeights | None, listing: ListQuery
) -> tuple[Any, list[HostedTopic]]:
    """Largest first by what was last read from its directories; without that, by name from metadata."""
    if weights is not None:
        sizes = {topic: sum(replicas.values()) for topic, replicas in sizes_by_topic(weights).items()}
        names = sorted(sizes, key=lambda name: (-sizes[name], name))
    else:
        sizes = {}
        names = list(topics_hosted_by(cluster, broker).order_by("name").values_list("name", flat=True))
    page = listing.page_of(names, TOPICS_PAGE)
    states = {t.name: t for t in TopicState.objects.filter(cluster=cluster, name__in=list(page.object_list))}
    rows = []
    for name in page.object_list:
        state = states.get(name)
        lines = list(partition_lines([state], {})) if state else []
        rows.append(
            HostedTopic(
                name=name,
                size_bytes=sizes.get(name),
                state=state,
                replicas=sum(broker in line.replicas for line in lines) if state else None,
                leaders=sum(line.leader == broker for line in lines) if state else None,
            )
        )
    return page, rows


def _against_the_mean(cluster: Cluster, broker: BrokerState) -> dict[str, Any]:
    figures = ClusterState.objects.filter(cluster=cluster).first() or ClusterState(cluster=cluster)
    means = BrokerState.objects.filter(UP, cluster=cluster).aggregate(replicas=Avg("replicas"), leaders=Avg("leaders"))
    up = broker_word(broker) == "up"
    replicas = skew_percent(broker.replicas, means["replicas"], figures.partitions) if up else None
    leaders = skew_percent(broker.leaders, means["leaders"], figures.partitions) if up else None
    return {
        "replica_skew": None if replicas is None else BrokerSkew(replicas),
        "leader_skew": None if leaders is None else BrokerSkew(leaders),
    }


def _list_troubled_partitions(cluster: Cluster, broker: int) -> dict[str, Any]:
    """Partitions with a replica here that are offline or miss replicas; the worst first, at most ``MOST_TROUBLED``."""
    anything = Q(offline_partitions__gt=0) | Q(under_replicated__gt=0) | Q(under_min_isr__gt=0)
    topics = list(
        topics_hosted_by(cluster, broker)
        .filter(anything)
        .order_by("-offline_partitions", F("under_min_isr").desc(nulls_last=True), "-under_replicated", "name")[
            : MOST_TROUBLED + 1
        ]
    )
    moves = running_moves(cluster, [topic.name for topic in topics])
    quiet = (PartitionTrouble.NONE, PartitionTrouble.CATCHING_UP)
    lines: list[PartitionLine] = [
        line
        for line in partition_lines(topics, moves, rack_labels(cluster))
        if broker in line.replicas and line.trouble not in quiet
    ]
    lines.sort(key=lambda line: (line.trouble.rank, line.topic.name, line.number))
    return {
        "troubled": lines[:MOST_TROUBLED],
        "troubled_more": len(lines) > MOST_TROUBLED or len(topics) > MOST_TROUBLED,
    }


def _build_catch_up(
    cluster: Cluster,
    broker: BrokerState,
    troubled: Iterable[PartitionLine],
    runs: Mapping[str, CollectorRun],
    now: datetime,
) -> CatchUpPanel | None:
    """A broker that is up and outside an ISR has a panel also before the first sample."""
    up = broker.gone_at is None and not broker.fenced
    behind = up and any(broker.broker_id in line.shape.followers_behind for line in troubled)
    return build_panel(cluster, broker.broker_id, runs, now, expected=behind)


def _list_moves(cluster: Cluster, broker: int, now: datetime) -> dict[str, Any]:
    running = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING).filter(
        Q(adding__contains=[broker]) | Q(removing__contains=[broker])
    )
    shown = running.order_by("started_before", "topic", "partition")[: MOST_MOVES + 1]
    rows = [ReassignmentRow(row, now) for row in shown]
    return {"moves": rows[:MOST_MOVES], "moves_more": len(rows) > MOST_MOVES}


def _broker_title(broker: BrokerState, freshness: FactFreshness) -> str:
    name = f"Broker {broker.broker_id}"
    if freshness.stale and freshness.age_s is not None:
        return f"{name} was {_name_state(broker)} {format_duration(freshness.age_s)} ago"
    replicas = choose_plural("# replica|# replicas", broker.replicas)
    partitions = choose_plural("# partition|# partitions", broker.leaders)
    if broker.gone_at is not None:
        return f"{name} is {_name_state(broker)}, {replicas if broker.replicas else 'no replicas'} assigned"
    if broker.fenced:
        return f"{name} is fenced, {f'{replicas} out of service' if broker.replicas else 'hosts no replicas'}"
    if broker.silent_since is not None:
        return f"{name} is unreachable, {f'{partitions} not served' if broker.leaders else 'leads no partitions'}"
    return f"{name} is up, leads {partitions}"


_KINDS = (CollectorKind.METADATA, CollectorKind.LOG_DIRS, CollectorKind.CONFIGS, CollectorKind.CATCH_UP)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def brokers(request: HttpRequest, slug: str) -> HttpResponse:
    """All brokers, also those that are gone; filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    runs = bar["standing"].runs
    shown = broker_list_context(cluster, broker_listing(request.GET), runs, bar["now"])
    misled = shown["led_as_preferred"] is not None and shown["led_as_preferred"] < 100
    may_propose = not cluster.read_only and is_allowed(request.user, PROPOSE, cluster)
    context = {
        **bar,
        "tab": "brokers",
        "live_keys": [read_hint(kind, slug) for kind in _KINDS],
        "not_read": not_read(cluster, runs, _KINDS),
        **shown,
        "may_elect": misled and may_propose,
        "may_propose": may_propose,
    }
    return render(request, "monitoring/brokers.html", context)


def _has_other_leaders(cluster: Cluster) -> bool:
    """Return whether partitions of the cluster are led by others than their preferred replicas. One query."""
    return ClusterState.objects.filter(cluster=cluster, preferred_leaders__lt=F("partitions")).exists()


def find_broker(cluster: Cluster, broker_id: int) -> BrokerState:
    """Raises MissingObject for a broker that was never seen."""
    row = BrokerState.objects.filter(cluster=cluster, broker_id=broker_id).first()
    if row is None:
        raise MissingObject(CollectionErrorCode.BROKER_NOT_SEEN, broker=broker_id, cluster=cluster.name)
    return row


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def broker(request: HttpRequest, slug: str, broker_id: int) -> HttpResponse:
    """Show one broker. A broker that is gone keeps its page."""
    cluster = cluster_for(request, slug, VIEW)
    row = find_broker(cluster, broker_id)
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    runs = bar["standing"].runs
    kinds = (*_KINDS, CollectorKind.REASSIGNMENTS)
    may_propose = not cluster.read_only and is_allowed(request.user, PROPOSE, cluster)
    versions = bar["standing"].freshness_of(CollectorKind.VERSIONS)
    context = {
        **bar,
        "tab": "brokers",
        "live_keys": [read_hint(kind, slug) for kind in kinds],
        "not_read": not_read(cluster, runs, kinds),
        **broker_context(cluster, row, broker_topics_listing(request.GET), runs, bar["now"]),
        "may_propose": may_propose,
        "no_cordons": load_lack(cluster, KafkaFeature.CORDONS) if may_propose and not versions.stale else None,
        "misled": row.leaders != row.preferred or (row.leaders > 0 and _has_other_leaders(cluster)),
        "throughput": broker_throughput(
            cluster, broker_id, request.GET.get("traffic"), bar["now"], runs.get(CollectorKind.TRAFFIC)
        ),
    }
    return render(request, "monitoring/broker.html", context)
