"""What the demo prints: a line per step with its time, then the memory of each process."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import psutil

from kafkadash.embedded.process import Child

NAME_WIDTH = 30


@dataclass(slots=True)
class Step:
    """A step under way; `detail` is what its line will say."""

    detail: str = ""


class Report:
    """Prints whole lines, from any thread."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write
        self._guard = threading.Lock()
        self._began = time.monotonic()
        self._apart = 0.0

    def say(self, text: str) -> None:
        with self._guard:
            try:
                self._write(text)
            except OSError:  # the terminal is gone: nobody reads on, and what runs must still be stopped
                self._write = _nobody_reads

    @contextlib.contextmanager
    def step(self, name: str) -> Iterator[Step]:
        """Print the step's line when it went well."""
        began = time.monotonic()
        step = Step()
        yield step
        self.say(f"  {name:<{NAME_WIDTH}} {time.monotonic() - began:6.1f} s  {step.detail}".rstrip())

    def set_apart(self, seconds: float) -> None:
        """Downloads depend on the network and happen once: they do not count as starting."""
        self._apart += seconds

    def total(self) -> str:
        seconds = time.monotonic() - self._began - self._apart
        apart = f" (and {self._apart:.1f} s for downloads and other things done once)" if self._apart else ""
        return f"{seconds:.1f} s{apart}"


def memory_lines(processes: Iterable[Child]) -> list[str]:
    """One line per process with the memory of its whole tree, and the sum; shared pages are counted once."""
    sizes = [(child.name, _tree_bytes(child.pid)) for child in processes]
    lines = [f"  {name:<{NAME_WIDTH}} {_megabytes(size)}" for name, size in sizes]
    known = [size for _, size in sizes if size is not None]
    return [*lines, f"  {'all together':<{NAME_WIDTH}} {_megabytes(sum(known) if len(known) == len(sizes) else None)}"]


def _nobody_reads(_text: str) -> None:
    """Where lines go once the terminal is closed."""


def _tree_bytes(pid: int) -> int | None:
    try:
        process = psutil.Process(pid)
        return sum(_bytes(each) for each in [process, *process.children(recursive=True)])
    except psutil.Error:
        return None


def _bytes(process: psutil.Process) -> int:
    full = process.memory_full_info()
    # Linux shares a page's size out among those that use it (PSS); elsewhere only what is not shared is exact.
    return int(getattr(full, "pss", full.uss))


def _megabytes(size: int | None) -> str:
    return f"{size / 1e6:6.0f} MB" if size is not None else "not known"
