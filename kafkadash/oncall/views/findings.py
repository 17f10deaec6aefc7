"""One finding, open or closed, and who takes care of it."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.clusters.access import ACKNOWLEDGE, VIEW, allowed, cluster_for, needs, roles_text
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.revalidate import revalidated
from kafkadash.oncall import services
from kafkadash.oncall.errors import OnCallErrorCode
from kafkadash.oncall.finding_rows import FindingRow
from kafkadash.oncall.models import Finding
from kafkadash.oncall.queries import finding_context
from kafkadash.oncall.runbooks import runbook
from kafkadash.post_only import post_only


@require_safe
@needs(VIEW)
@revalidated
def finding(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """The permalink of a finding; it goes on saying what was wrong, and from when to when, after it closed."""
    cluster = cluster_for(request, slug, VIEW)
    row = _finding(slug, finding_id)
    shown: FindingRow = finding_context(cluster, row, timezone.now())
    context = {
        **cluster_bar(request, cluster, Kind.METADATA),
        "tab": "",
        "live_keys": [f"status:{slug}"] if row.closed_at is None else [],
        "finding": shown,
        "runbook": runbook(shown.kind),
        "may_acknowledge": allowed(request.user, ACKNOWLEDGE, cluster),
        "roles": roles_text(ACKNOWLEDGE),
        "refused": request.GET.get("refused") == "closed",
    }
    return render(request, "oncall/finding.html", context)


@post_only("oncall:finding")
@needs(ACKNOWLEDGE)
def acknowledge(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """This person takes care of it, also if somebody else did before."""
    return _changed(request, slug, finding_id, take=True)


@post_only("oncall:finding")
@needs(ACKNOWLEDGE)
def release(request: HttpRequest, slug: str, finding_id: str) -> HttpResponse:
    """Nobody takes care of it any more."""
    return _changed(request, slug, finding_id, take=False)


def _changed(request: HttpRequest, slug: str, finding_id: str, *, take: bool) -> HttpResponse:
    cluster_for(request, slug, ACKNOWLEDGE)
    row = _finding(slug, finding_id)
    user = request.user
    assert isinstance(user, User), "needs() lets nobody else in"
    address = redirect("oncall:finding", slug, finding_id)
    try:
        if take:
            services.acknowledge(row, user, request, timezone.now())
        else:
            services.release(row, user, request)
    except services.Refused:
        address["Location"] += "?refused=closed"
    return address


def _finding(slug: str, finding_id: str) -> Finding:
    rows = Finding.objects.select_related("acknowledged_by").filter(opened_at__isnull=False)
    row = rows.filter(cluster__slug=slug, public_id=finding_id).first()
    if row is None:
        raise MissingObject(OnCallErrorCode.FINDING_FORGOTTEN, number=finding_id)
    return row
