"""Where the state of a change request is written: one compare-and-swap and one audit event, in one transaction."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest

from kafkadash.accounts.audit import record
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.kinds import UnknownKind, kind_of
from kafkadash.changes.live import tell
from kafkadash.changes.models import ChangeRequest, PlanArtifact, Review, Verdict
from kafkadash.changes.refusals import Changed, Refused
from kafkadash.clusters.access import APPROVE, users_allowed
from kafkadash.domain.messages import message_with_news
from kafkadash.domain.plan import sha256
from kafkadash.domain.risk import level_of
from kafkadash.domain.workflow import Approval, Deed, NotPossible, Outdated, Request, Rules, step
from kafkadash.domain.workflow_states import State, Trigger

OBJECT = "changerequest"
"""What audit events call a change request; the id is its number."""

# The newest event of a request in words after a name: "bob declined it".
_DID = {
    "change.edited": "edited it",
    "change.planned": "made its plan anew",
    "change.submitted": "submitted it",
    "change.reopened": "took it back to a draft",
    "change.withdrawn": "withdrew it",
    "change.approved": "approved it",
    "change.declined": "declined it",
    "change.expired": "let it expire, as its time was over",
    "change.turned_stale": "found that its plan no longer fits the cluster",
    "change.refreshed": "made a new plan for it",
    "change.scheduled": "queued it, as its window began",
    "change.broke_glass": "queued it without its approvals",
    "change.started": "started it",
    "change.turn_came": "began to run it, as its turn came",
    "change.paused": "paused it",
    "change.resumed": "resumed it",
    "change.cancelled": "cancelled it",
    "change.rows_ended": "found that its last row had ended",
    "change.cancel_ended": "ended its cancelled run",
    "change.verified": "verified what it did",
    "change.failed": "gave it up",
    "change.deleted": "deleted it",
}


_NEEDS_SAME_CONTENT = frozenset({Trigger.APPROVE, Trigger.BREAK_GLASS, Trigger.START, Trigger.SCHEDULE, Trigger.TURN})


def move(
    change: ChangeRequest,
    deed: Deed,
    rules: Rules,
    now: datetime,
    *,
    actor: User | str,
    fields: Mapping[str, Any] | None = None,
    also: Mapping[str, Any] | None = None,
    action: str = "",
    request: HttpRequest | None = None,
) -> Request:
    """What ``deed`` makes of the request as ``change`` has it, stored if it is still that; returns it.

    ``fields``: columns to write along. ``also``: what the audit event says besides state, digest and round; ``action``
    its verb, where that is not the trigger's. Approvals that the deed makes void are marked so. ``change`` itself is as
    it was read. Raises Refused, and Changed when the row is another one by now.
    """
    before = pure(change)
    try:
        after = step(before, deed, rules, now)
    except Outdated as outdated:
        raise Changed(outdated.with_news(_latest(change.pk))) from outdated
    except NotPossible as refused:
        raise Refused(refused.message) from refused
    if deed.trigger in _NEEDS_SAME_CONTENT and not has_digested_content(change):
        raise Refused(ChangeErrorCode.CONTENT_ALTERED, name=before.name)
    written = {**(fields or {}), **_columns(before, after)}
    if isinstance(actor, User) and after.broke_glass and not before.broke_glass:
        written["broke_glass_name"] = actor.get_username()
    if not after.approvals:
        written["self_approved_name"] = ""
    elif deed.trigger is Trigger.APPROVE and deed.user in before.hands and isinstance(actor, User):
        written["self_approved_name"] = actor.get_username()
    with transaction.atomic():
        swap(change, written)
        if before.approvals and not after.approvals:
            _void(change, _void_why(deed, actor))
        _tell_kind(change, before.state, after.state)
        audit(
            change,
            actor,
            action or deed.trigger.value,
            reason=deed.reason,
            before=_shown(before),
            after={**_shown(after), **(also or {})},
            request=request,
        )
    return after


def swap(change: ChangeRequest, written: Mapping[str, Any], *, listed: bool = True) -> None:
    """Writes these columns if state, digest, round, version and the last check are as ``change`` has them.

    ``listed``: whether lists show any of it. Raises Changed.
    """
    same = ChangeRequest.objects.filter(
        pk=change.pk,
        state=change.state,
        digest=change.digest,
        round=change.round,
        version=change.version,
        checked_at=change.checked_at,
    )
    if not same.update(**written):
        raise Changed(changed_text(change.pk))
    tell(change.pk, listed=listed)


def audit(
    change: ChangeRequest,
    actor: User | str,
    verb: str,
    *,
    reason: str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    request: HttpRequest | None = None,
) -> AuditEvent:
    """One event about this request, inside the caller's transaction."""
    return record(
        actor,
        f"change.{verb}",
        (OBJECT, str(change.pk)),
        cluster=change.cluster.slug,
        reason=reason.strip(),
        before=before,
        after=after,
        request=request,
    )


def pure(change: ChangeRequest) -> Request:
    """The request as the domain sees it. One query, for the approvals in force: those of people who may approve now."""
    approvals = Review.objects.filter(
        request=change,
        verdict=Verdict.APPROVED,
        void_at=None,
        round=change.round,
        user__in=users_allowed(APPROVE, change.cluster, not_given_by=change.hands).order_by(),
    )
    return Request(
        number=change.pk,
        state=State(change.state),
        digest=change.digest,
        round=change.round,
        hands=frozenset(change.hands),
        approvals=tuple(Approval(*row) for row in approvals.values_list("user_id", "digest", "round")),
        level=level_of(change.risk),
        needed=change.approvals_needed,
        expires_at=change.expires_at,
        not_before=change.not_before,
        not_after=change.not_after,
        starts=_starts(change.kind),
        broke_glass=bool(change.broke_glass_name),
    )


def has_digested_content(change: ChangeRequest) -> bool:
    """Check that plan and options are those of the digest: the bytes of the plan are read and hashed again.

    People approve a digest, and what wrote to the database past ``changes`` may have altered what it stands for.
    One query. False as well for a kind that this version does not know.
    """
    try:
        kind = kind_of(change.kind)
    except UnknownKind:
        return False
    if not change.digest or kind.digest(change) != change.digest:
        return False
    data = PlanArtifact.objects.values_list("data", flat=True).get(sha256=change.artifact_id)
    try:
        return sha256(zlib.decompress(data)) == change.artifact_id
    except zlib.error:
        return False


def changed_text(number: int) -> str:
    """What became of the request since somebody read it."""
    there = ChangeRequest.objects.filter(pk=number).exists()
    code = ChangeErrorCode.CHANGED_MEANWHILE if there else ChangeErrorCode.DELETED_MEANWHILE
    return message_with_news(code, _latest(number), number=number)


def _latest(number: int) -> str:
    """The newest thing that was done with it: "bob declined it on 21 Nov at 14:02:11 UTC."; '' if that is not known."""
    event = (
        AuditEvent.objects.filter(object_type=OBJECT, object_id=str(number), action__in=_DID)
        .order_by("-at", "-id")
        .first()
    )
    if event is None:
        return ""
    return f"{event.actor_name} {_DID[event.action]} on {event.at.astimezone(UTC):%-d %b at %H:%M:%S} UTC."


def _columns(before: Request, after: Request) -> dict[str, Any]:
    """Of what the domain decided, what is stored in the request's own row."""
    columns: dict[str, Any] = {
        "state": after.state.value,
        "digest": after.digest,
        "round": after.round,
        "hands": sorted(after.hands),
        "approvals_needed": after.needed,
        "expires_at": after.expires_at,
    }
    if after.state is not before.state:
        columns["state_since"] = Now()
    if before.broke_glass and not after.broke_glass:
        columns["broke_glass_name"] = ""
    return columns


def _shown(request: Request) -> dict[str, Any]:
    return {"state": request.state.value, "digest": request.digest, "round": request.round}


def _void(change: ChangeRequest, why: str) -> None:
    Review.objects.filter(request=change, verdict=Verdict.APPROVED, void_at=None).update(void_at=Now(), void_why=why)


def _void_why(deed: Deed, actor: User | str) -> str:
    name = actor.get_username() if isinstance(actor, User) else actor
    did = {Trigger.REFRESH: "made a new plan", Trigger.EDIT: "took it back to edit it", Trigger.WITHDRAW: "withdrew it"}
    return f"{name} {did.get(deed.trigger, 'changed it')}"[:200]


def _tell_kind(change: ChangeRequest, before: State, after: State) -> None:
    """What the kind keeps beside the request follows its state."""
    if before is after:
        return
    try:
        moved = kind_of(change.kind).moved
    except UnknownKind:  # of a version before this one: it can only end, and nothing of it is kept
        return
    if moved is not None:
        moved(change, before, after)


def _starts(kind: str) -> bool:
    """A kind that this version does not know cannot be run by it."""
    try:
        return kind_of(kind).starts
    except UnknownKind:
        return False
