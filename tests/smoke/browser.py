"""What a browser would do, without one: sign in through the form, read pages, watch a live panel.

Run as a process of its own it is the watcher: ``python -m tests.smoke.browser URL NAME KEY OUT`` with the password on
standard input writes every frame of the panel, with the time it came, as a line of JSON to OUT.
"""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import re
import sys
import time
import urllib.parse
import urllib.request
from dataclasses import dataclass
from datetime import datetime
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect
from websockets.typing import Origin

HTTP_SECONDS = 20
CSRF_FIELD = "csrfmiddlewaretoken"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the reassignments panel; `percent` and `sampled_at` (seconds since the epoch) as its attributes say."""

    text: str
    percent: float | None
    sampled_at: float | None
    outcome: str


class Browser:
    def __init__(self, base: str) -> None:
        self.base = base
        self._jar = http.cookiejar.CookieJar()
        self._opener = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPCookieProcessor(self._jar)
        )

    def get(self, path: str) -> str:
        with self._opener.open(self.base + path, timeout=HTTP_SECONDS) as answer:
            return str(answer.read().decode())

    def sign_in(self, name: str, password: str) -> None:
        """Raises RuntimeError when the form does not let us in."""
        page = self.get("/login/")
        token = re.search(rf'name="{CSRF_FIELD}" value="([^"]+)"', page)
        if token is None:
            raise RuntimeError("The sign-in page has no CSRF token.")
        form = urllib.parse.urlencode({CSRF_FIELD: token[1], "login": name, "password": password}).encode()
        headers = {"Referer": f"{self.base}/"}
        request = urllib.request.Request(f"{self.base}/login/", form, headers)  # noqa: S310  loopback
        with self._opener.open(request, timeout=HTTP_SECONDS) as answer:
            if "/login" in answer.url:
                raise RuntimeError(f"{name} was not let in.")

    @property
    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._jar)


def rows_of(content: str) -> list[Row]:
    """The rows with an outcome in a panel's HTML."""
    reader = _RowReader()
    reader.feed(content)
    return reader.rows


def watch(base: str, name: str, password: str, key: str, out: Path) -> None:
    browser = Browser(base)
    browser.sign_in(name, password)
    url = f"{base.replace('http', 'ws', 1)}/live/?{urllib.parse.urlencode({'key': key})}"
    headers = {"Cookie": browser.cookies}
    with (
        out.open("w", encoding="utf-8") as file,
        connect(url, origin=Origin(base), additional_headers=headers, proxy=None) as socket,
        contextlib.suppress(ConnectionClosed),  # the server stops while we watch: that is part of the run
    ):
        for message in socket:
            frame = json.loads(message)
            file.write(json.dumps({"came_at": time.time(), **frame}) + "\n")
            file.flush()


def read_frames(out: Path) -> list[dict[str, Any]]:
    """What the watcher has written so far; a last line that is not complete yet is left for the next time."""
    if not out.exists():
        return []
    return [
        json.loads(line) for line in out.read_text(encoding="utf-8").splitlines(keepends=True) if line.endswith("\n")
    ]


class _RowReader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.rows: list[Row] = []
        self._attributes: dict[str, str | None] | None = None
        self._text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr" and "data-outcome" in dict(attrs):
            self._attributes, self._text = dict(attrs), []

    def handle_data(self, data: str) -> None:
        if self._attributes is not None:
            self._text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag != "tr" or self._attributes is None:
            return
        percent, sampled = self._attributes.get("data-percent"), self._attributes.get("data-sampled-at")
        self.rows.append(
            Row(
                text=" ".join(" ".join(self._text).split()),
                percent=float(percent) if percent else None,
                sampled_at=datetime.fromisoformat(sampled).timestamp() if sampled else None,
                outcome=self._attributes["data-outcome"] or "",
            )
        )
        self._attributes = None


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2], sys.stdin.readline().strip(), sys.argv[3], Path(sys.argv[4]))
