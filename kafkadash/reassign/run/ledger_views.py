"""The page of a run's throttle ledger."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_safe

from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.live import change_key
from kafkadash.clusters.access import VIEW
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.revalidate import revalidated
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.ledger_page import ledger_context


@require_safe
@needs_on_change(VIEW)
@revalidated
@one_moment()
def run_ledger(request: HttpRequest, number: int) -> HttpResponse:
    """Every entry, filtered, sorted and paged by the address."""
    change = request_for(request, number)
    execution = Execution.objects.filter(request=change).defer("progress", "samples", "report").first()
    if execution is None:
        return redirect("changes:request", number)
    bar = cluster_bar(request, change.cluster, Kind.CONFIGS)
    context = {
        **bar,
        "section": "changes",
        "tab": "reassignments",
        "change": change,
        "live_keys": [change_key(number)],
        **ledger_context(execution, number, request.GET, bar["now"]),
    }
    return render(request, "reassign/run_ledger.html", context)
