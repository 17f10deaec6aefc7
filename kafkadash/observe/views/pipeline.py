"""The pipeline: one page for the whole installation; what belongs to clusters is shown of those one may view."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import VIEW, needs, visible_clusters
from kafkadash.observe.history.turns import PIPELINE
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.queries.pipeline import pipeline_context
from kafkadash.observe.revalidate import revalidated


@require_safe
@needs(VIEW, anywhere=True)
@revalidated
@one_moment()
def pipeline(request: HttpRequest) -> HttpResponse:
    """Whether history is up to date, and if not, what keeps it."""
    context = {
        "section": "pipeline",
        "live_keys": [PIPELINE],
        **pipeline_context(visible_clusters(request.user), timezone.now()),
    }
    return render(request, "observe/pipeline.html", context)
