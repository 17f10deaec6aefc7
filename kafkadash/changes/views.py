"""Pages of change requests: the list and the review. What is done with one is in ``verbs``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.context import waiting_for_me
from kafkadash.changes.list_rows import list_context, segments
from kafkadash.changes.live import CHANGES, change_key
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.review import review_context
from kafkadash.clusters.access import PROPOSE, VIEW, clusters_allowing, signed_in
from kafkadash.domain.errors import UserError
from kafkadash.domain.wording import capital, count
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.revalidate import revalidated


@require_safe
@signed_in
@revalidated
def changes(request: HttpRequest) -> HttpResponse:
    """Requests on all clusters that this person may view; those that wait for him by default."""
    listed, waiting = list_context(request, timezone.now()), waiting_for_me(request)
    context = {
        **listed,
        "section": "changes",
        "title": title(waiting),
        "segments": segments(listed["counts"], waiting),
        "live_keys": [CHANGES],
        "proposes": clusters_allowing(request.user, PROPOSE).filter(read_only=False).exists(),
    }
    return render(request, "changes/list.html", context)


@require_safe
@needs_on_change(VIEW)
@revalidated
def review(request: HttpRequest, number: int) -> HttpResponse:
    return review_page(request, request_for(request, number))


def review_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = 200,
    refused: UserError | str = "",
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, str] | None = None,
) -> HttpResponse:
    """The page as it is now; after a refusal with the sentence and with what was typed, by name of the field."""
    bar = cluster_bar(request, change.cluster, Kind.METADATA)
    shown = review_context(request, change, bar["now"])
    context: dict[str, Any] = {
        **bar,
        **shown,
        "section": "changes",
        "tab": "reassignments",
        "page_address": reverse("changes:request", args=[change.pk]),
        "live_keys": [change_key(change.pk)],
        "refused": refused,
        "typed": typed or {},
        "wrong": wrong or {},
        "kept": _without_a_field(typed or {}, shown),
    }
    return render(request, "changes/request.html", context, status=status)


def title(waiting: int) -> str:
    """The answer of the list."""
    if not waiting:
        return "Nothing waits for you."
    return capital(f"{count(waiting, 'change')} wait{'s' if waiting == 1 else ''} for you.")


def _without_a_field(typed: Mapping[str, str], shown: Mapping[str, Any]) -> Sequence[str]:
    """What was typed and has no field on the page any more: it is shown as text, so that nothing is lost."""
    decision = shown["decision"]
    fields = {
        "note": decision.may_approve,
        "reason": decision.may_decline or (decision.may_withdraw and not decision.any),
        "text": decision.may_comment,
        "pause_reason": decision.may_pause or decision.may_resume,
    }
    return [text for name, text in typed.items() if text.strip() and not fields.get(name)]
