"""How a consumer does on one partition: a state read from a window of samples, never from one number.

The rules are those of Burrow's evaluator (github.com/linkedin/Burrow, core/internal/evaluator/caching.go), with two
additions: fewer samples than the minimum judge nothing, and a form for windows without commit times. Kafka's API tells
none (OffsetFetch answers with the offset alone), so a polled window only knows whether the offset moved: whether the
group has members then tells a stalled consumer from a stopped one.

``jobs/verdict`` of the pipeline holds the same rules as columns; on ``tests/domain/lag_cases.py`` both must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from itertools import pairwise
from typing import NamedTuple

WINDOW = 10
"""Samples of a window; as long as fewer are known, nothing is judged."""


class LagState(StrEnum):
    """Of a partition; of a whole group only OK, WARN, ERR and UNKNOWN.

    A partition is ERR where its offset stands still and nobody could say whether the group has members: that nothing is
    read is certain, only whether to call it a stall or a stop is not. Saying "unknown" would hide what is certain.
    """

    OK = "ok"
    WARN = "warn"
    """The lag never got smaller over the window."""
    STALL = "stall"
    """The offset stands still although somebody should be reading."""
    STOP = "stop"
    """Nobody commits any more."""
    REWIND = "rewind"
    """The offset went back and has not come up to where it was."""
    ERR = "err"
    UNKNOWN = "unknown"

    @property
    def failing(self) -> bool:
        """Whether records wait that nobody is known to work off: one such partition makes the group ERR."""
        return self in _FAILING


_FAILING = frozenset({LagState.STALL, LagState.STOP, LagState.REWIND, LagState.ERR})


class Sample(NamedTuple):
    """One look at a partition. ``committed`` is an offset and ``lag`` in records, each None where not known or none.

    ``commit_at`` in seconds, on the clock that ``now`` is read from; None where only the offset is known.
    """

    committed: int | None
    lag: int | None
    commit_at: float | None = None


def judge(
    samples: Sequence[Sample],
    *,
    lag: int | None,
    ends: Sequence[int],
    now: float,
    has_members: bool | None,
    allowed: int = 0,
    minimum: int = WINDOW,
) -> LagState:
    """The state of one partition. ``samples`` oldest first; ``lag`` is the current one and ``allowed`` tolerable.

    ``ends`` are the log end offsets seen, newest first (of a polled window: those of its samples). A window has commit
    times if every known commit in it has one; otherwise it is a polled one, and ``now`` is not looked at.
    ``has_members`` None: nobody could say. Only samples with a known commit count towards ``minimum``.
    """
    commits = [sample.committed for sample in samples if sample.committed is not None]
    if early := clear(len(commits), lag, allowed, minimum):
        return early
    times = [s.commit_at for s in samples if s.committed is not None and s.commit_at is not None]
    timed = len(times) == len(commits)
    last = commits[-1]
    was_at_zero = any(end <= last for end in ends)
    if timed and now - times[-1] > times[-1] - times[0] and not was_at_zero:
        return LagState.STOP
    # A later one that reaches the predecessor forgives, so what is left is: the newest lies below the highest.
    if last < max(commits):
        return LagState.REWIND
    lags = [sample.lag for sample in samples if sample.lag is not None]
    if any(known <= allowed for known in lags):
        return LagState.OK
    if all(commit == last for commit in commits):
        if timed:
            return LagState.STALL
        # An end that this offset had reached is a lag of zero, even where the sample's own lag is not known.
        return LagState.OK if was_at_zero else _standing_still(has_members)
    if len(lags) < 2:
        return LagState.UNKNOWN
    return LagState.WARN if all(before <= after for before, after in pairwise(lags)) else LagState.OK


def clear(known: int, lag: int | None, allowed: int, minimum: int = WINDOW) -> LagState | None:
    """What is clear without the samples, of which ``known`` have a commit; None where they have to be looked at.

    It is so for most partitions, which is why a collector with 200,000 of them asks this first.
    """
    if lag is None or known < max(1, minimum):
        return LagState.UNKNOWN
    return LagState.OK if lag <= allowed else None


def _standing_still(has_members: bool | None) -> LagState:
    if has_members is None:
        return LagState.ERR
    return LagState.STALL if has_members else LagState.STOP
