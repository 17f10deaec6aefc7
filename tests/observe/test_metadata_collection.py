"""Topics and brokers as the collector stores them: only what changed is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.port import DeadlineExceeded
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import BrokerState, ClusterState, Collection, CollectorRun, TopicState
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]


def test_collection__first_look__stores_topics_brokers_and_figures(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.add("orders", 1, 2, 3, 4)
    refresh("metadata")
    topic = TopicState.objects.get()
    assert topic.partitions == [[0, 1, 1, [1, 2, 3], [1, 2, 3], []], [1, 2, 1, [2, 3, 4], [2, 3, 4], []]]
    assert (topic.partition_count, topic.replication_factor) == (2, 3)
    assert list(BrokerState.objects.values_list("broker_id", "rack", "replicas", "leaders")) == [
        (1, "a", 1, 1),
        (2, "a", 2, 1),
        (3, "b", 2, 0),
        (4, "b", 1, 0),
        (5, "c", 0, 0),
    ]
    state = ClusterState.objects.get()
    assert (state.brokers, state.racks, state.topics, state.partitions) == (5, 3, 1, 2)
    cluster.refresh_from_db()
    assert cluster.kafka_id == "kafka-1"


def test_collection__nothing_changed__writes_no_shape_row(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    refresh("metadata")
    topics, brokers = list(TopicState.objects.values()), list(BrokerState.objects.values())
    clock.pass_by(30)
    refresh("metadata")
    assert list(TopicState.objects.values()) == topics
    assert list(BrokerState.objects.values()) == brokers


def test_collection__isr_shrank__updates_the_topic_and_counts_it(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    refresh("metadata")
    before = TopicState.objects.get()
    log.isr = (1, 2)
    clock.pass_by(30)
    refresh("metadata")
    after = TopicState.objects.get()
    assert after.pk == before.pk
    assert (after.under_replicated, after.changed_at > before.changed_at) == (1, True)
    assert ClusterState.objects.get().under_replicated == 1


def test_collection__partition_without_leader__is_offline(kafka: MemoryCluster, refresh: Refresher) -> None:
    log = kafka.add("orders", 0, 1, 2)
    log.leader, log.isr = None, ()
    refresh("metadata")
    assert ClusterState.objects.get().offline_partitions == 1


def test_collection__replica_being_added__is_told_apart_from_trouble(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    refresh("reassignments")
    refresh("metadata")
    state = ClusterState.objects.get()
    assert (state.under_replicated, state.under_replicated_moving) == (1, 1)


def test_collection__topic_deleted__goes(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.add("payments", 0, 1, 2)
    refresh("metadata")
    kafka.delete("orders")
    refresh("metadata")
    assert [t.name for t in TopicState.objects.all()] == ["payments"]


def test_collection__broker_gone__keeps_its_row_with_the_time_and_counts_its_replicas(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    refresh("metadata")
    rack = kafka.racks.pop(3)
    clock.pass_by(30)
    refresh("metadata")
    gone = BrokerState.objects.get(broker_id=3)
    assert gone.gone_at is not None
    assert gone.replicas == 1
    assert ClusterState.objects.get().brokers_gone == 1
    kafka.racks[3] = rack
    refresh("metadata")
    gone.refresh_from_db()
    assert gone.gone_at is None


def test_collection__fenced_broker__is_counted_and_still_registered(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.fenced = {5}
    refresh("metadata")
    state = ClusterState.objects.get()
    assert (state.brokers, state.brokers_fenced, state.brokers_gone) == (5, 1, 0)


def test_collection__cluster_does_not_answer__keeps_what_was_known_and_says_why(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    good = CollectorRun.objects.get(cluster=cluster, kind="metadata").succeeded_at
    kafka.fail = DeadlineExceeded("No broker of 127.0.0.1:1 answered within 8 s.")
    refresh("metadata")
    run = CollectorRun.objects.get(cluster=cluster, kind="metadata")
    assert (run.succeeded_at, run.failures) == (good, 1)
    assert run.last_error == "No broker of 127.0.0.1:1 answered within 8 s."
    assert TopicState.objects.count() == 1
    last = Collection.objects.order_by("-pk")[0]
    assert (last.ok, last.taken_at, last.rows) == (False, None, None)


def test_collection__address_leads_to_another_cluster__is_refused_by_every_kind(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    kafka.cluster_id = "kafka-2"
    kafka.add("stranger", 0, 1, 2)
    assert "now leads to the Kafka cluster kafka-2, not to kafka-1" in refresh("metadata").error
    assert "kafka-2" in refresh("quorum").error
    assert not TopicState.objects.filter(name="stranger").exists()
    kafka.cluster_id = "kafka-1"
    assert refresh("metadata").error == ""
    assert refresh("quorum").error == ""
