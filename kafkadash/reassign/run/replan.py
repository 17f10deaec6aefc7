"""Another plan for one row of a run that does not get on: a draft of its own, reviewed like any other."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes import drafting
from kafkadash.changes.guards import locked, refuse
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.refusals import Refused
from kafkadash.changes.transitions import audit
from kafkadash.clusters.access import PROPOSE
from kafkadash.domain.executor_state import IN_FLIGHT
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import message_text
from kafkadash.domain.planner.replace import lost_of, replaced
from kafkadash.domain.planner.topology import Broker
from kafkadash.domain.workflow_states import State
from kafkadash.reassign import uploads
from kafkadash.reassign.asked import EXPLICIT, LONGEST_TITLE, Asked, broker_names, options_json
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Move
from kafkadash.reassign.topology import load_brokers
from kafkadash.reassign.window_facts import run_options

WORD = "re-plan"
"""``ChangeRequest.origin_word``."""
_NO_MORE = (RowState.DONE, RowState.TOPIC_DELETED)


@dataclass(frozen=True, slots=True)
class Replan:
    """What would be proposed; ``target`` is None where no broker is left to take the place of those in ``lost``."""

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
            " As long as this row moves, the other plan cannot be made: cancel the row first."
            if self.move.state in IN_FLIGHT
            else ""
        )
        return f"{news[:1].upper()}{news[1:]} in the place of {lost}, in a draft of its own that is reviewed.{waits}"


def replan_of(change: ChangeRequest, move: Move) -> Replan | None:
    """None where there is nothing to plan anew. Two queries."""
    if RowState(move.state) in _NO_MORE:
        return None
    brokers: Mapping[int, Broker] = load_brokers(change.cluster)
    lost = lost_of(move.current, move.target, brokers)
    if not lost:
        return None
    limit = Asked.from_json(change.input).disk_limit
    return Replan(move, lost, replaced(move.current, move.target, lost, brokers, disk_limit=limit))


def propose_other(change: ChangeRequest, user: User, move: Move, request: HttpRequest | None = None) -> ChangeRequest:
    """A draft of this person: an explicit assignment of this partition alone. Nothing of the run is cancelled by it.

    One that this person began for the same row and has not submitted is that draft and no error. Raises Refused.
    """
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster)
        title = f"Re-plan {move} of #{row.pk}"[:LONGEST_TITLE]
        drafts = ChangeRequest.objects.filter(origin=row, origin_word=WORD, author=user, state=State.DRAFT)
        begun = drafts.filter(title=title).first()
        if begun is not None:
            return begun
        other = replan_of(row, move)
        if other is None:
            raise Refused(ReassignmentErrorCode.NOTHING_TO_REPLAN, row=move, state=move.get_state_display())
        if other.target is None:
            raise Refused(other.sentence)
        entry = {"topic": move.topic, "partition": move.partition, "replicas": list(other.target)}
        brought = uploads.from_text(json.dumps({"version": 1, "partitions": [entry]}))
        before = Asked.from_json(row.input)
        asked = Asked(EXPLICIT, upload=brought.sha256, disk_limit=before.disk_limit)
        options = replace(run_options(row), not_before="", not_after="", change_rf=False, may_lose_racks=False)
        draft = drafting.create_draft(
            row.cluster,
            row.kind,
            user,
            title=title,
            input=asked.as_json(),
            options=options_json(options, asked),
            origin=row,
            origin_word=WORD,
            request=request,
        )
        uploads.store(draft, brought)
        audit(row, user, "row_replanned", after={"row": str(move), "draft": draft.pk}, request=request)
    return draft
