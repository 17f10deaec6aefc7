"""Reassignments of a cluster with ZooKeeper: by which way they were started, and when; and what waits there."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.messages import coded, read_message
from kafkadash.kafka import znodes
from kafkadash.kafka.api import KafkaUnreachable
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring import znode_rates
from kafkadash.monitoring.collection import RefreshOutcome
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerState,
    Collection,
    MoveOutcome,
    ReassignmentSnapshot,
    StartedFrom,
    StartedThrough,
    ThrottleState,
    ZooKeeperState,
)
from kafkadash.monitoring.reassignments import ensemble as reading
from tests.memory_zookeeper import MemoryZooKeeper
from tests.monitoring.conftest import Clock
from tests.monitoring.memory_kafka import MemoryCluster

pytestmark = pytest.mark.django_db

Refresher = Callable[[str], RefreshOutcome]


@pytest.fixture
def ensemble(cluster: Cluster, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> MemoryZooKeeper:
    clock.now = math.ceil(clock.now)  # znodes have milliseconds
    Cluster.objects.filter(pk=cluster.pk).update(mode=ClusterMode.ZOOKEEPER, zookeeper="z:2181", kafka_id="kafka-1")
    ensemble = MemoryZooKeeper()
    ensemble.identify("kafka-1")
    ensemble.write(znodes.CONTROLLER, {"version": 2, "brokerid": 2, "timestamp": "5000", "kraftControllerEpoch": -1})
    ensemble.write(znodes.CONTROLLER_EPOCH, 9)
    monkeypatch.setattr(reading, "open_zookeeper", ensemble.open)
    monkeypatch.setattr(znode_rates, "open_zookeeper", ensemble.open)
    return ensemble


def write_batch(ensemble: MemoryZooKeeper, clock: Clock, *rows: tuple[str, int, Sequence[int]]) -> str:
    """The batch's id."""
    content = [{"topic": name, "partition": index, "replicas": target} for name, index, target in rows]
    return f"{ensemble.write(znodes.REASSIGN, {'version': 1, 'partitions': content}, ms_of(clock)).czxid:#x}"


def write_topic(ensemble: MemoryZooKeeper, clock: Clock, name: str, *moving: int, adding: int, removing: int) -> None:
    sets = {
        "adding_replicas": {str(partition): [adding] for partition in moving},
        "removing_replicas": {str(partition): [removing] for partition in moving},
    }
    ensemble.write(f"{znodes.TOPICS}/{name}", {"version": 3, "partitions": {}, **sets}, ms_of(clock))


def ms_of(clock: Clock) -> int:
    return int(clock.now * 1000)


def now_of(clock: Clock) -> datetime:
    return datetime.fromtimestamp(clock.now, UTC)


def row_of(partition: int = 0) -> ReassignmentSnapshot:
    return ReassignmentSnapshot.objects.get(topic="orders", partition=partition, outcome=MoveOutcome.RUNNING)


def start_of(row: ReassignmentSnapshot) -> tuple[str, datetime | None, datetime]:
    return row.started_from, row.started_after, row.started_before


def test_a_batch__is_known_by_its_czxid_and_started_at_its_ctime(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.add("orders", 1, 1, 2, 3)
    refresh("reassignments")
    clock.pass_by(7)
    begun = now_of(clock)
    batch = write_batch(ensemble, clock, ("orders", 0, [4, 2, 3]))
    kafka.move("orders", 0, 4, 2, 3)
    clock.pass_by(3)
    refresh("reassignments")
    row = row_of()
    assert start_of(row) == (StartedFrom.ZK_CTIME, begun, begun)
    assert (row.started_through, row.batch_id) == (StartedThrough.ZNODE, batch)
    write_batch(ensemble, clock, ("orders", 0, [4, 2, 3]), ("orders", 1, [4, 2, 3]))
    clock.pass_by(3)
    refresh("reassignments")
    state = ZooKeeperState.objects.get()
    assert (state.batch_id, state.batch_at, state.batch_count) == (batch, begun, 2)
    assert (state.queued, state.queued_count) == ([["orders", 1, [4, 2, 3]]], 1)
    last_look = now_of(clock)
    kafka.move("orders", 1, 4, 2, 3)
    clock.pass_by(3)
    refresh("reassignments")
    assert start_of(row_of(1)) == (StartedFrom.FIRST_SEEN, last_look, now_of(clock))
    assert row_of(1).batch_id == batch
    assert ZooKeeperState.objects.get().queued_count == 0


@pytest.mark.parametrize("late", ["reading", "listing", "both"])
def test_a_batch__that_was_not_read_when_its_move_was_first_listed__tells_the_start_later(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock, late: str
) -> None:
    """``listing``: the batch was read before Kafka listed its move."""
    kafka.add("orders", 0, 1, 2, 3)
    refresh("reassignments")
    clock.pass_by(7)
    begun = now_of(clock)
    batch = write_batch(ensemble, clock, ("orders", 0, [4, 2, 3]))
    if late != "reading":
        clock.pass_by(1)
        refresh("reassignments")
        assert ZooKeeperState.objects.get().batch_id == batch
    kafka.move("orders", 0, 4, 2, 3)
    clock.pass_by(3)
    if late != "listing":
        ensemble.failure = KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181")
        refresh("reassignments")
        assert row_of().started_from == StartedFrom.FIRST_SEEN
        ensemble.failure = None
        clock.pass_by(3)
    refresh("reassignments")
    row = row_of()
    assert start_of(row) == (StartedFrom.ZK_CTIME, begun, begun)
    assert (row.started_through, row.batch_id) == (StartedThrough.ZNODE, batch)
    assert (ReassignmentSnapshot.objects.count(), row.last_seen_at) == (1, now_of(clock))


def test_a_move__that_was_seen_before_the_batch_with_its_target__keeps_its_start(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    ensemble.failure = KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181")
    refresh("reassignments")
    first_seen = start_of(row_of())
    ensemble.failure = None
    clock.pass_by(3)
    write_batch(ensemble, clock, ("orders", 0, [4, 2, 3]))
    refresh("reassignments")
    assert start_of(row_of()) == first_seen
    assert first_seen[0] == StartedFrom.FIRST_SEEN


def test_another_batch_of_the_same_sets__is_another_reassignment(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    first = write_batch(ensemble, clock, ("orders", 0, [4, 2, 3]))
    refresh("reassignments")
    del ensemble.znodes[znodes.REASSIGN]
    clock.pass_by(2)
    second = write_batch(ensemble, clock, ("orders", 0, [4, 2, 3]))
    refresh("reassignments")
    ended = ReassignmentSnapshot.objects.exclude(outcome=MoveOutcome.RUNNING).get()
    assert (ended.batch_id, row_of().batch_id) == (first, second)
    assert first != second
    assert ended.outcome == MoveOutcome.UNKNOWN


def test_a_move_through_the_api__started_not_later_than_the_mtime_of_its_topic(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    """The last write may have been about other partitions, such as new ones."""
    kafka.add("orders", 0, 1, 2, 3)
    kafka.add("orders", 1, 1, 2, 3)
    refresh("reassignments")
    last_look = now_of(clock)
    clock.pass_by(7)
    kafka.move("orders", 0, 4, 2, 3)
    write_topic(ensemble, clock, "orders", 0, 1, adding=4, removing=1)
    written = now_of(clock)
    clock.pass_by(3)
    refresh("reassignments")
    assert start_of(row_of()) == (StartedFrom.ZK_MTIME, last_look, written)
    assert (row_of().started_through, row_of().batch_id) == (StartedThrough.API, "")
    last_look = now_of(clock)
    kafka.move("orders", 1, 4, 2, 3)
    clock.pass_by(1)
    refresh("reassignments")
    assert start_of(row_of(1)) == (StartedFrom.FIRST_SEEN, last_look, now_of(clock)), "its clock was behind"


def test_a_move_during_a_migration_to_kraft__started_before_its_znode_was_written(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    ensemble.write(znodes.CONTROLLER, {"version": 2, "brokerid": 3000, "kraftControllerEpoch": 4})
    kafka.add("orders", 0, 1, 2, 3)
    refresh("reassignments")
    last_look = now_of(clock)
    clock.pass_by(7)
    kafka.move("orders", 0, 4, 2, 3)
    write_topic(ensemble, clock, "orders", 0, adding=4, removing=1)
    written = now_of(clock)
    clock.pass_by(3)
    refresh("reassignments")
    assert start_of(row_of()) == (StartedFrom.ZK_MTIME, last_look, written)


def test_a_topic_znode_with_other_sets__tells_no_start(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    kafka.move("orders", 0, 4, 2, 3)
    write_topic(ensemble, clock, "orders", 0, adding=5, removing=1)
    write_batch(ensemble, clock, ("orders", 0, [5, 2, 3]))
    refresh("reassignments")
    assert start_of(row_of()) == (StartedFrom.FIRST_SEEN, None, now_of(clock))
    assert row_of().started_through == StartedThrough.API


def test_who_is_the_controller_and_what_is_pending(ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock) -> None:
    ensemble.write(znodes.ELECT, {"version": 1, "partitions": [{"topic": "orders", "partition": 2}]})
    ensemble.write(f"{znodes.DELETE}/old", {})
    refresh("reassignments")
    state = ZooKeeperState.objects.get()
    assert (state.controller_id, state.controller_epoch) == (2, 9)
    assert (state.elected_at, state.migrating) == (datetime.fromtimestamp(5, UTC), False)
    assert (state.elections, state.deletions, state.taken_at) == ([["orders", 2]], ["old"], now_of(clock))


def test_zookeeper_that_is_not_read__leaves_kafkas_listing_and_its_own_last_values(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.add("orders", 0, 1, 2, 3)
    refresh("reassignments")
    read_at = now_of(clock)
    ensemble.failure = KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181")
    kafka.move("orders", 0, 4, 2, 3)
    clock.pass_by(5)
    refresh("reassignments")
    assert (row_of().started_from, row_of().started_through) == (StartedFrom.FIRST_SEEN, "")
    state = ZooKeeperState.objects.get()
    assert (state.controller_id, state.taken_at, state.failed_at) == (2, read_at, read_at + timedelta(seconds=5))
    assert state.error == ensemble.failure.message
    [told] = Collection.objects.latest("pk").errors
    assert read_message(told) == coded(CollectionErrorCode.ZOOKEEPER_NOT_READ, why=ensemble.failure.message)
    ensemble.failure = None
    refresh("reassignments")
    state.refresh_from_db()
    assert not state.error_code
    assert state.failed_at is None
    assert row_of().started_through == StartedThrough.API


def test_another_clusters_zookeeper__tells_nothing(ensemble: MemoryZooKeeper, refresh: Refresher) -> None:
    ensemble.identify("kafka-2")
    refresh("reassignments")
    state = ZooKeeperState.objects.get()
    assert (state.controller_id, state.taken_at) == (None, None)
    assert state.error is not None
    assert state.error.code == KafkaErrorCode.ZOOKEEPER_OF_OTHER_CLUSTER


def test_a_cluster_in_kraft_mode__is_not_looked_up_there(
    cluster: Cluster, ensemble: MemoryZooKeeper, refresh: Refresher
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(mode=ClusterMode.KRAFT)
    refresh("reassignments")
    assert ensemble.opened == []


RATE = "leader.replication.throttled.rate"


def set_in_znode(ensemble: MemoryZooKeeper, broker: int, **configs: str) -> None:
    content = {key.replace("_", "."): value for key, value in configs.items()}
    ensemble.write(f"{znodes.BROKER_CONFIGS}/{broker}", {"version": 1, "config": content})


def from_znodes() -> set[str]:
    return set(ThrottleState.objects.filter(from_znode=True).values_list("name", flat=True))


def throttles() -> dict[str, tuple[str, datetime]]:
    return {row.name: (row.value, row.read_at) for row in ThrottleState.objects.filter(key=RATE)}


def test_rates_of_a_broker_that_is_down__are_those_of_its_znode(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.set_config(2, RATE, "5000000")
    refresh("metadata")
    refresh("configs")
    read_at = now_of(clock)
    assert (throttles(), ensemble.opened) == ({"2": ("5000000", read_at)}, [])
    del kafka.racks[2]
    set_in_znode(ensemble, 2, leader_replication_throttled_rate="700000", log_retention_ms="1")
    clock.pass_by(30)
    refresh("configs")
    assert throttles() == {"2": ("700000", now_of(clock))}
    assert from_znodes() == {"2"}, "before the broker is seen to be gone"
    read_at = now_of(clock)
    ensemble.write(f"{znodes.BROKERS}/2", {"version": 5})  # it registered meanwhile, and answers for itself
    clock.pass_by(30)
    refresh("configs")
    assert throttles() == {"2": ("700000", read_at)}
    del ensemble.znodes[f"{znodes.BROKERS}/2"]
    ensemble.write(znodes.CONTROLLER, {"version": 2, "brokerid": 3000, "kraftControllerEpoch": 1})
    refresh("configs")
    assert throttles() == {"2": ("700000", read_at)}
    ensemble.failure = KafkaUnreachable(KafkaErrorCode.ZOOKEEPER_LOST, address="z:2181")
    refresh("configs")
    assert throttles() == {"2": ("700000", read_at)}
    assert from_znodes() == {"2"}
    [told] = Collection.objects.latest("pk").errors
    assert read_message(told) == coded(CollectionErrorCode.ZOOKEEPER_NOT_READ, why=ensemble.failure.message)
    ensemble.failure = None
    ensemble.write(znodes.CONTROLLER, {"version": 2, "brokerid": 3, "kraftControllerEpoch": -1})
    set_in_znode(ensemble, 2, log_retention_ms="1")
    refresh("configs")
    assert throttles() == {}


def test_rates_of_a_broker_that_is_long_gone__are_read_until_they_are_removed(
    cluster: Cluster, kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    kafka.set_config(2, RATE, "5000000")
    refresh("metadata")
    refresh("configs")
    del kafka.racks[2]
    set_in_znode(ensemble, 2, leader_replication_throttled_rate="5000000")
    BrokerState.objects.filter(cluster=cluster, broker_id=2).delete()  # as retention does
    clock.pass_by(30)
    refresh("configs")
    assert throttles() == {"2": ("5000000", now_of(clock))}
    set_in_znode(ensemble, 2, log_retention_ms="1")
    refresh("configs")
    assert throttles() == {}


def test_a_broker_that_only_hung__keeps_a_rate_that_was_removed__which_is_an_orphan(
    kafka: MemoryCluster, ensemble: MemoryZooKeeper, refresh: Refresher, clock: Clock
) -> None:
    """A broker reads its znode when it starts, and at the next change of its config."""
    kafka.set_config(2, RATE, "5000000")
    refresh("metadata")
    refresh("configs")
    rack = kafka.racks.pop(2)
    set_in_znode(ensemble, 2)
    refresh("configs")
    assert throttles() == {}, "removed from its znode while it hung"
    kafka.racks[2] = rack
    for _ in range(2):
        clock.pass_by(30)
        refresh("configs")
    row = ThrottleState.objects.get(key=RATE)
    assert (row.name, row.value, row.orphan, row.from_znode) == ("2", "5000000", True, False)
