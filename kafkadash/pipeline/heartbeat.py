"""The file by which others see that the pipeline lives, and how far it is; ``domain.pipeline_results`` has its form."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from kafkadash.domain.pipeline_results import HEARTBEAT_FORMAT, HEARTBEATS
from kafkadash.pipeline.batch import Done
from kafkadash.pipeline.store import Store

NAME = "segments"


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Heartbeat:
    """Of one process; ``beat`` is called by one thread, the rest by any."""

    store: Store
    interval_seconds: float
    clock: Callable[[], datetime] = now
    query: str = ""
    fault: str | None = None
    working_on: str | None = None
    _done: Done | None = field(default=None, init=False)
    _done_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()

    def batch_done(self, done: Done) -> None:
        self._done, self._done_at = done, self.clock()

    def beat(self, state: str) -> None:
        """Raises OSError where the store does not take it."""
        done = self._done
        said = {
            "format": HEARTBEAT_FORMAT,
            "name": NAME,
            "query": self.query,
            "state": state,
            "working_on": self.working_on,
            "fault": self.fault,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "started_at": self._started.isoformat(),
            "beat_at": self.clock().isoformat(),
            "interval_seconds": self.interval_seconds,
            "last_batch": done.name.batch if done else None,
            "last_batch_at": _iso(self._done_at),
            "last_batch_seconds": round(done.seconds, 3) if done else None,
            "newest_observed_at": _iso(done.newest) if done else None,
            "newest_committed_at": _iso(done.committed_at) if done else None,
            "event_lag_seconds": _lag(done, self._done_at),
        }
        self.store.write(f"{HEARTBEATS}/{NAME}.json", json.dumps(said, indent=1, ensure_ascii=False).encode())


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def _lag(done: Done | None, at: datetime | None) -> float | None:
    if done is None or at is None or done.newest is None:
        return None
    return round((at - done.newest).total_seconds(), 3)
