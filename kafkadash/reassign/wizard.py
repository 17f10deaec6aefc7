"""What the pages of the wizard share: the draft behind an address, the bar with the steps, two people editing one."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.access import PROPOSE
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.reassign.drafts import KIND, Draft, step_url
from kafkadash.reassign.errors import ReassignmentErrorCode

DraftView = Callable[[HttpRequest, Draft], HttpResponse]


def on_draft(step: str) -> Callable[[DraftView], Callable[..., Any]]:
    """A view of a draft that this person may propose with. What is no draft any more is on its review page, and a
    step that is not possible yet leads to the one that is missing.
    """

    def decorate(view: DraftView) -> Callable[..., Any]:
        @needs_on_change(PROPOSE)
        @wraps(view)
        def guarded(request: HttpRequest, number: int) -> HttpResponse:
            change = request_for(request, number, PROPOSE)
            if change.kind != KIND:
                raise MissingObject(ReassignmentErrorCode.NO_REASSIGNMENT, number=number)
            if change.state != RequestState.DRAFT:
                return redirect("changes:request", number)
            draft = Draft(change)
            if not draft.possible(step):
                return redirect(step_url(number, draft.next_step))
            return view(request, draft)

        return guarded

    return decorate


def again(draft: Draft) -> Draft:
    """As it is stored now, after somebody else edited it."""
    change = ChangeRequest.objects.select_related("cluster", "cluster__policy", "author", "job").get(pk=draft.change.pk)
    return Draft(change)


def page_context(request: HttpRequest, draft: Draft, step: str) -> dict[str, Any]:
    """Of the bars above each step."""
    return {
        **cluster_bar(request, draft.change.cluster, Kind.METADATA),
        "section": "changes",
        "tab": "reassignments",
        "change": draft.change,
        "draft": draft,
        "asked": draft.asked,
        "steps": draft.steps(step),
        "page_address": reverse(f"reassign:{step}", args=[draft.change.pk]),
        "saved_at": draft.change.edited_at or draft.change.created_at,
    }


def person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # the views let nobody else in
    return request.user
