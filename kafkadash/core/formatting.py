"""Formatting of durations, sizes and lists as text, and parsing of whole numbers in configs and typed input.

``static/js/freshness.js`` formats ages in the same way while they grow.
"""

from __future__ import annotations

from collections.abc import Sequence

MINUTE, HOUR, DAY = 60, 3600, 86_400
_SIZES = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (1000, "kB"))


def format_duration(seconds: float) -> str:
    """A length of time, rounded down, two units at most: "6 s", "4 min 12 s", "1 h 32 min", "9 d 3 h"."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < HOUR:
        return _pair(whole, MINUTE, "min", 1, "s")
    if whole < DAY:
        return _pair(whole, HOUR, "h", MINUTE, "min")
    return _pair(whole, DAY, "d", HOUR, "h")


def run_time(seconds: float) -> str:
    """How long something will take, as ``format_duration``; what is there but short is not called nothing: "<1 s"."""
    return "<1 s" if 0 < seconds < 1 else format_duration(seconds)


def long_duration(seconds: float) -> str:
    """The same for sentences, where the second unit would be noise: "12 min", "3 h", "9 days"."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < 2 * HOUR:
        return f"{whole // MINUTE} min"
    return f"{whole // HOUR} h" if whole < 2 * DAY else f"{whole // DAY} days"


def round_duration(seconds: float) -> int:
    """Return the seconds that ``long_duration`` shows: what is stored changes only where its text does."""
    whole = max(0, int(seconds))
    unit = 1 if whole < MINUTE else MINUTE if whole < 2 * HOUR else HOUR if whole < 2 * DAY else DAY
    return whole - whole % unit


def format_size(number: float) -> str:
    """Bytes in decimal units with one decimal: "4.5 GB", "12 B"."""
    number = round_size(number)  # first, so that a byte less than 1 GB is "1.0 GB" and not "1,000.0 MB"
    for factor, unit in _SIZES:
        if number >= factor:
            return f"{number / factor:,.1f} {unit}"
    return f"{number} B"


def round_size(number: float) -> int:
    """Return the bytes that ``format_size`` shows: what is stored changes only where its text does."""
    factor = next((factor for factor, _ in _SIZES if number >= factor), 1)
    return int(number) if factor == 1 else round(round(number / factor, 1) * factor)


def size_unit(highest: float) -> tuple[int, str]:
    """Return what bytes are divided by, and the unit, so that the highest value has a short number."""
    return next(((factor, unit) for factor, unit in _SIZES if highest >= factor), (1, "B"))


def join_items(items: Sequence[str]) -> str:
    """Items as a sentence has them: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def listed_shortly(items: Sequence[str], most: int = 3) -> str:
    """The first ones and how many more: "a, b, c and 4 more"."""
    return join_items(items) if len(items) <= most + 1 else join_items([*items[:most], f"{len(items) - most:,} more"])


def _pair(whole: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = whole % large // small
    return f"{whole // large} {large_unit} {rest} {small_unit}" if rest else f"{whole // large} {large_unit}"


def capitalize_first(text: str) -> str:
    """With its first letter capital and the others as they are."""
    return text[:1].upper() + text[1:]


LARGEST_INT, LARGEST_LONG = 2**31 - 1, 2**63 - 1  # org.apache.kafka.common.config.ConfigDef.Type INT and LONG


def read_whole_number(text: str, largest: int = LARGEST_LONG) -> int | None:
    """None for what is no number without a sign, and for one above ``largest``. Never raises.

    Kafka checks lists of throttled replicas by a pattern only, so a number in them may have thousands of digits,
    and Python converts no more than 4,300.
    """
    digits = text.strip()
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > len(str(largest)):
        return None
    number = int(digits)
    return number if number <= largest else None
