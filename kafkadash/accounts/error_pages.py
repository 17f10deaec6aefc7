"""Django's error pages, which here ask the database who is signed in and with which role.

An ASGI application renders them in another thread than the one that runs the view (``convert_exception_to_response``
with ``thread_sensitive=False``). What is done at the end of a request reaches only the latter, so the former would
keep its connection for ever, and a handful of missing pages would empty the pool.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus

from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.views import defaults

from kafkadash.accounts.database_away import database_away
from kafkadash.database.away import is_away
from kafkadash.domain.errors import UserError


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    with _connection_given_back():
        return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    with _connection_given_back():
        return render(request, "403.html", {"error": _told(exception)}, status=HTTPStatus.FORBIDDEN)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    with _connection_given_back():
        return render(request, "404.html", {"error": _told(exception)}, status=HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the error is handled, as Django does it. It asks nobody who is signed in."""
    away = is_away(sys.exc_info()[1])
    with _connection_given_back():
        return database_away(request) if away else defaults.server_error(request)


def _told(exception: Exception) -> UserError | None:
    """Return what a person can be told of it; Django's own exceptions have texts for developers."""
    return exception if isinstance(exception, UserError) else None


@contextmanager
def _connection_given_back() -> Iterator[None]:
    """A connection inside a transaction is left to whoever began it: then this is not a thread of its own."""
    try:
        yield
    finally:
        for connection in connections.all(initialized_only=True):
            if not connection.in_atomic_block:
                connection.close_if_unusable_or_obsolete()
