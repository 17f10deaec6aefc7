"""Which headline each page has while a cluster is well: whatever else it says later, it is not green then."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from tests.agreement.tools import Tools
from tests.smoke.browser import Browser
from tests.waiting import wait_until

SETTLES_S = 30.0
# For ten minutes after several elections pages rightly say that the leader of the quorum keeps changing.
WELL_S = 900.0


class GreenPages:
    """``wait_until_green`` once while all is well, before anything else is asked."""

    def __init__(self, browser: Browser, tools: Tools, paths: Sequence[str]) -> None:
        self._browser, self._tools, self._paths = browser, tools, paths
        self.headlines: dict[str, str] = {}

    def wait_until_green(self) -> None:
        """Every replica is in sync, and each page has the headline of that (again)."""
        wait_until(self._in_sync, "every replica is in sync", WELL_S)
        if not self.headlines:
            self.headlines = self._settled()
        wait_until(lambda: all(self.is_green(path) for path in self._paths), "pages are well", WELL_S)

    def is_green(self, path: str) -> bool:
        return self._browser.headline(path) == self.headlines[path]

    def _in_sync(self) -> bool:
        with suppress(OSError, AssertionError, StopIteration):
            return self._tools.in_sync()
        return False

    def _settled(self) -> dict[str, str]:
        """Headlines that have stayed the same for half a minute."""
        seen: dict[str, str] = {}
        since = time.monotonic()
        while time.monotonic() - since < SETTLES_S:
            now = {path: self._browser.headline(path) for path in self._paths}
            if now != seen:
                seen, since = now, time.monotonic()
            time.sleep(1)
        return seen
