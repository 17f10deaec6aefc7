"""Coded reasons, which are stored and compared, and the messages that turn a code into text when it is shown.

A reason is a frozen dataclass: the class has the code, the fields are the parameters. Fields hold JSON values, tuples
of these, and reasons.

An app registers the messages of its codes when the app is ready; a code without a message is shown as it is, with its
parameters. A message names a parameter in braces, with an optional format after a colon: ``{target:brokers}``. A format
with a bar has a singular and a plural: ``{rows:# row has|# rows have}``, where # is the number, or the number of items.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import StrEnum
from functools import cache
from string import Formatter
from types import NoneType
from typing import Any, ClassVar, TypeVar, dataclass_transform, overload

from kafkadash.core.formatting import (
    format_duration,
    format_size,
    join_items,
    listed_shortly,
    long_duration,
    read_whole_number,
)

_BY_CODE: dict[str, type[CodedReason]] = {}
R = TypeVar("R", bound="CodedReason")


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
@dataclass(frozen=True)
class CodedReason:
    """Each subclass names its code, ``class X(CodedReason, code=…)``, and is a frozen dataclass of its parameters.

    ``also``: further reasons of the same thing, in the order in which they came.
    """

    code: ClassVar[StrEnum]

    also: tuple[CodedReason, ...] = field(default=(), kw_only=True)

    def __init_subclass__(cls, *, code: StrEnum | None = None, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        dataclass(frozen=True)(cls)
        if code is not None:
            cls.code = code
            _BY_CODE[code.value] = cls

    def __iter__(self) -> Iterator[CodedReason]:
        yield self
        yield from self.also

    def __str__(self) -> str:
        """For logs, and where nobody has a text of the code."""
        return f"{self.stored_code} {json.dumps(self.params(), sort_keys=True, ensure_ascii=False)}"

    @property
    def stored_code(self) -> str:
        return self.code.value

    def params(self) -> dict[str, Any]:
        """Return the parameters as JSON holds them."""
        values = {each.name: getattr(self, each.name) for each in fields(self)}
        return {name: pack_value(value) for name, value in values.items() if name != "also" or value}


class PlainReason(CodedReason):
    """Any code that has no parameters: it needs no class of its own."""

    plain: StrEnum | str

    @property
    def stored_code(self) -> str:
        return str(self.plain)

    def params(self) -> dict[str, Any]:
        return {"also": pack_value(self.also)} if self.also else {}


class UnknownReason(CodedReason):
    """A stored code that has no class of its own: of a message, of another version, or with parameters of one."""

    stored: str
    given: Mapping[str, Any]

    @property
    def stored_code(self) -> str:
        return self.stored

    def params(self) -> dict[str, Any]:
        return dict(self.given)


def stored_reason(code: str, params: Mapping[str, Any]) -> CodedReason | None:
    """Return the reason that was stored as ``code`` and ``params``; None for an empty code."""
    if not code:
        return None
    values = {name: _unpack_parameter(value) for name, value in params.items()}
    try:
        if code in _BY_CODE:
            return _BY_CODE[code](**values)
        return UnknownReason(code, params) if params.keys() - {"also"} else PlainReason(code, **values)
    except TypeError:  # a parameter is missing, or is of another version
        return UnknownReason(code, params)


def is_same_reason(one: CodedReason | None, other: CodedReason | None) -> bool:
    """Return whether both reasons have the same code and parameters."""
    return one == other


def join_reasons(first: CodedReason | None, then: CodedReason) -> CodedReason:
    """Return both as one reason; the same reason twice is told once."""
    if first is None:
        return then
    known = [replace(each, also=()) for each in first]
    new = [each for each in (replace(each, also=()) for each in then) if each not in known]
    return replace(first, also=(*first.also, *new))


def find_reason(reason: CodedReason | None, kind: type[R]) -> R | None:
    """Return the first one of this kind among a reason and what came with it."""
    return next((each for each in reason or () if isinstance(each, kind)), None)


def reason_columns(reason: CodedReason | None, name: str = "reason") -> dict[str, Any]:
    """Return the values of the columns ``{name}_code`` and ``{name}_params`` of a table."""
    if reason is None:
        return {f"{name}_code": "", f"{name}_params": {}}
    return {f"{name}_code": reason.stored_code, f"{name}_params": reason.params()}


def pack_reasons(reasons: Iterable[CodedReason]) -> list[dict[str, Any]]:
    """Return reasons as a column of JSON holds them."""
    return [pack_value(reason) for reason in reasons]


def unpack_reasons(stored: Iterable[Mapping[str, Any]]) -> tuple[CodedReason, ...]:
    found = (stored_reason(str(each.get("code", "")), each.get("params") or {}) for each in stored)
    return tuple(reason for reason in found if reason is not None)


def known_codes() -> Mapping[str, type[CodedReason]]:
    return dict(_BY_CODE)


def _unpack_parameter(value: Any) -> Any:
    if isinstance(value, dict):
        return stored_reason(str(value.get("code", "")), value.get("params") or {})
    return tuple(_unpack_parameter(each) for each in value) if isinstance(value, list) else value


_Code = TypeVar("_Code", bound=StrEnum)
PLURAL, NUMBER = "|", "#"
MOST_NAMED = 8
LONGEST_PARAMETER = 20_000
"""Characters of a text that is stored with a message."""
Writer = Callable[[Any], str]
PluralChoice = Callable[[str, str, int], str]


class PlainCode(StrEnum):
    """The code of a text that has no code of its own, such as the words of a library."""

    TEXT = "text"


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

    ``news`` is a sentence about what happened meanwhile, '' where nothing is known. ``code`` is a plain text where it
    was stored by a version that had other codes. ``also``: further messages of the same thing, each told once.
    """

    code: StrEnum | str
    params: Mapping[str, Any]
    news: str = ""
    also: tuple[CodedMessage, ...] = ()

    def __str__(self) -> str:
        if self.also:
            several = (self, *self.also)
            texts = [part for each in several for part in (each.cause, each.news)]
            return " ".join(filter(None, dict.fromkeys([*texts, *(each.advice for each in several)])))
        return message_with_news(self.code, self.news, **self.params)

    @property
    def cause(self) -> str:
        """Return what is so, without what to do next: for a place that says that once for several.

        A message that only says what to do is returned whole.
        """
        return message_cause(self.code, **self.params) or self.advice

    @property
    def advice(self) -> str:
        return message_advice(self.code, **self.params)

    @property
    def codes(self) -> tuple[str, ...]:
        """Codes that people can search for: none of a plain text."""
        several = (each.code for each in (self, *self.also) if each.code is not PlainCode.TEXT)
        return tuple(dict.fromkeys(map(str, several)))

    @property
    def shown_code(self) -> str:
        """'' where only a text is known."""
        return ", ".join(self.codes)

    def as_json(self) -> dict[str, Any]:
        """Return code and parameters as a column of JSON holds them; ``news`` is not kept."""
        params = {name: pack_value(value) for name, value in self.params.items()}
        return {"code": str(self.code), "params": params | ({"also": pack_value(self.also)} if self.also else {})}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any] | str) -> CodedMessage:
        """Return the message that was stored; a text of a version without codes is shown as it is."""
        if isinstance(stored, str):
            return as_message(stored)
        code = str(stored.get("code", ""))
        params = {name: unpack_value(value) for name, value in (stored.get("params") or {}).items()}
        also = tuple(each for each in params.pop("also", ()) if isinstance(each, CodedMessage))
        return cls(_CODES.get(code, code), params, also=also)


_MESSAGES: dict[str, MessageTemplate] = {PlainCode.TEXT.value: MessageTemplate("{text}")}
_CODES: dict[str, StrEnum] = {code.value: code for code in PlainCode}


def register_messages(messages: Mapping[_Code, MessageTemplate], writers: Mapping[str, Writer] | None = None) -> None:
    """``writers`` write parameters of these messages: ``{state:row_state}`` is written by the one named row_state.

    Raises ValueError where a code has another message already, or a name another writer.
    """
    for name, writer in (writers or {}).items():
        if _WRITERS.setdefault(name, writer) is not writer:
            raise ValueError(f"two writers of the name {name}")
    for code, message in messages.items():
        if code.value in _MESSAGES and _MESSAGES[code.value] is not message:
            raise ValueError(f"two messages of the code {code}")
        _MESSAGES[code.value], _CODES[code.value] = message, code


def set_plural_choice(choice: PluralChoice) -> None:
    """Let ``choice`` (Django's ``ngettext``) take the singular or the plural instead of the rule of English."""
    global _choose_plural  # noqa: PLW0603
    _choose_plural = choice


def choose_plural(texts: str, number: int) -> str:
    """Return the singular or the plural of "# broker is|# brokers are", with the number in the place of #."""
    one, many = texts.split(PLURAL)
    return _choose_plural(one, many, number).replace(NUMBER, f"{number:,}")


def find_code(value: str) -> StrEnum:
    """Return the registered code with this value. Raises KeyError."""
    return _CODES[value]


def is_code(value: str) -> bool:
    return value in _CODES


def registered_messages() -> Mapping[str, MessageTemplate]:
    return dict(_MESSAGES)


def message_template(code: StrEnum) -> MessageTemplate:
    return _MESSAGES[code.value]


def message_columns(message: CodedMessage | None, name: str = "error") -> dict[str, Any]:
    """Return the values of the columns ``{name}_code`` and ``{name}_params`` of a table."""
    stored = message.as_json() if message else {"code": "", "params": {}}
    return {f"{name}_code": stored["code"], f"{name}_params": stored["params"]}


def message_reason(message: CodedMessage) -> CodedReason:
    """Return a message as a reason, equal to itself when it is read again."""
    packed = message.as_json()
    params = packed["params"]
    return UnknownReason(packed["code"], params) if params else PlainReason(packed["code"])


def stored_message(code: str, params: Mapping[str, Any]) -> CodedMessage | None:
    """Return the message that was stored as ``code`` and ``params``; None for an empty code."""
    return CodedMessage.from_json({"code": code, "params": params}) if code else None


def message_json(message: CodedMessage) -> dict[str, Any]:
    """Return a message as commands with --json print it: code and parameters, and both parts of its text."""
    text, advice = message_parts(message.code, **message.params)
    return {**message.as_json(), "message": text, "advice": advice}


def pack_value(value: Any) -> Any:
    """Return a parameter as JSON holds it: lists for tuples and sets, ISO 8601 for times.

    An exception is stored as its message where that has a code, and as its text where it has none.
    """
    content = getattr(value, "message", None) if isinstance(value, Exception) else value
    if isinstance(content, CodedMessage):
        return content.as_json()
    if isinstance(value, CodedReason):
        return {"code": value.stored_code, "params": value.params()}
    if isinstance(value, bool | int | float | NoneType):
        return value
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return [pack_value(each) for each in value]
    if isinstance(value, set | frozenset):
        return [pack_value(each) for each in sorted(value)]
    # PostgreSQL stores no NUL, and the words of others may have one, or be as long as a response of Kafka.
    return str(value)[:LONGEST_PARAMETER].replace("\0", "\ufffd")


def unpack_value(value: Any) -> Any:
    """Return a stored parameter: tuples for lists, a message or reason for a code with parameters."""
    if isinstance(value, dict):
        reason = stored_reason(str(value.get("code", "")), value.get("params") or {})
        return CodedMessage.from_json(value) if isinstance(reason, UnknownReason | PlainReason) else reason
    return tuple(unpack_value(each) for each in value) if isinstance(value, list) else value


def first_names(names: Sequence[str], most: int = 3) -> tuple[str | int, ...]:
    """Return the names as ``{names:names}`` shows them: at most ``most`` and one, else how many more there are last."""
    return tuple(names) if len(names) <= most + 1 else (*names[:most], len(names) - most)


def coded(code: StrEnum, /, **params: Any) -> CodedMessage:
    return CodedMessage(code, params)


def as_message(message: CodedMessage | str) -> CodedMessage:
    """Return a message, or a text as one; its code is PlainCode.TEXT."""
    return message if isinstance(message, CodedMessage) else coded(PlainCode.TEXT, text=message)


def read_message(stored: Any) -> CodedMessage:
    """Return the message that JSON of others holds: code and parameters, or a text.

    Raises ValueError for parameters that are none, and for what is nested too deeply to be told.
    """
    try:
        message = CodedMessage.from_json(stored if isinstance(stored, Mapping) else str(stored))
        str(message)
    except (AttributeError, RecursionError) as error:
        raise ValueError("this is no message") from error
    return message


def message_text(code: StrEnum | str, /, **params: Any) -> str:
    """Return what is so and what to do next, in sentences."""
    return " ".join(filter(None, message_parts(code, **params)))


def message_with_news(code: StrEnum | str, news: str, /, **params: Any) -> str:
    """Return the same, with what is known besides, a sentence or '', between the two."""
    text, advice = message_parts(code, **params)
    return " ".join(filter(None, (text, news, advice)))


def join_messages(messages: Iterable[CodedMessage]) -> CodedMessage:
    """Return several messages as one; the same one twice is told once."""
    several = (each for message in messages for each in (replace(message, also=()), *message.also))
    first, *rest = {(each.code, repr(each.params)): each for each in several}.values()
    return replace(first, also=tuple(rest))


def message_cause(code: StrEnum | str, /, **params: Any) -> str:
    """Return what is so alone; ``params`` are those that this part of the message names."""
    return _render_text(str(code), params)


def message_advice(code: StrEnum | str, /, **params: Any) -> str:
    return _render_advice(str(code), params)


def message_parts(code: StrEnum | str, /, **params: Any) -> tuple[str, str]:
    """Return what is so and what to do next, for a place that shows them apart."""
    return _render_text(str(code), params), _render_advice(str(code), params)


def message_part(message: CodedMessage, part: str) -> str:
    """Return another part of a message, an attribute of its template; '' where its template has no such part."""
    code = str(message.code)
    try:
        return _fill(getattr(_MESSAGES.get(code), part, ""), message.params)
    except _UNFILLABLE:
        return _as_code(code, message.params)


@overload
def reason_message(reason: CodedReason) -> CodedMessage: ...


@overload
def reason_message(reason: None) -> None: ...


@overload
def reason_message(reason: CodedReason | None) -> CodedMessage | None: ...


def reason_message(reason: CodedReason | None) -> CodedMessage | None:
    """Return a reason, with those that came with it, as a message."""
    stored = ({"code": each.stored_code, "params": replace(each, also=()).params()} for each in reason or ())
    return join_messages(map(CodedMessage.from_json, stored)) if reason else None


def reason_text(reason: CodedReason | None) -> str:
    """Return all of it in sentences: first the causes, then each advice once."""
    parts = [_reason_parts(each) for each in reason or ()]
    return " ".join(filter(None, dict.fromkeys(text for side in zip(*parts, strict=True) for text in side)))


def reason_cause(reason: CodedReason | None) -> str:
    """Return what is so, without what to do next: for a place that says that once for several."""
    return " ".join(_reason_parts(each)[0] for each in reason or ())


def reason_advice(reason: CodedReason | None) -> str:
    """Return what to do next, or what happens by itself."""
    return " ".join(filter(None, dict.fromkeys(_reason_parts(each)[1] for each in reason or ())))


def _reason_parts(reason: CodedReason) -> tuple[str, str]:
    if isinstance(reason, UnknownReason | PlainReason) and reason.stored_code in _BY_CODE:
        return str(reason), ""  # it has other parameters than this version knows
    if isinstance(reason, UnknownReason):
        told = CodedMessage.from_json({"code": reason.stored, "params": reason.given})
        parts = zip(*(message_parts(each.code, **each.params) for each in (told, *told.also)), strict=True)
        text, advice = (" ".join(filter(None, dict.fromkeys(each))) for each in parts)
        return text, advice
    params = {each.name: getattr(reason, each.name) for each in fields(reason)}
    return _render_text(reason.stored_code, params), _render_advice(reason.stored_code, params)


def _render_text(code: str, params: Mapping[str, Any]) -> str:
    message = _MESSAGES.get(code)
    if message is None:
        return _as_code(code, params)
    try:
        return _fill(_chosen_text(message, params), params)
    except _UNFILLABLE:
        return _as_code(code, params)


def _render_advice(code: str, params: Mapping[str, Any]) -> str:
    message = _MESSAGES.get(code)
    try:
        return _fill(message.advice, params) if message else ""
    except _UNFILLABLE:
        return "" if message and message.text else _as_code(code, params)  # shown once


def _chosen_text(message: MessageTemplate, params: Mapping[str, Any]) -> str:
    if not message.by:
        return message.text
    value = params[message.by]
    return _choose_plural(message.text, message.many, _how_many(value))


def _how_many(value: Any) -> int:
    """A list counts its items, and where it is one of ``first_names``, those that were left out."""
    if not isinstance(value, list | tuple):
        return int(value)
    return len(value) - 1 + value[-1] if _left_out(value) else len(value)


def _left_out(names: Sequence[Any]) -> bool:
    return len(names) > 1 and isinstance(names[-1], int) and isinstance(names[0], str)


def _fill(template: str, params: Mapping[str, Any]) -> str:
    """Fill a template in; a refresh may tell of 200,000 partitions, and str.format is the fastest where it will do."""
    parts = _split_template(template)
    if parts is None:
        return template.format_map(params)
    texts = []
    for literal, name, how, conversion in parts:
        texts.append(literal)
        if name is not None:
            value = _FORMATTER.convert_field(params[name], conversion) if conversion else params[name]
            texts.append(_FORMATTER.format_field(value, how))
    return "".join(texts)


@cache
def _split_template(template: str) -> tuple[tuple[str, str | None, str, str | None], ...] | None:
    """Return (text, parameter after it, how it is written, conversion) of each part; None: str.format will do."""
    parts = tuple(
        (literal, name, how or "", conversion) for literal, name, how, conversion in _FORMATTER.parse(template)
    )
    return parts if any(how in _WRITERS or PLURAL in how for _, _, how, _ in parts if how) else None


def _as_code(code: str, params: Mapping[str, Any]) -> str:
    shown = {name: value for name, value in params.items() if name != "also" or value}
    return f"{code} {json.dumps(shown, sort_keys=True, ensure_ascii=False, default=str)}" if shown else code


class _ParameterFormatter(Formatter):
    def format_field(self, value: Any, format_spec: str) -> str:
        if PLURAL in format_spec:
            return choose_plural(format_spec, _how_many(value))
        writes = _WRITERS.get(format_spec)
        return writes(value) if writes else super().format_field(value, format_spec)


def _brokers(ids: Iterable[int]) -> str:
    return ", ".join(str(broker) for broker in ids)


def join_names(names: Sequence[str | int]) -> str:
    """Return names as a text; ``first_names`` made the list."""
    more = [f"{names[-1]:,} more"] if _left_out(names) else []
    return join_items([*map(str, names[: len(names) - len(more)]), *more])


def _cause(why: CodedMessage | CodedReason | str | None) -> str:
    if isinstance(why, CodedMessage):
        return why.cause
    return why if isinstance(why, str) else reason_cause(why)


def _moment(at: datetime | str) -> str:
    return f"{datetime.fromisoformat(at) if isinstance(at, str) else at:%d %b %H:%M} UTC"


def _rate(stored: str) -> str:
    """A rate as Kafka holds it, in bytes per second; whatever else somebody set there, as it is."""
    number = read_whole_number(stored)
    return stored if number is None else f"{format_size(number)}/s"


_WRITERS: dict[str, Writer] = {
    "brokers": _brokers,
    "duration": format_duration,
    "age": long_duration,
    "bytes": format_size,
    "names": join_names,
    "few": lambda ids: listed_shortly([str(each) for each in ids], MOST_NAMED) or "none",
    "moment": _moment,
    "rate": _rate,
    "reason": lambda reason: reason_text(reason) if isinstance(reason, CodedReason | None) else str(reason),
    "notes": lambda notes: " · ".join(str(each) for each in notes),
    "advice": lambda why: why.advice if isinstance(why, CodedMessage) else reason_advice(why),
    "cause": _cause,
}
_FORMATTER = _ParameterFormatter()
# Raised for what a version stored that had other parameters, or of other types.
_UNFILLABLE = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)
