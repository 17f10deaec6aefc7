"""Verify: compare any file of Kafka's format with its cluster. The page writes a row; a worker asks Kafka."""

from __future__ import annotations

import hashlib
import zlib
from datetime import timedelta
from http import HTTPStatus
from typing import Any, TypedDict
from uuid import UUID

from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_safe

from kafkadash.accounts.errors import MissingObject
from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, VIEW, cluster_for, is_allowed, needs, roles_text
from kafkadash.clusters.models import Cluster
from kafkadash.core.errors import UserError
from kafkadash.core.listing import FilterChoice, ListQuery
from kafkadash.core.messages import CodedMessage, choose_plural
from kafkadash.core.middleware import post_only
from kafkadash.core.problems import InputProblem
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import may_stop, stop_job
from kafkadash.monitoring.cluster_bar import cluster_bar
from kafkadash.monitoring.models import CollectorKind
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.finish import propose_rest
from kafkadash.planning.proposal import (
    SHOWN_BYTES,
    BroughtFile,
    TooLarge,
    edit_url,
    from_file,
    from_text,
    sent_too_much,
)
from kafkadash.verify.job import KIND, VerifiesAlready, load_verdicts, start_verification
from kafkadash.verify.models import Verification
from kafkadash.verify.rules import ORDER, VerifyState, summarize_counts

PAGE_SIZE = 100
LONGEST_PASTE = 2_000_000
"""Characters; Django takes 2.5 MB in a form's fields, files come apart from them."""
WAITING_LONG_S = 10.0
OLD = timedelta(minutes=10)
"""After this, an answer is shown as old."""
STATE_WORDS = {
    VerifyState.FAILED: ("critical", "failed"),
    VerifyState.MISSING: ("critical", "not found"),
    VerifyState.UNKNOWN: ("unknown", "not read"),
    VerifyState.IN_PROGRESS: ("warning", "in progress"),
    VerifyState.COMPLETED: ("ok", "completed"),
}


@require_http_methods(["GET", "HEAD", "POST"])
@needs(VIEW)
def verify(request: HttpRequest, slug: str) -> HttpResponse:
    """A file or pasted text becomes a job; its result has an address of its own."""
    cluster = cluster_for(request, slug, VIEW)
    wrong: UserError | str = sent_too_much(request.GET)
    if request.method == "POST":
        try:
            brought = _read_upload(request)
        except (TooLarge, _NothingAsked) as error:
            wrong = str(error)
        else:
            return _start_and_redirect(request, cluster, brought.name, brought.size, brought.data)
    return _verify_page(request, cluster, status=400 if wrong else 200, wrong=wrong)


@require_safe
@needs(VIEW)
def verification(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    """Show the result of a verification, or its progress; only that part for a page that waits (htmx)."""
    cluster = cluster_for(request, slug, VIEW)
    row = _verification(cluster, verify_id)
    part = request.headers.get("HX-Request") == "true"
    context = _context(row, request)
    if part and context["open"]:
        return render(request, "verify/_verify_progress.html", {"cluster": cluster, **context})
    if part:
        answered = HttpResponse()
        answered["HX-Refresh"] = "true"  # it has ended: the page has another title and a table now
        return answered
    return _verification_page(request, cluster, context)


@post_only("verify:verification")
@needs(VIEW)
def verify_again(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    """The same file, as the cluster is now."""
    cluster = cluster_for(request, slug, VIEW)
    row = _verification(cluster, verify_id)
    return _start_and_redirect(request, cluster, row.name, row.size, bytes(row.data))


@post_only("verify:verification")
@needs(VIEW)
def verify_stop(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    row = _verification(cluster_for(request, slug, VIEW), verify_id)
    assert isinstance(request.user, User)
    stop_job(row.job, request.user)
    return redirect("verify:verification", slug, verify_id)


@post_only("verify:verification")
@needs(PROPOSE)
def propose_unfinished(request: HttpRequest, slug: str, verify_id: UUID) -> HttpResponse:
    """Propose what is not done yet of the file, as the cluster is now; a refusal is shown on the result's page."""
    cluster = cluster_for(request, slug, PROPOSE)
    row = _verification(cluster, verify_id)
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    data = bytes(row.data)
    brought = BroughtFile(row.name, row.size, hashlib.sha256(zlib.decompress(data)).hexdigest(), data)
    try:
        draft = propose_rest(cluster, request.user, brought, request)
    except ChangeRefused as refused:
        context = _context(row, request)
        return _verification_page(request, cluster, context, status=HTTPStatus.CONFLICT, refused=refused.message)
    return redirect(edit_url(draft))


def _verification_page(
    request: HttpRequest,
    cluster: Cluster,
    context: dict[str, Any],
    *,
    status: int = HTTPStatus.OK,
    refused: CodedMessage | None = None,
) -> HttpResponse:
    told = {
        **cluster_bar(cluster, CollectorKind.REASSIGNMENTS),
        "tab": "reassignments",
        "may_propose": not cluster.read_only and is_allowed(request.user, PROPOSE, cluster),
        "refused": refused,
    }
    return render(request, "verify/verification.html", {**told, **context}, status=status)


def _start_and_redirect(request: HttpRequest, cluster: Cluster, name: str, size: int, data: bytes) -> HttpResponse:
    """To the page of the new verification, or why there is none."""
    assert isinstance(request.user, User)  # ``needs`` let nobody else in
    try:
        job = start_verification(cluster, request.user, name=name, size=size, data=data)
    except VerifiesAlready as refused:
        return _verify_page(request, cluster, status=409, wrong=refused, open_job=refused.open_job)
    except ChangeRefused as refused:
        return _verify_page(request, cluster, status=403, wrong=refused)
    return redirect("verify:verification", cluster.slug, job.pk)


def _verify_page(
    request: HttpRequest, cluster: Cluster, *, status: int, wrong: UserError | str, open_job: Job | None = None
) -> HttpResponse:
    typed = request.POST.get("json", "")
    context = {
        **cluster_bar(cluster, CollectorKind.REASSIGNMENTS),
        "tab": "reassignments",
        "page_address": reverse("verify:verify", args=[cluster.slug]),
        "wrong": wrong,
        "open_job": open_job,
        "typed": typed if len(typed) <= SHOWN_BYTES else "",
        "only_small": "" if is_allowed(request.user, PROPOSE, cluster) else roles_text(PROPOSE),
        "longest_paste": LONGEST_PASTE,
    }
    return render(request, "verify/verify.html", context, status=status)


class _NothingAsked(UserError):
    """``str()`` is a sentence."""


def _read_upload(request: HttpRequest) -> BroughtFile:
    """Raises TooLarge and _Nothing."""
    file, text = request.FILES.get("file"), request.POST.get("json", "")
    if file is not None and text.strip():
        raise _NothingAsked(ReassignmentErrorCode.FILE_AND_TEXT)
    if file is not None:
        return from_file(file)
    if not text.strip():
        raise _NothingAsked(ReassignmentErrorCode.NO_FILE)
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
        "problems": [InputProblem.from_json(problem) for problem in result.get("problems", ())],
        "problem_count": result.get("problem_count", 0),
        "notices": [InputProblem.from_json(notice) for notice in result.get("notices", ())],
        "title": _title(row, job, result),
        "by": job.requested_by.get_username() if job.requested_by else "",
    }
    if row.taken_at is not None:
        context |= _result(row, request)
        context["old"] = timezone.now() - row.taken_at > OLD
    return context


def _title(row: Verification, job: Job, result: dict[str, Any]) -> str:
    if row.taken_at is not None:
        return summarize_counts({VerifyState(state): number for state, number in row.counts.items()})
    if result.get("problem_count"):
        return f"File not verified: {choose_plural('# problem|# problems', result['problem_count'])}"
    if job.state == JobState.FAILED:
        return "Verification failed"
    if job.state == JobState.CANCELLED:
        return "Verification stopped"
    return "Verification in progress" if job.state == JobState.RUNNING else "Verification waiting for a worker"


class VerificationContext(TypedDict):
    listing: ListQuery
    segments: list[Any]
    total: Any
    page: Page[int]
    verdicts: list[Any]
    state: str
    unfinished: int


def _result(row: Verification, request: HttpRequest) -> VerificationContext:
    """Return one page of the verdicts. Verdicts are stored by state, so those of a state are contiguous."""
    counts = {state: row.counts.get(state.value, 0) for state in ORDER}
    listing = ListQuery(
        request.GET,
        choices=[FilterChoice("state", "state", {state.value: words for state, (_, words) in STATE_WORDS.items()})],
        sorts={"state": ["state"]},
    )
    chosen = VerifyState(listing.values["state"]) if listing.values["state"] else None
    before = sum(number for state, number in counts.items() if chosen and ORDER[state] < ORDER[chosen])
    number = counts[chosen] if chosen else sum(counts.values())
    page = Paginator(range(number), PAGE_SIZE).get_page(listing.page_number)
    start = before + page.start_index() - 1 if number else 0
    shown = load_verdicts(row, start, start + len(page.object_list))
    worst = next((state for state in ORDER if counts[state]), VerifyState.COMPLETED)
    return {
        "listing": listing,
        "segments": [(state.value, STATE_WORDS[state][1], counts[state]) for state in ORDER if counts[state]],
        "total": sum(counts.values()),
        "page": page,
        "verdicts": [(verdict, *STATE_WORDS[verdict.state]) for verdict in shown],
        "state": STATE_WORDS[worst][0],
        "unfinished": counts[VerifyState.FAILED],
    }
