"""Ctrl-C and SIGTERM, and work in threads that never keeps the demo from hearing them."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterable
from types import FrameType
from typing import Any, Self

POLL_SECONDS = 0.05
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptedStart(Exception):
    """Somebody asked the demo to stop while it was still starting."""


class StopRequests:
    """Counts how often somebody asked to stop. A handler may only count: anything with a lock in it could deadlock."""

    def __init__(self) -> None:
        self.count = 0
        self._before: list[tuple[signal.Signals, Any]] = []

    def __enter__(self) -> Self:
        self._before = [(number, signal.signal(number, self._arrived)) for number in SIGNALS]
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before:
            signal.signal(number, handler)

    def _arrived(self, _number: int, _frame: FrameType | None) -> None:
        self.count += 1


class Lane(threading.Thread):
    """One line of steps. Its error is kept for the one who waits."""

    def __init__(self, name: str, work: Callable[[], None]) -> None:
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._work = work

    def run(self) -> None:
        try:
            self._work()
        except BaseException as error:  # noqa: BLE001  raised again in the main thread
            self.error = error


def wait_for(lanes: Iterable[Lane], requests: StopRequests) -> None:
    """Return when all have done their work. Raises the first error of any, or InterruptedStart."""
    lanes = list(lanes)
    while True:
        running = [lane for lane in lanes if lane.is_alive()]
        for lane in lanes:
            if lane.error is not None:
                raise lane.error
        if requests.count:
            raise InterruptedStart
        if not running:
            return
        time.sleep(POLL_SECONDS)
