"""Sending changes: what is an answer, what certainly was not sent, and what nobody knows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from kafkadash.domain.messages import CodedMessage
from kafkadash.kafka.asking import Answer, Ask
from kafkadash.kafka.messages import Response
from kafkadash.kafka.port import KafkaFailure
from kafkadash.kafka.wire import Wire

R = TypeVar("R", bound=Response)
Told = list[Answer[R] | KafkaFailure]
WithWire = Callable[[Callable[[Wire], Told[R]]], Told[R]]


@dataclass(frozen=True, slots=True)
class Unanswered:
    """It may have left, and no answer came: it may have been done, or may still be. ``why`` says what happened."""

    why: CodedMessage | str


def outcome(ask: Ask[R], question: Callable[[], Answer[R]]) -> Answer[R] | Unanswered:
    """The answer to a change. Raises KafkaFailure only where it certainly was not and will not be sent."""
    assert ask.once is not None
    try:
        return question()
    except KafkaFailure as failure:
        if ask.once.give_up():
            return Unanswered(failure.message)
        raise


def outcomes(
    asks: Sequence[tuple[int, Ask[R]]], with_wire: WithWire[R], deadline: float
) -> list[Answer[R] | Unanswered | KafkaFailure]:
    """Each change to its own broker, all at the same time; a KafkaFailure where it certainly was not sent."""
    results: Sequence[Answer[R] | KafkaFailure]
    try:
        results = with_wire(lambda wire: wire.ask_each(asks, deadline=deadline))
    except KafkaFailure as failure:
        results = [failure] * len(asks)
    found: list[Answer[R] | Unanswered | KafkaFailure] = []
    for (_, ask), result in zip(asks, results, strict=True):
        assert ask.once is not None
        lost = isinstance(result, KafkaFailure) and ask.once.give_up()
        found.append(Unanswered(str(result)) if lost else result)
    return found
