"""Settings pages of notifications: who is sent what, receivers with their routes, and deliveries."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.contrib import messages
from django.db.models import Count, Min, Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject, form_error
from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, needs, visible_clusters
from kafkadash.clusters.secrets import SecretError
from kafkadash.core.formatting import listed_shortly
from kafkadash.core.middleware import post_only
from kafkadash.notifications.delivery import queue_test
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.forms import SEVERITIES, WEEKDAYS, ReceiverForm, RouteForm
from kafkadash.notifications.kinds import known_kinds
from kafkadash.notifications.models import (
    MessageState,
    NotificationEvent,
    NotificationItem,
    NotificationMessage,
    NotificationRoute,
    NotificationTarget,
    TargetKind,
)
from kafkadash.notifications.routing import filter_of
from kafkadash.notifications.rules import CoverageRow, ReceiverFilters, SentChanges, list_coverage
from kafkadash.notifications.services import (
    ReceiverRefused,
    add_route,
    add_target,
    change_target,
    remove_route,
    remove_target,
    renew_key,
)

MOST_LISTED = 100
_MARKS = {
    MessageState.SENT: "ok",
    MessageState.WAITING: "unknown",
    MessageState.HELD: "unknown",
    MessageState.REFUSED: "critical",
    MessageState.GIVEN_UP: "critical",
}


@dataclass(frozen=True, slots=True)
class RouteLine:
    """Route in the words of the page."""

    route: NotificationRoute

    @property
    def where(self) -> str:
        return self.route.cluster.name if self.route.cluster else "all clusters"

    @property
    def events(self) -> tuple[str, ...]:
        found = []
        if self.route.findings:
            names = known_kinds()
            kinds = ", ".join(names[kind].name if kind in names else kind for kind in self.route.kinds) or "all kinds"
            found.append(f"findings, {dict(SEVERITIES)[self.route.severity]}: {kinds}")
        match self.route.changes:
            case SentChanges.ALL:
                found.append("changes")
            case SentChanges.WAITING:
                found.append("changes that wait for approval")
        return tuple(found)

    @property
    def hours(self) -> str:
        if filter_of(self.route).hours.zone is None:
            return f"always, because the time zone {self.route.time_zone} is unknown"
        days = ", ".join(WEEKDAYS[day] for day in self.route.weekdays) or "every day"
        if self.route.begins == self.route.ends:
            return days if not self.route.weekdays else f"{days}, {self.route.time_zone}"
        return f"{days} {self.route.begins:%H:%M} to {self.route.ends:%H:%M} {self.route.time_zone}"


@dataclass(frozen=True, slots=True)
class CoverageLine:
    """Row of who is sent what, in the words of the page."""

    row: CoverageRow

    @property
    def where(self) -> str:
        names = self.row.clusters
        if not names:
            return "kafkadash itself"
        return names[0] if len(names) == 1 else f"{len(names):,} clusters: {listed_shortly(names)}"


@dataclass(frozen=True, slots=True)
class DeliveryLine:
    """Message with its state, the first of its events, and how many it has; ``headline`` tells of them."""

    message: NotificationMessage
    first: NotificationEvent | None
    count: int

    @property
    def mark(self) -> str:
        if self.message.state in (MessageState.WAITING, MessageState.SENT) and self.message.error_code:
            return "warning"
        return _MARKS[MessageState(self.message.state)]

    @property
    def headline(self) -> str:
        if self.first is None:
            return "no events kept"
        told = self.first.message
        text = told.cause if told else self.first.message_code
        return text if self.count == 1 else f"{text} And {self.count - 1} more."


@require_safe
@needs(MANAGE)
def notifications(request: HttpRequest) -> HttpResponse:
    """Show who is sent what now, all receivers with their routes, and the newest deliveries."""
    now = timezone.now()
    routes = Prefetch("routes", NotificationRoute.objects.select_related("cluster").order_by("pk"))
    targets = list(NotificationTarget.objects.order_by("name").prefetch_related(routes))
    rows = [{"target": t, "state": _target_state(t), "routes": list(map(RouteLine, t.routes.all()))} for t in targets]
    filters = [
        ReceiverFilters(t.pk, t.name, [filter_of(route) for route in t.routes.all()]) for t in targets if t.enabled
    ]
    clusters = visible_clusters(request.user).values_list("pk", "name")
    coverage = list_coverage(filters, clusters, known_kinds().values(), now)
    failing = sum(target.failing_since is not None and target.enabled for target in targets)
    context = {
        "section": "settings",
        "now": now,
        "rows": rows,
        "coverage": [CoverageLine(row) for row in coverage],
        "kinds": TargetKind.choices,
        "deliveries": _list_deliveries(None),
        "title": _write_title(len(targets), failing),
        "linked": bool(settings.PUBLIC_URL),
    }
    return render(request, "notifications/list.html", context)


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def new_receiver(request: HttpRequest, service: str) -> HttpResponse:
    if service not in TargetKind.values:
        raise MissingObject(DeliveryErrorCode.TARGET_GONE)
    own = TargetKind(service)
    form = ReceiverForm(request.POST, kind=own) if request.method == "POST" else ReceiverForm(kind=own)
    if request.method == "POST" and form.is_valid():
        given = form.cleaned_data
        try:
            target = add_target(_actor(request), given["name"], own, given["address"], request)
        except ReceiverRefused as refused:
            form.show_refusal(refused)
        except SecretError as error:
            form.add_error(None, form_error(error.message))
        else:
            messages.success(request, f"{target.name} added. It is sent all findings: change its routes, and test it.")
            return redirect("notifications:receiver", target.pk)
    return render(request, "notifications/new.html", {"section": "settings", "form": form, "kind": own})


@require_http_methods(["GET", "HEAD", "POST"])
@needs(MANAGE)
def show_receiver(request: HttpRequest, receiver: int) -> HttpResponse:
    """Show a receiver with its routes and deliveries; POST changes its name and address."""
    target = _find_target(receiver)
    kind = TargetKind(target.kind)
    initial = {"name": target.name, "enabled": target.enabled}
    form = ReceiverForm(initial=initial, kind=kind, stored=True)
    if request.method == "POST":
        form = ReceiverForm(request.POST, kind=kind, stored=True)
        if form.is_valid():
            try:
                change_target(target, _actor(request), **form.cleaned_data, request=request)
            except ReceiverRefused as refused:
                form.show_refusal(refused)
            except SecretError as error:
                form.add_error(None, form_error(error.message))
            else:
                messages.success(request, "Saved.")
                return redirect("notifications:receiver", receiver)
    return _render_receiver(request, target, form, RouteForm())


@post_only("notifications:receiver")
@needs(MANAGE)
def new_route(request: HttpRequest, receiver: int) -> HttpResponse:
    target = _find_target(receiver)
    form = RouteForm(request.POST)
    if form.is_valid():
        try:
            add_route(target, _actor(request), form.columns(), request)
        except ReceiverRefused as refused:
            form.show_refusal(refused)
        else:
            messages.success(request, "Route added.")
            return redirect("notifications:receiver", receiver)
    initial = {"name": target.name, "enabled": target.enabled}
    own = ReceiverForm(initial=initial, kind=TargetKind(target.kind), stored=True)
    return _render_receiver(request, target, own, form)


@post_only("notifications:receiver")
@needs(MANAGE)
def remove_own_route(request: HttpRequest, receiver: int) -> HttpResponse:
    target = _find_target(receiver)
    chosen = request.POST.get("route", "")
    route = target.routes.filter(pk=int(chosen)).first() if chosen.isdecimal() and len(chosen) < 10 else None
    if route is not None:
        remove_route(route, _actor(request), request)
        messages.success(request, "Route removed.")
    return redirect("notifications:receiver", receiver)


@post_only("notifications:receiver")
@needs(MANAGE)
def test_receiver(request: HttpRequest, receiver: int) -> HttpResponse:
    target = _find_target(receiver)
    queue_test(target, _actor(request), timezone.now())
    messages.success(request, "Test message queued. See its delivery below.")
    return redirect("notifications:receiver", receiver)


@post_only("notifications:receiver")
@needs(MANAGE)
def renew(request: HttpRequest, receiver: int) -> HttpResponse:
    """Make another key, and show it once, on the page of this answer only."""
    target = _find_target(receiver)
    if target.kind != TargetKind.WEBHOOK:
        return redirect("notifications:receiver", receiver)
    initial = {"name": target.name, "enabled": target.enabled}
    form = ReceiverForm(initial=initial, kind=TargetKind.WEBHOOK, stored=True)
    key = renew_key(target, _actor(request), request)
    return _render_receiver(request, target, form, RouteForm(), key=key)


@post_only("notifications:receiver")
@needs(MANAGE)
def remove(request: HttpRequest, receiver: int) -> HttpResponse:
    target = _find_target(receiver)
    remove_target(target, _actor(request), request)
    messages.success(request, f"{target.name} removed.")
    return redirect("notifications:list")


def _render_receiver(
    request: HttpRequest, target: NotificationTarget, form: ReceiverForm, route_form: RouteForm, *, key: str = ""
) -> HttpResponse:
    routes = target.routes.select_related("cluster").order_by("pk")
    context: dict[str, Any] = {
        "section": "settings",
        "now": timezone.now(),
        "target": target,
        "state": _target_state(target),
        "form": form,
        "route_form": route_form,
        "routes": [RouteLine(route) for route in routes],
        "deliveries": _list_deliveries(target),
        "signed": target.kind == TargetKind.WEBHOOK,
        "key": key,
    }
    return render(request, "notifications/receiver.html", context)


def _list_deliveries(target: NotificationTarget | None) -> list[DeliveryLine]:
    """Return the newest deliveries. A digest may have thousands of events: one of each message is read."""
    rows = NotificationMessage.objects.select_related("target").order_by("-pk")
    shown = list((rows.filter(target=target) if target else rows)[:MOST_LISTED])
    items = NotificationItem.objects.filter(delivery__in=shown).values("delivery_id")
    counts = {row["delivery_id"]: row for row in items.annotate(first=Min("event_id"), count=Count("pk"))}
    events = NotificationEvent.objects.in_bulk([row["first"] for row in counts.values()])
    nothing = {"first": 0, "count": 0}
    found = [(message, counts.get(message.pk, nothing)) for message in shown]
    return [DeliveryLine(message, events.get(own["first"]), own["count"]) for message, own in found]


def _target_state(target: NotificationTarget) -> tuple[str, str]:
    """Return the mark of a receiver and its word."""
    if not target.enabled:
        return "maintenance", "disabled"
    if target.failing_since is not None:
        return "critical", "failing"
    return ("ok", "accepts messages") if target.last_sent_at else ("unknown", "nothing sent yet")


def _write_title(count: int, failing: int) -> str:
    if not count:
        return "No receivers: findings are shown here only"
    if failing:
        return f"{failing} of {count} receivers fail" if count > 1 else "The receiver fails"
    return "1 receiver" if count == 1 else f"{count} receivers"


def _find_target(number: int) -> NotificationTarget:
    target = NotificationTarget.objects.filter(pk=number).first()
    if target is None:
        raise MissingObject(DeliveryErrorCode.TARGET_GONE)
    return target


def _actor(request: HttpRequest) -> User:
    assert isinstance(request.user, User)
    return request.user
