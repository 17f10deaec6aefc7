"""What time it is, for whatever is compared with times of other machines: when an answer came, how old it is.

Machines' clocks may be wrong, and may jump. Whoever has the database's time at hand says it here; from then on this
process counts from it by its monotonic clock. A process that was told nothing goes by its machine's clock.
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
