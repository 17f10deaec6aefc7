"""The wizard that proposes a reassignment: what, limits, why, and the plan with its verdict and rules.

The draft is on the server from the first step on, so two people can edit one; a form based on an old version shows the
conflict. The plan is made in a job; the third step shows its progress, the problems that prevent a plan, or the
finished plan.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from datetime import datetime
from functools import wraps
from http import HTTPStatus
from typing import Any, NotRequired, TypedDict

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.errors import MissingObject, form_error
from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes import services as drafting
from kafkadash.changes.access import needs_on_change, request_for
from kafkadash.changes.errors import ChangeRefused, EditedMeanwhile
from kafkadash.changes.kinds import ChangeKind, kind_of
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PlanErrorCode, RunOptions
from kafkadash.changes.review import CheckRow, ReviewChecks, freshness_of_checks
from kafkadash.clusters.access import PROPOSE, clusters_allowing, needs, read_only_text
from kafkadash.core.errors import UserError
from kafkadash.core.formatting import capitalize_first, format_duration
from kafkadash.core.formatting import format_size as size_text
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import choose_plural
from kafkadash.core.middleware import post_only
from kafkadash.core.problems import InputProblem
from kafkadash.jobs import runner as jobs
from kafkadash.jobs.models import Job, JobState
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning import proposal as drafts
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.forms import (
    ExplicitForm,
    LimitsForm,
    NewForm,
    PlannedForm,
    WhyForm,
    WizardForm,
    broker_choices,
    moment_of,
    option_fields,
    ticked_topics,
)
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.models import PlanReport, Upload
from kafkadash.planning.options import (
    FIRST_RATE,
    BadRate,
    bounds_of,
    bytes_per_second,
    format_megabytes,
    rate_above,
    suggest_rate,
)
from kafkadash.planning.problem_codes import CheckedRule
from kafkadash.planning.proposal import (
    BROUGHT,
    DRAIN,
    EXPLICIT,
    FINISH,
    KIND,
    LARGEST_BYTES,
    MODES,
    OPEN,
    ROLLBACK,
    SET_RF,
    SHOWN_BYTES,
    PlanDraft,
    PlanInput,
    broker_names,
    content_of,
    rollback_source,
    sent_too_much,
    step_url,
)
from kafkadash.planning.review import PlanPage, TimeAt, plan_page, proof_words
from kafkadash.planning.stored_topology import model_of
from kafkadash.planning.topic_choice import BadChoice, TooManyAtOnce, count_choice, names_in
from kafkadash.planning.window import model_words

DraftView = Callable[[HttpRequest, PlanDraft], HttpResponse]


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
            draft = PlanDraft(change)
            if not draft.possible(step):
                return redirect(step_url(number, draft.next_step))
            return view(request, draft)

        return guarded

    return decorate


def reload_draft(draft: PlanDraft) -> PlanDraft:
    """Return the draft as it is stored now, after somebody else edited it."""
    rows = ChangeRequest.objects.select_related("cluster", "cluster__policy", "author", "job", "artifact")
    return PlanDraft(rows.defer("artifact__data").get(pk=draft.change.pk))


def page_context(draft: PlanDraft, step: str) -> dict[str, Any]:
    """Return the context of the bars above each step."""
    return {
        **cluster_bar(draft.change.cluster, CollectorKind.METADATA),
        "section": "changes",
        "tab": "reassignments",
        "change": draft.change,
        "draft": draft,
        "plan_input": draft.plan_input,
        "steps": draft.steps(step),
        "page_address": reverse(f"planning:{step}", args=[draft.change.pk]),
        "saved_at": draft.change.edited_at or draft.change.created_at,
    }


def person(request: HttpRequest) -> User:
    assert isinstance(request.user, User)  # the views let nobody else in
    return request.user


_READ_OR_WRITE = ["GET", "HEAD", "POST"]
FIRST_LIMITS = RunOptions(throttle=FIRST_RATE, throttle_min=bounds_of(FIRST_RATE)[0], throttle_max=2 * FIRST_RATE)
"""Initial values of the fields."""


@require_http_methods(_READ_OR_WRITE)
@needs(PROPOSE, anywhere=True)
def new(request: HttpRequest) -> HttpResponse:
    """Show the form for cluster and mode; POST makes the draft.

    ``?cluster=…&mode=drain&brokers=3`` and ``?cluster=…&mode=balance&disks=1`` fill it in.
    """
    clusters = list(clusters_allowing(request.user, PROPOSE))
    if request.method == "POST":
        form = NewForm(request.POST, clusters=clusters)
        if form.is_valid():
            given = form.cleaned_data
            try:
                change = drafts.begin_draft(
                    given["cluster"], person(request), given["mode"], given["brokers"], request, disks=given["disks"]
                )
            except ChangeRefused as refused:
                form.add_error(None, form_error(refused.message))
            else:
                return redirect("planning:what", change.pk)
    else:
        form = NewForm(
            initial=_prefill_form(request.GET, [c.slug for c in clusters if not c.read_only]), clusters=clusters
        )
    context = {
        "section": "changes",
        "form": form,
        "clusters": [(c, read_only_text(c) if c.read_only else "") for c in clusters],
        "chosen_cluster": form["cluster"].value(),
        "chosen_mode": form["mode"].value(),
        "chosen_brokers": form["brokers"].value() or "",
        "chosen_disks": form["disks"].value(),
    }
    return render(request, "planning/new.html", context)


@require_http_methods(_READ_OR_WRITE)
@on_draft("what")
def what(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """Show the form for brokers, topics, or an assignment. A rollback has nothing to be chosen here."""
    if draft.plan_input.mode == ROLLBACK:
        context = {
            **page_context(draft, "what"),
            "left_words": rollback_source().describe_left(draft.plan_input.of),
        }
        return render(request, "planning/what_back.html", context)
    form = _what_form(request, draft)
    conflict = None
    turns_list = isinstance(form, PlannedForm) and form.turns_list
    if turns_list and request.headers.get("HX-Request") == "true":
        return render(request, "planning/_topic_picker.html", {"change": draft.change, "form": form})
    if request.method == "POST" and not turns_list and form.is_valid():
        plan_input = form.build_input(draft.plan_input)
        brought = form.brought if isinstance(form, ExplicitForm) else None
        try:
            drafts.save_what(draft, person(request), form.cleaned_data["version"], plan_input, request, brought)
        except EditedMeanwhile as edited:
            draft, conflict = reload_draft(draft), edited
        except ChangeRefused as refused:
            form.add_error(None, form_error(refused.message))
        else:
            return redirect("planning:limits", draft.change.pk)
    context = {
        **page_context(draft, "what"),
        "form": form,
        **_conflict_context(form, conflict, draft, _what_values(draft.plan_input)),
    }
    if isinstance(form, ExplicitForm):
        context |= {
            "upload": Upload.objects.filter(request=draft.change).defer("data").first(),
            "too_large": sent_too_much(request.GET),
            "most_bytes": LARGEST_BYTES,
        }
    return render(request, "planning/what.html", context)


@post_only("planning:what")
@on_draft("what")
def topic_count(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """How much the topics are that stand in the form now: a part of the page of the first step. It changes nothing."""
    pattern, excluded = request.POST.get("pattern", "").strip(), request.POST.get("excluded", "").strip()
    topics, status = sorted({*names_in(request.POST.get("topics", "")), *ticked_topics(request.POST)}), HTTPStatus.OK
    internal = draft.plan_input.mode != SET_RF or "internal" in request.POST
    context: dict[str, Any] = {"change": draft.change}
    try:
        context["counted"] = count_choice(
            draft.change.cluster, topics, pattern, excluded, internal=internal, typed_by=person(request).pk
        )
    except BadChoice as bad:
        context["wrong"] = str(bad)
        if isinstance(bad, TooManyAtOnce):
            status = HTTPStatus.TOO_MANY_REQUESTS
    return render(request, "planning/_topic_count.html", context, status=status)


@require_http_methods(_READ_OR_WRITE)
@on_draft("limits")
def limits(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """Throttle and its bounds, moves at once, window, disk limit, elections; saved, they are planned at once."""
    report = PlanReport.objects.filter(request=draft.change).first() if draft.planned else None
    inbound = report.impact.get("inbound_bytes_per_s") if report else None
    initial = limits_initial(draft.options or FIRST_LIMITS, draft.plan_input)
    data = request.POST.copy() if request.method == "POST" else None
    suggested = request.POST.get("use", "")  # the suggested throttle, without the script that fills it in
    if data and suggested:
        data.update({"throttle": suggested, "throttle_min": "", "throttle_max": ""})
    now = timezone.now()
    form = LimitsForm(
        data,
        initial={**initial, "version": draft.change.version},
        now=now,
        inbound=inbound,
        plan_input=draft.plan_input,
        choices=broker_choices(draft.change.cluster, now) if draft.plan_input.may_choose_targets else (),
    )
    conflict = None
    if data and not suggested and form.is_valid():
        plan_input = form.build_input(draft.plan_input)
        try:
            version = form.cleaned_data["version"]
            drafts.save_limits(draft, person(request), version, plan_input, form.options(plan_input), request)
            saved = reload_draft(draft)
            if not saved.planned:
                drafts.start_planning(saved.change, person(request), saved.change.version)
        except EditedMeanwhile as edited:
            draft, conflict = reload_draft(draft), edited
        except ChangeRefused as refused:
            form.add_error(None, form_error(refused.message))
        else:
            return redirect("planning:plan", draft.change.pk)
    stored = _limits_values(draft.options or FIRST_LIMITS, draft.plan_input)
    context = {
        **page_context(draft, "limits"),
        "form": form,
        "bytes": {name: _format_rate(form[name].value()) for name in ("throttle", "throttle_min", "throttle_max")},
        "planned": draft.planned,
        "inbound": inbound,
        "least_rate": None if inbound is None else rate_above(inbound),
        "suggested": "" if inbound is None else format_megabytes(suggest_rate(inbound)),
        "rates_words": model_words(model_of(draft.change.cluster, now), now),
        **_conflict_context(form, conflict, draft, stored),
    }
    return render(request, "planning/limits.html", context)


@require_http_methods(_READ_OR_WRITE)
@on_draft("why")
def why(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """The reason, and what is submitted."""
    change = draft.change
    initial = {"title": change.title, "why": change.why, "version": change.version}
    form = WhyForm(request.POST if request.method == "POST" else None, initial=initial)
    submits = request.POST.get("then") != "save"
    conflict = None
    if request.method == "POST" and form.is_valid():
        if submits and not form.cleaned_data["why"]:
            form.add_error("why", form_error(ReassignmentErrorCode.WHY_NEEDED))
        else:
            try:
                return _submit_draft(request, draft, form, submits=submits)
            except EditedMeanwhile as edited:
                draft, conflict = reload_draft(draft), edited
            except ChangeRefused as refused:
                form.add_error(None, form_error(refused.message))
    kind = kind_of(change.kind)
    now = timezone.now()
    context = {
        **page_context(draft, "why"),
        "form": form,
        "facts": kind.facts(draft.change) if draft.planned else (),
        "kind": kind,
        "checks": _repeat_checks(kind, draft.change, now) if draft.planned else None,
        "window_from": draft.change.not_before,
        "window_until": draft.change.not_after,
        **_conflict_context(form, conflict, draft, {"title": draft.change.title, "why": draft.change.why}),
    }
    return render(request, "planning/why.html", context)


def limits_initial(options: RunOptions, plan_input: PlanInput) -> dict[str, Any]:
    """Return the limits as the fields show them; bounds that follow the throttle are left empty."""
    bounds = options.throttle_min, options.throttle_max
    low, high = ("", "") if bounds == bounds_of(options.throttle) else map(format_megabytes, bounds)
    return {
        "throttle": format_megabytes(options.throttle),
        "throttle_min": low,
        "throttle_max": high,
        "per_broker": options.per_broker,
        "per_cluster": options.per_cluster,
        "not_before": _local(options.not_before),
        "not_after": _local(options.not_after),
        "disk_limit": f"{100 * plan_input.disk_limit:g}",
        "targets": [str(broker) for broker in plan_input.targets or ()],
        "most_replicas": "" if plan_input.most_replicas is None else str(plan_input.most_replicas),
        "elect_leaders": options.elect_leaders,
    }


def _limits_values(options: RunOptions, plan_input: PlanInput) -> dict[str, Any]:
    """Return the limits as the form gives them, to be compared."""
    moments = {name: moment_of(getattr(options, name)) for name in ("not_before", "not_after")}
    plain = {name: getattr(options, name) for name in RunOptions.__dataclass_fields__ if name not in moments}
    own = {
        "targets": plan_input.targets,
        "most_replicas": plan_input.most_replicas,
        "disk_limit": plan_input.disk_limit,
    }
    return {**plain, **moments, **own}


def _what_form(request: HttpRequest, draft: PlanDraft) -> PlannedForm | ExplicitForm:
    plan_input, change = draft.plan_input, draft.change
    data = request.POST if request.method == "POST" else None
    if plan_input.mode in BROUGHT:
        initial = {**pack_dataclass(plan_input), "text": _pasted_before(draft), "version": change.version}
        files = request.FILES if data is not None else None
        return ExplicitForm(data, files, initial=initial, cluster=change.cluster, before=plan_input)
    choices = broker_choices(change.cluster, timezone.now())
    return PlannedForm(data, cluster=change.cluster, choices=choices, before=plan_input, version=change.version)


def _what_values(plan_input: PlanInput) -> Mapping[str, Any]:
    """Return the input as the form gives it, to be compared."""
    return pack_dataclass(plan_input) if plan_input.mode in BROUGHT else PlannedForm.stored(plan_input)


def _pasted_before(draft: PlanDraft) -> str:
    """Return the pasted text, to be shown again while it is short; '' for a file, which is named instead."""
    upload = Upload.objects.filter(request=draft.change, name="", size__lte=SHOWN_BYTES).first()
    return content_of(upload).decode(errors="replace") if upload else ""


def _submit_draft(request: HttpRequest, draft: PlanDraft, form: WhyForm, *, submits: bool) -> HttpResponse:
    """Raises EditedMeanwhile and Refused."""
    change, user, version = draft.change, person(request), form.cleaned_data["version"]
    title, why = form.cleaned_data["title"], form.cleaned_data["why"]
    if title != change.title or why != change.why:
        edited = drafting.edit_draft(change, user, version, title=title, why=why, request=request)
        version = edited.version
    if not submits:
        return redirect("planning:why", change.pk)
    seen = request.POST.get("digest", "")
    services.submit(change, user, why=why, version=version, digest=seen, request=request)
    return redirect("changes:request", change.pk)


class DraftConflictContext(TypedDict):
    version: Any
    conflict: NotRequired[str]
    differences: NotRequired[list[tuple[str, str, str]]]
    lost_file: NotRequired[bool]


def _conflict_context(
    form: WizardForm, conflict: EditedMeanwhile | None, draft: PlanDraft, stored: Mapping[str, Any]
) -> DraftConflictContext:
    """Both versions side by side. What was typed stays in the form; saved again, it is what counts."""
    if conflict is None:
        return {"version": form["version"].value()}
    return {
        "version": draft.change.version,
        "conflict": str(conflict),
        "differences": form.differences(stored),
        "lost_file": isinstance(form, ExplicitForm) and form.brought is not None and bool(form.brought.name),
    }


def _prefill_form(query: Mapping[str, str], open_clusters: list[str]) -> dict[str, Any]:
    """A cluster that is the only one needs no choice."""
    mode = query.get("mode", "")
    return {
        "cluster": query.get("cluster", "") or (open_clusters[0] if len(open_clusters) == 1 else ""),
        "mode": mode if mode in MODES else "",
        "brokers": query.get("brokers", ""),
        "disks": query.get("disks") == "1",
    }


def _repeat_checks(kind: ChangeKind, change: ChangeRequest, now: datetime) -> ReviewChecks:
    """Return the checks as they are judged at this moment, from stored rows."""
    checked = kind.checks(change, now)
    freshness = freshness_of_checks(checked.facts_at, now)
    return ReviewChecks([CheckRow(check, freshness.stale) for check in checked.checks], freshness, repeated=True)


def _format_rate(typed: object) -> str:
    """Beside a rate in MB/s; '' where it is none."""
    try:
        return f"{bytes_per_second(str(typed)):,} bytes/s."
    except BadRate:
        return ""


def _local(stamp: str) -> str:
    """For a field of the type datetime-local, which here is UTC."""
    return stamp.removesuffix("Z")[:16]


_RULE_WORDS = {True: ("ok", "passed"), False: ("critical", "failed"), None: ("unknown", "unknown")}


@dataclass(frozen=True, slots=True)
class PlanVerdict:
    """``badge``: what is proven, or ''. ``figures``: (what, bytes in words)."""

    state: str
    word: str
    sentence: str
    reasons: Sequence[str]
    badge: str = ""
    figures: Sequence[tuple[str, str]] = ()


@dataclass(frozen=True, slots=True)
class WizardRule:
    """Rule of the independent checker."""

    state: str
    word: str
    name: str
    figure: str
    problems: Sequence[str]


@dataclass(frozen=True, slots=True)
class DurationChoice:
    """A throttle to start with."""

    rate: int
    megabytes: str
    seconds: float | None
    proposed: bool
    words: str


class PlannedContext(TypedDict):
    plan: NotRequired[PlanPage]
    verdict: NotRequired[PlanVerdict]
    times: NotRequired[list[DurationChoice]]
    rules: NotRequired[list[WizardRule]]
    notices: NotRequired[list[InputProblem]]


def plan_words(change: ChangeRequest, plan_input: PlanInput, query: QueryDict, now: datetime) -> PlannedContext:
    """Context of ``reassign/_planned.html``; empty where there is no report."""
    page = plan_page(change, query, now)
    report = PlanReport.objects.filter(request=change).only("rules", "took_s", "proof", "generate_bytes").first()
    if page is None or report is None:
        return {}
    found = (change.job.result or {}) if change.job else {}
    return {
        "plan": page,
        "verdict": build_verdict(page.impact, plan_input, report),
        "times": [_choice(time, page) for time in page.times],
        "rules": [_rule(stored) for stored in report.rules],
        "notices": [InputProblem.from_json(one) for one in found.get("notices", [])] if _is_of(found, change) else [],
    }


def build_verdict(impact: PlanImpact, plan_input: PlanInput, report: PlanReport) -> PlanVerdict:
    """Moves, bytes, and why not less: as far as it is proven; a brought plan is taken as it is."""
    proof = proof_words(report, plan_input.aim)
    took_s = report.took_s
    reasons = [
        "optimality verified" if proof and proof.verified else "independently verified",
        "planned in less than 0.1 s" if took_s < 0.1 else f"planned in {took_s:.1f} s",
    ]
    if impact.partitions_moved == 0:
        sentence = "No partitions change: the cluster already matches the request."
        return PlanVerdict("warning", "Empty plan", sentence, reasons)
    moved = _describe_moves(impact)
    if proof is not None and impact.copied_bytes != 0:
        return PlanVerdict("ok", "Plan ready", f"{moved} {proof.sentence}", reasons, proof.badge, proof.figures)
    return PlanVerdict("ok", "Plan ready", f"{moved} {_explain_minimum(plan_input)}".strip(), reasons)


def _describe_moves(impact: PlanImpact) -> str:
    moves = choose_plural("# move|# moves", impact.partitions_moved)
    if impact.copied_bytes is None:
        unsized = choose_plural("# partition|# partitions", impact.unsized)
        return f"{moves}, at least {size_text(impact.known_bytes)}, {unsized} of unknown size."
    if impact.copied_bytes == 0:
        changes = choose_plural("# change|# changes", impact.partitions_moved)
        if impact.only_reordered == impact.partitions_moved:
            return f"{changes} of replica order; no data moves."
        return f"{changes}, {impact.rf_down:,} of them with fewer replicas; no data is copied."
    return f"{moves}, {size_text(impact.copied_bytes)}."


def _explain_minimum(plan_input: PlanInput) -> str:
    """Why not less, where nothing is proven."""
    if plan_input.mode == DRAIN and not plan_input.rebalance and not plan_input.some_topics:
        hold = "holds this much data, so no plan to drain it|hold this much data, so no plan to drain them"
        names = capitalize_first(broker_names(plan_input.brokers))
        return f"{names} {choose_plural(hold, len(plan_input.brokers))} moves less."
    return "Exactly as given." if plan_input.mode in (EXPLICIT, FINISH, ROLLBACK) else ""


def _choice(time: TimeAt, page: PlanPage) -> DurationChoice:
    return DurationChoice(
        time.rate, format_megabytes(time.rate), time.seconds, time.proposed, _choice_words(time, page)
    )


def _choice_words(time: TimeAt, page: PlanPage) -> str:
    """Return the words on whether the time fits the window, and whether the approved bounds hold the rate."""
    words = []
    bar = page.window.bar
    if bar is not None and time.seconds is not None:
        spare = (bar.closes - bar.run_start).total_seconds() - time.seconds
        words.append("fits the window" if spare >= 0 else f"{format_duration(-spare)} too long for the window")
    if time.beyond:
        words.append("extends the bounds")
    return ", ".join(words) or ("proposed" if time.proposed else "")


def _rule(stored: Mapping[str, Any]) -> WizardRule:
    rule = unpack_dataclass(CheckedRule, stored)
    state, word = _RULE_WORDS[rule.passed]
    problems = [problem.cause if rule.passed is False else str(problem) for problem in rule.problems]
    return WizardRule(state, word, capitalize_first(rule.name), rule.figure, problems)


def _is_of(found: Mapping[str, Any], change: ChangeRequest) -> bool:
    """Return whether the last planning made the plan that the request has."""
    return bool(found.get("sha256")) and found["sha256"] == change.artifact_id


PROBLEMS_PAGE = 200
# A job that still waits after this many seconds means that no worker takes any.
WAITING_LONG_S = 10.0


@require_http_methods(["GET", "HEAD", "POST"])
@on_draft("plan")
def plan(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """How far planning is, what came of it; POST plans again. Its own poll is told when to load the page.

    Limits that were saved are planned already, so a draft that nobody planned leads there.
    """
    refused: ChangeRefused | str = ""
    if request.method == "POST":
        try:
            drafts.start_planning(draft.change, person(request), _version(request, draft))
        except ChangeRefused as error:
            draft, refused = reload_draft(draft), error
        else:
            return redirect("planning:plan", draft.change.pk)
    if request.headers.get("HX-Request") == "true":
        return _render_progress(request, draft)
    if not draft.plan_requested and not refused:
        return redirect("planning:limits", draft.change.pk)
    return render(request, "planning/plan.html", _plan_page(request, draft, refused=refused))


@post_only("planning:plan")
@on_draft("plan")
def stop(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """Cancels the planning of this draft."""
    if draft.job is not None:
        jobs.stop_job(draft.job, person(request))
    return redirect("planning:plan", draft.change.pk)


@post_only("planning:plan")
@on_draft("plan")
def plan_with(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """Turn on the option that the problems of the last plan need, and plan again."""
    option, mode = request.POST.get("option", ""), draft.plan_input.mode
    if option in option_fields(mode) and option in {name for name, _ in OPTION_FIXES.values()}:
        turned_on: dict[str, Any] = {option: True}
        plan_input = replace(draft.plan_input, **turned_on)
        try:
            drafts.save_what(draft, person(request), _version(request, draft), plan_input, request)
            saved = reload_draft(draft)
            drafts.start_planning(saved.change, person(request), saved.change.version)
        except ChangeRefused as error:
            draft = reload_draft(draft)
            return render(request, "planning/plan.html", _plan_page(request, draft, refused=error))
    return redirect("planning:plan", draft.change.pk)


@post_only("planning:plan")
@on_draft("plan")
def throttle(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    """Save the throttle's start, chosen among the durations; the bounds follow if they have to. The plan is kept."""
    options = draft.options
    assert options is not None  # else this step is not possible
    try:
        rate = bytes_per_second(request.POST.get("rate", ""))
        low, high = min(rate, options.throttle_min), max(rate, options.throttle_max)
        wanted = replace(options, throttle=rate, throttle_min=low, throttle_max=high)
        drafts.save_limits(draft, person(request), _version(request, draft), draft.plan_input, wanted, request)
    except (ChangeRefused, BadRate) as error:
        draft = reload_draft(draft)
        return render(request, "planning/plan.html", _plan_page(request, draft, refused=error))
    return redirect(f"{reverse('planning:plan', args=[draft.change.pk])}#duration")


class PlanningContext(TypedDict):
    job: Job | None
    under_way: bool
    may_stop: bool
    waited_long: NotRequired[bool]
    so_far_s: NotRequired[float]


def planning_context(job: Job | None, user: User) -> PlanningContext:
    """Return the context of a job as far as it is; ``under_way`` while the job waits or runs."""
    if job is None:
        return {"job": None, "under_way": False, "may_stop": False}
    now = timezone.now()
    begun = job.started_at or job.created_at
    return {
        "job": job,
        "under_way": job.state in OPEN,
        "may_stop": job.state in OPEN and jobs.may_stop(user, job),
        "waited_long": job.state == JobState.QUEUED and (now - job.created_at).total_seconds() > WAITING_LONG_S,
        "so_far_s": (now - begun).total_seconds(),
    }


def _render_progress(request: HttpRequest, draft: PlanDraft) -> HttpResponse:
    context = {"change": draft.change, "draft": draft, **planning_context(draft.job, person(request))}
    if context["under_way"]:
        return render(request, "planning/_planning.html", context)
    response = HttpResponse()
    response["HX-Redirect"] = reverse("planning:plan", args=[draft.change.pk])
    return response


def _plan_page(request: HttpRequest, draft: PlanDraft, *, refused: UserError | str = "") -> dict[str, Any]:
    """Return the context of the step: the plan, or the progress or the problems of the last attempt."""
    context = {
        **page_context(draft, "plan"),
        "refused": refused,
        **planning_context(draft.job, person(request)),
    }
    if draft.planned:
        change = draft.change
        words = plan_words(change, draft.plan_input, request.GET, timezone.now())
        figures = () if draft.moves_nothing else kind_of(change.kind).facts(change)
        return {**context, **words, "figures": figures, "outdated": draft.is_outdated(timezone.now())}
    return {**context, **_list_problems(request, draft)} if draft.job is not None else context


OPTION_FIXES: Mapping[str, tuple[str, str]] = {
    PlanErrorCode.LAST_OF_A_RACK: ("accept_fewer_racks", "Accept fewer racks"),
    PlanErrorCode.RACKS_MIXED: ("ignore_racks", "Plan without rack awareness"),
    PlanErrorCode.OTHER_FACTOR: ("change_rf", "Allow replication factor changes"),
}
"""Problem → the option that fixes it, with the button that turns it on."""
LIMIT_PROBLEMS = frozenset(
    {
        PlanErrorCode.DISK_LIMIT,
        PlanErrorCode.DISK_LIMIT_OF_A_DIRECTORY,
        PlanErrorCode.DISK_LIMIT_PASSED,
        PlanErrorCode.KEEPS_MORE_THAN_ALLOWED,
        PlanErrorCode.NO_ROOM_AT_THE_MAXIMUM,
        PlanErrorCode.TARGETS_UNKNOWN,
    }
)
PASSING_PROBLEMS = frozenset({PlanErrorCode.MOVES_ALREADY, PlanErrorCode.LEADER_MISSING})
"""Problems that end by themselves; the same request can be planned then."""
SCOPE_FAILURES = frozenset(
    {
        PlanErrorCode.PLANNER_OUT_OF_MEMORY,
        ReassignmentErrorCode.PLANNER_OUT_OF_TIME,
        ReassignmentErrorCode.JSON_NOT_STORED,
        ReassignmentErrorCode.NOTHING_TAKEN_BACK,
    }
)
"""Failures of the job that come again unless something else is asked for."""


@dataclass(frozen=True, slots=True)
class PlanFix:
    """Primary act on the page of a plan that failed: ``option`` is turned on, or another ``step`` is opened.

    Where neither is set, the same is planned again.
    """

    label: str
    option: str = ""
    step: str = ""


def find_fix(codes: AbstractSet[str], mode: str, failure: str = "") -> PlanFix:
    """Return the act that fixes all of these problems; editing the scope where no other does.

    ``failure``: the job's own error, where there are no problems.
    """
    if not codes and failure not in SCOPE_FAILURES:
        return PlanFix("Plan again")
    options = {OPTION_FIXES.get(code) for code in codes}
    option = options.pop() if len(options) == 1 else None
    if option is not None and option[0] in option_fields(mode):
        return PlanFix(option[1], option=option[0])
    if codes and codes <= LIMIT_PROBLEMS:
        return PlanFix("Change limits", step="limits")
    if codes and codes <= PASSING_PROBLEMS:
        return PlanFix("Plan again")
    return PlanFix("Edit scope", step="what")


class PlanProblemsContext(TypedDict):
    problems: list[Any]
    fix: NotRequired[PlanFix]
    fix_url: NotRequired[str]
    problem_count: Any
    problems_stored: int
    page: Page[Any]


def _list_problems(request: HttpRequest, draft: PlanDraft) -> PlanProblemsContext:
    """Return the problems that prevent a plan, ``PROBLEMS_PAGE`` at a time, and the act that fixes them."""
    assert draft.job is not None  # its problems are listed
    found = draft.job.result or {}
    stored = found.get("problems", [])
    page = Paginator(stored, PROBLEMS_PAGE).get_page(request.GET.get("page"))
    fix = find_fix({one.get("code", "") for one in stored}, draft.plan_input.mode, draft.job.error_code)
    return {
        "problems": [InputProblem.from_json(one) for one in page.object_list],
        "fix": fix,
        "fix_url": step_url(draft.change.pk, fix.step) if fix.step else "",
        "problem_count": found.get("problem_count", 0),
        "problems_stored": len(stored),
        "page": page,
    }


def _version(request: HttpRequest, draft: PlanDraft) -> int:
    """Return the version of the draft that was on the page; for a form without one, the present version."""
    given = request.POST.get("version", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else draft.change.version
