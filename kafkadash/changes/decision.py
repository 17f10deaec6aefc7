"""What one person may do with a change request now, and why he may not do what others may."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, Policy, Review
from kafkadash.changes.policy import rules_of
from kafkadash.clusters.access import (
    APPROVE,
    CANCEL,
    COMMENT,
    DECLINE,
    MANAGE,
    PROPOSE,
    START,
    read_only_text,
    roles_text,
    users_allowed,
)
from kafkadash.domain.messages import message_text
from kafkadash.domain.risk import level_of
from kafkadash.domain.status import QUICKEST_JUDGED_S
from kafkadash.domain.wording import count, duration, listed
from kafkadash.domain.workflow_states import State
from kafkadash.observe.standing import Freshness

_REOPENED = (State.PROPOSED, State.STALE)
_WITHDRAWN = (State.PROPOSED, State.STALE, State.APPROVED, State.QUEUED)
_CANCELLED = (State.EXECUTING, State.PAUSED)
RUNS = (State.EXECUTING, State.PAUSED, State.CANCELLING, State.VERIFYING)
RAN = (State.DONE, State.CANCELLED, State.FAILED)
_COPIED = (State.DECLINED, State.EXPIRED, State.CANCELLED, State.FAILED, State.DONE)


@dataclass(frozen=True, slots=True)
class Decision:
    """``own``: this person wrote, edited or refreshed it; ``approved``: approved what is proposed now. ``may_approve``
    and ``may_decline`` show their forms; ``approve_off`` is why the former cannot be sent now. ``why_not`` is one
    sentence for whoever may decide nothing.

    ``may_start`` shows its form and ``start_off`` why it cannot be sent now; ``may_break_glass`` likewise.

    The other flags offer what is possible in this state to this person; each is asked again when it is done.
    """

    own: bool = False
    approved: bool = False
    may_approve: bool = False
    may_decline: bool = False
    approve_off: str = ""
    why_not: str = ""
    may_comment: bool = False
    may_go_on: bool = False
    may_delete: bool = False
    may_reopen: bool = False
    may_withdraw: bool = False
    may_refresh: bool = False
    may_copy: bool = False
    may_start: bool = False
    start_off: str = ""
    may_break_glass: bool = False
    break_glass_off: str = ""
    may_pause: bool = False
    may_resume: bool = False
    may_cancel: bool = False
    may_turn_back: bool = False

    @property
    def something(self) -> bool:
        """Whether the panel offers this person anything besides deciding, starting and steering."""
        return self.may_copy or self.may_withdraw or self.may_reopen or self.may_delete or self.may_turn_back

    @property
    def any(self) -> bool:
        return self.may_approve or self.may_decline


def decision_of(
    user: User | AnonymousUser,
    change: ChangeRequest,
    may: frozenset[str],
    approvals: Sequence[Review],
    facts: Freshness,
    *,
    starts: bool = False,
) -> Decision:
    """``may``: see ``clusters.access.actions_allowed``; ``facts``: of the last checks. ``starts``: its kind can run."""
    state = State(change.state)
    why_not = _why_not(user, change, may)
    approved = any(review.user_id == user.pk for review in approvals)
    proposes = PROPOSE in may and not change.cluster.read_only
    return Decision(
        own=user.pk in change.hands,
        approved=approved,
        may_approve=not why_not and not approved and APPROVE in may,
        may_decline=not why_not and DECLINE in may,
        approve_off="" if why_not else approve_off(change, facts),
        why_not=why_not,
        may_comment=COMMENT in may,
        may_go_on=proposes and state is State.DRAFT,
        may_delete=PROPOSE in may and state is State.DRAFT and change.round == 0,
        may_reopen=proposes and state in _REOPENED,
        may_withdraw=PROPOSE in may and state in _WITHDRAWN,
        may_refresh=proposes and state is State.STALE,
        may_copy=proposes and state in _COPIED,
        may_start=starts and START in may and state is State.APPROVED,
        start_off=_off("Starting", change, facts) if state is State.APPROVED else "",
        may_break_glass=starts and MANAGE in may and state is State.PROPOSED and _policy(change).break_glass,
        break_glass_off=read_only_text(change.cluster) if change.cluster.read_only else "",
        may_pause=START in may and state is State.EXECUTING,
        may_resume=START in may and state is State.PAUSED and not change.cluster.read_only,
        may_cancel=CANCEL in may and state in _CANCELLED,
        may_turn_back=proposes and state in RAN,
    )


def approvals_needed(change: ChangeRequest) -> int:
    """By the stricter of the policy when it was proposed and the one now, as an approval counts them."""
    asked = change.approvals_needed or 0
    if change.state != State.PROPOSED:
        return asked
    return max(asked, rules_of(_policy(change)).needed(level_of(change.risk)))


def too_few_approvers(change: ChangeRequest) -> str:
    """Why a proposed change cannot get its approvals, '' where it can: too few people may give one. One query."""
    if change.state != State.PROPOSED:
        return ""
    able = users_allowed(APPROVE, change.cluster, not_given_by=change.hands)
    if not _policy(change).self_approval:
        able = able.exclude(pk__in=change.hands)
    needed, names = approvals_needed(change), sorted(user.get_username() for user in able)
    if len(names) >= needed:
        return ""
    who = "nobody may give one" if not names else f"only {listed(names)} may give one"
    return message_text(
        ChangeErrorCode.TOO_FEW_APPROVERS, needed=count(needed, "approval"), who=who, cluster=change.cluster.name
    )


def _policy(change: ChangeRequest) -> Policy:
    """The cluster's, or the defaults. No query where the change was read with ``cluster__policy``."""
    try:
        return change.cluster.policy
    except Policy.DoesNotExist:
        return Policy(cluster=change.cluster)


def _why_not(user: User | AnonymousUser, change: ChangeRequest, may: frozenset[str]) -> str:
    if change.state == State.DRAFT:
        return message_text(ChangeErrorCode.STILL_A_DRAFT, author=change.author_name)
    if change.state == State.STALE:
        return message_text(ChangeErrorCode.STALE_FIRST)
    if change.state == State.APPROVED and START not in may:
        return message_text(ChangeErrorCode.WAITS_FOR_START, roles=roles_text(START), cluster=change.cluster.name)
    if change.state != State.PROPOSED:
        return message_text(ChangeErrorCode.DECIDED)
    if not {APPROVE, DECLINE} & may:
        return message_text(ChangeErrorCode.DECIDING_NEEDS_ROLE, roles=roles_text(APPROVE), cluster=change.cluster.name)
    if user.pk in change.hands and not _policy(change).self_approval:
        return message_text(ChangeErrorCode.DECIDING_OWN)
    return ""


def approve_off(change: ChangeRequest, facts: Freshness) -> str:
    """Why nobody can approve it now, '' where that is not so."""
    return _off("Approving", change, facts)


def _off(doing: str, change: ChangeRequest, facts: Freshness) -> str:
    if change.cluster.read_only:
        return read_only_text(change.cluster)
    if not facts.stale:
        return ""
    limit = duration(2 * max(facts.interval_s, QUICKEST_JUDGED_S))
    if facts.age_s is None:
        return message_text(ChangeErrorCode.CHECKS_NOT_MADE, doing=doing, limit=limit)
    return message_text(ChangeErrorCode.CHECKS_TOO_OLD, doing=doing, limit=limit, age=duration(facts.age_s))
