"""A case reaches one code: it does the real thing and returns the message, or what the person sees of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter
from typing import Any

import pytest

from kafkadash.core.errors import UserError
from kafkadash.core.messages import _FORMATTER, CodedMessage, message_template
from tests.reached_codes import note_reached


@dataclass(frozen=True)
class Case:
    """``see`` takes what the test gives it and returns the message, or the text of a page or a command with it.

    ``values`` are parameters that it has to have; one that is not named may be anything but nothing.
    """

    code: StrEnum
    see: Callable[..., CodedMessage | str]
    values: dict[str, object] = field(default_factory=dict)

    def check(self, *world: Any) -> None:
        seen = self.see(*world)
        if isinstance(seen, CodedMessage):
            assert seen.code == self.code
            assert {name: seen.params[name] for name in self.values} == self.values
            return
        text = " ".join(seen.split())
        # Between the two there may be what happened meanwhile: "bob declined it on …".
        message = message_template(self.code)
        found = [self._pattern(what) for what in filter(None, (message.text, message.many))]
        parts = ("(?:" + "|".join(found) + ")" if found else "", self._pattern(message.advice))
        pattern = " (?:.+? )?".join(part for part in parts if part)
        assert re.search(pattern, text), f"not “{message.text} {message.advice}”, but: {text[:3000]}"
        note_reached(self.code.value)  # also where a process of its own wrote the text

    def _pattern(self, template: str) -> str:
        parts = []
        for literal, name, spec, conversion in Formatter().parse(template):
            parts.append(re.escape(literal))
            if name:
                known = name in self.values
                value = Formatter().convert_field(self.values.get(name), conversion)
                parts.append(re.escape(_FORMATTER.format_field(value, spec or "")) if known else ".+?")
        return "".join(parts)


def case(code: StrEnum, see: Callable[..., CodedMessage | str], /, **values: object) -> Case:
    return Case(code, see, values)


def each(*cases: Case) -> pytest.MarkDecorator:
    """Named after their codes; one that is driven in several ways is numbered."""
    keys = [one.code.value for one in cases]
    ids = [f"{key}-{keys[:n].count(key) + 1}" if keys.count(key) > 1 else key for n, key in enumerate(keys)]
    return pytest.mark.parametrize("one", cases, ids=ids)


def refusal(kind: type[UserError], do: Callable[[], object]) -> CodedMessage:
    """Return the code and the parameters with which a service refuses."""
    with pytest.raises(kind) as caught:
        do()
    return caught.value.message


def refused(kind: type[Exception], do: Callable[[], object]) -> str:
    """Return the text of an error that has no code."""
    with pytest.raises(kind) as caught:
        do()
    return str(caught.value)
