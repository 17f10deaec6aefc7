"""Partitions of ``history_rollup``: a table for each day of minutes, month of hours and year of days; retention.

Old history is dropped with its table; deleting seven million rows a day would leave as many dead rows to vacuum.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, models, transaction

from kafkadash.history.models import (
    CatchUp,
    ClusterWorkload,
    DiskForecast,
    PipelineLedger,
    Series,
    VerdictCount,
    VerdictDifference,
    Workload,
)

MINUTE, HOUR, DAY = 60, 3600, 86_400
_WAIT_MS = 2000  # for whoever reads the table now; the next turn tries again


def retention_by_grain() -> Mapping[int, timedelta]:
    """How long the rollups of each grain are kept."""
    return {
        MINUTE: timedelta(days=settings.KEEP_MINUTE_ROLLUPS_DAYS),
        HOUR: timedelta(days=settings.KEEP_HOUR_ROLLUPS_DAYS),
        DAY: timedelta(days=settings.KEEP_DAY_ROLLUPS_DAYS),
    }


def ensure_partitions(places: Iterable[tuple[int, datetime]]) -> None:
    """Makes the partitions in which rows of these grains and times lie, where they are missing."""
    wanted = {
        _partition_name(grain, _partition_begin(grain, at)): (grain, _partition_begin(grain, at))
        for grain, at in places
    }
    with connection.cursor() as cursor:
        cursor.execute("SELECT name FROM unnest(%s::text[]) AS name WHERE to_regclass(name) IS NULL", [list(wanted)])
        missing = [name for (name,) in cursor.fetchall()]
    for name in sorted(missing):
        grain, begin = wanted[name]
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = {_WAIT_MS}")
            cursor.execute(
                f"CREATE TABLE IF NOT EXISTS {name} PARTITION OF history_rollup_{grain}"
                f" FOR VALUES FROM ('{begin.isoformat()}') TO ('{_partition_end(grain, begin).isoformat()}')"
            )


def drop_old(now: datetime) -> int:
    """Drops what is past its keep as a whole; returns how many tables went."""
    dropped = 0
    for grain, keep in retention_by_grain().items():
        for name, begin in _existing_partitions(grain):
            if _partition_end(grain, begin) <= now - keep:
                with transaction.atomic(), connection.cursor() as cursor:
                    cursor.execute(f"SET LOCAL lock_timeout = {_WAIT_MS}")
                    cursor.execute(f"DROP TABLE IF EXISTS {name}")
                dropped += 1
    return dropped


def _existing_partitions(grain: int) -> list[tuple[str, datetime]]:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT c.relname FROM pg_inherits i JOIN pg_class c ON c.oid = i.inhrelid"
            " WHERE i.inhparent = to_regclass(%s) ORDER BY c.relname",
            [f"history_rollup_{grain}"],
        )
        return [(name, datetime.strptime(name[-8:], "%Y%m%d").replace(tzinfo=UTC)) for (name,) in cursor.fetchall()]


def _partition_name(grain: int, begin: datetime) -> str:
    return f"history_rollup_{grain}_{begin:%Y%m%d}"


def _partition_begin(grain: int, at: datetime) -> datetime:
    day = at.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    return day if grain == MINUTE else day.replace(day=1) if grain == HOUR else day.replace(day=1, month=1)


def _partition_end(grain: int, begin: datetime) -> datetime:
    if grain == MINUTE:
        return begin + timedelta(days=1)
    return (begin + timedelta(days=32)).replace(day=1) if grain == HOUR else begin.replace(year=begin.year + 1)


def old_rows(now: datetime) -> Mapping[str, models.QuerySet[Any]]:
    """By the name of what they are. A ledger row outlives its files, or they would be taken in again."""
    ledger = timedelta(days=settings.KEEP_LEDGER_DAYS)
    return {
        "catch_ups": CatchUp.objects.filter(observed_at__lt=now - timedelta(days=1)),
        "forecasts": DiskForecast.objects.filter(observed_at__lt=now - timedelta(days=7)),
        "workloads": Workload.objects.filter(to_at__lt=now - ledger),
        "cluster_workloads": ClusterWorkload.objects.filter(to_at__lt=now - ledger),
        "verdict_counts": VerdictCount.objects.filter(hour__lt=now - ledger),
        "verdict_differences": VerdictDifference.objects.filter(observed_at__lt=now - timedelta(days=7)),
        "ledger": PipelineLedger.objects.filter(ingested_at__lt=now - ledger).exclude(deleted_at=None),
        "series": Series.objects.filter(seen_on__lt=(now - max(retention_by_grain().values())).date()),
    }
