"""Middleware for requests and responses: a limit on the body, URLs that take POST only, and no caching for users.

Django's ASGI handler spools a whole body to disk before a view or a permission check sees the request. ``BodyLimit``
reads a body that is too large to its end, drops it and then answers, because a browser that is cut off while sending
shows no answer. ``post_only`` redirects GET to the page of the form: a reload, a bookmark, a copied link and the return
from login all use GET for the answer to a form. ``no_store`` marks responses to signed-in users, so that no browser or
proxy keeps cluster data.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, cast

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect
from django.utils.decorators import sync_and_async_middleware
from django.views.decorators.http import require_http_methods

from kafkadash.core.errors import RequestErrorCode
from kafkadash.core.messages import message_text

Scope = dict[str, Any]
Message = Mapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

HEAD_BYTES = 32_768
"""Address and headers may have so many; h11 itself stops only a head that does not come as a whole."""
USUAL = 2_500_000
DROPPED_AT_MOST = 1_000_000_000
"""Bytes that are read to be dropped; whoever sends more is cut off."""
PART_SECONDS = 30.0
"""Time to wait for the next part of a body."""
REST_SECONDS = 30.0
"""Time to read the rest of a refused body that does not name its length. Then it is answered, read or not."""


class BodyLimit:
    """``larger``: (pattern of the path, bytes) of the pages that take more than ``USUAL`` bytes from signed-in people.

    ``is_signed_in`` is asked only about requests that may be larger. Such a page is told by ``?too_large=<bytes>``, to
    which it answers in its own words; elsewhere it is a plain 413. A body that does not name its length (browsers do)
    is cut off where it gets too large, and any body where nothing comes for ``PART_SECONDS``.

    The rest of a refused body is read and dropped before the answer. A body without a length may never end, so its rest
    is read for at most ``REST_SECONDS``.
    """

    def __init__(
        self, app: App, larger: Sequence[tuple[str, int]], is_signed_in: Callable[[Scope], Awaitable[bool]]
    ) -> None:
        self._app = app
        self._larger = [(re.compile(pattern), limit) for pattern, limit in larger]
        self._is_signed_in = is_signed_in

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if _head_bytes(scope) > HEAD_BYTES:
            await _send_refusal(send, scope, None, page=False, status=431)
            return
        limit, page = self._limit(scope["path"])
        length = _length(scope)
        if page and (length is None or length > USUAL) and not await self._is_signed_in(scope):
            limit, page = USUAL, False
        if length is not None and length > limit:
            dropped = await _drop(receive)
            await _send_refusal(send, scope, length if dropped else None, page=page)
            return
        body = _BoundedBody(receive, limit)
        started = False

        async def noting_start(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        await self._app(scope, body.receive, noting_start)
        if body.cut_off and not started:
            if body.more:
                with suppress(TimeoutError):
                    async with asyncio.timeout(REST_SECONDS):
                        await _drop(receive)
            await _send_refusal(send, scope, None, page=False)

    def _limit(self, path: str) -> tuple[int, bool]:
        for pattern, limit in self._larger:
            if pattern.fullmatch(path):
                return limit, True
        return USUAL, False


def _head_bytes(scope: Scope) -> int:
    headers = sum(len(name) + len(value) for name, value in scope["headers"])
    return len(scope["path"]) + len(scope.get("query_string", b"")) + headers


def _length(scope: Mapping[str, Any]) -> int | None:
    given = dict(scope["headers"]).get(b"content-length", b"")
    return int(given) if given.isdigit() else None


class _BoundedBody:
    """A body of at most ``limit`` bytes. The application is told that the browser went away where it is cut off.

    What comes after the body's end, that the browser did go away, may take any time.
    """

    def __init__(self, receive: Receive, limit: int) -> None:
        self._receive, self._left = receive, limit
        self.more, self.cut_off = True, False

    async def receive(self) -> Message:
        if self.cut_off:
            return {"type": "http.disconnect"}
        message = await (_receive_part(self._receive) if self.more else self._receive())
        self._left -= len(message.get("body", b""))
        self.more = message.get("more_body", False)
        if self._left < 0 or message["type"] == _STALLED:
            self.cut_off = True
            return {"type": "http.disconnect"}
        return message


_STALLED = "stalled"


async def _receive_part(receive: Receive) -> Message:
    try:
        async with asyncio.timeout(PART_SECONDS):
            return await receive()
    except TimeoutError:
        return {"type": _STALLED}


async def _drop(receive: Receive) -> bool:
    """Reads to the end of the body; False when it is given up."""
    dropped = 0
    while dropped <= DROPPED_AT_MOST:
        message = await _receive_part(receive)
        if message["type"] != "http.request":
            return False
        dropped += len(message.get("body", b""))
        if not message.get("more_body", False):
            return True
    return False


async def _send_refusal(
    send: Send, scope: Mapping[str, Any], length: int | None, *, page: bool, status: int = 413
) -> None:
    headers = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
    body = f"{message_text(RequestErrorCode.BODY_TOO_LARGE)}\n".encode()
    if page and length is not None:
        status, body = 303, b""
        headers.append((b"location", f"{scope['path']}?too_large={length}".encode()))
    if length is None:
        headers.append((b"connection", b"close"))
    headers.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})


View = Callable[..., HttpResponseBase]


def post_only(page: str, *, same_arguments: bool = True) -> Callable[[View], View]:
    """Declare that only POST reaches the view; GET leads to the page of this name, whose URL has the same arguments
    or none.

    Outermost: the page asks for its own rights, so nobody learns more from the redirect than from the page.
    """

    def decorate(view: View) -> View:
        @wraps(view)
        def posted(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
            if request.method == "POST":
                return view(request, *args, **kwargs)
            return redirect(page, *args, **kwargs) if same_arguments else redirect(page)

        posted.page = page  # type: ignore[attr-defined]  # for tests that walk all URLs
        return require_http_methods(["GET", "HEAD", "POST"])(posted)

    return decorate


Sync = Callable[[HttpRequest], HttpResponseBase]
Async = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def no_store(get_response: Sync | Async) -> Sync | Async:
    """Answer requests that carry a session with ``Cache-Control: no-store``; whether it is valid is not asked here."""
    if iscoroutinefunction(get_response):
        answer_later = cast("Async", get_response)

        async def answered_later(request: HttpRequest) -> HttpResponseBase:
            return _forbid_caching(request, await answer_later(request))

        return answered_later
    answer = cast("Sync", get_response)

    def answered(request: HttpRequest) -> HttpResponseBase:
        return _forbid_caching(request, answer(request))

    return answered


def _forbid_caching(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if settings.SESSION_COOKIE_NAME in request.COOKIES:
        response["Cache-Control"] = "no-store"
    return response
