"""The states of a change request as data: what leads from one to the next, and in what capacity."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class State(StrEnum):
    """Where a change request stands; the values are stored."""

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


class Trigger(StrEnum):
    """What moves a request; the value is the participle that the audit has it under (``change.approved``)."""

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


class Who(StrEnum):
    """In what capacity somebody acts. ``ITSELF`` is kafkadash: the tick, the checks, the executor."""

    OPERATOR = "operator"
    APPROVER = "approver"
    ADMIN = "admin"
    ITSELF = "kafkadash"


@dataclass(frozen=True, slots=True)
class Edge:
    """One row of the state table."""

    source: State
    trigger: Trigger
    target: State
    who: frozenset[Who]


def _edges(trigger: Trigger, target: State, *who: Who, of: tuple[State, ...]) -> tuple[Edge, ...]:
    return tuple(Edge(source, trigger, target, frozenset(who)) for source in of)


WAITING = (State.PROPOSED, State.APPROVED, State.QUEUED, State.STALE)
"""Neither a draft nor running nor over: what is checked again after each refresh, and may expire."""

OVER = (State.DONE, State.CANCELLED, State.FAILED, State.DECLINED, State.EXPIRED)
"""Final: nothing leads out of these."""

TABLE: tuple[Edge, ...] = (
    *_edges(Trigger.SUBMIT, State.PROPOSED, Who.OPERATOR, of=(State.DRAFT,)),
    *_edges(Trigger.EDIT, State.DRAFT, Who.OPERATOR, of=(State.PROPOSED, State.STALE)),
    *_edges(Trigger.WITHDRAW, State.DRAFT, Who.OPERATOR, of=WAITING),
    *_edges(Trigger.APPROVE, State.APPROVED, Who.APPROVER, of=(State.PROPOSED,)),
    *_edges(Trigger.DECLINE, State.DECLINED, Who.APPROVER, of=(State.PROPOSED,)),
    *_edges(Trigger.EXPIRE, State.EXPIRED, Who.ITSELF, of=WAITING),
    *_edges(Trigger.CONTENT_FAILED, State.STALE, Who.ITSELF, of=(State.PROPOSED, State.APPROVED, State.QUEUED)),
    *_edges(Trigger.REFRESH, State.PROPOSED, Who.OPERATOR, of=(State.STALE,)),
    *_edges(Trigger.BREAK_GLASS, State.QUEUED, Who.ADMIN, of=(State.PROPOSED,)),
    *_edges(Trigger.START, State.QUEUED, Who.OPERATOR, of=(State.APPROVED,)),
    *_edges(Trigger.SCHEDULE, State.QUEUED, Who.ITSELF, of=(State.APPROVED,)),
    *_edges(Trigger.TURN, State.EXECUTING, Who.ITSELF, of=(State.QUEUED,)),
    *_edges(Trigger.PAUSE, State.PAUSED, Who.OPERATOR, of=(State.EXECUTING,)),
    *_edges(Trigger.RESUME, State.EXECUTING, Who.OPERATOR, of=(State.PAUSED,)),
    *_edges(Trigger.CANCEL, State.CANCELLING, Who.OPERATOR, Who.APPROVER, of=(State.EXECUTING, State.PAUSED)),
    *_edges(Trigger.ROWS_ENDED, State.VERIFYING, Who.ITSELF, of=(State.EXECUTING,)),
    *_edges(Trigger.GIVE_UP, State.FAILED, Who.ITSELF, of=(State.EXECUTING, State.VERIFYING)),
    *_edges(Trigger.GIVE_UP, State.FAILED, Who.ITSELF, Who.ADMIN, of=(State.CANCELLING,)),
    *_edges(Trigger.CLEAN, State.CANCELLED, Who.ITSELF, of=(State.CANCELLING,)),
    *_edges(Trigger.VERIFIED, State.DONE, Who.ITSELF, of=(State.VERIFYING,)),
)
