"""Topics and brokers as the collector stores them: only what changed is written.

Configs and throttles as the collector stores them.

Log directories and API versions as the collectors store them.

Controllers and observers as the collector stores them: answers, and the status of each node when it changes.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable

import pytest
from cryptography.fernet import Fernet
from django.db import connection
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings
from structlog.testing import capture_logs

from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import coded
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    ClusterFeatures,
    ConfigResource,
    DeadlineExceeded,
    KafkaFailure,
    NotSupported,
    QuorumReplica,
    QuorumUnavailable,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    Capabilities,
    ClusterState,
    Collection,
    CollectorRun,
    ConfigDrift,
    PrincipalRights,
    QuorumReplicaState,
    QuorumSnapshot,
    ThrottleState,
    TopicState,
)
from tests.groups import group_seen
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import KRAFT_4_3, MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], RefreshOutcome]


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
    kafka.fail = DeadlineExceeded(KafkaErrorCode.BOOTSTRAP_SILENT, servers="127.0.0.1:1")
    refresh("metadata")
    run = CollectorRun.objects.get(cluster=cluster, kind="metadata")
    assert (run.succeeded_at, run.failures) == (good, 1)
    assert (run.last_failure, run.last_error) == (FailureKind.DEADLINE_EXCEEDED, kafka.fail.message)
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
    other = coded(ClusterErrorCode.OTHER_CLUSTER, cluster="memory", answered="kafka-2", expected="kafka-1")
    assert refresh("metadata").error == other
    assert refresh("quorum").error == other
    assert not TopicState.objects.filter(name="stranger").exists()
    kafka.cluster_id = "kafka-1"
    assert refresh("metadata").error is None
    assert refresh("quorum").error is None


def test_collection__kafka_cluster_is_registered_already__is_not_read_and_read_only(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    first = Cluster.objects.create(name="first", slug="first", bootstrap_servers="a:1", kafka_id="kafka-1")
    kafka.add("orders", 0, 1, 2)
    said = coded(ClusterErrorCode.SAME_CLUSTER, cluster="memory", other="first")
    assert refresh("metadata").error == said
    assert refresh("quorum").error == said
    cluster.refresh_from_db()
    assert (cluster.same_as, cluster.read_only, cluster.kafka_id) == (first, True, "")
    assert not TopicState.objects.exists()
    first.delete()
    assert refresh("metadata").error is None
    assert refresh("quorum").error is None
    cluster.refresh_from_db()
    assert (cluster.same_as, cluster.kafka_id) == (None, "kafka-1")
    assert cluster.read_only, "only an administrator ends that"


def test_collection__registered_twice_from_before__first_one_goes_on(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id="kafka-1")
    Cluster.objects.create(name="second", slug="second", bootstrap_servers="a:1", kafka_id="kafka-1")
    kafka.add("orders", 0, 1, 2)
    assert refresh("metadata").error is None
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


def test_collection__cluster_does_not_tell_fenced_brokers__neither_do_the_rows(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("metadata")
    changed_at = BrokerState.objects.get(broker_id=1).changed_at
    kafka.tells_fenced = False
    del kafka.racks[5]
    clock.pass_by(30)
    refresh("metadata")
    listed, gone = BrokerState.objects.get(broker_id=1), BrokerState.objects.get(broker_id=5)
    assert (listed.fenced, listed.gone_at, listed.changed_at) == (None, None, changed_at)
    assert (gone.fenced, gone.gone_at) == (None, gone.changed_at)
    kafka.tells_fenced = True
    refresh("metadata")
    assert BrokerState.objects.get(broker_id=5).fenced is False


def test_collection__no_topics__is_zero_and_not_unknown(kafka: MemoryCluster, refresh: Refresher) -> None:
    for kind in ("metadata", "configs", "log_dirs", "reassignments"):
        assert refresh(kind).error is None
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
        assert refresh(kind).error is None
    assert TopicState.objects.get().name == name
    assert BrokerState.objects.get(broker_id=1).rack == rack
    assert ThrottleState.objects.get().name == name


LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
LEADER_LIST = "leader.replication.throttled.replicas"
DISK_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"


@pytest.fixture
def orders(kafka: MemoryCluster, refresh: Refresher) -> str:
    """A topic that the metadata collector has seen; partition 1 has lost a replica."""
    kafka.add("orders", 0, 1, 2, 3)
    kafka.add("orders", 1, 2, 3, 4).isr = (2, 3)
    refresh("metadata")
    return "orders"


def test_configs__of_a_topic__are_stored_with_their_source_unless_they_are_the_default(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    kafka.set_config(orders, "retention.ms", "7200000")
    kafka.set_config(None, "min.insync.replicas", "2")
    refresh("configs")
    topic = TopicState.objects.get()
    assert topic.config == {"retention.ms": ["7200000", "topic"], "min.insync.replicas": ["2", "cluster_default"]}
    assert topic.min_isr == 2


def test_configs__of_brokers__are_stored_with_the_time_they_were_read(
    kafka: MemoryCluster, refresh: Refresher, orders: str, clock: Clock
) -> None:
    kafka.set_config(2, "num.io.threads", "16")
    refresh("configs")
    first = BrokerState.objects.get(broker_id=2)
    assert first.config == {"num.io.threads": ["16", "broker"]}
    clock.pass_by(30)
    refresh("configs")
    again = BrokerState.objects.get(broker_id=2)
    assert first.config_at is not None
    assert again.config_at is not None
    assert (again.config_at - first.config_at).total_seconds() == pytest.approx(30)
    assert again.changed_at == first.changed_at


def test_configs__min_insync_replicas__decides_who_is_under_and_who_is_at_it(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    assert TopicState.objects.get().under_min_isr is None
    assert ClusterState.objects.get().under_min_isr is None
    kafka.set_config(orders, "min.insync.replicas", "3")
    refresh("configs")
    assert (TopicState.objects.get().under_min_isr, TopicState.objects.get().at_min_isr) == (1, 1)
    state = ClusterState.objects.get()
    assert (state.under_min_isr, state.at_min_isr) == (1, 1)
    kafka.set_config(orders, "min.insync.replicas", "2")
    refresh("configs")
    refresh("metadata")
    state = ClusterState.objects.get()
    assert (state.under_min_isr, state.at_min_isr) == (0, 1)


def test_configs__permission_is_missing__config_is_unknown_and_the_rest_is_stored(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    kafka.set_config(1, LEADER_RATE, "1000")
    refresh("configs")
    kafka.add("payments", 0, 1, 2)
    refresh("metadata")
    kafka.denied = {ConfigResource.topic("orders"), ConfigResource.topic("payments")}
    result = refresh("configs")
    assert result.error is None
    topic = TopicState.objects.get(name="orders")
    assert (topic.config, topic.min_isr, topic.under_min_isr, topic.at_min_isr) == (None, None, None, None)
    assert ThrottleState.objects.get().value == "1000"
    last = Collection.objects.latest("pk")
    assert last.ok
    [told] = last.errors
    assert (told["code"], told["params"]["others"]) == (CollectionErrorCode.SAME_FOR_OTHERS, 1)


def test_configs__brokers_do_not_answer_in_time__nothing_is_taken_for_fresh(
    kafka: MemoryCluster, refresh: Refresher, orders: str, cluster: Cluster
) -> None:
    refresh("configs")
    good = CollectorRun.objects.get(cluster=cluster, kind="configs").succeeded_at
    late = DeadlineExceeded(KafkaErrorCode.NO_TIME_TO_CONNECT)
    kafka.fail_calls = {"describe_configs": late}
    assert refresh("configs").error == late.message
    assert CollectorRun.objects.get(cluster=cluster, kind="configs").succeeded_at == good


def test_configs__nothing_changed__no_topic_is_written(
    kafka: MemoryCluster, refresh: Refresher, orders: str, clock: Clock
) -> None:
    kafka.set_config(orders, "retention.ms", "7200000")
    refresh("configs")
    before = list(TopicState.objects.values())
    clock.pass_by(30)
    with CaptureQueriesContext(
        connection,
    ) as queries:
        refresh("configs")
    assert list(TopicState.objects.values()) == before
    assert not [q["sql"] for q in queries if q["sql"].startswith('UPDATE "monitoring_topicstate"')]


def test_throttles__that_are_set__have_value_source_and_times(
    kafka: MemoryCluster, refresh: Refresher, orders: str, clock: Clock
) -> None:
    kafka.set_config(orders, LEADER_LIST, "0:1,0:2")
    kafka.set_config(2, LEADER_RATE, "5000000")
    kafka.set_config(None, FOLLOWER_RATE, "6000000")
    refresh("configs")
    rows = ThrottleState.objects.order_by("resource").values_list("resource", "name", "key", "value", "source")
    assert list(rows) == [
        ("broker", "2", LEADER_RATE, "5000000", "broker"),
        ("cluster", "", FOLLOWER_RATE, "6000000", "cluster_default"),
        ("topic", "orders", LEADER_LIST, "0:1,0:2", "topic"),
    ]
    first = ThrottleState.objects.get(resource="broker")
    clock.pass_by(30)
    kafka.set_config(2, LEADER_RATE, "7000000")
    refresh("configs")
    changed = ThrottleState.objects.get(resource="broker")
    assert (changed.pk, changed.value, changed.first_seen_at) == (first.pk, "7000000", first.first_seen_at)
    assert (changed.changed_at - first.changed_at).total_seconds() == pytest.approx(30)
    assert changed.read_at == changed.changed_at


def test_throttles__taken_away__have_no_row(kafka: MemoryCluster, refresh: Refresher, orders: str) -> None:
    kafka.set_config(orders, LEADER_LIST, "")
    kafka.set_config(2, LEADER_RATE, "5000000")
    refresh("configs")
    assert ThrottleState.objects.get(resource="topic").value == ""
    kafka.set_config(orders, LEADER_LIST, None)
    kafka.set_config(2, LEADER_RATE, None)
    refresh("configs")
    assert not ThrottleState.objects.exists()


def test_throttles__topic_is_deleted__its_list_goes(kafka: MemoryCluster, refresh: Refresher, orders: str) -> None:
    kafka.set_config(orders, LEADER_LIST, "*")
    refresh("configs")
    kafka.delete(orders)
    refresh("configs")
    assert not ThrottleState.objects.exists()


@pytest.mark.parametrize("away", ["silent", "fenced", "gone"])
def test_throttles__broker_cannot_be_asked__its_rate_stays_with_its_age(
    away: str, kafka: MemoryCluster, refresh: Refresher, orders: str, clock: Clock
) -> None:
    kafka.set_config(2, LEADER_RATE, "5000000")
    refresh("configs")
    before = ThrottleState.objects.get()
    clock.pass_by(30)
    if away == "gone":
        del kafka.racks[2]
    else:
        setattr(kafka, away, {2})
    refresh("configs")
    row = ThrottleState.objects.get()
    assert (row.value, row.read_at) == ("5000000", before.read_at)
    last = Collection.objects.latest("pk")
    assert last.not_answered == ([] if away == "gone" else [2])
    assert len(last.errors) == len(last.not_answered)


def test_throttles__needed_by_nothing_in_two_refreshes__are_orphans(
    kafka: MemoryCluster, refresh: Refresher, orders: str, clock: Clock
) -> None:
    kafka.set_config(orders, LEADER_LIST, "0:1")
    kafka.set_config(2, LEADER_RATE, "5000000")
    refresh("configs")
    assert not ThrottleState.objects.filter(orphan=True).exists()
    assert ThrottleState.objects.filter(unneeded_since__isnull=False).count() == 2
    since = ThrottleState.objects.get(resource="topic").unneeded_since
    clock.pass_by(30)
    refresh("configs")
    assert ThrottleState.objects.filter(orphan=True).count() == 2
    assert ThrottleState.objects.get(resource="topic").unneeded_since == since
    assert ClusterState.objects.get().orphan_throttles == 2
    kafka.move("orders", 0, 4, 2, 3)
    refresh("configs")
    assert not ThrottleState.objects.filter(orphan=True).exists()
    assert ClusterState.objects.get().orphan_throttles == 0


def test_throttles__of_a_run_of_ours__are_no_orphans_while_it_claims_them(
    kafka: MemoryCluster, refresh: Refresher, orders: str, clock: Clock
) -> None:
    kafka.set_config(2, LEADER_RATE, "5000000")
    refresh("configs")
    for _ in range(3):
        ThrottleState.objects.update(claimed_by="#42")
        clock.pass_by(30)
        refresh("configs")
        row = ThrottleState.objects.get()
        assert (row.unneeded_since, row.orphan) == (None, False)
    assert ThrottleState.objects.get().claimed_by == "", "no run has it in its ledger, so it is nobody's from now on"
    refresh("configs")
    assert not ThrottleState.objects.get().orphan
    clock.pass_by(30)
    refresh("configs")
    assert ThrottleState.objects.get().orphan


@pytest.mark.parametrize(
    ("owner", "key", "value", "needed"),
    [
        ("orders", LEADER_LIST, "0:1", True),
        ("orders", LEADER_LIST, "*", True),
        ("orders", LEADER_LIST, "1:2,0:1", True),
        ("orders", LEADER_LIST, "1:2", False),
        ("orders", LEADER_LIST, "", True),
        ("payments", LEADER_LIST, "*", False),
        (4, FOLLOWER_RATE, "1", True),
        (5, FOLLOWER_RATE, "1", False),
        (None, FOLLOWER_RATE, "1", True),
        (1, DISK_RATE, "1", True),
        (2, DISK_RATE, "1", False),
        (None, DISK_RATE, "1", True),
    ],
)
def test_throttles__one_partition_moves__only_what_concerns_it_is_needed(
    owner: str | int | None, key: str, value: str, needed: bool, kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    """Partition 0 of orders moves from 1, 2, 3 to 4, 2, 3, and broker 1 copies a replica between its directories."""
    kafka.add("payments", 0, 1, 2)
    refresh("metadata")
    kafka.move("orders", 0, 4, 2, 3)
    kafka.copying = {1}
    refresh("log_dirs")
    kafka.set_config(owner, key, value)
    refresh("configs")
    refresh("configs")
    assert ThrottleState.objects.get().orphan is not needed


def test_throttles__copies_between_disks_are_not_known__the_rate_counts_as_needed(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    kafka.set_config(1, DISK_RATE, "1")
    refresh("configs")
    refresh("configs")
    assert not ThrottleState.objects.get().orphan


def test_throttles__reassignments_cannot_be_listed__nobody_is_called_an_orphan(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    kafka.set_config(orders, LEADER_LIST, "0:1")
    refresh("configs")
    kafka.fail_calls = {"list_reassignments": QuorumUnavailable(KafkaErrorCode.NO_CONTROLLER)}
    assert refresh("configs").error is None
    assert not ThrottleState.objects.get().orphan
    why = coded(KafkaErrorCode.NO_CONTROLLER)
    assert Collection.objects.latest("pk").errors == [coded(CollectionErrorCode.THROTTLES_IN_DOUBT, why=why).as_json()]


def test_throttles__cluster_default_may_not_be_read__keeps_its_row(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    kafka.set_config(None, FOLLOWER_RATE, "6000000")
    refresh("configs")
    kafka.denied = {CLUSTER_DEFAULT}
    refresh("configs")
    assert ThrottleState.objects.get().value == "6000000"


def test_log_dirs__every_broker_answers__sizes_per_broker_and_topic(kafka: MemoryCluster, refresh: Refresher) -> None:
    kafka.add("orders", 0, 1, 2).size = 1_234_567
    refresh("metadata")
    refresh("log_dirs")
    weights = BrokerWeights.objects.get(broker_id=1)
    assert json.loads(zlib.decompress(weights.data)) == {"orders": {"0": 1_234_567}}
    assert weights.replica_bytes == 1_234_567
    assert weights.dirs[0]["usable_bytes"] == 9_000_000_000
    assert TopicState.objects.get().size_bytes == 2_500_000


def test_log_dirs__one_broker_is_silent__topic_keeps_its_size_and_the_broker_its_age(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    refresh("log_dirs")
    before = BrokerWeights.objects.get(broker_id=2).taken_at
    kafka.silent = {2}
    refresh("log_dirs")
    assert TopicState.objects.get().size_bytes == 2_000_000
    assert BrokerWeights.objects.get(broker_id=2).taken_at == before
    last = Collection.objects.latest("pk")
    assert (last.ok, last.not_answered) == (True, [2])
    assert last.errors == [
        coded(CollectionErrorCode.BROKER_NOT_READ, broker=2, why=last.messages[0].params["why"]).as_json()
    ]


@pytest.mark.parametrize("away", ["fenced", "gone", "bad_directories"])
def test_log_dirs__part_of_the_replicas_cannot_be_read__topic_keeps_its_size(
    away: str, kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    refresh("metadata")
    refresh("log_dirs")
    if away == "gone":
        del kafka.racks[2]
        refresh("metadata")
    else:
        setattr(kafka, away, {2})
    refresh("log_dirs")
    assert TopicState.objects.get().size_bytes == 2_000_000
    last = Collection.objects.latest("pk")
    assert last.not_answered == ([2] if away == "fenced" else [])
    assert len(last.errors) == (0 if away == "gone" else 1)


def test_log_dirs__each_directory__says_whether_it_is_cordoned_or_broken_and_what_is_copied_to_it(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 1, 2)
    kafka.bad_directories, kafka.copying = {2}, {1}
    refresh("log_dirs")
    dirs = {row.broker_id: row.dirs[0] for row in BrokerWeights.objects.all()}
    assert (dirs[1]["replicas"], dirs[1]["copies"], dirs[1]["cordoned"]) == (2, 1, False)
    assert (dirs[2]["total_bytes"], dirs[2]["usable_bytes"]) == (None, None)
    assert "KAFKA_STORAGE_ERROR" in dirs[2]["error"]
    assert dirs[5]["cordoned"] is True


def test_versions__what_all_brokers_can_do__is_kept_with_the_levels_in_force(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("metadata")
    refresh("versions")
    first = Capabilities.objects.get()
    assert first.apis == {"35": [1, 5], "45": [0, 1], "55": [0, 2], "60": [0, 2]}
    assert first.features == {
        "group.version": {"finalized": None, "supported": [0, 1]},
        "metadata.version": {"finalized": 30, "supported": [7, 30]},
    }
    assert first.releases == dict.fromkeys("12345", "4.3")
    clock.pass_by(600)
    refresh("versions")
    assert Capabilities.objects.get().changed_at == first.changed_at


def test_versions__rights_of_the_principal__are_kept_while_kafka_does_not_tell(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    for topic in ("orders", "clicks", "audit"):
        kafka.add(topic, 0, 1)
    kafka.granted_on["audit"] = frozenset({"Describe"})
    cluster = Cluster.objects.get()
    for group in ("billing", "reports", "silent"):
        group_seen(cluster, group)
    kafka.not_described = {"silent"}
    refresh("metadata")
    refresh("versions")
    rights = PrincipalRights.objects.get()
    every = ["Alter", "AlterConfigs", "Create", "Delete", "Describe", "DescribeConfigs"]
    assert (rights.on_cluster, rights.on_topics) == (
        every,
        {"usual": every, "others": {"audit": ["Describe"]}, "names": ["audit", "clicks", "orders"]},
    )
    assert rights.on_groups == {"usual": every, "others": {"silent": None}, "names": ["billing", "reports", "silent"]}
    kafka.fail_calls = {"permissions": NotSupported(KafkaErrorCode.NOT_OFFERED, what="DescribeCluster")}
    clock.pass_by(600)
    assert refresh("versions").error is None
    assert PrincipalRights.objects.get().taken_at == rights.taken_at


def test_versions__one_broker_is_older__the_cluster_can_only_do_what_it_can(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    refresh("metadata")
    kafka.versions[3] = {35: (1, 4), 45: (0, 0), 55: (0, 2), 60: (0, 1), 99: (0, 0)}
    refresh("versions")
    capable = Capabilities.objects.get()
    assert capable.apis == {"35": [1, 4], "45": [0, 0], "55": [0, 2], "60": [0, 1]}
    assert (capable.releases["2"], capable.releases["3"]) == ("4.3", "3.9")
    assert ClusterState.objects.get().kafka_version == "3.9 or newer"
    assert dict(BrokerState.objects.values_list("broker_id", "release"))[3] == "3.9"
    kafka.silent = {3}
    refresh("versions")
    silent = Capabilities.objects.get()
    assert (silent.apis, silent.releases["3"]) == (capable.apis, "3.9")
    assert ClusterState.objects.get().kafka_version == "3.9 or newer"
    assert Collection.objects.latest("pk").not_answered == [3]


def test_versions__silent_or_stopped_broker__counts_with_what_it_told_last(
    kafka: MemoryCluster, refresh: Refresher
) -> None:
    kafka.add("orders", 0, 2, 3)
    kafka.features[3] = ClusterFeatures({"metadata.version": (7, 21)}, {}, None)
    refresh("metadata")
    kafka.silent = {4}
    refresh("versions")
    first = Capabilities.objects.get()
    assert (first.apis, first.features["metadata.version"]["supported"]) == ({}, [7, 21])
    assert "4" not in first.releases
    kafka.silent = set()
    del kafka.racks[3]
    refresh("metadata")
    refresh("versions")
    then = Capabilities.objects.get()
    assert (then.apis["45"], then.features["metadata.version"]["supported"]) == ([0, 1], [7, 21])
    assert then.releases == dict.fromkeys("12345", "4.3")


def test_versions__brokers_that_differ__are_grouped_and_keep_the_time(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("metadata")
    refresh("versions")
    [every] = Capabilities.objects.get().software
    assert (every["brokers"], every["release"], Capabilities.objects.get().mixed_since) == (
        [1, 2, 3, 4, 5],
        "4.3",
        None,
    )
    kafka.versions[3] = {35: (1, 4), 55: (0, 2), 60: (0, 2)}
    clock.pass_by(600)
    refresh("versions")
    first = Capabilities.objects.get()
    assert [(each["brokers"], each["apis"].get("35")) for each in first.software] == [
        ([1, 2, 4, 5], [1, 5]),
        ([3], [1, 4]),
    ]
    kafka.silent = {3}
    kafka.versions[4] = kafka.versions[3]
    clock.pass_by(600)
    refresh("versions")
    then = Capabilities.objects.get()
    assert [each["brokers"] for each in then.software] == [[1, 2, 5], [3, 4]], "broker 3 stays where it was"
    assert then.mixed_since == first.mixed_since
    kafka.silent, kafka.versions = set(), {}
    refresh("versions")
    assert Capabilities.objects.get().mixed_since is None


def test_configs__that_differ_between_brokers__are_kept_with_the_time(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """Throttles and other keys of single brokers may differ; a value that says what is Kafka's default does not."""
    refresh("metadata")
    for broker in (1, 2):
        kafka.set_config(broker, "num.io.threads", "16")
    kafka.set_config(3, "num.io.threads", "8")
    kafka.set_config(1, "leader.replication.throttled.rate", "1000")
    kafka.set_config(1, "listener.name.internal.ssl.keystore.location", "/one")
    began = round(clock(), 3)
    refresh("configs")
    assert ConfigDrift.objects.get().keys == {
        "num.io.threads": [began, [["16", "broker", [1, 2]], ["8", "broker", [3]]]]
    }
    clock.pass_by(600)
    kafka.silent = {3}
    kafka.set_config(2, "num.io.threads", "x" * 600)
    refresh("configs")
    assert ConfigDrift.objects.get().keys["num.io.threads"] == [
        began,
        [["16", "broker", [1]], ["x" * 500, "broker", [2]], ["8", "broker", [3]]],
    ]
    kafka.silent = set()
    for broker in (1, 2):
        kafka.set_config(broker, "num.io.threads", "8")
    refresh("configs")
    assert ConfigDrift.objects.get().keys == {}


def test_versions__kraft_brokers__teach_mode_and_release(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    refresh("versions")
    cluster.refresh_from_db()
    assert cluster.mode == "kraft"
    assert ClusterState.objects.get().kafka_version == "4.3 or newer"


def test_versions__brokers_of_both_modes__are_a_cluster_with_zookeeper(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster
) -> None:
    """In a migration from ZooKeeper brokers become KRaft ones one by one, and may go back."""
    with_zookeeper = {key: levels for key, levels in KRAFT_4_3.items() if key != 55}
    seen = []
    for versions in ({2: with_zookeeper, 3: with_zookeeper}, {3: with_zookeeper}, {}, {3: with_zookeeper}):
        kafka.versions = versions
        refresh("versions")
        cluster.refresh_from_db()
        seen.append(cluster.mode)
    assert seen == ["zookeeper", "zookeeper", "kraft", "zookeeper"]


def test_any_kind__credentials_cannot_be_decrypted__says_so_instead_of_asking(
    kafka: MemoryCluster, refresh: Refresher, cluster: Cluster, settings: Settings
) -> None:
    cluster.security_protocol, cluster.sasl_password = "SASL_PLAINTEXT", "planted"
    cluster.save(update_fields=["security_protocol", "sasl_password"])
    settings.FIELD_KEYS = [Fernet.generate_key().decode()]
    result = refresh("quorum")
    assert result.error is not None
    assert result.error.code is ClusterErrorCode.SECRET_UNREADABLE
    assert Collection.objects.latest("pk").errors == [result.error.as_json()]


HOUR_MS = 3_600_000


def heard(node: int, clock: Clock, behind_ms: int = 0, offset_ms: int = 0) -> QuorumReplica:
    """A node whose stamps are ``behind_ms`` old on the leader's clock, which is ``offset_ms`` ahead of ours."""
    then = round(clock.now * 1000) + offset_ms - behind_ms
    return QuorumReplica(node, f"d{node}", 500, then, then)


def unheard(node: int) -> QuorumReplica:
    return QuorumReplica(node, f"d{node}", None, None, None)


def statuses() -> dict[int, str]:
    return dict(QuorumReplicaState.objects.values_list("node_id", "status"))


def test_quorum__each_answer__is_a_snapshot_with_voters_and_observers(kafka: MemoryCluster, refresh: Refresher) -> None:
    refresh("quorum")
    refresh("quorum")
    snapshot = QuorumSnapshot.objects.latest("pk")
    assert QuorumSnapshot.objects.count() == 2
    assert snapshot.leader_id == 1
    assert [(r["id"], r["voter"]) for r in snapshot.replicas][:2] == [(1, True), (2, False)]


def test_status__nothing_changed__is_not_written_again(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    refresh("quorum")
    before = list(QuorumReplicaState.objects.order_by("pk").values())
    assert statuses() == {1: "Leader", 2: "In sync", 3: "In sync", 4: "In sync", 5: "In sync"}
    clock.pass_by(10)
    refresh("quorum")
    assert list(QuorumReplicaState.objects.order_by("pk").values()) == before


def test_status__changes__is_written_with_the_time(kafka: MemoryCluster, refresh: Refresher, clock: Clock) -> None:
    kafka.voters = [heard(1, clock), heard(2, clock), heard(3, clock)]
    kafka.observers = []
    refresh("quorum")
    clock.pass_by(10)
    kafka.voters = [heard(1, clock), heard(2, clock, behind_ms=2500), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Leader", 2: "Lagging", 3: "In sync"}
    lagging, other = QuorumReplicaState.objects.get(node_id=2), QuorumReplicaState.objects.get(node_id=3)
    assert (lagging.changed_at - other.changed_at).total_seconds() == pytest.approx(10)
    assert lagging.first_seen_at == other.first_seen_at


def test_status__node_is_no_longer_listed__is_gone_and_not_healthy(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    refresh("quorum")
    kafka.observers = [heard(2, clock)]
    refresh("quorum")
    assert statuses() == {1: "Leader", 2: "In sync", 3: "Gone", 4: "Gone", 5: "Gone"}
    kafka.observers = [heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses()[3] == "In sync"


def test_status__after_a_change_of_the_leader__is_unknown_until_the_node_was_heard_or_15_seconds_passed(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.voters, kafka.observers = [heard(1, clock), heard(2, clock), heard(3, clock)], []
    refresh("quorum")
    clock.pass_by(10)
    kafka.leader, kafka.leader_epoch = 2, 4
    kafka.voters = [unheard(1), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Unknown", 2: "Leader", 3: "In sync"}
    clock.pass_by(16)
    kafka.voters = [unheard(1), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Offline", 2: "Leader", 3: "In sync"}
    history = QuorumSnapshot.objects.order_by("pk").values_list("leader_id", "leader_epoch")
    assert list(history) == [(1, 3), (2, 4), (2, 4)]


def test_status__static_voters__are_the_same_before_and_after_their_directory_ids_are_known(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    """A new leader learns the directory ids of static voters only when they fetch from it."""
    kafka.voters, kafka.observers = [heard(1, clock), heard(2, clock), heard(3, clock)], []
    refresh("quorum")
    clock.pass_by(10)
    kafka.leader, kafka.leader_epoch = 2, 4
    kafka.voters = [QuorumReplica(1, "", None, None, None), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    assert statuses() == {1: "Unknown", 2: "Leader", 3: "In sync"}
    clock.pass_by(10)
    kafka.voters = [heard(1, clock), heard(2, clock), heard(3, clock)]
    refresh("quorum")
    rows = QuorumReplicaState.objects.order_by("node_id").values_list("node_id", "directory_id", "status")
    assert list(rows) == [(1, "d1", "In sync"), (2, "d2", "Leader"), (3, "d3", "In sync")]


def test_status__a_voter_with_a_new_directory__is_another_one(
    kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.voters, kafka.observers = [heard(1, clock), heard(2, clock)], []
    refresh("quorum")
    clock.pass_by(10)
    kafka.voters = [heard(1, clock), QuorumReplica(2, "fresh", None, None, None)]
    refresh("quorum")
    rows = QuorumReplicaState.objects.filter(node_id=2).values_list("directory_id", "status")
    assert dict(rows)["d2"] == "Gone"
    assert set(dict(rows)) == {"d2", "fresh"}


@pytest.mark.parametrize("offset_ms", [-HOUR_MS, HOUR_MS])
def test_status__clocks_an_hour_apart__is_judged_on_the_leaders_alone(
    offset_ms: int, kafka: MemoryCluster, refresh: Refresher, clock: Clock
) -> None:
    kafka.voters = [
        heard(1, clock, offset_ms=offset_ms),
        heard(2, clock, behind_ms=300, offset_ms=offset_ms),
        heard(3, clock, behind_ms=301_000, offset_ms=offset_ms),
    ]
    kafka.observers = []
    refresh("quorum")
    assert statuses() == {1: "Leader", 2: "In sync", 3: "Offline"}
    assert QuorumSnapshot.objects.get().taken_at.timestamp() == pytest.approx(clock.now)


@pytest.mark.parametrize(
    ("failure", "level"),
    [
        (NotSupported(KafkaErrorCode.NO_QUORUM_TO_DESCRIBE), "debug"),
        (QuorumUnavailable(KafkaErrorCode.NO_CONTROLLER), "warning"),
    ],
)
def test_quorum__that_is_not_there__is_no_warning_at_each_refresh(
    kafka: MemoryCluster, refresh: Refresher, failure: KafkaFailure, level: str
) -> None:
    kafka.fail_calls = {"quorum": failure}
    with capture_logs() as logs:
        refresh("quorum")
    assert [each["log_level"] for each in logs if each["event"] == "collection.failed"] == [level]
