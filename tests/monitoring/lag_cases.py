"""Windows of samples with the state they must be given, as plain data: whoever judges lag is held against these.

The worker's rule is run over them in ``test_lag_rules``, the pipeline's columns in ``tests/pipeline``.

Random windows of samples of all shapes, the same ones for the same seed: two judges must agree on each of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from random import Random

from kafkadash.monitoring.groups.rules import WINDOW, LagSample, LagState


@dataclass(frozen=True, slots=True)
class Window:
    """Input of ``groups.rules.judge_partition``; ``samples`` oldest first, ``ends`` newest first."""

    name: str
    samples: tuple[LagSample, ...]
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
    samples = tuple(LagSample(1000 * n, own, 100.0 * n) for n, own in enumerate(lags, 1))
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
    samples = tuple(LagSample(c, None if c is None else max(0, end - c)) for c, end in pairs)
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
            (LagSample(1000, 2, 100.0), LagSample(2000, 1, 200.0), LagSample(2000, 1, 300.0)),
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
"""States of one partition, a case for each rule."""

TIMED = (
    Case(
        Window(
            "silent for longer, but an end was reached a moment ago",
            tuple(LagSample(1000 * n, own, 100.0 * n) for n, own in enumerate(_NEVER, 1)),
            250,
            (5250, 5000, 4900, 4900, 4900),
            minimum=5,
        ),
        LagState.WARN,
    ),
    Case(
        Window(
            "commits of the same offset again and again",
            tuple(LagSample(700, 10 + n, 100.0 * n) for n in range(1, 6)),
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
            (LagSample(10, 5, 100.0), LagSample(20, 6), LagSample(30, 7, 300.0)),
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
            (LagSample(30, 5, 100.0), LagSample(20, 15, 200.0)),
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
    Case(Window("end not known now", (LagSample(500, 100),) * 10, None, (600,) * 10), LagState.UNKNOWN),
    Case(Window("no lag of the window is known, still", (LagSample(500, None),) * 10, 100, ()), LagState.STALL),
    Case(Window("no lag known, but an end was reached", (LagSample(500, None),) * 10, 100, (600, 500)), LagState.OK),
    Case(
        Window("moves, one lag known: no trend", (*(LagSample(n, None) for n in range(9)), LagSample(9, 5)), 5, (14,)),
        LagState.UNKNOWN,
    ),
    Case(
        Window(
            "moves, lag grows over the gap",
            tuple(LagSample(n, None if n % 2 else 5 + n) for n in range(10)),
            14,
            (23,),
        ),
        LagState.WARN,
    ),
    Case(
        Window(
            "moves, lag shrinks over the gap",
            tuple(LagSample(n, None if n % 2 else 50 - n) for n in range(10)),
            42,
            (51,),
        ),
        LagState.OK,
    ),
)

CASES: tuple[Case, ...] = (*BURROW, *TIMED, *POLLED)


_LARGE = 2**53 + 7
_SHAPES = ("steady", "still", "behind", "rewound", "seldom", "dense")


def random_windows(number: int, seed: int = 9) -> Iterator[Window]:
    """Named by their place and shape. Values collide often, so that every rule and every tie between them is met."""
    random = Random(seed)
    for place in range(number):
        yield _window(random, place, _SHAPES[place % len(_SHAPES)])


def _window(random: Random, place: int, shape: str) -> Window:
    length = random.choice((0, 1, 2, 3, 5, WINDOW - 1, *[WINDOW] * 9))
    start = random.choice((0, 0, 5, 1000, _LARGE))
    committed, ends = _offsets(random, shape, length, start)
    timed = random.random() < 0.35
    at = 100.0
    samples = []
    for commit, end in zip(committed, ends, strict=True):
        at += random.choice((0, 1, 10, 10, 60))
        lost_commit, lost_end = random.random() < _missing(place), random.random() < _missing(place)
        samples.append(
            LagSample(
                None if lost_commit else commit,
                None if lost_commit or lost_end else max(0, end - commit),
                at if timed and random.random() > _missing(place) else None,
            )
        )
    if random.random() < 0.05:
        samples = [LagSample(None, None)] * length
    last = committed[-1] if committed else 0
    lag = max(0, ends[-1] - last) if ends else None
    odd = random.random()
    if odd < 0.05:
        lag = None
    elif odd < 0.15:
        lag = random.randint(0, 4)
    newest_first = tuple(reversed(ends))
    if random.random() < 0.15:
        newest_first = newest_first[: random.randint(0, length)]
    return Window(
        f"{place} {shape}",
        tuple(samples),
        lag,
        newest_first,
        at + random.choice((0, 1, 50, 100, 500)),
        random.choice((True, False, None)),
        random.choice((0, 0, 0, 1, 2, 50)),
        random.choice((WINDOW, WINDOW, length, 1, 3)) if length else WINDOW,
    )


def _missing(place: int) -> float:
    """How likely a value is missing: not at all in two windows of three."""
    return 0.15 if place % 3 == 0 else 0.0


def _offsets(random: Random, shape: str, length: int, start: int) -> tuple[list[int], list[int]]:
    """Committed and end offsets, oldest first; ends never fall, but may lie below what is committed."""
    committed, ends = [], []
    commit, end = start, start + random.choice((0, 0, 1, 3, 60))
    back_at = random.randrange(length) if length else 0
    for n in range(length):
        committed.append(commit)
        ends.append(end)
        match shape:
            case "steady":
                moved = random.randint(0, 5)
                commit, end = commit + moved, end + moved
            case "still":
                end += random.randint(0, 3)
            case "behind":
                commit, end = commit + random.randint(0, 2), end + random.randint(1, 4)
            case "rewound":
                commit = max(0, commit - random.randint(1, 9)) if n == back_at else commit + random.randint(0, 4)
                end = max(end, commit + random.randint(0, 3))
            case "seldom":
                end += random.random() < 0.1
                commit = end if random.random() < 0.3 else commit
            case _:
                commit, end = start + random.randint(0, 3), end + random.randint(0, 1)
    return committed, ends
