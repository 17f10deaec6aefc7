"""Runbooks: what a kind of finding means and what to do."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.clusters.access import signed_in, visible_clusters
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.oncall.errors import OnCallErrorCode
from kafkadash.oncall.models import Finding
from kafkadash.oncall.runbooks import all_runbooks
from kafkadash.oncall.runbooks import runbook as read


@require_safe
@signed_in
def runbooks(request: HttpRequest) -> HttpResponse:
    """All of them, most urgent first, with those that are needed now marked."""
    open_now = Finding.objects.filter(
        cluster__in=visible_clusters(request.user), closed_at=None, opened_at__isnull=False
    ).values_list("kind", flat=True)
    return render(
        request, "oncall/runbooks.html", {"section": "status", "runbooks": all_runbooks(), "needed": set(open_now)}
    )


@require_safe
@signed_in
def runbook(request: HttpRequest, kind: str) -> HttpResponse:
    if kind not in list(FindingKind):
        raise MissingObject(OnCallErrorCode.NO_SUCH_RUNBOOK, kind=kind)
    return render(request, "oncall/runbook.html", {"section": "status", "runbook": read(FindingKind(kind))})
