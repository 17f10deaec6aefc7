"""Access to /metrics: with the token, from a named network, or with the right to view all clusters."""

from __future__ import annotations

import hmac
from functools import wraps
from http import HTTPStatus
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Any

from django.conf import settings
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from kafkadash.clusters.access import VIEW, ActionPermission, View, is_allowed, set_permission
from kafkadash.core.messages import message_text
from kafkadash.metrics.errors import MetricsErrorCode

_SCHEME = "bearer"


def scrapers_only(view: View) -> View:
    """Enforce access by token, by network or by the right to view all clusters. Nobody is sent to the sign-in page:
    a scraper would follow there.

    Without ``METRICS_TOKEN`` and ``METRICS_NETWORKS`` there is nothing here for others: 404.
    """

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if has_token(request) or is_in_network(request) or is_allowed(request.user, VIEW, None):
            return view(request, *args, **kwargs)
        if not (settings.METRICS_TOKEN or settings.METRICS_NETWORKS):
            return _refuse(MetricsErrorCode.METRICS_OFF, HTTPStatus.NOT_FOUND)
        response = _refuse(MetricsErrorCode.SCRAPE_REFUSED, HTTPStatus.UNAUTHORIZED)
        response["WWW-Authenticate"] = "Bearer"
        return response

    guarded.login_required = False  # type: ignore[attr-defined]  # read by LoginRequiredMiddleware
    return set_permission(guarded, ActionPermission("public"))


def has_token(request: HttpRequest) -> bool:
    """Compare in constant time. Headers come as Latin-1; the setting may have any character."""
    scheme, _, sent = request.headers.get("Authorization", "").partition(" ")
    if not settings.METRICS_TOKEN or scheme.lower() != _SCHEME:
        return False
    return hmac.compare_digest(sent.strip().encode("latin-1", "replace"), settings.METRICS_TOKEN.encode())


def is_in_network(request: HttpRequest) -> bool:
    """Return whether the address is in ``METRICS_NETWORKS``; behind a proxy of ``TRUSTED_PROXIES``, that of the
    client.
    """
    try:
        address = ip_address(request.META.get("REMOTE_ADDR", ""))
    except ValueError:  # a Unix socket has none
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in ip_network(network) for network in settings.METRICS_NETWORKS)


def _refuse(code: MetricsErrorCode, status: HTTPStatus) -> HttpResponse:
    return HttpResponse(f"{message_text(code)} ({code})\n", status=status, content_type="text/plain; charset=utf-8")
