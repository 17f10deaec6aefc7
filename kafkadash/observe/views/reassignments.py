"""Reassignments of a cluster: all that move, one by its id."""

from __future__ import annotations

from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind, ReassignmentSnapshot
from kafkadash.observe.queries.reassignments import ended_rows, page_of_rows, reassignments_context, running_rows
from kafkadash.observe.reassignment_rows import ReassignmentRow
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
def reassignments(request: HttpRequest, slug: str) -> HttpResponse:
    """What moves, and what ended just now; ``?running=all`` or ``?ended=all`` lists all of them, paged."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.REASSIGNMENTS)
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
    bar = cluster_bar(request, cluster, Kind.REASSIGNMENTS)
    context = {
        **bar,
        "tab": "reassignments",
        "live_keys": [f"reassignments:{slug}"] if snapshot.ended_at is None else [],
        "row": ReassignmentRow(snapshot, bar["now"]),
        "freshness": bar["standing"].freshness_of(Kind.REASSIGNMENTS),
    }
    return render(request, "observe/reassignment.html", context)
