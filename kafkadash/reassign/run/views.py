"""The page of a run, parts of it that a browser fetches again, and what people ask of it there.

What is sent is a service's to do or to refuse (``orders``); a refusal is said on the page, with what was typed kept.
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
from kafkadash.changes import running
from kafkadash.changes.access import needs_on_change, request_for, seen_change, why_not, why_not_with
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.live import change_key
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Refused
from kafkadash.changes.review import bar_context
from kafkadash.changes.trail import newest
from kafkadash.changes.views import review_page
from kafkadash.changes.written import wrong_reason
from kafkadash.clusters.access import PROPOSE, START, VIEW, actions_allowed
from kafkadash.domain.errors import UserError
from kafkadash.domain.executor_state import IN_FLIGHT
from kafkadash.domain.messages import coded, message_text
from kafkadash.domain.workflow_states import State
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.models import Kind
from kafkadash.observe.one_moment import one_moment
from kafkadash.observe.revalidate import revalidated
from kafkadash.post_only import post_only
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Deed, Execution, Move, Order
from kafkadash.reassign.rates import both
from kafkadash.reassign.run import orders
from kafkadash.reassign.run.cancelling import goes_back
from kafkadash.reassign.run.chart import chart_context
from kafkadash.reassign.run.live_keys import MOVES, RUN
from kafkadash.reassign.run.may_steer import may_of
from kafkadash.reassign.run.moves_table import moves_context, moves_listing
from kafkadash.reassign.run.page import LIVE, part_of, run_shown
from kafkadash.reassign.run.replan import propose_other, replan_of
from kafkadash.reassign.run.report import stored_report
from kafkadash.reassign.run.report_text import ReportShown
from kafkadash.reassign.run.row_order import InFlight
from kafkadash.reassign.run.row_shown import RowShown
from kafkadash.reassign.run.stored import brokers_seen_away, execution_of, figures_of, freshness_of_figures
from kafkadash.reassign.run.summaries import short

SHOWN = (State.QUEUED, *LIVE, State.DONE, State.CANCELLED, State.FAILED)
"""States in which a request has a run to show."""
MOST_EVENTS = 12
_MOST_ORDERS = 3
_FIELDS = ("rate", "reason", "per_broker", "per_cluster", "entity", "deed")


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
    return render(request, "reassign/_run_moves.html", moves)


@require_safe
@needs_on_change(VIEW)
@revalidated
def run_chart(request: HttpRequest, number: int) -> HttpResponse:
    """The panel of the throughput alone."""
    execution = execution_of(number)
    if execution is None:
        return _to_its_review(number)
    return render(request, "reassign/_run_chart.html", chart_context(execution, timezone.now()))


def _not_steered(request: HttpRequest, change: ChangeRequest, sentence: str) -> HttpResponse:
    return _steer_page(request, change, HTTPStatus.FORBIDDEN, refused=sentence)


@post_only("reassign:run")
@needs_on_change(START, refused=_not_steered, read_only_too=True)
def run_pause(request: HttpRequest, number: int) -> HttpResponse:
    """Nothing more is submitted; what is in flight finishes. ``pause_reason`` may be empty."""
    change = request_for(request, number, START, read_only_too=True)
    return _steered(request, change, running.pause, said=f"#{number} is paused: nothing more is submitted.")


@post_only("reassign:run")
@needs_on_change(START, refused=_not_steered)
def run_resume(request: HttpRequest, number: int) -> HttpResponse:
    """``pause_reason``: why it may go on."""
    change = request_for(request, number, START)
    return _steered(
        request, change, running.resume, said=f"#{number} goes on.", missing=message_text(ChangeErrorCode.RESUME_REASON)
    )


def _not_allowed(request: HttpRequest, change: ChangeRequest, sentence: str) -> HttpResponse:
    return run_page(request, change, status=HTTPStatus.FORBIDDEN, refused=sentence)


@post_only("reassign:run")
@needs_on_change(START, refused=_not_allowed)
def run_throttle(request: HttpRequest, number: int) -> HttpResponse:
    """``rate`` in MB/s, ``reason``; ``seen`` is the rate that was on the page, ``twice`` and ``force`` are answers."""
    seen = request.POST.get("seen", "")
    return _asked(
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
            seen=None if _number(seen) < 0 else _number(seen),
            request=request,
        ),
        said=lambda rate: f"The throttle is {both(rate)} from the next step on.",
    )


@post_only("reassign:run")
@needs_on_change(START, refused=_not_allowed)
def run_parallel(request: HttpRequest, number: int) -> HttpResponse:
    """``per_broker`` and ``per_cluster``, ``reason``."""
    return _asked(
        request,
        number,
        "parallel",
        lambda change, user, reason: orders.set_parallel(
            change,
            user,
            _whole(request, "per_broker", "per broker"),
            _whole(request, "per_cluster", "in all"),
            reason,
            request=request,
        ),
        said=lambda _: "The next step keeps to these numbers.",
    )


@post_only("reassign:run")
@needs_on_change(START, refused=_not_allowed)
def run_foreign(request: HttpRequest, number: int) -> HttpResponse:
    """What is done about a throttle of others: ``entity``, ``deed``, ``reason``."""
    return _asked(
        request,
        number,
        "foreign",
        lambda change, user, reason: orders.throttle_owner(
            change, user, request.POST.get("entity", ""), request.POST.get("deed", ""), reason, request=request
        ),
        said=lambda _: "The next step does it.",
    )


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(VIEW)
def run_row(request: HttpRequest, number: int) -> HttpResponse:
    """One row (``move``, or ``topic`` and ``partition``): what is known of it, and what may be asked (``deed``)."""
    change = request_for(request, number)
    asked = request.POST if request.method == "POST" else request.GET
    execution = execution_of(number)
    if execution is None:
        return _to_its_review(number)
    move = _named(execution, asked)
    if move is None:
        raise MissingObject(ReassignmentErrorCode.NO_SUCH_PARTITION, number=number)
    if request.method != "POST":
        return _row_page(request, execution, move)
    refused = why_not(request, change, START, read_only_too=request.POST.get("deed") in _ENDING)
    if refused:
        return _row_page(request, execution, move, status=HTTPStatus.FORBIDDEN, refused=refused)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        orders.row(
            change,
            request.user,
            move.topic,
            move.partition,
            request.POST.get("deed", ""),
            request.POST.get("reason", ""),
            request=request,
        )
    except Refused as refusal:
        return _row_page(request, execution, move, status=HTTPStatus.CONFLICT, refused=refusal)
    messages.success(request, f"{move}: the next step does it.")
    return redirect(reverse("reassign:run", args=[number]))


def _replan_refused(request: HttpRequest, change: ChangeRequest, sentence: str) -> HttpResponse:
    return review_page(request, change, status=HTTPStatus.FORBIDDEN, refused=sentence)


@post_only("reassign:run")
@needs_on_change(PROPOSE, refused=_replan_refused)
def run_replan(request: HttpRequest, number: int) -> HttpResponse:
    """A draft that gives one row (``topic`` and ``partition``) other brokers; its first step shows them."""
    change = request_for(request, number, PROPOSE)
    execution = execution_of(number)
    move = _named(execution, request.POST) if execution else None
    if execution is None or move is None:
        refused = message_text(ReassignmentErrorCode.NO_SUCH_ROW_TO_REPLAN, number=number)
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=refused)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        draft = propose_other(change, request.user, move, request)
    except Refused as refusal:
        return _row_page(request, execution, move, status=HTTPStatus.CONFLICT, refused=refusal)
    return redirect("reassign:what", draft.pk)


def run_page(
    request: HttpRequest,
    change: ChangeRequest,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | str = "",
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, str] | None = None,
    asks: Mapping[str, str] | None = None,
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
    bar = cluster_bar(request, change.cluster, Kind.REASSIGNMENTS)
    now = bar["now"]
    shown = run_shown(execution, now, bar["standing"])
    may = actions_allowed(request.user, change.cluster)
    listing = moves_listing(request.GET)
    trail, trail_total = newest(change, MOST_EVENTS)
    context: dict[str, Any] = {
        **bar,
        **bar_context(request, change, may, now, short(execution, change, now)),
        **part_of(shown),
        "section": "changes",
        "tab": "reassignments",
        "pushed_figures": "reassign/_run_figures.html" if shown.live else "",
        "report": None if change.state in (State.QUEUED, *LIVE) else _report_of(change),
        "may": may_of(change, may),
        "moves": moves_context(execution, shown.figures, now, shown.counts, listing),
        "chart": chart_context(execution, now),
        "trail": trail,
        "trail_total": trail_total,
        "page_address": reverse("reassign:run", args=[change.pk]),
        "live_keys": _live_keys(change, listing.values["s"]),
        "refused": refused,
        "typed": typed or {},
        "wrong": wrong or {},
        "kept": [] if shown.live or change.state == State.QUEUED else [*filter(str.strip, _words(typed or {}))],
        "asks": asks or {},
    }
    return render(request, "reassign/run.html", context, status=status)


def _live_keys(change: ChangeRequest, show: str) -> list[str]:
    """The hint of the request in any case; what is pushed only while somebody works on the run."""
    keys = [change_key(change.pk)]
    if change.state in (State.QUEUED, *LIVE):
        keys.append(f"{RUN}:{change.pk}")
    return [*keys, f"{MOVES}:{change.pk}"] if change.state in LIVE and not show else keys


def _steered(
    request: HttpRequest,
    change: ChangeRequest,
    do: Callable[[ChangeRequest, User, str, HttpRequest], object],
    *,
    said: str,
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
    except Refused as refused:
        # Read again: what it says now is why.
        return _steer_page(request, seen_change(request, change.pk), HTTPStatus.CONFLICT, refused=refused)
    messages.success(request, said)
    return redirect("reassign:run", change.pk)


def _steer_page(
    request: HttpRequest, change: ChangeRequest, status: int, *, refused: UserError | str = "", wrong: str = ""
) -> HttpResponse:
    page = run_page if request.POST.get("on") == "run" else review_page
    typed = {"pause_reason": request.POST.get("pause_reason", "")}
    return page(
        request, change, status=status, refused=refused, typed=typed, wrong={"pause_reason": wrong} if wrong else {}
    )


def _asked(
    request: HttpRequest,
    number: int,
    form: str,
    do: Callable[[ChangeRequest, User, str], Any],
    said: Callable[[Any], str],
) -> HttpResponse:
    """Does it and shows the page again, or says on it why not."""
    change = request_for(request, number, START)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        done = do(change, request.user, request.POST.get("reason", ""))
    except Refused as refused:
        # Read again: what it says now is why.
        now, typed, sentence = seen_change(request, number), {**_typed(request), "form": form}, refused
        asks = refused.asks if isinstance(refused, orders.AsksAgain) else {}
        field = refused.field if isinstance(refused, orders.WrongField) else form
        wrong = {} if asks else {field: str(sentence)}
        return run_page(request, now, status=HTTPStatus.CONFLICT, refused=sentence, typed=typed, wrong=wrong, asks=asks)
    messages.success(request, said(done))
    return redirect(reverse("reassign:run", args=[number]))


def _row_page(
    request: HttpRequest,
    execution: Execution,
    move: Move,
    *,
    status: int = HTTPStatus.OK,
    refused: UserError | str = "",
) -> HttpResponse:
    change = execution.request
    bar = cluster_bar(request, change.cluster, Kind.REASSIGNMENTS)
    figures = figures_of(execution)
    may = actions_allowed(request.user, change.cluster)
    asked = Order.objects.filter(execution=execution, topic=move.topic, partition=move.partition)
    context = {
        **bar,
        "section": "changes",
        "tab": "reassignments",
        "page_address": f"{reverse('reassign:run_row', args=[change.pk])}?move={move.pk}",
        "live_keys": [],
        "number": change.pk,
        "change": change,
        "row": RowShown(
            move,
            InFlight(execution, figures).seen(move),
            bar["now"],
            change.pk,
            away=brokers_seen_away(execution, bar["now"]),
        ),
        "freshness": freshness_of_figures(execution, bar["now"]),
        "may": may_of(change, may),
        "why_not": why_not_with(may, change, START),
        "asked": asked.order_by("-pk")[:_MOST_ORDERS],
        "replan": replan_of(change, move),
        "why_no_plan": why_not_with(may, change, PROPOSE),
        "goes_back": goes_back(execution, [move])[0] if move.state in IN_FLIGHT else None,
        "refused": refused,
        "typed": _typed(request),
        "wrong": {"reason": refused} if refused else {},
    }
    return render(request, "reassign/run_row.html", context, status=status)


def _report_of(change: ChangeRequest) -> ReportShown | None:
    """How it ended; None where that is not stored."""
    stored = stored_report(change)
    return ReportShown(stored) if stored else None


def _to_its_review(number: int) -> HttpResponse:
    """That is all there is of a request without a run."""
    return redirect("changes:request", number)


def _named(execution: Execution, asked: QueryDict) -> Move | None:
    rows = Move.objects.filter(execution=execution)
    if "move" in asked:
        return rows.filter(pk=_number(asked.get("move", ""))).first()
    topic = asked.get("topic", "").replace("\x00", "")
    return rows.filter(topic=topic, partition=_number(asked.get("partition", ""))).first()


def _number(text: str) -> int:
    """-1, which names nothing, where it is no number."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < _MOST_DIGITS else -1


def _words(typed: Mapping[str, str]) -> Sequence[str]:
    """Reasons: all that is a loss to type anew."""
    return [typed.get("reason", ""), typed.get("pause_reason", "")]


def _typed(request: HttpRequest) -> dict[str, str]:
    return {name: request.POST.get(name, "") for name in _FIELDS}


def _whole(request: HttpRequest, field: str, what: str) -> int:
    number = _number(request.POST.get(field, "").strip())
    if number < 0:
        raise orders.WrongField(coded(ReassignmentErrorCode.MOVES_NO_NUMBER, where=what), field=field)
    return number


_MOST_DIGITS = 13
_ENDING = (Deed.CANCEL_ROW, Deed.GIVE_UP)
