"""State machine of a change request: states, allowed transitions with the roles that may trigger them, and approvals.

``decide_transition`` is the only transition function, over the table of ``WorkflowEdge`` rows. ``decide_transition`` is
pure: it takes a request as a value, the trigger, the user and the time, and returns the request afterwards, or raises
NotPossible with a code (``WorkflowErrorCode``, texts in ``changes.messages``). Every stored transition goes through
``decide_transition`` first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from kafkadash.changes.risk import RiskLevel
from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, coded


class ChangeState(StrEnum):
    """State of a change request; the values are stored."""

    DRAFT = "draft"
    PROPOSED = "proposed"
    APPROVED = "approved"
    QUEUED = "queued"
    STALE = "stale"
    EXECUTING = "executing"
    PAUSED = "paused"
    CANCELLING = "cancelling"
    VERIFYING = "verifying"
    DONE = "done"
    CANCELLED = "cancelled"
    FAILED = "failed"
    DECLINED = "declined"
    EXPIRED = "expired"


class ChangeTrigger(StrEnum):
    """Triggers that move a request; the value is the participle used in the audit (``change.approved``)."""

    SUBMIT = "submitted"
    EDIT = "reopened"
    WITHDRAW = "withdrawn"
    APPROVE = "approved"
    DECLINE = "declined"
    EXPIRE = "expired"
    CONTENT_FAILED = "turned_stale"
    REFRESH = "refreshed"
    BREAK_GLASS = "broke_glass"
    START = "started"
    SCHEDULE = "scheduled"
    TURN = "turn_came"
    PAUSE = "paused"
    RESUME = "resumed"
    CANCEL = "cancelled"
    ROWS_ENDED = "rows_ended"
    CLEAN = "cancel_ended"
    GIVE_UP = "failed"
    VERIFIED = "verified"


class ActorKind(StrEnum):
    """In what capacity somebody acts. ``ITSELF`` is kafkadash: the tick, the checks, the executor."""

    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"
    ITSELF = "kafkadash"


@dataclass(frozen=True, slots=True)
class WorkflowEdge:
    """Row of the state table."""

    source: ChangeState
    trigger: ChangeTrigger
    target: ChangeState
    who: frozenset[ActorKind]


def _edges(
    trigger: ChangeTrigger, target: ChangeState, *who: ActorKind, of: tuple[ChangeState, ...]
) -> tuple[WorkflowEdge, ...]:
    return tuple(WorkflowEdge(source, trigger, target, frozenset(who)) for source in of)


WAITING = (ChangeState.PROPOSED, ChangeState.APPROVED, ChangeState.QUEUED, ChangeState.STALE)
"""Neither a draft nor running nor over: what is checked again after each refresh, and may expire."""

RUNNING = (ChangeState.EXECUTING, ChangeState.PAUSED, ChangeState.CANCELLING, ChangeState.VERIFYING)
"""Started and not over."""

STEPPED = (ChangeState.QUEUED, *RUNNING)
"""Moved on by the steps of a worker."""

RAN = (ChangeState.DONE, ChangeState.CANCELLED, ChangeState.FAILED)
"""Over after a run."""

OVER = (*RAN, ChangeState.DECLINED, ChangeState.EXPIRED)
"""Final: nothing leads out of these."""

TABLE: tuple[WorkflowEdge, ...] = (
    *_edges(ChangeTrigger.SUBMIT, ChangeState.PROPOSED, ActorKind.OPERATOR, of=(ChangeState.DRAFT,)),
    *_edges(ChangeTrigger.EDIT, ChangeState.DRAFT, ActorKind.OPERATOR, of=(ChangeState.PROPOSED, ChangeState.STALE)),
    *_edges(ChangeTrigger.WITHDRAW, ChangeState.DRAFT, ActorKind.OPERATOR, of=WAITING),
    *_edges(ChangeTrigger.APPROVE, ChangeState.APPROVED, ActorKind.APPROVER, of=(ChangeState.PROPOSED,)),
    *_edges(ChangeTrigger.DECLINE, ChangeState.DECLINED, ActorKind.APPROVER, of=(ChangeState.PROPOSED,)),
    *_edges(ChangeTrigger.EXPIRE, ChangeState.EXPIRED, ActorKind.ITSELF, of=WAITING),
    *_edges(
        ChangeTrigger.CONTENT_FAILED,
        ChangeState.STALE,
        ActorKind.ITSELF,
        of=(ChangeState.PROPOSED, ChangeState.APPROVED, ChangeState.QUEUED),
    ),
    *_edges(ChangeTrigger.REFRESH, ChangeState.PROPOSED, ActorKind.OPERATOR, of=(ChangeState.STALE,)),
    *_edges(ChangeTrigger.BREAK_GLASS, ChangeState.QUEUED, ActorKind.ADMIN, of=(ChangeState.PROPOSED,)),
    *_edges(ChangeTrigger.START, ChangeState.QUEUED, ActorKind.OPERATOR, of=(ChangeState.APPROVED,)),
    *_edges(ChangeTrigger.SCHEDULE, ChangeState.QUEUED, ActorKind.ITSELF, of=(ChangeState.APPROVED,)),
    *_edges(ChangeTrigger.TURN, ChangeState.EXECUTING, ActorKind.ITSELF, of=(ChangeState.QUEUED,)),
    *_edges(ChangeTrigger.PAUSE, ChangeState.PAUSED, ActorKind.OPERATOR, of=(ChangeState.EXECUTING,)),
    *_edges(ChangeTrigger.RESUME, ChangeState.EXECUTING, ActorKind.OPERATOR, of=(ChangeState.PAUSED,)),
    *_edges(
        ChangeTrigger.CANCEL,
        ChangeState.CANCELLING,
        ActorKind.OPERATOR,
        ActorKind.APPROVER,
        of=(ChangeState.EXECUTING, ChangeState.PAUSED),
    ),
    *_edges(ChangeTrigger.ROWS_ENDED, ChangeState.VERIFYING, ActorKind.ITSELF, of=(ChangeState.EXECUTING,)),
    *_edges(
        ChangeTrigger.GIVE_UP, ChangeState.FAILED, ActorKind.ITSELF, of=(ChangeState.EXECUTING, ChangeState.VERIFYING)
    ),
    *_edges(ChangeTrigger.GIVE_UP, ChangeState.FAILED, ActorKind.ITSELF, ActorKind.ADMIN, of=(ChangeState.CANCELLING,)),
    *_edges(ChangeTrigger.CLEAN, ChangeState.CANCELLED, ActorKind.ITSELF, of=(ChangeState.CANCELLING,)),
    *_edges(ChangeTrigger.VERIFIED, ChangeState.DONE, ActorKind.ITSELF, of=(ChangeState.VERIFYING,)),
)


class WorkflowErrorCode(StrEnum):
    """Codes; people search for the values."""

    # Drafts, plans and what people write
    PLAN_MISSING = "plan-missing"

    # The life of a change: submitting, approving, declining, starting
    WRONG_ROLE = "wrong-role"
    WINDOW_OVER = "window-over"
    WINDOW_TOO_FAR = "window-too-far"
    NO_NEW_PLAN = "no-new-plan"
    NOT_A_PERSON = "not-a-person"
    OWN_HANDS = "own-hands"
    APPROVED_ALREADY = "approved-already"
    DECLINE_REASON = "decline-reason"
    NOT_DUE = "not-due"
    GLASS_FORBIDDEN = "glass-forbidden"
    GLASS_NEVER = "glass-never"
    GLASS_REASON = "glass-reason"
    WINDOW_NOT_BEGUN = "window-not-begun"
    TIME_OVER = "time-over"
    CANNOT_RUN = "cannot-run"
    LACKS_APPROVALS = "lacks-approvals"
    OTHER_CONTENT = "other-content"
    OTHER_ROUND = "other-round"
    FINAL = "final"
    WITHDRAW_FIRST = "withdraw-first"
    NOT_NEEDED = "not-needed"
    NOTHING_TO_REFRESH = "nothing-to-refresh"
    NOT_FROM_HERE = "not-from-here"


_EDGE: Mapping[tuple[ChangeState, ChangeTrigger], WorkflowEdge] = {(edge.source, edge.trigger): edge for edge in TABLE}


class NotPossible(UserError):
    """The transition is not possible from the state of the request."""


class OutdatedContent(NotPossible):
    """Refusal of an action that was possible with the content the person saw, but not with the present content."""


@dataclass(frozen=True, slots=True)
class PolicyRules:
    """A cluster's policy. Approvals by risk level; ``valid_hours`` of a proposal, and again of an approval.

    ``least``: the fewest approvals of the kind of change, whatever its level.
    """

    approvals_low: int = 1
    approvals_medium: int = 1
    approvals_high: int = 2
    valid_hours: int = 24
    self_approval: bool = False
    break_glass: bool = False
    least: int = 1

    def needed(self, level: RiskLevel) -> int:
        by_level = {
            RiskLevel.LOW: self.approvals_low,
            RiskLevel.MEDIUM: self.approvals_medium,
            RiskLevel.HIGH: self.approvals_high,
        }
        return max(self.least, by_level[level])

    def valid_until(self, now: datetime) -> datetime:
        return now + timedelta(hours=self.valid_hours)


@dataclass(frozen=True, slots=True)
class GivenApproval:
    """Approval by one person of one digest in one round; ``user`` is None for an account that was deleted since."""

    user: int | None
    digest: str
    round: int


@dataclass(frozen=True, slots=True)
class WorkflowRequest:
    """Facts about a request that the workflow needs.

    ``contributor_ids`` wrote, edited or refreshed the content. ``approvals`` are those that are not void. ``level`` is
    of the risk floor; ``needed`` is how many approvals the policy asked for when it was submitted or refreshed, None
    before. ``starts``: this version can run its kind. ``broke_glass``: queued by an administrator without the
    approvals.
    """

    number: int
    state: ChangeState = ChangeState.DRAFT
    digest: str = ""
    round: int = 0
    contributor_ids: frozenset[int] = frozenset()
    approvals: tuple[GivenApproval, ...] = ()
    level: RiskLevel = RiskLevel.HIGH
    needed: int | None = None
    expires_at: datetime | None = None
    not_before: datetime | None = None
    not_after: datetime | None = None
    starts: bool = False
    broke_glass: bool = False

    @property
    def name(self) -> str:
        return f"#{self.number}"


@dataclass(frozen=True, slots=True)
class TransitionRequest:
    """Action on a request. ``user`` is None where kafkadash acts by itself; ``capacities`` are the actor's kinds.

    ``digest``: what the approver saw, or what a refresh made. ``round``: the one the approver saw; None where that is
    not said. ``level``: of the plan that a refresh made.
    """

    trigger: ChangeTrigger
    user: int | None = None
    capacities: frozenset[ActorKind] = field(default_factory=frozenset)
    digest: str = ""
    round: int | None = None
    reason: str = ""
    level: RiskLevel = RiskLevel.HIGH


def decide_transition(
    request: WorkflowRequest, transition: TransitionRequest, rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    """The request after this transition. Raises NotPossible, or Outdated where somebody else was first."""
    edge = _EDGE.get((request.state, transition.trigger))
    if edge is None:
        raise _not_from_here(request, transition.trigger)
    if not edge.who & transition.capacities:
        roles = " or ".join(sorted(who.value for who in edge.who))
        raise NotPossible(WorkflowErrorCode.WRONG_ROLE, roles=roles)
    if transition.trigger in _EFFECTS:
        return _EFFECTS[transition.trigger](request, transition, rules, now)
    return replace(request, state=edge.target)


def count_approvals(request: WorkflowRequest, rules: PolicyRules) -> int:
    """How many approvals count: of this digest and this round, by people who exist and had no hand in it."""
    people = {
        approval.user
        for approval in request.approvals
        if approval.digest == request.digest
        and approval.round == request.round
        and approval.user is not None
        and (rules.self_approval or approval.user not in request.contributor_ids)
    }
    return len(people)


def required_approvals(request: WorkflowRequest, rules: PolicyRules) -> int:
    """The stricter of what was asked when it was submitted and what is asked today."""
    return max(request.needed or 0, rules.needed(request.level))


def is_due(request: WorkflowRequest, now: datetime) -> bool:
    """Return whether the request's time is over: its window, or, until it is queued, the rest of its validity."""
    if request.state not in WAITING:
        return False
    if request.not_after is not None and request.not_after <= now:
        return True
    return request.state is not ChangeState.QUEUED and request.expires_at is not None and request.expires_at <= now


def why_not_approve(request: WorkflowRequest, user: int, rules: PolicyRules) -> CodedMessage | None:
    """Return why this person's approval would not count; None where it would. Roles are asked elsewhere."""
    if user in request.contributor_ids and not rules.self_approval:
        return coded(WorkflowErrorCode.OWN_HANDS, name=request.name)
    if any(a.user == user and a.digest == request.digest and a.round == request.round for a in request.approvals):
        return coded(WorkflowErrorCode.APPROVED_ALREADY, name=request.name)
    return None


def _submit(
    request: WorkflowRequest, transition: TransitionRequest, rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    if not request.digest:
        raise NotPossible(WorkflowErrorCode.PLAN_MISSING, number=request.number)
    if request.not_after is not None and request.not_after <= now:
        raise NotPossible(WorkflowErrorCode.WINDOW_OVER, name=request.name)
    until = rules.valid_until(now)
    if request.not_before is not None and request.not_before >= until:
        raise NotPossible(WorkflowErrorCode.WINDOW_TOO_FAR, hours=rules.valid_hours)
    return _begin_round(request, transition, rules, now, digest=request.digest, level=request.level)


def _refresh(
    request: WorkflowRequest, transition: TransitionRequest, rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    if not transition.digest:
        raise NotPossible(WorkflowErrorCode.NO_NEW_PLAN, name=request.name)
    _refuse_over(request, now)
    return _begin_round(request, transition, rules, now, digest=transition.digest, level=transition.level)


def _begin_round(
    request: WorkflowRequest,
    transition: TransitionRequest,
    rules: PolicyRules,
    now: datetime,
    *,
    digest: str,
    level: RiskLevel,
) -> WorkflowRequest:
    """A new round begins: what was approved before is void, whatever it was."""
    return replace(
        request,
        state=ChangeState.PROPOSED,
        digest=digest,
        level=level,
        round=request.round + 1,
        approvals=(),
        needed=rules.needed(level),
        contributor_ids=request.contributor_ids | ({transition.user} if transition.user is not None else set()),
        expires_at=rules.valid_until(now),
        broke_glass=False,
    )


def _return_to_draft(
    request: WorkflowRequest, _transition: TransitionRequest, _rules: PolicyRules, _now: datetime
) -> WorkflowRequest:
    return replace(request, state=ChangeState.DRAFT, approvals=(), needed=None, expires_at=None, broke_glass=False)


def _approve(
    request: WorkflowRequest, transition: TransitionRequest, rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    _refuse_other_content(request, transition)
    _refuse_over(request, now)
    if transition.user is None:
        raise NotPossible(WorkflowErrorCode.NOT_A_PERSON)
    if why := why_not_approve(request, transition.user, rules):
        raise NotPossible(why)
    approval = GivenApproval(transition.user, request.digest, request.round)
    approved = replace(request, approvals=(*request.approvals, approval), needed=required_approvals(request, rules))
    if count_approvals(approved, rules) < required_approvals(approved, rules):
        return approved
    return replace(approved, state=ChangeState.APPROVED, expires_at=rules.valid_until(now))


def _decline(
    request: WorkflowRequest, transition: TransitionRequest, _rules: PolicyRules, _now: datetime
) -> WorkflowRequest:
    _refuse_other_content(request, transition)
    if not transition.reason.strip():
        raise NotPossible(WorkflowErrorCode.DECLINE_REASON)
    return replace(request, state=ChangeState.DECLINED)


def _expire(
    request: WorkflowRequest, _transition: TransitionRequest, _rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    if not is_due(request, now):
        raise NotPossible(WorkflowErrorCode.NOT_DUE, name=request.name)
    return replace(request, state=ChangeState.EXPIRED)


def _break_glass(
    request: WorkflowRequest, transition: TransitionRequest, rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    if rules.least > 1:
        raise NotPossible(WorkflowErrorCode.GLASS_NEVER, approvals=rules.least)
    if not rules.break_glass:
        raise NotPossible(WorkflowErrorCode.GLASS_FORBIDDEN)
    if not transition.reason.strip():
        raise NotPossible(WorkflowErrorCode.GLASS_REASON)
    _refuse_other_content(request, transition)
    _refuse_unable(request)
    _refuse_over(request, now)
    return replace(request, state=ChangeState.QUEUED, broke_glass=True)


def _queue(
    request: WorkflowRequest, transition: TransitionRequest, _rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    _refuse_unable(request)
    _refuse_over(request, now)
    _refuse_unapproved(request)
    if transition.trigger is ChangeTrigger.SCHEDULE and (request.not_before is None or now < request.not_before):
        raise NotPossible(WorkflowErrorCode.WINDOW_NOT_BEGUN, name=request.name)
    return replace(request, state=ChangeState.QUEUED)


def _take_turn(
    request: WorkflowRequest, _transition: TransitionRequest, _rules: PolicyRules, now: datetime
) -> WorkflowRequest:
    _refuse_over(request, now)
    if not request.broke_glass:
        _refuse_unapproved(request)
    if request.not_before is not None and now < request.not_before:
        raise NotPossible(WorkflowErrorCode.WINDOW_NOT_BEGUN, name=request.name)
    return replace(request, state=ChangeState.EXECUTING)


def _refuse_over(request: WorkflowRequest, now: datetime) -> None:
    if is_due(request, now):
        raise OutdatedContent(WorkflowErrorCode.TIME_OVER, name=request.name)


def _refuse_unable(request: WorkflowRequest) -> None:
    if not request.starts:
        raise NotPossible(WorkflowErrorCode.CANNOT_RUN, name=request.name)


def _refuse_unapproved(request: WorkflowRequest) -> None:
    """Raise NotPossible if approvals are missing, by the number that the policy asked for at the last approval."""
    have = {a.user for a in request.approvals if a.digest == request.digest and a.round == request.round}
    if request.needed is None or len(have) < request.needed:
        raise NotPossible(WorkflowErrorCode.LACKS_APPROVALS, name=request.name)


def _refuse_other_content(request: WorkflowRequest, transition: TransitionRequest) -> None:
    """Also where the same content was proposed again: its reason, its disk limit and its risk are in no digest."""
    if transition.digest != request.digest:
        raise OutdatedContent(WorkflowErrorCode.OTHER_CONTENT, name=request.name)
    if transition.round not in (None, request.round):
        raise OutdatedContent(WorkflowErrorCode.OTHER_ROUND, name=request.name)


def _not_from_here(request: WorkflowRequest, trigger: ChangeTrigger) -> NotPossible:
    name, state = request.name, request.state
    is_now = "a draft" if state is ChangeState.DRAFT else state.value
    if state in OVER:
        return OutdatedContent(WorkflowErrorCode.FINAL, name=name, state=is_now)
    if trigger is ChangeTrigger.EDIT and state in (ChangeState.APPROVED, ChangeState.QUEUED):
        return OutdatedContent(WorkflowErrorCode.WITHDRAW_FIRST, name=name, state=is_now)
    if trigger is ChangeTrigger.APPROVE and state not in (ChangeState.DRAFT, ChangeState.STALE):
        return OutdatedContent(WorkflowErrorCode.NOT_NEEDED, name=name)
    if trigger is ChangeTrigger.REFRESH:
        return NotPossible(WorkflowErrorCode.NOTHING_TO_REFRESH, name=name, state=is_now)
    return OutdatedContent(WorkflowErrorCode.NOT_FROM_HERE, name=name, state=is_now, done=_describe_done(trigger))


def _describe_done(trigger: ChangeTrigger) -> str:
    return {ChangeTrigger.BREAK_GLASS: "started without approvals", ChangeTrigger.EDIT: "edited"}.get(
        trigger, trigger.value.replace("_", " ")
    )


_EFFECTS = {
    ChangeTrigger.SUBMIT: _submit,
    ChangeTrigger.EDIT: _return_to_draft,
    ChangeTrigger.WITHDRAW: _return_to_draft,
    ChangeTrigger.APPROVE: _approve,
    ChangeTrigger.DECLINE: _decline,
    ChangeTrigger.EXPIRE: _expire,
    ChangeTrigger.REFRESH: _refresh,
    ChangeTrigger.BREAK_GLASS: _break_glass,
    ChangeTrigger.START: _queue,
    ChangeTrigger.SCHEDULE: _queue,
    ChangeTrigger.TURN: _take_turn,
}
