"""Why something is as it is: a code and its parameters, which are stored and compared. The text is made of them when
they are shown (``kafkadash.domain.messages``).

A reason is a frozen dataclass: its class has the code, its fields are the parameters. Fields hold what JSON can hold,
tuples of that, and reasons.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from typing import Any, ClassVar, TypeVar

_BY_CODE: dict[str, type[CodedReason]] = {}
R = TypeVar("R", bound="CodedReason")


@dataclass(frozen=True, slots=True)
class CodedReason:
    """``also``: further reasons of the same thing, in the order in which they came."""

    code: ClassVar[StrEnum]

    also: tuple[CodedReason, ...] = field(default=(), kw_only=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super(CodedReason, cls).__init_subclass__(**kwargs)
        if "code" in cls.__dict__:
            _BY_CODE[cls.code.value] = cls

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
        return {name: _packed(value) for name, value in values.items() if name != "also" or value}


@dataclass(frozen=True, slots=True)
class UnknownReason(CodedReason):
    """A stored code that this version does not know, or parameters that it cannot read; shown as they are stored."""

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
    kind = _BY_CODE.get(code)
    try:
        return kind(**{name: _value(value) for name, value in params.items()}) if kind else UnknownReason(code, params)
    except TypeError:  # a parameter is missing, or is of another version
        return UnknownReason(code, params)


def is_same_reason(one: CodedReason | None, other: CodedReason | None) -> bool:
    """Whether both have the same code and parameters."""
    return one == other


def joined(first: CodedReason | None, then: CodedReason) -> CodedReason:
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
    return [_packed(reason) for reason in reasons]


def unpack_reasons(stored: Iterable[Mapping[str, Any]]) -> tuple[CodedReason, ...]:
    found = (stored_reason(str(each.get("code", "")), each.get("params") or {}) for each in stored)
    return tuple(reason for reason in found if reason is not None)


def known_codes() -> Mapping[str, type[CodedReason]]:
    return dict(_BY_CODE)


def _packed(value: Any) -> Any:
    if isinstance(value, CodedReason):
        return {"code": value.stored_code, "params": value.params()}
    if isinstance(value, str):
        return value.replace("\0", "\ufffd")  # PostgreSQL stores no NUL, and others' words may have one
    return [_packed(each) for each in value] if isinstance(value, tuple) else value


def _value(value: Any) -> Any:
    if isinstance(value, dict):
        return stored_reason(str(value.get("code", "")), value.get("params") or {})
    return tuple(_value(each) for each in value) if isinstance(value, list) else value
