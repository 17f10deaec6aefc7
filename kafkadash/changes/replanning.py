"""How the new plan of a stale request comes along: it is being made, or these sentences keep it from being made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.messages import message_text
from kafkadash.domain.problem import Problem
from kafkadash.domain.workflow_states import State
from kafkadash.jobs.models import JobState

MOST_SHOWN = 20


@dataclass(frozen=True, slots=True)
class Replanning:
    """``doing``: what a worker says while ``under_way``; ``sentences``: why there is no plan, ``more`` besides."""

    under_way: bool
    doing: str
    sentences: Sequence[str]
    more: int


def replanning(change: ChangeRequest) -> Replanning | None:
    """Of the last try since the request turned stale; None where nobody asked for one, or it is not stale."""
    if change.state != State.STALE or change.job is None or change.job.created_at < change.state_since:
        return None
    job = change.job
    if job.state in (JobState.QUEUED, JobState.RUNNING):
        return Replanning(under_way=True, doing=job.progress_note, sentences=(), more=0)
    if job.state == JobState.CANCELLED:
        return Replanning(
            under_way=False, doing="", sentences=(message_text(ChangeErrorCode.PLANNING_STOPPED),), more=0
        )
    if job.state == JobState.FAILED:
        return Replanning(under_way=False, doing="", sentences=(job.error,), more=0)
    found = job.result or {}
    shown = [str(Problem.from_json(one)) for one in found.get("problems", [])[:MOST_SHOWN]]
    more = max(0, found.get("problem_count", 0) - len(shown))
    return Replanning(under_way=False, doing="", sentences=shown, more=more)
