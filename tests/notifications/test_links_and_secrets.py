"""Messages link to the finding and its runbook; no row, page, log line or message to others has a receiver's secret."""

from __future__ import annotations

import io
import json
import logging
import smtplib
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from typing import Any
from unittest import mock

import pytest
import structlog
from django.core import mail
from django.core.mail import EmailMessage
from django.db import connection
from django.test import Client
from pytest_django.fixtures import Settings

from kafkadash.accounts.models import AuditEvent
from kafkadash.clusters.models import Role
from kafkadash.core.logs import HIDDEN, LIBRARY_LEVELS, log_formatter
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.monitoring.models import BrokerState
from kafkadash.notifications import delivery
from kafkadash.notifications.delivery import deliver
from kafkadash.notifications.errors import DeliveryErrorCode as Code
from kafkadash.notifications.models import (
    MessageState,
    NotificationEvent,
    NotificationItem,
    NotificationMessage,
    NotificationRoute,
    NotificationTarget,
    TargetKind,
)
from kafkadash.notifications.routing import route_events
from kafkadash.notifications.services import check_address
from tests.conftest import new_user, signed_in
from tests.factories import NOW, judged, watched
from tests.notifications.receivers import Answering, LocalReceiver

pytestmark = pytest.mark.django_db

SIGNING_KEY = "s1gning-k3y-of-the-webhook"
SECRETS: Mapping[TargetKind, str] = {
    TargetKind.WEBHOOK: "w3bhook-p4th-s3cret",
    TargetKind.SLACK: "sl4ck-t0ken-s3cret",
    TargetKind.TEAMS: "t3ams-s1gnature%2Bs3cret",
    TargetKind.PAGERDUTY: "p4gerduty".ljust(32, "0"),
    TargetKind.EMAIL: "smtp-p4ssword-s3cret",
}


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """Everything that is logged, with the product's formatter and its levels of libraries."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(log_formatter(as_json=True, before=[structlog.stdlib.add_log_level]))
    loggers = {logging.getLogger(name): level for name, level in LIBRARY_LEVELS.items()} | {
        logging.getLogger(): logging.INFO
    }
    levels = {logger: logger.level for logger in loggers}
    for logger, level in loggers.items():
        logger.setLevel(level)
    logging.getLogger().addHandler(handler)
    yield stream
    logging.getLogger().removeHandler(handler)
    for logger, level in levels.items():
        logger.setLevel(level)


@pytest.fixture
def targets(receiver: LocalReceiver, settings: Settings) -> list[NotificationTarget]:
    """A receiver of each kind."""
    settings.PAGERDUTY_URL = receiver.url
    settings.EMAIL_FROM = "kafkadash@example.com"
    settings.EMAIL_HOST_PASSWORD = SECRETS[TargetKind.EMAIL]
    base = receiver.url.removesuffix("/hook")
    addresses = {
        TargetKind.WEBHOOK: f"{base}/hooks/{SECRETS[TargetKind.WEBHOOK]}",
        TargetKind.SLACK: f"{base}/services/T0/B0/{SECRETS[TargetKind.SLACK]}",
        TargetKind.TEAMS: f"{base}/workflows/invoke?api-version=1&sig={SECRETS[TargetKind.TEAMS]}",
        TargetKind.PAGERDUTY: SECRETS[TargetKind.PAGERDUTY],
        TargetKind.EMAIL: "on-call@example.com",
    }
    found = []
    for kind, address in addresses.items():
        key = SIGNING_KEY if kind is TargetKind.WEBHOOK else ""
        shown = check_address(kind, address)
        found.append(NotificationTarget.objects.create(name=kind, kind=kind, address=address, shown=shown, secret=key))
        NotificationRoute.objects.create(target=found[-1])
    return found


def open_finding() -> Finding:
    cluster = watched("demo")
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True)
    judged(cluster)
    route_events(datetime.now(UTC))
    return Finding.objects.get(kind=FindingKind.BROKER_DOWN)


def deliver_to(targets: list[NotificationTarget]) -> list[int]:
    NotificationTarget.objects.update(next_at=NOW)
    return [deliver(target.pk) for target in targets]


def stored_rows() -> str:
    """Return the columns of all tables that a delivery writes, as PostgreSQL holds them."""
    models: tuple[Any, ...] = (
        NotificationTarget,
        NotificationRoute,
        NotificationEvent,
        NotificationMessage,
        NotificationItem,
        AuditEvent,
        Finding,
    )
    with connection.cursor() as cursor:
        texts = []
        for model in models:
            cursor.execute(f"SELECT coalesce(json_agg(t)::text, '') FROM {model._meta.db_table} t")
            texts.append(cursor.fetchone()[0])
    return "\n".join(texts)


def shown_pages(targets: list[NotificationTarget]) -> str:
    admin: Client = signed_in(new_user("ada", Role.ADMIN))
    addresses = ["/settings/notifications/", *(f"/settings/notifications/{target.pk}/" for target in targets), "/"]
    return "\n".join(admin.get(address).content.decode() for address in addresses)


def sent_bodies(receiver: LocalReceiver) -> list[str]:
    """Return what each was sent, without the routing key that PagerDuty asks for."""
    found = [body.decode() for body in receiver.bodies]
    routing = json.dumps({"routing_key": SECRETS[TargetKind.PAGERDUTY]}, separators=(",", ":"))[1:-1]
    return [*(body.replace(routing, "") for body in found), *(str(each.message()) for each in mail.outbox)]


def assert_no_secret(*texts: str) -> None:
    for secret in (*SECRETS.values(), SIGNING_KEY, SECRETS[TargetKind.TEAMS].replace("%2B", "+")):
        assert [text for text in texts if secret in text] == [], secret


def test_message__of_each_kind__links_to_the_finding_and_its_runbook(
    targets: list[NotificationTarget], receiver: LocalReceiver, logged: io.StringIO
) -> None:
    finding = open_finding()
    assert deliver_to(targets) == [1, 1, 1, 1, 1]
    bodies = sent_bodies(receiver)
    paths = (f"/clusters/demo/findings/{finding.public_id}/", "/runbooks/broker-down/")
    for path in paths:
        assert [f"https://kafkadash.test{path}" in body for body in bodies] == [True] * 5
        assert signed_in(new_user(f"reader of {path}"[:30], Role.VIEWER)).get(path).status_code == 200
    assert_no_secret(*bodies, stored_rows(), shown_pages(targets), logged.getvalue())


def test_secret__that_a_receiver_repeats__is_stored_shown_and_logged_nowhere(
    targets: list[NotificationTarget], receiver: LocalReceiver, logged: io.StringIO
) -> None:
    open_finding()
    by_http = targets[:4]
    for status, start in ((500, "no hook: "), (400, "x" * 190)):
        for target in by_http:
            text = f"{start}{target.address} {SECRETS[TargetKind(target.kind)]} {target.secret}"
            receiver.answers.append((status, text.encode(), {}))
        assert deliver_to(by_http) == [0, 0, 0, 0]
        answers = NotificationMessage.objects.filter(target__in=by_http).values_list("status", "answer")
        assert all((told, HIDDEN in answer) == (status, True) for told, answer in answers)
    assert deliver_to(by_http) == [0, 0, 0, 0], "refused for good"

    refused = smtplib.SMTPAuthenticationError(535, b"5.7.8 not\r\naccepted")
    with mock.patch.object(EmailMessage, "send", side_effect=refused):
        assert deliver_to(targets[4:]) == [0]
    message = targets[4].messages.get()
    assert (message.error_code, message.error_params) == (Code.MAIL_FAILED, {"detail": "5.7.8 not  accepted"})

    NotificationMessage.objects.update(state=MessageState.WAITING)
    receiver.answering = Answering.RESET
    assert deliver_to(by_http) == [0, 0, 0, 0]
    fault = ValueError(*((target.address, target.secret) for target in by_http))
    with mock.patch.object(delivery, "post", side_effect=fault):
        assert deliver_to(by_http) == [0, 0, 0, 0]
    assert NotificationMessage.objects.filter(error_code=Code.FAULT).count() == 4
    assert logged.getvalue().count("notifications.fault") == 4
    assert_no_secret(*sent_bodies(receiver), stored_rows(), shown_pages(targets), logged.getvalue())
