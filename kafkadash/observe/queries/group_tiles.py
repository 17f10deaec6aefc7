"""The figures at the head of a group's page, each with a line that says what it is of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kafkadash.domain.lag_group import STATES, GroupLag, PartitionLag
from kafkadash.domain.lag_time import TimeLag
from kafkadash.domain.lag_trend import Drain, Trend
from kafkadash.domain.lag_words import time_lag_words
from kafkadash.domain.status import State
from kafkadash.domain.wording import duration


@dataclass(frozen=True, slots=True)
class Seen:
    """A partition with what takes a while to work out, once."""

    lag: PartitionLag
    time: TimeLag | None
    trend: Trend


@dataclass(frozen=True, slots=True)
class Tile:
    """``value`` and ``unit``, and ``words`` about it; ``state`` colours it where something is to be seen."""

    name: str
    value: str
    unit: str
    words: str
    state: str = ""


def tiles_of(group: GroupLag, every: Sequence[Seen], *, stale: bool) -> list[Tile]:
    """Nothing old is green, nor coloured at all."""
    warned = group.worst is not None and STATES[group.verdict] is State.WARNING and not stale
    state = State.WARNING.value if warned else ""
    reads = [seen.trend.read for seen in every]
    writes = [seen.trend.written for seen in every]
    return [
        _lag(group, every, state),
        _time(every, state),
        _flow("Read", reads),
        _flow("Written", writes),
        _drain(every, stale=stale),
        _loss(group, every, stale=stale),
    ]


def _lag(group: GroupLag, every: Sequence[Seen], state: str) -> Tile:
    unknown = f"; {group.lag_unknown:,} not known" if group.lag_unknown else ""
    if group.lag is None:
        return Tile("Lag", "unknown" if every else "none", "", f"of {group.partitions:,} partitions")
    most = max((seen.lag for seen in every if seen.lag.lag is not None), key=lambda each: each.lag or 0)
    words = "nothing waits"
    if group.lag:
        words = f"{most.name} holds {100 * (most.lag or 0) // group.lag} %" if group.partitions > 1 else most.name
    return Tile("Lag", f"{group.lag:,}", "record" if group.lag == 1 else "records", words + unknown, state)


def _time(every: Sequence[Seen], state: str) -> Tile:
    known = [(seen.time, seen.lag) for seen in every if seen.time is not None]
    if not known:
        return Tile("Worst time lag", "unknown", "", "needs a commit and two log ends")
    longest, each = max(known, key=lambda pair: pair[0].seconds)
    if not longest.seconds:
        return Tile("Worst time lag", time_lag_words(longest), "", "all is read")
    return Tile("Worst time lag", time_lag_words(longest), "", each.name, state)


def _flow(name: str, rates: Sequence[float | None]) -> Tile:
    """All together, and from the slowest to the fastest partition."""
    known = [rate for rate in rates if rate is not None]
    if not known:
        return Tile(name, "unknown", "", "needs two looks")
    low, high = _rate(min(known)), _rate(max(known))
    words = f"{low} a partition" if low == high else f"{low} to {high} a partition"
    return Tile(name, _rate(sum(known)), "/s", "over its last samples" if len(known) == 1 else words)


def _rate(value: float) -> str:
    return f"{value:,.0f}" if value == 0 or abs(value) >= 10 else f"{value:.1f}"


def _drain(every: Sequence[Seen], *, stale: bool) -> Tile:
    by_kind: dict[Drain, list[Seen]] = {}
    for seen in every:
        by_kind.setdefault(seen.trend.drain, []).append(seen)
    if own := by_kind.get(Drain.NEVER):
        seen = max(own, key=lambda each: each.lag.lag or 0)
        net = seen.trend.net or 0.0
        words = f"net {'−' if net < 0 else ''}{_rate(abs(net))} a second in {seen.lag.name}"
        return Tile("Drains in", "never", "", words, "" if stale else State.WARNING.value)
    if own := by_kind.get(Drain.DRAINS):
        seen = max(own, key=lambda each: each.trend.drain_s or 0.0)
        words = f"{seen.lag.name}, if rates stay as they are"
        return Tile("Drains in", duration(seen.trend.drain_s or 0.0), "", words)
    if Drain.KEEPS_UP in by_kind:
        return Tile("Drains in", Drain.KEEPS_UP.value, "", "what waits is on its way")
    if Drain.EMPTY in by_kind:
        return Tile("Drains in", Drain.EMPTY.value, "", "no lag")
    return Tile("Drains in", "unknown", "", "needs two looks at commits and log ends")


def _loss(group: GroupLag, every: Sequence[Seen], *, stale: bool) -> Tile:
    if group.lost and group.most_lost is not None:
        place = group.most_lost.name if group.lost_in == 1 else f"{group.lost_in:,} partitions"
        state = "" if stale else State.WARNING.value
        return Tile("Data loss", f"≤ {group.lost:,}", "records", f"deleted before committed, in {place}", state)
    if all(seen.lag.lost is None for seen in every):
        return Tile("Data loss", "unknown" if every else "none", "", "no commit and log start to compare")
    return Tile("Data loss", "none", "", "committed is above log start", "" if stale else State.OK.value)
