"""The page that proposes to cancel reassignments which kafkadash did not start."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_http_methods

from kafkadash.clusters.access import PROPOSE, cluster_for, needs
from kafkadash.move_cancels.kind import KIND
from kafkadash.short_runs.pages import ItemProposal, show_proposal


@require_http_methods(["GET", "HEAD", "POST"])
@needs(PROPOSE)
def propose(request: HttpRequest, slug: str) -> HttpResponse:
    """All reassignments of others, with ``?stuck=1`` those that can never end, with ``?id=r-…`` a single one."""
    cluster = cluster_for(request, slug, PROPOSE)
    public_id = request.GET.get("id", "").replace("\0", "")[:32]
    if public_id:
        return show_proposal(request, cluster, ItemProposal(KIND, {"id": public_id}, "Cancel a reassignment"))
    if request.GET.get("stuck"):
        return show_proposal(request, cluster, ItemProposal(KIND, {"stuck": True}, "Cancel stuck reassignments"))
    return show_proposal(request, cluster, ItemProposal(KIND, {}, "Cancel reassignments of others"))
