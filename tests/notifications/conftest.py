from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from pytest_django.fixtures import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.notifications import apprise_services
from kafkadash.notifications.models import (
    EventStep,
    EventSubject,
    NotificationEvent,
    NotificationRoute,
    NotificationTarget,
    TargetKind,
)
from kafkadash.notifications.outbox import build_event, record_events
from tests.factories import NOW
from tests.notifications.receivers import LocalReceiver, local_receiver

MakeTarget = Callable[..., NotificationTarget]
Tell = Callable[..., NotificationEvent]


@pytest.fixture(autouse=True)
def patient_apprise(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may start slowly beside other tests."""
    monkeypatch.setattr(apprise_services, "PROCESS_SECONDS", 60)
    monkeypatch.setattr(apprise_services, "HTTP_SECONDS", 30)


@pytest.fixture
def receiver(settings: Settings) -> Iterator[LocalReceiver]:
    settings.NOTIFICATION_NETWORKS = ["127.0.0.0/8"]
    settings.PUBLIC_URL = "https://kafkadash.test"
    with local_receiver() as own:
        yield own


@pytest.fixture
def make_target(db: None) -> MakeTarget:
    def make(
        address: str = "http://127.0.0.1:9/", kind: TargetKind = TargetKind.WEBHOOK, **route: Any
    ) -> NotificationTarget:
        number = NotificationTarget.objects.count()
        target = NotificationTarget.objects.create(
            name=f"{kind.value} {number}", kind=kind, address=address, shown="shown", secret="key"
        )
        NotificationRoute.objects.create(target=target, **route)
        return target

    return make


@pytest.fixture
def tell(db: None) -> Tell:
    clusters: dict[str, Cluster] = {}

    def record(
        subject_id: str = "f-1",
        step: EventStep = EventStep.OPENED,
        *,
        state: str = "critical",
        kind: FindingKind = FindingKind.OFFLINE,
        cluster: str = "orders",
        after_s: float = 0,
    ) -> NotificationEvent:
        if cluster not in clusters:
            slug = f"orders-{len(clusters)}" if clusters else "orders"
            clusters[cluster] = Cluster.objects.create(name=cluster, slug=slug)
        own = clusters[cluster]
        event = build_event(
            own,
            EventSubject.FINDING,
            subject_id,
            step,
            coded(FindingCode.PARTITIONS_LEADERLESS, partitions=3, notes=()),
            NOW + timedelta(seconds=after_s),
            kind=kind.value,
            state=state,
            path=f"/clusters/{own.slug}/findings/{subject_id}/",
        )
        record_events([event])
        return event

    return record
