"""Checks of a request that is a step of a change: those of its kind, and that no step before it is open."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckResult, CheckSubject
from kafkadash.changes.errors import ChangeErrorCode, StepCheckTitle
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import OVER
from kafkadash.core.messages import coded


def run_checks(change: ChangeRequest, now: datetime) -> CheckOutcome:
    """Return the checks of the kind. A later step has one more, of its health: it waits for the steps before it."""
    outcome = kind_of(change.kind).checks(change, now)
    if change.first_step_id is None or change.first_step_id == change.pk:
        return outcome
    earlier = ChangeRequest.objects.open_before(change).values_list("step", "pk")
    problems = tuple(coded(ChangeErrorCode.STEP_IS_OPEN, step=step, number=number) for step, number in earlier)
    check = ChangeCheck(
        "steps_before",
        CheckSubject.HEALTH,
        CheckResult.FAILED if problems else CheckResult.PASSED,
        coded(StepCheckTitle.STEPS_BEFORE),
        problems=problems,
        problem_count=len(problems),
    )
    return replace(outcome, checks=(*outcome.checks, check))


def may_still_change(change: ChangeRequest, taken_at: datetime | None) -> bool:
    """Return whether facts of that time are from before the end of a step before this one. One query for a step."""
    earlier = ChangeRequest.objects.steps_of(change).filter(step__lt=change.step)
    return any(
        state not in OVER or taken_at is None or taken_at <= since
        for state, since in earlier.values_list("state", "state_since")
    )
