"""Results of the checks of a change before it runs, and of the checks of each row before it is submitted.

*Content* is what was approved: if a content check fails, the request is stale and needs a new plan. *Health* is the
state of the cluster: if a health check fails, the request stays as it is and waits.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kafkadash.core.messages import CodedMessage


class CheckResult(StrEnum):
    PASSED = "passed"
    FAILED = "failed"
    UNKNOWN = "unknown"


class CheckSubject(StrEnum):
    CONTENT = "content"
    HEALTH = "health"


@dataclass(frozen=True, slots=True)
class ChangeCheck:
    """A check. ``title`` tells what is asked in words that are true when it passed ("Every partition is as planned"),
    ``figure`` what was counted ("230 of 230"), ``problems`` are one per row or broker where it failed.

    ``problem_count`` is of all of them, where ``problems`` holds the first ones only. ``lasting``: it failed, and no
    time that passes mends that, only another plan. ``amount``: what was counted, for whoever reckons with it; None
    where that is not known.
    """

    code: str
    about: CheckSubject
    result: CheckResult
    title: CodedMessage
    figure: str = ""
    problems: tuple[CodedMessage, ...] = ()
    problem_count: int = 0
    lasting: bool = False
    amount: int | None = None

    @property
    def advice(self) -> str:
        """Return what to do about the problems, each sentence once."""
        return " ".join(dict.fromkeys(filter(None, (problem.advice for problem in self.problems))))


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """All checks of a request, in their fixed order. ``facts_at``: age of the oldest facts they rest on, None if some
    were never read.
    """

    checks: tuple[ChangeCheck, ...]
    facts_at: datetime | None

    def of(self, about: CheckSubject) -> tuple[ChangeCheck, ...]:
        return tuple(check for check in self.checks if check.about is about)

    def failed(self, about: CheckSubject) -> tuple[ChangeCheck, ...]:
        return tuple(check for check in self.of(about) if check.result is CheckResult.FAILED)

    @property
    def lasting(self) -> tuple[ChangeCheck, ...]:
        return tuple(check for check in self.checks if check.lasting)

    @property
    def unknown(self) -> tuple[ChangeCheck, ...]:
        return tuple(check for check in self.checks if check.result is CheckResult.UNKNOWN)
