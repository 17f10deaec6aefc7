"""Checking open change requests again: what is shown of them, and whether they still fit the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.changes.checks import ChangeCheck, CheckOutcome, CheckSubject
from kafkadash.changes.errors import ChangeErrorCode, ChangeRefused
from kafkadash.changes.kinds import UnknownChangeKind, kind_of
from kafkadash.changes.models import ChangeRequest, Review, ReviewVerdict, VoidCode
from kafkadash.changes.state_machine import WAITING, ChangeState
from kafkadash.changes.step_checks import run_checks
from kafkadash.changes.transitions import has_digested_content, swap_state, to_domain
from kafkadash.changes.worker_transitions import list_reasons, turn_stale
from kafkadash.clusters.access import APPROVE, users_allowed
from kafkadash.core import clock
from kafkadash.core.formatting import join_items
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.monitoring.models import CollectorKind

log = structlog.get_logger(__name__)

KINDS = frozenset({CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.LOG_DIRS})
"""Refreshes after which it is worth it. Quorum and configs are in what is read for the checks, and wait for these."""
DRAFTS_FOR = timedelta(days=1)
"""After its plan was made, a draft is checked that long: many are left lying, and submitting one checks it anyway."""

_MAY_TURN_STALE = (ChangeState.PROPOSED, ChangeState.APPROVED, ChangeState.QUEUED)


def recheck(cluster_id: int, now: datetime) -> int:
    """Checks the open requests of a cluster and the drafts planned lately; returns how many were written.

    Where the content of a request failed it turns STALE, with a sentence per row. What is unknown makes nothing stale,
    and health never does. A stale request whose content fits again stays stale until somebody refreshes it: nobody has
    looked at what happened in between, and its approvals were given for what was before. One query when none is open.
    """
    checked = Q(state__in=WAITING) | Q(state=ChangeState.DRAFT, topology_at__gt=now - DRAFTS_FOR)
    open_now = ChangeRequest.objects.filter(
        checked, cluster=cluster_id, cluster__removed_at=None, artifact__isnull=False
    )
    return sum(_recheck_change(change, now) for change in open_now.select_related("cluster").order_by("pk"))


def recheck_later(number: int) -> None:
    """Once the present transaction is committed, check this one; its plan is new."""
    transaction.on_commit(partial(_by_number, number), robust=True)


def stored_checks(checked: CheckOutcome) -> list[dict[str, Any]]:
    """Return the checks as ``ChangeRequest.checks`` has them."""
    return [pack_dataclass(check) for check in checked.checks]


def collect_reasons(failed: Sequence[ChangeCheck]) -> list[CodedMessage]:
    """Return a reason per row that does not fit: the first of them, and how many more there are."""
    told: list[CodedMessage] = []
    for check in failed:
        told += check.problems or (coded(ChangeErrorCode.NOT_TRUE_ANY_MORE, check=check.title),)
    return list_reasons(told, sum(max(check.problem_count, len(check.problems), 1) for check in failed))


def _by_number(number: int) -> None:
    change = ChangeRequest.objects.select_related("cluster").filter(pk=number).first()
    if change is not None and change.artifact_id and change.state in (ChangeState.DRAFT, *WAITING):
        _recheck_change(change, clock.now())


def _recheck_change(change: ChangeRequest, now: datetime) -> bool:
    """Check one change again; a change that cannot be checked does not keep others from their check.

    What was read before the row is at least as new as what the row's last check rests on. So one that was checked or
    changed by somebody else since is left as it is, until the next refresh.
    """
    try:
        if _void_approvals_of_leavers(change, now):
            return True
        kind_of(change.kind)  # one that this version does not know is left as it is
        if change.state in _MAY_TURN_STALE and not has_digested_content(change):
            turn_stale(change, [coded(ChangeErrorCode.CONTENT_ALTERED, name=f"#{change.pk}")], 1, now)
            return True
        checked = run_checks(change, now)
        return _store_checks(change, checked, now)
    except (ChangeRefused, UnknownChangeKind) as skipped:
        log.info("change.not_rechecked", change=change.pk, why=str(skipped))
    except Exception:
        log.exception("change.recheck_failed", change=change.pk)
    return False


def _store_checks(change: ChangeRequest, checked: CheckOutcome, now: datetime) -> bool:
    written: dict[str, Any] = {}
    checks = stored_checks(checked)
    if checks != change.checks:
        written["checks"] = checks
    if checked.facts_at != change.checked_at:
        written["checked_at"] = checked.facts_at
    failed = checked.failed(CheckSubject.CONTENT)
    if failed and change.state in _MAY_TURN_STALE:
        shown = collect_reasons(failed)
        turn_stale(change, shown, len(shown), now, written)
    elif written:
        with transaction.atomic():
            swap_state(change, written, listed=False)
    return bool(written)


def _void_approvals_of_leavers(change: ChangeRequest, now: datetime) -> bool:
    """Approvals count only while whoever gave them may approve; returns whether the request turned stale by that."""
    able = users_allowed(APPROVE, change.cluster, not_given_by=change.contributor_ids).order_by()
    left = Review.objects.filter(
        ~Q(user__in=able) | Q(user=None),
        request=change,
        verdict=ReviewVerdict.APPROVED,
        void_at=None,
        round=change.round,
    )
    names = list(left.values_list("user_name", flat=True))
    if not names:
        return False
    with transaction.atomic():
        request = to_domain(change)
        decided = change.state in (ChangeState.APPROVED, ChangeState.QUEUED) and not request.broke_glass
        stale = decided and len(request.approvals) < (request.needed or 1)
        if stale:
            told = [coded(ChangeErrorCode.APPROVER_LEFT, name=name, cluster=change.cluster.name) for name in names]
            turn_stale(change, told, len(told), now)
        left.update(void_at=Now(), void_code=VoidCode.MAY_NOT_APPROVE, void_by=join_items(names)[:200])
    return stale
