"""Older clusters: every version that is offered is spoken, and what a version does not have is unknown."""

from collections.abc import Callable

import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import NotSupported, OffsetKind, OffsetQuery
from tests.contract.backends import RACKS
from tests.contract.fake_answers import (
    API_VERSIONS,
    DESCRIBE_CLUSTER,
    DESCRIBE_LOG_DIRS,
    DESCRIBE_QUORUM,
    LIST_OFFSETS,
    LIST_REASSIGNMENTS,
    METADATA,
)
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel, Mode

pytestmark = pytest.mark.contract

DEADLINE = 10.0


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[Connection], WireAdmin]) -> WireAdmin:
    return connect(Connection("fake", 1, fake.bootstrap_servers))


@pytest.mark.parametrize("version", range(5, 14))
def test_metadata(version: int, fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[METADATA] = (version, version)
    topic = fake.model.add_topic("t", [[1, 2], [2, 3]])

    told = admin.metadata(deadline=DEADLINE)

    assert [p.replicas for p in told.topics[0].partitions] == [(1, 2), (2, 3)]
    assert told.topics[0].partitions[0].leader_epoch == (0 if version >= 7 else None)
    assert told.topics[0].topic_id == (str(topic.id) if version >= 10 else "")
    assert admin.metadata(deadline=DEADLINE, topics=["t"]).topics == told.topics


def test_metadata_that_could_create_a_topic_is_not_asked_for(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[METADATA] = (0, 3)

    with pytest.raises(NotSupported):
        admin.metadata(deadline=DEADLINE, topics=["t"])


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_cluster(version: int, fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[DESCRIBE_CLUSTER] = (version, version)
    fake.model.fence(3)

    cluster = admin.describe_cluster(deadline=DEADLINE)

    assert [(b.id, b.fenced) for b in cluster.brokers] == (
        [(1, False), (2, False), (3, True)] if version == 2 else [(1, None), (2, None)]
    )


def test_without_describe_cluster_metadata_tells_the_brokers(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[DESCRIBE_CLUSTER] = None

    cluster = admin.describe_cluster(deadline=DEADLINE)

    assert cluster.cluster_id == fake.model.cluster_id
    assert [(b.id, b.rack, b.fenced) for b in cluster.brokers] == [(i + 1, RACKS[i], None) for i in range(3)]


@pytest.mark.parametrize("version", range(1, 6))
def test_log_dirs(version: int, fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[DESCRIBE_LOG_DIRS] = (version, version)
    fake.model.add_topic("t", [[1]], records=3)

    first, _ = admin.log_dirs([1], deadline=DEADLINE).brokers[1]

    assert [replica.size_bytes for replica in first.replicas] == [3000]
    assert (first.total_bytes is not None) == (version >= 4)
    assert (first.usable_bytes is not None) == (version >= 4)
    assert first.cordoned == (False if version >= 5 else None)


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets(version: int, fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[LIST_OFFSETS] = (version, version)
    fake.model.add_topic("t", [[1, 2]], records=3)
    query = OffsetQuery(2, "t", 0, OffsetKind.LATEST)

    assert admin.replica_offsets([query], deadline=DEADLINE).offsets[query].offset == 3


@pytest.mark.parametrize("version", [0, 1, 2])
def test_describe_quorum(version: int, fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[DESCRIBE_QUORUM] = (version, version)

    quorum = admin.quorum(deadline=DEADLINE)

    assert quorum.leader_id == 101
    for replica in [*quorum.voters, *quorum.observers]:
        assert replica.log_end_offset == 100
        assert (replica.last_fetch_ms is not None) == (version >= 1)
        assert (replica.last_caught_up_ms is not None) == (version >= 1)
        assert bool(replica.directory_id) == (version >= 2)


@pytest.mark.parametrize("version", range(5))
def test_api_versions(version: int, fake: FakeKafka, admin: WireAdmin) -> None:
    """Also where the broker refuses the newest version first (KIP-511)."""
    fake.versions[API_VERSIONS] = (0, version)

    assert admin.api_versions(deadline=DEADLINE).brokers[1][API_VERSIONS] == (0, version)


def test_a_cluster_without_reassignments_says_so(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.versions[LIST_REASSIGNMENTS] = None

    with pytest.raises(NotSupported, match="ListPartitionReassignments"):
        admin.list_reassignments(deadline=DEADLINE)


def test_brokers_of_two_versions_are_each_spoken_to_in_their_own(
    fake: FakeKafka, connect: Callable[[Connection], WireAdmin]
) -> None:
    """In the middle of an upgrade; the older broker is the one that is met first."""
    admin = connect(Connection("fake", 1, fake.bootstrap_servers[1:2]))
    fake.model.add_topic("t", [[1, 2]], records=3)
    fake.versions_of[2] = {DESCRIBE_LOG_DIRS: (1, 3), LIST_OFFSETS: (1, 5)}
    queries = [OffsetQuery(broker, "t", 0, OffsetKind.LATEST) for broker in (1, 2)]

    directories = admin.log_dirs([1, 2], deadline=DEADLINE).brokers

    assert directories[1][0].total_bytes is not None
    assert directories[2][0].total_bytes is None
    assert admin.replica_offsets(queries, deadline=DEADLINE).offsets.keys() == set(queries)
    versions = admin.api_versions(deadline=DEADLINE).brokers
    assert (versions[1][DESCRIBE_LOG_DIRS], versions[2][DESCRIBE_LOG_DIRS]) == ((1, 5), (1, 3))


class TestZooKeeperMode:
    @pytest.fixture
    def old(self) -> FakeKafka:
        return FakeKafka(ClusterModel(3, controllers=[2], mode=Mode.ZOOKEEPER))

    def test_the_quorum_is_not_supported_and_not_asked_for(
        self, old: FakeKafka, connect: Callable[[Connection], WireAdmin]
    ) -> None:
        """A broker in ZooKeeper mode answers key 55 by dropping the connection."""
        with old:
            admin = connect(Connection("old", 1, old.bootstrap_servers))
            with pytest.raises(NotSupported, match="ZooKeeper"):
                admin.quorum(deadline=DEADLINE)
            assert DESCRIBE_QUORUM not in old.requests

    def test_reassignments_are_asked_of_the_controller(
        self, old: FakeKafka, connect: Callable[[Connection], WireAdmin]
    ) -> None:
        """Other brokers answer NOT_CONTROLLER: they do not forward."""
        with old:
            old.model.add_topic("t", [[1, 2]], records=3)
            old.model.reassign("t", 0, [3, 2])
            admin = connect(Connection("old", 1, old.bootstrap_servers))
            for _ in range(8):
                assert [row.adding for row in admin.list_reassignments(deadline=DEADLINE).rows] == [(3,)]
            assert admin.describe_cluster(deadline=DEADLINE).controller_id == 2
