"""Pages of one cluster: overview, reassignments, one reassignment."""

from __future__ import annotations

from typing import Any

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs, signed_in, visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Kind, ReassignmentSnapshot
from kafkadash.observe.queries import (
    brokers_context,
    collection_context,
    ended_rows,
    overview_context,
    page_of_rows,
    partitions_context,
    quorum_context,
    reassignments_context,
    running_rows,
)
from kafkadash.observe.reassignment_rows import ReassignmentRow
from kafkadash.observe.revalidate import revalidated
from kafkadash.observe.standing import standing, standings


@require_safe
@needs(VIEW)
@revalidated
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    bar = _cluster_bar(request, cluster, Kind.METADATA)
    now = bar["now"]
    context = {
        **bar,
        "tab": "overview",
        "mirrors": f"figures-{slug}",
        "live_keys": [f"{panel}:{slug}" for panel in ("overview", "partitions", "brokers", "quorum", "collection")],
        "overview": overview_context(cluster, now, bar["standing"]),
        "partitions": partitions_context(cluster, now),
        "collection": collection_context(cluster, now),
        "quorum": quorum_context(cluster, now),
        "brokers": brokers_context(cluster, now),
    }
    return render(request, "observe/overview.html", context)


@require_safe
@needs(VIEW)
@revalidated
def reassignments(request: HttpRequest, slug: str) -> HttpResponse:
    """What moves, and what ended just now; ``?running=all`` or ``?ended=all`` lists all of them, paged."""
    cluster = cluster_for(request, slug, VIEW)
    bar = _cluster_bar(request, cluster, Kind.REASSIGNMENTS)
    lists = {"running": running_rows, "ended": ended_rows}
    show = next((name for name in lists if request.GET.get(name) == "all"), "")
    context = {
        **bar,
        "tab": "reassignments",
        "mirrors": f"moves-{slug}",
        "live_keys": [f"reassignments:{slug}"],
        "reassignments": reassignments_context(cluster, bar["now"]),
        "show": show,
    }
    if show:
        page, rows = page_of_rows(lists[show](cluster), request.GET.get("page"), bar["now"])
        context |= {"page": page, "rows": rows}
    return render(request, "observe/reassignments.html", context)


@require_safe
@needs(VIEW)
@revalidated
def reassignment(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One reassignment, running or over (KIP-240's describe). An id never shows the data of a later one."""
    cluster = cluster_for(request, slug, VIEW)
    snapshot = ReassignmentSnapshot.objects.filter(cluster=cluster, public_id=public_id).first()
    if snapshot is None:
        raise Http404(f"{cluster.name} has no reassignment {public_id}, or it ended so long ago that it is forgotten.")
    bar = _cluster_bar(request, cluster, Kind.REASSIGNMENTS)
    context = {
        **bar,
        "tab": "reassignments",
        "live_keys": [f"reassignments:{slug}"] if snapshot.ended_at is None else [],
        "row": ReassignmentRow(snapshot, bar["now"]),
        "freshness": bar["standing"].freshness_of(Kind.REASSIGNMENTS),
    }
    return render(request, "observe/reassignment.html", context)


@require_safe
@signed_in
def switcher(request: HttpRequest) -> HttpResponse:
    """The menu of clusters with their states now; fetched when it is opened, because a page may stand open for days."""
    seen = standings(visible_clusters(request.user), timezone.now())
    return render(request, "observe/_switcher.html", {"standings": seen, "current": request.GET.get("current", "")})


def _cluster_bar(request: HttpRequest, cluster: Cluster, kind: Kind) -> dict[str, Any]:
    """The bar above every page of a cluster: its name, the others one may go to, the age of the page's data."""
    now = timezone.now()
    own = standing(cluster, now)
    return {
        "section": "status",
        "cluster": cluster,
        "now": now,
        "standing": own,
        "others": visible_clusters(request.user).only("name", "slug"),
        "bar_freshness": own.freshness_of(kind),
    }
