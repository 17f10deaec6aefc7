"""The lag of every node of the quorum over time, in buckets that keep their worst value, in words and in lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.domain.quorum import LAGGING_MS
from kafkadash.domain.wording import listed

MOST_LINES = 12
"""Voters have a line each, then the observers that were behind most; the rest share one."""


@dataclass(frozen=True, slots=True)
class LagBuckets:
    """The largest lag in ms of each node in each bucket of ``step_s`` seconds; ``start`` is epoch seconds.

    ``lag``: node → bucket → ms; a bucket that is missing was not known for that node. ``heard``: buckets in which the
    controllers answered at all. ``watched_from``: the first bucket in which anybody asked.
    """

    start: int
    step_s: int
    buckets: int
    voters: frozenset[int]
    lag: Mapping[int, Mapping[int, int]]
    heard: frozenset[int]
    watched_from: int = 0

    @property
    def silent(self) -> int:
        """Buckets in which the controllers were asked and none answered."""
        return self.buckets - self.watched_from - len(self.heard)

    def at(self, bucket: int) -> int:
        """Begin of a bucket in epoch seconds."""
        return self.start + bucket * self.step_s


@dataclass(frozen=True, slots=True)
class LagLine:
    """One line of the chart: ``values`` in ms per bucket, None where it is not known. A gap is not a zero."""

    label: str
    values: Sequence[int | None]
    voter: bool

    @property
    def worst(self) -> int | None:
        return max((v for v in self.values if v is not None), default=None)

    @property
    def lagged(self) -> bool:
        return self.worst is not None and self.worst >= LAGGING_MS


@dataclass(frozen=True, slots=True)
class Spike:
    """The worst of a line: ``from_bucket`` to ``to_bucket`` are the buckets around it from ``LAGGING_MS`` on."""

    line: LagLine
    ms: int
    from_bucket: int
    to_bucket: int


def lag_lines(seen: LagBuckets) -> list[LagLine]:
    """Voters, then observers by id; those that were never much behind share a line when there are too many."""
    worst = {node: max(by_bucket.values(), default=-1) for node, by_bucket in seen.lag.items()}
    voters = sorted(node for node in seen.lag if node in seen.voters)
    observers = sorted(node for node in seen.lag if node not in seen.voters)
    room = max(1, MOST_LINES - len(voters))
    alone, together = observers, list[int]()
    if len(observers) > room:
        by_worst = sorted(observers, key=lambda node: (-worst[node], node))
        alone, together = sorted(by_worst[: room - 1]), sorted(by_worst[room - 1 :])
    lines = [LagLine(f"voter {n}", _values(seen, [n]), voter=True) for n in voters]
    lines += [LagLine(f"broker {n}", _values(seen, [n]), voter=False) for n in alone]
    if together:
        lines.append(LagLine(f"worst of {len(together)} others", _values(seen, together), voter=False))
    return lines


def spikes(lines: Sequence[LagLine]) -> list[Spike]:
    """Where lines were lagging, the worst first, one for each line."""
    found = []
    for line in lines:
        if not line.lagged:
            continue
        ms = max(v for v in line.values if v is not None)
        low = high = next(i for i, v in enumerate(line.values) if v == ms)
        while low > 0 and (line.values[low - 1] or 0) >= LAGGING_MS:
            low -= 1
        while high + 1 < len(line.values) and (line.values[high + 1] or 0) >= LAGGING_MS:
            high += 1
        found.append(Spike(line, ms, low, high))
    return sorted(found, key=lambda spike: -spike.ms)


def summary(seen: LagBuckets, lines: Sequence[LagLine], clock: Mapping[int, str]) -> str:
    """One line about all of it. ``clock`` gives the time of a bucket's begin (``len`` is past the last) as words."""
    if not seen.heard:
        return "No answer of the controllers is known of this time."
    known = [line.worst for line in lines if line.worst is not None]
    if not known:
        return "No lag is known in this time: the leader told no times of others."
    lagging = spikes(lines)
    asked = seen.buckets - seen.watched_from
    gaps = f" In {seen.silent} of {asked} intervals the controllers did not answer." if seen.silent else ""
    calm = [line.worst for line in lines if line.worst is not None and not line.lagged]
    below = f"Below {seconds(_ceiling(max(calm)))} throughout" if calm else ""
    if not lagging:
        return f"{below}.{gaps}"
    first = lagging[0]
    when = f"{clock[first.from_bucket]} to {clock[first.to_bucket + 1]}"
    worst = f"{first.line.label}: up to {seconds(first.ms)}, {when}"
    others = listed([spike.line.label for spike in lagging[1:4]])
    more = f"; {others}{' and more' if len(lagging) > 4 else ''} lagged too" if others else ""
    return (f"{below}, but for {worst}{more}." if below else f"{worst[:1].upper()}{worst[1:]}{more}.") + gaps


def coarser(values: Sequence[int | None], size: int) -> list[int | None]:
    """The worst of every ``size`` values; None where none of them is known."""
    parts = [values[i : i + size] for i in range(0, len(values), size)]
    return [max((v for v in part if v is not None), default=None) for part in parts]


def seconds(ms: int) -> str:
    """Milliseconds as seconds with one decimal, as minutes from two on: "0.6 s", "12 s", "3 min"."""
    if ms < 10_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 1000} s" if ms < 120_000 else f"{ms // 60_000} min"


def _ceiling(ms: int) -> int:
    """The next tenth of a second that is above it."""
    return (ms // 100 + 1) * 100


def _values(seen: LagBuckets, nodes: Sequence[int]) -> list[int | None]:
    of_nodes = [seen.lag[node] for node in nodes]
    if len(of_nodes) == 1:
        return [of_nodes[0].get(bucket) for bucket in range(seen.buckets)]
    return [max((lag[bucket] for lag in of_nodes if bucket in lag), default=None) for bucket in range(seen.buckets)]
