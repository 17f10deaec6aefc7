"""From a recorded event to a receiver: who is sent what, storms, failures, and what is never connected."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import ipaddress
import time
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.core import mail
from pytest_django.fixtures import Settings

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.notifications import delivery
from kafkadash.notifications.delivery import MOST_FAULTS, claim_due, deliver, forget_old, queue_test
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.guarded_http import is_allowed_address
from kafkadash.notifications.models import (
    EventStep,
    MessageState,
    NotificationEvent,
    NotificationMessage,
    NotificationTarget,
    TargetKind,
)
from kafkadash.notifications.routing import route_events
from kafkadash.notifications.rules import STORM_EVENTS, STORM_WITHIN
from tests.conftest import new_user
from tests.factories import NOW
from tests.notifications.conftest import MakeTarget, Tell
from tests.notifications.receivers import Answering, LocalReceiver

pytestmark = pytest.mark.django_db


def send(target: NotificationTarget) -> int:
    """Route what waits, and send it whatever pause there is."""
    route_events(datetime.now(UTC))
    NotificationTarget.objects.filter(pk=target.pk).update(next_at=NOW)
    return deliver(target.pk)


def newest(target: NotificationTarget) -> NotificationMessage:
    return target.messages.order_by("-pk")[0]


class TestRouting:
    def test_each_receiver_is_sent_an_event_once(self, make_target: MakeTarget, tell: Tell) -> None:
        first, second = make_target(), make_target(severity="critical")
        first.routes.create()
        tell(state="warning")
        assert route_events(NOW) == 1
        assert (first.messages.count(), second.messages.count()) == (1, 0)
        assert route_events(NOW) == 0

    def test_a_closing_goes_to_whoever_was_sent_the_opening(self, make_target: MakeTarget, tell: Tell) -> None:
        told, others = make_target(severity="critical"), make_target(findings=False, changes="all")
        tell("f-1")
        tell("f-2", state="warning")
        route_events(NOW)
        tell("f-1", EventStep.CLOSED)
        tell("f-2", EventStep.CLOSED, state="warning")
        route_events(NOW)
        assert [each.subject_id for each in newest(told).events.all()] == ["f-1"]
        assert (told.messages.count(), others.messages.count()) == (2, 0)

    def test_what_becomes_critical_is_news_to_a_route_of_critical_findings(
        self, make_target: MakeTarget, tell: Tell
    ) -> None:
        target = make_target(severity="critical")
        tell(state="warning")
        tell(step=EventStep.ESCALATED)
        route_events(NOW)
        tell(step=EventStep.CLOSED)
        route_events(NOW)
        steps = [event.step for message in target.messages.order_by("pk") for event in message.events.all()]
        assert steps == [EventStep.ESCALATED, EventStep.CLOSED]

    def test_a_receiver_that_was_told_of_the_end_of_an_acknowledgement__is_sent_the_closing(
        self, make_target: MakeTarget, tell: Tell
    ) -> None:
        tell()
        route_events(NOW)
        target = make_target()
        for step in (EventStep.UNACKNOWLEDGED, EventStep.CLOSED):
            tell(step=step)
            route_events(NOW)
        assert [message.events.get().step for message in target.messages.order_by("pk")] == ["unacknowledged", "closed"]

    def test_closing__for_a_receiver_that_is_disabled__waits_until_it_is_enabled(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        tell("f-1")
        send(target)
        NotificationTarget.objects.update(enabled=False)
        tell("f-1", EventStep.CLOSED)
        tell("f-2")
        assert send(target) == 0
        NotificationTarget.objects.update(enabled=True)
        assert send(target) == 1
        assert [(event["subject_id"], event["step"]) for event in receiver.events] == [
            ("f-1", EventStep.OPENED),
            ("f-1", EventStep.CLOSED),
        ]

    def test_nothing_is_sent_to_a_disabled_receiver(self, make_target: MakeTarget, tell: Tell) -> None:
        target = make_target()
        NotificationTarget.objects.update(enabled=False)
        tell()
        route_events(NOW)
        assert (target.messages.count(), NotificationEvent.objects.filter(routed=False).count()) == (0, 0)


class TestStorms:
    def test_hundreds_in_a_minute_are_two_messages(self, make_target: MakeTarget, tell: Tell) -> None:
        target = make_target()
        for second in range(50):
            for number in range(10):
                tell(f"f-{second}-{number}")
            route_events(NOW + timedelta(seconds=second))
        first, digest = target.messages.order_by("pk")
        assert (first.digest, first.events.count()) == (False, 10)
        assert (digest.digest, digest.state, digest.events.count()) == (True, MessageState.HELD, 490)
        assert digest.send_at == NOW + STORM_WITHIN

    def test_a_storm_that_comes_at_once_is_told_at_once(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        for number in range(STORM_EVENTS + 1):
            tell(f"f-{number}")
        assert send(target) == 1
        [(_, document)] = receiver.requests
        assert (document["digest"], len(document["events"])) == (True, STORM_EVENTS + 1)

    def test_pagerduty__a_digest_is_one_incident_until_the_last_finding_closes(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, settings: Settings
    ) -> None:
        settings.PAGERDUTY_URL = receiver.url
        target = make_target("k" * 32, TargetKind.PAGERDUTY)
        names = [f"f-{number}" for number in range(STORM_EVENTS + 1)]
        for name in names:
            tell(name)
        send(target)
        for name in names[1:]:
            tell(name, EventStep.CLOSED)
        send(target)
        assert len(receiver.requests) == 1
        tell(names[0], EventStep.CLOSED)
        send(target)
        opened, closed = (document for _, document in receiver.requests)
        assert (opened["event_action"], closed["event_action"]) == ("trigger", "resolve")
        assert opened["dedup_key"] == closed["dedup_key"]

    def test_pagerduty__a_finding_stays_in_the_incident_that_it_opened(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, settings: Settings
    ) -> None:
        settings.PAGERDUTY_URL = receiver.url
        target = make_target("k" * 32, TargetKind.PAGERDUTY)
        tell("f-1")
        send(target)
        NotificationMessage.objects.update(send_at=NOW)
        tell("f-1", EventStep.ESCALATED)
        for number in range(STORM_EVENTS + 1):
            tell(f"g-{number}")
        send(target)
        digest = target.messages.get(digest=True).public_id
        tell("g-0", EventStep.ESCALATED)
        tell("f-1", EventStep.CLOSED)
        send(target)
        for number in range(STORM_EVENTS + 1):
            tell(f"g-{number}", EventStep.CLOSED)
        send(target)
        told = [(document["event_action"], document["dedup_key"]) for _, document in receiver.requests]
        steps = [("trigger", "f-1"), ("trigger", digest), ("trigger", digest), ("resolve", "f-1"), ("resolve", digest)]
        assert sorted(told) == sorted([("trigger", "f-1"), *steps])
        assert told[-2:] == steps[-2:]

    def test_pagerduty__findings_that_close_while_their_digest_is_held__are_no_incident(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, settings: Settings
    ) -> None:
        settings.PAGERDUTY_URL = receiver.url
        target = make_target("k" * 32, TargetKind.PAGERDUTY)
        tell("f-0")
        send(target)
        names = [f"f-{number}" for number in range(1, STORM_EVENTS + 2)]
        for step in (EventStep.OPENED, EventStep.CLOSED):
            for name in names:
                tell(name, step)
            send(target)
        digest = target.messages.get(digest=True)
        assert (digest.state, digest.events.count()) == (MessageState.HELD, 2 * len(names))
        NotificationMessage.objects.update(send_at=NOW)
        send(target)
        told = [(document["event_action"], document["dedup_key"]) for _, document in receiver.requests]
        assert told == [("trigger", "f-0"), ("resolve", digest.public_id)]

    def test_closing__of_a_finding_whose_digest_is_held__is_told_with_it_when_the_route_was_removed(
        self, make_target: MakeTarget, tell: Tell
    ) -> None:
        target = make_target("k" * 32, TargetKind.PAGERDUTY)
        target.routes.create()
        tell("f-0")
        route_events(NOW)
        names = [f"f-{number}" for number in range(1, STORM_EVENTS + 2)]
        for step in (EventStep.OPENED, EventStep.CLOSED):
            for name in names:
                tell(name, step)
            route_events(NOW)
            target.routes.order_by("pk")[0].delete()
        digest = target.messages.get(digest=True)
        assert (digest.state, digest.events.count()) == (MessageState.HELD, 2 * len(names))
        assert target.messages.count() == 2


class TestFormats:
    def test_webhooks_are_signed(self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver) -> None:
        target = make_target(receiver.url)
        tell()
        assert send(target) == 1
        headers, document = receiver.requests[0]
        signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + receiver.bodies[0]
        digest = base64.b64encode(hmac.new(b"key", signed, hashlib.sha256).digest()).decode()
        assert headers["webhook-signature"] == f"v1,{digest}"
        assert headers["webhook-id"] == document["id"] == newest(target).public_id
        [event] = document["events"]
        assert event["url"] == "https://kafkadash.test/clusters/orders/findings/f-1/"
        assert (event["code"], event["severity"], event["step"]) == ("partitions-without-leader", "critical", "opened")
        message = newest(target)
        assert (message.state, message.status, message.answer) == (MessageState.SENT, 200, "ok")

    def test_pagerduty_has_an_incident_for_each_finding(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, settings: Settings
    ) -> None:
        settings.PAGERDUTY_URL = receiver.url
        target = make_target("k" * 32, TargetKind.PAGERDUTY)
        tell("f-1")
        tell("f-2")
        send(target)
        tell("f-1", EventStep.CLOSED)
        send(target)
        told = [(document["event_action"], document["dedup_key"]) for _, document in receiver.requests]
        assert told == [("trigger", "f-1"), ("trigger", "f-2"), ("resolve", "f-1")]
        assert receiver.requests[0][1]["payload"]["severity"] == "critical"

    def test_pagerduty__opening_and_closing_of_one_second__are_sent_in_order(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, settings: Settings
    ) -> None:
        settings.PAGERDUTY_URL = receiver.url
        target = make_target("k" * 32, TargetKind.PAGERDUTY)
        tell()
        tell(step=EventStep.CLOSED)
        assert send(target) == 2
        told = [(document["event_action"], document["dedup_key"]) for _, document in receiver.requests]
        assert told == [("trigger", "f-1"), ("resolve", "f-1")]

    def test_mail(self, make_target: MakeTarget, tell: Tell, settings: Settings) -> None:
        settings.EMAIL_FROM = "kafkadash <kafka@example.com>"
        target = make_target("a@example.com, b@example.com", TargetKind.EMAIL)
        tell(cluster="orders\r\nBcc: c@example.com")
        assert send(target) == 1
        [sent] = mail.outbox
        assert sent.to == ["a@example.com", "b@example.com"]
        assert "\n" not in sent.subject
        assert sent.extra_headers["Message-ID"] == f"<{newest(target).public_id}@example.com>"


class TestFailures:
    @pytest.mark.parametrize(
        ("answer", "code", "state"),
        [
            ((500, b"down", {}), DeliveryErrorCode.STATUS, MessageState.WAITING),
            ((0, b"", {}), DeliveryErrorCode.ANSWER_UNUSABLE, MessageState.WAITING),
            ((302, b"", {"location": "http://169.254.169.254/"}), DeliveryErrorCode.REDIRECTS, MessageState.WAITING),
            ((400, b"no", {}), DeliveryErrorCode.STATUS, MessageState.REFUSED),
        ],
    )
    def test_a_failed_try_is_kept_with_its_reason(
        self,
        make_target: MakeTarget,
        tell: Tell,
        receiver: LocalReceiver,
        answer: Any,
        code: DeliveryErrorCode,
        state: MessageState,
    ) -> None:
        target = make_target(receiver.url)
        receiver.answers.append(answer)
        tell()
        assert send(target) == 0
        message = newest(target)
        assert (message.error_code, message.state, message.tries) == (code, state, 1)
        target.refresh_from_db()
        assert target.failing_since is not None
        assert len(receiver.requests) == 1, "no redirect was followed"

    def test_it_is_sent_again_with_its_id_and_in_order(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        receiver.answers += [(503, b"", {"retry-after": "120"})]
        tell("f-1")
        send(target)
        target.refresh_from_db()
        assert 100 < (target.next_at - newest(target).tried_at).total_seconds() <= 121  # type: ignore[operator]
        assert (claim_due(), deliver(target.pk)) == ([], 0), "not before the pause is over"
        tell("f-2")
        assert send(target) == 2
        assert [event["subject_id"] for event in receiver.events] == ["f-1", "f-1", "f-2"]
        assert receiver.requests[0][1]["id"] == receiver.requests[1][1]["id"]
        target.refresh_from_db()
        assert (target.failing_since, target.failures) == (None, 0)

    def test_failure__after_a_success_of_the_same_turn__is_tried_again_after_a_second(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        NotificationTarget.objects.update(failures=50)
        receiver.answers += [(200, b"ok", {}), (503, b"", {})]
        tell("f-1")
        route_events(datetime.now(UTC))
        tell("f-2")
        assert send(target) == 1
        target.refresh_from_db()
        assert (target.next_at - newest(target).tried_at).total_seconds() <= 1  # type: ignore[operator]
        assert target.failures == 1

    def test_a_fault_of_ours_is_a_failed_try(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery, "write_webhook", mock.Mock(side_effect=ValueError))
        target = make_target(receiver.url)
        tell()
        assert send(target) == 0
        assert (newest(target).error_code, newest(target).tries) == (DeliveryErrorCode.FAULT, 1)
        assert claim_due() == [], "a pause comes first"

    def test_message_with_a_fault_of_ours__is_given_up_and_the_next_one_is_sent(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        NotificationTarget.objects.update(failures=50)
        tell("f-1")
        route_events(datetime.now(UTC))
        tell("f-2")
        with mock.patch.object(delivery, "write_webhook", side_effect=ValueError):
            assert [send(target) for _ in range(MOST_FAULTS)] == [0] * MOST_FAULTS
            target.refresh_from_db()
            first, second = target.messages.order_by("pk")
            assert (first.state, first.error_code) == (MessageState.GIVEN_UP, DeliveryErrorCode.FAULT)
            assert (second.state, second.tries) == (MessageState.WAITING, 0)
            assert claim_due() == [target.pk], "no pause after that"
            deliver(target.pk)
            second.refresh_from_db()
            target.refresh_from_db()
            assert second.tried_at is not None
            assert (target.next_at - second.tried_at).total_seconds() < 2
        assert send(target) == 1
        assert [event["subject_id"] for event in receiver.events] == ["f-2"]

    def test_a_fault_of_ours_after_failures_of_the_receiver__is_tried_again(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        receiver.answering = Answering.ERROR
        tell()
        for _ in range(MOST_FAULTS):
            send(target)
        with mock.patch.object(delivery, "write_webhook", side_effect=ValueError):
            send(target)
        assert newest(target).state == MessageState.WAITING

    def test_message_about_a_removed_cluster__is_given_up_and_the_later_ones_are_sent(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        receiver.answers.append((503, b"", {}))
        tell("f-1")
        assert send(target) == 0
        tell("f-2")
        tell("f-3", cluster="payments")
        route_events(datetime.now(UTC))
        Cluster.objects.get(slug="orders").delete()
        empty, partly_gone = target.messages.order_by("pk")
        assert send(target) == 1
        empty.refresh_from_db()
        assert (empty.state, empty.tries, empty.error_code) == (MessageState.GIVEN_UP, 1, DeliveryErrorCode.STATUS)
        assert empty.ended_at is not None
        assert newest(target).pk == partly_gone.pk
        assert [event["subject_id"] for event in receiver.events] == ["f-1", "f-3"]

    def test_refused_message__counts_as_failure_of_the_receiver_until_a_test_is_accepted(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        receiver.answers.append((400, b"no", {}))
        tell()
        send(target)
        assert NotificationTarget.objects.get().failing_since is not None
        queue_test(target, new_user("alice"), datetime.now(UTC))
        assert send(target) == 1
        target.refresh_from_db()
        assert (target.failing_since, target.failures) == (None, 0)

    def test_a_receiver_that_hangs_takes_no_longer_than_the_deadline(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(delivery, "SECONDS", 0.3)
        receiver.answering = Answering.HANG
        target = make_target(receiver.url)
        tell()
        began = time.monotonic()
        assert send(target) == 0
        assert time.monotonic() - began < 2
        assert newest(target).error_code == DeliveryErrorCode.SLOW

    def test_a_huge_answer_is_cut(self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver) -> None:
        target = make_target(receiver.url)
        receiver.answers.append((200, b"x" * 10_000_000, {}))
        tell()
        assert send(target) == 1
        assert len(newest(target).answer) == 200

    def test_answer__that_is_compressed__is_accepted_without_its_text(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
    ) -> None:
        target = make_target(receiver.url)
        receiver.answers.append((200, gzip.compress(b"x" * 10_000), {"content-encoding": "gzip"}))
        tell()
        assert send(target) == 1
        assert (newest(target).state, newest(target).answer) == (MessageState.SENT, "")
        assert receiver.requests[0][0]["accept-encoding"] == "identity"

    def test_after_a_day_it_is_given_up(self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver) -> None:
        target = make_target(receiver.url)
        receiver.answers.append((500, b"", {}))
        tell()
        route_events(NOW)
        NotificationMessage.objects.update(created_at=NOW - timedelta(days=500))
        NotificationTarget.objects.update(next_at=NOW)
        deliver(target.pk)
        assert newest(target).state == MessageState.GIVEN_UP
        tell("f-2")
        assert send(target) == 1


class TestAddresses:
    @pytest.mark.parametrize(
        ("address", "allowed"),
        [
            ("8.8.8.8", True),
            ("2606:4700::1111", True),
            ("127.0.0.1", False),
            ("10.1.2.3", False),
            ("169.254.169.254", False),
            ("100.64.0.1", False),
            ("0.0.0.1", False),
            ("224.0.0.1", False),
            ("::1", False),
            ("fe80::1", False),
            ("::ffff:127.0.0.1", False),
            ("64:ff9b::a9fe:a9fe", False),
            ("64:ff9b::808:808", True),
            ("64:ff9b:1::a9fe:a9fe", False),
            ("fec0::1", False),
            ("fec0:20::9", True),
            ("::7f00:1", False),
            ("2002:7f00:1::", False),
            ("10.20.0.9", True),
            ("::ffff:10.20.0.9", True),
        ],
    )
    def test_public_ones_and_those_of_allowed_networks(self, address: str, allowed: bool) -> None:
        networks = [ipaddress.ip_network("10.20.0.0/16"), ipaddress.ip_network("fec0:20::/32")]
        assert is_allowed_address(ipaddress.ip_address(address), networks) is allowed

    def test_without_tls_only_those_of_allowed_networks(self) -> None:
        networks = [ipaddress.ip_network("10.20.0.0/16")]
        addresses = [ipaddress.ip_address(text) for text in ("8.8.8.8", "10.20.0.9")]
        assert [is_allowed_address(each, networks, public=False) for each in addresses] == [False, True]

    def test_loopback_is_not_connected(
        self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver, settings: Settings
    ) -> None:
        settings.NOTIFICATION_NETWORKS = []
        target = make_target(receiver.url.replace("127.0.0.1", "localhost"))
        tell()
        assert send(target) == 0
        assert newest(target).error_code == DeliveryErrorCode.ADDRESS_FORBIDDEN
        assert receiver.requests == []

    def test_a_name_that_leads_nowhere(self, make_target: MakeTarget, tell: Tell) -> None:
        target = make_target("https://nowhere.invalid/")
        tell()
        send(target)
        assert newest(target).error_code == DeliveryErrorCode.HOST_UNKNOWN

    def test_nobody_listens(self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver) -> None:
        target = make_target("http://127.0.0.1:1/")
        tell()
        send(target)
        assert newest(target).error_code == DeliveryErrorCode.UNREACHABLE

    def test_a_receiver_without_tls(self, make_target: MakeTarget, tell: Tell, receiver: LocalReceiver) -> None:
        target = make_target(receiver.url.replace("http:", "https:"))
        tell()
        send(target)
        assert newest(target).error_code == DeliveryErrorCode.TLS_FAILED


def test_a_test_message_goes_to_a_disabled_receiver_as_well(make_target: MakeTarget, receiver: LocalReceiver) -> None:
    target = make_target(receiver.url)
    NotificationTarget.objects.update(enabled=False)
    person: User = new_user("alice")
    queue_test(target, person, NOW)
    assert claim_due() == [target.pk]
    assert deliver(target.pk) == 1
    assert receiver.events[0]["step"] == EventStep.TESTED


def make_old(**columns: Any) -> None:
    """Let all messages, and events with these columns, be older than they are kept."""
    long_ago = datetime.now(UTC) - timedelta(days=60)
    NotificationMessage.objects.update(created_at=long_ago)
    NotificationEvent.objects.filter(**columns).update(recorded_at=long_ago)


def test_message_about_a_finding__is_kept_until_the_closing_is_as_old(
    make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
) -> None:
    target = make_target(receiver.url)
    tell("f-1")
    tell("f-2")
    send(target)
    tell("f-1", EventStep.CLOSED)
    send(target)
    make_old()
    assert forget_old(datetime.now(UTC)) == 1, "the message of the closing"
    assert set(NotificationEvent.objects.values_list("subject_id", "step")) == {
        ("f-1", EventStep.OPENED),
        ("f-2", EventStep.OPENED),
        ("f-1", EventStep.CLOSED),
    }
    tell("f-2", EventStep.CLOSED)
    assert send(target) == 1
    assert receiver.events[-1]["step"] == EventStep.CLOSED
    make_old(step=EventStep.OPENED)
    assert forget_old(datetime.now(UTC)) == 0
    make_old()
    assert forget_old(datetime.now(UTC)) == 2
    forget_old(datetime.now(UTC))
    assert NotificationEvent.objects.count() == 0


def test_old_messages_are_forgotten_and_open_ones_stay(
    make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
) -> None:
    target = make_target(receiver.url)
    tell("f-1")
    send(target)
    receiver.answers.append((500, b"", {}))
    tell("f-2")
    send(target)
    tell("f-1", EventStep.CLOSED)
    route_events(datetime.now(UTC))
    target.messages.filter(events__step=EventStep.CLOSED).update(state=MessageState.SENT)
    now = datetime.now(UTC)
    make_old()
    assert forget_old(now) == 2
    assert [event.subject_id for event in NotificationEvent.objects.all()] == ["f-2"]
    NotificationMessage.objects.update(created_at=now - timedelta(days=2))
    forget_old(now)
    assert newest(target).state == MessageState.WAITING
    NotificationTarget.objects.update(enabled=False)
    forget_old(now)
    assert newest(target).state == MessageState.GIVEN_UP, "nobody tries any more"
