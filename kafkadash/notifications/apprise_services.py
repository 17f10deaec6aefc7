"""Services that are sent to with Apprise: those of a fixed host whose messages need no more than a text.

Apprise runs in a process of its own for each message, see ``apprise_process``.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import structlog
from django.conf import settings

from kafkadash.core.errors import UserError
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.guarded_http import DeliveryFailed, ReceiverAnswer, is_plain_url
from kafkadash.notifications.payloads import MessageContent, TextStyle, write_text

log = structlog.get_logger(__name__)

COMMAND = (sys.executable, "-m", "kafkadash.notifications.apprise_process")
PROCESS_SECONDS = 10.0
"""Longest time of one process, with its start."""
HTTP_SECONDS = 7.0
_INHERITED = ("PATH", "PYTHONPATH", "SSL_CERT_DIR", "SSL_CERT_FILE", "TMPDIR")


@dataclass(frozen=True, slots=True)
class AppriseService:
    """``options``: parts of the query of a URL that people may set. ``added``: those that kafkadash sets."""

    name: str
    style: TextStyle
    options: frozenset[str] = frozenset()
    added: str = ""
    title: str = ""
    body_format: str | None = None


_WEBEX = AppriseService("Webex", TextStyle.fenced(1_000), frozenset({"mode"}))
SERVICES: Mapping[str, AppriseService] = {
    "discord": AppriseService("Discord", TextStyle.fenced(2_000), frozenset({"thread"}), added="avatar=no"),
    "gchat": AppriseService("Google Chat", TextStyle.fenced(4_000), frozenset({"thread"})),
    "pover": AppriseService("Pushover", TextStyle.plain(1_024, title=250), frozenset({"priority", "sound"})),
    "tgram": AppriseService(
        "Telegram", TextStyle.preformatted(4_096), frozenset({"silent", "topic"}), body_format="html"
    ),
    "webex": _WEBEX,
    "wxteams": _WEBEX,
    "zulip": AppriseService("Zulip", TextStyle.fenced(10_000), title="kafkadash"),
}
SERVICE_NAMES = tuple(dict.fromkeys(service.name for service in SERVICES.values()))


class ServiceRefused(UserError):
    """A URL that messages are not sent to."""


def check_service_url(url: str) -> str:
    """Return the name of the service. Raises ServiceRefused.

    Options are passed on by name only: some make Apprise read a file, or send without checking a certificate.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        raise ServiceRefused(DeliveryErrorCode.SERVICE_UNKNOWN, services=SERVICE_NAMES) from None
    service = SERVICES.get(parts.scheme)
    if service is None:
        raise ServiceRefused(DeliveryErrorCode.SERVICE_UNKNOWN, services=SERVICE_NAMES)
    if not is_plain_url(url) or parts.fragment or ";" in parts.query:
        raise ServiceRefused(DeliveryErrorCode.SERVICE_URL_WRONG, service=service.name)
    for option, _ in parse_qsl(parts.query, keep_blank_values=True):
        if option not in service.options:
            raise ServiceRefused(DeliveryErrorCode.SERVICE_OPTION, option=option[:80], service=service.name)
    try:
        needed = int(_run_process({"act": "check", "url": url}, service.name)["requests"])
    except DeliveryFailed:
        raise ServiceRefused(DeliveryErrorCode.SERVICE_UNCHECKED, service=service.name) from None
    if needed == 0:
        raise ServiceRefused(DeliveryErrorCode.SERVICE_URL_WRONG, service=service.name)
    if needed > 1:
        raise ServiceRefused(DeliveryErrorCode.SERVICE_SEVERAL, service=service.name)
    return service.name


def send_to_service(url: str, content: MessageContent) -> ReceiverAnswer:
    """Send the message to the service of this URL. Raises DeliveryFailed, within ``PROCESS_SECONDS``."""
    scheme, _, _ = url.partition("://")
    service = SERVICES[scheme.lower()]
    title, body = write_text(content, service.style)
    if service.added:
        url += f"{'&' if '?' in url else '?'}{service.added}"
    asked = {
        "act": "send",
        "url": url,
        "title": title or service.title,
        "body": body,
        "body_format": service.body_format,
        "networks": settings.NOTIFICATION_NETWORKS,
        "seconds": HTTP_SECONDS,
    }
    ended = _run_process(asked, service.name)
    if "failed" not in ended:
        return ReceiverAnswer(ended["status"], ended["answer"])
    raise DeliveryFailed(
        CodedMessage.from_json(ended["failed"]),
        final=ended["final"],
        status=ended["status"],
        answer=ended["answer"],
        retry_after_s=ended["retry_after_s"],
    )


def _run_process(asked: Mapping[str, Any], service: str) -> dict[str, Any]:
    """Return what the process answers. Raises DeliveryFailed where it takes too long or fails."""
    try:
        done = subprocess.run(
            COMMAND,
            input=json.dumps(asked).encode(),
            capture_output=True,
            timeout=PROCESS_SECONDS,
            check=True,
            cwd=settings.BASE_DIR,
            env={name: os.environ[name] for name in _INHERITED if name in os.environ},
        )
        answer: dict[str, Any] = json.loads(done.stdout)
    except subprocess.TimeoutExpired:
        raise DeliveryFailed(coded(DeliveryErrorCode.SLOW, host=service, seconds=PROCESS_SECONDS)) from None
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        # A URL and its secrets may be in what such a process writes: only the class of its exception is kept.
        written = (getattr(error, "stderr", None) or b"").decode("utf-8", "replace").splitlines()
        raised = written[-1].partition(":")[0] if written else ""
        known = raised if raised.isidentifier() else type(error).__name__
        log.warning("notifications.apprise_failed", service=service, raised=known)
        raise DeliveryFailed(coded(DeliveryErrorCode.FAULT)) from None
    return answer
