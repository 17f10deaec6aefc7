"""What a browser would do, without one: sign in through the form, read pages, fill in forms, watch live panels.

Run as a process of its own it is the watcher: ``python -m tests.smoke.browser URL NAME OUT KEY…`` with the password on
standard input writes every frame of the panels, with the time it came, as a line of JSON to OUT.
"""

from __future__ import annotations

import contextlib
import http.cookiejar
import json
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from html import unescape
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
    """An element of a panel with `data-outcome` or `data-percent`: all of its attributes, and the text in it."""

    text: str
    data: Mapping[str, str]

    @property
    def outcome(self) -> str:
        return self.data.get("data-outcome", "")

    @property
    def percent(self) -> float | None:
        said = self.data.get("data-percent")
        return float(said) if said else None

    @property
    def sampled_at(self) -> float | None:
        """Seconds since the epoch."""
        said = self.data.get("data-sampled-at")
        return datetime.fromisoformat(said).timestamp() if said else None


@dataclass(frozen=True, slots=True)
class Form:
    """A form of a page with what stands in it; of boxes only those that are checked."""

    action: str
    fields: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Answer:
    """The page one ends on; `path` is its address without the host."""

    status: int
    path: str
    text: str

    @property
    def words(self) -> str:
        """What the page says, without markup."""
        return words_of(self.text)


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

    def headline(self, path: str) -> str:
        """The first heading of a page, which is its answer; empty while the server does not give the page."""
        with contextlib.suppress(urllib.error.URLError, TimeoutError):
            return heading_of(self.get(path))
        return ""

    def sign_in(self, name: str, password: str) -> None:
        """Raises RuntimeError when the form does not let us in."""
        [form] = [form for form in forms_of(self.get("/login/"), "/login/") if "password" in form.fields]
        answer = self.send(form, login=name, password=password)
        if answer.path.startswith("/login"):
            raise RuntimeError(f"{name} was not let in.")

    def form(self, path: str, action: str) -> Form:
        """The form of that page which goes to an address that ends so. Raises RuntimeError when there is none."""
        page = self.get(path)
        for form in forms_of(page, path):
            if form.action.endswith(action):
                return form
        there = ", ".join(form.action for form in forms_of(page, path))
        raise RuntimeError(f"{path} has no form to {action}; it has {there or 'none'}.")

    def send(self, form: Form, **fields: str) -> Answer:
        """As a browser does: what stands in the form, with these fields filled in; also an answer that refuses."""
        body = urllib.parse.urlencode({**form.fields, **fields}).encode()
        headers = {"Referer": f"{self.base}/", "Origin": self.base}
        request = urllib.request.Request(self.base + form.action, body, headers)  # noqa: S310  loopback
        try:
            with self._opener.open(request, timeout=HTTP_SECONDS) as answer:
                return Answer(answer.status, answer.url.removeprefix(self.base), answer.read().decode())
        except urllib.error.HTTPError as refused:
            with refused:
                return Answer(refused.code, refused.url.removeprefix(self.base), refused.read().decode())

    @property
    def cookies(self) -> str:
        return "; ".join(f"{cookie.name}={cookie.value}" for cookie in self._jar)


def rows_of(content: str) -> list[Row]:
    """The elements with an outcome or a percent in a panel's HTML."""
    reader = _RowReader()
    reader.feed(content)
    return reader.rows


def forms_of(page: str, path: str) -> list[Form]:
    """Those that are posted; one without an address of its own goes to `path`."""
    reader = _FormReader(path)
    reader.feed(page)
    return reader.forms


def heading_of(page: str) -> str:
    """The words of its first heading, empty without one."""
    found = re.search(r"<h1[^>]*>(.*?)</h1>", page, re.DOTALL)
    return words_of(found[1]) if found else ""


def words_of(markup: str) -> str:
    """Return its text, without scripts, styles and drawings."""
    body = re.sub(r"<(script|style|svg)\b.*?</\1>", " ", markup, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def watch(base: str, name: str, password: str, keys: Sequence[str], out: Path) -> None:
    browser = Browser(base)
    browser.sign_in(name, password)
    url = f"{base.replace('http', 'ws', 1)}/live/?{urllib.parse.urlencode([('key', key) for key in keys])}"
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
        self._open: list[tuple[str, dict[str, str], list[str]]] = []
        self._depth: list[int] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if "data-outcome" in found or "data-percent" in found:
            self._open.append((tag, found, []))
            self._depth.append(0)
        elif self._open and tag == self._open[-1][0]:
            self._depth[-1] += 1

    def handle_data(self, data: str) -> None:
        for _, _, text in self._open:
            text.append(data)

    def handle_endtag(self, tag: str) -> None:
        if not self._open or tag != self._open[-1][0]:
            return
        if self._depth[-1]:
            self._depth[-1] -= 1
            return
        _, found, text = self._open.pop()
        self._depth.pop()
        self.rows.append(Row(" ".join(" ".join(text).split()), found))


class _FormReader(HTMLParser):
    def __init__(self, path: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self._path = path
        self._fields: dict[str, str] | None = None
        self._area: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = {name: value or "" for name, value in attrs}
        if tag == "form":
            self._fields = {}
            if found.get("method") == "post":
                self.forms.append(Form(found.get("action") or self._path, self._fields))
        elif self._fields is None or "name" not in found:
            return
        elif tag == "textarea":
            self._area = found["name"]
            self._fields[self._area] = ""
        elif tag == "input" and (found.get("type") not in ("checkbox", "radio") or "checked" in found):
            self._fields[found["name"]] = found.get("value", "on")

    def handle_data(self, data: str) -> None:
        if self._area is not None and self._fields is not None:
            self._fields[self._area] += data

    def handle_endtag(self, tag: str) -> None:
        if tag == "textarea":
            self._area = None
        elif tag == "form":
            self._fields = None


if __name__ == "__main__":
    watch(sys.argv[1], sys.argv[2], sys.stdin.readline().strip(), sys.argv[4:], Path(sys.argv[3]))
