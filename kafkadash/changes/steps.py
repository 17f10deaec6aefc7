"""Changes of several steps: change requests in a fixed order, each with its own content, approvals and run.

A step begins when the steps before it are done (``transitions.move``). All are approved with one act, or each alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.decision import is_own_work
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode
from kafkadash.changes.lists import known_kind
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict
from kafkadash.changes.state_machine import ChangeState


@dataclass(frozen=True, slots=True)
class SeenContent:
    """Content of a step as a person saw it, for an approval."""

    digest: str
    round: int


@dataclass(frozen=True, slots=True)
class StepContent:
    """Plan of a step in figures and sentences; both are empty where there is none."""

    change: ChangeRequest
    facts: tuple[tuple[str, ...], ...]
    words: tuple[str, ...]


def describe_step(step: ChangeRequest, now: datetime) -> StepContent:
    kind = known_kind(step)
    if kind is None or step.artifact_id is None:
        return StepContent(step, (), ())
    return StepContent(step, tuple(kind.facts(step)), tuple(kind.start_words(step, now)) if kind.start_words else ())


NOT_SEEN = "none"
"""For the digest of a plan that was not there yet."""


def join_steps(drafts: Sequence[ChangeRequest]) -> None:
    """Make drafts the steps of one change, in the transaction that created them."""
    for place, draft in enumerate(drafts, start=1):
        ChangeRequest.objects.filter(pk=draft.pk).update(first_step=drafts[0], step=place)


def list_steps(change: ChangeRequest) -> list[ChangeRequest]:
    """Return all steps of the change of this request, in their order. No query for one that stands alone."""
    if change.first_step_id is None:
        return []
    steps = ChangeRequest.objects.steps_of(change).select_related("cluster", "cluster__policy", "artifact", "job")
    return list(steps.defer("artifact__data"))


def list_approvable(user: User, steps: Sequence[ChangeRequest]) -> list[ChangeRequest]:
    """Return the proposed steps that this person may approve and has not approved yet. One query."""
    given = Review.objects.filter(request__in=steps, user=user, verdict=ReviewVerdict.APPROVED, void_at=None)
    approved = set(given.values_list("request", "round"))
    proposed = [step for step in steps if step.state == ChangeState.PROPOSED]
    return [step for step in proposed if (step.pk, step.round) not in approved and not is_own_work(user, step)]


def approve_steps(
    change: ChangeRequest,
    user: User,
    seen: Mapping[int, SeenContent],
    note: str = "",
    request: HttpRequest | None = None,
) -> int:
    """Approve all steps that wait for this person, each with the content that was seen; return their number.

    All or none: ChangedMeanwhile where other steps wait than were seen, and whatever ``services.approve`` raises.
    """
    with transaction.atomic():
        steps = ChangeRequest.objects.steps_of(change).select_related("cluster", "cluster__policy")
        waiting = list_approvable(user, list(steps.select_for_update(of=("self",), no_key=True)))
        if not waiting or {step.pk for step in waiting} != seen.keys():
            raise ChangedMeanwhile(ChangeErrorCode.OTHER_STEPS, number=change.first_step_id)
        for step in waiting:
            content = seen[step.pk]
            services.approve(step, user, content.digest, note, request, seen_round=content.round)
    return len(waiting)


def submit_steps(
    drafts: Sequence[ChangeRequest],
    user: User,
    why: str,
    digests: Mapping[int, str],
    request: HttpRequest | None = None,
) -> None:
    """Submit all steps or none. ``digests``: of the plans that the author saw. Raises ChangeRefused."""
    with transaction.atomic():
        for draft in drafts:
            digest = digests.get(draft.pk) or NOT_SEEN
            services.submit(draft, user, why=why, version=draft.version, digest=digest, request=request)
