"""Rows of events. Collectors call ``store_events`` in the transaction that writes what the events are about."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from django.conf import settings

from kafkadash.monitoring.cluster_events.rules import EventDraft
from kafkadash.monitoring.models import ClusterEvent

_BATCH = 2000
BROKERS_HEAR = timedelta(seconds=1)
"""Brokers answer from their copy of the metadata: a reading may lack what happened so long before it."""


def store_events(
    cluster_id: int, events: Iterable[EventDraft], taken_at: datetime, not_before: datetime | None
) -> None:
    """Store the events of one reading; no query without events. ``not_before``: the reading before it.

    An event happened later than that reading less ``BROKERS_HEAR``.
    """
    rows = [
        ClusterEvent(
            cluster_id=cluster_id,
            kind=event.code.kind,
            code=event.code,
            at=taken_at,
            not_before=before - BROKERS_HEAR if (before := event.not_before or not_before) else None,
            count=event.count,
            brokers=list(event.brokers),
            marks=list(event.marks),
            data={"values": dict(event.values), "details": [list(detail) for detail in event.details]},
        )
        for event in events
    ]
    if rows:
        ClusterEvent.objects.bulk_create(rows)


def prune_events(now: datetime) -> int:
    """Delete events past ``KEEP_EVENTS_HOURS``, and of a cluster the oldest beyond ``MOST_EVENTS``; return how many."""
    deleted = 0
    before = now - timedelta(hours=settings.KEEP_EVENTS_HOURS)
    while ids := list(ClusterEvent.objects.filter(at__lt=before).order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        deleted += ClusterEvent.objects.filter(pk__in=ids).delete()[0]
    for cluster_id in ClusterEvent.objects.order_by().values_list("cluster_id", flat=True).distinct():
        newest = ClusterEvent.objects.filter(cluster=cluster_id).order_by("-at")
        oldest_kept = newest.values_list("at", flat=True)[settings.MOST_EVENTS - 1 : settings.MOST_EVENTS].first()
        while oldest_kept is not None:
            ids = list(newest.filter(at__lt=oldest_kept).values_list("pk", flat=True)[:_BATCH])
            if not ids:
                break
            deleted += ClusterEvent.objects.filter(pk__in=ids).delete()[0]
    return deleted
