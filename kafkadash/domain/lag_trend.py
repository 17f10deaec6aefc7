"""Where a lag is heading: rates of reading and writing over a window of looks, and when nothing will be left."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from kafkadash.domain.lag_look import Look


class Drain(StrEnum):
    EMPTY = "empty"
    """Nothing waits."""
    KEEPS_UP = "keeps up"
    """What waits is less than what is read between two looks: it is on its way, whichever way the lag goes."""
    DRAINS = "drains"
    NEVER = "never"
    """Read no faster than written."""
    UNKNOWN = "unknown"


class Trend(NamedTuple):
    """Records per second over the window, None where not known: ``read`` (offsets committed) and ``written``.

    ``drain_s`` in seconds, only with ``Drain.DRAINS``; an estimate, as if both rates stayed as they are.
    """

    read: float | None
    written: float | None
    drain: Drain
    drain_s: float | None = None

    @property
    def net(self) -> float | None:
        """By how many records a second the lag shrinks; negative where it grows."""
        return None if self.read is None or self.written is None else self.read - self.written


def trend(looks: Sequence[Look], lag: int | None) -> Trend:
    """``looks`` oldest first; ``lag`` is the current one. An offset that was set back begins its rate anew."""
    read = _rate((look.at, look.committed) for look in looks)
    written = _rate((look.at, look.end) for look in looks)
    if lag is None:
        return Trend(read, written, Drain.UNKNOWN)
    if lag == 0:
        return Trend(read, written, Drain.EMPTY)
    if read is None or written is None:
        return Trend(read, written, Drain.UNKNOWN)
    if lag <= read * _between(looks):
        return Trend(read, written, Drain.KEEPS_UP)
    if read <= written:
        return Trend(read, written, Drain.NEVER)
    return Trend(read, written, Drain.DRAINS, lag / (read - written))


def _rate(values: Iterable[tuple[float, int | None]]) -> float | None:
    """Between the first and the last known value since one fell, or since the clock did; None for fewer than two."""
    first = last = None
    for at, value in values:
        if value is None:
            continue
        if first is None or last is None or value < last[1] or at <= last[0]:
            first = (at, value)
        last = (at, value)
    if first is None or last is None or last[0] <= first[0]:
        return None
    return (last[1] - first[1]) / (last[0] - first[0])


def _between(looks: Sequence[Look]) -> float:
    """Seconds between two looks, in the mean."""
    return max(0.0, looks[-1].at - looks[0].at) / (len(looks) - 1) if len(looks) > 1 else 0.0
