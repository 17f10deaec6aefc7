"""When all will be copied: what every broker still has to take or to send, by how fast it does (04-changes.md §6).

The broker and direction that takes longest decides. A broker that is not at its limit, because the other ends of its
copies are at theirs, or because nothing of its own is in flight yet, is expected to do as well as the best one does:
its turn comes. The rates of the last ten minutes give the range.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.domain.run_flows import AT_THROTTLE
from kafkadash.domain.run_memory import Lane
from kafkadash.domain.run_progress import Direction

NEVER = float("inf")
NEVER_AFTER_S = 366 * 86_400
"""What takes longer does not get on."""

RANGE_MIN_WINDOWS = 3
LOW, HIGH = 0.2, 0.8
"""Percentiles of the rate."""

ROW_S = 4.0
"""No row takes less: it is submitted in one step and found done in another."""


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """``remaining`` bytes of what waits and what is in flight; ``rate`` as measured, None before there are three
    samples. ``limit``: the throttle in force there. ``busy``: something is in flight; ``ends``: the other ends of what
    is. ``inbound``: bytes per second that producers add to it. ``rows``: that have not ended. ``windows``: rates.
    """

    remaining: float
    rate: float | None
    limit: int
    busy: bool
    ends: frozenset[Lane] = frozenset()
    inbound: float = 0.0
    rows: int = 0
    windows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class Whole:
    """The run as a whole: the limit of moves in parallel may be what it takes longest for."""

    remaining: float
    rate: float | None
    rows: int
    per_broker: int
    per_cluster: int
    windows: Sequence[int] = ()


@dataclass(frozen=True, slots=True)
class TimeLeft:
    """Seconds; infinite where nothing gets on, None where nothing can be said yet. ``lanes`` each have their own."""

    seconds: float | None = None
    low: float | None = None
    high: float | None = None
    binding: Lane | None = None
    lanes: Mapping[Lane, float] | None = None


def time_left(lanes: Mapping[Lane, LaneLoad], whole: Whole) -> TimeLeft:
    """None before any broker has a rate. Linear in lanes and the copies in flight."""
    best = _best(lanes)
    if not best:
        return TimeLeft()
    limits = {lane: min(load.limit, best.get(lane[1], max(best.values()))) for lane, load in lanes.items()}
    full = {
        lane for lane, load in lanes.items() if load.rate is not None and load.rate >= AT_THROTTLE * limits[lane] > 0
    }
    each = {lane: _lane(lane, load, limits[lane], full, whole) for lane, load in lanes.items() if load.remaining > 0}
    if not each:
        return TimeLeft(0.0, 0.0, 0.0, None, {})
    binding: Lane | None = max(each, key=lambda lane: (each[lane][0], lane[1] is Direction.IN, -lane[0]))
    seconds, low, high = each[binding] if binding else (0.0, None, None)
    together = _together(whole)
    if together is not None and together[0] > seconds:
        binding, (seconds, low, high) = None, together
    if low is not None and high is not None:
        low, high = min(low, seconds), max(high, seconds)
    return TimeLeft(seconds, low, high, binding, {lane: found[0] for lane, found in each.items()})


def _best(lanes: Mapping[Lane, LaneLoad]) -> dict[Direction, float]:
    best: dict[Direction, float] = {}
    for (_, way), load in lanes.items():
        if load.rate is not None and load.rate > 0:
            best[way] = max(best.get(way, 0.0), load.rate)
    if not best and any(load.rate is not None for load in lanes.values()):
        return dict.fromkeys(Direction, 0.0)
    return best


def _lane(
    lane: Lane, load: LaneLoad, limit: float, full: set[Lane], whole: Whole
) -> tuple[float, float | None, float | None]:
    """Seconds, and their range if there is one."""
    least = ROW_S * load.rows / max(1, whole.per_broker)
    held_elsewhere = bool(load.ends) and load.ends <= full
    if load.rate is not None and load.busy and (lane in full or not held_elsewhere):
        return _seconds(load.remaining, load.rate, load.inbound, load.windows, least)
    rate = max(limit, load.rate or 0.0)
    return _seconds(load.remaining, rate, load.inbound, (), least)


def _together(whole: Whole) -> tuple[float, float | None, float | None] | None:
    least = ROW_S * whole.rows / max(1, whole.per_cluster)
    if whole.rate is None:
        return (least, None, None) if least else None
    return _seconds(whole.remaining, whole.rate, 0.0, whole.windows, least)


def _seconds(
    remaining: float, rate: float, inbound: float, windows: Sequence[int], least: float
) -> tuple[float, float | None, float | None]:
    found = max(least, _at(remaining, rate - inbound))
    if len(windows) < RANGE_MIN_WINDOWS:
        return found, None, None
    ordered = sorted(windows)
    slow, fast = (ordered[round(part * (len(ordered) - 1))] for part in (LOW, HIGH))
    return found, max(least, _at(remaining, fast - inbound)), max(least, _at(remaining, slow - inbound))


def _at(remaining: float, rate: float) -> float:
    if remaining <= 0:
        return 0.0
    seconds = remaining / rate if rate > 0 else NEVER
    return seconds if seconds < NEVER_AFTER_S else NEVER
