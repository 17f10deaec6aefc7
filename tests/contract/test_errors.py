"""Kafka's error codes: what they become, and that the sentence says what to do."""

import random
from collections.abc import Callable

import pytest
from kio.schema.errors import ErrorCode

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.codes import call_failure, code_name, item_error
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import NotAuthorized, NotSupported, OffsetKind, OffsetQuery, QuorumUnavailable, RequestFailed
from tests.contract.fake_answers import DESCRIBE_LOG_DIRS, DESCRIBE_QUORUM, LIST_REASSIGNMENTS, METADATA
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import QuorumState

pytestmark = pytest.mark.contract

DEADLINE = 10.0


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[Connection], WireAdmin]) -> WireAdmin:
    return connect(Connection("fake", 1, fake.bootstrap_servers))


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

    with pytest.raises(NotAuthorized, match=r"ListPartitionReassignments.*Describe on the cluster"):
        admin.list_reassignments(deadline=DEADLINE)
    with pytest.raises(NotAuthorized, match=r"DescribeQuorum.*Describe on the cluster"):
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
