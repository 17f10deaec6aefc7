"""Topics and brokers as the collector stores them: only what changed is written."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.kafka.port import DeadlineExceeded
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import (
    BrokerState,
    ClusterState,
    Collection,
    CollectorRun,
    ThrottleState,
    TopicState,
)
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


def test_collection__kafka_cluster_is_registered_already__is_not_read_and_read_only(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    first = Cluster.objects.create(name="first", slug="first", bootstrap_servers="a:1", kafka_id="kafka-1")
    kafka.add("orders", 0, 1, 2)
    said = message_text(ClusterErrorCode.SAME_CLUSTER, cluster="memory", other="first")
    assert refresh("metadata").error == said
    assert refresh("quorum").error == said
    cluster.refresh_from_db()
    assert (cluster.same_as, cluster.read_only, cluster.kafka_id) == (first, True, "")
    assert not TopicState.objects.exists()
    first.delete()
    assert refresh("metadata").error == ""
    assert refresh("quorum").error == ""
    cluster.refresh_from_db()
    assert (cluster.same_as, cluster.kafka_id) == (None, "kafka-1")
    assert cluster.read_only, "only an administrator ends that"


def test_collection__registered_twice_from_before__first_one_goes_on(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id="kafka-1")
    Cluster.objects.create(name="second", slug="second", bootstrap_servers="a:1", kafka_id="kafka-1")
    kafka.add("orders", 0, 1, 2)
    assert refresh("metadata").error == ""
    cluster.refresh_from_db()
    assert (cluster.same_as, cluster.read_only) == (None, False)


def test_collection__first_replica_does_not_lead__is_counted(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.add("orders", 1, 2, 3, 1).leader = 3
    refresh("metadata")
    assert TopicState.objects.get().preferred_leaders == 1
    assert ClusterState.objects.get().preferred_leaders == 1
    brokers = BrokerState.objects.filter(broker_id__lte=3)
    assert list(brokers.values_list("broker_id", "preferred", "leaders")) == [(1, 1, 1), (2, 1, 0), (3, 0, 1)]


def test_collection__replicas_on_brokers_that_are_away__are_counted_for_topic_broker_and_cluster(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    log = kafka.add("orders", 0, 1, 2, 3)
    log.isr, log.offline = (1, 2), (3,)
    kafka.fenced = {3}
    refresh("metadata")
    topic = TopicState.objects.get()
    assert (topic.offline_replicas, topic.partitions[0][5]) == (1, [3])
    assert BrokerState.objects.get(broker_id=3).offline_replicas == 1
    assert ClusterState.objects.get().offline_replicas == 1


def test_collection__racks__violations_are_counted_and_follow_the_brokers(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """Brokers 1 and 2 are in rack a, 3 and 4 in b, 5 in c."""
    kafka.add("orders", 0, 1, 3, 5)
    kafka.add("orders", 1, 1, 2, 5)
    refresh("metadata")
    before = TopicState.objects.get()
    assert (before.rack_violations, ClusterState.objects.get().rack_violations) == (1, 1)
    kafka.racks[2] = "b"
    clock.pass_by(30)
    refresh("metadata")
    after = TopicState.objects.get()
    assert (after.rack_violations, ClusterState.objects.get().rack_violations) == (0, 0)
    assert after.changed_at == before.changed_at


def test_collection__moving_partition__is_judged_by_where_it_goes(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 3)
    kafka.move("orders", 0, 2, 3)
    refresh("reassignments")
    refresh("metadata")
    assert ClusterState.objects.get().rack_violations == 0


def test_collection__a_broker_without_rack__spread_is_not_judged(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.racks[5] = None
    refresh("metadata")
    state = ClusterState.objects.get()
    assert (state.rack_violations, state.brokers_without_rack) == (None, 1)
    assert TopicState.objects.get().rack_violations is None


def test_collection__broker_hosts_more__it_has_not_changed_itself(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """``changed_at`` of a fenced broker says since when it is fenced."""
    kafka.fenced = {5}
    refresh("metadata")
    before = BrokerState.objects.get(broker_id=5)
    clock.pass_by(30)
    kafka.add("orders", 0, 5, 1)
    refresh("metadata")
    after = BrokerState.objects.get(broker_id=5)
    assert (after.replicas, after.changed_at) == (1, before.changed_at)


def test_collection__no_topics__is_zero_and_not_unknown(kafka: MemoryCluster, refresh: Refresher) -> None:
    for kind in ("metadata", "configs", "log_dirs", "reassignments"):
        assert refresh(kind).error == ""
    state = ClusterState.objects.get()
    assert (state.topics, state.partitions, state.under_min_isr, state.at_min_isr) == (0, 0, 0, 0)
    assert state.rack_violations == 0


def test_collection__longest_names_and_odd_racks__are_stored_as_they_are(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    name = "a." * 124 + "z"
    rack = "Gebäude 7, 2. Stock ☃"
    kafka.add(name, 0, 1, 2)
    kafka.racks[1] = rack
    kafka.set_config(name, "leader.replication.throttled.replicas", "0:1")
    for kind in ("metadata", "configs", "log_dirs"):
        assert refresh(kind).error == ""
    assert TopicState.objects.get().name == name
    assert BrokerState.objects.get(broker_id=1).rack == rack
    assert ThrottleState.objects.get().name == name
