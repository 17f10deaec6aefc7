"""What people who are not signed in may send and hold open, on the server that people use."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress

import pytest
from pytest_django import Settings
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from kafkadash import asgi, web
from kafkadash.accounts.models import AuditEvent, User
from kafkadash.clusters.models import Cluster
from tests.live.conftest import Socket

Watch = Callable[..., Socket]
pytestmark = pytest.mark.usefixtures("plain_panels")


def answer_to(port: int, *parts: bytes) -> bytes:
    """What comes back until the server closes; empty where it only closes."""
    with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
        answer = b""
        with suppress(ConnectionError):  # it does not wait for the rest
            for part in parts:
                connection.sendall(part)
            while read := connection.recv(65536):
                answer += read
        return answer


def head(method: str, path: str, *headers: str) -> bytes:
    return "\r\n".join([f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", *headers, "", ""]).encode()


def test_headers_of_megabytes__are_refused(port: int) -> None:
    request = head("GET", "/login/", "Connection: close", *[f"X-{n}: {'x' * 60_000}" for n in range(50)])

    assert b" 200 " not in answer_to(port, request)


def test_request__that_stays_half_open__is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.2)

    assert answer_to(port) == b""
    assert answer_to(port, b"GET /login/ HTTP/1.1\r\nHost:") == b""


def test_second_request__that_stays_half_open__is_closed(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(web, "HEAD_SECONDS", 0.2)

    answer = answer_to(port, head("GET", "/livez") + b"GET /login/ HTTP/1.1\r\nHost:")

    assert answer.count(b"HTTP/1.1 ") == 1


def test_headers_by_the_thousands__are_refused(port: int) -> None:
    request = head("GET", "/login/", "Connection: close", *[f"X-{n}: 1" for n in range(5_000)])

    assert answer_to(port, request).startswith(b"HTTP/1.1 431 ")


@pytest.mark.parametrize("how", ["Content-Length: 3000000", "Transfer-Encoding: chunked"])
def test_file__sent_without_a_session__is_not_taken(port: int, cluster: Cluster, how: str) -> None:
    chunk = b"x" * 1_000_000
    body = [chunk] * 3 if "Length" in how else [b"f4240\r\n" + chunk + b"\r\n"] * 3 + [b"0\r\n\r\n"]

    answer = answer_to(port, head("POST", "/clusters/demo/verify/", how, "Connection: close"), *body)

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_socket__with_an_address_of_45_kilobytes__is_answered(port: int) -> None:
    upgrade = (
        "Connection: Upgrade",
        "Upgrade: websocket",
        "Sec-WebSocket-Version: 13",
        "Sec-WebSocket-Key: " + "A" * 24,
    )

    assert answer_to(port, head("GET", "/live/?key=" + "x" * 45_000, *upgrade)).startswith(b"HTTP/1.1 400 ")


def test_socket__sending_more_than_a_page_would__is_closed(watch: Watch, cluster: Cluster, viewer: User) -> None:
    opened = watch("status:demo", user=viewer)

    opened.connection.send("x" * 5000)

    assert opened.closed_with() == 1009


def test_person__opening_more_sockets_than_pages__is_told_to_wait(
    watch: Watch, cluster: Cluster, viewer: User, settings: Settings
) -> None:
    settings.LIVE_SOCKETS_PER_USER = 2
    for _ in range(2):
        watch("status:demo", user=viewer).until(lambda _: True)

    assert watch("status:demo", user=viewer).closed_with() == 1013


def sign_in_wrongly(port: int) -> str | None:
    """Return the address that the audit names for a wrong password, sent with an address of the sender's own choice."""
    page = answer_to(port, head("GET", "/login/", "Connection: close"))
    token = page.partition(b'name="csrfmiddlewaretoken" value="')[2].partition(b'"')[0].decode()
    cookie = page.partition(b"csrftoken=")[2].partition(b";")[0].decode()
    form = f"csrfmiddlewaretoken={token}&login=vera&password=wrong".encode()
    headers = (
        f"Cookie: csrftoken={cookie}",
        "Content-Type: application/x-www-form-urlencoded",
        f"Content-Length: {len(form)}",
        "X-Forwarded-For: 203.0.113.9",
        "Connection: close",
    )
    assert b"HTTP/1.1 200" in answer_to(port, head("POST", "/login/", *headers) + form)
    return AuditEvent.objects.get(action="user.sign_in_failed").address


def test_address__named_by_the_sender__is_not_believed(port: int) -> None:
    assert sign_in_wrongly(port) == "127.0.0.1"


def test_address__named_by_a_trusted_proxy__is_the_one_that_counts(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    trusting = ProxyHeadersMiddleware(asgi.application.app, trusted_hosts=["127.0.0.0/8"])
    monkeypatch.setattr(asgi.application, "trusted_hosts", trusting.trusted_hosts)

    assert sign_in_wrongly(port) == "203.0.113.9"


def test_connections__are_limited_below_what_a_process_may_open() -> None:
    assert web.web_config().limit_concurrency == web.CONNECTIONS < 1024
