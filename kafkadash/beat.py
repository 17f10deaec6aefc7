"""Celery beat scheduler that sends the tick at the pace of the monotonic clock.

Celery's own schedulers follow the time of day: after the clock is set back by an hour they send nothing for an hour.
They also keep a file, which can be corrupt after beat was killed. This scheduler stores nothing.
"""

from __future__ import annotations

import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler

SENDS_WITHIN_S = 30.0


class MonotonicScheduler(Scheduler):
    """Each entry of the schedule at its interval, the first time at once; what was missed is not made up for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._next: dict[str, float] = {}
        self._sent = time.monotonic()
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.merge_inplace(self.app.conf.beat_schedule)

    def tick(self, *_: Any, **__: Any) -> float:
        """Sends what is due now; returns the seconds until the next is."""
        for name, entry in self.schedule.items():
            if time.monotonic() >= self._next.get(name, 0.0):
                self._send(name, entry)
        return max(0.0, min(self._next.values()) - time.monotonic()) if self._next else self.max_interval

    def sends(self) -> bool:
        """Return whether an entry was accepted by Redis lately; from any thread."""
        return time.monotonic() - self._sent < SENDS_WITHIN_S

    def apply_async(self, *args: Any, **kwargs: Any) -> Any:
        """Send an entry, and note that it was accepted."""
        result = super().apply_async(*args, **kwargs)
        self._sent = time.monotonic()
        return result

    def _send(self, name: str, entry: ScheduleEntry) -> None:
        every = float(entry.schedule.seconds)
        due = self._next.get(name, time.monotonic())
        self.apply_entry(entry, producer=self.producer)
        self._next[name] = max(due + every, time.monotonic())
