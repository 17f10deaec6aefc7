"""The wizard's third step: planning in a job, what keeps a plan from being made, and the finished plan."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods

from kafkadash.accounts.models import User
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.refusals import Refused
from kafkadash.domain.problem import Problem
from kafkadash.jobs import services as jobs
from kafkadash.jobs.models import Job, JobState
from kafkadash.post_only import post_only
from kafkadash.reassign import drafts
from kafkadash.reassign.drafts import OPEN, Draft
from kafkadash.reassign.plan_words import plan_words
from kafkadash.reassign.rates import BadRate, bytes_per_second
from kafkadash.reassign.wizard import again, on_draft, page_context, person

PROBLEMS_PAGE = 200
# A job that still waits after this many seconds means that no worker takes any.
WAITING_LONG_S = 10.0


@require_http_methods(["GET", "HEAD", "POST"])
@on_draft("plan")
def plan(request: HttpRequest, draft: Draft) -> HttpResponse:
    """How far planning is, what came of it; POST plans. Asked for by its own poll, it says when to load the page."""
    refused: Refused | str = ""
    if request.method == "POST":
        try:
            drafts.start_planning(draft.change, person(request), _version(request, draft))
        except Refused as error:
            draft, refused = again(draft), error
        else:
            return redirect("reassign:plan", draft.change.pk)
    if request.headers.get("HX-Request") == "true":
        return _progress(request, draft)
    context = {
        **page_context(request, draft, "plan"),
        "refused": refused,
        **planning_context(draft.job, person(request)),
    }
    if draft.planned:
        context |= _plan_context(request, draft)
    elif draft.job is not None:
        context |= _problems(request, draft.job)
    return render(request, "reassign/plan.html", context)


@post_only("reassign:plan")
@on_draft("plan")
def stop(request: HttpRequest, draft: Draft) -> HttpResponse:
    """Cancels the planning of this draft."""
    if draft.job is not None:
        jobs.stop(draft.job, person(request))
    return redirect("reassign:plan", draft.change.pk)


@post_only("reassign:plan")
@on_draft("plan")
def throttle(request: HttpRequest, draft: Draft) -> HttpResponse:
    """Where the throttle starts, chosen among the durations; the bounds follow if they have to. The plan is kept."""
    options = draft.options
    assert options is not None  # else this step is not possible
    try:
        rate = bytes_per_second(request.POST.get("rate", ""))
        low, high = min(rate, options.throttle_min), max(rate, options.throttle_max)
        wanted = replace(options, throttle=rate, throttle_min=low, throttle_max=high)
        drafts.save_limits(draft, person(request), _version(request, draft), draft.asked, wanted, request)
    except (Refused, BadRate) as error:
        draft = again(draft)
        context = {
            **page_context(request, draft, "plan"),
            "refused": error,
            **planning_context(draft.job, person(request)),
        }
        if draft.planned:
            context |= _plan_context(request, draft)
        return render(request, "reassign/plan.html", context)
    return redirect(f"{reverse('reassign:plan', args=[draft.change.pk])}#duration")


def planning_context(job: Job | None, user: User) -> dict[str, Any]:
    """Of a job as far as it is; ``under_way`` while it waits or runs."""
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


def _progress(request: HttpRequest, draft: Draft) -> HttpResponse:
    context = {"change": draft.change, "draft": draft, **planning_context(draft.job, person(request))}
    if context["under_way"]:
        return render(request, "reassign/_planning.html", context)
    response = HttpResponse()
    response["HX-Redirect"] = reverse("reassign:plan", args=[draft.change.pk])
    return response


def _problems(request: HttpRequest, job: Job) -> dict[str, Any]:
    """What keeps the plan from being made, ``PROBLEMS_PAGE`` at a time."""
    found = job.result or {}
    stored = found.get("problems", [])
    page = Paginator(stored, PROBLEMS_PAGE).get_page(request.GET.get("page"))
    return {
        "problems": [Problem.from_json(one) for one in page.object_list],
        "problem_count": found.get("problem_count", 0),
        "problems_stored": len(stored),
        "page": page,
    }


def _plan_context(request: HttpRequest, draft: Draft) -> dict[str, Any]:
    change = draft.change
    kind = kind_of(change.kind)
    words = plan_words(change, draft.asked, request.GET, timezone.now())
    return {**words, "figures": kind.facts(change)}


def _version(request: HttpRequest, draft: Draft) -> int:
    """Of the draft that was on the page; a form without one means the draft as it is."""
    given = request.POST.get("version", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 10 else draft.change.version
