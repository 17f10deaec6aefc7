"""Windows of samples with the state they must be given, as plain data: whoever judges lag is held against these.

The worker's rule is run over them in ``test_lag``, the pipeline's columns in ``tests/pipeline``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.domain.lag import WINDOW, LagState, Sample


@dataclass(frozen=True, slots=True)
class Window:
    """What a judgement takes: as ``kafkadash.domain.lag.judge``. ``samples`` oldest first, ``ends`` newest first."""

    name: str
    samples: tuple[Sample, ...]
    lag: int | None
    ends: tuple[int, ...]
    now: float = 1000.0
    has_members: bool | None = True
    allowed: int = 0
    minimum: int = WINDOW


@dataclass(frozen=True, slots=True)
class Case:
    window: Window
    state: LagState


def _burrow(
    name: str, lags: tuple[int, ...], lag: int, end: int, now: float, state: LagState, minimum: int = 5
) -> Case:
    """Commits 1000, 2000, … at 100 s, 200 s, …; 5 samples are a whole window there."""
    samples = tuple(Sample(1000 * n, own, 100.0 * n) for n, own in enumerate(lags, 1))
    return Case(Window(name, samples, lag, (end,) * len(lags), now, None, 0, minimum), state)


def polled(
    name: str,
    committed: Sequence[int | None],
    ends: Sequence[int],
    state: LagState,
    *,
    members: bool | None = True,
    allowed: int = 0,
    minimum: int = WINDOW,
) -> Case:
    """A window as the collector sees it, oldest first: each sample's lag is its end less its commit."""
    pairs = list(zip(committed, ends, strict=True))
    samples = tuple(Sample(c, None if c is None else max(0, end - c)) for c, end in pairs)
    lag = samples[-1].lag if samples else None
    return Case(Window(name, samples, lag, tuple(reversed(ends)), 1000.0, members, allowed, minimum), state)


def _from(start: int, step: int, number: int = WINDOW) -> list[int]:
    return [start + step * n for n in range(number)]


_AT_ZERO = (0, 50, 100, 150, 200)
_NEVER = (50, 100, 150, 200, 250)

BURROW = (
    _burrow("zero in the window", _AT_ZERO, 200, 5200, 600, LagState.OK),
    _burrow("silent for exactly as long as it committed", _AT_ZERO, 200, 5200, 900, LagState.OK),
    _burrow("silent for longer than it committed", _AT_ZERO, 200, 5200, 1000, LagState.STOP),
    _burrow("silent for longer, never at zero", _NEVER, 250, 5250, 1000, LagState.STOP),
    _burrow("lag grows with every commit", _NEVER, 250, 5250, 600, LagState.WARN),
    _burrow("silent, but nothing waits", _NEVER, 0, 5250, 1000, LagState.OK),
    Case(
        Window(
            "lag within what is allowed",
            (Sample(1000, 2, 100.0), Sample(2000, 1, 200.0), Sample(2000, 1, 300.0)),
            1,
            (2001,) * 3,
            550.0,
            None,
            1,
            3,
        ),
        LagState.OK,
    ),
)
"""The table of 11-tests.md, row by row."""

TIMED = (
    Case(
        Window(
            "silent for longer, but an end was reached a moment ago",
            tuple(Sample(1000 * n, own, 100.0 * n) for n, own in enumerate(_NEVER, 1)),
            250,
            (5250, 5000, 4900, 4900, 4900),
            minimum=5,
        ),
        LagState.WARN,
    ),
    Case(
        Window(
            "commits of the same offset again and again",
            tuple(Sample(700, 10 + n, 100.0 * n) for n in range(1, 6)),
            15,
            (715,) * 5,
            now=600,
            has_members=None,
            minimum=5,
        ),
        LagState.STALL,
    ),
    Case(
        Window(
            "one commit without its time makes the window a polled one",
            (Sample(10, 5, 100.0), Sample(20, 6), Sample(30, 7, 300.0)),
            7,
            (37, 26, 15),
            now=9000,
            minimum=3,
        ),
        LagState.WARN,
    ),
    Case(
        Window(
            "stopped goes before rewound",
            (Sample(30, 5, 100.0), Sample(20, 15, 200.0)),
            15,
            (35, 35),
            now=301,
            minimum=2,
        ),
        LagState.STOP,
    ),
)

POLLED = (
    polled("keeps up", _from(100, 10), _from(100, 10), LagState.OK),
    polled("lag goes up and down", _from(100, 10), [105 + 10 * n + n % 3 for n in range(10)], LagState.OK),
    polled("lag never gets smaller", _from(100, 10), [105 + 11 * n for n in range(10)], LagState.WARN),
    polled("lag stays the same and never zero", _from(100, 10), _from(105, 10), LagState.WARN),
    polled("drains at last", _from(100, 30), [1000] * 10, LagState.OK),
    polled("stands still with members", [500] * 10, _from(600, 64), LagState.STALL),
    polled("stands still without members", [500] * 10, _from(600, 64), LagState.STOP, members=False),
    polled("stands still, members not known", [500] * 10, _from(600, 64), LagState.ERR, members=None),
    polled("stands still, nothing written, one record waits", [500] * 10, [501] * 10, LagState.STALL),
    polled("moves without members", _from(100, 10), [105 + 11 * n for n in range(10)], LagState.WARN, members=False),
    polled("seldom written: the record came just now", [500] * 10, [500] * 9 + [501], LagState.OK),
    polled("seldom written, nobody there", [500] * 10, [500] * 9 + [501], LagState.OK, members=False),
    polled("stands still within what is allowed", [500] * 10, [600] * 10, LagState.OK, allowed=100),
    polled("one record more than is allowed", [500] * 10, [601] * 10, LagState.STALL, allowed=100),
    polled("was within what is allowed", [500] * 10, [600] + [601] * 9, LagState.OK, allowed=100),
    polled("went back", [*_from(100, 10, 8), 50, 60], [300] * 10, LagState.REWIND),
    polled("went back and came up again", [*_from(100, 10, 7), 50, 160, 170], _from(300, 10), LagState.OK),
    polled("went back and came up exactly", [*_from(100, 10, 8), 50, 170], _from(300, 70), LagState.OK),
    polled(
        "came up to the second fall, not to the first", [*[900] * 3, 500, 400, *[500] * 5], [999] * 10, LagState.REWIND
    ),
    polled("went back, but nothing waits", [*_from(100, 10, 8), 50, 60], [300] * 9 + [60], LagState.OK),
    polled("went back after it was at zero", [*[100] * 9, 20], [100] * 10, LagState.REWIND),
    polled("nine samples of ten", [500] * 9, [600] * 9, LagState.UNKNOWN),
    polled("one sample", [500], [600], LagState.UNKNOWN),
    polled("one sample, nothing waits", [500], [500], LagState.UNKNOWN),
    polled("no sample", [], [], LagState.UNKNOWN),
    polled("never committed", [None] * 10, _from(600, 1), LagState.UNKNOWN),
    polled("first commit after nine looks", [*[None] * 9, 500], [600] * 10, LagState.UNKNOWN),
    polled("a commit that expired", [*[500] * 9, None], [600] * 10, LagState.UNKNOWN),
    polled("a gap between ten commits", [*[500] * 5, None, *[500] * 5], [600] * 11, LagState.STALL),
    polled("zero to zero: an empty partition", [0] * 10, [0] * 10, LagState.OK),
    polled("committed at zero, all of it waits", [0] * 10, [7] * 10, LagState.STOP, members=False),
    polled("offsets beyond 2^53", [2**62] * 10, [2**62 + 1] * 10, LagState.STALL),
    Case(Window("end not known now", (Sample(500, 100),) * 10, None, (600,) * 10), LagState.UNKNOWN),
    Case(Window("no lag of the window is known, still", (Sample(500, None),) * 10, 100, ()), LagState.STALL),
    Case(Window("no lag known, but an end was reached", (Sample(500, None),) * 10, 100, (600, 500)), LagState.OK),
    Case(
        Window("moves, one lag known: no trend", (*(Sample(n, None) for n in range(9)), Sample(9, 5)), 5, (14,)),
        LagState.UNKNOWN,
    ),
    Case(
        Window(
            "moves, lag grows over the gap",
            tuple(Sample(n, None if n % 2 else 5 + n) for n in range(10)),
            14,
            (23,),
        ),
        LagState.WARN,
    ),
    Case(
        Window(
            "moves, lag shrinks over the gap",
            tuple(Sample(n, None if n % 2 else 50 - n) for n in range(10)),
            42,
            (51,),
        ),
        LagState.OK,
    ),
)

CASES: tuple[Case, ...] = (*BURROW, *TIMED, *POLLED)
