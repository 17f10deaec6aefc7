"""The wizard that proposes a reassignment: what, limits and why. The draft is on the server from the first step on."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from http import HTTPStatus
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.changes import drafting, services
from kafkadash.changes.kinds import ChangeKind, kind_of
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import EditedMeanwhile, Refused
from kafkadash.changes.review import CheckRow, Checks, freshness_of_checks
from kafkadash.clusters.access import PROPOSE, clusters_allowing, needs, read_only_text
from kafkadash.domain.messages import message_text
from kafkadash.domain.plan import Options
from kafkadash.post_only import post_only
from kafkadash.reassign import drafts
from kafkadash.reassign.asked import BROUGHT, MODES, ROLLBACK, Asked
from kafkadash.reassign.brokers import broker_choices
from kafkadash.reassign.drafts import Draft
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.forms import LimitsForm, NewForm, WhyForm, WizardForm, moment_of
from kafkadash.reassign.models import PlanReport, Upload
from kafkadash.reassign.rates import MB, BadRate, bytes_per_second, megabytes
from kafkadash.reassign.run.rollback import left_words
from kafkadash.reassign.topic_counts import BadChoice, TooManyAtOnce, counted, names_in
from kafkadash.reassign.uploads import LARGEST_BYTES, SHOWN_BYTES, content_of, sent_too_much
from kafkadash.reassign.what_forms import ExplicitForm, PlannedForm
from kafkadash.reassign.wizard import again, on_draft, page_context, person
from kafkadash.reassign.workload import model_of
from kafkadash.reassign.workload_words import model_words

_READ_OR_WRITE = ["GET", "HEAD", "POST"]
FIRST_LIMITS = Options(throttle=50 * MB, throttle_min=10 * MB, throttle_max=100 * MB)
"""What the fields hold before somebody sets limits."""


@require_http_methods(_READ_OR_WRITE)
@needs(PROPOSE, anywhere=True)
def new(request: HttpRequest) -> HttpResponse:
    """Where and how; ``?cluster=…&mode=drain&brokers=3`` fills it in. POST makes the draft."""
    clusters = list(clusters_allowing(request.user, PROPOSE))
    if request.method == "POST":
        form = NewForm(request.POST, clusters=clusters)
        if form.is_valid():
            given = form.cleaned_data
            try:
                change = drafts.begin(given["cluster"], person(request), given["mode"], given["brokers"], request)
            except Refused as refused:
                form.add_error(None, str(refused))
            else:
                return redirect("reassign:what", change.pk)
    else:
        form = NewForm(
            initial=_prefilled(request.GET, [c.slug for c in clusters if not c.read_only]), clusters=clusters
        )
    context = {
        "section": "changes",
        "form": form,
        "clusters": [(c, read_only_text(c) if c.read_only else "") for c in clusters],
        "chosen_cluster": form["cluster"].value(),
        "chosen_mode": form["mode"].value(),
        "chosen_brokers": form["brokers"].value() or "",
    }
    return render(request, "reassign/new.html", context)


@require_http_methods(_READ_OR_WRITE)
@on_draft("what")
def what(request: HttpRequest, draft: Draft) -> HttpResponse:
    """What is asked for: brokers, topics, or an assignment. A rollback has nothing to be chosen here."""
    if draft.asked.mode == ROLLBACK:
        context = {**page_context(request, draft, "what"), "left_words": left_words(draft.asked.of)}
        return render(request, "reassign/what_back.html", context)
    form = _what_form(request, draft)
    conflict = None
    if request.method == "POST" and form.is_valid():
        asked = form.asked(draft.asked)
        brought = form.brought if isinstance(form, ExplicitForm) else None
        try:
            drafts.save_what(draft, person(request), form.cleaned_data["version"], asked, request, brought)
        except EditedMeanwhile as edited:
            draft, conflict = again(draft), edited
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("reassign:limits", draft.change.pk)
    context = {
        **page_context(request, draft, "what"),
        "form": form,
        **_conflict_context(form, conflict, draft, _what_values(draft.asked)),
    }
    if isinstance(form, ExplicitForm):
        context |= {
            "upload": Upload.objects.filter(request=draft.change).defer("data").first(),
            "too_large": sent_too_much(request.GET),
            "most_bytes": LARGEST_BYTES,
        }
    return render(request, "reassign/what.html", context)


@post_only("reassign:what")
@on_draft("what")
def topic_count(request: HttpRequest, draft: Draft) -> HttpResponse:
    """How much the topics are that stand in the form now: a part of the page of the first step. It changes nothing."""
    pattern, excluded = request.POST.get("pattern", "").strip(), request.POST.get("excluded", "").strip()
    topics, status = names_in(request.POST.get("topics", "")), HTTPStatus.OK
    context: dict[str, Any] = {"change": draft.change}
    try:
        context["counted"] = counted(draft.change.cluster, topics, pattern, excluded, typed_by=person(request).pk)
    except BadChoice as bad:
        context["wrong"] = str(bad)
        if isinstance(bad, TooManyAtOnce):
            status = HTTPStatus.TOO_MANY_REQUESTS
    return render(request, "reassign/_topic_count.html", context, status=status)


@require_http_methods(_READ_OR_WRITE)
@on_draft("limits")
def limits(request: HttpRequest, draft: Draft) -> HttpResponse:
    """Throttle and its bounds, moves at once, window, disk limit, elections."""
    report = PlanReport.objects.filter(request=draft.change).first() if draft.planned else None
    inbound = report.impact.get("inbound_bytes_per_s") if report else None
    initial = limits_initial(draft.options or FIRST_LIMITS, draft.asked)
    data = request.POST if request.method == "POST" else None
    now = timezone.now()
    form = LimitsForm(
        data,
        initial={**initial, "version": draft.change.version},
        now=now,
        inbound=inbound,
        asked=draft.asked,
        choices=broker_choices(draft.change.cluster, now) if draft.asked.may_choose_targets else (),
    )
    conflict = None
    if request.method == "POST" and form.is_valid():
        asked = form.asked(draft.asked)
        try:
            version = form.cleaned_data["version"]
            drafts.save_limits(draft, person(request), version, asked, form.options(asked), request)
        except EditedMeanwhile as edited:
            draft, conflict = again(draft), edited
        except Refused as refused:
            form.add_error(None, str(refused))
        else:
            return redirect("reassign:plan", draft.change.pk)
    stored = _limits_values(draft.options or FIRST_LIMITS, draft.asked)
    context = {
        **page_context(request, draft, "limits"),
        "form": form,
        "bytes": {name: _bytes(form[name].value()) for name in ("throttle", "throttle_min", "throttle_max")},
        "planned": draft.planned,
        "rates_words": model_words(model_of(draft.change.cluster, now), now),
        **_conflict_context(form, conflict, draft, stored),
    }
    return render(request, "reassign/limits.html", context)


@require_http_methods(_READ_OR_WRITE)
@on_draft("why")
def why(request: HttpRequest, draft: Draft) -> HttpResponse:
    """The reason, and what is submitted."""
    change = draft.change
    initial = {"title": change.title, "why": change.why, "version": change.version}
    form = WhyForm(request.POST if request.method == "POST" else None, initial=initial)
    submits = request.POST.get("then") != "save"
    conflict = None
    if request.method == "POST" and form.is_valid():
        if submits and not form.cleaned_data["why"]:
            form.add_error("why", message_text(ReassignmentErrorCode.WHY_NEEDED))
        else:
            try:
                return _submitted(request, draft, form, submits=submits)
            except EditedMeanwhile as edited:
                draft, conflict = again(draft), edited
            except Refused as refused:
                form.add_error(None, str(refused))
    kind = kind_of(change.kind)
    now = timezone.now()
    context = {
        **page_context(request, draft, "why"),
        "form": form,
        "facts": kind.facts(draft.change) if draft.planned else (),
        "kind": kind,
        "checks": _checks(kind, draft.change, now) if draft.planned else None,
        "window_from": draft.change.not_before,
        "window_until": draft.change.not_after,
        **_conflict_context(form, conflict, draft, {"title": draft.change.title, "why": draft.change.why}),
    }
    return render(request, "reassign/why.html", context)


def limits_initial(options: Options, asked: Asked) -> dict[str, Any]:
    """As the fields show it."""
    return {
        "throttle": megabytes(options.throttle),
        "throttle_min": megabytes(options.throttle_min),
        "throttle_max": megabytes(options.throttle_max),
        "per_broker": options.per_broker,
        "per_cluster": options.per_cluster,
        "not_before": _local(options.not_before),
        "not_after": _local(options.not_after),
        "disk_limit": f"{100 * asked.disk_limit:g}",
        "targets": [str(broker) for broker in asked.targets or ()],
        "most_replicas": "" if asked.most_replicas is None else str(asked.most_replicas),
        "elect_leaders": options.elect_leaders,
    }


def _limits_values(options: Options, asked: Asked) -> dict[str, Any]:
    """As the form gives it, to be compared."""
    moments = {name: moment_of(getattr(options, name)) for name in ("not_before", "not_after")}
    plain = {name: getattr(options, name) for name in Options.__dataclass_fields__ if name not in moments}
    own = {"targets": asked.targets, "most_replicas": asked.most_replicas, "disk_limit": asked.disk_limit}
    return {**plain, **moments, **own}


def _what_form(request: HttpRequest, draft: Draft) -> PlannedForm | ExplicitForm:
    asked, change = draft.asked, draft.change
    data = request.POST if request.method == "POST" else None
    if asked.mode in BROUGHT:
        initial = {**asked.as_json(), "text": _pasted_before(draft), "version": change.version}
        return ExplicitForm(data, request.FILES if data is not None else None, initial=initial, before=asked)
    choices = broker_choices(change.cluster, timezone.now())
    return PlannedForm(data, cluster=change.cluster, choices=choices, before=asked, version=change.version)


def _what_values(asked: Asked) -> Mapping[str, Any]:
    """As the form gives it, to be compared."""
    return asked.as_json() if asked.mode in BROUGHT else PlannedForm.stored(asked)


def _pasted_before(draft: Draft) -> str:
    """What was pasted is shown again while it is short; a file is named instead."""
    upload = Upload.objects.filter(request=draft.change, name="", size__lte=SHOWN_BYTES).first()
    return content_of(upload).decode(errors="replace") if upload else ""


def _submitted(request: HttpRequest, draft: Draft, form: WhyForm, *, submits: bool) -> HttpResponse:
    """Raises EditedMeanwhile and Refused."""
    change, user, version = draft.change, person(request), form.cleaned_data["version"]
    title, why = form.cleaned_data["title"], form.cleaned_data["why"]
    if title != change.title or why != change.why:
        edited = drafting.edit_draft(change, user, version, title=title, why=why, request=request)
        version = edited.version
    if not submits:
        return redirect("reassign:why", change.pk)
    seen = request.POST.get("digest", "")
    services.submit(change, user, why=why, version=version, digest=seen, request=request)
    return redirect("changes:request", change.pk)


def _conflict_context(
    form: WizardForm, conflict: EditedMeanwhile | None, draft: Draft, stored: Mapping[str, Any]
) -> dict[str, Any]:
    """Both versions side by side. What was typed stays in the form; saved again, it is what counts."""
    if conflict is None:
        return {"version": form["version"].value()}
    return {
        "version": draft.change.version,
        "conflict": str(conflict),
        "differences": form.differences(stored),
        "lost_file": isinstance(form, ExplicitForm) and form.brought is not None and bool(form.brought.name),
    }


def _prefilled(query: Mapping[str, str], open_clusters: list[str]) -> dict[str, str]:
    """A cluster that is the only one needs no choice."""
    mode = query.get("mode", "")
    return {
        "cluster": query.get("cluster", "") or (open_clusters[0] if len(open_clusters) == 1 else ""),
        "mode": mode if mode in MODES else "",
        "brokers": query.get("brokers", ""),
    }


def _checks(kind: ChangeKind, change: ChangeRequest, now: datetime) -> Checks:
    """As they are judged at this moment, from stored rows."""
    checked = kind.checks(change, now)
    freshness = freshness_of_checks(checked.facts_at, now)
    return Checks([CheckRow(check, freshness.stale) for check in checked.checks], freshness, repeated=True)


def _bytes(typed: object) -> str:
    """Beside a rate in MB/s; '' where it is none."""
    try:
        return f"{bytes_per_second(str(typed)):,} bytes/s."
    except BadRate:
        return ""


def _local(stamp: str) -> str:
    """For a field of the type datetime-local, which here is UTC."""
    return stamp.removesuffix("Z")[:16]
