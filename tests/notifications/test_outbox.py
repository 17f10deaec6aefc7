"""Findings and changes record what receivers are told of, in their own transactions."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from unittest import mock

import pytest

from kafkadash.findings import incidents
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding
from kafkadash.monitoring.models import BrokerState
from kafkadash.notifications import outbox
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent
from tests.factories import NOW, judged, watched

pytestmark = pytest.mark.django_db


def steps(kind: FindingKind) -> list[tuple[str, str]]:
    events = NotificationEvent.objects.filter(subject=EventSubject.FINDING, kind=kind.value).order_by("pk")
    return [(event.subject_id, event.step) for event in events]


def test_a_finding_is_told_when_it_opens_and_when_it_closes() -> None:
    cluster = watched("demo")
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True)
    judged(cluster)
    finding = Finding.objects.get(kind=FindingKind.BROKER_DOWN)
    assert steps(FindingKind.BROKER_DOWN) == [(finding.public_id, EventStep.OPENED)]
    event = NotificationEvent.objects.get(subject_id=finding.public_id)
    assert event.path == f"/clusters/demo/findings/{finding.public_id}/"
    assert event.runbook == "/runbooks/broker-down/"
    judged(cluster, NOW + timedelta(seconds=1))
    assert len(steps(FindingKind.BROKER_DOWN)) == 1, "once"
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=False)
    judged(cluster, NOW + timedelta(seconds=2))
    assert steps(FindingKind.BROKER_DOWN)[1:] == [(finding.public_id, EventStep.CLOSED)]


def test_opening__that_is_rolled_back__leaves_no_event() -> None:
    """A fault once the event is stored takes the opening back as well."""
    cluster = watched("demo")
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True)

    def store_and_fail(*args: Iterable[NotificationEvent]) -> None:
        outbox.record_events(*args)
        assert steps(FindingKind.BROKER_DOWN), "stored within the transaction, not after it"
        raise ConnectionError

    with mock.patch.object(incidents, "record_events", store_and_fail), pytest.raises(ConnectionError):
        judged(cluster, readings=1)
    opened = Finding.objects.filter(opened_at__isnull=False)
    assert (opened.count(), NotificationEvent.objects.count()) == (0, 0)
    judged(cluster, readings=1)
    assert opened.filter(kind=FindingKind.BROKER_DOWN).count() == len(steps(FindingKind.BROKER_DOWN)) == 1
