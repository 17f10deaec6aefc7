"""Kafka's error codes: what they become, and that the sentence says what to do.

Older clusters: every version that is offered is spoken, and what a version does not have is unknown.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from kafkadash.kafka.api import (
    ClusterConnection,
    NotAuthorized,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    QuorumUnavailable,
    RequestFailed,
)
from kafkadash.kafka.error_codes import call_failure, code_name, item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.reads import WireAdmin
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
from tests.contract.fake_model import ClusterModel, Mode, QuorumState
from tests.raised_codes import raises_code

pytestmark = pytest.mark.contract

DEADLINE = 10.0


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]) -> WireAdmin:
    return connect(ClusterConnection("fake", 1, fake.bootstrap_servers))


def test_names_of_codes_are_kafkas() -> None:
    assert {code.value: code_name(code.value) for code in ErrorCode} == {
        code.value: code.name.upper() for code in ErrorCode
    }


def test_a_code_that_nobody_knows_keeps_its_number() -> None:
    code = random.randint(1000, 32000)

    failure = call_failure(code, "Metadata", permission="Describe on the topics")

    assert isinstance(failure, RequestFailed)
    assert (failure.number, failure.name) == (code, f"UNKNOWN_CODE_{code}")
    assert item_error(code, "Nothing").code == code


@pytest.mark.parametrize(
    ("code", "kind"),
    [(29, NotAuthorized), (31, NotAuthorized), (35, NotSupported), (7, QuorumUnavailable), (-1, QuorumUnavailable)],
)
def test_codes_of_a_call_become_their_own_failures(code: int, kind: type[Exception]) -> None:
    failure = call_failure(code, "DescribeQuorum", permission="Describe on the cluster", through_controller=True)

    assert type(failure) is kind
    assert "DescribeQuorum" in str(failure)
    assert code_name(code) in str(failure)


def test_a_missing_permission_names_operation_and_resource(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.denied.update((LIST_REASSIGNMENTS, DESCRIBE_QUORUM, DESCRIBE_LOG_DIRS))

    with raises_code(
        KafkaErrorCode.CALL_FORBIDDEN,
        NotAuthorized,
        request="ListPartitionReassignments",
        permission="Describe on the cluster",
    ):
        admin.list_reassignments(deadline=DEADLINE)
    with raises_code(
        KafkaErrorCode.CALL_FORBIDDEN, NotAuthorized, request="DescribeQuorum", permission="Describe on the cluster"
    ):
        admin.quorum(deadline=DEADLINE)
    refused = admin.log_dirs([1, 2], deadline=DEADLINE)
    assert not refused.brokers
    assert refused.errors[1].name == "CLUSTER_AUTHORIZATION_FAILED"
    assert "Describe on the cluster" in refused.errors[1].text


def test_an_empty_list_of_directories_is_not_taken_for_an_empty_broker(fake: FakeKafka, admin: WireAdmin) -> None:
    """Before DescribeLogDirs v3 a refusal has no error code."""
    fake.versions[DESCRIBE_LOG_DIRS] = (1, 2)
    fake.denied.add(DESCRIBE_LOG_DIRS)

    refused = admin.log_dirs([1], deadline=DEADLINE)

    assert not refused.brokers
    assert "Describe on the cluster" in refused.errors[1].text


def test_a_topic_that_may_not_be_described_keeps_its_error(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.add_topic("secret", [[1, 2]])
    fake.denied.add(METADATA)

    [topic] = admin.metadata(deadline=DEADLINE, topics=["secret"]).topics

    assert topic.error is not None
    assert topic.error.name == "TOPIC_AUTHORIZATION_FAILED"


def test_the_error_of_the_quorums_partition_counts_and_not_the_top_level(fake: FakeKafka, admin: WireAdmin) -> None:
    """A controller that does not lead answers with top level 0, leader 0 and NOT_LEADER_OR_FOLLOWER inside."""
    fake.set_quorum(QuorumState.LEADERLESS)

    with pytest.raises(QuorumUnavailable, match="NOT_LEADER_OR_FOLLOWER"):
        admin.quorum(deadline=DEADLINE)


def test_a_listing_that_the_controllers_could_not_give(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.set_quorum(QuorumState.LEADERLESS)

    with pytest.raises(QuorumUnavailable, match="REQUEST_TIMED_OUT"):
        admin.list_reassignments(deadline=DEADLINE)


def test_after_a_leader_change_what_is_not_known_yet_is_none(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.elect_controller(102)

    quorum = admin.quorum(deadline=DEADLINE)

    assert quorum.leader_id == 102
    by_id = {voter.id: voter for voter in quorum.voters}
    assert by_id[102].log_end_offset is not None
    for voter in (by_id[101], by_id[103]):
        assert (voter.log_end_offset, voter.last_fetch_ms, voter.last_caught_up_ms) == (None, None, None)


def test_a_partition_without_a_leader_has_none(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.add_topic("lost", [[1]])
    fake.model.fence(1)

    [topic] = admin.metadata(deadline=DEADLINE, topics=["lost"]).topics

    [partition] = topic.partitions
    assert partition.leader is None
    assert partition.offline == (1,)
    assert partition.error is not None
    assert partition.error.name == "LEADER_NOT_AVAILABLE"


def test_a_fenced_broker_is_described_as_such(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.fence(3)

    assert {b.id: b.fenced for b in admin.describe_cluster(deadline=DEADLINE).brokers} == {1: False, 2: False, 3: True}
    assert [b.id for b in admin.metadata(deadline=DEADLINE).brokers] == [1, 2]


def test_a_failed_log_directory_keeps_its_error_and_unknown_sizes(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.add_topic("t", [[1], [1]], records=5)
    fake.model.lose_directory(1, 1)

    good, failed = admin.log_dirs([1], deadline=DEADLINE).brokers[1]

    assert good.error is None
    assert [replica.partition for replica in good.replicas] == [0]
    assert failed.error is not None
    assert failed.error.name == "KAFKA_STORAGE_ERROR"
    assert (failed.total_bytes, failed.usable_bytes) == (None, None)
    query = OffsetQuery(1, "t", 1, OffsetKind.LATEST)
    assert admin.replica_offsets([query], deadline=DEADLINE).errors[query].name == "KAFKA_STORAGE_ERROR"


def test_a_copy_between_directories_is_marked_as_future(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.add_topic("t", [[1]], records=5)
    fake.model.move_between_directories("t", 0, 1, copied=2000)
    fake.model.cordon_directory(1, 1)

    first, second = admin.log_dirs([1], deadline=DEADLINE).brokers[1]

    assert [(r.size_bytes, r.future) for r in first.replicas] == [(5000, False)]
    assert [(r.size_bytes, r.future) for r in second.replicas] == [(2000, True)]
    assert (first.cordoned, second.cordoned) == (False, True)


def test_a_leaders_log_end_is_its_own_and_not_the_high_watermark(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.model.add_topic("t", [[1, 2]], records=10)
    fake.model.append_to_leader("t", 0, 7)
    fake.model.delete_records("t", 0, 4)
    queries = [OffsetQuery(b, "t", 0, kind) for b in (1, 2) for kind in (OffsetKind.LATEST, OffsetKind.EARLIEST)]

    answer = admin.replica_offsets(queries, deadline=DEADLINE)

    assert [answer.offsets[query].offset for query in queries] == [17, 4, 10, 4]


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
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
) -> None:
    """In the middle of an upgrade; the older broker is the one that is met first."""
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers[1:2]))
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
        self, old: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
    ) -> None:
        """A broker in ZooKeeper mode answers key 55 by dropping the connection."""
        with old:
            admin = connect(ClusterConnection("old", 1, old.bootstrap_servers))
            with pytest.raises(NotSupported, match="ZooKeeper"):
                admin.quorum(deadline=DEADLINE)
            assert DESCRIBE_QUORUM not in old.requests

    def test_reassignments_are_asked_of_the_controller(
        self, old: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
    ) -> None:
        """Other brokers answer NOT_CONTROLLER: they do not forward."""
        with old:
            old.model.add_topic("t", [[1, 2]], records=3)
            old.model.reassign("t", 0, [3, 2])
            admin = connect(ClusterConnection("old", 1, old.bootstrap_servers))
            for _ in range(8):
                assert [row.adding for row in admin.list_reassignments(deadline=DEADLINE).rows] == [(3,)]
            assert admin.describe_cluster(deadline=DEADLINE).controller_id == 2
