"""Process that sends one message with Apprise, or checks a URL for it. It reads a request and prints an answer.

Apprise sends with requests, which follows what a name server says, reads answers of any size, and takes proxies from
the environment; a try has no end either. In this process its requests go out over ``guarded_http``, and whoever started
the process ends it when it takes too long.
"""

from __future__ import annotations

import io
import ipaddress
import json
import re
import sys
from collections.abc import Mapping, Sequence
from contextlib import redirect_stdout
from typing import Any

import apprise
import requests
from requests.adapters import BaseAdapter

from kafkadash.core.messages import coded
from kafkadash.notifications import guarded_http
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.guarded_http import DeliveryFailed, Network, ReceiverAnswer

_PASSED_ON = ("content-type", "authorization")


class GuardedAdapter(BaseAdapter):
    """Sends requests to allowed networks, and keeps how the last one ended."""

    def __init__(self, networks: Sequence[Network], seconds: float, secrets: Sequence[str]) -> None:
        super().__init__()
        self.outcome: ReceiverAnswer | DeliveryFailed = DeliveryFailed(coded(DeliveryErrorCode.FAULT))
        self._networks = networks
        self._seconds = seconds
        self._secrets = secrets

    def send(self, request: requests.PreparedRequest, *_args: Any, **_options: Any) -> requests.Response:
        """Send it. Raises requests.ConnectionError where the service did not accept it."""
        body = request.body or b""
        assert isinstance(body, (bytes, str))  # no service is sent a file
        headers = {name: str(value) for name, value in request.headers.items() if name.lower() in _PASSED_ON}
        try:
            answer = guarded_http.post(
                str(request.url),
                body.encode() if isinstance(body, str) else body,
                headers,
                networks=self._networks,
                seconds=self._seconds,
                secrets=self._secrets,
            )
        except DeliveryFailed as failed:
            self.outcome = failed
            raise requests.ConnectionError from failed
        self.outcome = answer
        response = requests.Response()
        response.status_code, response.url, response.request = answer.status or 0, str(request.url), request
        response.raw = io.BytesIO(b"{}")
        return response

    def close(self) -> None:
        """Nothing stays open between requests."""


def check_url(url: str) -> Mapping[str, Any]:
    """Return how many requests a message to this URL takes; 0 where Apprise cannot use it."""
    service = apprise.Apprise.instantiate(url)
    return {"requests": len(service) if service else 0}


def send_message(
    url: str, title: str, body: str, body_format: str | None, networks: Sequence[str], seconds: float
) -> Mapping[str, Any]:
    """Send a message, and return how that ended: status and answer, or what ``DeliveryFailed`` has."""
    secrets = [part for part in re.split(r"[/?&=;@:]", url) if len(part) >= guarded_http.SHORTEST_HIDDEN]
    adapter = GuardedAdapter([ipaddress.ip_network(text) for text in networks], seconds, secrets)

    class GuardedSession(requests.Session):
        def __init__(self) -> None:
            super().__init__()
            self.trust_env = False
            self.adapters.clear()
            self.mount("https://", adapter)

    requests.sessions.Session = GuardedSession  # type: ignore[misc]  # plugins call requests.post
    service = apprise.Apprise.instantiate(url)
    if service:
        service.notify(body=body, title=title, body_format=body_format)
    outcome = adapter.outcome
    if isinstance(outcome, ReceiverAnswer):
        return {"status": outcome.status, "answer": outcome.text}
    return {
        "failed": outcome.message.as_json(),
        "final": outcome.final,
        "status": outcome.status,
        "answer": outcome.answer,
        "retry_after_s": outcome.retry_after_s,
    }


def answer_request() -> None:
    """Do what standard input asks for."""
    asked = json.load(sys.stdin)
    with redirect_stdout(sys.stderr):  # a plugin may print
        answer = check_url(**asked) if asked.pop("act") == "check" else send_message(**asked)
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    answer_request()
