"""Reassignments of a cluster: all that move, one by its id."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import Kind, ReassignmentSnapshot
from kafkadash.observe.not_read import not_read
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.reassignments import (
    ended_rows,
    page_of_snapshots,
    reassignment_listing,
    reassignment_rows,
    reassignments_context,
    running_rows,
)
from kafkadash.observe.read_hints import read_hint
from kafkadash.observe.reassignment_rows import OUTCOME_WORDS, ReassignmentRow
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def reassignments(request: HttpRequest, slug: str) -> HttpResponse:
    """What moves, and what ended just now; ``?running=all`` or ``?ended=all`` lists all of them, paged."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.REASSIGNMENTS)
    lists = {"running": running_rows, "ended": ended_rows}
    listing = reassignment_listing(request.GET)
    show = next((name for name in lists if listing.values[name]), "")
    page = page_of_snapshots(lists[show](cluster), listing) if show else None
    listed = list(page.object_list) if page is not None else []
    shown = reassignments_context(cluster, bar["now"], bar["standing"], listed)
    context = {
        **bar,
        "tab": "reassignments",
        "mirrors": f"moves-{slug}",
        "live_keys": [f"reassignments:{slug}"] + ([read_hint(Kind.REASSIGNMENTS, slug)] if show else []),
        "not_read": not_read(cluster, bar["standing"].runs, (Kind.REASSIGNMENTS, Kind.CONFIGS)),
        "reassignments": shown,
        "listing": listing,
        "outcomes": OUTCOME_WORDS,
        "show": show,
    }
    if page is not None:
        rows = [ReassignmentRow(snapshot, bar["now"], shown["throttles"]) for snapshot in listed]
        context |= {"page": page, "rows": rows}
    return render(request, "observe/reassignments.html", context)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def reassignment(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One reassignment, running or over (KIP-240's describe). An id never shows the data of a later one."""
    cluster = cluster_for(request, slug, VIEW)
    snapshot = ReassignmentSnapshot.objects.filter(cluster=cluster, public_id=public_id).first()
    if snapshot is None:
        raise MissingObject(CollectionErrorCode.NO_SUCH_REASSIGNMENT, cluster=cluster.name, asked=public_id)
    bar = cluster_bar(request, cluster, Kind.REASSIGNMENTS)
    context = {
        **bar,
        "tab": "reassignments",
        "live_keys": [f"reassignments:{slug}"] if snapshot.ended_at is None else [],
        "row": reassignment_rows(cluster, [snapshot], bar["now"], bar["standing"])[0],
        "freshness": bar["standing"].freshness_of(Kind.REASSIGNMENTS),
    }
    return render(request, "observe/reassignment.html", context)
