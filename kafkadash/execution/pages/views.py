"""Views of the page of a run, of its parts that a browser fetches again, and of the commands posted there.

``execution.commands`` and ``changes.services`` execute or refuse a command; the page shows a refusal and keeps the
input.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes import services as running
from kafkadash.changes.access import needs_on_change, request_for, seen_change, why_not, why_not_with
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.request_validation import wrong_reason
from kafkadash.changes.review import bar_context
from kafkadash.changes.state_machine import RAN, RUNNING, STEPPED, ChangeState
from kafkadash.changes.trail import newest_entries
from kafkadash.changes.transitions import change_key
from kafkadash.changes.views import review_page
from kafkadash.clusters.access import PROPOSE, START, VIEW, actions_allowed
from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, coded, message_text
from kafkadash.core.middleware import post_only
from kafkadash.core.revalidation import revalidated
from kafkadash.core.rows import one_moment
from kafkadash.execution import commands as orders
from kafkadash.execution.commands import may_of
from kafkadash.execution.engine.state import IN_FLIGHT
from kafkadash.execution.live_keys import MOVES, RUN
from kafkadash.execution.models import Execution, Move, Order, OrderType
from kafkadash.execution.pages.chart import chart_context
from kafkadash.execution.pages.counts import brokers_seen_away, execution_of, figures_of, freshness_of_figures
from kafkadash.execution.pages.ending import goes_back
from kafkadash.execution.pages.report import ReportShown
from kafkadash.execution.pages.rows import RowShown, RowsInFlight, moves_context, moves_listing
from kafkadash.execution.pages.run import part_of, run_shown
from kafkadash.execution.pages.summaries import summarize_run
from kafkadash.execution.replan import propose_other, replan_of
from kafkadash.execution.report import stored_report
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.options import format_rate

SHOWN = (*STEPPED, *RAN)
"""States in which a request has a run to show."""
MOST_EVENTS = 12
_MOST_ORDERS = 3
_FIELDS = ("rate", "reason", "per_broker", "per_cluster", "entity", "order_type")


@require_safe
@needs_on_change(VIEW)
@revalidated
@one_moment()
def run(request: HttpRequest, number: int) -> HttpResponse:
    """How far it is. A request without a run has only its review."""
    return run_page(request, request_for(request, number))


@require_safe
@needs_on_change(VIEW)
@revalidated
@one_moment()
def run_moves(request: HttpRequest, number: int) -> HttpResponse:
    """The panel of the rows alone, for a page that renews a filter of them."""
    execution = execution_of(number)
    if execution is None:
        return _to_its_review(number)
    moves = moves_context(execution, figures_of(execution), timezone.now(), listing=moves_listing(request.GET))
    return render(request, "execution/_run_moves.html", moves)


@require_safe
@needs_on_change(VIEW)
@revalidated
def run_chart(request: HttpRequest, number: int) -> HttpResponse:
    """The panel of the throughput alone."""
    execution = execution_of(number)
    if execution is None:
        return _to_its_review(number)
    return render(request, "execution/_run_chart.html", chart_context(execution, timezone.now()))


def _not_steered(request: HttpRequest, change: ChangeRequest, error: UserError) -> HttpResponse:
    return _steer_page(request, change, HTTPStatus.FORBIDDEN, refused=error)


@post_only("execution:run")
@needs_on_change(START, refused=_not_steered, read_only_too=True)
def run_pause(request: HttpRequest, number: int) -> HttpResponse:
    """Nothing more is submitted; what is in flight finishes. ``pause_reason`` may be empty."""
    change = request_for(request, number, START, read_only_too=True)
    return _steer_run(request, change, running.pause, done_text=f"#{number} paused. No further moves are submitted.")


@post_only("execution:run")
@needs_on_change(START, refused=_not_steered)
def run_resume(request: HttpRequest, number: int) -> HttpResponse:
    """``pause_reason``: why it may go on."""
    change = request_for(request, number, START)
    return _steer_run(
        request,
        change,
        running.resume,
        done_text=f"#{number} resumed.",
        missing=message_text(ChangeErrorCode.RESUME_REASON),
    )


def _not_allowed(request: HttpRequest, change: ChangeRequest, error: UserError) -> HttpResponse:
    return run_page(request, change, status=HTTPStatus.FORBIDDEN, refused=error)


@post_only("execution:run")
@needs_on_change(START, refused=_not_allowed)
def run_throttle(request: HttpRequest, number: int) -> HttpResponse:
    """``rate`` in MB/s, ``reason``; ``seen`` is the rate that was on the page, ``twice`` and ``force`` are answers."""
    seen = request.POST.get("seen", "")
    return _perform_command(
        request,
        number,
        "throttle",
        lambda change, user, reason: orders.set_throttle(
            change,
            user,
            request.POST.get("rate", ""),
            reason,
            twice=request.POST.get("twice") == "yes",
            force=request.POST.get("force") == "yes",
            seen=None if _parse_number(seen) < 0 else _parse_number(seen),
            request=request,
        ),
        describe=lambda rate: f"The throttle is {format_rate(rate)} from the next step.",
    )


@post_only("execution:run")
@needs_on_change(START, refused=_not_allowed)
def run_parallel(request: HttpRequest, number: int) -> HttpResponse:
    """``per_broker`` and ``per_cluster``, ``reason``."""
    return _perform_command(
        request,
        number,
        "parallel",
        lambda change, user, reason: orders.set_parallel(
            change,
            user,
            _read_whole_number(request, "per_broker", "per broker"),
            _read_whole_number(request, "per_cluster", "in total"),
            reason,
            request=request,
        ),
        describe=lambda _: "The new limits apply from the next step.",
    )


@post_only("execution:run")
@needs_on_change(START, refused=_not_allowed)
def run_foreign(request: HttpRequest, number: int) -> HttpResponse:
    """Store an order about a throttle of others: ``entity``, ``order_type``, ``reason``."""
    return _perform_command(
        request,
        number,
        "foreign",
        lambda change, user, reason: orders.throttle_owner(
            change, user, request.POST.get("entity", ""), request.POST.get("order_type", ""), reason, request=request
        ),
        describe=lambda _: "Request stored. The next step executes it.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(VIEW)
def run_row(request: HttpRequest, number: int) -> HttpResponse:
    """Show one row (``move``, or ``topic`` and ``partition``) and its possible orders; POST gives an ``order_type``."""
    change = request_for(request, number)
    query = request.POST if request.method == "POST" else request.GET
    execution = execution_of(number)
    if execution is None:
        return _to_its_review(number)
    move = _find_named_row(execution, query)
    if move is None:
        raise MissingObject(ReassignmentErrorCode.NO_SUCH_PARTITION, number=number)
    if request.method != "POST":
        return _row_page(request, execution, move)
    refused = why_not(request, change, START, read_only_too=request.POST.get("order_type") in _ENDING)
    if refused:
        return _row_page(request, execution, move, status=HTTPStatus.FORBIDDEN, refused=refused)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        orders.order_row(
            change,
            request.user,
            move.topic,
            move.partition,
            request.POST.get("order_type", ""),
            request.POST.get("reason", ""),
            request=request,
        )
    except ChangeRefused as refusal:
        return _row_page(request, execution, move, status=HTTPStatus.CONFLICT, refused=refusal)
    messages.success(request, f"{move}: request stored. The next step executes it.")
    return redirect(reverse("execution:run", args=[number]))


def _replan_refused(request: HttpRequest, change: ChangeRequest, error: UserError) -> HttpResponse:
    return review_page(request, change, status=HTTPStatus.FORBIDDEN, refused=error)


@post_only("execution:run")
@needs_on_change(PROPOSE, refused=_replan_refused)
def run_replan(request: HttpRequest, number: int) -> HttpResponse:
    """A draft that gives one row (``topic`` and ``partition``) other brokers; its first step shows them."""
    change = request_for(request, number, PROPOSE)
    execution = execution_of(number)
    move = _find_named_row(execution, request.POST) if execution else None
    if execution is None or move is None:
        refused = message_text(ReassignmentErrorCode.NO_SUCH_ROW_TO_REPLAN, number=number)
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=refused)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        draft = propose_other(change, request.user, move, request)
    except ChangeRefused as refusal:
        return _row_page(request, execution, move, status=HTTPStatus.CONFLICT, refused=refusal)
    return redirect("planning:what", draft.pk)


def run_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | CodedMessage | str = "",
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, object] | None = None,
    asks: Mapping[str, CodedMessage] | None = None,
) -> HttpResponse:
    """The page as it is now; after a refusal with the sentence and with what was typed in ``typed["form"]``.

    ``wrong``: what is wrong with one field, by its name, or with what was sent as a whole, by the name of the form.
    ``asks``: questions to be answered with yes before it is done, by the name of the answer.
    """
    execution = execution_of(change.pk, with_samples=True) if change.state in SHOWN else None
    if execution is None and status == HTTPStatus.OK:
        return _to_its_review(change.pk)
    if execution is None:
        return review_page(request, change, status=status, refused=refused, typed=typed, wrong=wrong)
    bar = cluster_bar(change.cluster, CollectorKind.REASSIGNMENTS)
    now = bar["now"]
    shown = run_shown(execution, now, bar["standing"])
    may = actions_allowed(request.user, change.cluster)
    listing = moves_listing(request.GET)
    trail, trail_total = newest_entries(change, MOST_EVENTS)
    context: dict[str, Any] = {
        **bar,
        **bar_context(request, change, may, now, summarize_run(execution, change, now)),
        **part_of(shown),
        "section": "changes",
        "tab": "reassignments",
        "pushed_figures": "execution/_run_figures.html" if shown.live else "",
        "report": None if change.state in STEPPED else _report_of(change),
        "may": may_of(change, may),
        "moves": moves_context(execution, shown.figures, now, shown.counts, listing),
        "chart": chart_context(execution, now),
        "trail": trail,
        "trail_total": trail_total,
        "page_address": reverse("execution:run", args=[change.pk]),
        "live_keys": _live_keys(change, listing.values["s"]),
        "refused": refused,
        "typed": typed or {},
        "wrong": wrong or {},
        "kept": []
        if shown.live or change.state == ChangeState.QUEUED
        else [*filter(str.strip, _typed_reasons(typed or {}))],
        "asks": asks or {},
    }
    return render(request, "execution/run.html", context, status=status)


def _live_keys(change: ChangeRequest, show: str) -> list[str]:
    """The hint of the request in any case; what is pushed only while somebody works on the run."""
    keys = [change_key(change.pk)]
    if change.state in STEPPED:
        keys.append(f"{RUN}:{change.pk}")
    return [*keys, f"{MOVES}:{change.pk}"] if change.state in RUNNING and not show else keys


def _steer_run(
    request: HttpRequest,
    change: ChangeRequest,
    do: Callable[[ChangeRequest, User, str, HttpRequest], object],
    *,
    done_text: str,
    missing: str = "",
) -> HttpResponse:
    """Pauses or resumes, and leads to the run; or says why not on the page on which it was asked (``on``)."""
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    reason = request.POST.get("pause_reason", "")
    wrong = wrong_reason(reason, missing)
    if wrong:
        return _steer_page(request, change, HTTPStatus.BAD_REQUEST, wrong=wrong)
    try:
        do(change, request.user, reason, request)
    except ChangeRefused as refused:
        # Read again: what it says now is why.
        return _steer_page(request, seen_change(request, change.pk), HTTPStatus.CONFLICT, refused=refused)
    messages.success(request, done_text)
    return redirect("execution:run", change.pk)


def _steer_page(
    request: HttpRequest,
    change: ChangeRequest,
    status: int,
    *,
    refused: UserError | CodedMessage | str = "",
    wrong: str = "",
) -> HttpResponse:
    page = run_page if request.POST.get("on") == "run" else review_page
    typed = {"pause_reason": request.POST.get("pause_reason", "")}
    return page(
        request, change, status=status, refused=refused, typed=typed, wrong={"pause_reason": wrong} if wrong else {}
    )


def _perform_command(
    request: HttpRequest,
    number: int,
    form: str,
    do: Callable[[ChangeRequest, User, str], Any],
    describe: Callable[[Any], str],
) -> HttpResponse:
    """Does it and shows the page again, or says on it why not."""
    change = request_for(request, number, START)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        done = do(change, request.user, request.POST.get("reason", ""))
    except ChangeRefused as refused:
        # Read again: what it says now is why.
        now, typed, sentence = seen_change(request, number), {**_read_typed_fields(request), "form": form}, refused
        asks = refused.asks if isinstance(refused, orders.AsksAgain) else {}
        field = refused.field if isinstance(refused, orders.WrongField) else form
        wrong = {} if asks else {field: sentence}
        return run_page(request, now, status=HTTPStatus.CONFLICT, refused=sentence, typed=typed, wrong=wrong, asks=asks)
    messages.success(request, describe(done))
    return redirect(reverse("execution:run", args=[number]))


def _row_page(
    request: HttpRequest,
    execution: Execution,
    move: Move,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | CodedMessage | str = "",
) -> HttpResponse:
    change = execution.request
    bar = cluster_bar(change.cluster, CollectorKind.REASSIGNMENTS)
    figures = figures_of(execution)
    may = actions_allowed(request.user, change.cluster)
    orders = Order.objects.filter(execution=execution, topic=move.topic, partition=move.partition)
    context = {
        **bar,
        "section": "changes",
        "tab": "reassignments",
        "page_address": f"{reverse('execution:run_row', args=[change.pk])}?move={move.pk}",
        "live_keys": [],
        "number": change.pk,
        "change": change,
        "row": RowShown(
            move,
            RowsInFlight(execution, figures).seen(move),
            bar["now"],
            change.pk,
            away=brokers_seen_away(execution, bar["now"]),
        ),
        "freshness": freshness_of_figures(execution, bar["now"]),
        "may": may_of(change, may),
        "why_not": why_not_with(may, change, START),
        "orders": orders.order_by("-pk")[:_MOST_ORDERS],
        "replan": replan_of(change, move),
        "why_no_plan": why_not_with(may, change, PROPOSE),
        "goes_back": goes_back(execution, [move])[0] if move.state in IN_FLIGHT else None,
        "refused": refused,
        "typed": _read_typed_fields(request),
        "wrong": {"reason": refused} if refused else {},
    }
    return render(request, "execution/run_row.html", context, status=status)


def _report_of(change: ChangeRequest) -> ReportShown | None:
    """How it ended; None where that is not stored."""
    stored = stored_report(change)
    return ReportShown(stored) if stored else None


def _to_its_review(number: int) -> HttpResponse:
    """Redirect to the review: a request without a run has no other page."""
    return redirect("changes:request", number)


def _find_named_row(execution: Execution, query: QueryDict) -> Move | None:
    rows = Move.objects.filter(execution=execution)
    if "move" in query:
        return rows.filter(pk=_parse_number(query.get("move", ""))).first()
    topic = query.get("topic", "").replace("\x00", "")
    return rows.filter(topic=topic, partition=_parse_number(query.get("partition", ""))).first()


def _parse_number(text: str) -> int:
    """-1, which names nothing, where it is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS else -1


def _typed_reasons(typed: Mapping[str, str]) -> Sequence[str]:
    """Reasons: all that is a loss to type anew."""
    return [typed.get("reason", ""), typed.get("pause_reason", "")]


def _read_typed_fields(request: HttpRequest) -> dict[str, str]:
    return {name: request.POST.get(name, "") for name in _FIELDS}


def _read_whole_number(request: HttpRequest, field: str, what: str) -> int:
    number = _parse_number(request.POST.get(field, "").strip())
    if number < 0:
        raise orders.WrongField(coded(ReassignmentErrorCode.MOVES_NO_NUMBER, where=what), field=field)
    return number


_MOST_DIGITS = 13
_ENDING = (OrderType.CANCEL_ROW, OrderType.GIVE_UP)
