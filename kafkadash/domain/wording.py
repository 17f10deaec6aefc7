"""Durations and counts in the words of the pages; ``static/js/freshness.js`` says ages in the same way as they grow."""

from __future__ import annotations

from collections.abc import Sequence

MINUTE, HOUR, DAY = 60, 3600, 86_400
_SIZES = ((10**15, "PB"), (10**12, "TB"), (10**9, "GB"), (10**6, "MB"), (1000, "kB"))
_NUMBERS = ("No", "One", "Two", "Three", "Four", "Five", "Six", "Seven", "Eight", "Nine")


def duration(seconds: float) -> str:
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
    """How long something will take, as ``duration``; what is there but short is not called nothing: "<1 s"."""
    return "<1 s" if 0 < seconds < 1 else duration(seconds)


def long_duration(seconds: float) -> str:
    """The same for sentences, where the second unit would be noise: "12 min", "3 h", "9 days"."""
    whole = max(0, int(seconds))
    if whole < MINUTE:
        return f"{whole} s"
    if whole < 2 * HOUR:
        return f"{whole // MINUTE} min"
    return f"{whole // HOUR} h" if whole < 2 * DAY else f"{whole // DAY} days"


def count(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: "1 partition", "2,310 partitions"."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def count_in_words(number: int, noun: str, plural: str = "") -> str:
    """The same at the beginning of a sentence: "One partition", "Two topics", "12 topics"."""
    words = _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"
    return f"{words} {noun if number == 1 else plural or noun + 's'}"


def size(number: float) -> str:
    """Bytes in decimal units with one decimal: "4.5 GB", "12 B"."""
    for factor, unit in _SIZES:
        if number >= factor:
            return f"{number / factor:,.1f} {unit}"
    return f"{int(number)} B"


def listed(items: Sequence[str]) -> str:
    """Items as a sentence has them: "a", "a and b", "a, b and c"."""
    return " and ".join([", ".join(items[:-1]), items[-1]]) if len(items) > 1 else "".join(items)


def listed_shortly(items: Sequence[str], most: int = 3) -> str:
    """The first ones and how many more: "a, b, c and 4 more"."""
    return listed(items) if len(items) <= most + 1 else listed([*items[:most], f"{len(items) - most:,} more"])


def _pair(whole: int, large: int, large_unit: str, small: int, small_unit: str) -> str:
    rest = whole % large // small
    return f"{whole // large} {large_unit} {rest} {small_unit}" if rest else f"{whole // large} {large_unit}"


def capital(text: str) -> str:
    """With its first letter capital and the others as they are."""
    return text[:1].upper() + text[1:]
