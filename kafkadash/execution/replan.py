"""Another plan for one row of a run that does not get on: a draft of its own, reviewed like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import services as drafting
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.request_validation import lock_change, require_permission
from kafkadash.changes.state_machine import ChangeState
from kafkadash.changes.transitions import audit_change
from kafkadash.clusters.access import PROPOSE
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import message_text
from kafkadash.execution.engine.state import IN_FLIGHT, RowState
from kafkadash.execution.models import Move
from kafkadash.planning import proposal as uploads
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.proposal import EXPLICIT, LONGEST_TITLE, PlanInput, broker_names, options_json
from kafkadash.planning.solver.replacement import lost_of, replace_lost
from kafkadash.planning.stored_topology import load_brokers
from kafkadash.planning.topology import PlannedBroker
from kafkadash.planning.window import run_options

WORD = "re-plan"
"""``ChangeRequest.origin_word``."""
_NO_MORE = (RowState.DONE, RowState.TOPIC_DELETED)


@dataclass(frozen=True, slots=True)
class RowReplan:
    """Proposal for one row; ``target`` is None where no broker is left to take the place of those in ``lost``."""

    move: Move
    lost: frozenset[int]
    target: tuple[int, ...] | None

    @property
    def sentence(self) -> str:
        lost = broker_names(sorted(self.lost))
        if self.target is None:
            return message_text(ReassignmentErrorCode.NO_OTHER_BROKER, lost=lost)
        news = broker_names([id_ for id_ in self.target if id_ not in self.move.target])
        waits = (
            " Cancel this move first: no other plan is possible while it runs." if self.move.state in IN_FLIGHT else ""
        )
        return f"Replace {lost} with {news} in a new draft, which needs review.{waits}"


def replan_of(change: ChangeRequest, move: Move) -> RowReplan | None:
    """None where there is nothing to plan anew. Two queries."""
    if RowState(move.state) in _NO_MORE:
        return None
    brokers: Mapping[int, PlannedBroker] = load_brokers(change.cluster)
    lost = lost_of(move.current, move.target, brokers)
    if not lost:
        return None
    limit = unpack_dataclass(PlanInput, change.input).disk_limit
    return RowReplan(move, lost, replace_lost(move.current, move.target, lost, brokers, disk_limit=limit))


def propose_other(change: ChangeRequest, user: User, move: Move, request: HttpRequest | None = None) -> ChangeRequest:
    """A draft of this person: an explicit assignment of this partition alone. Nothing of the run is cancelled by it.

    One that this person began for the same row and has not submitted is that draft and no error. Raises Refused.
    """
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster)
        title = f"Re-plan {move} of #{row.pk}"[:LONGEST_TITLE]
        drafts = ChangeRequest.objects.filter(origin=row, origin_word=WORD, author=user, state=ChangeState.DRAFT)
        begun = drafts.filter(title=title).first()
        if begun is not None:
            return begun
        other = replan_of(row, move)
        if other is None:
            raise ChangeRefused(ReassignmentErrorCode.NOTHING_TO_REPLAN, row=move, state=move.get_state_display())
        if other.target is None:
            raise ChangeRefused(ReassignmentErrorCode.NO_OTHER_BROKER, lost=broker_names(sorted(other.lost)))
        entry = {"topic": move.topic, "partition": move.partition, "replicas": list(other.target)}
        brought = uploads.from_text(json.dumps({"version": 1, "partitions": [entry]}))
        before = unpack_dataclass(PlanInput, row.input)
        plan_input = PlanInput(EXPLICIT, upload=brought.sha256, disk_limit=before.disk_limit)
        options = replace(run_options(row), not_before="", not_after="", change_rf=False, may_lose_racks=False)
        draft = drafting.create_draft(
            row.cluster,
            row.kind,
            user,
            title=title,
            input=pack_dataclass(plan_input),
            options=options_json(options, plan_input),
            origin=row,
            origin_word=WORD,
            request=request,
        )
        uploads.store_upload(draft, brought)
        audit_change(row, user, "row_replanned", after={"row": str(move), "draft": draft.pk}, request=request)
    return draft
