"""Answers to the orders that people gave to a run: codes with parameters, as they are stored with the order."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from kafkadash.core.messages import CodedReason, MessageTemplate


class OrderAnswerCode(StrEnum):
    """Codes of ``Order.answer``; the values are stored."""

    CANCEL_BEGAN = "order-cancel-began"
    LEFT_OUT = "order-left-out"
    TAKES_ITS_TURN = "order-takes-its-turn"
    GIVEN_UP = "order-given-up"
    ELECTED = "order-elected"
    THROTTLE_STAYS = "order-throttle-stays"
    THROTTLE_SET_OVER = "order-throttle-set-over"
    NO_ROW = "order-no-row"
    TOO_LATE = "order-too-late"
    RUN_IS_CANCELLED = "order-cancelling"
    DOES_NOT_ASK = "order-does-not-ask"
    RUN_ENDED = "order-run-ended"
    NO_FOREIGN_THROTTLE = "order-no-foreign-throttle"
    ELECTION_UNKNOWN = "election-unknown"
    ELECTION_REFUSED = "election-refused"
    ELECTION_NOT_SENT = "election-not-sent"
    ELECTION_NO_TIME = "election-no-time"


class ThrottleStays(CodedReason, code=OrderAnswerCode.THROTTLE_STAYS):
    """``value`` of others, as Kafka holds it, stays at ``place``."""

    value: str
    place: str


class ThrottleSetOver(CodedReason, code=OrderAnswerCode.THROTTLE_SET_OVER):
    """Ours is set at ``place``; ``value`` of others is put back later."""

    value: str
    place: str


class CameTooLate(CodedReason, code=OrderAnswerCode.TOO_LATE):
    """The row was in ``state``, a value of ``MoveState``, already."""

    state: str


class DoesNotAsk(CodedReason, code=OrderAnswerCode.DOES_NOT_ASK):
    """The row, which is in ``state``, a value of ``MoveState``, waits for no answer of an operator."""

    state: str


class NoForeignThrottle(CodedReason, code=OrderAnswerCode.NO_FOREIGN_THROTTLE):
    entity: str


class ElectionRefused(CodedReason, code=OrderAnswerCode.ELECTION_REFUSED):
    """``answer``: Kafka's own words."""

    answer: str


class ElectionNotSent(CodedReason, code=OrderAnswerCode.ELECTION_NOT_SENT):
    """``why``: what kept the request from leaving."""

    why: str


_FIX_FIRST = "Fix the cause, then request the election again."

ORDER_MESSAGES: Mapping[OrderAnswerCode, MessageTemplate] = {
    OrderAnswerCode.CANCEL_BEGAN: MessageTemplate("The move is being cancelled."),
    OrderAnswerCode.LEFT_OUT: MessageTemplate("The move had not begun and is left out."),
    OrderAnswerCode.TAKES_ITS_TURN: MessageTemplate("The move is waiting to be submitted again."),
    OrderAnswerCode.GIVEN_UP: MessageTemplate("The move was given up."),
    OrderAnswerCode.ELECTED: MessageTemplate("The preferred replica is the leader."),
    OrderAnswerCode.THROTTLE_STAYS: MessageTemplate(
        "{value:rate} stays on {place}. This run neither adjusts nor removes it."
    ),
    OrderAnswerCode.THROTTLE_SET_OVER: MessageTemplate(
        "The throttle of kafkadash is set on {place}. {value:rate} is restored when this run no longer needs its own."
    ),
    OrderAnswerCode.NO_ROW: MessageTemplate("The run has no such move.", "Choose a move on the run's page."),
    OrderAnswerCode.TOO_LATE: MessageTemplate(
        "The move's state was already “{state:row_state}”.", "This run accepts no more actions on the move."
    ),
    OrderAnswerCode.RUN_IS_CANCELLED: MessageTemplate(
        "The run is being cancelled and submits nothing more.",
        "Propose a new change for the remaining moves when the run has ended.",
    ),
    OrderAnswerCode.DOES_NOT_ASK: MessageTemplate(
        "The move no longer needs a decision: its state is “{state:row_state}”.", "No action needed."
    ),
    OrderAnswerCode.RUN_ENDED: MessageTemplate(
        "The run ended before this action.", "See the result of the move in the report."
    ),
    OrderAnswerCode.NO_FOREIGN_THROTTLE: MessageTemplate(
        "No throttle set by others on {entity} differs from that of kafkadash now.", "Check the run's page again."
    ),
    OrderAnswerCode.ELECTION_UNKNOWN: MessageTemplate(
        "The result of the election is unknown.", "Check the leader, then request the election again."
    ),
    OrderAnswerCode.ELECTION_REFUSED: MessageTemplate("Kafka rejected the election: {answer}", _FIX_FIRST),
    OrderAnswerCode.ELECTION_NOT_SENT: MessageTemplate("The election was not requested: {why}", _FIX_FIRST),
    OrderAnswerCode.ELECTION_NO_TIME: MessageTemplate(
        "The election was not requested: this step ran out of time.", "Request the election again."
    ),
}
