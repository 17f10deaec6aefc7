"""What the pages of one cluster show, read from the stored rows. Each context serves the page and the push alike.

A context takes the cluster and the time now, and knows no request: what it returns is the same for everybody who may
view the cluster. ``sampled_at`` is when the data shown was taken, or None.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Case, Count, F, FloatField, OuterRef, Q, QuerySet, Subquery, Sum, When

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.domain.topology import PartitionShape
from kafkadash.domain.wording import duration
from kafkadash.observe.models import (
    BrokerState,
    BrokerWeights,
    Collection,
    CollectorRun,
    Kind,
    Outcome,
    ReassignmentSnapshot,
    TopicState,
)
from kafkadash.observe.reassignment_rows import InFlight, ReassignmentRow
from kafkadash.observe.standing import Freshness, Standing, newest_quorums, standing

MOST_ROWS = 50
MOST_TROUBLED = 20
_GRAINS = {
    Kind.METADATA: "partitions",
    Kind.REASSIGNMENTS: "in flight",
    Kind.QUORUM: "nodes",
    Kind.LOG_DIRS: "replicas",
    Kind.VERSIONS: "brokers",
}
ENDED_SHOWN_FOR = timedelta(minutes=10)
PAGE_SIZE = 100


@dataclass(frozen=True, slots=True)
class CollectionRow:
    """How one kind of facts is collected. ``newest`` is its last refresh, good or not; None before the first."""

    kind: Kind
    freshness: Freshness
    run: CollectorRun | None
    newest: Collection | None

    @property
    def grain(self) -> str:
        """What a refresh of this kind counts."""
        return _GRAINS[self.kind]


@dataclass(frozen=True, slots=True)
class DirectoryRow:
    """A log directory; ``percent`` is None where Kafka does not tell its size (before 3.3)."""

    path: str
    total_bytes: int | None
    used_bytes: int | None
    percent: float | None
    cordoned: bool | None
    error: str


@dataclass(frozen=True, slots=True)
class BrokerRow:
    broker: BrokerState
    state: str
    word: str
    directories: Sequence[DirectoryRow]
    disk_freshness: Freshness | None


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition that has no leader, or fewer replicas in sync than it should have."""

    topic: TopicState
    partition: int
    shape: PartitionShape

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.partition}"

    @property
    def missing(self) -> list[int]:
        return [broker for broker in self.shape.replicas if broker not in self.shape.isr]


def overview_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """State and figures of a cluster. ``known`` saves judging it again."""
    seen = known or standing(cluster, now)
    return {"cluster": cluster, "now": now, "sampled_at": seen.freshness.taken_at, "standing": seen}


def collection_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """How each kind of facts is read, and how its last refresh went."""
    of_kind = Collection.objects.filter(cluster=cluster, kind=OuterRef("kind")).order_by("-started_at")
    runs = CollectorRun.objects.filter(cluster=cluster).annotate(newest=Subquery(of_kind.values("pk")[:1]))
    known = {run.kind: run for run in runs}
    last = {c.kind: c for c in Collection.objects.filter(pk__in=[run.newest for run in known.values()])}
    kinds = [k for k in Kind if k != Kind.QUORUM or cluster.mode != Mode.ZOOKEEPER]
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": max((run.attempted_at for run in known.values() if run.attempted_at), default=None),
        "rows": [CollectionRow(k, _freshness(known.get(k), now), known.get(k), last.get(k)) for k in kinds],
    }


def quorum_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """The newest answer of the controllers, with registered brokers that it misses."""
    registered = BrokerState.objects.filter(cluster=cluster, gone_at=None).values_list("broker_id", flat=True)
    seen = newest_quorums([cluster.pk], list(registered)).get(cluster.pk)
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.QUORUM).first()
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": seen.snapshot.taken_at if seen else None,
        "seen": seen,
        "run": run,
        "freshness": _freshness(run, now),
        "zookeeper": cluster.mode == Mode.ZOOKEEPER,
    }


def brokers_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """The brokers with their log directories; those that are not up first, at most ``MOST_ROWS``."""
    rows = BrokerState.objects.filter(cluster=cluster)
    up = Case(When(Q(fenced=True) | Q(gone_at__isnull=False), then=0), default=1)
    shown = list(rows.order_by(up, "broker_id")[:MOST_ROWS])
    weights = {
        w.broker_id: w
        for w in BrokerWeights.objects.filter(cluster=cluster, broker_id__in=[b.broker_id for b in shown]).defer("data")
    }
    runs = {r.kind: r for r in CollectorRun.objects.filter(cluster=cluster, kind__in=[Kind.METADATA, Kind.LOG_DIRS])}
    disk_interval = runs[Kind.LOG_DIRS].interval_s if Kind.LOG_DIRS in runs else 60.0
    freshness = _freshness(runs.get(Kind.METADATA), now)
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
        "run": runs.get(Kind.METADATA),
    }


def partitions_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """Partitions that need a look: without a leader first, then those under-replicated without a move that explains it.

    At most ``MOST_TROUBLED``; ``more`` says that there are others.
    """
    topics = TopicState.objects.filter(cluster=cluster).filter(Q(offline_partitions__gt=0) | Q(under_replicated__gt=0))
    worst = list(topics.order_by("-offline_partitions", "-under_replicated", "name")[: MOST_TROUBLED + 1])
    moving = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
    adding = {
        (topic, partition): frozenset(brokers)
        for topic, partition, brokers in moving.filter(topic__in=[t.name for t in worst]).values_list(
            "topic", "partition", "adding"
        )
    }
    rows = [row for topic in worst for row in _troubled(topic, adding)]
    rows.sort(key=lambda row: (not row.shape.offline, row.topic.name, row.partition))
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.METADATA).first()
    freshness = _freshness(run, now)
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "partitions": rows[:MOST_TROUBLED],
        "more": len(rows) > MOST_TROUBLED or len(worst) > MOST_TROUBLED,
        "freshness": freshness,
    }


def reassignments_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """What is in flight (those that began first, at most ``MOST_ROWS``) and what ended in the last ten minutes."""
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster)
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.REASSIGNMENTS).first()
    freshness = _freshness(run, now)
    in_flight = _in_flight(rows)
    recently = rows.exclude(outcome=Outcome.RUNNING).filter(ended_at__gt=now - ENDED_SHOWN_FOR)
    ended = list(recently.order_by("-ended_at", "-pk")[: MOST_ROWS + 1])
    age = duration(freshness.age_s) if freshness.stale and freshness.age_s is not None else ""
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "run": run,
        "freshness": freshness,
        "in_flight": in_flight,
        "title": in_flight.title(cluster.name, age)
        if freshness.taken_at
        else f"Cannot tell what moves in {cluster.name}: nothing was collected yet.",
        "running": [ReassignmentRow(s, now) for s in running_rows(cluster)[:MOST_ROWS]],
        "ended": [ReassignmentRow(s, now) for s in ended[:MOST_ROWS]],
        "ended_more": len(ended) > MOST_ROWS,
        "has_ended": bool(ended) or rows.exclude(outcome=Outcome.RUNNING).exists(),
    }


def running_rows(cluster: Cluster) -> QuerySet[ReassignmentSnapshot]:
    """In flight, oldest first: that order does not change while they move."""
    return ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING).order_by(
        "started_before", "topic", "partition"
    )


def ended_rows(cluster: Cluster) -> QuerySet[ReassignmentSnapshot]:
    """All that ended and are still kept, newest end first."""
    return (
        ReassignmentSnapshot.objects.filter(cluster=cluster)
        .exclude(outcome=Outcome.RUNNING)
        .order_by("-ended_at", "-pk")
    )


def page_of_rows(
    rows: QuerySet[ReassignmentSnapshot], number: str | None, now: datetime
) -> tuple[Page[ReassignmentSnapshot], list[ReassignmentRow]]:
    """One page of rows; a number that makes no sense gives the nearest page."""
    page = Paginator(rows, PAGE_SIZE).get_page(number)
    return page, [ReassignmentRow(s, now) for s in page]


def _in_flight(rows: QuerySet[ReassignmentSnapshot]) -> InFlight:
    """All running ones together."""
    measured = Q(percent__isnull=False)
    sized = measured & Q(size_bytes__isnull=False)
    copied = Sum(F("size_bytes") * F("percent"), filter=sized, output_field=FloatField())
    sums = rows.filter(outcome=Outcome.RUNNING).aggregate(
        running=Count("pk"),
        unknown=Count("pk", filter=~measured & ~Q(adding=[])),
        dropping=Count("pk", filter=Q(adding=[])),
        sized=Count("pk", filter=sized),
        mean=Sum("percent", filter=measured, output_field=FloatField()),
        size=Sum("size_bytes", filter=sized),
        copied=copied,
    )
    known = sums["running"] - sums["unknown"] - sums["dropping"]
    overall = None
    if known and sums["sized"] == known and sums["size"]:
        overall = sums["copied"] / sums["size"]
    elif known:
        overall = sums["mean"] / known
    complete = known and sums["sized"] == known and not sums["unknown"]
    remaining = sums["size"] - sums["copied"] / 100 if complete else None
    return InFlight(sums["running"], sums["unknown"], sums["dropping"], overall, remaining)


def _freshness(run: CollectorRun | None, now: datetime) -> Freshness:
    return Freshness(run.succeeded_at if run else None, run.interval_s if run else 30.0, now)


def _broker_row(
    broker: BrokerState, weights: BrokerWeights | None, disk_interval: float, freshness: Freshness, now: datetime
) -> BrokerRow:
    state, word = _broker_state(broker, freshness)
    return BrokerRow(
        broker=broker,
        state=state,
        word=word,
        directories=[_directory(d) for d in weights.dirs] if weights else [],
        disk_freshness=Freshness(weights.taken_at, disk_interval, now) if weights else None,
    )


def _troubled(topic: TopicState, adding: Mapping[tuple[str, int], frozenset[int]]) -> Iterator[PartitionRow]:
    for number, leader, _, replicas, isr, _ in topic.partitions:
        shape = PartitionShape(leader, tuple(replicas), tuple(isr), adding.get((topic.name, number), frozenset()))
        if shape.offline or (shape.under_replicated and not shape.explained_by_move):
            yield PartitionRow(topic, number, shape)


def _broker_state(broker: BrokerState, freshness: Freshness) -> tuple[str, str]:
    """What is known of a broker. Nothing old is called up."""
    if broker.gone_at is not None:
        return ("critical" if broker.replicas else "warning"), "Gone"
    if broker.fenced:
        return ("critical" if broker.replicas else "warning"), "Fenced"
    if freshness.stale:
        return "unknown", "Was up"
    return "ok", "Up"


def _directory(stored: dict[str, Any]) -> DirectoryRow:
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
