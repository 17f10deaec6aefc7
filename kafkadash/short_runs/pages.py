"""Pages of changes that are lists of items: the proposal, the draft with its items, and the forms that steer a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.review import checks_of
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.views import review_page
from kafkadash.clusters.access import CANCEL, PROPOSE, START
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.middleware import post_only
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.short_runs.change_kind import preview_items, review_items
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import Items, ShortKind, is_short, items_of, short_kind
from kafkadash.short_runs.plans import (
    MadePlan,
    create_planned_draft,
    is_rollback,
    plan_draft,
    plan_items,
    shorten_title,
)
from kafkadash.short_runs.rollback import propose_rollback


@dataclass(frozen=True, slots=True)
class ItemProposal:
    """A proposal before it is a change: ``wanted`` is its input, ``title`` the one that is offered, of any length.

    ``notes``: what else the page says of it.
    """

    kind: str
    wanted: Mapping[str, Any]
    title: str
    notes: Sequence[CodedMessage] = ()


def show_proposal(request: HttpRequest, cluster: Cluster, proposal: ItemProposal) -> HttpResponse:
    """Show what a proposal would do, with the reason to type; POST makes it a change and submits that.

    The view that calls this has checked PROPOSE on the cluster.
    """
    made = plan_items(short_kind(proposal.kind), cluster, proposal.wanted)
    if request.method != "POST":
        return _show_proposal(request, cluster, proposal, made)
    why, saves = _typed(request, "why", ""), request.POST.get("then") == "save"
    wrong = {} if saves else _check_typed(request, made.kind, made.items)
    if wrong:
        return _show_proposal(request, cluster, proposal, made, wrong=wrong)
    try:
        draft = create_item_draft(request, cluster, proposal, _typed(request, "title", ""), why, made)
    except ChangeRefused as refused:
        return _show_proposal(request, cluster, proposal, made, refused)
    user = request.user
    assert isinstance(user, User), "a view of PROPOSE lets nobody else in"
    return redirect("short_runs:draft", draft.pk) if saves else _submit(request, draft, user, why)


def _show_proposal(
    request: HttpRequest,
    cluster: Cluster,
    proposal: ItemProposal,
    made: MadePlan,
    refused: ChangeRefused | None = None,
    wrong: Mapping[str, CodedMessage] | None = None,
) -> HttpResponse:
    bar = cluster_bar(cluster, CollectorKind.METADATA)
    context = {
        **bar,
        "section": "status",
        "tab": "",
        "title": _typed(request, "title", "") or shorten_title(proposal.title),
        "why": _typed(request, "why", ""),
        "wrong": wrong or {},
        "refused": refused,
        "left_out": made.left_out,
        "freshness": made.freshness,
        "items": preview_items(made.kind, made.items, made.freshness),
        "start_words": made.kind.start_words(made.items) if made.items else (),
        "notes": proposal.notes,
        **_confirm_context(request, made.kind, made.items),
    }
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return render(request, "short_runs/propose.html", context, status=status)


def create_item_draft(
    request: HttpRequest,
    cluster: Cluster,
    proposal: ItemProposal,
    typed_title: str = "",
    why: str = "",
    made: MadePlan | None = None,
) -> ChangeRequest:
    """Create a draft with its plan, ``made`` or made now, or nothing of it; the offered title where none is typed.

    Raises ChangeRefused, also where there is nothing to do.
    """
    user = request.user
    assert isinstance(user, User), "a view of PROPOSE lets nobody else in"
    title = typed_title or shorten_title(proposal.title)
    made = made or plan_items(short_kind(proposal.kind), cluster, proposal.wanted)
    return create_planned_draft(cluster, user, made, proposal.wanted, title, why, request)


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(PROPOSE)
def draft(request: HttpRequest, number: int) -> HttpResponse:
    """Show items and checks of a draft, and take title and reason; POST saves these and submits the change."""
    change = _short_change(request, number, PROPOSE)
    if change.state != ChangeState.DRAFT:
        return redirect("changes:request", number)
    user = request.user
    assert isinstance(user, User), "needs_on_change lets nobody else in"
    if request.method != "POST":
        return _show_draft(request, change)
    title, why, then = _typed(request, "title", ""), _typed(request, "why", ""), request.POST.get("then", "")
    try:
        saved = services.edit_draft(
            change, user, _version(request, change), title=title, why=why, drop_plan=then == "plan", request=request
        )
        if then == "plan":
            plan_draft(saved)
    except ChangeRefused as refused:
        return _show_draft(request, change, refused)
    if then in ("save", "plan"):
        return redirect("short_runs:draft", number)
    wrong = _check_typed(request, short_kind(saved.kind), items_of(saved))
    return _show_draft(request, saved, wrong=wrong) if wrong else _submit(request, saved, user, why)


def _submit(request: HttpRequest, change: ChangeRequest, user: User, why: str) -> HttpResponse:
    try:
        services.submit(change, user, why=why, version=change.version, digest=change.digest, request=request)
    except ChangeRefused as refused:
        return _show_draft(
            request, ChangeRequest.objects.select_related("cluster", "artifact").get(pk=change.pk), refused
        )
    return redirect("changes:request", change.pk)


def _show_draft(
    request: HttpRequest,
    change: ChangeRequest,
    refused: ChangeRefused | None = None,
    wrong: Mapping[str, CodedMessage] | None = None,
) -> HttpResponse:
    bar = cluster_bar(change.cluster, CollectorKind.METADATA)
    context = {
        **bar,
        "section": "changes",
        "tab": "",
        "change": change,
        "title": _typed(request, "title", change.title),
        "why": _typed(request, "why", change.why),
        "wrong": wrong or {},
        "refused": refused,
        "items": review_items(change, request, bar["now"]),
        "left_out": _read_left_out(change),
        "checks": checks_of(change, bar["now"]),
        **_confirm_context(request, short_kind(change.kind), items_of(change)),
    }
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return render(request, "short_runs/draft.html", context, status=status)


def _read_left_out(change: ChangeRequest) -> Sequence[CodedMessage]:
    """Return what the plan of a draft left out; where there is no plan, why there would be none now."""
    if change.artifact_id:
        return change.left_out_messages
    return plan_items(short_kind(change.kind), change.cluster, change.input, restores=is_rollback(change)).left_out


@post_only("changes:request")
@needs_on_change(START, read_only_too=True)
def pause(request: HttpRequest, number: int) -> HttpResponse:
    change = _short_change(request, number, START, read_only_too=True)
    return _steer(request, change, lambda user, reason: services.pause(change, user, reason, request))


@post_only("changes:request")
@needs_on_change(START)
def resume(request: HttpRequest, number: int) -> HttpResponse:
    change = _short_change(request, number, START)
    return _steer(request, change, lambda user, reason: services.resume(change, user, reason, request))


@require_http_methods(["GET", "HEAD", "POST"])
@needs_on_change(CANCEL, read_only_too=True)
def cancel(request: HttpRequest, number: int) -> HttpResponse:
    """Show how far the run is, and cancel it: items that were not sent are left as they are, done ones stay done."""
    change = _short_change(request, number, CANCEL, read_only_too=True)
    reason, wrong, refused = _typed(request, "reason", ""), {}, None
    if request.method == "POST":
        wrong = {} if reason else {"reason": coded(ChangeErrorCode.CANCEL_REASON)}
        if not wrong:
            assert isinstance(request.user, User), "needs_on_change lets nobody else in"
            try:
                services.cancel(change, request.user, reason, request)
                return redirect("changes:request", number)
            except ChangeRefused as error:
                refused = error
    bar = cluster_bar(change.cluster, CollectorKind.METADATA)
    context = {
        **bar,
        "section": "changes",
        "tab": "",
        "change": change,
        "items": review_items(change, request, bar["now"]),
        "reason": reason,
        "wrong": wrong,
        "refused": refused,
        "can_cancel": change.state in (ChangeState.EXECUTING, ChangeState.PAUSED),
    }
    status = HTTPStatus.CONFLICT if refused else HTTPStatus.BAD_REQUEST if wrong else HTTPStatus.OK
    return render(request, "short_runs/cancel.html", context, status=status)


@post_only("changes:request")
@needs_on_change(PROPOSE)
def rollback(request: HttpRequest, number: int) -> HttpResponse:
    """Propose the rollback of an ended run: a draft, whose page shows its items and takes the reason."""
    change = _short_change(request, number, PROPOSE)
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        draft = propose_rollback(change, request.user, request)
    except ChangeRefused as refused:
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=refused)
    return redirect("short_runs:draft", draft.pk)


def _steer(request: HttpRequest, change: ChangeRequest, act: Callable[[User, str], object]) -> HttpResponse:
    typed = _typed(request, "pause_reason", "")
    assert isinstance(request.user, User), "needs_on_change lets nobody else in"
    try:
        act(request.user, typed)
    except ChangeRefused as refused:
        return review_page(request, change, status=HTTPStatus.CONFLICT, refused=refused, typed={"pause_reason": typed})
    return redirect("changes:request", change.pk)


def _short_change(request: HttpRequest, number: int, action: str, *, read_only_too: bool = False) -> ChangeRequest:
    change = request_for(request, number, action, read_only_too=read_only_too)
    if not is_short(change.kind):
        raise MissingObject(ShortRunErrorCode.NO_SHORT_CHANGE, number=number)
    return change


def _typed(request: HttpRequest, name: str, otherwise: str) -> str:
    return request.POST.get(name, otherwise).replace("\0", "").strip()


def _version(request: HttpRequest, change: ChangeRequest) -> int:
    """Return the version that was on the page; the present one where the form does not say."""
    given = request.POST.get("version", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else change.version


def _check_typed(request: HttpRequest, kind: ShortKind, items: Items) -> dict[str, CodedMessage]:
    """Check what a person types before items are submitted: the reason, and the confirmation where the kind has one."""
    wrong = {} if _typed(request, "why", "") else {"why": coded(ChangeErrorCode.WHY_MISSING)}
    if kind.confirm is not None and items:
        expected = kind.confirm(items)
        if _typed(request, "confirm", "") != expected:
            wrong["confirm"] = coded(ShortRunErrorCode.NOT_CONFIRMED, expected=expected)
    return wrong


def _confirm_context(request: HttpRequest, kind: ShortKind, items: Items) -> dict[str, str]:
    expected = kind.confirm(items) if kind.confirm is not None and items else ""
    return {"confirm": expected, "confirm_note": f"type {expected}", "confirmed": _typed(request, "confirm", "")}
