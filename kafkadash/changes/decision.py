"""Decisions that one person may take on a change request now, and why other actions are not allowed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeErrorCode
from kafkadash.changes.models import ChangeRequest, Policy, Review
from kafkadash.changes.policy import rules_of
from kafkadash.changes.risk import level_of
from kafkadash.changes.state_machine import RAN, ChangeState, PolicyRules
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
from kafkadash.core.formatting import format_duration, join_items
from kafkadash.core.messages import message_text
from kafkadash.core.status import QUICKEST_JUDGED_S
from kafkadash.monitoring.freshness import FactFreshness

_REOPENED = (ChangeState.PROPOSED, ChangeState.STALE)
_WITHDRAWN = (ChangeState.PROPOSED, ChangeState.STALE, ChangeState.APPROVED, ChangeState.QUEUED)
_CANCELLED = (ChangeState.EXECUTING, ChangeState.PAUSED)
_COPIED = (ChangeState.DECLINED, ChangeState.EXPIRED, ChangeState.CANCELLED, ChangeState.FAILED, ChangeState.DONE)


@dataclass(frozen=True, slots=True)
class ChangeDecision:
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
        """Return whether the panel offers this person anything besides deciding, starting and steering."""
        return self.may_copy or self.may_withdraw or self.may_reopen or self.may_delete or self.may_turn_back

    @property
    def any(self) -> bool:
        return self.may_approve or self.may_decline


def decision_of(
    user: User | AnonymousUser,
    change: ChangeRequest,
    may: frozenset[str],
    approvals: Sequence[Review],
    facts: FactFreshness,
    *,
    starts: bool = False,
) -> ChangeDecision:
    """``may``: see ``clusters.access.actions_allowed``; ``facts``: of the last checks. ``starts``: its kind can run."""
    state = ChangeState(change.state)
    why_not = explain_no_decision(user, change, may)
    approved = any(review.user_id == user.pk for review in approvals)
    proposes = PROPOSE in may and not change.cluster.read_only
    return ChangeDecision(
        own=user.pk in change.contributor_ids,
        approved=approved,
        may_approve=not why_not and not approved and APPROVE in may,
        may_decline=not why_not and DECLINE in may,
        approve_off="" if why_not else approve_off(change, facts),
        why_not=why_not,
        may_comment=COMMENT in may,
        may_go_on=proposes and state is ChangeState.DRAFT,
        may_delete=PROPOSE in may and state is ChangeState.DRAFT and change.round == 0,
        may_reopen=proposes and state in _REOPENED,
        may_withdraw=PROPOSE in may and state in _WITHDRAWN,
        may_refresh=proposes and state is ChangeState.STALE,
        may_copy=proposes and state in _COPIED,
        may_start=starts and START in may and state is ChangeState.APPROVED,
        start_off=_why_disabled("Starting", change, facts) if state is ChangeState.APPROVED else "",
        may_break_glass=starts and MANAGE in may and state is ChangeState.PROPOSED and _rules(change).break_glass,
        break_glass_off=read_only_text(change.cluster) if change.cluster.read_only else "",
        may_pause=START in may and state is ChangeState.EXECUTING,
        may_resume=START in may and state is ChangeState.PAUSED and not change.cluster.read_only,
        may_cancel=CANCEL in may and state in _CANCELLED,
        may_turn_back=proposes and state in RAN,
    )


def approvals_needed(change: ChangeRequest) -> int:
    """By the stricter of the policy when it was proposed and the one now, as an approval counts them."""
    requested = change.approvals_needed or 0
    if change.state != ChangeState.PROPOSED:
        return requested
    return max(requested, _rules(change).needed(level_of(change.risk)))


def too_few_approvers(change: ChangeRequest) -> str:
    """Why a proposed change cannot get its approvals, '' where it can: too few people may give one. One query."""
    if change.state != ChangeState.PROPOSED:
        return ""
    able = users_allowed(APPROVE, change.cluster, not_given_by=change.contributor_ids)
    if not _rules(change).self_approval:
        able = able.exclude(pk__in=change.contributor_ids)
    needed, names = approvals_needed(change), sorted(user.get_username() for user in able)
    if len(names) >= needed:
        return ""
    who = "no user can approve it" if not names else f"only {join_items(names)} can approve it"
    return message_text(ChangeErrorCode.TOO_FEW_APPROVERS, needed=needed, who=who, cluster=change.cluster.name)


def _rules(change: ChangeRequest) -> PolicyRules:
    """The cluster's policy, or the defaults, for this kind. No query where the change was read with its policy."""
    try:
        policy = change.cluster.policy
    except Policy.DoesNotExist:
        policy = Policy(cluster=change.cluster)
    return rules_of(policy, change)


def explain_no_decision(user: User | AnonymousUser, change: ChangeRequest, may: frozenset[str]) -> str:
    """Return why this person may neither approve nor decline, '' where that is possible."""
    if change.state == ChangeState.DRAFT:
        return message_text(ChangeErrorCode.STILL_A_DRAFT, author=change.author_name)
    if change.state == ChangeState.STALE:
        return message_text(ChangeErrorCode.STALE_FIRST)
    if change.state == ChangeState.APPROVED and START not in may:
        return message_text(ChangeErrorCode.WAITS_FOR_START, roles=roles_text(START), cluster=change.cluster.name)
    if change.state != ChangeState.PROPOSED:
        return message_text(ChangeErrorCode.DECIDED)
    if not {APPROVE, DECLINE} & may:
        return message_text(ChangeErrorCode.DECIDING_NEEDS_ROLE, roles=roles_text(APPROVE), cluster=change.cluster.name)
    if is_own_work(user, change):
        return message_text(ChangeErrorCode.DECIDING_OWN)
    return ""


def is_own_work(user: User | AnonymousUser, change: ChangeRequest) -> bool:
    """Return whether this person wrote, edited or refreshed it, and so may not decide about it."""
    return user.pk in change.contributor_ids and not _rules(change).self_approval


def approve_off(change: ChangeRequest, facts: FactFreshness) -> str:
    """Why nobody can approve it now, '' where that is not so."""
    return _why_disabled("Approving", change, facts)


def _why_disabled(doing: str, change: ChangeRequest, facts: FactFreshness) -> str:
    if change.cluster.read_only:
        return read_only_text(change.cluster)
    if not facts.stale:
        return ""
    limit = format_duration(2 * max(facts.interval_s, QUICKEST_JUDGED_S))
    if facts.age_s is None:
        return message_text(ChangeErrorCode.CHECKS_NOT_MADE, doing=doing, limit=limit)
    return message_text(ChangeErrorCode.CHECKS_TOO_OLD, doing=doing, limit=limit, age=format_duration(facts.age_s))
