"""One process of a stack and the thread that starts it again when it has ended."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import psutil

from kafkadash.devtools.embedded.process import POLL_SECONDS, ChildProcess, ServerError

AGAIN_SECONDS = 1.0
# A start that failed (a port, a database that recovers) is tried again after this long, for as long as the stack runs.
FAILED_AGAIN_SECONDS = 2.0
FAMILY_SECONDS = 5.0

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Started:
    """``serves`` tells whether it is ready; what is not within ``late_s`` seconds is ended and started once more."""

    child: ChildProcess
    serves: Callable[[], bool] = lambda: True
    late_s: float = 60.0


class Keeper:
    """Keeps one process alive. All methods may be called from any thread.

    ``start`` makes the process; it may raise ServerError, and is asked again then. ``has_family``: the process has
    children that go on for a while after its own end (PostgreSQL's backends); an end counts when they are gone too.
    """

    def __init__(self, name: str, start: Callable[[], Started], say: Say, *, has_family: bool = False) -> None:
        self.name = name
        self.starts = 0
        self._start = start
        self._say = say
        self._has_family = has_family
        self._lock = threading.RLock()
        self._started: Started | None = None
        self._late_at = 0.0
        self._again_at: float | None = None
        self._away = False
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._keep, name=f"keeper of {name}", daemon=True)

    def begin(self) -> None:
        """The first start, in the caller's thread. Raises ServerError."""
        with self._lock:
            self._begin()
        self._thread.start()

    @property
    def child(self) -> ChildProcess | None:
        """The live process, None while it is away."""
        with self._lock:
            return self._started.child if self._started is not None and self._started.child.alive() else None

    @property
    def serves(self) -> bool:
        with self._lock:
            return self.child is not None and self._started is not None and self._started.serves()

    def send(self, number: signal.Signals) -> int | None:
        """The process id that got the signal, None when there is no process. After SIGKILL it is gone on return."""
        with self._lock:
            child = self.child
            if child is None:
                return None
            if number == signal.SIGKILL:
                self._kill(child)
            else:
                os.kill(child.pid, number)
            return child.pid

    def pause(self, number: signal.Signals = signal.SIGKILL) -> int | None:
        """The signal, by which it ends, and not started again before ``resume``."""
        with self._lock:
            self._away = True
            return self.send(number)

    def resume(self) -> None:
        with self._lock:
            self._away = False
            self._again_at = None if self.child is not None else time.monotonic()

    def restart_with(self, start: Callable[[], Started]) -> None:
        """From the next start on the process is made like this."""
        with self._lock:
            self._start = start

    def finish(self) -> ChildProcess | None:
        """Stops keeping; the process that is left, for whoever ends it."""
        self._end.set()
        if self._thread.is_alive():
            self._thread.join()
        return self.child

    def _keep(self) -> None:
        while not self._end.wait(POLL_SECONDS * 3):
            with self._lock:
                self._look()

    def _look(self) -> None:
        if self._away or self._end.is_set():
            return
        if self._again_at is not None:
            if time.monotonic() >= self._again_at:
                self._try()
        elif self._started is not None and not self._started.child.alive():
            self._say(f"{self.name} ended (code {self._started.child.exit_code()}), it is started again")
            self._started.child.stop()  # takes it out of the folder's ledger
            self._again_at = time.monotonic() + AGAIN_SECONDS
        elif self._started is not None and self._late_at and time.monotonic() > self._late_at:
            self._late_at = 0.0
            if not self._started.serves():
                self._say(f"{self.name} does not serve after {self._started.late_s:g} s, it is started once more")
                self._kill(self._started.child)

    def _try(self) -> None:
        try:
            self._begin()
        except ServerError as error:
            self._say(f"{self.name} could not be started, it is tried again: {error}")
            self._again_at = time.monotonic() + FAILED_AGAIN_SECONDS

    def _begin(self) -> None:
        self._started = self._start()
        self.starts += 1
        self._late_at = time.monotonic() + self._started.late_s
        self._again_at = None

    def _kill(self, child: ChildProcess) -> None:
        family = psutil.Process(child.pid).children(recursive=True) if self._has_family else []
        child.kill()
        _await_family(family)
        self._again_at = time.monotonic() + AGAIN_SECONDS


def _await_family(family: list[psutil.Process]) -> None:
    """Returns when all are gone; those that do not go by themselves are killed."""
    end = time.monotonic() + FAMILY_SECONDS
    while left := [process for process in family if _lives(process)]:
        if time.monotonic() > end:
            for process in left:
                process.kill()
        time.sleep(POLL_SECONDS)


def _lives(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
