"""Files that several processes read and write: replaced whole, locked between processes, and the end of a log."""

from __future__ import annotations

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

LOG_TAIL_LINES = 12


def read_tail(log: Path, lines: int = LOG_TAIL_LINES) -> list[str]:
    """The last lines of a log file, without Java's stack frames; empty when there is none."""
    try:
        with log.open("rb") as file:
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16_384))
            read = file.read().decode("utf-8", "replace").splitlines()
            return [line for line in read if not line.startswith("\tat ")][-lines:]
    except OSError:
        return []


def write_atomically(path: Path, text: str) -> None:
    """Replace the file's content in one step: readers see the old text or the new, never half of it."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(temporary).replace(path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def lock_file(path: Path) -> Iterator[None]:
    """Hold an exclusive lock on a file between processes and threads; it is freed when the holder dies."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
