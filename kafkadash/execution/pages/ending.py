"""Pages about the end of a run: cancel and give up with a preview of the result, the report, and the rollback.

A cancelled reassignment leaves ``replicas − adding`` of that moment (KIP-455). If the partition got another target
meanwhile, this can be a larger set than before the move; a second request then restores the original replicas and their
order.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.db.models import Count, Q
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes import services as running
from kafkadash.changes.access import needs_on_change, request_for, seen_change, why_not, why_not_with
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.request_validation import wrong_reason
from kafkadash.changes.review import bar_context
from kafkadash.changes.state_machine import RAN, ChangeState
from kafkadash.changes.transitions import change_key
from kafkadash.changes.views import review_page
from kafkadash.clusters.access import CANCEL, GIVE_UP, PROPOSE, VIEW, actions_allowed
from kafkadash.core.errors import UserError
from kafkadash.core.formatting import format_duration
from kafkadash.core.messages import CodedMessage, choose_plural, message_text, reason_text
from kafkadash.core.middleware import post_only
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.execution.engine.state import BEFORE, IN_FLIGHT, RowState
from kafkadash.execution.models import Execution, Move
from kafkadash.execution.pages.counts import execution_of
from kafkadash.execution.pages.found_brokers import load_found_brokers
from kafkadash.execution.pages.report import ReportShown, render_markdown
from kafkadash.execution.pages.summaries import summarize_run
from kafkadash.execution.report import stored_report
from kafkadash.execution.rollback import propose_back
from kafkadash.execution.worker.finish import give_up, silent_for, stays_behind, why_not_yet
from kafkadash.monitoring.cluster_bar import cluster_bar, read_hint
from kafkadash.monitoring.models import CollectorKind, MoveOutcome, ReassignmentSnapshot
from kafkadash.monitoring.ownership import NEVER_LISTED
from kafkadash.planning.errors import ReassignmentErrorCode

PAGE_SIZE = 100
_FOUND_BY = (CollectorKind.METADATA, CollectorKind.LOG_DIRS)
"""Readings of which the report shows what a run left."""


@dataclass(frozen=True)
class GoesBack:
    """Row in flight that a cancel takes back. ``seen``: its listing as last seen, None where no refresh has seen it."""

    move: Move
    seen: ReassignmentSnapshot | None

    @property
    def name(self) -> str:
        return str(self.move)

    @property
    def ours(self) -> bool:
        """Return whether the listing leads to the row's target by adding what the row adds, as the executor decides."""
        if self.seen is None:
            return True
        adding = set(self.move.target) - set(self.move.current)
        return list(self.seen.target) == list(self.move.target) and set(self.seen.adding) <= adding

    @property
    def leaves(self) -> Sequence[int]:
        """The replicas right after the cancel; in the original order where they are the original ones."""
        if self.seen is None:
            return self.move.current
        left = [broker for broker in self.seen.replicas if broker not in self.seen.adding]
        return self.move.current if set(left) == set(self.move.current) else left

    @property
    def other(self) -> bool:
        """Return whether the replicas that a cancel leaves are another set than the original one."""
        return set(self.leaves) != set(self.move.current)

    @property
    def more(self) -> Sequence[int]:
        """Replicas that a cancel leaves and that are none of the original ones."""
        return [broker for broker in self.leaves if broker not in self.move.current]

    @property
    def sentence(self) -> str:
        original, there = _format_brokers(self.move.current), _format_brokers(self.leaves)
        if not self.ours and self.seen is not None:
            return message_text(ReassignmentErrorCode.NOT_OURS_TO_CANCEL, target=_format_brokers(self.seen.target))
        if set(self.move.current) == set(self.move.target):
            return f"Only the replica order changes; the cancel restores {original}."
        if self.other:
            return message_text(ReassignmentErrorCode.CANCEL_LEAVES_OTHERS, there=there, original=original)
        note = "" if self.seen else " Not seen in the cluster yet; based on the replicas stored at the start."
        return f"Returns to {original}, in that order.{note}"


@dataclass(frozen=True)
class CancelPreview:
    """``done`` stay as they are, ``waiting`` are not started, ``ended`` ended otherwise before."""

    flight: int
    done: int
    waiting: int
    ended: int
    page: Page[Move]
    rows: Sequence[GoesBack]
    seen_at: datetime | None

    @property
    def sentences(self) -> Sequence[str]:
        told = []
        if self.flight:
            texts = "# move in flight returns to its|# moves in flight return to their"
            told.append(f"{choose_plural(texts, self.flight)} original replicas, as listed below.")
        else:
            told.append("No moves are in flight.")
        if self.done:
            texts = "# completed move stays and is|# completed moves stay and are"
            told.append(f"{choose_plural(texts, self.done)} listed in the report.")
        if self.waiting:
            told.append(f"{choose_plural('# waiting move does|# waiting moves do', self.waiting)} not start.")
        if self.ended:
            texts = "# move has already ended without completing.|# moves have already ended without completing."
            told.append(choose_plural(texts, self.ended))
        told.append("Throttles are removed now, or as soon as brokers respond.")
        return told


def preview(execution: Execution, page: str | None) -> CancelPreview:
    """From stored rows. Three queries, with one more for the snapshots where something is in flight."""
    moves = Move.objects.filter(execution=execution)
    counts = moves.aggregate(
        flight=Count("pk", filter=Q(state__in=IN_FLIGHT)),
        done=Count("pk", filter=Q(state=RowState.DONE)),
        waiting=Count("pk", filter=Q(state__in=BEFORE)),
        total=Count("pk"),
    )
    total = counts.pop("total")
    shown = Paginator(moves.filter(state__in=IN_FLIGHT).order_by("topic", "partition"), PAGE_SIZE).get_page(page)
    rows = goes_back(execution, list(shown.object_list))
    return CancelPreview(
        **counts,
        ended=total - sum(counts.values()),
        page=shown,
        rows=rows,
        seen_at=min((row.seen.last_seen_at for row in rows if row.seen), default=None),
    )


def goes_back(execution: Execution, moves: Sequence[Move]) -> list[GoesBack]:
    """Return what a cancel of each of these rows leaves; at most one query."""
    seen: Mapping[tuple[str, int], ReassignmentSnapshot] = {}
    if moves:
        listed = ReassignmentSnapshot.objects.filter(
            cluster=execution.cluster_id, outcome=MoveOutcome.RUNNING, topic__in={move.topic for move in moves}
        ).exclude(epoch=NEVER_LISTED)
        listed = listed.only("topic", "partition", "replicas", "adding", "removing", "target", "last_seen_at")
        seen = {(each.topic, each.partition): each for each in listed}
    return [GoesBack(move, seen.get((move.topic, move.partition))) for move in moves]


def _format_brokers(replicas: Sequence[int]) -> str:
    return ", ".join(map(str, replicas))


CANCELLED = (ChangeState.EXECUTING, ChangeState.PAUSED)


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(VIEW)
def run_cancel(request: HttpRequest, number: int) -> HttpResponse:
    """Show what a cancel would lead to, row by row; POST cancels, with a ``reason``."""
    change = request_for(request, number)
    if request.method != "POST":
        if change.state not in CANCELLED:
            return redirect("changes:request", number)
        return _cancel_page(request, change)
    way = _EndingWay(
        CANCEL,
        _cancel_page,
        running.cancel,
        message_text(ChangeErrorCode.CANCEL_REASON),
        f"#{number}: the run is being cancelled.",
    )
    return _end_run(request, change, way)


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(VIEW)
def run_give_up(request: HttpRequest, number: int) -> HttpResponse:
    """Show what giving up a cancelled run on a silent cluster leaves behind; POST gives it up, with a ``reason``."""
    change = request_for(request, number)
    if request.method != "POST":
        if change.state != ChangeState.CANCELLING:
            return redirect("changes:request", number)
        return _give_up_page(request, change)
    done = f"#{number}: the run was given up. The report lists the remaining moves and throttles."
    return _end_run(
        request,
        change,
        _EndingWay(GIVE_UP, _give_up_page, give_up, message_text(ReassignmentErrorCode.GIVE_UP_REASON), done),
    )


@require_safe
@needs_on_change(VIEW)
@revalidated
@one_moment()
def report(request: HttpRequest, number: int) -> HttpResponse:
    """``?brokers=all`` shows the bars of all brokers of a large cluster."""
    change = request_for(request, number)
    if change.state not in RAN:
        return redirect("changes:request", number)
    bar = cluster_bar(change.cluster, CollectorKind.METADATA)
    shown = _get_report(change)
    everything = request.GET.get("brokers") == "all"
    context = {
        **bar,
        **bar_context(request, change, actions_allowed(request.user, change.cluster), bar["now"]),
        "section": "changes",
        "tab": "reassignments",
        "part": "report",
        "report": shown,
        "found": load_found_brokers(change, bar["standing"].runs, shown.ended_at, bar["now"], everything=everything),
        "live_keys": [change_key(number), *(read_hint(kind, change.cluster.slug) for kind in _FOUND_BY)],
    }
    return render(request, "execution/run_report.html", context)


@require_safe
@needs_on_change(VIEW)
def report_markdown(request: HttpRequest, number: int) -> HttpResponse:
    text = render_markdown(_get_report(request_for(request, number)))
    return _file_response(text, f"change-{number}-report.md", "text/markdown; charset=utf-8")


@require_safe
@needs_on_change(VIEW)
def report_json(request: HttpRequest, number: int) -> HttpResponse:
    """Return the report as stored, in a JSON file."""
    stored = _get_report(request_for(request, number)).stored
    text = json.dumps(stored, indent=2, ensure_ascii=False) + "\n"
    return _file_response(text, f"change-{number}-report.json", "application/json")


def _back_refused(request: HttpRequest, change: ChangeRequest, error: UserError) -> HttpResponse:
    return review_page(request, change, status=HTTPStatus.FORBIDDEN, refused=error)


@post_only("changes:request")
@needs_on_change(PROPOSE, refused=_back_refused)
def rollback(request: HttpRequest, number: int) -> HttpResponse:
    """A draft of the rollback, whose plan is being made."""
    change = request_for(request, number, PROPOSE)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        draft = propose_back(change, request.user, request)
    except ChangeRefused as refused:
        return review_page(request, seen_change(request, number), status=HTTPStatus.CONFLICT, refused=refused)
    return redirect("planning:plan", draft.pk)


@dataclass(frozen=True, slots=True)
class _EndingWay:
    """A way to end a run that a person takes with a reason: permission, page, service function, and success text."""

    action: str
    page: Callable[..., HttpResponse]
    take: Callable[[ChangeRequest, User, str, HttpRequest], object]
    reason_missing: str
    done: str


def _end_run(request: HttpRequest, change: ChangeRequest, way: _EndingWay) -> HttpResponse:
    """End the run in this way; a refusal shows the page again with the typed reason."""
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
    except ChangeRefused as error:
        now = seen_change(request, change.pk)
        return way.page(request, now, status=HTTPStatus.CONFLICT, refused=error, reason=reason)
    messages.success(request, way.done)
    return redirect("execution:run", change.pk)


def _cancel_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | CodedMessage | str = "",
    wrong: str = "",
    reason: str = "",
) -> HttpResponse:
    execution = Execution.objects.filter(request=change).defer("samples", "report").first()
    if execution is None:
        return review_page(request, change, status=status, refused=refused or wrong)
    bar = cluster_bar(change.cluster, CollectorKind.REASSIGNMENTS)
    may = actions_allowed(request.user, change.cluster)
    context: dict[str, Any] = {
        **bar,
        **bar_context(request, change, may, bar["now"], summarize_run(execution, change, bar["now"])),
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
    return render(request, "execution/run_cancel.html", context, status=status)


def _give_up_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | CodedMessage | str = "",
    wrong: str = "",
    reason: str = "",
) -> HttpResponse:
    execution = execution_of(change.pk)
    if execution is None:
        return review_page(request, change, status=status, refused=refused or wrong)
    bar = cluster_bar(change.cluster, CollectorKind.REASSIGNMENTS)
    silent = silent_for(execution, bar["now"])
    may = actions_allowed(request.user, change.cluster)
    context: dict[str, Any] = {
        **bar,
        **bar_context(request, change, may, bar["now"], summarize_run(execution, change, bar["now"])),
        "section": "changes",
        "tab": "reassignments",
        "part": "cancel",
        "stays": stays_behind(execution),
        "silent": format_duration(silent.total_seconds()) if silent else "",
        "error": reason_text(execution.error),
        "not_yet": why_not_yet(execution, bar["now"]),
        "refused": refused,
        "why_not": why_not_with(may, change, GIVE_UP, read_only_too=True),
        "typed": {"reason": reason},
        "wrong": {"reason": wrong},
        "live_keys": [],
    }
    return render(request, "execution/run_give_up.html", context, status=status)


def _get_report(change: ChangeRequest) -> ReportShown:
    stored = stored_report(change) if change.state in RAN else None
    if stored is None:
        raise MissingObject(ReassignmentErrorCode.NO_REPORT, number=change.pk)
    return ReportShown(stored)


def _file_response(text: str, name: str, content_type: str) -> HttpResponse:
    response = HttpResponse(text, content_type=content_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response
