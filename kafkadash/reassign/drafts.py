"""Drafts of reassignments: how far one is, and what is written to it, each step for itself."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from django.db import transaction
from django.http import HttpRequest
from django.urls import reverse

from kafkadash.accounts.models import User
from kafkadash.changes import drafting
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster
from kafkadash.domain.plan import Options
from kafkadash.domain.wording import count
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.services import enqueue, request_cancel
from kafkadash.reassign import uploads
from kafkadash.reassign.asked import OF_BROKERS, Asked, options_json, options_of
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.rates import megabytes

KIND = "reassignment"
PLAN_JOB = "reassign.plan"
OPEN = (JobState.QUEUED, JobState.RUNNING)
STEPS = (("what", "What"), ("limits", "Limits"), ("plan", "Plan"), ("why", "Why"))


@dataclass(frozen=True, slots=True)
class Step:
    """Of the wizard: ``url`` is empty for a step that is not possible yet."""

    number: int
    name: str
    label: str
    url: str
    done: bool
    current: bool
    words: str


@dataclass(frozen=True)
class Draft:
    """A request of this kind as its author left it."""

    change: ChangeRequest

    @cached_property
    def asked(self) -> Asked:
        return Asked.from_json(self.change.input)

    @cached_property
    def options(self) -> Options | None:
        return options_of(self.change.options)

    @property
    def planned(self) -> bool:
        return self.change.artifact_id is not None

    @cached_property
    def job(self) -> Job | None:
        """The last planning of what is asked for now."""
        job = self.change.job
        return job if job and job.input.get("version") == self.change.version else None

    @property
    def _limits_words(self) -> str:
        """ "5 targets, 80 % disk"; for a plan that somebody brought, which none of these bounds, its throttle."""
        if self.options is None:
            return ""
        if not self.asked.copies:
            return f"{megabytes(self.options.throttle)} MB/s"
        targets = self.asked.targets if self.asked.may_choose_targets else None
        named = "" if targets is None else f"{count(len(targets), 'target')}, "
        return f"{named}{100 * self.asked.disk_limit:g} % disk"

    def possible(self, step: str) -> bool:
        return {
            "what": True,
            "limits": self.asked.complete,
            "plan": self.asked.complete and self.options is not None,
            "why": self.planned,
        }[step]

    @property
    def next_step(self) -> str:
        """Where to go on: the first step that is not done."""
        if not self.asked.complete:
            return "what"
        if self.options is None:
            return "limits"
        return "why" if self.planned else "plan"

    def steps(self, current: str) -> list[Step]:
        """All four, for the stepper."""
        done = {
            "what": (self.asked.complete, self.asked.words),
            "limits": (self.options is not None, self._limits_words),
            "plan": (self.planned, ""),
            "why": (False, ""),
        }
        return [
            Step(
                number=number,
                name=name,
                label=label,
                url=step_url(self.change.pk, name) if self.possible(name) else "",
                done=done[name][0] and name != current,
                current=name == current,
                words=done[name][1],
            )
            for number, (name, label) in enumerate(STEPS, start=1)
        ]


def step_url(number: int, step: str) -> str:
    return reverse(f"reassign:{step}", args=[number])


def edit_url(change: ChangeRequest) -> str:
    """Where a draft is gone on with."""
    return step_url(change.pk, Draft(change).next_step)


def begin(
    cluster: Cluster, user: User, mode: str, brokers: tuple[int, ...], request: HttpRequest | None = None
) -> ChangeRequest:
    """A draft on the server from the first step on."""
    asked = Asked(mode, brokers=brokers if mode in OF_BROKERS else ())
    return drafting.create_draft(
        cluster, KIND, user, title=asked.title, input=asked.as_json(), options={}, request=request
    )


def save_what(
    draft: Draft,
    user: User,
    version: int,
    asked: Asked,
    request: HttpRequest,
    brought: uploads.Brought | None = None,
) -> None:
    """What is asked for; a plan for something else is void. Raises EditedMeanwhile and Refused."""
    before = draft.asked
    fields: dict[str, Any] = {"input": asked.as_json()}
    if draft.change.title in ("", before.title, Asked(before.mode).title):
        fields["title"] = asked.title
    if draft.options is not None:
        fields["options"] = options_json(
            replace(draft.options, change_rf=asked.resizes, may_lose_racks=asked.may_lose_racks), asked
        )
    with transaction.atomic():
        drafting.edit_draft(draft.change, user, version, request=request, **fields)
        if brought is not None:
            uploads.store(draft.change, brought)
    stop_planning(draft.change)


def save_limits(
    draft: Draft, user: User, version: int, asked: Asked, options: Options, request: HttpRequest | None = None
) -> None:
    """How it may be run. Raises EditedMeanwhile and Refused.

    Of this the disk limit makes a plan void, and so does the election: who leads afterwards stands in its report.
    """
    elects_as_before = draft.options is None or draft.options.elect_leaders == options.elect_leaders
    drafting.edit_draft(
        draft.change,
        user,
        version,
        input=asked.as_json(),
        options=options_json(options, asked),
        drop_plan=None if elects_as_before else True,
        request=request,
    )
    stop_planning(draft.change)


def start_planning(change: ChangeRequest, user: User, version: int, purpose: str = "plan") -> Job:
    """A job that plans what is asked for in this version; one that is under way already for this is enough."""
    with transaction.atomic():
        held = (
            ChangeRequest.objects.select_for_update(of=("self",), no_key=True)
            .select_related("job", "cluster")
            .get(pk=change.pk)
        )
        running = held.job
        wanted = {"change": held.pk, "version": version, "purpose": purpose}
        # A refresh that was under way when the request was taken back to a draft makes no plan for the draft.
        if running and running.state in OPEN and running.input == wanted and version == held.version:
            return running
        if held.version != version:
            raise Refused(ReassignmentErrorCode.EDITED_BEFORE_PLANNED)
        if purpose == "plan" and held.state != RequestState.DRAFT:
            raise Refused(ReassignmentErrorCode.ONLY_A_DRAFT_IS_PLANNED, number=held.pk)
        job = enqueue(
            PLAN_JOB,
            cluster=held.cluster,
            requested_by=user,
            input=wanted,
        )
        ChangeRequest.objects.filter(pk=held.pk).update(job=job)
    stop_planning(held)
    return job


def stop_planning(change: ChangeRequest) -> None:
    """The planning that ``change`` was read with, if it is still under way."""
    if change.job is not None and change.job.state in OPEN:
        request_cancel(change.job.pk)
