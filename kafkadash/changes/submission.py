"""What a draft is asked before it is proposed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import planning, refuse_old_facts
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.recheck import reasons, stored_checks
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.domain.checks import About, Check, Result
from kafkadash.domain.risk import Floor, floor
from kafkadash.domain.wording import count, listed
from kafkadash.domain.workflow_errors import WorkflowErrorCode


@dataclass(frozen=True, slots=True)
class Found:
    """What was judged of the draft, and the columns that hold it."""

    floor: Floor
    columns: Mapping[str, Any]


def refuse_unready(row: ChangeRequest, digest: str) -> None:
    """Unless it has a plan, the one that the author saw, and no other is being made. Raises Refused, Changed."""
    if planning(row):
        raise Refused(ChangeErrorCode.PLAN_UNDER_WAY, number=row.pk)
    if not row.artifact_id or not row.digest:
        raise Refused(WorkflowErrorCode.PLAN_MISSING, number=row.pk)
    if PlanArtifact.objects.filter(pk=row.artifact_id, rows=0).exists():
        raise Refused(ChangeErrorCode.PLAN_EMPTY, number=row.pk)
    if digest and digest != row.digest:
        raise Changed(ChangeErrorCode.PLANNED_ANEW, number=row.pk)


def judge(row: ChangeRequest, now: datetime) -> Found:
    """Its checks and its risk, from stored rows no older than twice their interval. Raises Refused.

    Every check of the content has to have passed; one that nobody could make counts as one that failed. Health
    matters only where no time that passes mends it: the rest is asked again when the change is about to run.
    """
    refuse_old_facts(row.cluster, now)
    kind = kind_of(row.kind)
    checked = kind.checks(row, now)
    failed = checked.failed(About.CONTENT)
    if failed:
        first, more = _first_and_more(failed)
        raise Refused(ChangeErrorCode.PLAN_NO_LONGER_FITS, first=first, more=more)
    unknown = [check.title for check in checked.of(About.CONTENT) if check.result is Result.UNKNOWN]
    if unknown:
        raise Refused(ChangeErrorCode.PLAN_NOT_CHECKED, checks=listed(unknown))
    if checked.lasting:
        first, more = _first_and_more(checked.lasting)
        raise Refused(ChangeErrorCode.PLAN_NEVER_STARTS, first=first, more=more, then=checked.lasting[0].then)
    judged = floor(kind.risk(row))
    return Found(
        judged,
        {
            "risk": judged.points,
            "risk_reasons": [[reason.points, reason.text] for reason in judged.reasons],
            "checks": stored_checks(checked),
            "checked_at": checked.facts_at,
            "stale_reasons": [],
        },
    )


def _first_and_more(failed: Sequence[Check]) -> tuple[str, str]:
    said = reasons(failed)
    total = sum(max(check.problem_count, len(check.problems), 1) for check in failed)
    return said[0], f" ({count(total - 1, 'other')} like it)" if total > 1 else ""
