"""What moves in a cluster, and what ended."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Page
from django.db.models import Count, F, FloatField, Q, QuerySet, Sum
from django.http import QueryDict

from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.whole_numbers import LARGEST_INT, read_whole_number
from kafkadash.domain.wording import duration
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import Kind, Outcome, ReassignmentSnapshot
from kafkadash.observe.reassignment_rows import OUTCOME_WORDS, InFlight, ReassignmentRow
from kafkadash.observe.standing import Standing, standing
from kafkadash.observe.throttle_rows import Throttles

MOST_ROWS = 50
ENDED_SHOWN_FOR = timedelta(minutes=10)
PAGE_SIZE = 100


def reassignments_context(
    cluster: Cluster,
    now: datetime,
    known: Standing | None = None,
    beside: Sequence[ReassignmentSnapshot] = (),
) -> dict[str, Any]:
    """What is in flight (those that began first, at most ``MOST_ROWS``) and what ended in the last ten minutes.

    ``beside``: what the page lists besides. The throttles of all of it are read together, and are ``throttles``.
    """
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster)
    read = known or standing(cluster, now)
    freshness = read.freshness_of(Kind.REASSIGNMENTS)
    running = list(running_rows(cluster)[:MOST_ROWS])
    throttles = _throttles_of(cluster, [*running, *beside], read)
    in_flight = _in_flight(rows)
    recently = rows.exclude(outcome=Outcome.RUNNING).filter(ended_at__gt=now - ENDED_SHOWN_FOR)
    ended = list(recently.order_by("-ended_at", "-pk")[: MOST_ROWS + 1])
    age = duration(freshness.age_s) if freshness.stale and freshness.age_s is not None else ""
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "run": read.runs.get(Kind.REASSIGNMENTS),
        "freshness": freshness,
        "in_flight": in_flight,
        "title": in_flight.title(cluster.name, age)
        if freshness.taken_at
        else f"Cannot tell what moves in {cluster.name}: nothing was collected yet.",
        "running": [ReassignmentRow(s, now, throttles) for s in running],
        "throttles": throttles,
        "ended": [ReassignmentRow(s, now) for s in ended[:MOST_ROWS]],
        "stuck": _stuck(rows),
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


def reassignment_listing(query: QueryDict) -> Listing:
    """``?running=all`` or ``?ended=all`` lists all of them; by topic, broker and outcome."""
    return Listing(
        query,
        choices=[
            Choice("running", "list", {"all": "All in flight"}),
            Choice("ended", "list", {"all": "All that ended"}),
            Choice("outcome", "outcome", OUTCOME_WORDS),
        ],
        texts=["q", "broker"],
        sorts={"began": [F("started_before")]},
    )


def page_of_snapshots(rows: QuerySet[ReassignmentSnapshot], listing: Listing) -> Page[ReassignmentSnapshot]:
    """One page of those that the listing leaves."""
    return listing.page_of(_filtered(rows, listing), PAGE_SIZE)


def reassignment_rows(
    cluster: Cluster, snapshots: Iterable[ReassignmentSnapshot], now: datetime, known: Standing | None = None
) -> list[ReassignmentRow]:
    """Rows with the throttles of their brokers and topics, read together."""
    shown = list(snapshots)
    throttles = _throttles_of(cluster, shown, known or standing(cluster, now))
    return [ReassignmentRow(s, now, throttles) for s in shown]


def _throttles_of(cluster: Cluster, shown: Sequence[ReassignmentSnapshot], read: Standing) -> Throttles:
    return Throttles(
        cluster,
        known=read.freshness_of(Kind.CONFIGS).taken_at is not None,
        brokers={broker for s in shown for broker in (*s.target, *s.adding, s.leader) if broker is not None},
        topics={s.topic for s in shown},
    )


def _filtered(rows: QuerySet[ReassignmentSnapshot], listing: Listing) -> QuerySet[ReassignmentSnapshot]:
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


def _stuck(rows: QuerySet[ReassignmentSnapshot]) -> int:
    """How many add and remove the same broker."""
    both = rows.filter(outcome=Outcome.RUNNING).exclude(adding=[]).exclude(removing=[])
    return sum(not set(adding).isdisjoint(removing) for adding, removing in both.values_list("adding", "removing"))


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
