"""What the rule of lag asks of the last samples of each partition, folded from the newest refresh to older ones.

A refresh has one sample of each partition at most. So a step over a million partitions is a few operations on arrays,
and what is kept is as large as the answer, however many samples a window has. ``jobs.verdict`` judges the figures.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from kafkadash.domain.lag import WINDOW

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_LEAST, _MOST = np.iinfo(np.int64).min, np.iinfo(np.int64).max
_NEW = {
    "samples": 0,
    "commits": 0,
    "last": 0,
    "lowest": _MOST,
    "highest": _LEAST,
    "lowest_end": _MOST,
    "lags": 0,
    "lowest_lag": _MOST,
    "newer_lag": _MOST,
}


class Known(NamedTuple):
    """Numbers (offsets, or lags in records), and which of them are known; what stands for the others says nothing."""

    values: Ints
    known: Flags

    def only(self, chosen: Flags | Ints | slice) -> Known:
        return Known(self.values[chosen], self.known[chosen])

    @classmethod
    def joined(cls, parts: Sequence[Known]) -> Known:
        return cls(np.concatenate([each.values for each in parts]), np.concatenate([each.known for each in parts]))


@dataclass(frozen=True, slots=True)
class Step:
    """What one refresh saw, one row per partition. ``begins``: no window reaches back beyond this sample.

    ``commit_at``: seconds, of the commits of which that is known; None where nobody can know. Segments do not tell
    times of commits; the rule has a form for whoever does, which is held to ``domain.lag`` like the other.
    """

    committed: Known
    lag: Known
    log_end: Known
    begins: Flags
    commit_at: tuple[Floats, Flags] | None = None

    def only(self, chosen: Flags | Ints | slice) -> Step:
        at = self.commit_at
        return Step(
            self.committed.only(chosen),
            self.lag.only(chosen),
            self.log_end.only(chosen),
            self.begins[chosen],
            None if at is None else (at[0][chosen], at[1][chosen]),
        )


class Places:
    """Numbers 0, 1, 2 … for keys, in the order in which they come."""

    def __init__(self) -> None:
        self.keys: Ints = np.empty(0, np.int64)
        self._sorted, self._order = self.keys, self.keys

    def of(self, keys: Ints) -> Ints:
        """``keys`` without doubles."""
        if np.array_equal(keys, self.keys):
            return np.arange(keys.size)
        at = np.searchsorted(self._sorted, keys)
        at[at == self._sorted.size] = 0
        fresh = self._sorted[at] != keys if self._sorted.size else np.ones(keys.size, np.bool_)
        places = self._order[at] if self._sorted.size else np.zeros(keys.size, np.int64)
        if fresh.any():
            places[fresh] = self.keys.size + np.arange(np.count_nonzero(fresh))
            self.keys = np.concatenate([self.keys, keys[fresh]])
            self._order = np.argsort(self.keys, kind="stable")
            self._sorted = self.keys[self._order]
        return places


@dataclass
class Windows:
    """The figures of each place. ``add`` takes steps from the newest to the oldest.

    ``timed``: whether steps have times of commits.
    """

    size: int = WINDOW
    timed: bool = False
    _of: dict[str, Ints] = field(default_factory=lambda: {name: np.empty(0, np.int64) for name in _NEW}, init=False)
    _open: Flags = field(default_factory=lambda: np.empty(0, np.bool_), init=False)
    fell: Flags = field(default_factory=lambda: np.empty(0, np.bool_), init=False)
    """Whether a lag of the window was smaller than one before it."""
    times: Ints = field(default_factory=lambda: np.empty(0, np.int64), init=False)
    """Commits of which the time is known; ``first_at`` and ``last_at``: those of the oldest and the newest."""
    first_at: Floats = field(default_factory=lambda: np.empty(0), init=False)
    last_at: Floats = field(default_factory=lambda: np.empty(0), init=False)

    def add(self, places: Ints, step: Step) -> None:
        """``places``, of which none comes twice, has the place of each row."""
        if places.size:
            self._grow(int(places.max()) + 1 - self._open.size)
        wanted = self._open[places]
        if not wanted.all():
            places, step = places[wanted], step.only(wanted)
        if not places.size:
            return
        at = _slice(places)
        self._commits(at, step.committed)
        self._least("lowest_end", at, step.log_end)
        self._lags(at, step.lag)
        if self.timed and step.commit_at is not None:
            self._times(at, step.committed, *step.commit_at)
        self._of["samples"][at] += 1
        self._open[at] = ~step.begins & (self._of["samples"][at] < self.size)

    def __len__(self) -> int:
        return self._open.size

    @property
    def commits(self) -> Ints:
        return self._of["commits"]

    @property
    def lags(self) -> Ints:
        return self._of["lags"]

    @property
    def last(self) -> Known:
        """The newest commit; this and the next two are known where there is a commit."""
        return Known(self._of["last"], self.commits > 0)

    @property
    def lowest(self) -> Known:
        return Known(self._of["lowest"], self.commits > 0)

    @property
    def highest(self) -> Known:
        return Known(self._of["highest"], self.commits > 0)

    @property
    def lowest_end(self) -> Known:
        return Known(self._of["lowest_end"], self._of["lowest_end"] != _MOST)

    @property
    def lowest_lag(self) -> Known:
        return Known(self._of["lowest_lag"], self.lags > 0)

    def _grow(self, by: int) -> None:
        if by <= 0:
            return
        for name, value in _NEW.items():
            self._of[name] = np.concatenate([self._of[name], np.full(by, value, np.int64)])
        self._open = np.concatenate([self._open, np.ones(by, np.bool_)])
        self.fell = np.concatenate([self.fell, np.zeros(by, np.bool_)])
        if self.timed:
            self.times = np.concatenate([self.times, np.zeros(by, np.int64)])
            self.first_at = np.concatenate([self.first_at, np.zeros(by)])
            self.last_at = np.concatenate([self.last_at, np.zeros(by)])

    def _commits(self, at: slice | Ints, committed: Known) -> None:
        commits, last = self._of["commits"], self._of["last"]
        last[at] = np.where(committed.known & (commits[at] == 0), committed.values, last[at])
        commits[at] += committed.known
        self._least("lowest", at, committed)
        highest = self._of["highest"]
        highest[at] = np.where(committed.known, np.maximum(highest[at], committed.values), highest[at])

    def _lags(self, at: slice | Ints, lag: Known) -> None:
        newer = self._of["newer_lag"]
        self.fell[at] |= lag.known & (lag.values > newer[at])
        newer[at] = np.where(lag.known, lag.values, newer[at])
        self._of["lags"][at] += lag.known
        self._least("lowest_lag", at, lag)

    def _times(self, at: slice | Ints, committed: Known, seconds: Floats, known: Flags) -> None:
        known = known & committed.known
        self.last_at[at] = np.where(known & (self.times[at] == 0), seconds, self.last_at[at])
        self.first_at[at] = np.where(known, seconds, self.first_at[at])
        self.times[at] += known

    def _least(self, name: str, at: slice | Ints, given: Known) -> None:
        least = self._of[name]
        least[at] = np.where(given.known, np.minimum(least[at], given.values), least[at])


def _slice(places: Ints) -> slice | Ints:
    """Consecutive ones as a slice, which is read and written in place: what a refresh sees is what the last one saw."""
    first, last = int(places[0]), int(places[-1])
    if last - first + 1 == places.size and bool((np.diff(places) == 1).all()):
        return slice(first, last + 1)
    return places
