"""Reads of znodes on a real ensemble, beside Kafka's own tools and what kazoo's client reads."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_digest_acl

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.kafka import znodes
from kafkadash.kafka.api import (
    ClusterConnection,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    KafkaUnreachable,
    NotAuthorized,
    OngoingReassignment,
    TopicPartition,
    ZooKeeperConnection,
)
from kafkadash.kafka.connect import close_all
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.mutations import WireClient
from kafkadash.kafka.znodes import ChangeNotice, OtherZooKeeper, ZooKeeperFacts
from kafkadash.kafka.zookeeper import open_session
from kafkadash.monitoring import collection
from kafkadash.monitoring.collectors import to_utc
from kafkadash.monitoring.models import (
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
    StartedFrom,
    ZooKeeperState,
)
from tests.contract.backends import RACKS
from tests.contract.conftest import asked_backends
from tests.contract.zookeeper_backend import ZooKeeperBackend
from tests.raised_codes import raises_code
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.kafka,
    pytest.mark.xdist_group("zookeeper"),
    pytest.mark.skipif("zookeeper" not in asked_backends(), reason="other clusters are asked for"),
]
DEADLINE_S = 5


@pytest.fixture(scope="module")
def raw_client(zookeeper: ZooKeeperBackend) -> Iterator[KazooClient]:
    client = KazooClient(",".join(zookeeper.zookeeper_servers))
    client.start(timeout=DEADLINE_S)
    yield client
    client.stop()
    client.close()


@pytest.fixture
def connection(zookeeper: ZooKeeperBackend) -> ZooKeeperConnection:
    return ZooKeeperConnection(zookeeper.zookeeper_servers, kafka_id=zookeeper.cluster_id())


def write_batch(client: KazooClient, rows: Sequence[tuple[str, int, Sequence[int]]]) -> None:
    """As kafka-reassign-partitions of Kafka before 2.4 did, with --zookeeper."""
    content = {
        "version": 1,
        "partitions": [{"topic": name, "partition": index, "replicas": list(target)} for name, index, target in rows],
    }
    data = json.dumps(content).encode()
    if client.exists(znodes.REASSIGN):
        client.set(znodes.REASSIGN, data)
    else:
        client.create(znodes.REASSIGN, data)


def test_brokers_topics_and_the_controller(
    zookeeper: ZooKeeperBackend, raw_client: KazooClient, connection: ZooKeeperConnection, topic_name: str
) -> None:
    zookeeper.create_topic(topic_name, [[1, 2], [2, 3]])
    zookeeper.set_config(topic_name, "retention.ms", "12345")
    with open_session(connection, deadline=DEADLINE_S) as session:
        brokers = znodes.read_brokers(session)
        topics = znodes.read_topics(session)
        facts = znodes.read_facts(session)
        configs = znodes.read_configs(session, znodes.TOPIC_CONFIGS, [topic_name, "no-such-topic"])
        assert znodes.check_cluster(session, connection) == zookeeper.cluster_id()
    assert [(broker.id, broker.rack) for broker in brokers] == list(zip(zookeeper.broker_ids, RACKS, strict=True))
    assert sorted(topics) == sorted(raw_client.get_children(znodes.TOPICS))
    told = [tuple(replicas) for _, replicas, _ in zookeeper.topic(topic_name)]
    assert list(topics[topic_name].replicas.values()) == told
    assert topics[topic_name].modified_ms == raw_client.get(f"{znodes.TOPICS}/{topic_name}")[1].mtime
    assert configs == {topic_name: json.loads(raw_client.get(f"{znodes.TOPIC_CONFIGS}/{topic_name}")[0])["config"]}
    assert configs[topic_name]["retention.ms"] == "12345"
    assert facts.controller is not None
    assert (facts.controller.broker_id, facts.controller.migrating) == (zookeeper.controller(), False)
    assert facts.controller_epoch == int(raw_client.get(znodes.CONTROLLER_EPOCH)[0])
    assert (facts.batch, facts.elections, facts.deletions) == (None, (), ())


def test_work_that_waits_for_the_controller(
    zookeeper: ZooKeeperBackend, raw_client: KazooClient, connection: ZooKeeperConnection, topic_name: str
) -> None:
    """Written as Kafka's tools of before write it, while the controller stands still; then it does both."""
    elected, deleted = f"{topic_name}-elected", f"{topic_name}-deleted"
    for name in (elected, deleted):
        zookeeper.create_topic(name, [[1, 2], [2, 1]])
    rows = [{"topic": elected, "partition": partition} for partition in (1, 0)]
    with zookeeper.frozen(zookeeper.controller()):
        raw_client.create(znodes.ELECT, json.dumps({"version": 1, "partitions": rows}).encode())
        raw_client.create(f"{znodes.DELETE}/{deleted}")
        facts = read_pending(connection)
    assert facts.elections == (TopicPartition(elected, 0), TopicPartition(elected, 1))
    assert facts.deletions == (deleted,)

    def is_done() -> bool:
        now = read_pending(connection)
        return (now.elections, now.deletions) == ((), ())

    wait_until(is_done, "the controller has done both")
    assert not raw_client.exists(f"{znodes.TOPICS}/{deleted}")


def read_pending(connection: ZooKeeperConnection) -> ZooKeeperFacts:
    with open_session(connection, deadline=DEADLINE_S) as session:
        return znodes.read_facts(session)


@contextmanager
def moving_both_ways(
    zookeeper: ZooKeeperBackend, raw_client: KazooClient, by_api: str, by_znode: str
) -> Iterator[None]:
    """Partition 0 of one topic moves through the API, that of the other through the znode, where partition 1 waits."""
    for name in (by_api, by_znode):
        zookeeper.create_topic(name, [[1, 2], [1, 2]], records=400)
    zookeeper.start_move(by_api, 0, [3, 2])
    zookeeper.throttle(by_znode)
    try:
        write_batch(raw_client, [(by_znode, 0, [3, 2])])
        wait_until(lambda: _moving(zookeeper, by_znode), "the controller starts the batch")
        assert raw_client.get(znodes.REASSIGN)[1].version == 0, "an original entry is known by it"
        write_batch(raw_client, [(by_znode, 0, [3, 2]), (by_znode, 1, [3, 2])])
        yield
    finally:
        raw_client.delete(znodes.REASSIGN)
        for name in (by_api, by_znode):
            zookeeper.cancel_move(name, 0)
        for broker in zookeeper.broker_ids:
            for side in ("follower", "leader"):
                zookeeper.set_config(broker, f"{side}.replication.throttled.rate", None)


def test_moves_by_either_way(
    zookeeper: ZooKeeperBackend, raw_client: KazooClient, connection: ZooKeeperConnection, topic_name: str
) -> None:
    by_api, by_znode = f"{topic_name}-api", f"{topic_name}-znode"
    with moving_both_ways(zookeeper, raw_client, by_api, by_znode):
        with open_session(connection, deadline=DEADLINE_S) as session:
            batch = znodes.read_batch(session)
            topics = znodes.read_topics(session, [by_api, by_znode])
        stat = raw_client.get(znodes.REASSIGN)[1]
        assert batch is not None
        assert (batch.czxid, batch.created_ms, batch.version) == (stat.czxid, stat.ctime, 1)
        assert batch.targets == {TopicPartition(by_znode, 0): (3, 2), TopicPartition(by_znode, 1): (3, 2)}
        assert [(row.topic, row.partition) for row in _moving(zookeeper, by_znode)] == [(by_znode, 0)]
        for row in (*_moving(zookeeper, by_api), *_moving(zookeeper, by_znode)):
            assert topics[row.topic].adding == {row.partition: row.adding}
            assert topics[row.topic].removing == {row.partition: row.removing}


@pytest.fixture
def cluster(db: None, zookeeper: ZooKeeperBackend) -> Iterator[Cluster]:
    """The real cluster, registered with its ZooKeeper."""
    yield Cluster.objects.create(
        name="Real",
        slug="real",
        bootstrap_servers=",".join(zookeeper.connection.bootstrap_servers),
        zookeeper=",".join(zookeeper.zookeeper_servers),
        kafka_id=zookeeper.cluster_id(),
    )
    close_all()


def collect(cluster: Cluster, kind: CollectorKind) -> None:
    run = CollectorRun.objects.get(cluster=cluster, kind=kind)
    result = collection.refresh(run.pk, only_if_due=False)
    assert result is not None
    assert result.error is None, result.error


@pytest.mark.django_db
def test_collection_tells_who_started_what_and_when(
    zookeeper: ZooKeeperBackend, raw_client: KazooClient, cluster: Cluster, topic_name: str
) -> None:
    """Started by Kafka's tool through the API, and by the legacy znode; one entry more waits for a new controller."""
    by_api, by_znode = f"{topic_name}-api", f"{topic_name}-znode"
    collection.ensure_runs()
    collect(cluster, CollectorKind.VERSIONS)
    cluster.refresh_from_db()
    assert cluster.mode == ClusterMode.ZOOKEEPER
    collect(cluster, CollectorKind.REASSIGNMENTS)
    state = ZooKeeperState.objects.get()
    assert (state.controller_id, state.error_code) == (zookeeper.controller(), "")
    with moving_both_ways(zookeeper, raw_client, by_api, by_znode):
        collect(cluster, CollectorKind.REASSIGNMENTS)
        listed = {(row.topic, row.partition): row for row in zookeeper.reassignments()}
        rows = {row.topic: row for row in ReassignmentSnapshot.objects.filter(outcome=MoveOutcome.RUNNING)}
        assert {(row.topic, row.partition) for row in rows.values()} == listed.keys()
        assert {name: row.started_through for name, row in rows.items()} == {by_api: "api", by_znode: "znode"}
        batch, written = raw_client.get(znodes.REASSIGN)[1], raw_client.get(f"{znodes.TOPICS}/{by_api}")[1]
        legacy, through_api = rows[by_znode], rows[by_api]
        assert (legacy.batch_id, legacy.started_from) == (f"{batch.czxid:#x}", StartedFrom.ZK_CTIME)
        assert legacy.started_before == legacy.started_after == to_utc(batch.ctime / 1000)
        assert through_api.started_from == StartedFrom.ZK_MTIME
        assert through_api.started_before == to_utc(written.mtime / 1000)
        assert through_api.started_after is not None
        assert through_api.started_after < through_api.started_before
        state.refresh_from_db()
        assert (state.batch_id, state.batch_count) == (legacy.batch_id, 2)
        assert state.queued == [[by_znode, 1, [3, 2]]]
        # As if ZooKeeper had not been read then.
        unread = {"started_after": None, "started_before": legacy.last_seen_at, "started_from": StartedFrom.FIRST_SEEN}
        first_sight = ReassignmentSnapshot.objects.filter(pk=legacy.pk)
        first_sight.update(**unread, started_through="", batch_id="")
        ZooKeeperState.objects.update(batch_id="")
        collect(cluster, CollectorKind.REASSIGNMENTS)
        told = ("started_after", "started_before", "started_from", "started_through", "batch_id")
        assert first_sight.values(*told).get() == {name: getattr(legacy, name) for name in told}


def _moving(zookeeper: ZooKeeperBackend, topic: str) -> list[OngoingReassignment]:
    return [row for row in zookeeper.reassignments() if row.topic == topic]


@pytest.mark.parametrize("way", ["stopped", "fenced"])
def test_the_throttle_of_a_broker_that_is_away_is_removed(
    zookeeper: ZooKeeperBackend,
    raw_client: KazooClient,
    connection: ZooKeeperConnection,
    connect: Callable[[ClusterConnection], WireClient],
    way: str,
) -> None:
    """The broker starts without it, or drops it when it goes on; its other configs stay."""
    away = next(broker for broker in zookeeper.broker_ids if broker != zookeeper.controller())
    kept, rate = "log.retention.ms", "follower.replication.throttled.rate"
    zookeeper.set_config(away, kept, "98765432")
    zookeeper.set_config(away, rate, "100000")
    wait_until(lambda: rate in zookeeper.configs(away), "the broker applies the rate")
    resource = ConfigResource.broker(away)
    removal = [ConfigChange(resource, rate, ConfigOperation.DELETE)]
    with getattr(zookeeper, way)(away):
        wait_until(lambda: not raw_client.exists(f"{znodes.BROKERS}/{away}"), "its session ends")
        other = connect(replace(zookeeper.connection, key="other", zookeeper=replace(connection, chroot="/none")))
        with pytest.raises(KafkaUnreachable):
            other.alter_configs(removal, deadline=DEADLINE_S)
        admin = connect(replace(zookeeper.connection, zookeeper=connection))
        for _ in range(2):
            changed = admin.alter_configs(removal, deadline=DEADLINE_S)
            assert (changed.done, changed.refused, changed.lost) == (frozenset({resource}), {}, {})
        path = f"{znodes.BROKER_CONFIGS}/{away}"
        assert json.loads(raw_client.get(path)[0]) == {"version": 1, "config": {kept: "98765432"}}
    wait_until(lambda: rate not in zookeeper.configs(away), "the broker drops the rate")
    assert zookeeper.configs(away)[kept][0] == "98765432"
    zookeeper.set_config(away, kept, None)


def test_a_write_that_is_refused_changes_nothing(
    raw_client: KazooClient, connection: ZooKeeperConnection, topic_name: str
) -> None:
    root = f"/{topic_name}"
    raw_client.create(root, b"old")
    raw_client.create(f"{root}/ours", b"")
    raw_client.create(f"{root}/protected", b"", acl=[make_digest_acl("writer", "s3cret", all=True)])
    refusals = [(f"{root}/protected", f"{root}/ours/n_"), (root, f"{root}/protected/n_")]
    with open_session(connection, deadline=DEADLINE_S) as session:
        [found] = session.read([root])
        assert found is not None
        for written, prefix in refusals:
            with raises_code(KafkaErrorCode.ZNODE_PROTECTED, NotAuthorized):
                session.replace(replace(found, path=written), b"new", ChangeNotice(prefix, b"{}"))
        missing = ChangeNotice(f"{root}/nowhere/n_", b"{}")
        assert not session.replace(found, b"new", missing)
        assert not session.replace(replace(found, version=5), b"new", ChangeNotice(f"{root}/ours/n_", b"{}"))
        assert raw_client.get(root)[0] == b"old"
        assert raw_client.get_children(f"{root}/ours") == []
        assert session.replace(found, b"new", ChangeNotice(f"{root}/ours/n_", b"told"))
    assert raw_client.get(root)[0] == b"new"
    [notice] = raw_client.get_children(f"{root}/ours")
    assert raw_client.get(f"{root}/ours/{notice}")[0] == b"told"
    with pytest.raises(NoAuthError):
        raw_client.set(f"{root}/ours/{notice}", b"")
    for path in (f"{root}/ours/{notice}", f"{root}/ours", f"{root}/protected", root):
        raw_client.delete(path)


def test_chroots_other_clusters_and_acls(
    zookeeper: ZooKeeperBackend, raw_client: KazooClient, connection: ZooKeeperConnection, topic_name: str
) -> None:
    servers, root = zookeeper.zookeeper_servers, f"/{topic_name}"
    content = json.dumps({"version": "1", "id": "another"}).encode()
    reader = [make_digest_acl("reader", "s3cret", read=True)]
    raw_client.ensure_path(f"{root}/cluster")
    raw_client.ensure_path(f"{root}{znodes.TOPICS}")
    raw_client.create(f"{root}{znodes.CLUSTER_ID}", content, acl=reader)
    with (
        raises_code(KafkaErrorCode.ZOOKEEPER_WITHOUT_KAFKA, OtherZooKeeper),
        open_session(ZooKeeperConnection(servers, chroot="/nothing-there"), deadline=DEADLINE_S),
    ):
        pass
    with (
        raises_code(KafkaErrorCode.ZNODE_PROTECTED, NotAuthorized, path=f"{root}{znodes.CLUSTER_ID}"),
        open_session(ZooKeeperConnection(servers, chroot=root), deadline=DEADLINE_S),
    ):
        pass
    allowed = ZooKeeperConnection(servers, root, "reader", "s3cret")
    with open_session(allowed, deadline=DEADLINE_S) as session:
        assert znodes.read_topics(session) == {}
    with (
        raises_code(KafkaErrorCode.ZOOKEEPER_OF_OTHER_CLUSTER, OtherZooKeeper, answered="another"),
        open_session(replace(allowed, kafka_id="own"), deadline=DEADLINE_S),
    ):
        pass
