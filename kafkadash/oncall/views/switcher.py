"""The menu of clusters in the cluster bar."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import signed_in, visible_clusters
from kafkadash.oncall.standing import standings


@require_safe
@signed_in
def switcher(request: HttpRequest) -> HttpResponse:
    """The menu of clusters with their states now; fetched when it is opened, because a page may stand open for days."""
    seen = standings(visible_clusters(request.user), timezone.now())
    return render(request, "oncall/_switcher.html", {"standings": seen, "current": request.GET.get("current", "")})
