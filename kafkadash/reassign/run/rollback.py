"""Proposing the way back from a run that ended: a draft like any other, with its plan, its checks and its review."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import drafting
from kafkadash.changes.decision import RAN
from kafkadash.changes.guards import locked, refuse
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Refused
from kafkadash.changes.transitions import audit
from kafkadash.clusters.access import PROPOSE
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.wording import count, listed
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.asked import LONGEST_TITLE, ROLLBACK, Asked, options_json
from kafkadash.reassign.drafts import start_planning
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution, Move, MoveState
from kafkadash.reassign.window_facts import run_options

WORD = "rollback"
"""``ChangeRequest.origin_word``."""


def propose_back(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """A new draft of this person that gives the partitions that the run moved their original replicas back.

    Its plan is being made when this returns, from the cluster as it is read after the run. A draft of the same kind
    that this person has not submitted yet is that draft and no error. Raises Refused.
    """
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster)
        if row.state not in RAN:
            raise Refused(ReassignmentErrorCode.RUN_NOT_ENDED, number=row.pk, state=row.state)
        begun = ChangeRequest.objects.filter(origin=row, origin_word=WORD, author=user, state=State.DRAFT).first()
        if begun is not None:
            return begun
        run = Execution.objects.filter(request=row).defer("progress", "samples", "report").first()
        moved = Move.objects.filter(execution=run, state=RowState.DONE) if run else Move.objects.none()
        if run is None or not moved.exists():
            raise Refused(ReassignmentErrorCode.MOVED_NOTHING, number=row.pk)
        draft = _draft(row, run, user, request)
        start_planning(draft, user, draft.version)
        audit(row, user, "rollback_proposed", after={"rollback": draft.pk}, request=request)
    return draft


def left_words(number: int) -> str:
    """What of the run of this request a rollback leaves as it is, in a sentence; '' where all of it was moved."""
    counts = Counter(
        dict(
            Move.objects.filter(execution__request=number)
            .exclude(state=RowState.DONE)
            .order_by("state")
            .values_list("state")
            .annotate(Count("pk"))
        )
    )
    if not counts:
        return ""
    parts = [f"{number_:,} {MoveState(state).label}" for state, number_ in counts.most_common()]
    total = sum(counts.values())
    return (
        f"{count(total, 'partition')} of #{number} that {'was' if total == 1 else 'were'} not moved "
        f"{'stays' if total == 1 else 'stay'} as {'it is' if total == 1 else 'they are'}: {listed(parts)}."
    )


def _draft(row: ChangeRequest, run: Execution, user: User, request: HttpRequest | None) -> ChangeRequest:
    before = Asked.from_json(row.input)
    moved = Move.objects.filter(execution=run, state=RowState.DONE).values_list("current", "target")
    resized = any(len(current) != len(target) for current, target in moved)
    asked = Asked(
        ROLLBACK,
        of=row.pk,
        since=run.ended_at.isoformat() if run.ended_at else "",
        change_rf=resized,
        ignore_racks=before.ignore_racks,
        disk_limit=before.disk_limit,
    )
    options = replace(run_options(row), not_before="", not_after="", change_rf=resized, may_lose_racks=True)
    return drafting.create_draft(
        row.cluster,
        row.kind,
        user,
        title=f"Rollback of #{row.pk}: {row.title}"[:LONGEST_TITLE],
        input=asked.as_json(),
        options=options_json(options, asked),
        origin=row,
        origin_word=WORD,
        request=request,
    )
