"""How many partitions of a cluster are under and at min-ISR, as it was seen last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Q, Sum

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Kind, TopicState
from kafkadash.observe.standing import Freshness, Standing, standing


@dataclass(frozen=True, slots=True)
class MinIsr:
    """``under`` and ``at`` are None where min.insync.replicas of a topic was not read, or nothing was."""

    under: int | None
    at: int | None
    freshness: Freshness

    @property
    def state(self) -> str:
        if self.under is None or self.freshness.stale:
            return "unknown"
        return "critical" if self.under else "warning" if self.at else "ok"


def min_isr_of(cluster: Cluster, now: datetime, known: Standing | None = None) -> MinIsr:
    """Of all topics, moved or not. Two queries, one where ``known`` was read already."""
    freshness = (known or standing(cluster, now)).freshness_of(Kind.METADATA)
    sums = TopicState.objects.filter(cluster=cluster).aggregate(
        under=Sum("under_min_isr", default=0),
        at=Sum("at_min_isr", default=0),
        unjudged=Count("pk", filter=Q(under_min_isr=None)),
    )
    if freshness.taken_at is None or sums["unjudged"]:
        return MinIsr(None, None, freshness)
    return MinIsr(sums["under"], sums["at"], freshness)
