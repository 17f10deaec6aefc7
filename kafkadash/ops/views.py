"""``/livez`` and ``/readyz``: public, so that a supervisor needs no account; states, ages, and no names."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from kafkadash.clusters.access import public
from kafkadash.ops import health


@require_safe
@public
@never_cache
def livez(_request: HttpRequest) -> HttpResponse:
    """200 as long as this process answers at all; asks nobody else."""
    return HttpResponse("ok\n", content_type="text/plain; charset=utf-8")


@require_safe
@public
@never_cache
def readyz(_request: HttpRequest) -> HttpResponse:
    """503 when the database, Redis or the tick is gone."""
    found = health.recent_checks()
    return JsonResponse(health.as_json(found), status=200 if health.ready(found) else 503)
