"""What people do with a change request that was approved or runs: start, pause, resume and cancel it.

As in ``services``: the right is asked from the database inside the transaction, with the row locked; each deed and its
audit event are one transaction; nothing asks Kafka. All raise Refused with a sentence, or Changed where somebody else
was first. They return the row as it is afterwards.
"""

from __future__ import annotations

from datetime import UTC, datetime

from django.contrib.auth.models import AnonymousUser
from django.db import transaction
from django.http import HttpRequest

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.guards import fresh, locked, refuse, refuse_old_facts
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.changes.transitions import OBJECT, changed_text, move
from kafkadash.changes.written import text_of
from kafkadash.clusters.access import CANCEL, START
from kafkadash.domain.workflow import Deed
from kafkadash.domain.workflow_states import State, Trigger, Who

LONGEST_KEY = 100
_STARTED = f"change.{Trigger.START.value}"


def start_key(change: ChangeRequest, user: User | AnonymousUser) -> str:
    """What this person's form for this approval is known by: sent twice, or from two windows, it starts once."""
    return f"{change.pk}-{change.round}-{user.pk}"


def start(
    change: ChangeRequest,
    user: User,
    reason: str = "",
    key: str = "",
    request: HttpRequest | None = None,
    *,
    seen_round: int | None = None,
) -> ChangeRequest:
    """APPROVED → QUEUED. ``key`` names this start: sent again, also at once, it is the same one and no error.

    ``seen_round`` is of the approval that the person saw; None where that is not said.
    """
    said = text_of(reason, "The reason")
    if len(key) > LONGEST_KEY:
        raise Refused(ChangeErrorCode.START_KEY_TOO_LONG, most=LONGEST_KEY)
    with transaction.atomic():
        row = locked(change)
        if row.state != State.APPROVED and _started_by(row, key):
            return row
        refuse(user, START, row.cluster)
        if seen_round not in (None, row.round):
            raise Changed(changed_text(row.pk))
        now = datetime.now(UTC)
        refuse_old_facts(row.cluster, now)
        move(
            row,
            Deed(Trigger.START, user.pk, frozenset({Who.OPERATOR}), reason=said),
            rules_of(policy_of(row.cluster)),
            now,
            actor=user,
            also={"key": key} if key else None,
            request=request,
        )
    return fresh(change)


def pause(change: ChangeRequest, user: User, reason: str = "", request: HttpRequest | None = None) -> ChangeRequest:
    """EXECUTING → PAUSED: nothing more is submitted, what is in flight finishes. Also on a read-only cluster.

    No reason is needed: whoever has to stop it must not look for words first.
    """
    said = text_of(reason, "The reason")
    return _moved(change, user, START, Trigger.PAUSE, said, request, read_only_too=True)


def resume(change: ChangeRequest, user: User, reason: str, request: HttpRequest | None = None) -> ChangeRequest:
    """PAUSED → EXECUTING."""
    said = _needed(reason, ChangeErrorCode.RESUME_REASON)
    return _moved(change, user, START, Trigger.RESUME, said, request)


def cancel(change: ChangeRequest, user: User, reason: str, request: HttpRequest | None = None) -> ChangeRequest:
    """EXECUTING or PAUSED → CANCELLING: what is in flight goes back, what is done stays. Also on a read-only cluster.

    Its end is the executor's.
    """
    said = _needed(reason, ChangeErrorCode.CANCEL_REASON)
    return _moved(change, user, CANCEL, Trigger.CANCEL, said, request, read_only_too=True)


def _moved(
    change: ChangeRequest,
    user: User,
    action: str,
    trigger: Trigger,
    reason: str,
    request: HttpRequest | None,
    *,
    read_only_too: bool = False,
) -> ChangeRequest:
    with transaction.atomic():
        row = locked(change)
        refuse(user, action, row.cluster, read_only_too=read_only_too)
        move(
            row,
            Deed(trigger, user.pk, frozenset({Who.OPERATOR, Who.APPROVER}), reason=reason),
            rules_of(policy_of(row.cluster)),
            datetime.now(UTC),
            actor=user,
            request=request,
        )
    return fresh(change)


def _needed(reason: str, missing: ChangeErrorCode) -> str:
    said = text_of(reason, "The reason")
    if not said:
        raise Refused(missing)
    return said


def _started_by(row: ChangeRequest, key: str) -> bool:
    """Whether the start of this name was done; looked for with the row locked, so that one at once is over."""
    if not key:
        return False
    starts = AuditEvent.objects.filter(object_type=OBJECT, object_id=str(row.pk), action=_STARTED)
    return starts.filter(after__key=key).exists()
