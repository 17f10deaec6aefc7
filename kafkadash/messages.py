"""Texts of codes: what is said, and what to do next.

An app registers the messages of its reasons when it is ready. A message names parameters of its reason in braces, after
a colon how they are written: ``{target:brokers}``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from string import Formatter
from typing import Any

from django.utils.translation import ngettext

from kafkadash.domain.reasons import CodedReason, UnknownReason
from kafkadash.domain.whole_numbers import read_whole_number
from kafkadash.domain.wording import duration, size

Writer = Callable[[Any], str]
_MESSAGES: dict[str, MessageTemplate] = {}


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    """``text`` says what is so, ``advice`` what to do next or what happens by itself.

    ``many`` takes the place of ``text`` where the parameter named ``by`` is not 1, or has not one item.
    """

    text: str
    advice: str = ""
    many: str = ""
    by: str = ""


def register_messages(messages: Mapping[Any, MessageTemplate], writers: Mapping[str, Writer] | None = None) -> None:
    """``writers`` write parameters of these messages: ``{state:row_state}`` is written by the one named row_state.

    Raises ValueError where a code has another message already.
    """
    _WRITERS.update(writers or {})
    for code, message in messages.items():
        if str(code) in _MESSAGES and _MESSAGES[str(code)] is not message:
            raise ValueError(f"two messages of the code {code}")
        _MESSAGES[str(code)] = message


def reason_text(reason: CodedReason | None) -> str:
    """Return all of it in sentences: what is so and what to do next, for each reason that came with it too."""
    return " ".join(" ".join(filter(None, (_text(each), _advice(each)))) for each in reason or ())


def reason_cause(reason: CodedReason | None) -> str:
    """Return what is so, without what to do next: for a place that says that once for several."""
    return " ".join(_text(each) for each in reason or ())


def reason_advice(reason: CodedReason | None) -> str:
    """Return what to do next, or what happens by itself."""
    return " ".join(filter(None, (_advice(each) for each in reason or ())))


def _text(reason: CodedReason) -> str:
    message = _MESSAGES.get(reason.stored_code)
    if message is None or isinstance(reason, UnknownReason):
        return str(reason)
    try:
        template = _chosen_text(message, reason)
        return _FORMATTER.vformat(template, (), _values(reason))
    except (TypeError, ValueError):  # a stored parameter is of another type than this version writes
        return str(reason)


def _chosen_text(message: MessageTemplate, reason: CodedReason) -> str:
    if not message.by:
        return message.text
    value = getattr(reason, message.by)
    return ngettext(message.text, message.many, len(value) if isinstance(value, tuple) else value)


def _advice(reason: CodedReason) -> str:
    message = _MESSAGES.get(reason.stored_code)
    if message is None or isinstance(reason, UnknownReason):
        return ""
    try:
        return _FORMATTER.vformat(message.advice, (), _values(reason))
    except (TypeError, ValueError):
        return ""  # the text shows what is stored


def _values(reason: CodedReason) -> Mapping[str, Any]:
    return {each.name: getattr(reason, each.name) for each in fields(reason)}


class _ParameterFormatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        writes = _WRITERS.get(format_spec)
        return writes(value) if writes else super().format_field(value, format_spec)


def _brokers(ids: Iterable[int]) -> str:
    return ", ".join(str(broker) for broker in ids)


def _rate(stored: str) -> str:
    """A rate as Kafka holds it, in bytes per second; whatever else somebody set there, as it is."""
    number = read_whole_number(stored)
    return stored if number is None else f"{size(number)}/s"


_WRITERS: dict[str, Writer] = {
    "brokers": _brokers,
    "duration": duration,
    "bytes": size,
    "rate": _rate,
    "reason": lambda reason: reason if isinstance(reason, str) else reason_text(reason),
    "cause": reason_cause,
}
_FORMATTER = _ParameterFormatter()
