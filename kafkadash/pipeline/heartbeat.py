"""The file by which others see that the pipeline lives, and how far it is; ``domain.pipeline_results`` has its form."""

from __future__ import annotations

import json
import os
import socket
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

from kafkadash.domain.pipeline_results import HEARTBEAT_FORMAT, HEARTBEATS
from kafkadash.pipeline.store import Store

if TYPE_CHECKING:
    from kafkadash.pipeline.batch import Done

NAME = "segments"
BEAT_SECONDS = 2.0
PROMISED_SECONDS = 5.0
"""Between two heartbeats at most, as readers are told; they come more often."""
MISSED = 3
# A beat is written every two seconds, however seldom there are batches.
_LEAST_SECONDS = 10.0


def now() -> datetime:
    return datetime.now(UTC)


@dataclass
class Heartbeat:
    """Of one process. A thread of its own writes it, so that a long batch does not look like death."""

    store: Store
    interval_seconds: float
    clock: Callable[[], datetime] = now
    query: str = ""
    fault: str | None = None
    working_on: str | None = None
    state: str = "starting"
    caught_up: bool = False
    _done: Done | None = field(default=None, init=False)
    _done_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Raises OSError where the store does not take it; later ones are tried again."""
        self.beat()
        self._thread.start()

    def end(self, state: str, fault: str | None = None) -> None:
        """Where the store does not take it, stderr is all that tells of it."""
        self._over.set()
        self._thread.join()
        self.state, self.fault = state, fault
        self._try()

    def _go_on(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            self._try()

    def _try(self) -> None:
        try:
            self.beat()
        except OSError as error:
            sys.stderr.write(f"heartbeat: {error}\n")

    def batch_done(self, done: Done) -> None:
        self._done, self._done_at = done, self.clock()

    def beat(self) -> None:
        """Raises OSError where the store does not take it."""
        done = self._done
        said = {
            "format": HEARTBEAT_FORMAT,
            "name": NAME,
            "query": self.query,
            "state": "working" if self.working_on and self.state == "waiting" else self.state,
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


def lives(store: Store, at: datetime) -> bool:
    """Whether somebody gives signs of life there. Raises OSError and ValueError where what is there cannot be read."""
    content = store.read(f"{HEARTBEATS}/{NAME}.json")
    beat = json.loads(content) if content else {"state": "stopped"}
    return beat["state"] not in ("stopped", "failed") and not is_late(beat, at)


def is_late(beat: Mapping[str, Any], at: datetime) -> bool:
    age = at - datetime.fromisoformat(beat["beat_at"])
    return age > timedelta(seconds=MISSED * max(beat["interval_seconds"], _LEAST_SECONDS))


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def _lag(done: Done | None, at: datetime | None) -> float | None:
    if done is None or at is None or done.newest is None:
        return None
    return round((at - done.newest).total_seconds(), 3)
