"""Partitions in trouble as counted, against the lists of ``kafka-topics --describe``, while a broker goes and comes."""

from __future__ import annotations

from collections import Counter

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import ClusterState, Kind, TopicState
from kafkadash.playground.cluster import Playground
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import Tools
from tests.waiting import wait_until

# Kafka's option → our column, the same of a topic and of the cluster.
TROUBLES = {
    "under-replicated": "under_replicated",
    "at-min-isr": "at_min_isr",
    "under-min-isr": "under_min_isr",
    "unavailable": "offline_partitions",
}


def test_troubled_partitions__broker_stopped_and_started__equal_kafkas_lists(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, playground: Playground, tools: Tools
) -> None:
    strict = make_topic([[1, 2, 3], [3, 1, 2]])
    loose = make_topic([[2, 3], [1, 2]])
    alone = make_topic([[3], [1]])
    tools.set_config(strict, min_insync_replicas="3")
    tools.set_config(loose, min_insync_replicas="2")
    collect(refresh)
    agree(cluster, tools)
    assert counted(cluster, "at_min_isr")[strict] == 2
    assert counted(cluster, "under_min_isr") == {}

    playground.stop_broker(3)
    try:
        wait_until(lambda: tools.fenced(3), "Kafka itself calls the broker fenced", 30)
        collect(refresh)
        agree(cluster, tools)
        under = counted(cluster, "under_min_isr")
        assert (under[strict], under[loose], under[alone]) == (2, 1, 1)
        assert counted(cluster, "offline_partitions")[alone] == 1
        assert counted(cluster, "at_min_isr")[loose] == 1
        offline = TopicState.objects.get(cluster=cluster, name=strict)
        assert offline.offline_replicas == 2
        assert [row[5] for row in offline.partitions] == [[3], [3]]
    finally:
        playground.start_broker(3)
        wait_until(tools.in_sync, "every replica is in sync again", 60)
    collect(refresh)
    agree(cluster, tools)
    assert counted(cluster, "under_min_isr") == {}
    described = tools.topics()
    led = sum(p.leader == p.replicas[0] for topic in described.values() for p in topic.partitions.values())
    assert ClusterState.objects.get(cluster=cluster).preferred_leaders == led


def collect(refresh: Refresher) -> None:
    """Twice the metadata: it counts by the min.insync.replicas that are known."""
    for kind in (Kind.METADATA, Kind.CONFIGS, Kind.METADATA):
        refresh(kind)


def agree(cluster: Cluster, tools: Tools) -> None:
    figures = ClusterState.objects.get(cluster=cluster)
    for option, column in TROUBLES.items():
        printed = tools.partitions_that_are(option)
        assert counted(cluster, column) == Counter(topic for topic, _ in printed), option
        assert getattr(figures, column) == len(printed), option


def counted(cluster: Cluster, column: str) -> Counter[str]:
    """Topic → partitions, where there are any."""
    rows = TopicState.objects.filter(cluster=cluster).values_list("name", column)
    return +Counter(dict(rows))
