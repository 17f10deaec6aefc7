"""The page of the pipeline: its state, its results, files that were set aside, and differences between verdicts.

There is one page for the whole installation; data of a cluster is shown to users who may view that cluster.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypedDict

from django.db.models import Count, Max, QuerySet
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, needs, visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.core.charts import ChartPanel
from kafkadash.core.messages import CodedMessage, choose_plural
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.history.batch_charts import batch_panels
from kafkadash.history.models import DiskForecast, PipelineLedger, VerdictCount, VerdictDifference, Workload
from kafkadash.history.schedule import PIPELINE
from kafkadash.history.standing import PipelineStatus, pipeline_standing

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
        nouns = ((kind.replace("_", " "), rows) for kind, rows in sorted(self.entry.rows.items()))
        return ", ".join(choose_plural(f"# {noun}|# {noun}s", rows) for noun, rows in nouns)

    @property
    def query(self) -> str:
        """Query of the result; a stream's long id is shortened, and the panel of the pipeline shows it in full."""
        return f"{self.entry.query[:8]}…" if _STREAM.fullmatch(self.entry.query) else self.entry.query

    @property
    def waited_s(self) -> float | None:
        """From the segment's commit to the row's, the whole way."""
        entry = self.entry
        return None if entry.newest_at is None else (entry.ingested_at - entry.newest_at).total_seconds()


@dataclass(frozen=True, slots=True)
class AsideRow:
    file: str
    why: CodedMessage
    at: datetime


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """Comparison counts of one cluster in the last 24 hours."""

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


def _compare_clusters(known: Mapping[int, Cluster], since: datetime) -> list[ComparedRow]:
    """Return the comparison of each cluster, the most differences first."""
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


class PipelineContext(TypedDict):
    now: datetime
    standing: PipelineStatus
    charts: list[ChartPanel]
    batches: list[BatchRow]
    aside: list[AsideRow]
    aside_more: int
    compared: list[ComparedRow]
    judged: int
    differed: int
    differed_rate: str
    differences: list[VerdictDifference]
    workload: dict[str, Any]
    forecasts: dict[str, Any]


def pipeline_context(clusters: Iterable[Cluster], now: datetime) -> PipelineContext:
    """Return the context of the whole installation; per-cluster parts only for ``clusters``. Runs eight queries."""
    known = {cluster.pk: cluster for cluster in clusters}
    status = pipeline_standing(now)
    compared = _compare_clusters(known, now - _COMPARED)
    newest_first = PipelineLedger.objects.order_by("-ingested_at")
    aside = [
        AsideRow(file, why, entry.ingested_at)
        for entry in newest_first.exclude(set_aside=[])[:_LOOKED_THROUGH]
        for file, why in entry.files_set_aside
    ]
    models = Workload.objects.filter(cluster__in=known).aggregate(topics=Count("pk"), newest=Max("to_at"))
    forecasts = DiskForecast.objects.filter(cluster__in=known).aggregate(
        directories=Count("pk"), newest=Max("observed_at")
    )
    judged, differed = sum(row.judged for row in compared), sum(row.differed for row in compared)
    return {
        "now": now,
        "standing": status,
        "charts": batch_panels(now),
        "batches": [BatchRow(entry) for entry in newest_first[:_BATCHES]],
        "aside": aside[:_SET_ASIDE],
        "aside_more": max(0, len(aside) - _SET_ASIDE),
        "compared": compared,
        "judged": judged,
        "differed": differed,
        "differed_rate": rate_words(differed, judged),
        "differences": list(
            VerdictDifference.objects.filter(cluster__in=known, observed_at__gte=now - _COMPARED)
            .select_related("cluster")
            .order_by("-observed_at", "group", "topic", "partition")[:_DIFFERENCES]
        ),
        "workload": models,
        "forecasts": forecasts,
    }


@require_safe
@needs(VIEW, anywhere=True)
@revalidated
@one_moment()
def pipeline(request: HttpRequest) -> HttpResponse:
    """Show whether history is up to date, and if not, the reason."""
    context = {
        "section": "pipeline",
        "live_keys": [PIPELINE],
        **pipeline_context(visible_clusters(request.user), timezone.now()),
    }
    return render(request, "history/pipeline.html", context)
