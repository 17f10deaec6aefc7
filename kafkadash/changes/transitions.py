"""Writes of the state of a change request: one compare-and-swap and one audit event, in one transaction.

``change_key`` and ``announce_changes`` are the live hints that make open pages of a change request fetch themselves
again.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.db.models.functions import Now
from django.http import HttpRequest
from django.urls import reverse

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import record
from kafkadash.changes.errors import ChangedMeanwhile, ChangeErrorCode, ChangeRefused
from kafkadash.changes.kinds import UnknownChangeKind, kind_of
from kafkadash.changes.models import ChangeRequest, PlanArtifact, Review, ReviewVerdict, VoidCode
from kafkadash.changes.plan import hash_artifact
from kafkadash.changes.risk import level_of
from kafkadash.changes.state_machine import (
    OVER,
    ActorKind,
    ChangeState,
    ChangeTrigger,
    GivenApproval,
    NotPossible,
    OutdatedContent,
    PolicyRules,
    TransitionRequest,
    WorkflowRequest,
    decide_transition,
)
from kafkadash.clusters.access import APPROVE, users_allowed
from kafkadash.core.events import changed
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.notifications.errors import NotificationCode
from kafkadash.notifications.models import EventStep, EventSubject
from kafkadash.notifications.outbox import build_event, record_events

CHANGE = "change"
"""Name of the hint of one change request; its key is ``change:42``."""
CHANGES = "changes"
"""The hint that some change request changed; it carries nothing, so everybody who is signed in may have it."""


def change_key(number: int) -> str:
    return f"{CHANGE}:{number}"


def announce_changes(*numbers: int, listed: bool = True) -> None:
    """Once the present transaction is committed, pages that show these change requests fetch themselves.

    So do lists, unless what is new is nothing that they show (``listed``).
    """
    keys = frozenset({*map(change_key, numbers), *([CHANGES] if listed else [])})
    transaction.on_commit(partial(changed.send, sender=ChangeRequest, keys=keys))


ITSELF = "kafkadash"
"""Actor in the audit of what kafkadash does by itself."""
OBJECT = "changerequest"
"""Object type of a change request in audit events; the id is its number."""

# The newest event of a request in words after a name: "bob declined it".
_DID = {
    "change.edited": "edited it",
    "change.planned": "planned it again",
    "change.submitted": "submitted it",
    "change.reopened": "reopened it as a draft",
    "change.withdrawn": "withdrew it",
    "change.approved": "approved it",
    "change.declined": "declined it",
    "change.expired": "marked it expired",
    "change.turned_stale": "marked it stale",
    "change.refreshed": "created a new plan for it",
    "change.scheduled": "queued it at the start of its window",
    "change.broke_glass": "queued it without approvals",
    "change.started": "started it",
    "change.turn_came": "began its run",
    "change.paused": "paused it",
    "change.resumed": "resumed it",
    "change.cancelled": "cancelled it",
    "change.rows_ended": "started its verification",
    "change.cancel_ended": "ended its cancelled run",
    "change.verified": "verified its run",
    "change.failed": "marked it failed",
    "change.deleted": "deleted it",
}


_NEEDS_SAME_CONTENT = frozenset(
    {ChangeTrigger.APPROVE, ChangeTrigger.BREAK_GLASS, ChangeTrigger.START, ChangeTrigger.SCHEDULE, ChangeTrigger.TURN}
)


_VOIDED_BY = {
    ChangeTrigger.REFRESH: VoidCode.NEW_PLAN,
    ChangeTrigger.EDIT: VoidCode.EDITED,
    ChangeTrigger.WITHDRAW: VoidCode.WITHDRAWN,
}


def move(
    change: ChangeRequest,
    transition: TransitionRequest,
    rules: PolicyRules,
    now: datetime,
    *,
    actor: User | str,
    fields: Mapping[str, Any] | None = None,
    also: Mapping[str, Any] | None = None,
    why: CodedMessage | None = None,
    action: str = "",
    clean: bool = True,
    request: HttpRequest | None = None,
) -> WorkflowRequest:
    """Apply ``transition`` to the request as ``change`` has it; store and return the result if the row is still that.

    ``fields``: columns to write along. ``also``: what the audit event says besides state, digest and round; ``why``:
    the reason that kafkadash has itself; ``action``: the verb, where that is not the trigger's. Approvals that the
    transition makes void are marked so. ``change`` itself is as it was read. ``clean``: of a run that is done, whether
    all of it is; else the steps after it do not run. Raises ChangeRefused, and ChangedMeanwhile when the row is
    another one by now.
    """
    before = to_domain(change)
    try:
        after = decide_transition(before, transition, rules, now)
    except OutdatedContent as outdated:
        raise ChangedMeanwhile(outdated.with_news(_describe_latest(change.pk))) from outdated
    except NotPossible as refused:
        raise ChangeRefused(refused.message) from refused
    if transition.trigger in _NEEDS_SAME_CONTENT and not has_digested_content(change):
        raise ChangeRefused(ChangeErrorCode.CONTENT_ALTERED, name=before.name)
    if transition.trigger is ChangeTrigger.TURN:
        _refuse_before_its_turn(change)
    written = {**(fields or {}), **_changed_columns(before, after)}
    if isinstance(actor, User) and after.broke_glass and not before.broke_glass:
        written["broke_glass_name"] = actor.get_username()
    if not after.approvals:
        written["self_approved_name"] = ""
    elif (
        transition.trigger is ChangeTrigger.APPROVE
        and transition.user in before.contributor_ids
        and isinstance(actor, User)
    ):
        written["self_approved_name"] = actor.get_username()
    with transaction.atomic():
        swap_state(change, written)
        if before.approvals and not after.approvals:
            _void_approvals(change, transition, actor)
        _tell_kind(change, before.state, after.state)
        audit_change(
            change,
            actor,
            action or transition.trigger.value,
            reason=why or transition.reason,
            before=_audit_fields(before),
            after={**_audit_fields(after), **(also or {})},
            request=request,
        )
        if after.state is not before.state:
            _tell_receivers(change, before.state, after.state, now, clean=clean)
        if change.first_step_id is not None and after.state is not before.state:
            _stop_later_steps(change, after.state, rules, now, clean=clean)
    return after


_STEPS: Mapping[ChangeState, tuple[EventStep, NotificationCode]] = {
    ChangeState.PROPOSED: (EventStep.WAITING, NotificationCode.CHANGE_WAITING),
    ChangeState.APPROVED: (EventStep.APPROVED, NotificationCode.CHANGE_APPROVED),
    ChangeState.DECLINED: (EventStep.DECLINED, NotificationCode.CHANGE_DECLINED),
    ChangeState.STALE: (EventStep.STALE, NotificationCode.CHANGE_STALE),
    ChangeState.EXECUTING: (EventStep.STARTED, NotificationCode.CHANGE_STARTED),
    ChangeState.DONE: (EventStep.ENDED, NotificationCode.CHANGE_ENDED),
    ChangeState.CANCELLED: (EventStep.ENDED, NotificationCode.CHANGE_ENDED),
    ChangeState.FAILED: (EventStep.ENDED, NotificationCode.CHANGE_ENDED),
    ChangeState.EXPIRED: (EventStep.ENDED, NotificationCode.CHANGE_ENDED),
}


def _tell_receivers(
    change: ChangeRequest, before: ChangeState, state: ChangeState, now: datetime, *, clean: bool
) -> None:
    """Record what receivers are told of. A run that goes on after a pause is no news."""
    resumed = before is ChangeState.PAUSED and state is ChangeState.EXECUTING
    if state in _STEPS and not resumed:
        step, code = _STEPS[state]
        params = {"number": change.pk, "title": change.title}
        if step is EventStep.ENDED:
            params["state"] = state.value
            if state is ChangeState.DONE and not clean:
                code = NotificationCode.CHANGE_WITH_EXCEPTIONS
        path = reverse("changes:request", args=[change.pk])
        record_events(
            [
                build_event(
                    change.cluster,
                    EventSubject.CHANGE,
                    str(change.pk),
                    step,
                    coded(code, **params),
                    now,
                    kind=change.kind,
                    path=path,
                )
            ]
        )


def _refuse_before_its_turn(change: ChangeRequest) -> None:
    """Raises ChangeRefused while a step before it is not over. One that is over never opens again."""
    earlier = ChangeRequest.objects.open_before(change).values_list("step", "pk").first()
    if earlier is not None:
        raise ChangeRefused(ChangeErrorCode.STEP_IS_OPEN, step=earlier[0], number=earlier[1])


_MAY_COME_AGAIN = (ChangeState.DRAFT, ChangeState.STALE)
"""A step that goes there may come again with another plan: later steps were approved beside the one it had."""


def _stop_later_steps(
    change: ChangeRequest, state: ChangeState, rules: PolicyRules, now: datetime, *, clean: bool
) -> None:
    """Make later steps stale where this one ended otherwise than done, and approved ones where it may change.

    They are locked in their order, as everywhere, and stopped from the last on, so that none is stopped twice.
    """
    if state is ChangeState.DONE and clean:
        return
    if state in OVER:
        stopped = [ChangeState.PROPOSED, ChangeState.APPROVED, ChangeState.QUEUED]
    elif state in _MAY_COME_AGAIN:
        stopped = [ChangeState.APPROVED, ChangeState.QUEUED]
    else:
        return
    word = "done with exceptions" if state is ChangeState.DONE else state.value
    why = coded(ChangeErrorCode.STEP_NOT_DONE, step=change.step, number=change.pk, state=word)
    later = ChangeRequest.objects.steps_of(change).filter(step__gt=change.step, state__in=stopped)
    for row in reversed(list(later.select_related("cluster").select_for_update(of=("self",), no_key=True))):
        move(
            row,
            TransitionRequest(ChangeTrigger.CONTENT_FAILED, capacities=frozenset({ActorKind.ITSELF})),
            rules,
            now,
            actor=ITSELF,
            fields={"stale_reasons": [why.as_json()]},
            why=why,
        )


def swap_state(change: ChangeRequest, written: Mapping[str, Any], *, listed: bool = True) -> None:
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
        raise ChangedMeanwhile(changed_message(change.pk))
    announce_changes(change.pk, listed=listed)


def audit_change(
    change: ChangeRequest,
    actor: User | str,
    verb: str,
    *,
    reason: CodedMessage | str = "",
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    request: HttpRequest | None = None,
) -> AuditEvent:
    """Record one event about this request, inside the caller's transaction."""
    return record(
        actor,
        f"change.{verb}",
        (OBJECT, str(change.pk)),
        cluster=change.cluster.slug,
        reason=reason.strip() if isinstance(reason, str) else reason,
        before=before,
        after=after,
        request=request,
    )


def to_domain(change: ChangeRequest) -> WorkflowRequest:
    """The request as the domain sees it. One query, for the approvals in force: those of people who may approve now."""
    approvals = Review.objects.filter(
        request=change,
        verdict=ReviewVerdict.APPROVED,
        void_at=None,
        round=change.round,
        user__in=users_allowed(APPROVE, change.cluster, not_given_by=change.contributor_ids).order_by(),
    )
    return WorkflowRequest(
        number=change.pk,
        state=ChangeState(change.state),
        digest=change.digest,
        round=change.round,
        contributor_ids=frozenset(change.contributor_ids),
        approvals=tuple(GivenApproval(*row) for row in approvals.values_list("user_id", "digest", "round")),
        level=level_of(change.risk),
        needed=change.approvals_needed,
        expires_at=change.expires_at,
        not_before=change.not_before,
        not_after=change.not_after,
        starts=_can_start(change.kind),
        broke_glass=bool(change.broke_glass_name),
    )


def has_digested_content(change: ChangeRequest) -> bool:
    """Check that plan and options are those of the digest: the bytes of the plan are read and hashed again.

    People approve a digest, and what wrote to the database past ``changes`` may have altered what it stands for.
    One query. False as well for a kind that this version does not know.
    """
    try:
        kind = kind_of(change.kind)
    except UnknownChangeKind:
        return False
    if not change.digest or kind.digest(change) != change.digest:
        return False
    data = PlanArtifact.objects.values_list("data", flat=True).get(sha256=change.artifact_id)
    try:
        return hash_artifact(zlib.decompress(data)) == change.artifact_id
    except zlib.error:
        return False


def changed_message(number: int) -> CodedMessage:
    """Return what became of the request since somebody read it."""
    there = ChangeRequest.objects.filter(pk=number).exists()
    code = ChangeErrorCode.CHANGED_MEANWHILE if there else ChangeErrorCode.DELETED_MEANWHILE
    return CodedMessage(code, {"number": number}, news=_describe_latest(number))


def _describe_latest(number: int) -> str:
    """The newest thing that was done with it: "bob declined it on 21 Nov at 14:02:11 UTC."; '' if that is not known."""
    event = (
        AuditEvent.objects.filter(object_type=OBJECT, object_id=str(number), action__in=_DID)
        .order_by("-at", "-id")
        .first()
    )
    if event is None:
        return ""
    return f"{event.actor_name} {_DID[event.action]} on {event.at.astimezone(UTC):%-d %b at %H:%M:%S} UTC."


def _changed_columns(before: WorkflowRequest, after: WorkflowRequest) -> dict[str, Any]:
    """Return the columns of the request's own row that the domain decided."""
    columns: dict[str, Any] = {
        "state": after.state.value,
        "digest": after.digest,
        "round": after.round,
        "contributor_ids": sorted(after.contributor_ids),
        "approvals_needed": after.needed,
        "expires_at": after.expires_at,
    }
    if after.state is not before.state:
        columns["state_since"] = Now()
    if before.broke_glass and not after.broke_glass:
        columns["broke_glass_name"] = ""
    return columns


def _audit_fields(request: WorkflowRequest) -> dict[str, Any]:
    return {"state": request.state.value, "digest": request.digest, "round": request.round}


def _void_approvals(change: ChangeRequest, transition: TransitionRequest, actor: User | str) -> None:
    name = actor.get_username() if isinstance(actor, User) else actor
    Review.objects.filter(request=change, verdict=ReviewVerdict.APPROVED, void_at=None).update(
        void_at=Now(), void_code=_VOIDED_BY.get(transition.trigger, VoidCode.CHANGED), void_by=name[:200]
    )


def _tell_kind(change: ChangeRequest, before: ChangeState, after: ChangeState) -> None:
    """Tell the kind a new state, so that what the kind keeps beside the request follows."""
    if before is after:
        return
    try:
        moved = kind_of(change.kind).moved
    except UnknownChangeKind:  # of a version before this one: it can only end, and nothing of it is kept
        return
    if moved is not None:
        moved(change, before, after)


def _can_start(kind: str) -> bool:
    """A kind that this version does not know cannot be run by it."""
    try:
        return kind_of(kind).starts
    except UnknownChangeKind:
        return False
