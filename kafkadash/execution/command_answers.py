"""Answers to what people asked of a run: codes with parameters, as they are stored with the order."""

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


_LOOK = "Look at the page of the run again."

ORDER_MESSAGES: Mapping[OrderAnswerCode, MessageTemplate] = {
    OrderAnswerCode.CANCEL_BEGAN: MessageTemplate("It is being cancelled."),
    OrderAnswerCode.LEFT_OUT: MessageTemplate("It had not begun, and is left out."),
    OrderAnswerCode.TAKES_ITS_TURN: MessageTemplate("It takes its turn again."),
    OrderAnswerCode.GIVEN_UP: MessageTemplate("It was given up."),
    OrderAnswerCode.ELECTED: MessageTemplate("Its preferred replica leads it."),
    OrderAnswerCode.THROTTLE_STAYS: MessageTemplate(
        "{value:rate} stays on {place}; it is not adjusted and not removed by this run."
    ),
    OrderAnswerCode.THROTTLE_SET_OVER: MessageTemplate(
        "Ours is set on {place}; {value:rate} is put back when this run does not need it any more."
    ),
    OrderAnswerCode.NO_ROW: MessageTemplate("The run has no such row.", "Choose a row from the page of the run."),
    OrderAnswerCode.TOO_LATE: MessageTemplate(
        "It was already in the state “{state:row_state}”.", "Nothing more can be asked of it in this run."
    ),
    OrderAnswerCode.RUN_IS_CANCELLED: MessageTemplate(
        "The run is being cancelled: nothing is submitted any more.", "Propose what is left anew when it has ended."
    ),
    OrderAnswerCode.DOES_NOT_ASK: MessageTemplate(
        "It does not ask any more: its state is “{state:row_state}”.", "Nothing is to be done about it."
    ),
    OrderAnswerCode.RUN_ENDED: MessageTemplate(
        "The run had ended before it was done.", "Look at how the row ended in the report."
    ),
    OrderAnswerCode.NO_FOREIGN_THROTTLE: MessageTemplate(
        "There is no throttle of others on {entity} now that differs from ours.", _LOOK
    ),
    OrderAnswerCode.ELECTION_UNKNOWN: MessageTemplate(
        "Nobody knows whether it was done.", "Look at who leads it, then ask again."
    ),
    OrderAnswerCode.ELECTION_REFUSED: MessageTemplate("It was not elected: {answer}", "Ask again when that is mended."),
    OrderAnswerCode.ELECTION_NOT_SENT: MessageTemplate("It was not asked for: {why}", "Ask again when that is mended."),
    OrderAnswerCode.ELECTION_NO_TIME: MessageTemplate("There was no time left for it in this step.", "Ask again."),
}
