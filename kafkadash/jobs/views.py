"""Connection tests from the settings pages: start one, watch it, cancel it. The page only writes and reads a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypedDict
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import ActionForbidden, MissingObject
from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, cluster_for, is_allowed, needs
from kafkadash.clusters.forms import ConnectionForm
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import ClusterRefused
from kafkadash.core.messages import CodedMessage, unpack_value
from kafkadash.core.middleware import post_only
from kafkadash.jobs.connection_test import KIND, start_test
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import request_cancel

# A job that still waits after this many seconds means that no worker takes any.
WAITING_LONG_S = 10.0

_VERDICTS = {
    JobState.QUEUED: ("unknown", "Waiting for a worker"),
    JobState.RUNNING: ("unknown", "Testing connection"),
    JobState.DONE: ("ok", "Connection OK"),
    JobState.FAILED: ("critical", "Connection failed"),
    JobState.CANCELLED: ("unknown", "Cancelled"),
}


@post_only("clusters:cluster")
@needs(MANAGE)
def test(request: HttpRequest, slug: str) -> HttpResponse:
    """Tries a registered cluster with what is typed in its form; secrets left empty are the stored ones."""
    return _start_test(request, cluster_for(request, slug, MANAGE))


@post_only("clusters:register")
@needs(MANAGE)
def test_unsaved(request: HttpRequest) -> HttpResponse:
    """Tries what is typed for a cluster that is not registered yet."""
    return _start_test(request, None)


@require_safe
@needs(MANAGE, anywhere=True)
def result(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """How far a test is, on a page of its own, or only that part for a page that has it (htmx)."""
    job = _get_job(request, job_id)
    template = "jobs/_test.html" if _is_part(request) else "jobs/test.html"
    own_page = not _is_part(request) or request.GET.get("page") == "own"
    context = {"section": "settings", "cluster": job.cluster, "own_page": own_page, **test_context(job)}
    return render(request, template, context)


@post_only("jobs:result")
@needs(MANAGE, anywhere=True)
def cancel(request: HttpRequest, job_id: UUID) -> HttpResponse:
    request_cancel(_get_job(request, job_id).pk)
    own_page = "?page=own" if request.POST.get("page") == "own" else ""
    return redirect(f"{reverse('jobs:result', args=[job_id])}{own_page}")


class ConnectionTestContext(TypedDict):
    job: Job
    open: bool
    state: str
    word: str
    steps: list[Any]
    found: Any
    error: CodedMessage | None
    no_worker: bool


def test_context(job: Job) -> ConnectionTestContext:
    """Return a test's state, its steps so far, and the message of a failure unless a step says it already."""
    found = job.result or {}
    steps = found.get("steps", [])
    state, word = _VERDICTS[JobState(job.state)]
    if job.state == JobState.DONE and any(step["state"] in ("warning", "critical") for step in steps):
        state, word = "warning", "Connection OK, with warnings"
    waited = (timezone.now() - job.created_at).total_seconds()
    told = bool(steps) and steps[-1]["state"] in ("critical", "running")  # it failed there, and that step says why
    return {
        "job": job,
        "open": job.state in (JobState.QUEUED, JobState.RUNNING),
        "state": state,
        "word": word,
        "steps": [_step_context(step, job) for step in steps],
        "found": found,
        "error": None if told else job.error,
        "no_worker": job.state == JobState.QUEUED and waited > WAITING_LONG_S,
    }


def _step_context(step: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """A step that was running when the job ended has no outcome of its own."""
    if step["state"] != "running":
        return {**step, "said": unpack_value(step["said"]), "items": unpack_value(step["items"])}
    ended = job.state not in (JobState.QUEUED, JobState.RUNNING)
    return {
        **step,
        "state": "unknown",
        "said": job.error or "Not finished." if ended else "…",
        "running": not ended,
    }


def _start_test(request: HttpRequest, cluster: Cluster | None) -> HttpResponse:
    form = ConnectionForm(request.POST, cluster=cluster)
    refusals: list[tuple[str, object]] = []
    if form.is_valid():
        try:
            assert isinstance(request.user, User)  # ``needs`` let nobody else in
            job = start_test(request.user, cluster, form.connection(), request=request)
        except ClusterRefused as refused:
            form.refuse(refused)
        except SecretError as error:
            refusals.append(("", error))
        else:
            if not _is_part(request):
                return redirect("jobs:result", job.pk)
            return render(request, "jobs/_test.html", {"cluster": cluster, **test_context(job)})
    refusals += [(f"{field.label}: " if field else "", message) for field, message in form.wrong()]
    template = "jobs/_not_tested.html" if _is_part(request) else "jobs/not_tested.html"
    return render(request, template, {"section": "settings", "cluster": cluster, "refusals": refusals})


def _get_job(request: HttpRequest, job_id: UUID) -> Job:
    job = Job.objects.select_related("cluster").filter(pk=job_id, kind=KIND).first()
    if job is None or (job.cluster is not None and job.cluster.removed_at is not None):
        raise MissingObject(JobErrorCode.NO_SUCH_TEST)
    if not is_allowed(request.user, MANAGE, job.cluster):
        raise ActionForbidden(JobErrorCode.TEST_FOR_ADMINISTRATORS)
    return job


def _is_part(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"
