"""Django's error pages, and the 503 page that is shown while the database is away.

The error pages ask the database who is signed in and with which role. An ASGI application renders them in another
thread than the view (``convert_exception_to_response`` with ``thread_sensitive=False``), and the cleanup at the end of
a request reaches only the view's thread. So these pages return their connection themselves; otherwise a handful of
missing pages would empty the pool. The 503 page keeps what was typed in a form, and does not use the database.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus

import structlog
from django.core.exceptions import SuspiciousOperation
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.shortcuts import render
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme
from django.views import defaults

from kafkadash.core.database.availability import is_away
from kafkadash.core.errors import UserError

log = structlog.get_logger(__name__)

RETRY_S = 3
"""So often a page looks whether the database answers again, in seconds."""
_SECRET_WORDS = ("password", "secret", "key_pem")
_WRITTEN_BY_US = "csrfmiddlewaretoken"


@dataclass(frozen=True, slots=True)
class SubmittedForm:
    """Fields of a form, as far as they may be shown again. ``whole``: sending these fields again is the same form.

    A password is not written into a page, and a file cannot be.
    """

    fields: tuple[tuple[str, str], ...]
    whole: bool

    @property
    def typed(self) -> list[tuple[str, str]]:
        """Without what no person wrote."""
        return [
            (name.replace("_", " "), value) for name, value in self.fields if name != _WRITTEN_BY_US and value.strip()
        ]


def database_away(request: HttpRequest) -> HttpResponse:
    """503. For a part of a page (htmx) it is a part that asks again by itself; a form is kept, to be sent again."""
    log.warning("request.database_away", method=request.method, path=request.path)
    part = request.headers.get("HX-Request") == "true"
    sent = None if request.method in ("GET", "HEAD") else _read_sent(request)
    context = {"address": request.get_full_path(), "sent": sent, "retry_s": RETRY_S, "page": _page_of(request)}
    template = "_database_away_part.html" if part else "503.html"
    response = HttpResponse(render_to_string(template, context), status=503, headers={"Retry-After": str(RETRY_S)})
    add_never_cache_headers(response)
    return response


def _read_sent(request: HttpRequest) -> SubmittedForm:
    try:
        posted, files = request.POST, request.FILES
    except (SuspiciousOperation, MultiPartParserError, OSError):  # too large, broken, or cut off
        return SubmittedForm((), whole=False)
    fields = tuple((name, str(value)) for name, values in posted.lists() for value in values)
    shown = tuple((name, value) for name, value in fields if not any(word in name for word in _SECRET_WORDS))
    return SubmittedForm(shown, whole=bool(fields) and shown == fields and not files)


def _page_of(request: HttpRequest) -> str:
    """The address of the page that asked for a part of itself."""
    address = request.headers.get("HX-Current-URL", "")
    return address if url_has_allowed_host_and_scheme(address, {request.get_host()}) else "/"


def one_line_per_request() -> None:
    """Django and django-structlog would log two stack traces for each request that finds the database away."""
    for name in ("django.request", "django_structlog.middlewares.request"):
        logging.getLogger(name).addFilter(_not_an_outage)


def _not_an_outage(_: logging.LogRecord) -> bool:
    return not is_away(sys.exc_info()[1])


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    with _connection_given_back():
        return defaults.bad_request(request, exception)


def permission_denied(request: HttpRequest, exception: Exception) -> HttpResponse:
    with _connection_given_back():
        return render(request, "403.html", {"error": _select_user_error(exception)}, status=HTTPStatus.FORBIDDEN)


def page_not_found(request: HttpRequest, exception: Exception) -> HttpResponse:
    with _connection_given_back():
        return render(request, "404.html", {"error": _select_user_error(exception)}, status=HTTPStatus.NOT_FOUND)


def server_error(request: HttpRequest) -> HttpResponse:
    """Called while the error is handled, as Django does it. It asks nobody who is signed in."""
    unavailable = is_away(sys.exc_info()[1])
    with _connection_given_back():
        return database_away(request) if unavailable else defaults.server_error(request)


def _select_user_error(exception: Exception) -> UserError | None:
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
