"""Whether a call was back in time, on a machine that may be busy with other things."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

PROMISE_S = 0.5  # the port: back within the deadline and this much
_TICK_S = 0.01


@contextmanager
def in_time(deadline: float) -> Iterator[None]:
    """Fails when the block takes longer than ``deadline`` and half a second.

    A thread beside it adds up by how much this machine wakes a sleeper late; that much is not the block's fault.
    """
    ended = threading.Event()
    lateness = 0.0

    def measure() -> None:
        nonlocal lateness
        while True:
            began = time.monotonic()
            if ended.wait(_TICK_S):
                return
            lateness += max(0.0, time.monotonic() - began - _TICK_S)

    sleeper = threading.Thread(target=measure, daemon=True)
    sleeper.start()
    began = time.monotonic()
    try:
        yield
        taken = time.monotonic() - began
    finally:
        ended.set()
        sleeper.join()
    limit = deadline + PROMISE_S + lateness
    assert taken < limit, f"{taken:.2f} s for a deadline of {deadline:g} s (sleepers were {lateness:.2f} s late)"
