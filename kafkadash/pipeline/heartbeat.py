"""Heartbeat file of the pipeline (format in ``export.results``), and the state of the pipeline from its files alone."""

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

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.export.results import HEARTBEAT_FORMAT, HEARTBEATS
from kafkadash.pipeline.errors import PipelineErrorCode
from kafkadash.pipeline.store import PipelineStore

if TYPE_CHECKING:
    from kafkadash.pipeline.batch import DoneBatch

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
class PipelineHeartbeat:
    """Heartbeat of one process, written by its own thread, so that a long batch does not look like a dead process."""

    store: PipelineStore
    interval_seconds: float
    clock: Callable[[], datetime] = now
    query: str = ""
    fault: CodedMessage | None = None
    working_on: str | None = None
    state: str = "starting"
    caught_up: bool = False
    _done: DoneBatch | None = field(default=None, init=False)
    _done_at: datetime | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._started = self.clock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._go_on, name="heartbeat", daemon=True)

    def start(self) -> None:
        """Raises OSError where the store does not take it; later ones are tried again."""
        self.beat()
        self._thread.start()

    def end(self, state: str, fault: CodedMessage | None = None) -> None:
        """Write the last heartbeat. If the store does not accept it, the failure is reported on stderr only."""
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

    def batch_done(self, done: DoneBatch) -> None:
        self._done, self._done_at = done, self.clock()

    def beat(self) -> None:
        """Raises OSError where the store does not take it."""
        done = self._done
        content = {
            "format": HEARTBEAT_FORMAT,
            "name": NAME,
            "query": self.query,
            "state": "working" if self.working_on and self.state == "waiting" else self.state,
            "working_on": self.working_on,
            "fault": self.fault.as_json() if self.fault else None,
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
            "event_lag_seconds": _compute_lag(done, self._done_at),
        }
        self.store.write(f"{HEARTBEATS}/{NAME}.json", json.dumps(content, indent=1, ensure_ascii=False).encode())


def is_alive(store: PipelineStore, at: datetime) -> bool:
    """Return whether a live process writes heartbeats. Raises OSError and ValueError for an unreadable heartbeat."""
    content = store.read(f"{HEARTBEATS}/{NAME}.json")
    beat = json.loads(content) if content else {"state": "stopped"}
    return beat["state"] not in ("stopped", "failed") and not is_late(beat, at)


def is_late(beat: Mapping[str, Any], at: datetime) -> bool:
    age = at - datetime.fromisoformat(beat["beat_at"])
    return age > timedelta(seconds=MISSED * max(beat["interval_seconds"], _LEAST_SECONDS))


def _iso(at: datetime | None) -> str | None:
    return at.isoformat() if at is not None else None


def _compute_lag(done: DoneBatch | None, at: datetime | None) -> float | None:
    if done is None or at is None or done.newest is None:
        return None
    return round((at - done.newest).total_seconds(), 3)


@dataclass(frozen=True, slots=True)
class HeartbeatStatus:
    """``lines``: label and text. ``wrong``: None where it runs."""

    lines: list[tuple[str, str]]
    wrong: CodedMessage | None


def read_status(store: PipelineStore, now: datetime) -> HeartbeatStatus:
    """Raises OSError and ValueError where what is there cannot be read."""
    from kafkadash.pipeline import flushes  # PySpark: a heartbeat says also that it is missing

    kept = flushes.list_manifests(store)
    lines = [("segments", f"{len(kept)} flushes retained")]
    content = store.read(f"{HEARTBEATS}/{NAME}.json")
    if content is None:
        return HeartbeatStatus(lines, coded(PipelineErrorCode.NEVER_BEATEN, address=store.uri))
    beat: dict[str, Any] = json.loads(content)
    age = now - datetime.fromisoformat(beat["beat_at"])
    lines += [
        ("state", " ".join(filter(None, (beat["state"], beat["working_on"])))),
        ("process", f"{beat['pid']} on {beat['host']}, since {_format_time(beat['started_at'])}"),
        ("heartbeat", f"{_seconds(age)} ago"),
        ("query", beat["query"] or "none"),
        ("last batch", _describe_batch(beat)),
        ("event lag", _describe_lag(beat)),
    ]
    if beat["fault"]:
        return HeartbeatStatus(lines, CodedMessage.from_json(beat["fault"]))
    if is_late(beat, now) or beat["state"] == "stopped":
        return HeartbeatStatus(lines, coded(PipelineErrorCode.PIPELINE_SILENT, age=_seconds(age)))
    return HeartbeatStatus(lines, None)


def _describe_batch(beat: dict[str, Any]) -> str:
    if beat["last_batch"] is None:
        return "none since the start"
    return f"{beat['last_batch']}, {_format_time(beat['last_batch_at'])}, took {beat['last_batch_seconds']:.1f} s"


def _describe_lag(beat: dict[str, Any]) -> str:
    lag = beat["event_lag_seconds"]
    if lag is None:
        return "unknown"
    return (
        f"{lag:.0f} s, from the newest observation ({_format_time(beat['newest_observed_at'])}) to the end of its batch"
    )


def _format_time(iso: str) -> str:
    return f"{datetime.fromisoformat(iso):%Y-%m-%d %H:%M:%S} UTC"


def _seconds(age: timedelta) -> str:
    return f"{max(0.0, age.total_seconds()):.0f} s"
