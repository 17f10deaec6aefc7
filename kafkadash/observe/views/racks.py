"""The racks of a cluster."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import PROPOSE, VIEW, allowed, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.not_read import not_read
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.racks import rack_listing, racks_context
from kafkadash.observe.read_hints import read_hint
from kafkadash.observe.revalidate import revalidated

_KINDS = (Kind.METADATA, Kind.LOG_DIRS)


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def racks(request: HttpRequest, slug: str) -> HttpResponse:
    """The map of racks and brokers, and the partitions that are not spread as they could be."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    runs = bar["standing"].runs
    context = {
        **bar,
        "tab": "racks",
        "mirrors": f"rack-map-{slug}",
        "live_keys": [read_hint(kind, slug) for kind in _KINDS],
        "not_read": not_read(cluster, runs, _KINDS),
        **racks_context(cluster, rack_listing(request.GET), runs, bar["now"]),
    }
    found = context["judge"].known and context["number"] and not cluster.read_only
    context["may_repair"] = found and allowed(request.user, PROPOSE, cluster)
    return render(request, "observe/racks.html", context)
