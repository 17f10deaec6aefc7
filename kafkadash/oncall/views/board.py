"""The status board, the first page after signing in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import MANAGE, allowed, signed_in, visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.domain.status import State
from kafkadash.observe.revalidate import revalidated
from kafkadash.oncall.queries import Board, status_context
from kafkadash.oncall.standing import standings


@require_safe
@signed_in
@revalidated
def board(request: HttpRequest) -> HttpResponse:
    """All clusters this person may view, worst first; ``?state=`` shows those in one state."""
    now = timezone.now()
    wanted = request.GET.get("state", "")
    seen = Board(standings(visible_clusters(request.user), now), now, State(wanted) if wanted in list(State) else None)
    context = {
        "section": "status",
        "now": now,
        "board": seen,
        "nothing_registered": not seen.all and not Cluster.objects.exists(),
        "registers": not seen.all and allowed(request.user, MANAGE, None),
        # Also those that are not shown: one of them may get into the state that was asked for.
        "live_keys": ["board", *(f"status:{s.cluster.slug}" for s in seen.all)],
        "loud": [status_context(s.cluster, now, s) for s in seen.loud],
        "quiet": [status_context(s.cluster, now, s) for s in seen.quiet],
    }
    return render(request, "oncall/board.html", context)
