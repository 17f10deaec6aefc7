"""Problems that keep a request from being planned, or deserve a mention, with their place in the submitted file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from kafkadash.core.messages import CodedMessage


@dataclass(frozen=True, slots=True)
class InputProblem:
    """``line`` and ``column`` count from 1, None where there is no file or no such place."""

    message: CodedMessage
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return str(self.message)
        place = f"Line {self.line:,}" if self.column is None else f"Line {self.line:,}, column {self.column:,}"
        return f"{place}: {self.message}"

    @property
    def code(self) -> StrEnum | str:
        return self.message.code

    @property
    def codes(self) -> tuple[str, ...]:
        return self.message.codes

    def as_json(self) -> dict[str, Any]:
        return {**self.message.as_json(), "line": self.line, "column": self.column}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> InputProblem:
        return cls(CodedMessage.from_json(stored), stored.get("line"), stored.get("column"))
