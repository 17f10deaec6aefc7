"""Points of a step at which a test has its process killed, to show that nothing is lost, doubled or left behind.

Off unless the setting ``FAIL_POINTS`` names a file (``observe.fail_file``), which is read once, when the process
starts, with points such as ``submit.after-call``. Started again the process goes on with the lines that are left.

A call goes through three points: before it (its intent is stored, nothing was sent), after it (it was answered, or its
answer lost, and nobody has stored that), and after the row of its answer (before the next step).
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

from kafkadash.observe.fail_file import FailFile

log = structlog.get_logger(__name__)


class Call(StrEnum):
    """What a step has Kafka change. ``PLACE`` are directories, ``REORDER`` what follows a cancel."""

    THROTTLE_SET = "throttle-set"
    PLACE = "place"
    SUBMIT = "submit"
    CANCEL = "cancel"
    REORDER = "reorder"
    THROTTLE_CLEAR = "throttle-clear"
    ELECTION = "election"


class At(StrEnum):
    BEFORE_CALL = "before-call"
    AFTER_CALL = "after-call"
    AFTER_ROW = "after-row"


def named(call: Call, at: At) -> str:
    return f"{call}.{at}"


POINTS = tuple(named(call, at) for call in Call for at in At)


def step_begins() -> None:
    """What an earlier step of this thread had answered and could not store is no business of this one."""
    if _armed is not None:
        _armed.step_begins()


def around(calls: Iterable[Call]) -> AbstractContextManager[None]:
    """To be entered around one request to Kafka that is for these; a request that raises was not answered."""
    return _NOTHING if _armed is None else _armed.around(calls)


def answers_stored() -> None:
    """To be called when the answers of this step's calls are committed."""
    if _armed is not None:
        _armed.answers_stored()


class Armed(FailFile):
    """The points of one file, and what each step has answers of."""

    def __init__(self, file: Path, kill: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)) -> None:
        super().__init__("FAIL_POINTS", file, POINTS, kill)
        self._thread = threading.local()

    def step_begins(self) -> None:
        self._answered.clear()

    @contextmanager
    def around(self, calls: Iterable[Call]) -> Iterator[None]:
        some = sorted(set(calls))
        self._reached(some, At.BEFORE_CALL)
        yield
        self._answered.update(some)
        self._reached(some, At.AFTER_CALL)

    def answers_stored(self) -> None:
        some = sorted(self._answered)
        self._answered.clear()
        self._reached(some, At.AFTER_ROW)

    @property
    def _answered(self) -> set[Call]:
        """What this thread's step has answers of that are not stored; other runs have threads of their own."""
        found: set[Call] = self._thread.__dict__.setdefault("answered", set())
        return found

    def _reached(self, calls: Iterable[Call], at: At) -> None:
        for call in calls:
            self.reached(named(call, at))


def _from_settings() -> Armed | None:
    if not settings.FAIL_POINTS:
        return None
    armed = Armed(Path(settings.FAIL_POINTS))
    log.warning("fail_points.armed", file=settings.FAIL_POINTS, points=list(armed.points))
    return armed


_NOTHING: AbstractContextManager[None] = nullcontext()
_armed = _from_settings()
