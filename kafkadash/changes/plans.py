"""Plans of change requests as they are stored: made for a draft, made anew for a stale request, forgotten.

The job that made a plan calls these inside its own transaction.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import fresh, locked, refuse
from kafkadash.changes.kinds import kind_of
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.recheck import recheck_later
from kafkadash.changes.refusals import Changed, EditedMeanwhile, Refused
from kafkadash.changes.transitions import audit, changed_text, move, swap
from kafkadash.clusters.access import PROPOSE
from kafkadash.domain.plan import sha256
from kafkadash.domain.risk import floor
from kafkadash.domain.workflow import Deed
from kafkadash.domain.workflow_states import State, Trigger, Who

PLANNER = "planner"
"""Who made a plan, in the audit."""
KEEP_UNUSED = timedelta(days=1)

Report = Callable[[ChangeRequest, PlanArtifact], object]


def store_plan(change_id: int, version: int, artifact: bytes, rows: int, topology_at: datetime | None) -> ChangeRequest:
    """The plan of a draft, if it still has the version that was planned; the draft with its artifact and digest.

    ``artifact`` are canonical bytes (``domain.plan``), ``rows`` their number. Raises EditedMeanwhile, Changed.
    """
    with transaction.atomic():
        row = locked(ChangeRequest(pk=change_id))
        if row.state != State.DRAFT:
            raise Changed(ChangeErrorCode.PLAN_DROPPED, number=row.pk, now=changed_text(row.pk))
        if row.version != version:
            raise EditedMeanwhile(ChangeErrorCode.EDITED_WHILE_PLANNED, number=row.pk, who=row.edited_by_name)
        before = row.digest
        planned = _with(row, keep_artifact(artifact, rows), topology_at)
        swap(
            row,
            {
                "artifact": planned.artifact,
                "digest": planned.digest,
                "topology_at": topology_at,
                "risk": None,
                "risk_reasons": [],
                "checks": [],
                "checked_at": None,
            },
        )
        after = {"digest": planned.digest, "rows": rows, "artifact": planned.artifact_id}
        audit(row, PLANNER, "planned", before={"digest": before} if before else None, after=after)
        recheck_later(row.pk)
    return fresh(row)


def refreshed(
    change: ChangeRequest,
    user: User,
    *,
    version: int,
    artifact: bytes,
    rows: int,
    topology_at: datetime | None,
    report: Report | None = None,
) -> ChangeRequest:
    """STALE → PROPOSED with a new plan, in a new round: approvals are void, risk and approvals needed reckoned anew.

    ``user`` asked for it and has a hand in it. ``report`` stores what the kind keeps beside a plan: it is called with
    the request and the new artifact before the risk is asked. Raises Refused when nothing is left to do.
    """
    with transaction.atomic():
        row = locked(change)
        refuse(user, PROPOSE, row.cluster)
        if row.state != State.STALE or row.version != version:
            raise Changed(ChangeErrorCode.NEW_PLAN_DROPPED, number=row.pk, now=changed_text(row.pk))
        if rows == 0:
            raise Refused(ChangeErrorCode.NOTHING_LEFT, number=row.pk)
        kept = keep_artifact(artifact, rows)
        planned = _with(row, kept, topology_at)
        if report is not None:
            report(planned, kept)
        judged = floor(kind_of(row.kind).risk(planned))
        move(
            row,
            Deed(Trigger.REFRESH, user.pk, frozenset({Who.OPERATOR}), digest=planned.digest, level=judged.level),
            rules_of(policy_of(row.cluster)),
            datetime.now(UTC),
            actor=user,
            fields={
                "artifact": kept,
                "topology_at": topology_at,
                "risk": judged.points,
                "risk_reasons": [[reason.points, reason.text] for reason in judged.reasons],
                "checks": [],
                "checked_at": None,
                "stale_reasons": [],
                "submitted_at": Now(),
            },
            also={"risk": judged.points, "level": judged.level.value, "rows": rows},
        )
        recheck_later(row.pk)
    return fresh(row)


def keep_artifact(artifact: bytes, rows: int) -> PlanArtifact:
    """Stored once, whoever makes the same plan again; a row is never changed."""
    name = sha256(artifact)
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


def _with(row: ChangeRequest, artifact: PlanArtifact, topology_at: datetime | None) -> ChangeRequest:
    """The request as it will be with this plan; not saved."""
    planned = fresh(row)
    planned.artifact, planned.topology_at = artifact, topology_at
    planned.digest = kind_of(row.kind).digest(planned)
    return planned
