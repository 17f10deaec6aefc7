"""Points of a step at which a test has its process killed, to show that nothing is lost, doubled or left behind.

Off unless the setting ``FAIL_POINTS`` names a file, which is read once, when the process starts. The file has the
points to die at, one a line (``submit.after-call``), in the order in which they are wanted: the first line is armed,
and the next one after it was hit. The process that reaches it takes the line out of the file, appends point, time and
its id to the file of the same name with ``.hits`` behind it, and kills itself as ``kill -9`` does, so that nothing is
tidied up. Started again it goes on with the lines that are left; several processes may share one file.

A call goes through three points: before it (its intent is stored, nothing was sent), after it (it was answered, or its
answer lost, and nobody has stored that), and after the row of its answer (before the next step).
"""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

import structlog
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured

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


class Armed:
    """The points of one file. Raises ImproperlyConfigured where it cannot be read, or names no point.

    ``kill`` does not return in a worker; tests in one process have it raise.
    """

    def __init__(self, file: Path, kill: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL)) -> None:
        self._file, self._kill = file, kill
        self._thread = threading.local()
        try:
            self._points = self._read()
        except OSError as error:
            raise ImproperlyConfigured(f"FAIL_POINTS names {file}, which cannot be read: {error.strerror}.") from error
        unknown = sorted(set(self._points) - set(POINTS))
        if unknown:
            raise ImproperlyConfigured(f"{file} names no fail point: {unknown[0]!r}. There are {', '.join(POINTS)}.")

    @property
    def points(self) -> tuple[str, ...]:
        return tuple(self._points)

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
            if named(call, at) in self._points and self._is_next(named(call, at)):
                self._kill()

    def _is_next(self, point: str) -> bool:
        """Whether it is the first line of the file now; then it is taken out, and the hit is written down."""
        with self._file.with_name(f"{self._file.name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self._points = self._read()
            if self._points[:1] != [point]:
                return False
            self._points = self._points[1:]
            left = self._file.with_name(f"{self._file.name}.left")
            _write(left, "".join(f"{each}\n" for each in self._points), "w")
            left.replace(self._file)
            hit = f"{point} {datetime.now(UTC).isoformat()} {os.getpid()}\n"
            _write(self._file.with_name(f"{self._file.name}.hits"), hit, "a")
        return True

    def _read(self) -> list[str]:
        return [line.strip() for line in self._file.read_text(encoding="utf-8").splitlines() if line.strip()]


def _write(file: Path, text: str, mode: str) -> None:
    """Durably: the process that wrote it ends at once."""
    with file.open(mode, encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def _from_settings() -> Armed | None:
    if not settings.FAIL_POINTS:
        return None
    armed = Armed(Path(settings.FAIL_POINTS))
    log.warning("fail_points.armed", file=settings.FAIL_POINTS, points=list(armed.points))
    return armed


_NOTHING: AbstractContextManager[None] = nullcontext()
_armed = _from_settings()
