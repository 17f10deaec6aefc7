"""Pages of change requests: the list, the review, and the POST actions of a review.

A refused action renders the review again with the reason.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes import services as running
from kafkadash.changes.access import needs_on_change, request_for, seen_change
from kafkadash.changes.decision import approve_off
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.kinds import UnknownChangeKind
from kafkadash.changes.lists import build_segments, known_kind, list_context, run_of, waiting_for_me
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.request_validation import LONGEST_TEXT, reload_change
from kafkadash.changes.review import facts_of, review_context
from kafkadash.changes.state_machine import ChangeState, WorkflowErrorCode
from kafkadash.changes.transitions import CHANGES, change_key
from kafkadash.clusters.access import (
    APPROVE,
    COMMENT,
    DECLINE,
    MANAGE,
    PROPOSE,
    START,
    VIEW,
    clusters_allowing,
    signed_in,
)
from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.middleware import post_only
from kafkadash.core.revalidation import revalidated
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind


@require_safe
@signed_in
@revalidated
def changes(request: HttpRequest) -> HttpResponse:
    """Requests on all clusters that this person may view; those that wait for him by default."""
    listed, waiting = list_context(request, timezone.now()), waiting_for_me(request)
    context = {
        **listed,
        "section": "changes",
        "title": describe_waiting(waiting),
        "segments": build_segments(listed["counts"], waiting),
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
    refused: UserError | CodedMessage | str = "",
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, object] | None = None,
) -> HttpResponse:
    """The page as it is now; after a refusal with the sentence and with what was typed, by name of the field."""
    bar = cluster_bar(change.cluster, CollectorKind.METADATA)
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


def describe_waiting(waiting: int) -> str:
    """Return the title of the list."""
    if not waiting:
        return "Changes: none waiting for you"
    return choose_plural("Changes: # waiting for you|Changes: # waiting for you", waiting)


def _without_a_field(typed: Mapping[str, str], shown: Mapping[str, Any]) -> Sequence[str]:
    """Return the typed texts that have no field on the page any more: shown as text, so that nothing is lost."""
    decision = shown["decision"]
    fields = {
        "note": decision.may_approve,
        "reason": decision.may_decline or (decision.may_withdraw and not decision.any),
        "text": decision.may_comment,
        "pause_reason": decision.may_pause or decision.may_resume,
    }
    return [text for name, text in typed.items() if text.strip() and not fields.get(name)]


_FIELDS = ("note", "reason", "text", "glass_reason")


def _not_allowed(request: HttpRequest, change: ChangeRequest, error: UserError) -> HttpResponse:
    return review_page(request, change, status=HTTPStatus.FORBIDDEN, refused=error, typed=_read_typed_fields(request))


@post_only("changes:request")
@needs_on_change(APPROVE, refused=_not_allowed)
def approve(request: HttpRequest, number: int) -> HttpResponse:
    """Exactly the content whose ``digest`` was on the page."""
    change = request_for(request, number, APPROVE)
    digest, note = request.POST.get("digest", ""), _read_typed_fields(request)["note"].strip()
    off = approve_off(change, facts_of(change, timezone.now()))
    if off:
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=off, typed=_read_typed_fields(request))
    return _perform_action(
        request,
        change,
        lambda user: services.approve(change, user, digest, note, request=request, seen_round=_read_round(request)),
        done_text=f"You approved #{number}.",
    )


@post_only("changes:request")
@needs_on_change(DECLINE, refused=_not_allowed)
def decline(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number, DECLINE)
    digest, reason = request.POST.get("digest", ""), _read_typed_fields(request)["reason"].strip()
    return _perform_action(
        request,
        change,
        lambda user: services.decline(change, user, digest, reason, request=request, seen_round=_read_round(request)),
        done_text=f"You declined #{number}.",
        missing=None if reason else coded(ChangeErrorCode.DECLINE_REASON_TYPED),
    )


@post_only("changes:request")
@needs_on_change(START, refused=_not_allowed)
def start(request: HttpRequest, number: int) -> HttpResponse:
    """``key`` makes a second press of the same button the same start."""
    change = request_for(request, number, START)
    reason, key = _read_typed_fields(request)["reason"].strip(), request.POST.get("key", "").replace("\0", "")
    answer = _perform_action(
        request,
        change,
        lambda user: running.start(change, user, reason, key, request, seen_round=_read_round(request)),
        done_text=f"You started #{number}.",
    )
    return _to_its_run(change, answer)


@post_only("changes:request")
@needs_on_change(MANAGE, refused=_not_allowed)
def break_glass(request: HttpRequest, number: int) -> HttpResponse:
    """Without the approvals, if the policy allows that; the reason is written into the audit."""
    change = request_for(request, number, MANAGE)
    digest, reason = request.POST.get("digest", ""), _read_typed_fields(request)["glass_reason"].strip()
    answer = _perform_action(
        request,
        change,
        lambda user: services.break_glass(change, user, digest, reason, request, seen_round=_read_round(request)),
        done_text=f"You started #{number} without approvals.",
        missing=None if reason else coded(WorkflowErrorCode.GLASS_REASON),
        field="glass_reason",
    )
    return _to_its_run(change, answer)


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed, read_only_too=True)
def withdraw(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number, PROPOSE, read_only_too=True)
    reason = _read_typed_fields(request)["reason"].strip()
    return _perform_action(
        request,
        change,
        lambda user: services.withdraw(change, user, reason, request=request),
        done_text=f"#{number} is a draft again.",
        missing=None if reason else coded(ChangeErrorCode.WITHDRAW_REASON),
    )


@post_only("changes:request")
@needs_on_change(COMMENT, refused=_not_allowed)
def comment(request: HttpRequest, number: int) -> HttpResponse:
    """``text``, or ``reason`` from the button "Comment only" beside it."""
    change = request_for(request, number, COMMENT)
    typed = _read_typed_fields(request)
    field = "text" if "text" in request.POST else "reason"
    text = typed[field].strip()
    return _perform_action(
        request,
        change,
        lambda user: services.comment(change, user, text, request=request),
        done_text="Comment added.",
        missing=None if text else coded(ChangeErrorCode.COMMENT_MISSING),
        field=field,
        anchor="#comments",
    )


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed)
def refresh(request: HttpRequest, number: int) -> HttpResponse:
    """Has a new plan made of a stale request; who asks for it may not approve it."""
    change = request_for(request, number, PROPOSE)
    return _perform_action(
        request,
        change,
        lambda user: services.start_refresh(change, user, request=request),
        done_text="A new plan is being created. It appears here when it is ready.",
    )


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed)
def edit(request: HttpRequest, number: int) -> HttpResponse:
    """Back to a draft, which is then edited on the pages of its kind."""
    change = request_for(request, number, PROPOSE)
    reason = _read_typed_fields(request)["reason"].strip()
    answer = _perform_action(
        request,
        change,
        lambda user: services.edit(change, user, reason, request=request),
        done_text=f"#{number} is a draft again.",
    )
    return _to_its_pages(number) if answer.status_code == HTTPStatus.FOUND else answer


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed)
def copy(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number, PROPOSE)
    made: list[ChangeRequest] = []
    answer = _perform_action(
        request,
        change,
        lambda user: made.append(drafting.copy(change, user, request=request)),
        done_text=f"You copied #{number} as a new draft.",
    )
    return _to_its_pages(made[0].pk) if made else answer


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed, read_only_too=True)
def delete(request: HttpRequest, number: int) -> HttpResponse:
    """A draft only; what was proposed once is kept."""
    change = request_for(request, number, PROPOSE, read_only_too=True)
    answer = _perform_action(
        request,
        change,
        lambda user: drafting.delete(change, user, request=request),
        done_text=f"Draft #{number} was deleted.",
    )
    return redirect("changes:list") if answer.status_code == HTTPStatus.FOUND else answer


def _perform_action(
    request: HttpRequest,
    change: ChangeRequest,
    do: Callable[[User], object],
    *,
    done_text: str,
    missing: CodedMessage | None = None,
    field: str = "reason",
    anchor: str = "",
) -> HttpResponse:
    """Does it and shows the page again; what is refused is said on the page, with what was typed still there.

    ``missing``: what is wrong with what was typed into ``field``.
    """
    number, typed = change.pk, _read_typed_fields(request)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    wrong = {name: _too_long(text) for name, text in typed.items() if len(text) > LONGEST_TEXT}
    if missing:
        wrong[field] = missing
    if wrong:
        return review_page(
            request, seen_change(request, number), status=HTTPStatus.BAD_REQUEST, typed=typed, wrong=wrong
        )
    try:
        do(request.user)
    except (ChangeRefused, UnknownChangeKind) as refused:
        # Read again: what it says now is why.
        now = seen_change(request, number)
        return review_page(request, now, status=HTTPStatus.CONFLICT, refused=refused, typed=typed)
    messages.success(request, done_text)
    answer = redirect("changes:request", number)
    answer["Location"] += anchor
    return answer


def _to_its_run(change: ChangeRequest, answer: HttpResponse) -> HttpResponse:
    """Redirect to the run, where the action was done; its page says whether it goes on, waits, or cannot begin."""
    run = run_of(reload_change(change)) if answer.status_code == HTTPStatus.FOUND else None
    return redirect(run.url) if run else answer


def _read_typed_fields(request: HttpRequest) -> Mapping[str, str]:
    return {name: request.POST.get(name, "") for name in _FIELDS}


def _read_round(request: HttpRequest) -> int | None:
    """The one that was on the page; None where the form does not say."""
    given = request.POST.get("round", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


def _too_long(text: str) -> CodedMessage:
    return coded(ChangeErrorCode.TYPED_TOO_LONG, length=len(text), most=LONGEST_TEXT)


def _to_its_pages(number: int) -> HttpResponse:
    """To where the draft is edited."""
    change = ChangeRequest.objects.select_related("cluster").get(pk=number)
    kind = known_kind(change)
    editable = kind is not None and change.state == ChangeState.DRAFT
    return redirect(kind.edit_url(change)) if kind and editable else redirect("changes:request", number)
