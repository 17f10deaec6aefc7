"""Topics as stored, against ``kafka-topics --describe``."""

from __future__ import annotations

from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import BrokerState, ClusterState, Kind, TopicState
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.tools import DescribedPartition, DescribedTopic, Tools
from tests.waiting import wait_until


def test_topics__leaders_replicas_and_isr__equal_describe(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools
) -> None:
    own = {make_topic([[1, 2, 3], [3, 1, 2]]), make_topic([[2, 3]])}
    printed = tools.topics()
    assert own <= printed.keys()

    def seen() -> dict[str, DescribedTopic]:
        refresh(Kind.METADATA)
        return stored_topics(cluster)

    # Any broker may answer, and one that is late does not know a new topic yet.
    wait_until(lambda: seen() == printed, "the stored topics to be those that the tool describes")

    figures = ClusterState.objects.get(cluster=cluster)
    rows = [partition for topic in printed.values() for partition in topic.partitions.values()]
    assert (figures.topics, figures.partitions) == (len(printed), len(rows))
    assert figures.under_replicated == len(tools.partitions_that_are("under-replicated"))
    assert figures.offline_partitions == len(tools.partitions_that_are("unavailable"))

    brokers = BrokerState.objects.filter(cluster=cluster)
    assert {b.broker_id: b.replicas for b in brokers} == {b: sum(b in r.replicas for r in rows) for b in (1, 2, 3)}
    assert {b.broker_id: b.leaders for b in brokers} == {b: sum(b == r.leader for r in rows) for b in (1, 2, 3)}


def stored_topics(cluster: Cluster) -> dict[str, DescribedTopic]:
    return {
        topic.name: DescribedTopic(
            topic.topic_id,
            {
                partition: DescribedPartition(leader, tuple(replicas), tuple(isr))
                for partition, leader, _, replicas, isr, _ in topic.partitions
            },
        )
        for topic in TopicState.objects.filter(cluster=cluster)
    }
