"""A broker that came late: cordoned, uncordoned, stopped and unregistered by changes, against Kafka's own tools."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from kafkadash.accounts.models import User
from kafkadash.broker_life import cordon, unregister
from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.monitoring.models import BrokerState, CollectorKind
from kafkadash.short_runs.rollback import propose_rollback
from tests.agreement.conftest import Refresher
from tests.agreement.short_runs import queue, step_until
from tests.agreement.tools import Tools
from tests.embedded_plugin import RUN_FOLDER
from tests.kafka_releases import release_asked, tells_fenced
from tests.real_kafka import running_release
from tests.waiting import wait_until

CORDONS = (4, 3)  # first release whose directories can be cordoned
READ = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.CONFIGS, CollectorKind.LOG_DIRS)


@pytest.fixture
def playground(kafka_runtime: None) -> Iterator[KafkaPlayground]:
    """A cluster of this test alone: Kafka lists a broker that has gone as an observer for five minutes."""
    folder = Path(os.environ[RUN_FOLDER]) / f"kafka-life-{os.environ.get('PYTEST_XDIST_WORKER', 'single')}"
    with running_release(folder, brokers=2, racks=("a", "b")) as playground:
        yield playground


@pytest.fixture
def added(playground: KafkaPlayground) -> int:
    """A broker more, without replicas."""
    return playground.add_broker("a")


def test_broker__is_cordoned_and_unregistered_by_changes__as_kafkas_tools_say(
    cluster: Cluster, refresh: Refresher, playground: KafkaPlayground, tools: Tools, operator: User, added: int
) -> None:
    """A change that the release of the brokers does not offer is refused before anything is sent."""
    refresh(CollectorKind.VERSIONS)
    read_all(refresh)
    if release_asked() >= CORDONS:
        cordon_and_uncordon(cluster, refresh, tools, operator, added)
    else:
        [why] = cordon.plan_cordon(cluster, {"values": {str(added): "*"}}).left_out
        assert why.params["why"].code == BrokerReasonCode.NO_CORDONS
    [why] = unregister.plan_unregister(cluster, {"broker": added}).left_out
    assert why.params["why"].code == (BrokerReasonCode.ALIVE if tells_fenced() else BrokerReasonCode.FENCED_UNKNOWN)
    playground.stop_broker(added)
    wait_until(lambda: tools.fenced(added), f"Kafka itself calls broker {added} fenced", 30)
    read_all(refresh)
    if not tells_fenced():
        [why] = unregister.plan_unregister(cluster, {"broker": added}).left_out
        assert why.params["why"].code == BrokerReasonCode.FENCED_UNKNOWN
        return
    last = queue(cluster, unregister.KIND, {"broker": added}, operator)
    run = step_until(last, RequestState.DONE)
    assert run is not None
    assert run.outcome == "clean"
    assert added not in tools.brokers()
    refresh(CollectorKind.METADATA)
    assert BrokerState.objects.get(cluster=cluster, broker_id=added).gone_at is not None


def cordon_and_uncordon(cluster: Cluster, refresh: Refresher, tools: Tools, operator: User, broker: int) -> None:
    change = queue(cluster, cordon.KIND, {"values": {str(broker): "*"}}, operator)
    step_until(change, RequestState.DONE)
    assert tools.configs(broker)[cordon.KEY] == ("*", "DYNAMIC_BROKER_CONFIG")
    assert set(tools.cordoned(broker).values()) == {True}

    read_all(refresh)
    back = queue(cluster, cordon.KIND, propose_rollback(change, operator).input, operator)
    run = step_until(back, RequestState.DONE)
    assert run is not None
    assert run.outcome == "clean"
    assert tools.configs(broker)[cordon.KEY][1] != "DYNAMIC_BROKER_CONFIG"
    assert set(tools.cordoned(broker).values()) == {False}


def read_all(refresh: Refresher) -> None:
    for kind in READ:
        refresh(kind)
