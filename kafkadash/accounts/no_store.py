"""Answers to signed-in people are kept by no browser and no proxy: a shared disk must not show clusters afterwards."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from inspect import iscoroutinefunction
from typing import cast

from django.conf import settings
from django.http import HttpRequest, HttpResponseBase
from django.utils.decorators import sync_and_async_middleware

Sync = Callable[[HttpRequest], HttpResponseBase]
Async = Callable[[HttpRequest], Awaitable[HttpResponseBase]]


@sync_and_async_middleware
def no_store(get_response: Sync | Async) -> Sync | Async:
    """Answer requests that carry a session with ``Cache-Control: no-store``; whether it is valid is not asked here."""
    if iscoroutinefunction(get_response):
        answer_later = cast("Async", get_response)

        async def answered_later(request: HttpRequest) -> HttpResponseBase:
            return _marked(request, await answer_later(request))

        return answered_later
    answer = cast("Sync", get_response)

    def answered(request: HttpRequest) -> HttpResponseBase:
        return _marked(request, answer(request))

    return answered


def _marked(request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
    if settings.SESSION_COOKIE_NAME in request.COOKIES:
        response["Cache-Control"] = "no-store"
    return response
