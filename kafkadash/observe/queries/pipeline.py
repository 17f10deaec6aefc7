"""The page of the pipeline: how it stands, what it handed back, what was set aside, and where verdicts differ."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Max, QuerySet

from kafkadash.clusters.models import Cluster
from kafkadash.domain.wording import count
from kafkadash.observe.history.standing import pipeline_standing
from kafkadash.observe.models import DiskForecast, PipelineLedger, VerdictCount, VerdictDifference, Workload

_BATCHES, _SET_ASIDE, _DIFFERENCES = 12, 20, 10
_COMPARED = timedelta(hours=24)
_LOOKED_THROUGH = 50
_STREAM = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


@dataclass(frozen=True, slots=True)
class BatchRow:
    entry: PipelineLedger

    @property
    def rows(self) -> int:
        return sum(self.entry.rows.values())

    @property
    def kinds(self) -> str:
        return ", ".join(count(rows, kind.replace("_", " ")) for kind, rows in sorted(self.entry.rows.items()))

    @property
    def query(self) -> str:
        """That of the stream is a long id, of which the panel of the pipeline has the rest."""
        return f"{self.entry.query[:8]}…" if _STREAM.fullmatch(self.entry.query) else self.entry.query

    @property
    def waited_s(self) -> float | None:
        """From the segment's commit to the row's, the whole way."""
        entry = self.entry
        return None if entry.newest_at is None else (entry.ingested_at - entry.newest_at).total_seconds()


@dataclass(frozen=True, slots=True)
class AsideRow:
    file: str
    why: str
    at: datetime


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """Of one cluster, in the last 24 hours."""

    cluster: Cluster
    judged: int
    differed: int

    @property
    def rate(self) -> str:
        return rate_words(self.differed, self.judged)


def rate_words(differed: int, judged: int) -> str:
    """Percent with two decimals; what is little is not shown as nothing, and what is nearly all not as all."""
    percent = 100 * differed / judged if judged else 0.0
    if differed and percent < 0.01:
        return "less than 0.01 %"
    return "more than 99.99 %" if differed < judged and percent > 99.99 else f"{percent:.2f} %"


def _compared(known: Mapping[int, Cluster], since: datetime) -> list[ComparedRow]:
    """What differs most first."""
    sums: dict[int, list[int]] = {}
    for cluster, judged, differed in hourly_counts().filter(cluster__in=known, hour__gte=since):
        of_cluster = sums.setdefault(cluster, [0, 0])
        of_cluster[0] += judged
        of_cluster[1] += differed
    compared = [ComparedRow(known[cluster], *of_cluster) for cluster, of_cluster in sums.items()]
    return sorted(compared, key=lambda row: (-row.differed, row.cluster.name))


def hourly_counts() -> QuerySet[VerdictCount, tuple[int, int, int]]:
    """(cluster, judged, differed) of each cluster and hour, as the query counted that judged most in it: one that
    began anew judges the same once more, and one that was broken off only a part of it.
    """
    rows = VerdictCount.objects.order_by("cluster_id", "hour", "-judged", "-pk").distinct("cluster_id", "hour")
    return rows.values_list("cluster_id", "judged", "differed")


def pipeline_context(clusters: Iterable[Cluster], now: datetime) -> dict[str, Any]:
    """Of the installation; what belongs to a cluster only for these. Seven queries."""
    known = {cluster.pk: cluster for cluster in clusters}
    standing = pipeline_standing(now)
    compared = _compared(known, now - _COMPARED)
    newest_first = PipelineLedger.objects.order_by("-ingested_at")
    aside = [
        AsideRow(str(each.get("file", "")), str(each.get("why", "")), entry.ingested_at)
        for entry in newest_first.exclude(set_aside=[])[:_LOOKED_THROUGH]
        for each in entry.set_aside
    ]
    models = Workload.objects.filter(cluster__in=known).aggregate(topics=Count("pk"), newest=Max("to_at"))
    forecasts = DiskForecast.objects.filter(cluster__in=known).aggregate(
        directories=Count("pk"), newest=Max("observed_at")
    )
    judged, differed = sum(row.judged for row in compared), sum(row.differed for row in compared)
    return {
        "now": now,
        "standing": standing,
        "batches": [BatchRow(entry) for entry in newest_first[:_BATCHES]],
        "aside": aside[:_SET_ASIDE],
        "aside_more": max(0, len(aside) - _SET_ASIDE),
        "compared": compared,
        "judged": judged,
        "differed": differed,
        "differed_words": count(differed, "judgement"),
        "differed_rate": rate_words(differed, judged),
        "differences": list(
            VerdictDifference.objects.filter(cluster__in=known, observed_at__gte=now - _COMPARED)
            .select_related("cluster")
            .order_by("-observed_at", "group", "topic", "partition")[:_DIFFERENCES]
        ),
        "workload": models,
        "forecasts": forecasts,
    }
