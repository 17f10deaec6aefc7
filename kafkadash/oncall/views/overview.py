"""The overview of a cluster."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.brokers import brokers_context
from kafkadash.observe.queries.collection import collection_context
from kafkadash.observe.queries.group_tally import groups_context
from kafkadash.observe.queries.partitions import partitions_context
from kafkadash.observe.queries.quorum import quorum_context
from kafkadash.observe.revalidate import revalidated
from kafkadash.oncall.queries import overview_context
from kafkadash.oncall.standing import standing

_PARTS = ("overview", "groups", "partitions", "brokers", "quorum", "collection")


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def overview(request: HttpRequest, slug: str) -> HttpResponse:
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    now, known = bar["now"], bar["standing"]
    judged = standing(cluster, now, known)
    context = {
        **bar,
        "title": judged.title,
        "tab": "overview",
        "mirrors": f"figures-{slug}",
        "live_keys": [f"{panel}:{slug}" for panel in _PARTS],
        "overview": overview_context(cluster, now, judged),
        "groups": groups_context(cluster, now, known),
        "partitions": partitions_context(cluster, now, known),
        "collection": collection_context(cluster, now, known),
        "quorum": quorum_context(cluster, now, known),
        "brokers": brokers_context(cluster, now, known),
    }
    return render(request, "oncall/overview.html", context)
