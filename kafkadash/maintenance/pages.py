"""The page of a cluster's maintenance windows and silences: those in force, planned and over, and their forms."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from http import HTTPStatus

from django.contrib import messages
from django.db.models import Case, IntegerField, When
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.utils.text import capfirst
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.clusters.access import ACKNOWLEDGE, VIEW, cluster_for, is_allowed, needs, roles_text
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import choose_plural
from kafkadash.core.middleware import post_only
from kafkadash.core.revalidation import revalidated
from kafkadash.maintenance.errors import MaintenanceErrorCode
from kafkadash.maintenance.forms import WHOLE_CLUSTER, SilenceForm, WindowForm
from kafkadash.maintenance.models import QuietPeriod, QuietStage
from kafkadash.maintenance.services import MaintenanceRefused, add_period, end_period
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.notifications.kinds import known_kinds

MOST_LISTED = 200
MOST_DIGITS = 18
_FIRST_LENGTH = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class PeriodLine:
    """Window or silence on the page."""

    period: QuietPeriod
    stage: QuietStage

    @property
    def mark(self) -> str:
        """Return the state of the mark: in force or planned; '' for one that is over."""
        return {QuietStage.BEGUN: "maintenance", QuietStage.PLANNED: "unknown"}.get(self.stage, "")

    @property
    def what(self) -> str:
        own = self.period
        if not own.is_silence:
            return capfirst(own.about) or "Whole cluster"
        known = known_kinds().get(own.kind)
        name = known.name if known is not None else own.kind
        return ": ".join(part for part in (name or "All kinds", own.subject) if part)


@require_safe
@needs(VIEW)
@revalidated
def maintenance(request: HttpRequest, slug: str) -> HttpResponse:
    """List windows and silences; ``?scope=broker:3``, ``?kind=`` and ``?subject=`` fill the forms."""
    cluster = cluster_for(request, slug, VIEW)
    now = timezone.now()
    end = f"{now + _FIRST_LENGTH:%Y-%m-%dT%H:%M}"
    scope = request.GET.get("scope", WHOLE_CLUSTER)
    kind, subject = request.GET.get("kind", ""), request.GET.get("subject", "")
    window = WindowForm(cluster=cluster, now=now, initial={"scope": scope, "ends": end})
    silence = SilenceForm(cluster=cluster, now=now, initial={"kind": kind, "subject": subject, "ends": end})
    return _render_page(request, cluster, now, window, silence)


@post_only("maintenance:maintenance")
@needs(ACKNOWLEDGE)
def plan_window(request: HttpRequest, slug: str) -> HttpResponse:
    """Store a maintenance window."""
    return _add_period(request, slug, WindowForm)


@post_only("maintenance:maintenance")
@needs(ACKNOWLEDGE)
def add_silence(request: HttpRequest, slug: str) -> HttpResponse:
    """Store a silence."""
    return _add_period(request, slug, SilenceForm)


@post_only("maintenance:maintenance")
@needs(ACKNOWLEDGE)
def end(request: HttpRequest, slug: str) -> HttpResponse:
    """End a window or a silence, or cancel one that has not begun."""
    cluster = cluster_for(request, slug, ACKNOWLEDGE)
    typed = request.POST.get("number", "")
    number = int(typed) if typed.isascii() and typed.isdecimal() and len(typed) <= MOST_DIGITS else 0
    period = QuietPeriod.objects.filter(cluster=cluster, pk=number).first()
    if period is None:
        raise MissingObject(MaintenanceErrorCode.PERIOD_UNKNOWN, cluster=cluster.name, number=typed[:MOST_DIGITS])
    try:
        end_period(period, _actor(request), request, timezone.now())
    except MaintenanceRefused as refused:
        now = timezone.now()
        forms = WindowForm(cluster=cluster, now=now), SilenceForm(cluster=cluster, now=now)
        return _render_page(request, cluster, now, *forms, refused=refused, status=HTTPStatus.CONFLICT)
    messages.success(request, f"{period.get_purpose_display()} {number} ended.")
    return redirect("maintenance:maintenance", slug)


def _add_period(request: HttpRequest, slug: str, form_class: type[WindowForm] | type[SilenceForm]) -> HttpResponse:
    cluster = cluster_for(request, slug, ACKNOWLEDGE)
    now = timezone.now()
    form = form_class(request.POST, cluster=cluster, now=now)
    if form.is_valid():
        try:
            period = add_period(form.build_period(), _actor(request), request)
        except MaintenanceRefused as refused:
            form.show_refusal(refused)
        else:
            messages.success(request, f"{period.get_purpose_display()} {period.pk} added.")
            return redirect("maintenance:maintenance", slug)
    window = form if isinstance(form, WindowForm) else WindowForm(cluster=cluster, now=now)
    silence = form if isinstance(form, SilenceForm) else SilenceForm(cluster=cluster, now=now)
    return _render_page(request, cluster, now, window, silence, status=HTTPStatus.BAD_REQUEST)


def _actor(request: HttpRequest) -> User:
    user = request.user
    assert isinstance(user, User), "needs() lets nobody else in"
    return user


def _render_page(
    request: HttpRequest,
    cluster: Cluster,
    now: datetime,
    window: WindowForm,
    silence: SilenceForm,
    *,
    refused: MaintenanceRefused | None = None,
    status: HTTPStatus = HTTPStatus.OK,
) -> HttpResponse:
    # Those in force or planned first: however many are over, none of them is left out.
    over = Case(When(ends_at__gt=now, then=0), default=1, output_field=IntegerField())
    rows = QuietPeriod.objects.filter(cluster=cluster).order_by(over, "-begins_at", "-pk")[: MOST_LISTED + 1]
    lines = [PeriodLine(period, period.stage_at(now)) for period in rows]
    order = {QuietStage.BEGUN: 0, QuietStage.PLANNED: 1, QuietStage.OVER: 2}
    context = {
        **cluster_bar(cluster, CollectorKind.METADATA),
        "tab": "",
        "live_keys": [f"status:{cluster.slug}"],
        "title": _write_title(cluster, lines),
        "lines": sorted(lines[:MOST_LISTED], key=lambda line: order[line.stage]),
        "more": len(lines) > MOST_LISTED,
        "most": MOST_LISTED,
        "window": window,
        "silence": silence,
        "may_plan": is_allowed(request.user, ACKNOWLEDGE, cluster),
        "roles": roles_text(ACKNOWLEDGE),
        "refused": refused,
    }
    return render(request, "maintenance/maintenance.html", context, status=status)


def _write_title(cluster: Cluster, lines: list[PeriodLine]) -> str:
    """Return the title: the window that ends last, and how many more are in force."""
    own = [line.period for line in lines if line.stage is QuietStage.BEGUN]
    windows = [period for period in own if not period.is_silence]
    silences = choose_plural("# silence|# silences", len(own) - len(windows))
    if windows:
        last = max(windows, key=lambda period: period.ends_at)
        about = f"{last.about} of {cluster.name}" if last.about else cluster.name
        more = f", {len(windows) - 1} more" if len(windows) > 1 else ""
        return f"Maintenance of {about} until {last.ends_at:%Y-%m-%d %H:%M} UTC{more}"
    return f"{silences} on {cluster.name}" if own else f"No maintenance on {cluster.name}"
