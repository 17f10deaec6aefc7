"""The throttles of a cluster."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.not_read import not_read
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.throttles import throttle_list_context, throttle_listing, throttles_context
from kafkadash.observe.read_hints import read_hint
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def throttles(request: HttpRequest, slug: str) -> HttpResponse:
    """What is in force, and every throttle; the list is filtered, sorted and paged by the address."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.CONFIGS)
    runs, now = bar["standing"].runs, bar["now"]
    context = {
        **bar,
        "tab": "throttles",
        "mirrors": f"throttled-{slug}",
        "live_keys": [f"throttles:{slug}", read_hint(Kind.CONFIGS, slug), read_hint(Kind.REASSIGNMENTS, slug)],
        "not_read": not_read(cluster, runs, (Kind.CONFIGS, Kind.REASSIGNMENTS)),
        "throttles": throttles_context(cluster, now, bar["standing"]),
        **throttle_list_context(cluster, throttle_listing(request.GET), runs, now),
    }
    return render(request, "observe/throttles.html", context)
