"""What sends the tick: its pace is the monotonic clock's.

Celery's own schedulers go by the time of day: one that is set back an hour would send nothing for an hour. They also
keep a file, which a beat that is killed may leave broken; here nothing is remembered.
"""

from __future__ import annotations

import time
from typing import Any

from celery.beat import ScheduleEntry, Scheduler


class Steady(Scheduler):
    """Each entry of the schedule at its interval, the first time at once; what was missed is not made up for."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._next: dict[str, float] = {}
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.merge_inplace(self.app.conf.beat_schedule)

    def tick(self, *_: Any, **__: Any) -> float:
        """Sends what is due now; returns the seconds until the next is."""
        for name, entry in self.schedule.items():
            if time.monotonic() >= self._next.get(name, 0.0):
                self._send(name, entry)
        return max(0.0, min(self._next.values()) - time.monotonic()) if self._next else self.max_interval

    def _send(self, name: str, entry: ScheduleEntry) -> None:
        every = float(entry.schedule.seconds)
        due = self._next.get(name, time.monotonic())
        self.apply_entry(entry, producer=self.producer)
        self._next[name] = max(due + every, time.monotonic())
