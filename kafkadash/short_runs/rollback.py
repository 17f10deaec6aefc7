"""Rollback of a short run that ended: a draft that restores what its items had before, with its own plan and review."""

from __future__ import annotations

from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.request_validation import lock_change, require_permission
from kafkadash.changes.state_machine import RAN, ChangeState
from kafkadash.changes.transitions import audit_change
from kafkadash.clusters.access import PROPOSE
from kafkadash.short_runs.errors import ShortRunErrorCode
from kafkadash.short_runs.kinds import ROLLBACK, short_kind
from kafkadash.short_runs.models import ShortItem
from kafkadash.short_runs.plans import create_planned_draft, plan_items, shorten_title
from kafkadash.short_runs.state import ItemState, PlannedItem


@transaction.atomic
def propose_rollback(change: ChangeRequest, user: User, request: HttpRequest | None = None) -> ChangeRequest:
    """Create and plan a draft that restores what the run changed, or return the one that this person has begun.

    Raises ChangeRefused, also where nothing is as the run left it.
    """
    row = lock_change(change)
    require_permission(user, PROPOSE, row.cluster)
    kind = short_kind(row.kind)
    begun = ChangeRequest.objects.filter(origin=row, origin_word=ROLLBACK, author=user, state=ChangeState.DRAFT).first()
    if begun is not None:
        return begun
    items = ShortItem.objects.filter(run__request=row, state=ItemState.DONE, before__isnull=False)
    done = [(PlannedItem(item.subject, item.content), item.before or {}) for item in items]
    if kind.rollback_input is None or row.state not in RAN or not done:
        raise ChangeRefused(ShortRunErrorCode.NO_ROLLBACK, number=row.pk)
    wanted = kind.rollback_input(done)
    draft = create_planned_draft(
        row.cluster,
        user,
        plan_items(kind, row.cluster, wanted, restores=True),
        wanted,
        shorten_title(f"Rollback of #{row.pk}: {row.title}"),
        request=request,
        origin=row,
        origin_word=ROLLBACK,
    )
    audit_change(row, user, "rollback_proposed", after={"rollback": draft.pk}, request=request)
    return draft
