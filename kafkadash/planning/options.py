"""Throttles as people type them: MB/s (10^6 bytes per second), kept as whole bytes per second."""

from __future__ import annotations

import math
import re
from decimal import Decimal

from kafkadash.core.errors import UserError
from kafkadash.planning.errors import ReassignmentErrorCode

MB = 1_000_000
SLOW_BELOW = MB
"""Bytes per second under which a throttle is asked for twice."""
LARGEST = 100_000 * MB
"""More than any disk or network: a slip of the keyboard."""
FIRST_RATE = 50 * MB

_DECIMAL = re.compile(r"[0-9]{1,12}(\.[0-9]{1,12})?")


class BadRate(UserError, ValueError):
    """``str()`` says what is wrong with what was typed, and what would be right."""


def bytes_per_second(typed: str) -> int:
    """Raises BadRate."""
    number = typed.strip().removesuffix("MB/s").strip()
    if not number:
        raise BadRate(ReassignmentErrorCode.RATE_MISSING)
    if number.startswith(("-", "−")) and _DECIMAL.fullmatch(number[1:].strip()):
        raise BadRate(ReassignmentErrorCode.RATE_NEGATIVE)
    if not _DECIMAL.fullmatch(number):
        shown = number if len(number) <= 30 else f"{number[:29]}…"
        raise BadRate(ReassignmentErrorCode.RATE_NO_NUMBER, typed=shown)
    rate = int((Decimal(number) * MB).to_integral_value())
    if rate == 0:
        raise BadRate(ReassignmentErrorCode.RATE_ZERO)
    if rate > LARGEST:
        raise BadRate(ReassignmentErrorCode.RATE_TOO_LARGE, most=LARGEST // MB)
    return rate


def bounds_of(rate: int, inbound: float | None = None) -> tuple[int, int]:
    """Return the bounds of a throttle that was entered without them, from a fifth of it to twice.

    The lower one is also above ``inbound``, what producers write to what moves, as far as the throttle is.
    """
    enough = rate_above(inbound) if inbound else 0
    return min(rate, max(rate // 5, SLOW_BELOW, enough)), min(2 * rate, LARGEST)


def rate_above(inbound: float) -> int:
    """Return the least throttle, in whole MB/s, with which copies catch up with what producers write."""
    return max(1, math.ceil(1.25 * inbound / MB)) * MB


def suggest_rate(inbound: float) -> int:
    """Return a throttle of at least twice what producers write to what moves, in steps of 5 MB/s."""
    return max(FIRST_RATE, math.ceil(2 * inbound / (5 * MB)) * 5 * MB)


def format_megabytes(rate: int) -> str:
    """Bytes per second as a field shows them: "60", "2.5", "0.01"."""
    return f"{(Decimal(rate) / MB).normalize():f}"


def format_rate(rate: int) -> str:
    """In both units, for sentences: "0.01 MB/s (10,000 bytes/s)"."""
    return f"{format_megabytes(rate)} MB/s ({rate:,} bytes/s)"
