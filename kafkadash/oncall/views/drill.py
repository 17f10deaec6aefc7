"""The drill: what happens if brokers or a rack die now, and which single loss hurts most."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, cluster_for, needs
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.revalidate import revalidated
from kafkadash.oncall.drills import drill_context


@require_safe
@needs(VIEW)
@revalidated
@one_moment()
def drill(request: HttpRequest, slug: str) -> HttpResponse:
    """``?broker=3``, ``?brokers=1,2`` or ``?rack=b``: what dies. Nothing is asked of the cluster."""
    cluster = cluster_for(request, slug, VIEW)
    bar = cluster_bar(request, cluster, Kind.METADATA)
    context = {**bar, "tab": "drill", **drill_context(bar["standing"], request.GET)}
    return render(request, "oncall/drill.html", context)
