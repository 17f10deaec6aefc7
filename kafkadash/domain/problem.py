"""What keeps a request from being planned, or deserves to be said about it, with its place in the file brought."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Problem:
    """One sentence for a person. ``line`` and ``column`` count from 1; None where there is no file, or no such place.

    ``code`` tells kinds apart ("duplicate partition", "disk limit") without reading the sentence.
    """

    code: str
    sentence: str
    line: int | None = None
    column: int | None = None

    def __str__(self) -> str:
        if self.line is None:
            return self.sentence
        place = f"Line {self.line:,}" if self.column is None else f"Line {self.line:,}, column {self.column:,}"
        return f"{place}: {self.sentence}"

    def as_json(self) -> dict[str, Any]:
        return {"code": self.code, "sentence": self.sentence, "line": self.line, "column": self.column}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Problem:
        return cls(stored["code"], stored["sentence"], stored["line"], stored["column"])
