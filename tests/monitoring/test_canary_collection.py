"""Collection of the canary's samples while no broker of the cluster answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime

from pytest_django import Settings

from kafkadash.clusters.contact import judge_contact
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.embedded.ports import LOOPBACK, free_port
from kafkadash.monitoring.canary.rules import CanaryReason, CanaryState, sum_samples
from kafkadash.monitoring.canary.samples import load_newest
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from tests.factories import BrokerFactory


def test_no_broker_answers__each_known_broker_failed(
    cluster: Cluster, refresh: Callable[[str], RefreshOutcome], settings: Settings
) -> None:
    settings.KAFKA_DEADLINE = 1
    Cluster.objects.filter(pk=cluster.pk).update(bootstrap_servers=f"{LOOPBACK}:{free_port()}")
    for broker, gone_at in ((1, None), (2, None), (3, datetime.now(UTC))):
        BrokerFactory.create(cluster=cluster, broker_id=broker, gone_at=gone_at)
    run = CollectorRun.objects.create(cluster=cluster, kind=CollectorKind.CANARY)
    assert refresh(CollectorKind.CANARY).error is None

    [sample] = load_newest(cluster, 10)
    assert {broker: (each.state, each.code) for broker, each in sample.readings.items()} == {
        1: (CanaryState.FAILED, CanaryReason.NO_ANSWER),
        2: (CanaryState.FAILED, CanaryReason.NO_ANSWER),
    }
    assert [each.availability for each in sum_samples([sample], [1, 2])] == [0, 0]
    run.refresh_from_db()
    assert run.succeeded_at is not None
    assert judge_contact(cluster, [run], run.succeeded_at).taken_at is None, "no broker answered"
