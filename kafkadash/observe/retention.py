"""Forgetting what is older than its keep, in short transactions."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models

from kafkadash.observe.models import Collection, Outcome, QuorumSnapshot, ReassignmentSnapshot

_BATCH = 2000


def prune(now: datetime) -> Mapping[str, int]:
    """Deletes what is past its keep and returns how many rows of each model went."""
    return {
        "collections": _delete(Collection.objects.filter(started_at__lt=_before(now, settings.KEEP_COLLECTIONS_HOURS))),
        "quorum_snapshots": _delete(
            QuorumSnapshot.objects.filter(taken_at__lt=_before(now, settings.KEEP_QUORUM_HOURS))
        ),
        "reassignments": _delete(
            ReassignmentSnapshot.objects.exclude(outcome=Outcome.RUNNING).filter(
                ended_at__lt=_before(now, settings.KEEP_ENDED_REASSIGNMENTS_HOURS)
            )
        ),
    }


def _before(now: datetime, hours: float) -> datetime:
    return now - timedelta(hours=hours)


def _delete(rows: models.QuerySet[Any]) -> int:
    """Deletes in batches, each its own statement, so that no transaction is long."""
    total = 0
    while ids := list(rows.order_by("pk").values_list("pk", flat=True)[:_BATCH]):
        deleted, _ = rows.model._default_manager.filter(pk__in=ids).delete()
        total += deleted
    return total
