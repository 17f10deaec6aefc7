"""What the checker says of one of its rules."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Rule:
    """``passed`` None: cannot be judged, ``problems`` say why. ``figure`` is what was counted: "230 of 230"."""

    name: str
    passed: bool | None
    figure: str
    problems: tuple[str, ...] = ()

    def as_json(self) -> list[Any]:
        return [self.name, self.passed, self.figure, list(self.problems)]

    @classmethod
    def from_json(cls, stored: Sequence[Any]) -> Rule:
        name, passed, figure, problems = stored
        return cls(name, passed, figure, tuple(problems))
