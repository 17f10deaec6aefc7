"""Random windows of samples of all shapes, the same ones for the same seed: two judges must agree on each of them."""

from __future__ import annotations

from collections.abc import Iterator
from random import Random

from kafkadash.domain.lag import WINDOW, Sample
from tests.domain.lag_cases import Window

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
            Sample(
                None if lost_commit else commit,
                None if lost_commit or lost_end else max(0, end - commit),
                at if timed and random.random() > _missing(place) else None,
            )
        )
    if random.random() < 0.05:
        samples = [Sample(None, None)] * length
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
