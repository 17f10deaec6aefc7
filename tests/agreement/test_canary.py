"""The canary on real Kafka: brokers that are well, hang, wait for one that hangs, are fenced, and are stopped."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.devtools.playground.load import LoadTopic, load_topics
from kafkadash.kafka.api import KafkaUnreachable
from kafkadash.kafka.connect import run_canary
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.canary.rules import TOPIC, CanaryReading, CanaryReason, CanaryState
from kafkadash.monitoring.models import CanaryPoint, CollectorKind, CollectorRun
from tests.agreement.conftest import Refresher
from tests.agreement.runs import broker_hung
from tests.agreement.tools import LATEST, Tools
from tests.frozen_nodes import frozen_nodes
from tests.raised_codes import raises_code
from tests.waiting import wait_until

BROKER, LEADS_IT, WITHOUT_IT = 3, 1, 2


@pytest.fixture
def probe(cluster: Cluster, refresh: Refresher, playground: KafkaPlayground, tools: Tools) -> Iterator[Refresher]:
    """The canary's topic is there, each broker leads a partition, and the canary is started."""
    load_topics(playground.bootstrap, [LoadTopic(TOPIC, placement=[(1, 3), (2, 1), (3, 2)])])
    CollectorRun.objects.create(cluster=cluster, kind=CollectorKind.CANARY)
    refresh(CollectorKind.METADATA)
    yield refresh
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    tools.run("topics", "--delete", "--topic", TOPIC)


def test_canary__measures_who_leads_and_never_another(
    cluster: Cluster, probe: Refresher, playground: KafkaPlayground, tools: Tools
) -> None:
    read = probed(cluster, probe)
    assert {each.state for each in read.values()} == {CanaryState.MEASURED}, read
    assert all(0 < (each.consumed_ms or 0) < 1000 for each in read.values()), read
    assert tools.offset(1, TOPIC, LATEST) == 2
    with raises_code(KafkaErrorCode.CANARY_OF_OTHER_CLUSTER, KafkaUnreachable):
        run_canary(cluster.connection(), "another-cluster", TOPIC, deadline=5)
    assert tools.offset(1, TOPIC, LATEST) == 2, "nothing was written"

    with frozen_nodes(playground, BROKER):
        read = probed(cluster, probe)
    assert read[BROKER].state is CanaryState.FAILED
    assert read[LEADS_IT].state is not CanaryState.MEASURED or (read[LEADS_IT].consumed_ms or 0) > 1000, (
        f"{read}: its record waits for the follower that hangs, until that is fenced"
    )
    assert 0 < (read[WITHOUT_IT].consumed_ms or 0) < 1000, read
    wait_until(tools.in_sync, "every replica is in sync again", 60)

    with broker_hung(playground, tools, BROKER):
        check_away(probed(cluster, probe), tools)
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    playground.stop_broker(BROKER)
    try:
        check_away(probed(cluster, probe), tools)
    finally:
        playground.start_broker(BROKER)


def check_away(read: dict[int, CanaryReading], tools: Tools) -> None:
    away = read[BROKER]
    leader = tools.topics("--topic", TOPIC)[TOPIC].partitions[2].leader
    assert (away.state, away.code, away.detail) == (
        CanaryState.NOT_MEASURED,
        CanaryReason.LED_ELSEWHERE,
        str(leader),
    )
    assert {read[broker].state for broker in (LEADS_IT, WITHOUT_IT)} == {CanaryState.MEASURED}


def probed(cluster: Cluster, probe: Refresher) -> dict[int, CanaryReading]:
    assert probe(CollectorKind.CANARY).error is None
    stored = CanaryPoint.objects.filter(cluster=cluster).latest("taken_at").readings
    return {int(broker): CanaryReading.from_json(reading) for broker, reading in stored.items()}
