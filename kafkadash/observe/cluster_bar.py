"""The bar above every page of a cluster: its name, the others one may go to, its pages, the age of the page's data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.http import HttpRequest
from django.utils import timezone

from kafkadash.clusters.access import visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Kind
from kafkadash.observe.standing import standing


@dataclass(frozen=True, slots=True)
class Tab:
    """A page of every cluster. ``name`` is what the page's view passes as ``tab``; ``url`` takes the slug."""

    name: str
    label: str
    url: str


TABS = (
    Tab("overview", "Overview", "oncall:overview"),
    Tab("brokers", "Brokers", "observe:brokers"),
    Tab("topics", "Topics", "observe:topics"),
    Tab("racks", "Racks", "observe:racks"),
    Tab("reassignments", "Reassignments", "observe:reassignments"),
    Tab("throttles", "Throttles", "observe:throttles"),
    Tab("quorum", "Quorum", "observe:quorum"),
    Tab("groups", "Groups", "observe:groups"),
    Tab("drill", "Drill", "oncall:drill"),
)


def cluster_bar(request: HttpRequest, cluster: Cluster, kind: Kind) -> dict[str, Any]:
    """Context of the bar; ``kind`` is the kind of facts whose age the bar shows."""
    now = timezone.now()
    own = standing(cluster, now)
    return {
        "section": "status",
        "cluster": cluster,
        "now": now,
        "standing": own,
        "tabs": TABS,
        "others": visible_clusters(request.user).only("name", "slug"),
        "bar_freshness": own.freshness_of(kind),
    }
