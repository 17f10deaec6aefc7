"""The controller quorum of a cluster, and the history of its lag alone for a page that renews it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.clusters.models import Mode
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.controllers import controllers_context, leaders_context, reigns_of
from kafkadash.observe.queries.quorum_lag import lag_context, range_named
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def quorum(request: HttpRequest, slug: str) -> HttpResponse:
    """``?range=15m``, ``1h``, ``6h`` or ``24h`` chooses how far back the lag goes."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.QUORUM)
    now, known, reigns = bar["now"], bar["standing"], reigns_of(cluster)
    context = {
        **bar,
        "tab": "quorum",
        "mirrors": f"nodes-{slug}",
        "live_keys": [f"controllers:{slug}", f"leaders:{slug}"],
        "controllers": controllers_context(cluster, now, known, reigns),
    }
    if cluster.mode != Mode.ZOOKEEPER:
        chosen = range_named(request.GET.get("range"))
        context |= {
            "leaders": leaders_context(cluster, now, known, reigns),
            "lag": lag_context(cluster, now, chosen, known, reigns),
        }
    return render(request, "observe/quorum.html", context)


@require_safe
@needs(VIEW)
@revalidated
def quorum_lag(request: HttpRequest, slug: str) -> HttpResponse:
    """The chart with its table, as the page has it."""
    cluster = cluster_for(request, slug, VIEW)
    chosen = range_named(request.GET.get("range"))
    return render(request, "observe/_quorum_lag.html", lag_context(cluster, timezone.now(), chosen))
