"""Remaining time of a run, from the rates of its brokers and of the run as a whole."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kafkadash.execution.progress.copies import (
    Lane,
)
from kafkadash.execution.progress.figures import FlowDirection

NEVER = float("inf")
NEVER_AFTER_S = 366 * 86_400
"""Seconds of remaining time above which a row counts as not getting on."""

RANGE_MIN_WINDOWS = 3
LOW, HIGH = 0.2, 0.8
"""Percentiles of the rate."""

ROW_S = 4.0
"""No row takes less: it is submitted in one step and found done in another."""

FAR_S, FAR_SHARE = 600.0, 0.5
"""Seconds ahead at which the last minute and the mean of the last ten minutes weigh the same."""


@dataclass(frozen=True, slots=True)
class LaneLoad:
    """``remaining`` bytes of what waits and what is in flight, ``rows`` that have not ended. ``limit``: the throttle in
    force there. ``reach``: which share of it is reached, None before there are three samples; ``reaches`` in each
    quarter of a minute of the last ten. ``inbound``: bytes per second that producers add to what is copied there.
    """

    remaining: float
    rows: int
    limit: int
    reach: float | None = None
    reaches: Sequence[float] = ()
    inbound: float = 0.0


@dataclass(frozen=True, slots=True)
class PlanTotals:
    """The run as a whole: the limit of moves in parallel may be what it takes longest for. ``rate`` and ``windows`` in
    bytes per second.
    """

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


def time_left(lanes: Mapping[Lane, LaneLoad], whole: PlanTotals, usual: float | None) -> TimeLeft:
    """``usual``: which share of the throttle brokers of this run reach; None before anybody knows. Linear in lanes."""
    if usual is None:
        return TimeLeft()
    each = {lane: _estimate_lane(load, usual, whole.per_broker) for lane, load in lanes.items() if load.remaining > 0}
    if not each:
        return TimeLeft(0.0, 0.0, 0.0, None, {})
    binding: Lane | None = max(each, key=lambda lane: (each[lane][0], lane[1] is FlowDirection.IN, -lane[0]))
    seconds, low, high = each[binding] if binding else (0.0, None, None)
    together = _estimate_whole(whole)
    if together is not None and together[0] > seconds:
        binding, (seconds, low, high) = None, together
    if low is not None and high is not None:
        low, high = min(low, seconds), max(high, seconds)
    return TimeLeft(seconds, low, high, binding, {lane: found[0] for lane, found in each.items()})


def _estimate_lane(load: LaneLoad, usual: float, per_broker: int) -> tuple[float, float | None, float | None]:
    """Seconds, and their range if there is one."""
    least = ROW_S * load.rows / max(1, per_broker)
    rates = [load.limit * reached for reached in load.reaches]
    rate = load.limit * (usual if load.reach is None else load.reach)
    return _estimate_seconds(load.remaining, rate, load.inbound, rates, least)


def _estimate_whole(whole: PlanTotals) -> tuple[float, float | None, float | None] | None:
    least = ROW_S * whole.rows / max(1, whole.per_cluster)
    if whole.rate is None:
        return (least, None, None) if least else None
    return _estimate_seconds(whole.remaining, whole.rate, 0.0, whole.windows, least)


def _estimate_seconds(
    remaining: float, rate: float, inbound: float, windows: Sequence[float], least: float
) -> tuple[float, float | None, float | None]:
    found = _seconds_at_rate(remaining, rate - inbound)
    if len(windows) < RANGE_MIN_WINDOWS:
        return max(least, found), None, None
    part = FAR_SHARE * min(1.0, found / FAR_S)
    found = _seconds_at_rate(remaining, (1 - part) * rate + part * sum(windows) / len(windows) - inbound)
    ordered = sorted(windows)
    slow, fast = (ordered[round(share * (len(ordered) - 1))] for share in (LOW, HIGH))
    times = (found, _seconds_at_rate(remaining, fast - inbound), _seconds_at_rate(remaining, slow - inbound))
    return max(least, times[0]), max(least, times[1]), max(least, times[2])


def _seconds_at_rate(remaining: float, rate: float) -> float:
    if remaining <= 0:
        return 0.0
    seconds = remaining / rate if rate > 0 else NEVER
    return seconds if seconds < NEVER_AFTER_S else NEVER
