"""The status board, the first page after signing in."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import MANAGE, allowed, signed_in, visible_clusters
from kafkadash.clusters.models import Cluster
from kafkadash.observe.revalidate import revalidated
from kafkadash.oncall.queries import Board, Choice, status_context
from kafkadash.oncall.standing import standings


@require_safe
@signed_in
@revalidated
def board(request: HttpRequest) -> HttpResponse:
    """All clusters this person may view, worst first; ``?state=``, ``?kind=`` and ``?mine=1`` show some of it."""
    now = timezone.now()
    name = request.user.get_username()
    choice = Choice.of(request.GET, name)
    seen = Board(standings(visible_clusters(request.user), now), now, choice, name)
    loud = seen.shown if choice.narrows else seen.loud
    context = {
        "section": "status",
        "now": now,
        "board": seen,
        "nothing_registered": not seen.all and not Cluster.objects.exists(),
        "registers": not seen.all and allowed(request.user, MANAGE, None),
        # Also those that are not shown: one of them may get into the state that was asked for.
        "live_keys": ["board", *(f"status:{s.cluster.slug}" for s in seen.all)],
        "loud": [status_context(s.cluster, now, s, choice) for s in loud],
        "quiet": [] if choice.narrows else [status_context(s.cluster, now, s) for s in seen.quiet],
    }
    return render(request, "oncall/board.html", context)
