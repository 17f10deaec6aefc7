"""Pages of changes of several steps: the drafts with their plans, submitted together, and one approval of all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.models import User
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.lists import known_kind
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.review import NewPlan, first_refusal, read_planning
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.steps import (
    SeenContent,
    StepContent,
    approve_steps,
    describe_step,
    list_approvable,
    list_steps,
    submit_steps,
)
from kafkadash.changes.transitions import change_key
from kafkadash.changes.views import review_page
from kafkadash.clusters.access import APPROVE, PROPOSE
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.middleware import post_only
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind


@dataclass(frozen=True, slots=True)
class DraftedStep:
    """A step before it is proposed. ``planning``: how far its plan is, None where it has one, or was never planned."""

    content: StepContent
    label: str
    planning: NewPlan | None
    edit_url: str


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(PROPOSE)
def steps(request: HttpRequest, number: int) -> HttpResponse:
    """Show what each step will do, and take the reason; POST submits all of them, or none."""
    change = request_for(request, number, PROPOSE)
    drafts = list_steps(change)
    if not drafts or any(draft.state != ChangeState.DRAFT for draft in drafts):
        return redirect("changes:request", number)
    if request.method != "POST":
        return _show_drafts(request, drafts)
    why = request.POST.get("why", "").replace("\0", "").strip()
    if not why:
        return _show_drafts(request, drafts, wrong={"why": coded(ChangeErrorCode.WHY_MISSING)})
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    digests = {draft.pk: request.POST.get(f"digest:{draft.pk}", "") for draft in drafts}
    try:
        submit_steps(drafts, request.user, why, digests, request)
    except ChangeRefused as refused:
        left = list_steps(change)
        if left and all(draft.state == ChangeState.DRAFT for draft in left):
            return _show_drafts(request, left, refused=refused)
    return redirect("changes:request", drafts[0].pk)


def _show_drafts(
    request: HttpRequest,
    drafts: list[ChangeRequest],
    refused: ChangeRefused | None = None,
    wrong: Mapping[str, CodedMessage] | None = None,
) -> HttpResponse:
    first = drafts[0]
    bar = cluster_bar(first.cluster, CollectorKind.METADATA)
    context = {
        **bar,
        "section": "changes",
        "tab": "",
        "change": first,
        "steps": [_describe_draft(draft, bar["now"]) for draft in drafts],
        "ready": all(draft.artifact is not None and draft.artifact.rows for draft in drafts),
        "why": request.POST.get("why", first.why).replace("\0", ""),
        "live_keys": [change_key(draft.pk) for draft in drafts],
        "refused": refused,
        "wrong": wrong or {},
    }
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return render(request, "changes/steps.html", context, status=status)


def _describe_draft(draft: ChangeRequest, now: datetime) -> DraftedStep:
    kind = known_kind(draft)
    return DraftedStep(
        content=describe_step(draft, now),
        label=kind.label if kind else draft.kind,
        planning=None if kind and draft.artifact_id else read_planning(draft),
        edit_url=kind.edit_url(draft) if kind else "",
    )


@post_only("changes:request")
@needs_on_change(APPROVE)
def approve(request: HttpRequest, number: int) -> HttpResponse:
    """Approve all steps with the content that was on the page; none of them where one changed meanwhile."""
    change = request_for(request, number, APPROVE)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    if change.first_step_id is None:
        return redirect("changes:request", number)
    waiting = list_approvable(request.user, list_steps(change))
    off = first_refusal(waiting)
    if off:
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=off)
    try:
        approved = approve_steps(change, request.user, _read_seen(request), request=request)
    except ChangeRefused as refused:
        return review_page(request, request_for(request, number), status=HTTPStatus.CONFLICT, refused=refused)
    messages.success(request, choose_plural("You approved # step.|You approved # steps.", approved))
    return redirect("changes:request", number)


MOST_STEPS = 20


def _read_seen(request: HttpRequest) -> dict[int, SeenContent]:
    """Return the content of each step that was on the page: each ``step`` is "42:DIGEST:ROUND"."""
    seen = {}
    for typed in request.POST.getlist("step")[:MOST_STEPS]:
        number, _, rest = typed.partition(":")
        digest, _, round_ = rest.partition(":")
        if all(each.isascii() and each.isdigit() and len(each) < 10 for each in (number, round_)):
            seen[int(number)] = SeenContent(digest, int(round_))
    return seen
