"""File of fail points at which a test has a process killed as by ``kill -9``, without any cleanup.

The file has one point per line, in the order in which they fire: the first line is armed, and the next line after the
first was hit. The process that reaches the armed point removes the line from the file, appends the point, the time and
its process id to the file of the same name with the suffix ``.hits``, and kills itself. Several processes may share one
file.
"""

from __future__ import annotations

import fcntl
import os
import signal
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Self

import structlog
from django.core.exceptions import ImproperlyConfigured

log = structlog.get_logger(__name__)


class FailFile:
    """The points of one file. Raises ImproperlyConfigured where it cannot be read, or names no point.

    ``kill`` does not return in a worker; tests in one process have it raise. ``setting`` names it in what is said.
    """

    def __init__(
        self,
        setting: str,
        file: Path,
        known: Sequence[str],
        kill: Callable[[], None] = lambda: os.kill(os.getpid(), signal.SIGKILL),
    ) -> None:
        self._file, self._kill = file, kill
        try:
            self._points = self._read()
        except OSError as error:
            raise ImproperlyConfigured(f"{setting} names {file}, which cannot be read: {error.strerror}.") from error
        unknown = sorted(set(self._points) - set(known))
        if unknown:
            raise ImproperlyConfigured(f"{file} names no fail point: {unknown[0]!r}. There are {', '.join(known)}.")

    @classmethod
    def named_by(cls, setting: str, value: str, known: Sequence[str]) -> Self | None:
        """None where the setting is empty."""
        if not value:
            return None
        armed = cls(setting, Path(value), known)
        log.warning("fail_points.armed", file=value, points=list(armed.points))
        return armed

    @property
    def points(self) -> tuple[str, ...]:
        return tuple(self._points)

    def reached(self, point: str) -> None:
        if point in self._points and self._is_next(point):
            self._kill()

    def _is_next(self, point: str) -> bool:
        """Return whether the point is the first line of the file now; if so, remove the line and record the hit."""
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
