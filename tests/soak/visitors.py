"""People who read pages and watch a run while it goes on; they never act."""

from __future__ import annotations

import json
import threading
import time
import urllib.error
import urllib.parse

from websockets.exceptions import WebSocketException
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Origin

from tests.smoke.browser import Browser

READERS, WATCHERS = 2, 3
READ_EVERY_S = 1.0
WATCHED_S = 30.0
"""A watcher leaves and comes back after this long, so that sockets are opened and closed all the time."""
PAGES = ("/", "/clusters/demo/", "/clusters/demo/reassignments/", "/clusters/demo/throttles/", "/changes/")


class Visitors:
    """``number``: the request whose run they look at. ``failed`` counts answers that were no page."""

    def __init__(self, url: str, password: str, over: threading.Event) -> None:
        self.number = 0
        self.pages = self.frames = self.failed = 0
        self._url, self._password, self._over = url, password, over
        roles = [self._read] * READERS + [self._watch] * WATCHERS
        self._threads = [threading.Thread(target=role, daemon=True) for role in roles]
        self._lock = threading.Lock()

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def join(self) -> None:
        for thread in self._threads:
            thread.join(WATCHED_S)

    def _signed_in(self) -> Browser:
        browser = Browser(self._url)
        browser.sign_in("alice", self._password)
        return browser

    def _read(self) -> None:
        browser = self._signed_in()
        turn = 0
        while not self._over.wait(READ_EVERY_S):
            turn += 1
            own = (f"/changes/{self.number}/", f"/changes/{self.number}/run/") if self.number else ()
            where = [*PAGES, *own][turn % (len(PAGES) + len(own))]
            try:
                browser.get(where)
                self._count(pages=1)
            except urllib.error.HTTPError as refused:
                refused.close()
                print(f"  WRONG: {where} answered {refused.code}", flush=True)  # noqa: T201
                self._count(failed=1)
            except OSError as error:
                print(f"  WRONG: {where}: {error}", flush=True)  # noqa: T201
                self._count(failed=1)

    def _watch(self) -> None:
        browser = self._signed_in()
        while not self._over.is_set():
            keys = ["status:demo", "overview:demo", "reassignments:demo", "throttles:demo"]
            if self.number:
                keys += [f"run:{self.number}", f"moves:{self.number}", f"change:{self.number}"]
            address = f"{self._url.replace('http', 'ws', 1)}/live/?{urllib.parse.urlencode([('key', k) for k in keys])}"
            headers = {"Cookie": browser.cookies}
            try:
                with connect(address, origin=Origin(self._url), additional_headers=headers, proxy=None) as socket:
                    until = time.monotonic() + WATCHED_S
                    while time.monotonic() < until and not self._over.is_set():
                        self._hear(socket)
            except (WebSocketException, OSError) as error:
                print(f"  WRONG: a watcher was cut off: {error}", flush=True)  # noqa: T201
                self._count(failed=1)
                self._over.wait(1)

    def _hear(self, socket: ClientConnection) -> None:
        try:
            message = json.loads(socket.recv(timeout=1))
        except TimeoutError:
            return
        self._count(frames="key" in message)

    def _count(self, *, pages: int = 0, frames: int = 0, failed: int = 0) -> None:
        with self._lock:
            self.pages += pages
            self.frames += frames
            self.failed += failed
