"""A request that changes something is sent at most once, and it is known whether it may have left."""

from __future__ import annotations

import threading


class Once:
    """One request that is sent at most once. The loop's thread begins it, the caller's thread gives it up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begun = False
        self._given_up = False

    @property
    def begun(self) -> bool:
        return self._begun

    def begin(self) -> bool:
        """Just before the first byte is written. False: its caller went away, so it must not be sent any more."""
        with self._lock:
            self._begun = not self._given_up
            return self._begun

    def not_begun(self) -> None:
        """It turned out that no byte was written."""
        with self._lock:
            self._begun = False

    def give_up(self) -> bool:
        """The caller waits no longer. Returns whether it may have left; if not, it never will."""
        with self._lock:
            self._given_up = True
            return self._begun
