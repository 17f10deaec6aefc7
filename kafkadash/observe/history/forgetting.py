"""Forgetting history that is past its keep."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import models

from kafkadash.observe.history import partitions
from kafkadash.observe.models import (
    CatchUp,
    DiskForecast,
    PipelineLedger,
    Series,
    VerdictCount,
    VerdictDifference,
    Workload,
)


def old_rows(now: datetime) -> Mapping[str, models.QuerySet[Any]]:
    """By the name of what they are. A ledger row outlives its files, or they would be taken in again."""
    ledger = timedelta(days=settings.KEEP_LEDGER_DAYS)
    return {
        "catch_ups": CatchUp.objects.filter(observed_at__lt=now - timedelta(days=1)),
        "forecasts": DiskForecast.objects.filter(observed_at__lt=now - timedelta(days=7)),
        "workloads": Workload.objects.filter(to_at__lt=now - ledger),
        "verdict_counts": VerdictCount.objects.filter(hour__lt=now - ledger),
        "verdict_differences": VerdictDifference.objects.filter(observed_at__lt=now - timedelta(days=7)),
        "ledger": PipelineLedger.objects.filter(ingested_at__lt=now - ledger).exclude(deleted_at=None),
        "series": Series.objects.filter(seen_on__lt=(now - max(partitions.keeps().values())).date()),
    }
