"""Which server a request reaches: the address that was checked, with a certificate that is trusted."""

from __future__ import annotations

import ipaddress
import select
import socket
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from kafkadash.notifications.errors import DeliveryErrorCode as Code
from kafkadash.notifications.guarded_http import DeliveryFailed, ReceiverAnswer, post
from tests.contract.certificates import new_authority, self_signed, server_context
from tests.notifications.receivers import local_receiver

ALLOWED, FORBIDDEN = "127.0.0.1", "127.0.0.2"
NAME = "hooks.example.test"


def send(url: str) -> ReceiverAnswer | str:
    """Return the answer, or the code of why there is none."""
    try:
        return post(url, b"{}", {}, networks=[ipaddress.ip_network(f"{ALLOWED}/32")], seconds=5)
    except DeliveryFailed as failed:
        return str(failed.code)


@pytest.fixture
def name_server(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Answers to the next questions for ``NAME``, in turn; the last one is given for good."""
    answers: list[list[str]] = []
    resolve = socket.getaddrinfo

    def answer(host: str, port: int, *args: Any, **kwargs: Any) -> Any:
        if host != NAME:
            return resolve(host, port, *args, **kwargs)
        addresses = answers.pop(0) if len(answers) > 1 else answers[0]
        return [row for each in addresses for row in resolve(each, port, *args, **kwargs)]

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return answers


def test_name__that_leads_elsewhere_when_asked_again__is_connected_where_it_was_checked(
    name_server: list[list[str]],
) -> None:
    with ExitStack() as until_end:
        with local_receiver() as receiver:
            url = f"http://{NAME}:{receiver.port}/"
            other = until_end.enter_context(socket.create_server((FORBIDDEN, receiver.port)))
            name_server += [[ALLOWED], [FORBIDDEN]]
            assert send(url) == ReceiverAnswer(200, "ok")
            assert name_server == [[FORBIDDEN]], "asked once"
            assert send(url) == Code.ADDRESS_FORBIDDEN
            name_server[:] = [[FORBIDDEN, ALLOWED]]
            assert send(url) == ReceiverAnswer(200, "ok")
        assert send(url) == Code.UNREACHABLE, "no other address of the name is tried"
        assert select.select([other], [], [], 0)[0] == [], "nobody has connected"
    assert {headers["host"] for headers, _ in receiver.requests} == {f"{NAME}:{receiver.port}"}


def test_certificate__that_is_not_trusted__ends_the_try_before_the_body(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name_server: list[list[str]]
) -> None:
    trusted, details = tmp_path / "authorities.pem", set()
    monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
    unknown = new_authority(ALLOWED)
    for authority, known in (
        (self_signed(ALLOWED), ""),
        (unknown, new_authority().pem),
        (expired := new_authority(ALLOWED, broker_ended=timedelta(days=1)), expired.pem),
        (other := new_authority("other.test"), other.pem),
    ):
        trusted.write_text(known or new_authority().pem)
        with local_receiver(server_context(authority)) as receiver, pytest.raises(DeliveryFailed) as failed:
            post(receiver.url, b"{}", {}, networks=[ipaddress.ip_network(ALLOWED)], seconds=5)
        assert (failed.value.code, failed.value.final, receiver.requests) == (Code.TLS_FAILED, False, [])
        details.add(failed.value.message.params["detail"])
    assert len(details) == 4, "each says why"
    trusted.write_text(unknown.pem)
    with local_receiver(server_context(unknown)) as receiver:
        assert send(receiver.url) == ReceiverAnswer(200, "ok")
    named = new_authority(NAME)
    trusted.write_text(named.pem)
    name_server[:] = [[ALLOWED]]
    with local_receiver(server_context(named)) as receiver:
        assert send(f"https://{NAME}:{receiver.port}/") == ReceiverAnswer(200, "ok")
        assert send(receiver.url) == Code.TLS_FAILED, "the certificate is of the name, not of the address"
