"""Verify: compare any file of Kafka's format with its cluster. The page writes a row; a worker asks Kafka."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.access import PROPOSE, VIEW, allowed, cluster_for, needs, roles_text
from kafkadash.clusters.models import Cluster
from kafkadash.domain.errors import UserError
from kafkadash.domain.problem import Problem
from kafkadash.domain.verify import ORDER, State, answer
from kafkadash.domain.wording import count
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.services import may_stop, stop
from kafkadash.observe.cluster_bar import cluster_bar
from kafkadash.observe.listing import Choice, Listing
from kafkadash.observe.models import Kind
from kafkadash.post_only import post_only
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Verification
from kafkadash.reassign.uploads import SHOWN_BYTES, Brought, TooLarge, from_file, from_text, sent_too_much
from kafkadash.reassign.verify_job import KIND, VerifiesAlready, start_verification, stored

PAGE_SIZE = 100
LONGEST_PASTE = 2_000_000
"""Characters; Django takes 2.5 MB in a form's fields, files come apart from them."""
WAITING_LONG_S = 10.0
OLD = timedelta(minutes=10)
"""After this, an answer is no longer shown as what is now."""
STATE_WORDS = {
    State.FAILED: ("critical", "failed"),
    State.MISSING: ("critical", "does not exist"),
    State.UNKNOWN: ("unknown", "not read"),
    State.IN_PROGRESS: ("warning", "in progress"),
    State.COMPLETED: ("ok", "completed"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW)
def verify(request: HttpRequest, slug: str) -> HttpResponse:
    """A file or pasted text becomes a job; its result has an address of its own."""
    cluster = cluster_for(request, slug, VIEW)
    wrong = sent_too_much(request.GET)
    if request.method == "POST":
        try:
            brought = _brought(request)
        except (TooLarge, _Nothing) as error:
            wrong = str(error)
        else:
            return _started(request, cluster, brought.name, brought.size, brought.data)
    return _verify_page(request, cluster, status=400 if wrong else 200, wrong=wrong)


@require_safe
@needs(VIEW)
def verification(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    """What came of it, or how far it is; only that part for a page that waits (htmx)."""
    cluster = cluster_for(request, slug, VIEW)
    row = _verification(cluster, verify_id)
    part = request.headers.get("HX-Request") == "true"
    context = _context(row, request)
    if part and context["open"]:
        return render(request, "reassign/_verify_progress.html", {"cluster": cluster, **context})
    if part:
        answered = HttpResponse()
        answered["HX-Refresh"] = "true"  # it has ended: the page has another title and a table now
        return answered
    return render(
        request,
        "reassign/verification.html",
        {**cluster_bar(request, cluster, Kind.REASSIGNMENTS), "tab": "reassignments", **context},
    )


@post_only("reassign:verification")
@needs(VIEW)
def verify_again(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    """The same file, as the cluster is now."""
    cluster = cluster_for(request, slug, VIEW)
    row = _verification(cluster, verify_id)
    return _started(request, cluster, row.name, row.size, bytes(row.data))


@post_only("reassign:verification")
@needs(VIEW)
def verify_stop(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    row = _verification(cluster_for(request, slug, VIEW), verify_id)
    assert isinstance(request.user, User)
    stop(row.job, request.user)
    return redirect("reassign:verification", slug, verify_id)


def _started(request: HttpRequest, cluster: Cluster, name: str, size: int, data: bytes) -> HttpResponse:
    """To the page of the new verification, or why there is none."""
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    try:
        job = start_verification(cluster, request.user, name=name, size=size, data=data)
    except VerifiesAlready as refused:
        return _verify_page(request, cluster, status=409, wrong=str(refused), open_job=refused.open_job)
    except Refused as refused:
        return _verify_page(request, cluster, status=403, wrong=str(refused))
    return redirect("reassign:verification", cluster.slug, job.pk)


def _verify_page(
    request: HttpRequest, cluster: Cluster, *, status: int, wrong: str, open_job: Job | None = None
) -> HttpResponse:
    typed = request.POST.get("json", "")
    context = {
        **cluster_bar(request, cluster, Kind.REASSIGNMENTS),
        "tab": "reassignments",
        "page_address": reverse("reassign:verify", args=[cluster.slug]),
        "wrong": wrong,
        "open_job": open_job,
        "typed": typed if len(typed) <= SHOWN_BYTES else "",
        "only_small": "" if allowed(request.user, PROPOSE, cluster) else roles_text(PROPOSE),
        "longest_paste": LONGEST_PASTE,
    }
    return render(request, "reassign/verify.html", context, status=status)


class _Nothing(UserError):
    """``str()`` is a sentence."""


def _brought(request: HttpRequest) -> Brought:
    """Raises TooLarge and _Nothing."""
    file, text = request.FILES.get("file"), request.POST.get("json", "")
    if file is not None and text.strip():
        raise _Nothing(ReassignmentErrorCode.FILE_AND_TEXT)
    if file is not None:
        return from_file(file)
    if not text.strip():
        raise _Nothing(ReassignmentErrorCode.NO_FILE)
    return from_text(text)


def _verification(cluster: Cluster, verify_id: UUID) -> Verification:
    rows = Verification.objects.select_related("job", "job__requested_by").defer("data")
    row = rows.filter(job=verify_id, job__kind=KIND, job__cluster=cluster).first()
    if row is None:
        raise MissingObject(ReassignmentErrorCode.NO_SUCH_VERIFICATION, cluster=cluster.name)
    return row


def _context(row: Verification, request: HttpRequest) -> dict[str, Any]:
    job = row.job
    is_open = job.state in (JobState.QUEUED, JobState.RUNNING)
    result = job.result or {}
    waited = (timezone.now() - job.created_at).total_seconds()
    context: dict[str, Any] = {
        "row": row,
        "job": job,
        "open": is_open,
        "may_stop": is_open and isinstance(request.user, User) and may_stop(request.user, job),
        "no_worker": job.state == JobState.QUEUED and waited > WAITING_LONG_S,
        "problems": [Problem.from_json(problem) for problem in result.get("problems", ())],
        "problem_count": result.get("problem_count", 0),
        "notices": result.get("notices", ()),
        "title": _title(row, job, result),
        "by": job.requested_by.get_username() if job.requested_by else "",
    }
    if row.taken_at is not None:
        context |= _result(row, request)
        context["old"] = timezone.now() - row.taken_at > OLD
    return context


def _title(row: Verification, job: Job, result: dict[str, Any]) -> str:
    if row.taken_at is not None:
        return answer({State(state): number for state, number in row.counts.items()})
    if result.get("problem_count"):
        return f"The file cannot be verified: {count(result['problem_count'], 'problem')}."
    if job.state == JobState.FAILED:
        return "Nothing was verified."
    if job.state == JobState.CANCELLED:
        return "Stopped before anything was verified."
    return "Verifying." if job.state == JobState.RUNNING else "Waiting for a worker."


def _result(row: Verification, request: HttpRequest) -> dict[str, Any]:
    """One page of the verdicts. They are stored by state, so one state is a run of them."""
    counts = {state: row.counts.get(state.value, 0) for state in ORDER}
    listing = Listing(
        request.GET,
        choices=[Choice("state", "state", {state.value: words for state, (_, words) in STATE_WORDS.items()})],
        sorts={"state": ["state"]},
    )
    chosen = State(listing.values["state"]) if listing.values["state"] else None
    before = sum(number for state, number in counts.items() if chosen and ORDER[state] < ORDER[chosen])
    number = counts[chosen] if chosen else sum(counts.values())
    page = Paginator(range(number), PAGE_SIZE).get_page(listing.page_number)
    start = before + page.start_index() - 1 if number else 0
    shown = stored(row, start, start + len(page.object_list))
    worst = next((state for state in ORDER if counts[state]), State.COMPLETED)
    return {
        "listing": listing,
        "segments": [(state.value, STATE_WORDS[state][1], counts[state]) for state in ORDER if counts[state]],
        "total": sum(counts.values()),
        "page": page,
        "verdicts": [(verdict, *STATE_WORDS[verdict.state]) for verdict in shown],
        "state": STATE_WORDS[worst][0],
        "moving": counts[State.IN_PROGRESS],
    }
