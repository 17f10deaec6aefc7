"""How fast bytes arrive at each broker and leave it, also when the throttle has just been changed (04-changes.md §6).

The rate is a mean of the last minute or so, each minute half as heavy as the next. Only time in which something was
copied counts: a broker that waits for its turn is not slow. Nor is one whose copies share the throttle of the broker at
their other end; so beside the rate stands what was due if nothing but throttles held it back, and what a broker can do
is told from the two.

A quota is met in the mean of 11 s (``replication.quota.window.num``): what begins may take many seconds' worth at once
and then stand still for as long. The two belong together, so a copy is measured from its begin, with its burst.
"""

from __future__ import annotations

from kafkadash.domain.progress import ANEW_AFTER_S, RATE_MIN_WINDOW_S, RateMeter
from kafkadash.domain.run_memory import WINDOW_S, WINDOWS_KEPT, FlowMemory

AT_THROTTLE = 0.8
"""From this share of what is due on, the throttle is what holds it back: a quota is met in the mean only."""


def begun(at: float) -> FlowMemory:
    return FlowMemory(0, RateMeter.start(at, 0), RateMeter.start(at, 0), window_at=at, grew_at=at)


def add(
    flow: FlowMemory, at: float, grown: float, *, busy: bool, pace: float = 0.0, blind: bool = False, lost: bool = False
) -> None:
    """``grown`` bytes since the last look. ``busy``: whether anything is left to be copied by what is in flight, which
    would go at ``pace`` bytes per second if only the throttle held it back. ``blind``: nobody knows yet how many bytes
    a part of it is; the time until that is known is measured then, as a whole. ``lost``: nobody ever will.
    """
    flow.total += round(grown)
    due = flow.due.value + round(flow.pace * max(0.0, at - flow.due.at))
    stood = flow.meter.at - flow.grew_at
    if grown or not flow.busy:
        flow.grew_at = at
    flow.blind = blind
    if lost:
        _rest(flow, at, due)
    elif blind:
        flow.grew_at = at
    elif grown and flow.busy and stood >= ANEW_AFTER_S:
        flow.meter, flow.due = RateMeter.start(at, flow.total), RateMeter.start(at, due)
        flow.windows, flow.dues = [], []
        _open_window(flow, at)
    elif not flow.busy and not grown:
        _rest(flow, at, due)
    elif at >= flow.held_until:
        flow.meter, flow.due = flow.meter.add(at, flow.total), flow.due.add(at, due)
        _close_window(flow, at)
    flow.busy, flow.pace = busy, pace


def throttle_changed(flow: FlowMemory, at: float, before: int, after: int) -> None:
    """What was held back by the throttle is expected to follow it; what was slower for reasons of its own, to stay as
    it was. For the first quarter of a minute, in which the quota bursts, nothing is judged; then samples replace what
    was expected.
    """
    rate, due = flow.meter.per_second(), flow.due.per_second()
    change = after / before
    if rate is not None:
        flow.meter = flow.meter.expecting(_expected(rate, due or before, change))
    if due is not None:
        flow.due = flow.due.expecting(due * change)
    pairs = list(zip(flow.windows, flow.dues, strict=True))
    flow.windows = [round(_expected(window, expected or before, change)) for window, expected in pairs]
    flow.dues = [round(expected * change) for expected in flow.dues]
    flow.pace *= change
    _rest(flow, at, flow.due.value)
    flow.held_until = at + RATE_MIN_WINDOW_S


def reach(flow: FlowMemory) -> float | None:
    """Which share of what the throttle allows is reached, 0 to 1; None before there are three samples."""
    rate, due = flow.meter.per_second(), flow.due.per_second()
    return None if rate is None or not due else min(1.0, rate / due)


def reaches(flow: FlowMemory) -> list[float]:
    """The same of each quarter of a minute of the last ten."""
    return [min(1.0, window / due) for window, due in zip(flow.windows, flow.dues, strict=True) if due > 0]


def held_back(flow: FlowMemory) -> bool:
    """Whether the throttle is what holds it back."""
    found = reach(flow)
    return found is not None and found >= AT_THROTTLE


def _rest(flow: FlowMemory, at: float, due: int) -> None:
    flow.meter, flow.due = flow.meter.rested(at, flow.total), flow.due.rested(at, due)
    _open_window(flow, at)


def _open_window(flow: FlowMemory, at: float) -> None:
    flow.window_at, flow.window_total, flow.window_due = at, flow.total, flow.due.value


def _close_window(flow: FlowMemory, at: float) -> None:
    elapsed = at - flow.window_at
    if elapsed < WINDOW_S:
        return
    flow.windows.append(round((flow.total - flow.window_total) / elapsed))
    flow.dues.append(round((flow.due.value - flow.window_due) / elapsed))
    del flow.windows[:-WINDOWS_KEPT], flow.dues[:-WINDOWS_KEPT]
    _open_window(flow, at)


def _expected(rate: float, due: float, change: float) -> float:
    return rate * change if rate >= AT_THROTTLE * due else min(rate, due * change)
