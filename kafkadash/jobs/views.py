"""Connection tests from the settings pages: start one, watch it, cancel it. The page only writes and reads a row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_safe

from kafkadash.accounts.errors import ActionForbidden, MissingObject
from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, allowed, cluster_for, needs
from kafkadash.clusters.forms import ConnectionForm
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.clusters.services import Refused
from kafkadash.jobs.connection_test import KIND, start_test
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.services import request_cancel
from kafkadash.post_only import post_only

# A job that still waits after this many seconds means that no worker takes any.
WAITING_LONG_S = 10.0

_VERDICTS = {
    JobState.QUEUED: ("unknown", "Waiting for a worker"),
    JobState.RUNNING: ("unknown", "Testing"),
    JobState.DONE: ("ok", "The connection works"),
    JobState.FAILED: ("critical", "The connection does not work"),
    JobState.CANCELLED: ("unknown", "Cancelled"),
}


@post_only("clusters:cluster")
@needs(MANAGE)
def test(request: HttpRequest, slug: str) -> HttpResponse:
    """Tries a registered cluster with what is typed in its form; secrets left empty are the stored ones."""
    return _started(request, cluster_for(request, slug, MANAGE))


@post_only("clusters:register")
@needs(MANAGE)
def test_unsaved(request: HttpRequest) -> HttpResponse:
    """Tries what is typed for a cluster that is not registered yet."""
    return _started(request, None)


@require_safe
@needs(MANAGE, anywhere=True)
def result(request: HttpRequest, job_id: UUID) -> HttpResponse:
    """How far a test is, on a page of its own, or only that part for a page that has it (htmx)."""
    job = _job(request, job_id)
    template = "jobs/_test.html" if _is_part(request) else "jobs/test.html"
    own_page = not _is_part(request) or request.GET.get("page") == "own"
    context = {"section": "settings", "cluster": job.cluster, "own_page": own_page, **test_context(job)}
    return render(request, template, context)


@post_only("jobs:result")
@needs(MANAGE, anywhere=True)
def cancel(request: HttpRequest, job_id: UUID) -> HttpResponse:
    request_cancel(_job(request, job_id).pk)
    own_page = "?page=own" if request.POST.get("page") == "own" else ""
    return redirect(f"{reverse('jobs:result', args=[job_id])}{own_page}")


def test_context(job: Job) -> dict[str, Any]:
    """What a page says of a test: state, steps so far, and the sentence of a failure unless a step says it already."""
    found = job.result or {}
    steps = found.get("steps", [])
    state, word = _VERDICTS[JobState(job.state)]
    problems = found.get("problems", [])
    if job.state == JobState.DONE and any(step["state"] in ("warning", "critical") for step in steps):
        state, word = "warning", "The connection works, with limits"
    waited = (timezone.now() - job.created_at).total_seconds()
    told = any(step["state"] in ("critical", "running") for step in steps)  # by the step at which it failed
    return {
        "job": job,
        "open": job.state in (JobState.QUEUED, JobState.RUNNING),
        "state": state,
        "word": word,
        "steps": [_step(step, job) for step in steps],
        "found": found,
        "problems": problems,
        "error": "" if told else job.error,
        "no_worker": job.state == JobState.QUEUED and waited > WAITING_LONG_S,
    }


def _step(step: Mapping[str, Any], job: Job) -> dict[str, Any]:
    """A step that was running when the job ended has no outcome of its own."""
    if step["state"] != "running":
        return dict(step)
    ended = job.state not in (JobState.QUEUED, JobState.RUNNING)
    return {
        **step,
        "state": "unknown",
        "sentence": job.error or "Not finished." if ended else "…",
        "running": not ended,
    }


def _started(request: HttpRequest, cluster: Cluster | None) -> HttpResponse:
    form = ConnectionForm(request.POST, cluster=cluster)
    refusals: list[str] = []
    if form.is_valid():
        try:
            assert isinstance(request.user, User)  # ``needs`` let nobody else in
            job = start_test(request.user, cluster, form.connection(), request=request)
        except Refused as refused:
            form.refuse(refused)
        except SecretError as error:
            refusals.append(str(error))
        else:
            if not _is_part(request):
                return redirect("jobs:result", job.pk)
            return render(request, "jobs/_test.html", {"cluster": cluster, **test_context(job)})
    refusals += [f"{field.label}: {sentence}" if field else sentence for field, sentence in form.wrong()]
    template = "jobs/_not_tested.html" if _is_part(request) else "jobs/not_tested.html"
    return render(request, template, {"section": "settings", "cluster": cluster, "refusals": refusals})


def _job(request: HttpRequest, job_id: UUID) -> Job:
    job = Job.objects.select_related("cluster").filter(pk=job_id, kind=KIND).first()
    if job is None or (job.cluster is not None and job.cluster.removed_at is not None):
        raise MissingObject(JobErrorCode.NO_SUCH_TEST)
    if not allowed(request.user, MANAGE, job.cluster):
        raise ActionForbidden(JobErrorCode.TEST_FOR_ADMINISTRATORS)
    return job


def _is_part(request: HttpRequest) -> bool:
    return request.headers.get("HX-Request") == "true"
