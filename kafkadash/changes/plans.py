"""Stored plans of change requests: made for a draft, renewed for a stale request, pruned when no longer used.

The planning job calls these functions inside its own transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused, EditedMeanwhile
from kafkadash.changes.kinds import find_least_approvals, kind_of
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plan import hash_artifact
from kafkadash.changes.policy import rules_for
from kafkadash.changes.recheck import recheck_later
from kafkadash.changes.request_validation import lock_change, reload_change, require_permission
from kafkadash.changes.risk import compute_floor
from kafkadash.changes.state_machine import ActorKind, ChangeState, ChangeTrigger, TransitionRequest
from kafkadash.changes.transitions import audit_change, changed_message, move, swap_state
from kafkadash.clusters.access import PROPOSE
from kafkadash.core.messages import CodedMessage

PLANNER = "planner"
"""Actor of the planner in the audit."""
KEEP_UNUSED = timedelta(days=1)

Report = Callable[[ChangeRequest, PlanArtifact], object]


def store_plan(
    change_id: int,
    version: int,
    artifact: bytes,
    rows: int,
    topology_at: datetime | None,
    left_out: Sequence[CodedMessage] = (),
) -> ChangeRequest:
    """The plan of a draft, if it still has the version that was planned; the draft with its artifact and digest.

    ``artifact`` are canonical bytes (``changes.plan``), ``rows`` their number, ``left_out`` says what of the scope is
    not among them. Raises EditedMeanwhile, Changed.
    """
    with transaction.atomic():
        row = lock_change(ChangeRequest(pk=change_id))
        if row.state != ChangeState.DRAFT:
            raise ChangedMeanwhile(ChangeErrorCode.PLAN_DROPPED, number=row.pk, now=changed_message(row.pk))
        if row.version != version:
            raise EditedMeanwhile(ChangeErrorCode.EDITED_WHILE_PLANNED, number=row.pk, who=row.edited_by_name)
        before = row.digest
        planned = _apply_plan(row, keep_artifact(artifact, rows), topology_at)
        swap_state(
            row,
            {
                "artifact": planned.artifact,
                "digest": planned.digest,
                "least_approvals": planned.least_approvals,
                "topology_at": topology_at,
                "left_out": [message.as_json() for message in left_out],
                "risk": None,
                "risk_reasons": [],
                "checks": [],
                "checked_at": None,
            },
        )
        after = {"digest": planned.digest, "rows": rows, "artifact": planned.artifact_id}
        audit_change(row, PLANNER, "planned", before={"digest": before} if before else None, after=after)
        recheck_later(row.pk)
    return reload_change(row)


def refresh_plan(
    change: ChangeRequest,
    user: User,
    *,
    version: int,
    artifact: bytes,
    rows: int,
    topology_at: datetime | None,
    left_out: Sequence[CodedMessage] = (),
    report: Report | None = None,
) -> ChangeRequest:
    """STALE → PROPOSED with a new plan, in a new round: approvals are void, risk and approvals needed reckoned anew.

    ``user`` asked for it and has a hand in it. ``report`` stores what the kind keeps beside a plan: it is called with
    the request and the new artifact before the risk is asked. Raises Refused when nothing is left to do.
    """
    with transaction.atomic():
        row = lock_change(change)
        require_permission(user, PROPOSE, row.cluster)
        if row.state != ChangeState.STALE or row.version != version:
            raise ChangedMeanwhile(ChangeErrorCode.NEW_PLAN_DROPPED, number=row.pk, now=changed_message(row.pk))
        if rows == 0:
            raise ChangeRefused(ChangeErrorCode.NOTHING_LEFT, number=row.pk)
        kept = keep_artifact(artifact, rows)
        planned = _apply_plan(row, kept, topology_at)
        if report is not None:
            report(planned, kept)
        judged = compute_floor(kind_of(row.kind).risk(planned))
        move(
            row,
            TransitionRequest(
                ChangeTrigger.REFRESH,
                user.pk,
                frozenset({ActorKind.OPERATOR}),
                digest=planned.digest,
                level=judged.level,
            ),
            rules_for(planned),
            datetime.now(UTC),
            actor=user,
            fields={
                "artifact": kept,
                "least_approvals": planned.least_approvals,
                "topology_at": topology_at,
                "left_out": [message.as_json() for message in left_out],
                "risk": judged.points,
                "risk_reasons": [[reason.points, reason.message.as_json()] for reason in judged.reasons],
                "checks": [],
                "checked_at": None,
                "stale_reasons": [],
                "submitted_at": Now(),
            },
            also={"risk": judged.points, "level": judged.level.value, "rows": rows},
        )
        recheck_later(row.pk)
    return reload_change(row)


def keep_artifact(artifact: bytes, rows: int) -> PlanArtifact:
    """Stored once, whoever makes the same plan again; a row is never changed."""
    name = hash_artifact(artifact)
    # Locked, so that what forgets unused plans waits, and then finds that this one is used.
    kept, _ = PlanArtifact.objects.select_for_update(no_key=True).get_or_create(
        sha256=name, defaults={"data": zlib.compress(artifact, 6), "rows": rows}
    )
    return kept


def prune_artifacts() -> int:
    """Forgets plans that no row of any app refers to, a day after they were made; returns how many."""
    old = PlanArtifact.objects.filter(created_at__lt=Now() - KEEP_UNUSED)
    for relation in PlanArtifact._meta.related_objects:
        rows = relation.related_model._base_manager.filter(**{relation.field.name: OuterRef("pk")})
        old = old.exclude(Exists(rows))
    try:
        with transaction.atomic():
            return old.delete()[0]
    except IntegrityError:  # one of them came into use at this instant; the next round has the others
        return 0


def _apply_plan(row: ChangeRequest, artifact: PlanArtifact, topology_at: datetime | None) -> ChangeRequest:
    """The request as it will be with this plan; not saved."""
    planned = reload_change(row)
    planned.artifact, planned.topology_at = artifact, topology_at
    planned.digest = kind_of(row.kind).digest(planned)
    planned.least_approvals = find_least_approvals(planned)
    return planned
