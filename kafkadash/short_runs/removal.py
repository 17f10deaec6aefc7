"""Short runs of a cluster that is to be removed, and items of runs that ended long ago."""

from __future__ import annotations

from datetime import timedelta

from django.conf import settings
from django.db.models import Count, F, Q
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import RemovalBlocked
from kafkadash.core.messages import message_text
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.models import ShortItem, ShortRun
from kafkadash.short_runs.state import IN_FLIGHT

SILENT_READINGS = 3
"""Failed readings in a row after which a run no longer keeps its cluster from being removed."""
FORGOTTEN_AT_ONCE = 20_000


def left_behind(cluster: Cluster) -> RemovalBlocked:
    """Return the items whose result nobody would learn.

    A run under way has to end first, unless its cluster is silent.
    """
    flying = Count("rows", filter=Q(rows__state__in=[state.value for state in IN_FLIGHT]))
    runs = ShortRun.objects.filter(cluster=cluster, started_at__isnull=False, ended_at=None).annotate(flying=flying)
    refused, left = "", []
    for number, failures, items in runs.order_by("pk").values_list("request", "failures", "flying"):
        if failures < SILENT_READINGS:
            refused = message_text(ShortRunErrorCode.RUN_STILL_HERE, number=number)
        elif items:
            left.append(message_text(ShortRunErrorCode.ITEMS_IN_FLIGHT, number=number, items=items))
    return RemovalBlocked(refused, tuple(left))


def stop_runs(cluster: Cluster) -> None:
    """Steps that are being taken find their lease gone."""
    ShortRun.objects.filter(cluster=cluster).update(epoch=F("epoch") + 1, lease_until=None)


def forget_old_items() -> int:
    """Deletes items of runs that ended longer ago than ``settings.KEEP_MOVES_HOURS``; returns how many."""
    too_old = Now() - timedelta(hours=settings.KEEP_MOVES_HOURS)
    old = ShortItem.objects.filter(run__ended_at__lt=too_old).values_list("pk", flat=True)
    deleted, _ = ShortItem.objects.filter(pk__in=list(old[:FORGOTTEN_AT_ONCE])).delete()
    return deleted
