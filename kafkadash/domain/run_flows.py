"""How fast bytes arrive at each broker and leave it, also when the throttle has just been changed (04-changes.md §6).

The rate is a mean of the last minute or so, each minute half as heavy as the next. Only time in which something was
copied counts: a broker that waits for its turn is not slow.
"""

from __future__ import annotations

from kafkadash.domain.progress import ANEW_AFTER_S, RATE_MIN_WINDOW_S, RateMeter
from kafkadash.domain.run_memory import WINDOW_S, WINDOWS_KEPT, FlowMemory

AT_THROTTLE = 0.8
"""From this share of its throttle on a broker counts as held back by it: the quota is met in the mean only."""


def begun(at: float) -> FlowMemory:
    return FlowMemory(0, RateMeter.start(at, 0), window_at=at, grew_at=at)


def add(flow: FlowMemory, at: float, grown: float, *, busy: bool) -> None:
    """``grown`` bytes since the last look; ``busy``: whether anything is left to be copied by what is in flight."""
    flow.total += round(grown)
    stood = flow.meter.at - flow.grew_at
    if grown or not flow.busy:
        flow.grew_at = at
    if grown and flow.busy and stood >= ANEW_AFTER_S:
        flow.meter, flow.windows = RateMeter.start(at, flow.total), []
        flow.window_at, flow.window_total = at, flow.total
    elif not flow.busy and not grown:
        flow.meter = flow.meter.rested(at, flow.total)
        flow.window_at, flow.window_total = at, flow.total
    else:
        if at >= flow.held_until:
            flow.meter = flow.meter.add(at, flow.total)
        elapsed = at - flow.window_at
        if elapsed >= WINDOW_S:
            flow.windows.append(round((flow.total - flow.window_total) / elapsed))
            del flow.windows[:-WINDOWS_KEPT]
            flow.window_at, flow.window_total = at, flow.total
    flow.busy = busy


def throttle_changed(flow: FlowMemory, at: float, before: int, after: int) -> None:
    """What was held back by the throttle is expected at the new one, what is above it, at it; for the first quarter of
    a minute, in which the quota bursts, nothing is judged. Then samples replace what was expected.
    """
    rate = flow.meter.per_second()
    if rate is not None:
        flow.meter = flow.meter.expecting(_expected(rate, before, after))
        flow.windows = [round(_expected(window, before, after)) for window in flow.windows]
    flow.meter = flow.meter.rested(at, flow.total)
    flow.held_until = at + RATE_MIN_WINDOW_S
    flow.window_at, flow.window_total = at, flow.total


def _expected(rate: float, before: int, after: int) -> float:
    return min(rate, before) * after / before if rate >= AT_THROTTLE * before else min(rate, after)
