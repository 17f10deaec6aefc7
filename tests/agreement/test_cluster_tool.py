"""The cluster and its brokers as stored, against ``kafka-cluster``."""

from __future__ import annotations

from kafkadash.clusters.models import Cluster, Mode
from kafkadash.observe.models import BrokerState, Kind
from tests.agreement.conftest import Refresher
from tests.agreement.tools import Tools


def test_cluster__id_and_brokers__equal_what_kafka_cluster_prints(
    cluster: Cluster, refresh: Refresher, tools: Tools
) -> None:
    refresh(Kind.METADATA)
    refresh(Kind.VERSIONS)
    cluster.refresh_from_db()
    assert cluster.kafka_id == tools.cluster_id()
    assert cluster.mode == Mode.KRAFT
    assert stored_brokers(cluster) == tools.brokers()


def stored_brokers(cluster: Cluster) -> dict[int, tuple[str, int, str | None, bool | None]]:
    """Id → host, port, rack, fenced."""
    return {b.broker_id: (b.host, b.port, b.rack, b.fenced) for b in BrokerState.objects.filter(cluster=cluster)}
