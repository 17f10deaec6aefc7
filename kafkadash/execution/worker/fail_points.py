"""Fail points of a step, at which a test has its process killed to show that nothing is lost, doubled or left behind.

They are off unless the setting ``FAIL_POINTS`` names a file (``core.fail_points``) with points such as
``submit.after-call``; the file is read once, when the process starts. After a restart the process continues with the
remaining lines.

A call passes three points: before it (its intent is stored, nothing was sent), after it (answered, or the answer is
lost, and nothing of that is stored), and after the row of its answer (before the next step).
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from enum import StrEnum
from pathlib import Path

import structlog
from django.conf import settings

from kafkadash.core.fail_points import FailFile

log = structlog.get_logger(__name__)


class FailCall(StrEnum):
    """Change that a step asks of Kafka. ``PLACE`` are directories, ``REORDER`` what follows a cancel."""

    THROTTLE_SET = "throttle-set"
    PLACE = "place"
    SUBMIT = "submit"
    CANCEL = "cancel"
    REORDER = "reorder"
    THROTTLE_CLEAR = "throttle-clear"
    ELECTION = "election"


class FailMoment(StrEnum):
    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"
    AFTER_ROW = "after-row"


def name_point(call: FailCall, at: FailMoment) -> str:
    return f"{call}.{at}"


POINTS = tuple(name_point(call, at) for call in FailCall for at in FailMoment)


def step_begins() -> None:
    """Forget the answers that an earlier step of this thread had and could not store."""
    if _armed is not None:
        _armed.step_begins()


def around(calls: Iterable[FailCall]) -> AbstractContextManager[None]:
    """To be entered around one request to Kafka that is for these; a request that raises was not answered."""
    return _NOTHING if _armed is None else _armed.around(calls)


def answers_stored() -> None:
    """To be called when the answers of this step's calls are committed."""
    if _armed is not None:
        _armed.answers_stored()


class ArmedPoint(FailFile):
    """The points of one file, and what each step has answers of."""

    def __init__(self, file: Path, kill: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)) -> None:
        super().__init__("FAIL_POINTS", file, POINTS, kill)
        self._thread = threading.local()

    def step_begins(self) -> None:
        self._answered.clear()

    @contextmanager
    def around(self, calls: Iterable[FailCall]) -> Iterator[None]:
        some = sorted(set(calls))
        self._reached(some, FailMoment.BEFORE_CALL)
        yield
        self._answered.update(some)
        self._reached(some, FailMoment.AFTER_CALL)

    def answers_stored(self) -> None:
        some = sorted(self._answered)
        self._answered.clear()
        self._reached(some, FailMoment.AFTER_ROW)

    @property
    def _answered(self) -> set[FailCall]:
        """Calls whose answers this thread's step has and did not store; other runs have threads of their own."""
        found: set[FailCall] = self._thread.__dict__.setdefault("answered", set())
        return found

    def _reached(self, calls: Iterable[FailCall], at: FailMoment) -> None:
        for call in calls:
            self.reached(name_point(call, at))


def _from_settings() -> ArmedPoint | None:
    if not settings.FAIL_POINTS:
        return None
    armed = ArmedPoint(Path(settings.FAIL_POINTS))
    log.warning("fail_points.armed", file=settings.FAIL_POINTS, points=list(armed.points))
    return armed


_NOTHING: AbstractContextManager[None] = nullcontext()
_armed = _from_settings()
