"""Waiting for a condition, never for a time."""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

_PAUSE_S = 0.05


def wait_until(condition: Callable[[], object], what: str, deadline_s: float = 30) -> None:
    """Returns as soon as ``condition()`` is true; fails with ``what`` when it is not within ``deadline_s`` seconds."""
    give_up_at = time.monotonic() + deadline_s
    pause = Event()
    while not condition():
        if time.monotonic() > give_up_at:
            raise AssertionError(f"not within {deadline_s:g} s: {what}")
        pause.wait(_PAUSE_S)
