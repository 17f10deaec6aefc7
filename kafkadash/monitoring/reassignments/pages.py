"""Pages of observed reassignments (KIP-240): those in flight, those that ended, and one by its id."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property
from http import HTTPStatus
from typing import Any, TypedDict

from django.core.paginator import Page
from django.db.models import Count, F, FloatField, Q, QuerySet, Sum
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs
from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import LARGEST_INT, format_duration, read_whole_number
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import CodedMessage, choose_plural, message_text
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.ensemble_state import EnsembleView, read_ensemble
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, load_standing, not_read
from kafkadash.monitoring.models import CollectorKind, CollectorRun, MoveOutcome, ReassignmentSnapshot, StartedFrom
from kafkadash.monitoring.ownership import NEVER_LISTED
from kafkadash.monitoring.reassignments.progress import seconds_left
from kafkadash.monitoring.reassignments.unfinished import find_unfinished
from kafkadash.monitoring.templatetags.figures import percent
from kafkadash.monitoring.throttles import UNKNOWN_LIMIT, ClusterThrottles, ThrottleLimit

FAR = timedelta(hours=24)
"""A time of completion farther away than this is given with its day."""

OUTCOME_WORDS: Mapping[str, str] = {
    MoveOutcome.COMPLETED: "completed",
    MoveOutcome.CANCELLED: "cancelled",
    MoveOutcome.SUPERSEDED: "superseded by another reassignment",
    MoveOutcome.TOPIC_DELETED: "topic deleted",
    MoveOutcome.UNKNOWN: "ended, outcome unknown",
}


@dataclass(frozen=True, slots=True)
class TargetThrottle:
    """How fetching by one target broker is throttled; ``adding``: it copies the partition, it did not hold it."""

    broker: int
    adding: bool
    limit: ThrottleLimit


@dataclass(frozen=True)
class ReassignmentRow:
    """A reassignment as a page or a push shows it at ``now``. Figures that nobody could read are None.

    ``throttles`` are those of its brokers and its topic; without them its throttles are unknown.
    """

    snapshot: ReassignmentSnapshot
    now: datetime
    throttles: ClusterThrottles | None = None

    @property
    def id(self) -> str:
        return self.snapshot.public_id

    @property
    def name(self) -> str:
        """Topic and partition as Kafka's tools write them."""
        return f"{self.snapshot.topic}-{self.snapshot.partition}"

    @property
    def running(self) -> bool:
        return self.snapshot.outcome == MoveOutcome.RUNNING

    @property
    def percent(self) -> float | None:
        return self.snapshot.percent

    @cached_property
    def copied(self) -> bool:
        """Every adding replica holds what the leader held when asked."""
        return self.percent is not None and self.percent >= 100.0

    @cached_property
    def in_isr(self) -> int | None:
        """How many adding replicas are in the ISR; None while one of them is not known."""
        flags = [replica.get("in_isr") for replica in self.replicas]
        return None if None in flags or len(flags) < len(self.snapshot.adding) else sum(map(bool, flags))

    @property
    def replicas(self) -> Sequence[Mapping[str, Any]]:
        """Adding replicas as last sampled; none of a completed one, whose replicas have all caught up since."""
        if self.snapshot.outcome == MoveOutcome.COMPLETED:
            return []
        return [
            {**replica, "taken_at": datetime.fromisoformat(replica["taken_at"]) if replica["taken_at"] else None}
            for replica in self.snapshot.replicas_progress
        ]

    @property
    def in_sync_words(self) -> str:
        if self.snapshot.outcome == MoveOutcome.COMPLETED:
            return "yes"
        adding = len(self.snapshot.adding)
        if not adding:
            return "none added"
        if self.in_isr is None:
            return "unknown"
        if adding == 1 or self.in_isr in (0, adding):
            return "yes" if self.in_isr == adding else "no"
        return f"{self.in_isr} of {adding}"

    @property
    def state(self) -> str:
        """State of the reassignment in words."""
        if not self.running:
            return OUTCOME_WORDS[self.snapshot.outcome]
        if self.stuck:
            brokers = choose_plural("broker|brokers", len(self.stuck))
            return f"stuck: adds and removes {brokers} {', '.join(map(str, self.stuck))}; cancel the reassignment"
        if not self.snapshot.adding:
            return "removing replicas"
        if self.in_isr == len(self.snapshot.adding):
            return "in sync, finishing"
        if self.percent is None:
            return "copying, progress unknown"
        return "catching up" if self._catches_up else "copying"

    @property
    def _catches_up(self) -> bool:
        """Everything is copied, and the ISR does not have it yet."""
        copying = self.running and not self.stuck and self.snapshot.adding and self.percent is not None
        return bool(copying) and self.copied and self.in_isr != len(self.snapshot.adding)

    @property
    def stuck(self) -> Sequence[int]:
        """Brokers that are added and removed at once: it never completes (the original set was submitted over it)."""
        if not self.running:
            return ()
        return [broker for broker in self.snapshot.adding if broker in self.snapshot.removing]

    @property
    def leader_throttle(self) -> ThrottleLimit:
        """How its leader's sending is throttled (KIP-240's leader throttle)."""
        if self.throttles is None:
            return UNKNOWN_LIMIT
        return self.throttles.leader_limit(self.snapshot.topic, self.snapshot.partition, self.snapshot.leader)

    @property
    def target_throttles(self) -> Sequence[TargetThrottle]:
        """Throttle of every target broker in order; the first broker is the preferred leader."""
        return [
            TargetThrottle(broker, broker in self.snapshot.adding, self._throttle_of(broker))
            for broker in self.snapshot.target
        ]

    @property
    def adding_throttles(self) -> Sequence[TargetThrottle]:
        """Throttle of every broker that copies data."""
        return [TargetThrottle(broker, adding=True, limit=self._throttle_of(broker)) for broker in self.snapshot.adding]

    def _throttle_of(self, broker: int) -> ThrottleLimit:
        if self.throttles is None:
            return UNKNOWN_LIMIT
        return self.throttles.target_limit(self.snapshot.topic, self.snapshot.partition, broker)

    @property
    def state_hint(self) -> str:
        return "copied, not in the ISR yet" if self._catches_up else ""

    @property
    def skips_tiered(self) -> bool:
        """Return whether a copy begins after the start of the leader's local log (KIP-1023)."""
        start = self.snapshot.leader_log_start
        begins = (replica.get("copy_start") for replica in self.snapshot.replicas_progress)
        return start is not None and any(begin is not None and begin > start for begin in begins)

    @property
    def remaining_bytes(self) -> float | None:
        if self.snapshot.size_bytes is None or self.percent is None:
            return None
        return self.snapshot.size_bytes * (100.0 - self.percent) / 100.0

    @cached_property
    def seconds_left(self) -> float | None:
        return seconds_left(self.snapshot.size_bytes, self.percent, self.snapshot.rate_bytes)

    @property
    def eta(self) -> datetime | None:
        """When the copy is complete if it goes on like this; None where ``eta_words`` says why there is none."""
        left = self.seconds_left
        if self.copied or left is None or math.isinf(left) or left > timedelta(days=365).total_seconds():
            return None
        return (self.snapshot.sampled_at or self.now) + timedelta(seconds=left)

    @property
    def eta_far(self) -> bool:
        return self.eta is not None and self.eta - self.now > FAR

    @property
    def eta_words(self) -> str:
        """Why there is no time of completion."""
        if not self.running or self.eta is not None:
            return ""
        if not self.snapshot.adding:
            return "nothing to copy"
        if self.copied:
            return "finishing" if self.in_isr == len(self.snapshot.adding) else "not in ISR yet"
        if self.snapshot.rate_bytes is None:
            return "unknown"
        return "no progress" if self.rests else "unknown"

    @property
    def rests(self) -> bool:
        """At its rate the copy never ends, or takes longer than anybody waits."""
        copying = self.running and self.snapshot.adding and not self.copied
        return bool(copying) and self.snapshot.rate_bytes is not None and self.seconds_left is not None and not self.eta

    @property
    def took(self) -> str:
        """How long it ran, as well as is known: an upper bound when nobody saw it begin."""
        ended = self.snapshot.ended_at
        if ended is None:
            return ""
        begun = self.snapshot.started_after
        if begun is None:
            return f"observed for {format_duration((ended - self.snapshot.started_before).total_seconds())}"
        return f"in {format_duration((ended - begun).total_seconds())}"

    @property
    def started_source(self) -> str:
        """Source of the started interval, as words that follow the times."""
        return StartedFrom(self.snapshot.started_from).label

    @property
    def listed(self) -> bool:
        """Return whether a refresh has found it in Kafka's listing: a quick one of ours may have ended before."""
        return self.snapshot.epoch != NEVER_LISTED

    @property
    def ours(self) -> bool:
        return bool(self.snapshot.claimed_by)

    @property
    def started_at(self) -> datetime | None:
        """When it started, where that is known: of one that was submitted more than once nobody knows which arrived."""
        row = self.snapshot
        return row.started_before if row.started_after == row.started_before else None

    @property
    def batch_words(self) -> str:
        """The legacy batch of a cluster with ZooKeeper that it was started with, for lists."""
        return f"batch {self.snapshot.batch_id}" if self.snapshot.batch_id else ""

    @property
    def title(self) -> str:
        """The heading of its own page."""
        if not self.running:
            return f"{self.name}: {self.state}"
        if self.percent is None:
            return f"{self.name}: moving, progress unknown"
        return f"{self.name}: moving, {percent(self.percent)} copied"


@dataclass(frozen=True, slots=True)
class InFlight:
    """All running reassignments of a cluster taken together.

    ``percent`` weighs by size where all sizes are known, else every partition alike. ``unknown``: how many copy
    something and have no progress that could be read. ``dropping``: how many only remove replicas.
    """

    running: int
    unknown: int
    dropping: int
    percent: float | None
    remaining_bytes: float | None

    def title(self, name: str, age: str) -> str:
        """The answer of the reassignments page; ``age`` is set when the data is too old to speak of now."""
        moving = choose_plural("# partition|# partitions", self.running)
        if age:
            return f"{name}: {moving if self.running else 'no partitions'} moving {age} ago"
        if not self.running:
            return f"{name}: no reassignments in flight"
        if self.dropping == self.running:
            return f"{name}: {moving} removing replicas"
        if self.percent is None:
            return f"{name}: {moving} moving, progress unknown"
        known = ", partly unknown" if self.unknown else ""
        return f"{name}: {moving} moving, {percent(self.percent)} copied{known}"


MOST_ROWS = 50
ENDED_SHOWN_FOR = timedelta(minutes=10)
PAGE_SIZE = 100


class ReassignmentsContext(TypedDict):
    cluster: Cluster
    now: datetime
    sampled_at: datetime | None
    run: CollectorRun | None
    freshness: FactFreshness
    in_flight: InFlight
    title: str
    running: list[ReassignmentRow]
    throttles: ClusterThrottles
    ended: list[ReassignmentRow]
    stuck: int
    ended_more: bool
    has_ended: bool
    ensemble: EnsembleView | None


def reassignments_context(
    cluster: Cluster,
    now: datetime,
    known: CollectionFreshness | None = None,
    beside: Sequence[ReassignmentSnapshot] = (),
) -> ReassignmentsContext:
    """Return the context of moves in flight (the oldest, at most ``MOST_ROWS``) and of those ended in the last 10 min.

    ``beside``: further rows on the page. The throttles of all rows are read together, and are ``throttles``.
    """
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster)
    read = known or load_standing(cluster, now)
    freshness = read.freshness_of(CollectorKind.REASSIGNMENTS)
    running = list(running_rows(cluster)[:MOST_ROWS])
    throttles = _throttles_of(cluster, [*running, *beside], read)
    in_flight = _in_flight(rows)
    recently = rows.exclude(outcome=MoveOutcome.RUNNING).filter(ended_at__gt=now - ENDED_SHOWN_FOR)
    ended = list(recently.order_by("-ended_at", "-pk")[: MOST_ROWS + 1])
    age = format_duration(freshness.age_s) if freshness.stale and freshness.age_s is not None else ""
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "run": read.runs.get(CollectorKind.REASSIGNMENTS),
        "freshness": freshness,
        "in_flight": in_flight,
        "title": in_flight.title(cluster.name, age)
        if freshness.taken_at
        else f"{cluster.name}: no reassignment data yet",
        "running": [ReassignmentRow(s, now, throttles) for s in running],
        "throttles": throttles,
        "ended": [ReassignmentRow(s, now) for s in ended[:MOST_ROWS]],
        "stuck": _count_zombies(rows),
        "ended_more": len(ended) > MOST_ROWS,
        "has_ended": bool(ended) or rows.exclude(outcome=MoveOutcome.RUNNING).exists(),
        "ensemble": read_ensemble(cluster, now, read),
    }


def running_rows(cluster: Cluster) -> QuerySet[ReassignmentSnapshot]:
    """In flight, oldest first: that order does not change while they move."""
    return ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING).order_by(
        "started_before", "topic", "partition"
    )


def ended_rows(cluster: Cluster) -> QuerySet[ReassignmentSnapshot]:
    """All that ended and are still kept, newest end first."""
    return (
        ReassignmentSnapshot.objects.filter(cluster=cluster)
        .exclude(outcome=MoveOutcome.RUNNING)
        .order_by("-ended_at", "-pk")
    )


def reassignment_listing(query: QueryDict) -> ListQuery:
    """``?running=all`` or ``?ended=all`` lists all of them; by topic, broker and outcome."""
    return ListQuery(
        query,
        choices=[
            FilterChoice("running", "list", {"all": "All in flight"}),
            FilterChoice("ended", "list", {"all": "All ended"}),
            FilterChoice("outcome", "outcome", OUTCOME_WORDS),
        ],
        texts=["q", "broker"],
        sorts={"began": [F("started_before")]},
    )


def page_of_snapshots(rows: QuerySet[ReassignmentSnapshot], listing: ListQuery) -> Page[ReassignmentSnapshot]:
    """Return one page of the snapshots that match the listing's filters."""
    return listing.page_of(_filter_snapshots(rows, listing), PAGE_SIZE)


def reassignment_rows(
    cluster: Cluster, snapshots: Iterable[ReassignmentSnapshot], now: datetime, known: CollectionFreshness | None = None
) -> list[ReassignmentRow]:
    """Rows with the throttles of their brokers and topics, read together."""
    shown = list(snapshots)
    throttles = _throttles_of(cluster, shown, known or load_standing(cluster, now))
    return [ReassignmentRow(s, now, throttles) for s in shown]


def _throttles_of(
    cluster: Cluster, shown: Sequence[ReassignmentSnapshot], read: CollectionFreshness
) -> ClusterThrottles:
    return ClusterThrottles(
        cluster,
        known=read.freshness_of(CollectorKind.CONFIGS).taken_at is not None,
        brokers={broker for s in shown for broker in (*s.target, *s.adding, s.leader) if broker is not None},
        topics={s.topic for s in shown},
    )


def _filter_snapshots(rows: QuerySet[ReassignmentSnapshot], listing: ListQuery) -> QuerySet[ReassignmentSnapshot]:
    if text := listing.values["q"]:
        rows = rows.filter(topic__icontains=text)
    if outcome := listing.values["outcome"]:
        rows = rows.filter(outcome=outcome)
    if typed := listing.values["broker"]:
        broker = read_whole_number(typed, LARGEST_INT)
        if broker is None:
            listing.problems.append(message_text(CollectionErrorCode.REASSIGNMENTS_NO_BROKER, typed=typed[:60]))
            listing.values["broker"] = ""
        else:
            rows = rows.filter(Q(replicas__contains=[broker]) | Q(target__contains=[broker]))
    return rows


def _count_zombies(rows: QuerySet[ReassignmentSnapshot]) -> int:
    """How many add and remove the same broker."""
    both = rows.filter(outcome=MoveOutcome.RUNNING).exclude(adding=[]).exclude(removing=[])
    return sum(not set(adding).isdisjoint(removing) for adding, removing in both.values_list("adding", "removing"))


def _in_flight(rows: QuerySet[ReassignmentSnapshot]) -> InFlight:
    """All running ones together."""
    measured = Q(percent__isnull=False)
    sized = measured & Q(size_bytes__isnull=False)
    copied = Sum(F("size_bytes") * F("percent"), filter=sized, output_field=FloatField())
    sums = rows.filter(outcome=MoveOutcome.RUNNING).aggregate(
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


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def reassignments(request: HttpRequest, slug: str) -> HttpResponse:
    """List the moves in flight and the recently ended ones; ``?running=all`` or ``?ended=all`` lists all, paged."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(cluster, CollectorKind.REASSIGNMENTS)
    lists = {"running": running_rows, "ended": ended_rows}
    listing = reassignment_listing(request.GET)
    show = next((name for name in lists if listing.values[name]), "")
    page = page_of_snapshots(lists[show](cluster), listing) if show else None
    listed = list(page.object_list) if page is not None else []
    shown = reassignments_context(cluster, bar["now"], bar["standing"], listed)
    context = {
        **bar,
        "tab": "reassignments",
        "live_keys": [f"reassignments:{slug}"] + ([read_hint(CollectorKind.REASSIGNMENTS, slug)] if show else []),
        "not_read": not_read(cluster, bar["standing"].runs, (CollectorKind.REASSIGNMENTS, CollectorKind.CONFIGS)),
        "reassignments": shown,
        "listing": listing,
        "outcomes": OUTCOME_WORDS,
        "show": show,
        "may_cancel": _may_cancel(request, cluster, listed),
    }
    if page is not None:
        rows = [ReassignmentRow(snapshot, bar["now"], shown["throttles"]) for snapshot in listed]
        context |= {"page": page, "rows": rows}
    return render(request, "monitoring/reassignments.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def reassignment(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Show one reassignment, running or ended (KIP-240's describe). An id never shows the data of a later one."""
    cluster = cluster_for(request, slug, VIEW)
    return reassignment_page(request, cluster, find_snapshot(cluster, public_id))


def find_snapshot(cluster: Cluster, public_id: str) -> ReassignmentSnapshot:
    """Raises MissingObject."""
    snapshot = ReassignmentSnapshot.objects.filter(cluster=cluster, public_id=public_id).first()
    if snapshot is None:
        raise MissingObject(CollectionErrorCode.NO_SUCH_REASSIGNMENT, cluster=cluster.name, asked=public_id)
    return snapshot


def reassignment_page(
    request: HttpRequest,
    cluster: Cluster,
    snapshot: ReassignmentSnapshot,
    *,
    status: int = HTTPStatus.OK,
    refused: CodedMessage | None = None,
) -> HttpResponse:
    bar = cluster_bar(cluster, CollectorKind.REASSIGNMENTS)
    context = {
        **bar,
        "tab": "reassignments",
        "live_keys": [f"reassignments:{cluster.slug}"] if snapshot.ended_at is None else [],
        "row": reassignment_rows(cluster, [snapshot], bar["now"], bar["standing"])[0],
        "freshness": bar["standing"].freshness_of(CollectorKind.REASSIGNMENTS),
        "may_cancel": _may_cancel(request, cluster, [snapshot]),
        "unfinished": find_unfinished(snapshot),
        "metadata_at": bar["standing"].freshness_of(CollectorKind.METADATA).taken_at,
        "may_propose": snapshot.ended_at is not None and _may_propose(request, cluster),
        "refused": refused,
    }
    return render(request, "monitoring/reassignment.html", context, status=status)


def _may_cancel(request: HttpRequest, cluster: Cluster, snapshots: Iterable[ReassignmentSnapshot]) -> bool:
    """Return whether one of these is in flight, started by others, and this user may propose its cancel."""
    foreign = any(row.outcome == MoveOutcome.RUNNING and not row.claimed_by for row in snapshots)
    return foreign and _may_propose(request, cluster)


def _may_propose(request: HttpRequest, cluster: Cluster) -> bool:
    return not cluster.read_only and is_allowed(request.user, PROPOSE, cluster)
