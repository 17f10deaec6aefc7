"""How a run ends on its pages: what a cancel would lead to, or giving it up; its report, and the way back."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes import running
from kafkadash.changes.access import needs_on_change, request_for, seen_change, why_not, why_not_with
from kafkadash.changes.decision import RAN
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.live import change_key
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Refused
from kafkadash.changes.review import bar_context
from kafkadash.changes.views import review_page
from kafkadash.changes.written import wrong_reason
from kafkadash.clusters.access import CANCEL, GIVE_UP, PROPOSE, VIEW, actions_allowed
from kafkadash.domain.errors import UserError
from kafkadash.domain.messages import message_text, reason_text
from kafkadash.domain.wording import duration
from kafkadash.domain.workflow_states import State
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.revalidate import revalidated
from kafkadash.post_only import post_only
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.cancelling import preview
from kafkadash.reassign.run.giving_up import give_up, silent_for, stays_behind, why_not_yet
from kafkadash.reassign.run.report import stored_report
from kafkadash.reassign.run.report_text import ReportShown, markdown
from kafkadash.reassign.run.rollback import propose_back
from kafkadash.reassign.run.stored import execution_of
from kafkadash.reassign.run.summaries import short

CANCELLED = (State.EXECUTING, State.PAUSED)


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(VIEW)
def run_cancel(request: HttpRequest, number: int) -> HttpResponse:
    """What a cancel would lead to, row by row; POST cancels, with a ``reason``."""
    change = request_for(request, number)
    if request.method != "POST":
        if change.state not in CANCELLED:
            return redirect("changes:request", number)
        return _cancel_page(request, change)
    way = _Way(
        CANCEL,
        _cancel_page,
        running.cancel,
        message_text(ChangeErrorCode.CANCEL_REASON),
        f"#{number} is being cancelled.",
    )
    return _end(request, change, way)


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(VIEW)
def run_give_up(request: HttpRequest, number: int) -> HttpResponse:
    """What giving up a cancelled run on a silent cluster would leave behind; POST does it, with a ``reason``."""
    change = request_for(request, number)
    if request.method != "POST":
        if change.state != State.CANCELLING:
            return redirect("changes:request", number)
        return _give_up_page(request, change)
    done = f"#{number} was given up. Its report names what it left behind."
    return _end(
        request, change, _Way(GIVE_UP, _give_up_page, give_up, message_text(ReassignmentErrorCode.GIVE_UP_REASON), done)
    )


@require_safe
@needs_on_change(VIEW)
@revalidated
@one_moment()
def report(request: HttpRequest, number: int) -> HttpResponse:
    change = request_for(request, number)
    if change.state not in RAN:
        return redirect("changes:request", number)
    bar = cluster_bar(request, change.cluster, Kind.METADATA)
    context = {
        **bar,
        **bar_context(request, change, actions_allowed(request.user, change.cluster), bar["now"]),
        "section": "changes",
        "tab": "reassignments",
        "part": "report",
        "report": _report(change),
        "live_keys": [change_key(number)],
    }
    return render(request, "reassign/run_report.html", context)


@require_safe
@needs_on_change(VIEW)
def report_markdown(request: HttpRequest, number: int) -> HttpResponse:
    text = markdown(_report(request_for(request, number)))
    return _file(text, f"change-{number}-report.md", "text/markdown; charset=utf-8")


@require_safe
@needs_on_change(VIEW)
def report_json(request: HttpRequest, number: int) -> HttpResponse:
    """As it is stored."""
    stored = _report(request_for(request, number)).stored
    text = json.dumps(stored, indent=2, ensure_ascii=False) + "\n"
    return _file(text, f"change-{number}-report.json", "application/json")


def _back_refused(request: HttpRequest, change: ChangeRequest, sentence: str) -> HttpResponse:
    return review_page(request, change, status=HTTPStatus.FORBIDDEN, refused=sentence)


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_back_refused)
def rollback(request: HttpRequest, number: int) -> HttpResponse:
    """A draft of the way back, whose plan is being made."""
    change = request_for(request, number, PROPOSE)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        draft = propose_back(change, request.user, request)
    except Refused as refused:
        return review_page(request, seen_change(request, number), status=HTTPStatus.CONFLICT, refused=refused)
    return redirect("reassign:plan", draft.pk)


@dataclass(frozen=True, slots=True)
class _Way:
    """A way to end a run that a person takes with a reason: its right, its page, what does it, and what is said."""

    action: str
    page: Callable[..., HttpResponse]
    take: Callable[[ChangeRequest, User, str, HttpRequest], object]
    reason_missing: str
    done: str


def _end(request: HttpRequest, change: ChangeRequest, way: _Way) -> HttpResponse:
    """What was typed stays in the page that says why not."""
    reason = request.POST.get("reason", "")
    refused = why_not(request, change, way.action, read_only_too=True)
    if refused:
        return way.page(request, change, status=HTTPStatus.FORBIDDEN, refused=refused, reason=reason)
    wrong = wrong_reason(reason, way.reason_missing)
    if wrong:
        return way.page(request, change, status=HTTPStatus.BAD_REQUEST, wrong=wrong, reason=reason)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        way.take(change, request.user, reason, request)
    except Refused as error:
        now = seen_change(request, change.pk)
        return way.page(request, now, status=HTTPStatus.CONFLICT, refused=error, reason=reason)
    messages.success(request, way.done)
    return redirect("reassign:run", change.pk)


def _cancel_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | str = "",
    wrong: str = "",
    reason: str = "",
) -> HttpResponse:
    execution = Execution.objects.filter(request=change).defer("samples", "report").first()
    if execution is None:
        return review_page(request, change, status=status, refused=refused or wrong)
    bar = cluster_bar(request, change.cluster, Kind.REASSIGNMENTS)
    may = actions_allowed(request.user, change.cluster)
    context: dict[str, Any] = {
        **bar,
        **bar_context(request, change, may, bar["now"], short(execution, change, bar["now"])),
        "section": "changes",
        "tab": "reassignments",
        "part": "cancel",
        "preview": preview(execution, request.GET.get("page")),
        "can_cancel": change.state in CANCELLED,
        "refused": refused,
        "why_not": why_not_with(may, change, CANCEL, read_only_too=True),
        "typed": {"reason": reason},
        "wrong": {"reason": wrong},
        "live_keys": [],
    }
    return render(request, "reassign/run_cancel.html", context, status=status)


def _give_up_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | str = "",
    wrong: str = "",
    reason: str = "",
) -> HttpResponse:
    execution = execution_of(change.pk)
    if execution is None:
        return review_page(request, change, status=status, refused=refused or wrong)
    bar = cluster_bar(request, change.cluster, Kind.REASSIGNMENTS)
    silent = silent_for(execution, bar["now"])
    may = actions_allowed(request.user, change.cluster)
    context: dict[str, Any] = {
        **bar,
        **bar_context(request, change, may, bar["now"], short(execution, change, bar["now"])),
        "section": "changes",
        "tab": "reassignments",
        "part": "cancel",
        "stays": stays_behind(execution),
        "silent": duration(silent.total_seconds()) if silent else "",
        "error": reason_text(execution.error),
        "not_yet": why_not_yet(execution, bar["now"]),
        "refused": refused,
        "why_not": why_not_with(may, change, GIVE_UP, read_only_too=True),
        "typed": {"reason": reason},
        "wrong": {"reason": wrong},
        "live_keys": [],
    }
    return render(request, "reassign/run_give_up.html", context, status=status)


def _report(change: ChangeRequest) -> ReportShown:
    stored = stored_report(change) if change.state in RAN else None
    if stored is None:
        raise MissingObject(ReassignmentErrorCode.NO_REPORT, number=change.pk)
    return ReportShown(stored)


def _file(text: str, name: str, content_type: str) -> HttpResponse:
    response = HttpResponse(text, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
