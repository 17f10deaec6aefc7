"""The bar above every page of a cluster: its name, the other clusters, tabs, and the age of the data of the page.

``read_hint`` is the live key that says that facts of one kind were read again; pages with more rows than are pushed
watch it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, TypedDict

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring.freshness import CollectionFreshness, FactFreshness, load_standing
from kafkadash.monitoring.models import CollectorKind


@dataclass(frozen=True, slots=True)
class ClusterTab:
    """A page of every cluster. ``name`` is what the page's view passes as ``tab``; ``url`` takes the slug."""

    name: str
    label: str
    url: str


TABS = (
    ClusterTab("overview", "Overview", "findings:overview"),
    ClusterTab("brokers", "Brokers", "monitoring:brokers"),
    ClusterTab("topics", "Topics", "monitoring:topics"),
    ClusterTab("racks", "Racks", "monitoring:racks"),
    ClusterTab("reassignments", "Reassignments", "monitoring:reassignments"),
    ClusterTab("throttles", "Throttles", "monitoring:throttles"),
    ClusterTab("quorum", "Quorum", "monitoring:quorum"),
    ClusterTab("groups", "Groups", "monitoring:groups"),
    ClusterTab("timeline", "Timeline", "timeline:timeline"),
    ClusterTab("drill", "Simulation", "findings:drill"),
)


class ClusterBarContext(TypedDict):
    section: str
    cluster: Cluster
    now: datetime
    standing: CollectionFreshness
    tabs: tuple[ClusterTab, ...]
    bar_freshness: FactFreshness


def cluster_bar(cluster: Cluster, kind: CollectorKind) -> ClusterBarContext:
    """Context of the bar; ``kind`` is the kind of facts whose age the bar shows."""
    now = timezone.now()
    own = load_standing(cluster, now)
    return {
        "section": "status",
        "cluster": cluster,
        "now": now,
        "standing": own,
        "tabs": TABS,
        "bar_freshness": own.freshness_of(kind),
    }


def render_with_bar(
    request: HttpRequest,
    cluster: Cluster,
    kind: CollectorKind,
    template: str,
    told: Mapping[str, Any],
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    """Render a page below the bar; ``freshness`` is the bar's, unless the page tells another."""
    bar = cluster_bar(cluster, kind)
    return render(request, template, {**bar, "freshness": bar["bar_freshness"], **told}, status=status)


# Name of the hint → kind, for all kinds.
READ_HINTS: Mapping[str, str] = {f"{kind.replace('_', '-')}-read": kind for kind in CollectorKind.values}


def read_hint(kind: str, slug: str) -> str:
    """The key that a page of this cluster lists to be told to fetch itself again: ``metadata-read:demo``."""
    return f"{kind.replace('_', '-')}-read:{slug}"
