"""What `make smoke` prints, and how it fails."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

POLL_SECONDS = 0.4  # most of them ask for a page


class NotSo(Exception):
    """A thing that had to hold and does not; the text says what was found."""


@dataclass(slots=True)
class Steps:
    """The table that is printed: step, seconds, figure."""

    rows: list[tuple[str, float, str]] = field(default_factory=list)

    @contextmanager
    def step(self, name: str) -> Iterator[Callable[[str], None]]:
        began = time.monotonic()
        said: list[str] = []
        try:
            yield said.append
        except BaseException as error:
            self._end(name, began, f"FAILED: {str(error) or type(error).__name__}")
            raise
        self._end(name, began, said[0] if said else "")

    def _end(self, name: str, began: float, figure: str) -> None:
        self.rows.append((name, time.monotonic() - began, figure))
        say(f"  {name:<38} {self.rows[-1][1]:7.1f} s  {figure}")


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def demand(holds: object, otherwise: str) -> None:
    if not holds:
        raise NotSo(otherwise)


def wait(condition: Callable[[], object], deadline: float, otherwise: Callable[[], str]) -> None:
    """Returns when it is true; ``otherwise`` says what was found instead when it is not within that many seconds."""
    end = time.monotonic() + deadline
    while not condition():
        if time.monotonic() > end:
            raise NotSo(f"{otherwise()} (waited {deadline:g} s)")
        time.sleep(POLL_SECONDS)
