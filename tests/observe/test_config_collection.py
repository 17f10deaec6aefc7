"""Configs and throttles as the collector stores them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.clusters.models import Cluster
from kafkadash.kafka.port import CLUSTER_DEFAULT, ConfigResource, DeadlineExceeded, QuorumUnavailable
from kafkadash.observe.collection import Refresh
from kafkadash.observe.models import BrokerState, ClusterState, Collection, CollectorRun, ThrottleState, TopicState
from tests.observe.conftest import Clock
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], Refresh]
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
    assert result.error == ""
    topic = TopicState.objects.get(name="orders")
    assert (topic.config, topic.min_isr, topic.under_min_isr, topic.at_min_isr) == (None, None, None, None)
    assert ThrottleState.objects.get().value == "1000"
    last = Collection.objects.latest("pk")
    assert last.ok
    assert last.errors == [
        "The principal needs DescribeConfigs on the topic (TOPIC_AUTHORIZATION_FAILED). The same for 1 more."
    ]


def test_configs__brokers_do_not_answer_in_time__nothing_is_taken_for_fresh(
    kafka: MemoryCluster, refresh: Refresher, orders: str, cluster: Cluster
) -> None:
    refresh("configs")
    good = CollectorRun.objects.get(cluster=cluster, kind="configs").succeeded_at
    kafka.fail_calls = {"describe_configs": DeadlineExceeded("No broker answered within 8 s.")}
    assert refresh("configs").error == "No broker answered within 8 s."
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
    assert not [q["sql"] for q in queries if q["sql"].startswith('UPDATE "observe_topicstate"')]


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
    kafka.fail_calls = {"list_reassignments": QuorumUnavailable("No controller answered.")}
    assert refresh("configs").error == ""
    assert not ThrottleState.objects.get().orphan
    assert Collection.objects.latest("pk").errors == [
        "whether throttles are still needed is not known: No controller answered."
    ]


def test_throttles__cluster_default_may_not_be_read__keeps_its_row(
    kafka: MemoryCluster, refresh: Refresher, orders: str
) -> None:
    kafka.set_config(None, FOLLOWER_RATE, "6000000")
    refresh("configs")
    kafka.denied = {CLUSTER_DEFAULT}
    refresh("configs")
    assert ThrottleState.objects.get().value == "6000000"
