"""Clock of this process for times that are compared with times of other machines, such as the age of an answer.

Clocks of machines can be wrong and can jump. Code that has just read the database's time sets the clock
(``set_right``); from then on the process counts by its monotonic clock. Before that it uses the clock of its machine.
"""

from __future__ import annotations

import time
from datetime import UTC, datetime

TOLERATED_S = 1.0
"""Machines that differ by less are in step."""

_ahead_of_monotonic: float | None = None


def set_right(now: datetime, took_s: float = 0.0) -> None:
    """``now`` is the database's time, of some moment of the last ``took_s`` seconds. Cheap; from any thread.

    What cannot be told apart from a slow answer is no difference; what is corrected errs towards too old.
    """
    global _ahead_of_monotonic  # noqa: PLW0603  one clock per process
    told = now.timestamp()
    in_step = -took_s - TOLERATED_S < told - time.time() < TOLERATED_S
    _ahead_of_monotonic = None if in_step else told - time.monotonic()


def seconds() -> float:
    """Since the epoch, as ``time.time`` has it."""
    ahead = _ahead_of_monotonic
    return time.time() if ahead is None else time.monotonic() + ahead


def now() -> datetime:
    return datetime.fromtimestamp(seconds(), UTC)
