"""A broker that came late: cordoned, uncordoned, stopped and unregistered by changes, against Kafka's own tools."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkadash.accounts.models import User
from kafkadash.broker_life import cordon, unregister
from kafkadash.broker_life.reasons import BrokerReasonCode
from kafkadash.changes.models import RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground, write_cluster
from kafkadash.kafka.connect import admin_for
from kafkadash.monitoring.models import BrokerState, CollectorKind
from kafkadash.short_runs.rollback import propose_rollback
from tests.agreement.conftest import Refresher
from tests.agreement.short_runs import DEADLINE_S, queue, step_until
from tests.agreement.tools import Tools
from tests.waiting import wait_until

READ = (CollectorKind.METADATA, CollectorKind.REASSIGNMENTS, CollectorKind.CONFIGS, CollectorKind.LOG_DIRS)


@pytest.fixture
def added(playground: KafkaPlayground, cluster: Cluster) -> Iterator[int]:
    """A broker more, without replicas; afterwards the cluster is the one from before."""
    before = playground.cluster
    broker = playground.add_broker(before.brokers[0].rack)
    yield broker
    running = {node.node_id for node in playground.status() if node.pid}
    if broker in running:
        playground.kill_broker(broker)
    admin_for(cluster.connection()).unregister_broker(broker, deadline=DEADLINE_S)
    write_cluster(playground.folder, before)


def test_broker__is_cordoned_and_unregistered_by_changes__as_kafkas_tools_say(
    cluster: Cluster, refresh: Refresher, playground: KafkaPlayground, tools: Tools, operator: User, added: int
) -> None:
    read_all(refresh)
    change = queue(cluster, cordon.KIND, {"values": {str(added): "*"}}, operator)
    step_until(change, RequestState.DONE)
    assert tools.configs(added)[cordon.KEY] == ("*", "DYNAMIC_BROKER_CONFIG")
    assert set(tools.cordoned(added).values()) == {True}

    read_all(refresh)
    back = queue(cluster, cordon.KIND, propose_rollback(change, operator).input, operator)
    run = step_until(back, RequestState.DONE)
    assert run is not None
    assert run.outcome == "clean"
    assert tools.configs(added)[cordon.KEY][1] != "DYNAMIC_BROKER_CONFIG"
    assert set(tools.cordoned(added).values()) == {False}

    [why] = unregister.plan_unregister(cluster, {"broker": added}).left_out
    assert why.params["why"].code == BrokerReasonCode.ALIVE
    playground.stop_broker(added)
    wait_until(lambda: tools.fenced(added), f"Kafka itself calls broker {added} fenced", 30)
    read_all(refresh)
    last = queue(cluster, unregister.KIND, {"broker": added}, operator)
    run = step_until(last, RequestState.DONE)
    assert run is not None
    assert run.outcome == "clean"
    assert added not in tools.brokers()
    refresh(CollectorKind.METADATA)
    assert BrokerState.objects.get(cluster=cluster, broker_id=added).gone_at is not None


def read_all(refresh: Refresher) -> None:
    for kind in READ:
        refresh(kind)
