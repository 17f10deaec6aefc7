"""Mail over a real socket: what a server is sent, and one that answers each command, but slowly."""

from __future__ import annotations

import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import urlparse

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from kafkadash.findings.product import load_product_facts
from kafkadash.notifications import delivery, mail
from kafkadash.notifications.delivery import queue_test
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.models import MessageState, NotificationMessage, TargetKind
from kafkadash.notifications.routing import route_events
from kafkadash.settings import env
from tests.conftest import new_user
from tests.notifications.conftest import MakeTarget, Tell


@dataclass
class MailServer:
    """Server on this machine that takes every mail. ``hurry``: set, it answers at once, else after ``PAUSE_S``.

    ``trickles``: a command whose answer never ends, or ``GREETING``; a byte comes every ``PAUSE_S``. ``refuses``:
    addresses that it does not know.
    """

    port: int = 0
    mails: list[str] = field(default_factory=list)
    hurry: threading.Event = field(default_factory=threading.Event)
    commands: list[str] = field(default_factory=list)
    trickles: str = ""
    refuses: tuple[str, ...] = ()


PAUSE_S = 0.2


@pytest.fixture
def mail_server(settings: Settings) -> Iterator[MailServer]:
    own = MailServer()

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            self._answer("220 ready", "GREETING")
            while line := self.rfile.readline().decode().strip():
                own.commands.append(line.split()[0].upper())
                if own.commands[-1] == "DATA":
                    self._answer("354 go on", "DATA")
                    rows = list(iter(lambda: self.rfile.readline().decode().rstrip("\r\n"), "."))
                    own.mails.append("\n".join(rows))
                answer = "221 bye" if own.commands[-1] == "QUIT" else "250 ok"
                if own.commands[-1] == "RCPT" and any(f"<{each}>" in line for each in own.refuses):
                    answer = "550 no such user"
                self._answer(answer, own.commands[-1])

        def _answer(self, text: str, command: str) -> None:
            with suppress(OSError):  # the client has hung up
                while command == own.trickles and not own.hurry.wait(PAUSE_S):
                    self.wfile.write(b"2")
                own.hurry.wait(PAUSE_S)
                self.wfile.write(f"{text}\r\n".encode())

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        own.port = server.server_address[1]
        for name, value in env.email_url_config(urlparse(f"smtp://127.0.0.1:{own.port}")).items():
            setattr(settings, name, value)
        settings.EMAIL_FROM = "kafkadash <kafka@example.com>"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield own
        own.hurry.set()
        server.shutdown()
        thread.join()


@pytest.fixture
def send_mail(make_target: MakeTarget, tell: Tell) -> Callable[..., NotificationMessage]:
    def send(address: str = "on-call@example.com") -> NotificationMessage:
        target = make_target(address, TargetKind.EMAIL)
        tell()
        route_events(timezone.now())
        delivery.deliver(target.pk)
        return NotificationMessage.objects.get(target=target)

    return send


def test_mail__to_a_server__arrives_with_its_id(
    mail_server: MailServer, send_mail: Callable[..., NotificationMessage]
) -> None:
    mail_server.hurry.set()
    message = send_mail()
    assert (message.state, message.tries) == (MessageState.SENT, 1)
    [mail] = mail_server.mails
    assert f"Message-ID: <{message.public_id}@example.com>" in mail.splitlines()
    assert mail_server.commands[-1] == "QUIT"


def test_mail__with_an_address_that_is_refused__is_sent_to_the_others_and_the_receiver_fails(
    mail_server: MailServer, send_mail: Callable[..., NotificationMessage]
) -> None:
    mail_server.hurry.set()
    mail_server.refuses = ("gone@example.com",)
    message = send_mail("on-call@example.com, gone@example.com")
    assert (message.state, message.error_code) == (MessageState.SENT, DeliveryErrorCode.ADDRESSES_REFUSED)
    assert message.error_params == {"addresses": ["gone@example.com"], "detail": "no such user"}
    assert len(mail_server.mails) == 1
    assert delivery.claim_due() == [], "the others are not sent it again"
    [fact] = load_product_facts().receivers
    assert (fact.number, fact.error) == (message.target_id, message.error)
    mail_server.refuses = ()
    queue_test(message.target, new_user("alice"), timezone.now())
    assert delivery.deliver(message.target_id) == 1
    assert load_product_facts().receivers == ()


def test_mail__with_no_address_that_the_server_takes__fails_with_its_words(
    mail_server: MailServer, send_mail: Callable[..., NotificationMessage]
) -> None:
    mail_server.hurry.set()
    mail_server.refuses = ("gone@example.com", "left@example.com")
    message = send_mail("gone@example.com, left@example.com")
    assert (message.state, message.error_code) == (MessageState.WAITING, DeliveryErrorCode.MAIL_FAILED)
    assert message.error_params == {"detail": "no such user"}


def test_mail__to_a_server_that_answers_slowly__ends_in_time_and_waits(
    mail_server: MailServer, send_mail: Callable[..., NotificationMessage], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mail, "MAIL_SECONDS", 0.3)
    began = time.monotonic()
    message = send_mail()
    assert (message.state, message.error_code) == (MessageState.WAITING, DeliveryErrorCode.MAIL_FAILED)
    assert time.monotonic() - began < 5
    assert mail_server.mails == []


@pytest.mark.parametrize("part", ["GREETING", "EHLO", "DATA"])
def test_mail__to_a_server_that_trickles_an_answer__ends_in_time_and_waits(
    mail_server: MailServer, send_mail: Callable[..., NotificationMessage], monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    monkeypatch.setattr(mail, "MAIL_SECONDS", 1.0)
    mail_server.trickles = part
    began = time.monotonic()
    message = send_mail()
    assert (message.state, message.error_code) == (MessageState.WAITING, DeliveryErrorCode.MAIL_FAILED)
    assert time.monotonic() - began < 5
    assert mail_server.mails == []
