"""The page for scrapers, in Prometheus' text format or in that of OpenMetrics, as the request prefers."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe
from prometheus_client.exposition import CONTENT_TYPE_PLAIN_0_0_4
from prometheus_client.openmetrics.exposition import CONTENT_TYPE_LATEST

from kafkadash.core.rows import one_moment, without_search_for_cycles
from kafkadash.metrics.access import scrapers_only
from kafkadash.metrics.collector import StoredMetrics
from kafkadash.metrics.exposition import write_openmetrics, write_plain

_OPENMETRICS = ("application", "openmetrics-text")
_VERSION = "1.0.0"
_PLAIN = frozenset({("text", "plain"), ("text", "*"), ("*", "*")})


@require_safe
@never_cache
@scrapers_only
@one_moment()
@without_search_for_cycles()
def metrics(request: HttpRequest) -> HttpResponse:
    families = StoredMetrics(timezone.now()).collect()
    if prefers_openmetrics(request):
        return HttpResponse(write_openmetrics(families), content_type=CONTENT_TYPE_LATEST)
    return HttpResponse(write_plain(families), content_type=CONTENT_TYPE_PLAIN_0_0_4)


def prefers_openmetrics(request: HttpRequest) -> bool:
    """Return whether OpenMetrics 1.0 comes before plain text in the Accept header; False where neither is named."""
    for accepted in request.accepted_types:
        kind = (accepted.main_type, accepted.sub_type)
        if kind == _OPENMETRICS and str(accepted.params.get("version", _VERSION)) == _VERSION:
            return True
        if kind in _PLAIN:
            return False
    return False
