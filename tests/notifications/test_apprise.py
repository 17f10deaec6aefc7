"""Services that are sent to with Apprise: what they are sent, and what becomes of their answers and of typed URLs."""

from __future__ import annotations

import html
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone
from pytest_django.fixtures import Settings

from kafkadash.core.logs import HIDDEN
from kafkadash.notifications import apprise_services
from kafkadash.notifications.apprise_services import SERVICES, ServiceRefused, check_service_url
from kafkadash.notifications.delivery import deliver
from kafkadash.notifications.errors import DeliveryErrorCode as Code
from kafkadash.notifications.models import MessageState, NotificationMessage, NotificationTarget, TargetKind
from kafkadash.notifications.payloads import EventContent, MessageContent, TextStyle, write_text
from kafkadash.notifications.routing import route_events
from tests.contract.certificates import new_authority, server_context
from tests.factories import NOW
from tests.notifications.conftest import MakeTarget, Tell
from tests.notifications.receivers import LocalReceiver, local_receiver
from tests.raised_codes import raises_code

KEY = "JHMHI8qBe7bk2ZwO5U711o3dVjs"
URLS = {
    "discord": ("discord.com", f"discord://4174216298/{KEY}"),
    "gchat": ("chat.googleapis.com", f"gchat://workspace/key1234567/{KEY}"),
    "pover": ("api.pushover.net", f"pover://{'u' * 30}@{'t' * 30}?priority=high"),
    "tgram": ("api.telegram.org", "tgram://123456789:ABCdefghij_klmnopqrstuvwxyz012345678/12315544"),
    "webex": ("api.ciscospark.com", f"webex://{'a' * 80}"),
    "wxteams": ("api.ciscospark.com", f"wxteams://{'a' * 80}"),
    "zulip": ("org.zulipchat.com", f"zulip://botname@org/{'a' * 32}/channel"),
}
LINK = "https://kafkadash.test/clusters/orders/findings/f-1/"
HOSTILE = "a ```@everyone <@1> <users/all> <b>x</b> [x](http://evil.test) http://evil.test"

Serve = Callable[[str], Any]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, settings: Settings) -> Serve:
    """Put a receiver in the place of the service with this host name."""

    @contextmanager
    def served(host: str) -> Iterator[LocalReceiver]:
        authority = new_authority(host)
        trusted = tmp_path / "authorities.pem"
        trusted.write_text(authority.pem)
        monkeypatch.setenv("SSL_CERT_FILE", str(trusted))
        settings.NOTIFICATION_NETWORKS = ["127.0.0.0/8"]
        settings.PUBLIC_URL = "https://kafkadash.test"
        with local_receiver(server_context(authority)) as receiver:
            command = (sys.executable, "-m", "tests.notifications.redirected_apprise", str(receiver.port), host)
            monkeypatch.setattr(apprise_services, "COMMAND", command)
            yield receiver

    return served


def send(target: NotificationTarget) -> NotificationMessage:
    route_events(timezone.now())
    NotificationTarget.objects.update(next_at=NOW)
    deliver(target.pk)
    return target.messages.latest("pk")


def sent_text(document: dict[str, Any]) -> str:
    """Return the body, by the name that the service has for it."""
    [name] = {"content", "text", "message", "markdown"} & document.keys()
    return str(document[name])


@pytest.mark.django_db
class TestServices:
    @pytest.mark.parametrize("scheme", URLS)
    def test_are_sent_a_finding_with_its_links(
        self, make_target: MakeTarget, tell: Tell, serve: Serve, scheme: str
    ) -> None:
        host, url = URLS[scheme]
        target = make_target(url, TargetKind.APPRISE)
        tell(cluster="orders")
        with serve(host) as receiver:
            message = send(target)
        assert (message.state, message.status, message.answer) == (MessageState.SENT, 200, "ok")
        [(headers, document)] = receiver.requests
        text = sent_text(document)
        assert headers["host"] == host
        assert "[CRITICAL] orders: 3 partitions" in document.get("title", "") + text
        assert LINK in text.splitlines()[-1]
        assert len(text) <= SERVICES[scheme].style.most

    def test_all_have_a_fixed_host_and_no_proxy(
        self, make_target: MakeTarget, tell: Tell, serve: Serve, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTPS_PROXY", "http://127.0.0.1:9")
        host, url = URLS["discord"]
        target = make_target(url, TargetKind.APPRISE)
        tell()
        with serve(host):
            assert send(target).state == MessageState.SENT
        assert URLS.keys() == SERVICES.keys()

    @pytest.mark.parametrize(
        ("status", "state"), [(400, MessageState.REFUSED), (429, MessageState.WAITING), (500, MessageState.WAITING)]
    )
    def test_that_refuse_a_message__are_told_apart_by_status(
        self, make_target: MakeTarget, tell: Tell, serve: Serve, status: int, state: MessageState
    ) -> None:
        host, url = URLS["discord"]
        target = make_target(url, TargetKind.APPRISE)
        tell()
        with serve(host) as receiver:
            receiver.answers.append((status, f"no {KEY}".encode(), {"retry-after": "120"}))
            message = send(target)
        assert (message.state, message.status, message.answer) == (state, status, f"no {HIDDEN}")
        assert (message.error_code, len(receiver.requests)) == (Code.STATUS, 1)
        target.refresh_from_db()
        waits = (target.next_at - message.tried_at).total_seconds() if message.tried_at else 0
        assert round(waits) == (0 if state == MessageState.REFUSED else 120)

    def test_that_redirect_or_cannot_be_reached__are_failed_tries(
        self, make_target: MakeTarget, tell: Tell, serve: Serve, settings: Settings
    ) -> None:
        host, url = URLS["discord"]
        target = make_target(url, TargetKind.APPRISE)
        tell()
        with serve(host) as receiver:
            receiver.answers.append((302, b"", {"location": "https://169.254.169.254/"}))
            assert send(target).error_code == Code.REDIRECTS
            settings.NOTIFICATION_NETWORKS = []
            assert send(target).error_code == Code.ADDRESS_FORBIDDEN
        settings.NOTIFICATION_NETWORKS = ["127.0.0.0/8"]
        assert send(target).error_code == Code.UNREACHABLE
        target.address = f"zulip://bot@org.invalid/{'a' * 32}/channel"
        target.save(update_fields=["address"])
        with serve("another.test"):
            assert send(target).error_code == Code.HOST_UNKNOWN
        assert target.messages.get().tries == 4

    @pytest.mark.parametrize(
        ("program", "code"),
        [
            ("import threading; threading.Event().wait()", Code.SLOW),
            ("raise SystemExit(1)", Code.FAULT),
            ("print('no JSON')", Code.FAULT),
        ],
        ids=["hangs", "fails", "prints"],
    )
    def test_whose_process_does_not_answer__fail_in_time(
        self, make_target: MakeTarget, tell: Tell, monkeypatch: pytest.MonkeyPatch, program: str, code: Code
    ) -> None:
        monkeypatch.setattr(apprise_services, "COMMAND", (sys.executable, "-c", program))
        monkeypatch.setattr(apprise_services, "PROCESS_SECONDS", 2)
        target = make_target(URLS["discord"][1], TargetKind.APPRISE)
        tell()
        message = send(target)
        assert (message.state, message.error_code) == (MessageState.WAITING, code)


class TestTypedUrls:
    @pytest.mark.parametrize("scheme", URLS)
    def test_of_each_service_are_taken(self, scheme: str) -> None:
        assert check_service_url(URLS[scheme][1]) == SERVICES[scheme].name

    @pytest.mark.parametrize(
        ("url", "code"),
        [
            ("", Code.SERVICE_UNKNOWN),
            ("https://discord.com/api/webhooks/1/x", Code.SERVICE_UNKNOWN),
            ("json://127.0.0.1/", Code.SERVICE_UNKNOWN),
            ("syslog://", Code.SERVICE_UNKNOWN),
            ("discord://[", Code.SERVICE_UNKNOWN),
            ("discord://only-an-id", Code.SERVICE_URL_WRONG),
            (f"discord://4174216298/{KEY}#part", Code.SERVICE_URL_WRONG),
            (f"discord://4174216298/{KEY} x", Code.SERVICE_URL_WRONG),
            (f"discord://4174216298/{KEY}?thread=1;template=/etc/passwd", Code.SERVICE_URL_WRONG),
            (f"discord://4174216298/{KEY}?template=/etc/passwd", Code.SERVICE_OPTION),
            (f"discord://4174216298/{KEY}?%74emplate=/etc/passwd", Code.SERVICE_OPTION),
            (f"discord://4174216298/{KEY}?verify=no", Code.SERVICE_OPTION),
            (f"discord://4174216298/{KEY}?+x=1", Code.SERVICE_OPTION),
            ("tgram://123456789:ABCdefghij_klmnopqrstuvwxyz012345678/1/2", Code.SERVICE_SEVERAL),
            (f"discord://4174216298/{'x' * 3000}", Code.SERVICE_URL_WRONG),
        ],
    )
    def test_that_cannot_be_used__are_refused(self, url: str, code: Code) -> None:
        with raises_code(code, ServiceRefused):
            check_service_url(url)

    @pytest.mark.parametrize("program", ["import threading; threading.Event().wait()", "raise SystemExit(1)"])
    def test_that_cannot_be_checked__are_refused(self, monkeypatch: pytest.MonkeyPatch, program: str) -> None:
        monkeypatch.setattr(apprise_services, "COMMAND", (sys.executable, "-c", program))
        monkeypatch.setattr(apprise_services, "PROCESS_SECONDS", 2)
        with raises_code(Code.SERVICE_UNCHECKED, ServiceRefused):
            check_service_url(URLS["discord"][1])


def content_of(name: str, count: int) -> MessageContent:
    """Return a message about findings of something with this name."""
    events = [
        EventContent(
            event_id=f"e-{number}",
            cluster="orders",
            subject="finding",
            subject_id=f"f-{number}",
            step="opened",
            kind="consumer-lag",
            severity="critical",
            code="group-stalls",
            title=name,
            text=f"{name} does not move.",
            url=LINK,
            runbook_url="",
            occurred_at=NOW,
        )
        for number in range(count)
    ]
    return MessageContent("m-1", events, digest=count > 1, summary=f"{count} events", url="https://kafkadash.test/")


class TestTexts:
    def test_names_stay_between_the_marks_of_a_code_block(self) -> None:
        _, text = write_text(content_of(HOSTILE, 1), TextStyle.fenced(2_000))
        begin, block, end = text.split("```")
        assert (begin, end) == ("", f"\nOpen in kafkadash: {LINK}")
        assert "<" not in block
        assert "@everyone" in block

    def test_names_are_no_html(self) -> None:
        _, text = write_text(content_of(HOSTILE, 1), TextStyle.preformatted(4_096))
        assert html.escape(HOSTILE) in text
        assert (text.count("<"), text.index("<pre>")) == (2, 0)

    def test_addresses_in_a_plain_text_are_ours_alone(self) -> None:
        title, text = write_text(content_of(HOSTILE, 1), TextStyle.plain(1_024, title=20))
        assert title == "[CRITICAL] orders: a"
        assert [line for line in text.splitlines() if "://" in line] == [f"Open in kafkadash: {LINK}"]

    def test_a_digest_is_cut_where_the_service_would_refuse_it(self) -> None:
        for style in (TextStyle.fenced(1_000), TextStyle.plain(1_024, title=250)):
            _, text = write_text(content_of("x" * 300, 30), style)
            assert len(text) == style.most
            assert text.endswith(f"…{style.end}\nOpen the status board: https://kafkadash.test/")
