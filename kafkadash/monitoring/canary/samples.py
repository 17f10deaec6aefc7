"""Stored samples of the canary."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.canary.rules import CanaryReading, CanarySample
from kafkadash.monitoring.models import CanaryPoint


def load_samples(cluster: Cluster, since: datetime) -> list[CanarySample]:
    """Return the samples since then, oldest first. One query."""
    return _read_samples(CanaryPoint.objects.filter(cluster=cluster, taken_at__gte=since).order_by("taken_at"))


def load_newest(cluster: Cluster, most: int) -> list[CanarySample]:
    """Return the newest samples, oldest first. One query."""
    return _read_samples(CanaryPoint.objects.filter(cluster=cluster).order_by("-taken_at")[:most])[::-1]


def _read_samples(points: QuerySet[Any]) -> list[CanarySample]:
    return [
        CanarySample(at, {int(broker): CanaryReading.from_json(stored) for broker, stored in readings.items()})
        for at, format_, readings in points.values_list("taken_at", "format", "readings")
        if format_ == 1
    ]
