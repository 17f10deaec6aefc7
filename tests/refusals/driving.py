"""A case drives one entry of the catalogue: it does the real thing and returns what the person sees of it."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from string import Formatter
from typing import Any

import pytest

from kafkadash.domain.messages import message_template
from kafkadash.domain.refusals.entry import Entry

DRIVEN: set[str] = set()
"""Keys and codes for which there is a case; filled when the modules with the cases are imported."""


@dataclass(frozen=True)
class Case:
    """``see`` takes what the test gives it and returns the text; ``values`` are those that the sentence has to have.

    A value that is not named may be anything but nothing.
    """

    entry: Entry | StrEnum
    see: Callable[..., str]
    values: dict[str, object] = field(default_factory=dict)

    def check(self, *world: Any) -> None:
        text = " ".join(str(self.see(*world)).split())
        # Between the two there may be what happened meanwhile: "bob declined it on …".
        what, then = self._templates
        parts = (self._pattern(what), self._pattern(then))
        pattern = " (?:.+? )?".join(part for part in parts if part)
        assert re.search(pattern, text), f"not “{what} {then}”, but: {text[:3000]}"

    @property
    def key(self) -> str:
        return self.entry.key if isinstance(self.entry, Entry) else self.entry.value

    @property
    def _templates(self) -> tuple[str, str]:
        if isinstance(self.entry, Entry):
            return self.entry.what, self.entry.then
        message = message_template(self.entry)
        return message.text, message.advice

    def _pattern(self, template: str) -> str:
        parts = []
        for literal, name, spec, conversion in Formatter().parse(template):
            parts.append(re.escape(literal))
            if name:
                known = name in self.values
                value = Formatter().convert_field(self.values.get(name), conversion)
                parts.append(re.escape(format(value, spec or "")) if known else ".+?")
        return "".join(parts)


def case(entry: Entry | StrEnum, see: Callable[..., str], **values: object) -> Case:
    driven = Case(entry, see, values)
    DRIVEN.add(driven.key)
    return driven


def each(*cases: Case) -> pytest.MarkDecorator:
    """Named after their entries; one that is driven in several ways is numbered."""
    keys = [one.key for one in cases]
    ids = [f"{key}-{keys[:n].count(key) + 1}" if keys.count(key) > 1 else key for n, key in enumerate(keys)]
    return pytest.mark.parametrize("one", cases, ids=ids)


def refused(kind: type[Exception], do: Callable[[], object]) -> str:
    """What a service refuses with."""
    with pytest.raises(kind) as caught:
        do()
    return str(caught.value)
