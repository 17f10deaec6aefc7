"""Texts of codes: what is said, and what to do next.

An app registers the messages of its codes when it is ready; where none is registered, a code is shown as it is, with
its parameters. A message names parameters in braces, after a colon how they are written: ``{target:brokers}``.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from string import Formatter
from typing import Any, TypeVar

from kafkadash.domain.reasons import CodedReason, UnknownReason
from kafkadash.domain.whole_numbers import read_whole_number
from kafkadash.domain.wording import duration, size

_Code = TypeVar("_Code", bound=StrEnum)
Writer = Callable[[Any], str]
PluralChoice = Callable[[str, str, int], str]
_MESSAGES: dict[str, MessageTemplate] = {}
_CODES: dict[str, StrEnum] = {}


def _choose_english(one: str, many: str, number: int) -> str:
    return one if number == 1 else many


_choose_plural: PluralChoice = _choose_english


@dataclass(frozen=True, slots=True)
class MessageTemplate:
    """``text`` says what is so, ``advice`` what to do next or what happens by itself; one of them may be empty.

    ``many`` takes the place of ``text`` where the parameter named ``by`` is not 1, or has not one item.
    """

    text: str
    advice: str = ""
    many: str = ""
    by: str = ""


@dataclass(frozen=True, slots=True)
class CodedMessage:
    """A code with its parameters, to be told to a person; ``str()`` is its text, ``news`` and its advice.

    ``news`` is a sentence about what happened meanwhile, '' where nothing is known.
    """

    code: StrEnum
    params: Mapping[str, Any]
    news: str = ""

    def __hash__(self) -> int:
        return hash((self.code, self.news))  # parameters may hold what cannot be hashed

    def __str__(self) -> str:
        return message_with_news(self.code, self.news, **self.params)


def register_messages(messages: Mapping[_Code, MessageTemplate], writers: Mapping[str, Writer] | None = None) -> None:
    """``writers`` write parameters of these messages: ``{state:row_state}`` is written by the one named row_state.

    Raises ValueError where a code has another message already.
    """
    _WRITERS.update(writers or {})
    for code, message in messages.items():
        if code.value in _MESSAGES and _MESSAGES[code.value] is not message:
            raise ValueError(f"two messages of the code {code}")
        _MESSAGES[code.value], _CODES[code.value] = message, code


def set_plural_choice(choice: PluralChoice) -> None:
    """Let ``choice`` (Django's ``ngettext``) take the singular or the plural instead of the rule of English."""
    global _choose_plural  # noqa: PLW0603
    _choose_plural = choice


def find_code(value: str) -> StrEnum:
    """Return the registered code with this value. Raises KeyError."""
    return _CODES[value]


def message_template(code: StrEnum) -> MessageTemplate:
    return _MESSAGES[code.value]


def coded(code: StrEnum, /, **params: Any) -> CodedMessage:
    return CodedMessage(code, params)


def message_text(code: StrEnum, /, **params: Any) -> str:
    """Return what is so and what to do next, in sentences."""
    return " ".join(filter(None, message_parts(code, **params)))


def message_with_news(code: StrEnum, news: str, /, **params: Any) -> str:
    """Return the same, with what is known besides, a sentence or '', between the two."""
    text, advice = message_parts(code, **params)
    return " ".join(filter(None, (text, news, advice)))


def join_messages(messages: Iterable[CodedMessage | str]) -> str:
    """Return several messages as one text: each text with its news once, then each advice once."""
    texts, advices = [], []
    for each in messages:
        if isinstance(each, CodedMessage):
            text, advice = message_parts(each.code, **each.params)
            texts += [text, each.news]
            advices.append(advice)
        else:
            texts.append(each)
    return " ".join(filter(None, dict.fromkeys([*texts, *advices])))


def message_cause(code: StrEnum, /, **params: Any) -> str:
    """Return what is so alone; ``params`` are those that this part of the message names."""
    return _text(code.value, params)


def message_advice(code: StrEnum, /, **params: Any) -> str:
    return _advice(code.value, params)


def message_parts(code: StrEnum, /, **params: Any) -> tuple[str, str]:
    """Return what is so and what to do next, for a place that shows them apart."""
    return _text(code.value, params), _advice(code.value, params)


def reason_text(reason: CodedReason | None) -> str:
    """Return all of it in sentences: what is so and what to do next, for each reason that came with it too."""
    return " ".join(" ".join(filter(None, _reason_parts(each))) for each in reason or ())


def reason_cause(reason: CodedReason | None) -> str:
    """Return what is so, without what to do next: for a place that says that once for several."""
    return " ".join(_reason_parts(each)[0] for each in reason or ())


def reason_advice(reason: CodedReason | None) -> str:
    """Return what to do next, or what happens by itself."""
    return " ".join(filter(None, (_reason_parts(each)[1] for each in reason or ())))


def _reason_parts(reason: CodedReason) -> tuple[str, str]:
    if isinstance(reason, UnknownReason):
        return str(reason), ""
    params = {each.name: getattr(reason, each.name) for each in fields(reason)}
    return _text(reason.stored_code, params), _advice(reason.stored_code, params)


def _text(code: str, params: Mapping[str, Any]) -> str:
    message = _MESSAGES.get(code)
    if message is None:
        return _as_code(code, params)
    try:
        return _FORMATTER.vformat(_chosen_text(message, params), (), params)
    except (KeyError, TypeError, ValueError):  # stored by a version that had other parameters, or of other types
        return _as_code(code, params)


def _advice(code: str, params: Mapping[str, Any]) -> str:
    message = _MESSAGES.get(code)
    try:
        return _FORMATTER.vformat(message.advice, (), params) if message else ""
    except (KeyError, TypeError, ValueError):
        return ""  # the text shows what is stored


def _chosen_text(message: MessageTemplate, params: Mapping[str, Any]) -> str:
    if not message.by:
        return message.text
    value = params[message.by]
    return _choose_plural(message.text, message.many, len(value) if isinstance(value, tuple) else value)


def _as_code(code: str, params: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in params.items() if name != "also" or value}
    return f"{code} {json.dumps(shown, sort_keys=True, ensure_ascii=False, default=str)}"


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
