"""The life of a change request: what may be done with it in each of its states, by whom, and what that makes of it.

``step`` is the one transition function, over the table of ``workflow_states``. It is pure: it takes a request as a
value, what is done, by whom and when, and returns the request afterwards, or raises NotPossible with a sentence.
Whatever is stored goes through it first.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from kafkadash.domain.errors import UserError
from kafkadash.domain.messages import message_text
from kafkadash.domain.risk import Level
from kafkadash.domain.wording import count
from kafkadash.domain.workflow_errors import WorkflowErrorCode
from kafkadash.domain.workflow_states import OVER, TABLE, WAITING, Edge, State, Trigger, Who

_EDGE: Mapping[tuple[State, Trigger], Edge] = {(edge.source, edge.trigger): edge for edge in TABLE}


class NotPossible(UserError):
    """This cannot be done with the request as it is."""


class Outdated(NotPossible):
    """It was possible with what the person saw; it is not what there is now."""


@dataclass(frozen=True, slots=True)
class Rules:
    """A cluster's policy. Approvals by risk level; ``valid_hours`` of a proposal, and again of an approval."""

    approvals_low: int = 1
    approvals_medium: int = 1
    approvals_high: int = 2
    valid_hours: int = 24
    self_approval: bool = False
    break_glass: bool = False

    def needed(self, level: Level) -> int:
        by_level = {
            Level.LOW: self.approvals_low,
            Level.MEDIUM: self.approvals_medium,
            Level.HIGH: self.approvals_high,
        }
        return by_level[level]

    def valid_until(self, now: datetime) -> datetime:
        return now + timedelta(hours=self.valid_hours)


@dataclass(frozen=True, slots=True)
class Approval:
    """One person's approval of one digest in one round; ``user`` is None for an account that was deleted since."""

    user: int | None
    digest: str
    round: int


@dataclass(frozen=True, slots=True)
class Request:
    """What the workflow needs to know of a request.

    ``hands`` wrote, edited or refreshed the content. ``approvals`` are those that are not void. ``level`` is of the
    risk floor; ``needed`` is how many approvals the policy asked for when it was submitted or refreshed, None before.
    ``starts``: this version can run its kind. ``broke_glass``: queued by an administrator without the approvals.
    """

    number: int
    state: State = State.DRAFT
    digest: str = ""
    round: int = 0
    hands: frozenset[int] = frozenset()
    approvals: tuple[Approval, ...] = ()
    level: Level = Level.HIGH
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
class Deed:
    """What is done. ``user`` is None where kafkadash acts by itself; ``capacities`` are what the actor may act as.

    ``digest``: what the approver saw, or what a refresh made. ``round``: the one the approver saw; None where that is
    not said. ``level``: of the plan that a refresh made.
    """

    trigger: Trigger
    user: int | None = None
    capacities: frozenset[Who] = field(default_factory=frozenset)
    digest: str = ""
    round: int | None = None
    reason: str = ""
    level: Level = Level.HIGH


def step(request: Request, deed: Deed, rules: Rules, now: datetime) -> Request:
    """The request after this deed. Raises NotPossible, or Outdated where somebody else was first."""
    edge = _EDGE.get((request.state, deed.trigger))
    if edge is None:
        raise _not_from_here(request, deed.trigger)
    if not edge.who & deed.capacities:
        roles = " or ".join(sorted(who.value for who in edge.who))
        raise NotPossible(WorkflowErrorCode.WRONG_ROLE, roles=roles)
    if deed.trigger in _EFFECTS:
        return _EFFECTS[deed.trigger](request, deed, rules, now)
    return replace(request, state=edge.target)


def standing(request: Request, rules: Rules) -> int:
    """How many approvals count: of this digest and this round, by people who exist and had no hand in it."""
    people = {
        approval.user
        for approval in request.approvals
        if approval.digest == request.digest
        and approval.round == request.round
        and approval.user is not None
        and (rules.self_approval or approval.user not in request.hands)
    }
    return len(people)


def needed(request: Request, rules: Rules) -> int:
    """The stricter of what was asked when it was submitted and what is asked today."""
    return max(request.needed or 0, rules.needed(request.level))


def due(request: Request, now: datetime) -> bool:
    """Whether its time is over: its window, or, until it is queued, what was left of its validity."""
    if request.state not in WAITING:
        return False
    if request.not_after is not None and request.not_after <= now:
        return True
    return request.state is not State.QUEUED and request.expires_at is not None and request.expires_at <= now


def why_not_approve(request: Request, user: int, rules: Rules) -> str:
    """Why this person's approval would not count, in a sentence; '' when it would. Roles are asked elsewhere."""
    if user in request.hands and not rules.self_approval:
        return message_text(WorkflowErrorCode.OWN_HANDS, name=request.name)
    if any(a.user == user and a.digest == request.digest and a.round == request.round for a in request.approvals):
        return message_text(WorkflowErrorCode.APPROVED_ALREADY, name=request.name)
    return ""


def _submit(request: Request, deed: Deed, rules: Rules, now: datetime) -> Request:
    if not request.digest:
        raise NotPossible(WorkflowErrorCode.PLAN_MISSING, number=request.number)
    if request.not_after is not None and request.not_after <= now:
        raise NotPossible(WorkflowErrorCode.WINDOW_OVER, name=request.name)
    until = rules.valid_until(now)
    if request.not_before is not None and request.not_before >= until:
        raise NotPossible(WorkflowErrorCode.WINDOW_TOO_FAR, hours=count(rules.valid_hours, "hour"))
    return _proposed(request, deed, rules, now, digest=request.digest, level=request.level)


def _refresh(request: Request, deed: Deed, rules: Rules, now: datetime) -> Request:
    if not deed.digest:
        raise NotPossible(WorkflowErrorCode.NO_NEW_PLAN, name=request.name)
    _refuse_over(request, now)
    return _proposed(request, deed, rules, now, digest=deed.digest, level=deed.level)


def _proposed(request: Request, deed: Deed, rules: Rules, now: datetime, *, digest: str, level: Level) -> Request:
    """A new round begins: what was approved before is void, whatever it was."""
    return replace(
        request,
        state=State.PROPOSED,
        digest=digest,
        level=level,
        round=request.round + 1,
        approvals=(),
        needed=rules.needed(level),
        hands=request.hands | ({deed.user} if deed.user is not None else set()),
        expires_at=rules.valid_until(now),
        broke_glass=False,
    )


def _draft(request: Request, _deed: Deed, _rules: Rules, _now: datetime) -> Request:
    return replace(request, state=State.DRAFT, approvals=(), needed=None, expires_at=None, broke_glass=False)


def _approve(request: Request, deed: Deed, rules: Rules, now: datetime) -> Request:
    _refuse_other_content(request, deed)
    _refuse_over(request, now)
    if deed.user is None:
        raise NotPossible(WorkflowErrorCode.NOT_A_PERSON)
    if why := why_not_approve(request, deed.user, rules):
        raise NotPossible(why)
    approval = Approval(deed.user, request.digest, request.round)
    approved = replace(request, approvals=(*request.approvals, approval), needed=needed(request, rules))
    if standing(approved, rules) < needed(approved, rules):
        return approved
    return replace(approved, state=State.APPROVED, expires_at=rules.valid_until(now))


def _decline(request: Request, deed: Deed, _rules: Rules, _now: datetime) -> Request:
    _refuse_other_content(request, deed)
    if not deed.reason.strip():
        raise NotPossible(WorkflowErrorCode.DECLINE_REASON)
    return replace(request, state=State.DECLINED)


def _expire(request: Request, _deed: Deed, _rules: Rules, now: datetime) -> Request:
    if not due(request, now):
        raise NotPossible(WorkflowErrorCode.NOT_DUE, name=request.name)
    return replace(request, state=State.EXPIRED)


def _break_glass(request: Request, deed: Deed, rules: Rules, now: datetime) -> Request:
    if not rules.break_glass:
        raise NotPossible(WorkflowErrorCode.GLASS_FORBIDDEN)
    if not deed.reason.strip():
        raise NotPossible(WorkflowErrorCode.GLASS_REASON)
    _refuse_other_content(request, deed)
    _refuse_unable(request)
    _refuse_over(request, now)
    return replace(request, state=State.QUEUED, broke_glass=True)


def _queue(request: Request, deed: Deed, _rules: Rules, now: datetime) -> Request:
    _refuse_unable(request)
    _refuse_over(request, now)
    _refuse_unapproved(request)
    if deed.trigger is Trigger.SCHEDULE and (request.not_before is None or now < request.not_before):
        raise NotPossible(WorkflowErrorCode.WINDOW_NOT_BEGUN, name=request.name)
    return replace(request, state=State.QUEUED)


def _turn(request: Request, _deed: Deed, _rules: Rules, now: datetime) -> Request:
    _refuse_over(request, now)
    if not request.broke_glass:
        _refuse_unapproved(request)
    if request.not_before is not None and now < request.not_before:
        raise NotPossible(WorkflowErrorCode.WINDOW_NOT_BEGUN, name=request.name)
    return replace(request, state=State.EXECUTING)


def _refuse_over(request: Request, now: datetime) -> None:
    if due(request, now):
        raise Outdated(WorkflowErrorCode.TIME_OVER, name=request.name)


def _refuse_unable(request: Request) -> None:
    if not request.starts:
        raise NotPossible(WorkflowErrorCode.CANNOT_RUN, name=request.name)


def _refuse_unapproved(request: Request) -> None:
    """What the policy allowed at the last approval holds: those approvals were counted then, by its rules then."""
    have = {a.user for a in request.approvals if a.digest == request.digest and a.round == request.round}
    if request.needed is None or len(have) < request.needed:
        raise NotPossible(WorkflowErrorCode.LACKS_APPROVALS, name=request.name)


def _refuse_other_content(request: Request, deed: Deed) -> None:
    """Also where the same content was proposed again: its reason, its disk limit and its risk are in no digest."""
    if deed.digest != request.digest:
        raise Outdated(WorkflowErrorCode.OTHER_CONTENT, name=request.name)
    if deed.round not in (None, request.round):
        raise Outdated(WorkflowErrorCode.OTHER_ROUND, name=request.name)


def _not_from_here(request: Request, trigger: Trigger) -> NotPossible:
    name, state = request.name, request.state
    is_now = "a draft" if state is State.DRAFT else state.value
    if state in OVER:
        return Outdated(WorkflowErrorCode.FINAL, name=name, state=is_now)
    if trigger is Trigger.EDIT and state in (State.APPROVED, State.QUEUED):
        return Outdated(WorkflowErrorCode.WITHDRAW_FIRST, name=name, state=is_now)
    if trigger is Trigger.APPROVE and state not in (State.DRAFT, State.STALE):
        return Outdated(WorkflowErrorCode.NOT_NEEDED, name=name)
    if trigger is Trigger.REFRESH:
        return NotPossible(message_text(WorkflowErrorCode.NOTHING_TO_REFRESH, name=name, state=is_now))
    return Outdated(WorkflowErrorCode.NOT_FROM_HERE, name=name, state=is_now, done=_done(trigger))


def _done(trigger: Trigger) -> str:
    return {Trigger.BREAK_GLASS: "started without approvals", Trigger.EDIT: "edited"}.get(
        trigger, trigger.value.replace("_", " ")
    )


_EFFECTS = {
    Trigger.SUBMIT: _submit,
    Trigger.EDIT: _draft,
    Trigger.WITHDRAW: _draft,
    Trigger.APPROVE: _approve,
    Trigger.DECLINE: _decline,
    Trigger.EXPIRE: _expire,
    Trigger.REFRESH: _refresh,
    Trigger.BREAK_GLASS: _break_glass,
    Trigger.START: _queue,
    Trigger.SCHEDULE: _queue,
    Trigger.TURN: _turn,
}
