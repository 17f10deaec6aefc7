"""What is checked about a change before it runs, and again before each row: content apart from health.

*Content* is what was approved: where it fails, the request is stale and the plan has to be made anew. *Health* is the
cluster's: where it fails, the request stays as it is and waits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any


class Result(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class About(StrEnum):
    CONTENT = "content"
    HEALTH = "health"


@dataclass(frozen=True, slots=True)
class Check:
    """One check. ``title`` says what is asked in words that are true when it passed ("Every partition is as planned"),
    ``figure`` what was counted ("230 of 230"), ``problems`` one sentence per row or broker where it failed.

    ``problem_count`` is of all of them, where ``problems`` holds the first ones only; ``then`` is what to do about
    them. ``lasting``: it failed, and no time that passes mends that, only another plan.
    ``amount``: what was counted, for whoever reckons with it; None where that is not known.
    """

    code: str
    about: About
    result: Result
    title: str
    figure: str = ""
    problems: tuple[str, ...] = ()
    problem_count: int = 0
    then: str = ""
    lasting: bool = False
    amount: int | None = None

    def as_json(self) -> dict[str, Any]:
        return {
            "code": self.code,
            "about": self.about.value,
            "result": self.result.value,
            "title": self.title,
            "figure": self.figure,
            "problems": list(self.problems),
            "problem_count": self.problem_count,
            "then": self.then,
            "lasting": self.lasting,
            "amount": self.amount,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Check:
        return cls(
            code=stored["code"],
            about=About(stored["about"]),
            result=Result(stored["result"]),
            title=stored["title"],
            figure=stored["figure"],
            problems=tuple(stored["problems"]),
            problem_count=stored["problem_count"],
            then=stored.get("then", ""),  # these three: stored by a version that did not say it
            lasting=stored.get("lasting", False),
            amount=stored.get("amount"),
        )


@dataclass(frozen=True, slots=True)
class Checked:
    """All checks of a request, in their fixed order. ``facts_at``: age of the oldest facts they rest on, None if some
    were never read.
    """

    checks: tuple[Check, ...]
    facts_at: datetime | None

    def of(self, about: About) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.about is about)

    def failed(self, about: About) -> tuple[Check, ...]:
        return tuple(check for check in self.of(about) if check.result is Result.FAILED)

    @property
    def lasting(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.lasting)

    @property
    def unknown(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if check.result is Result.UNKNOWN)
