"""The cluster and its brokers as stored, against ``kafka-cluster``."""

from __future__ import annotations

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.models import BrokerState, ClusterState, Kind
from kafkadash.playground.cluster import Playground
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until


def test_cluster__id_and_brokers__equal_what_kafka_cluster_prints(
    cluster: Cluster, refresh: Refresher, tools: Tools
) -> None:
    refresh(Kind.METADATA)
    refresh(Kind.VERSIONS)
    cluster.refresh_from_db()
    assert cluster.kafka_id == tools.cluster_id()
    assert cluster.mode == Mode.KRAFT
    assert stored_brokers(cluster) == tools.brokers()


def test_cluster__broker_stopped__is_fenced_and_its_partitions_under_replicated(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, playground: Playground, tools: Tools
) -> None:
    topic = make_topic([[1, 2, 3], [2, 3, 1]])
    playground.stop_broker(3)
    try:
        wait_until(lambda: tools.fenced(3), "Kafka itself calls the broker fenced", 30)
        refresh(Kind.METADATA)
        stored = stored_brokers(cluster)
        assert stored == tools.brokers()
        assert {broker for broker, (*_, fenced) in stored.items() if fenced} == {3}
        figures = ClusterState.objects.get(cluster=cluster)
        behind = tools.partitions_that_are("under-replicated")
        assert {(topic, 0), (topic, 1)} <= behind
        assert (figures.brokers_fenced, figures.under_replicated) == (1, len(behind))
    finally:
        playground.start_broker(3)
        wait_until(tools.in_sync, "every replica is in sync again", 60)


def stored_brokers(cluster: Cluster) -> dict[int, tuple[str, int, str | None, bool | None]]:
    """Id → host, port, rack, fenced."""
    return {b.broker_id: (b.host, b.port, b.rack, b.fenced) for b in BrokerState.objects.filter(cluster=cluster)}
