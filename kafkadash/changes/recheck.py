"""Checking open change requests again: what is shown of them, and whether they still fit the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import structlog
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.kinds import UnknownKind, kind_of
from kafkadash.changes.models import ChangeRequest, Review, Verdict
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.refusals import Refused
from kafkadash.changes.transitions import has_digested_content, move, pure, swap
from kafkadash.clusters.access import APPROVE, users_allowed
from kafkadash.domain.checks import About, Check, Checked
from kafkadash.domain.messages import message_cause, message_text
from kafkadash.domain.wording import listed
from kafkadash.domain.workflow import Deed
from kafkadash.domain.workflow_states import WAITING, State, Trigger, Who
from kafkadash.kafka import clock
from kafkadash.observe.models import Kind

log = structlog.get_logger(__name__)

KINDS = frozenset({Kind.METADATA, Kind.REASSIGNMENTS, Kind.LOG_DIRS})
"""Refreshes after which it is worth it. Quorum and configs are in what is read for the checks, and wait for these."""
DRAFTS_FOR = timedelta(days=1)
"""After its plan was made, a draft is checked that long: many are left lying, and submitting one checks it anyway."""
ITSELF = "kafkadash"
MOST_REASONS = 200

_MAY_TURN_STALE = (State.PROPOSED, State.APPROVED, State.QUEUED)


def recheck(cluster_id: int, now: datetime) -> int:
    """Checks the open requests of a cluster and the drafts planned lately; returns how many were written.

    Where the content of a request failed it turns STALE, with a sentence per row. What is unknown makes nothing stale,
    and health never does. A stale request whose content fits again stays stale until somebody refreshes it: nobody has
    looked at what happened in between, and its approvals were given for what was before. One query when none is open.
    """
    checked = Q(state__in=WAITING) | Q(state=State.DRAFT, topology_at__gt=now - DRAFTS_FOR)
    open_now = ChangeRequest.objects.filter(
        checked, cluster=cluster_id, cluster__removed_at=None, artifact__isnull=False
    )
    return sum(_one(change, now) for change in open_now.select_related("cluster").order_by("pk"))


def recheck_later(number: int) -> None:
    """Once the present transaction is committed, check this one; its plan is new."""
    transaction.on_commit(partial(_by_number, number), robust=True)


def stored_checks(checked: Checked) -> list[dict[str, Any]]:
    """As ``ChangeRequest.checks`` has them."""
    return [check.as_json() for check in checked.checks]


def reasons(failed: Sequence[Check]) -> list[str]:
    """One sentence per row that does not fit, the first of them and how many more there are."""
    told: list[str] = []
    for check in failed:
        told += check.problems or (message_cause(ChangeErrorCode.NOT_TRUE_ANY_MORE, check=check.title),)
    total = sum(max(check.problem_count, len(check.problems), 1) for check in failed)
    shown = told[:MOST_REASONS]
    return [*shown, f"And {total - len(shown):,} more."] if total > len(shown) else shown


def _by_number(number: int) -> None:
    change = ChangeRequest.objects.select_related("cluster").filter(pk=number).first()
    if change is not None and change.artifact_id and change.state in (State.DRAFT, *WAITING):
        _one(change, clock.now())


def _one(change: ChangeRequest, now: datetime) -> bool:
    """One that cannot be checked keeps no other from it.

    What was read before the row is at least as new as what the row's last check rests on. So one that was checked or
    changed by somebody else since is left as it is, until the next refresh.
    """
    try:
        if _void_approvals_of_leavers(change, now):
            return True
        kind = kind_of(change.kind)
        if change.state in _MAY_TURN_STALE and not has_digested_content(change):
            _turn_stale(change, [message_text(ChangeErrorCode.CONTENT_ALTERED, name=f"#{change.pk}")], {}, now)
            return True
        checked = kind.checks(change, now)
        return _store(change, checked, now)
    except (Refused, UnknownKind) as skipped:
        log.info("change.not_rechecked", change=change.pk, why=str(skipped))
    except Exception:
        log.exception("change.recheck_failed", change=change.pk)
    return False


def _store(change: ChangeRequest, checked: Checked, now: datetime) -> bool:
    written: dict[str, Any] = {}
    checks = stored_checks(checked)
    if checks != change.checks:
        written["checks"] = checks
    if checked.facts_at != change.checked_at:
        written["checked_at"] = checked.facts_at
    failed = checked.failed(About.CONTENT)
    if failed and change.state in _MAY_TURN_STALE:
        _turn_stale(change, reasons(failed), written, now)
    elif written:
        with transaction.atomic():
            swap(change, written, listed=False)
    return bool(written)


def _void_approvals_of_leavers(change: ChangeRequest, now: datetime) -> bool:
    """Approvals count only while whoever gave them may approve; returns whether the request turned stale by that."""
    able = users_allowed(APPROVE, change.cluster, not_given_by=change.hands).order_by()
    left = Review.objects.filter(
        ~Q(user__in=able) | Q(user=None), request=change, verdict=Verdict.APPROVED, void_at=None, round=change.round
    )
    names = list(left.values_list("user_name", flat=True))
    if not names:
        return False
    with transaction.atomic():
        request = pure(change)
        decided = change.state in (State.APPROVED, State.QUEUED) and not request.broke_glass
        stale = decided and len(request.approvals) < (request.needed or 1)
        if stale:
            told = [
                message_text(ChangeErrorCode.APPROVER_LEFT, name=name, cluster=change.cluster.name) for name in names
            ]
            _turn_stale(change, told, {}, now)
        left.update(void_at=Now(), void_why=f"{listed(names)} may not approve here any more"[:200])
    return stale


def _turn_stale(change: ChangeRequest, told: Sequence[str], written: Mapping[str, Any], now: datetime) -> None:
    move(
        change,
        Deed(Trigger.CONTENT_FAILED, capacities=frozenset({Who.ITSELF}), reason=told[0]),
        rules_of(policy_of(change.cluster)),
        now,
        actor=ITSELF,
        fields={**written, "stale_reasons": list(told)},
        also={"reasons": len(told)},
    )
