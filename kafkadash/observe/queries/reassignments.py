"""What moves in a cluster, and what ended."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.core.paginator import Page, Paginator
from django.db.models import Count, F, FloatField, Q, QuerySet, Sum

from kafkadash.clusters.models import Cluster
from kafkadash.domain.wording import duration
from kafkadash.observe.models import CollectorRun, Kind, Outcome, ReassignmentSnapshot
from kafkadash.observe.reassignment_rows import InFlight, ReassignmentRow
from kafkadash.observe.standing import freshness_of

MOST_ROWS = 50
ENDED_SHOWN_FOR = timedelta(minutes=10)
PAGE_SIZE = 100


def reassignments_context(cluster: Cluster, now: datetime) -> dict[str, Any]:
    """What is in flight (those that began first, at most ``MOST_ROWS``) and what ended in the last ten minutes."""
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster)
    run = CollectorRun.objects.filter(cluster=cluster, kind=Kind.REASSIGNMENTS).first()
    freshness = freshness_of(run, now)
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
