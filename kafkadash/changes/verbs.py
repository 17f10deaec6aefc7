"""What is done with a change request from its page. Each answers with the page again, or with it and why not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone

from kafkadash.accounts.models import User
from kafkadash.changes import drafting, running, services
from kafkadash.changes.access import needs_on_change, request_for, seen_change
from kafkadash.changes.decision import approve_off
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import fresh
from kafkadash.changes.kinds import UnknownKind
from kafkadash.changes.list_rows import known_kind, run_of
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Refused
from kafkadash.changes.review import facts_of
from kafkadash.changes.views import review_page
from kafkadash.changes.written import LONGEST_TEXT
from kafkadash.clusters.access import APPROVE, COMMENT, DECLINE, MANAGE, PROPOSE, START
from kafkadash.domain.messages import message_text
from kafkadash.domain.workflow_errors import WorkflowErrorCode
from kafkadash.domain.workflow_states import State
from kafkadash.post_only import post_only

_FIELDS = ("note", "reason", "text", "glass_reason")


def _not_allowed(request: HttpRequest, change: ChangeRequest, sentence: str) -> HttpResponse:
    return review_page(request, change, status=HTTPStatus.FORBIDDEN, refused=sentence, typed=_typed(request))


@post_only("changes:request")
@needs_on_change(APPROVE, refused=_not_allowed)
def approve(request: HttpRequest, number: int) -> HttpResponse:
    """Exactly the content whose ``digest`` was on the page."""
    change = request_for(request, number, APPROVE)
    digest, note = request.POST.get("digest", ""), _typed(request)["note"].strip()
    off = approve_off(change, facts_of(change, timezone.now()))
    if off:
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=off, typed=_typed(request))
    return _done(
        request,
        change,
        lambda user: services.approve(change, user, digest, note, request=request, seen_round=_round(request)),
        said=f"You approved #{number}.",
    )


@post_only("changes:request")
@needs_on_change(DECLINE, refused=_not_allowed)
def decline(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number, DECLINE)
    digest, reason = request.POST.get("digest", ""), _typed(request)["reason"].strip()
    return _done(
        request,
        change,
        lambda user: services.decline(change, user, digest, reason, request=request, seen_round=_round(request)),
        said=f"You declined #{number}.",
        missing="" if reason else message_text(ChangeErrorCode.DECLINE_REASON_TYPED),
    )


@post_only("changes:request")
@needs_on_change(START, refused=_not_allowed)
def start(request: HttpRequest, number: int) -> HttpResponse:
    """``key`` makes a second press of the same button the same start."""
    change = request_for(request, number, START)
    reason, key = _typed(request)["reason"].strip(), request.POST.get("key", "").replace("\0", "")
    answer = _done(
        request,
        change,
        lambda user: running.start(change, user, reason, key, request, seen_round=_round(request)),
        said=f"You started #{number}.",
    )
    return _to_its_run(change, answer)


@post_only("changes:request")
@needs_on_change(MANAGE, refused=_not_allowed)
def break_glass(request: HttpRequest, number: int) -> HttpResponse:
    """Without the approvals, if the policy allows that; the reason is written into the audit."""
    change = request_for(request, number, MANAGE)
    digest, reason = request.POST.get("digest", ""), _typed(request)["glass_reason"].strip()
    answer = _done(
        request,
        change,
        lambda user: services.break_glass(change, user, digest, reason, request, seen_round=_round(request)),
        said=f"You started #{number} without its approvals.",
        missing="" if reason else message_text(WorkflowErrorCode.GLASS_REASON),
        field="glass_reason",
    )
    return _to_its_run(change, answer)


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed, read_only_too=True)
def withdraw(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number, PROPOSE, read_only_too=True)
    reason = _typed(request)["reason"].strip()
    return _done(
        request,
        change,
        lambda user: services.withdraw(change, user, reason, request=request),
        said=f"#{number} is a draft again.",
        missing="" if reason else message_text(ChangeErrorCode.WITHDRAW_REASON),
    )


@post_only("changes:request")
@needs_on_change(COMMENT, refused=_not_allowed)
def comment(request: HttpRequest, number: int) -> HttpResponse:
    """``text``, or ``reason`` from the button "Comment only" beside it."""
    change = request_for(request, number, COMMENT)
    typed = _typed(request)
    field = "text" if "text" in request.POST else "reason"
    text = typed[field].strip()
    return _done(
        request,
        change,
        lambda user: services.comment(change, user, text, request=request),
        said="Your comment is there.",
        missing="" if text else message_text(ChangeErrorCode.COMMENT_MISSING),
        field=field,
        anchor="#comments",
    )


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed)
def refresh(request: HttpRequest, number: int) -> HttpResponse:
    """Has a new plan made of a stale request; who asks for it may not approve it."""
    change = request_for(request, number, PROPOSE)
    return _done(
        request,
        change,
        lambda user: services.start_refresh(change, user, request=request),
        said="A new plan is being made; it is shown here as soon as it is done.",
    )


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed)
def edit(request: HttpRequest, number: int) -> HttpResponse:
    """Back to a draft, which is then edited on the pages of its kind."""
    change = request_for(request, number, PROPOSE)
    reason = _typed(request)["reason"].strip()
    answer = _done(
        request,
        change,
        lambda user: services.edit(change, user, reason, request=request),
        said=f"#{number} is a draft again.",
    )
    return _to_its_pages(number) if answer.status_code == HTTPStatus.FOUND else answer


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed)
def copy(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number, PROPOSE)
    made: list[ChangeRequest] = []
    answer = _done(
        request,
        change,
        lambda user: made.append(drafting.copy(change, user, request=request)),
        said=f"This is a copy of #{number}: a draft of yours.",
    )
    return _to_its_pages(made[0].pk) if made else answer


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_not_allowed, read_only_too=True)
def delete(request: HttpRequest, number: int) -> HttpResponse:
    """A draft only; what was proposed once is kept."""
    change = request_for(request, number, PROPOSE, read_only_too=True)
    answer = _done(
        request,
        change,
        lambda user: drafting.delete(change, user, request=request),
        said=f"The draft #{number} is deleted.",
    )
    return redirect("changes:list") if answer.status_code == HTTPStatus.FOUND else answer


def _done(
    request: HttpRequest,
    change: ChangeRequest,
    do: Callable[[User], object],
    *,
    said: str,
    missing: str = "",
    field: str = "reason",
    anchor: str = "",
) -> HttpResponse:
    """Does it and shows the page again; what is refused is said on the page, with what was typed still there.

    ``missing``: what is wrong with what was typed into ``field``.
    """
    number, typed = change.pk, _typed(request)
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
    except (Refused, UnknownKind) as refused:
        # Read again: what it says now is why.
        now = seen_change(request, number)
        return review_page(request, now, status=HTTPStatus.CONFLICT, refused=refused, typed=typed)
    messages.success(request, said)
    answer = redirect("changes:request", number)
    answer["Location"] += anchor
    return answer


def _to_its_run(change: ChangeRequest, answer: HttpResponse) -> HttpResponse:
    """Redirect to the run, where the deed was done; its page says whether it goes on, waits, or cannot begin."""
    run = run_of(fresh(change)) if answer.status_code == HTTPStatus.FOUND else None
    return redirect(run.url) if run else answer


def _typed(request: HttpRequest) -> Mapping[str, str]:
    return {name: request.POST.get(name, "") for name in _FIELDS}


def _round(request: HttpRequest) -> int | None:
    """The one that was on the page; None where the form does not say."""
    given = request.POST.get("round", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else None


def _too_long(text: str) -> str:
    return message_text(ChangeErrorCode.TYPED_TOO_LONG, length=len(text), most=LONGEST_TEXT)


def _to_its_pages(number: int) -> HttpResponse:
    """To where the draft is edited."""
    change = ChangeRequest.objects.select_related("cluster").get(pk=number)
    kind = known_kind(change)
    editable = kind is not None and change.state == State.DRAFT
    return redirect(kind.edit_url(change)) if kind and editable else redirect("changes:request", number)
