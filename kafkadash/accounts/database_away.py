"""What a person gets while the database is away: a sentence, a way on, and what was typed. It asks no database."""

from __future__ import annotations

import logging
import sys
from dataclasses import dataclass

import structlog
from django.core.exceptions import SuspiciousOperation
from django.http import HttpRequest, HttpResponse
from django.http.multipartparser import MultiPartParserError
from django.template.loader import render_to_string
from django.utils.cache import add_never_cache_headers
from django.utils.http import url_has_allowed_host_and_scheme

from kafkadash.database.away import is_away

log = structlog.get_logger(__name__)

RETRY_S = 3
"""So often a page looks whether the database answers again, in seconds."""
_SECRET_WORDS = ("password", "secret", "key_pem")
_WRITTEN_BY_US = "csrfmiddlewaretoken"


@dataclass(frozen=True, slots=True)
class Sent:
    """What a form had in it, as far as it may be shown again. ``whole``: sending these fields again is the same form.

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
    sent = None if request.method in ("GET", "HEAD") else _sent(request)
    context = {"address": request.get_full_path(), "sent": sent, "retry_s": RETRY_S, "page": _page_of(request)}
    template = "_database_away_part.html" if part else "503.html"
    response = HttpResponse(render_to_string(template, context), status=503, headers={"Retry-After": str(RETRY_S)})
    add_never_cache_headers(response)
    return response


def _sent(request: HttpRequest) -> Sent:
    try:
        posted, files = request.POST, request.FILES
    except (SuspiciousOperation, MultiPartParserError, OSError):  # too large, broken, or cut off
        return Sent((), whole=False)
    fields = tuple((name, str(value)) for name, values in posted.lists() for value in values)
    shown = tuple((name, value) for name, value in fields if not any(word in name for word in _SECRET_WORDS))
    return Sent(shown, whole=bool(fields) and shown == fields and not files)


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
