"""Refuses WebSockets opened by other sites: browsers send cookies along, and no CSRF token protects a socket."""

from __future__ import annotations

from typing import Any
from urllib.parse import SplitResult, urlsplit

from channels.security.websocket import WebsocketDenier
from django.conf import settings
from django.http.request import split_domain_port, validate_host


class SameOrigin:
    """Lets a socket through if its Origin names the host it was opened on, and that host is one of ours.

    Compares host and port, not the scheme: behind a proxy that ends TLS this process does not know it. Origins in
    ``CSRF_TRUSTED_ORIGINS`` are let through as for forms. Everybody else gets HTTP 403 before anything is read.
    """

    def __init__(self, application: Any) -> None:
        self._application = application
        self._refuse = WebsocketDenier.as_asgi()

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        host = headers.get(b"host", b"").decode("latin-1")
        application = self._application if is_ours(origin, host) else self._refuse
        await application(scope, receive, send)


def is_ours(origin: str, host: str) -> bool:
    """Whether a page of this origin may open a socket on this host; both as the request's headers say them."""
    name, _ = split_domain_port(host)
    if not name or not validate_host(name, settings.ALLOWED_HOSTS):
        return False
    if origin in settings.CSRF_TRUSTED_ORIGINS:
        return True
    from_site = _split(origin)
    if from_site is None or from_site.scheme not in ("http", "https"):
        return False
    here = _split(f"{from_site.scheme}://{host}")
    return here is not None and _place(from_site) == _place(here)


def _split(url: str) -> SplitResult | None:
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  raises for a port that is none
    except ValueError:
        return None
    return parts if parts.hostname else None


def _place(parts: SplitResult) -> tuple[str | None, int]:
    return parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)
