"""Rollback of a run that ended: a draft with its own plan, checks and review, back to the original replicas.

Only rows that are still as the run left them are rolled back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from django.db import transaction
from django.db.models import Count
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.plan import PartitionMove
from kafkadash.changes.request_validation import lock_change, require_permission
from kafkadash.changes.state_machine import RAN, ChangeState
from kafkadash.changes.transitions import audit_change
from kafkadash.clusters.access import PROPOSE
from kafkadash.core.formatting import join_items
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.core.problems import InputProblem
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, MoveState
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.proposal import LONGEST_TITLE, ROLLBACK, PlanInput, WayBack, options_json, start_planning
from kafkadash.planning.topology import ClusterTopology, PlannedPartition
from kafkadash.planning.window import run_options

WORD = "rollback"
"""``ChangeRequest.origin_word``."""


def propose_back(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """A new draft of this person that gives the partitions that the run moved their original replicas back.

    Its plan is being made when this returns, from the cluster as it is read after the run. A draft of the same kind
    that this person has not submitted yet is that draft and no error. Raises Refused.
    """
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster)
        if row.state not in RAN:
            raise ChangeRefused(ReassignmentErrorCode.RUN_NOT_ENDED, number=row.pk, state=row.state)
        begun = ChangeRequest.objects.filter(origin=row, origin_word=WORD, author=user, state=ChangeState.DRAFT).first()
        if begun is not None:
            return begun
        run = Execution.objects.filter(request=row).defer("progress", "samples", "report").first()
        moved = Move.objects.filter(execution=run, state=RowState.DONE) if run else Move.objects.none()
        if run is None or not moved.exists():
            raise ChangeRefused(ReassignmentErrorCode.MOVED_NOTHING, number=row.pk)
        draft = _create_draft(row, run, user, request)
        start_planning(draft, user, draft.version)
        audit_change(row, user, "rollback_proposed", after={"rollback": draft.pk}, request=request)
    return draft


def left_words(number: int) -> str:
    """Return what a rollback leaves as it is of this request's run, in a sentence; '' where all of it was moved."""
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
    partitions = choose_plural("# partition|# partitions", total)
    stay = choose_plural("was not moved and stays|were not moved and stay", total)
    return f"{partitions} of #{number} {stay} unchanged: {join_items(parts)}."


def _create_draft(row: ChangeRequest, run: Execution, user: User, request: HttpRequest | None) -> ChangeRequest:
    before = unpack_dataclass(PlanInput, row.input)
    moved = Move.objects.filter(execution=run, state=RowState.DONE).values_list("current", "target")
    resized = any(len(current) != len(target) for current, target in moved)
    plan_input = PlanInput(
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
        input=pack_dataclass(plan_input),
        options=options_json(options, plan_input),
        origin=row,
        origin_word=WORD,
        request=request,
    )


def way_back(number: int, topology: ClusterTopology) -> WayBack:
    """Return the rollback of the run of request ``number``, compared with the cluster in ``topology``. One query."""
    partitions: dict[str, dict[int, PlannedPartition]] = {}
    rows, left_out = [], []
    for move in Move.objects.filter(execution__request=number).order_by("topic", "partition"):
        if move.topic not in partitions:
            topic = topology.topics.get(move.topic)
            partitions[move.topic] = {p.partition: p for p in topic.partitions} if topic else {}
        why = _why_not(move, topology, partitions[move.topic].get(move.partition))
        if why:
            left_out.append(InputProblem(why))
        else:
            current, original = tuple(move.target), tuple(move.current)
            rows.append(PartitionMove(move.topic, move.topic_id, move.partition, current, original))
    return WayBack(rows, left_out)


def _why_not(move: Move, topology: ClusterTopology, now: PlannedPartition | None) -> CodedMessage | None:
    row = str(move)
    if move.state != RowState.DONE:
        if move.reason is None:
            return coded(ReassignmentErrorCode.BACK_NOT_MOVED, row=row, state=move.state)
        return coded(ReassignmentErrorCode.BACK_NOT_MOVED_WHY, row=row, state=move.state, why=move.reason)
    topic = topology.topics.get(move.topic)
    if topic is None or now is None:
        return coded(ReassignmentErrorCode.BACK_GONE, row=row)
    if move.topic_id and topic.id and topic.id != move.topic_id:
        return coded(ReassignmentErrorCode.BACK_OTHER_TOPIC, row=row)
    if now.replicas == tuple(move.current):
        return coded(ReassignmentErrorCode.BACK_ALREADY, row=row)
    if now.replicas != tuple(move.target):
        return coded(ReassignmentErrorCode.BACK_CHANGED, row=row, replicas=now.replicas, left=tuple(move.target))
    return None
