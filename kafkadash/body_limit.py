"""How much a request may send, decided before any of it is kept.

Django's ASGI handler spools a whole body to disk before a view, or a check of rights, sees the request. Here a body
that is too large is read and dropped, and answered when it is over: a browser that is cut off in the middle of sending
shows no answer at all.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from kafkadash.domain.refusals import pages

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

USUAL = 2_500_000
DROPPED_AT_MOST = 1_000_000_000
"""Bytes that are read to be dropped; whoever sends more is cut off."""


class BodyLimit:
    """``larger``: (pattern of the path, bytes) of the pages that take more than ``USUAL`` bytes.

    Such a page is told by ``?too_large=<bytes>``, to which it answers in its own words; elsewhere it is a plain 413.
    A body that does not name its length (browsers do) is cut off where it gets too large.
    """

    def __init__(self, app: App, larger: Sequence[tuple[str, int]]) -> None:
        self._app = app
        self._larger = [(re.compile(pattern), limit) for pattern, limit in larger]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        limit, page = self._limit(scope["path"])
        length = _length(scope)
        if length is not None and length > limit:
            dropped = await _drop(receive)
            await _answer(send, scope, length if dropped else None, page=page)
            return
        if length is None:
            receive = _counted(receive, limit)
        await self._app(scope, receive, send)

    def _limit(self, path: str) -> tuple[int, bool]:
        for pattern, limit in self._larger:
            if pattern.fullmatch(path):
                return limit, True
        return USUAL, False


class TooMuch(Exception):
    """A body without a length that goes on and on; the connection is closed."""


def _length(scope: Mapping[str, Any]) -> int | None:
    given = dict(scope["headers"]).get(b"content-length", b"")
    return int(given) if given.isdigit() else None


def _counted(receive: Receive, limit: int) -> Receive:
    received = 0

    async def counting() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        if received > limit:
            raise TooMuch
        return message

    return counting


async def _drop(receive: Receive) -> bool:
    """Reads to the end of the body; False when it is given up."""
    dropped = 0
    while dropped <= DROPPED_AT_MOST:
        message = await receive()
        if message["type"] != "http.request":
            return False
        dropped += len(message.get("body", b""))
        if not message.get("more_body", False):
            return True
    return False


async def _answer(send: Send, scope: Mapping[str, Any], length: int | None, *, page: bool) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    status, body = 413, f"{pages.BODY_TOO_LARGE()}\n".encode()
    if page and length is not None:
        status, body = 303, b""
        headers.append((b"location", f"{scope['path']}?too_large={length}".encode()))
    if length is None:
        headers.append((b"connection", b"close"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
