"""The kinds of jobs: what runs each, how long it may take, how often it is tried.

An app makes its kinds known in its ``AppConfig.ready``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from uuid import UUID

from kafkadash.domain.errors import UserError
from kafkadash.jobs.errors import JobErrorCode

if TYPE_CHECKING:
    from kafkadash.jobs.run import Run


class UnknownKind(UserError):
    """No app made this kind known; ``str()`` names it."""


@dataclass(frozen=True, slots=True)
class Kind:
    """``handler`` returns the result as JSON can carry it.

    ``deadline_s`` is for one attempt. After ``attempts`` workers that died on it the job fails; more than one only for
    handlers that may safely run twice. ``forget`` is called with the id of a job that ended without its handler, to
    take out of its row what was meant for the handler alone. ``too_long`` says that the deadline has passed, and what
    to do then.
    """

    name: str
    handler: Callable[[Run], dict[str, Any]]
    deadline_s: float
    attempts: int = 1
    forget: Callable[[UUID], None] | None = None
    too_long: StrEnum = JobErrorCode.TOOK_TOO_LONG


_kinds: dict[str, Kind] = {}


def register(kind: Kind) -> None:
    """Raises ValueError when another handler already has the name."""
    known = _kinds.setdefault(kind.name, kind)
    if known != kind:
        raise ValueError(f"Two kinds of jobs are called {kind.name!r}.")


def kind_of(name: str) -> Kind:
    """Raises UnknownKind."""
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownKind(JobErrorCode.KIND_UNKNOWN, name=name) from None
