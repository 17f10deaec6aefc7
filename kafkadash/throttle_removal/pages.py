"""The page that proposes the removal of a cluster's orphan throttles."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.short_runs.pages import ItemProposal, show_proposal
from kafkadash.throttle_removal.kind import KIND


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def propose(request: HttpRequest, slug: str) -> HttpResponse:
    """All orphan throttles, or with ``?broker=3`` or ``?topic=orders`` those of one broker or topic."""
    cluster = cluster_for(request, slug, PROPOSE)
    broker, topic = (request.GET.get(name, "").replace("\0", "")[:249] for name in ("broker", "topic"))
    wanted, title = {}, "Remove orphan throttles"
    if broker:
        wanted, title = {"resource": "broker", "name": broker}, f"Remove orphan throttles of broker {broker}"
    elif topic:
        wanted, title = {"resource": "topic", "name": topic}, f"Remove orphan throttles of {topic}"
    return show_proposal(request, cluster, ItemProposal(KIND, wanted, title))
