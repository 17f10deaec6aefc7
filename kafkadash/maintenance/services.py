"""Planning, ending and forgetting of maintenance windows and silences, each with its audit event."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.accounts.services import record
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import FieldRefused
from kafkadash.core.events import changed
from kafkadash.maintenance.errors import MaintenanceErrorCode
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose, QuietStage

MOST_OPEN = 200
"""Windows and silences of one cluster that are not over."""


class MaintenanceRefused(FieldRefused):
    """A window or a silence is not stored or not ended."""


def add_period(period: QuietPeriod, user: User, request: HttpRequest) -> QuietPeriod:
    """Store a window or a silence. Raises MaintenanceRefused where the same is planned for some of that time."""
    with transaction.atomic():
        Cluster.objects.select_for_update(no_key=True).get(pk=period.cluster_id)
        own = QuietPeriod.objects.filter(cluster=period.cluster_id).exclude(stage=QuietStage.OVER)
        if own.count() >= MOST_OPEN:
            raise MaintenanceRefused("", MaintenanceErrorCode.TOO_MANY, most=MOST_OPEN)
        same = {name: getattr(period, name) for name in ("purpose", "broker", "rack", "kind", "subject")}
        nulls = {f"{name}__isnull": True for name, value in same.items() if value is None}
        given = {name: value for name, value in same.items() if value is not None}
        other = own.filter(**given, **nulls, begins_at__lt=period.ends_at, ends_at__gt=period.begins_at).first()
        if other is not None:
            raise MaintenanceRefused(
                "ends",
                MaintenanceErrorCode.OVERLAPS,
                number=other.pk,
                begins=other.begins_at,
                ends=other.ends_at,
            )
        period.author, period.author_name = user, user.get_username()
        period.save()
        _record(user, "planned", period, request, after=dict(period.describe()))
    return period


def end_period(period: QuietPeriod, user: User, request: HttpRequest, now: datetime) -> None:
    """End a window or a silence now; one that has not begun is deleted. Raises MaintenanceRefused after its end."""
    with transaction.atomic():
        row = QuietPeriod.objects.select_for_update(no_key=True, of=("self",)).filter(pk=period.pk).first()
        if row is None or row.ends_at <= now:
            raise MaintenanceRefused("", MaintenanceErrorCode.OVER_ALREADY)
        before = dict(row.describe())
        if row.begins_at > now:
            _record(user, "cancelled", row, request, before=before)
            row.delete()
            return
        row.ends_at, row.ended_by = now, user.get_username()
        row.save(update_fields=["ends_at", "ended_by"])
        _record(user, "ended", row, request, before=before, after={"ends": now.isoformat()})


def prune_periods(now: datetime) -> int:
    """Delete windows and silences that ended long ago; return how many."""
    before = now - timedelta(hours=settings.KEEP_EVENTS_HOURS)
    deleted, _ = QuietPeriod.objects.filter(ends_at__lt=before, stage=QuietStage.OVER).delete()
    return deleted


def _record(
    user: User,
    verb: str,
    period: QuietPeriod,
    request: HttpRequest,
    *,
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
) -> None:
    entity = "silence" if period.purpose == QuietPurpose.SILENCE else "maintenance"
    record(
        user,
        f"{entity}.{verb}",
        (entity, str(period.pk)),
        cluster=period.cluster.slug,
        reason=period.reason,
        before=before,
        after=after,
        request=request,
    )
    slug = period.cluster.slug
    keys = frozenset({f"status:{slug}", f"overview:{slug}"})
    transaction.on_commit(partial(changed.send, sender=QuietPeriod, keys=keys))
