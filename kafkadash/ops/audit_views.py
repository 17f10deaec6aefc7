"""The audit: what was done by whom, one thing of it, and what is filtered as a file."""

from __future__ import annotations

from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from django.http.response import HttpResponseBase
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.audit import record
from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.clusters.access import VIEW_AUDIT, allowed, clusters_allowing, needs
from kafkadash.domain.messages import message_text
from kafkadash.ops.audit_export import FORMATS, lines, lines_async
from kafkadash.ops.audit_rows import NO_CLUSTER, PERIODS, AuditFilter, audit_rows, page_of, readable
from kafkadash.ops.audit_words import ACTIONS, WORDS
from kafkadash.ops.errors import OperationErrorCode
from kafkadash.post_only import post_only


@require_safe
@needs(VIEW_AUDIT, anywhere=True)
def audit(request: HttpRequest) -> HttpResponse:
    """Newest first; every filter is in the address."""
    user = _user(request)
    now = timezone.now()
    asked = AuditFilter(request.GET, now)
    events = asked.of(readable(user))
    number = events.count()
    page = page_of(events, asked)
    clusters = {cluster.slug: cluster.name for cluster in clusters_allowing(user, VIEW_AUDIT)}
    everywhere = allowed(user, VIEW_AUDIT, None)
    if everywhere:
        clusters[NO_CLUSTER] = "The whole installation"
    chosen = asked.values["cluster"]
    if chosen and chosen not in clusters:
        clusters[chosen] = chosen
    context = {
        "section": "audit",
        "now": now,
        "title": asked.title(number),
        "number": number,
        "asked": asked,
        "listing": asked.listing,
        "page": page,
        "rows": audit_rows(page.events),
        "periods": PERIODS,
        "groups": ACTIONS,
        "unknown_action": asked.values["what"] if asked.values["what"] not in WORDS else "",
        "clusters": clusters,
        "everywhere": everywhere,
    }
    return render(request, "ops/audit.html", context)


@require_safe
@needs(VIEW_AUDIT, anywhere=True)
def audit_event(request: HttpRequest, event_id: int) -> HttpResponse:
    """One thing that was done, whole."""
    event = readable(_user(request)).filter(pk=event_id).first()
    if event is None:
        raise MissingObject(OperationErrorCode.NO_SUCH_EVENT, number=event_id)
    return render(
        request, "ops/audit_event.html", {"section": "audit", "now": timezone.now(), "row": audit_rows([event])[0]}
    )


@post_only("ops:audit")
@needs(VIEW_AUDIT, anywhere=True)
def audit_export(request: HttpRequest) -> HttpResponseBase:
    """All events that the filter leaves, as a file. The export is an event itself, and not part of the file."""
    user = _user(request)
    name = request.POST.get("format", "")
    if name not in FORMATS:
        return HttpResponse(
            message_text(OperationErrorCode.NO_SUCH_FORMAT, asked=name[:60], known=", ".join(FORMATS)),
            status=400,
            content_type="text/plain; charset=utf-8",
        )
    now = timezone.now()
    asked = AuditFilter(request.POST, now)
    newest = readable(user).order_by("-id").values_list("pk", flat=True).first()
    # Nothing is changed or deleted here, so what is below the newest id stays the same while it is sent.
    events = asked.of(readable(user)).filter(pk__lte=newest or 0)
    chosen = asked.values["cluster"]
    record(
        user,
        "audit.exported",
        ("audit", "export"),
        cluster="" if chosen == NO_CLUSTER else chosen,
        after={"format": name, "events": events.count(), "filter": asked.asked},
        request=request,
    )
    kind, ending, _, _ = FORMATS[name]
    source = lines_async(events, name) if isinstance(request, ASGIRequest) else lines(events, name)
    response = StreamingHttpResponse(source, content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="kafkadash-audit-{now:%Y%m%d-%H%M%S}.{ending}"'
    return response


def _user(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    return request.user
