"""A call is back within its deadline and half a second, whatever the brokers do."""

import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.port import OffsetKind, OffsetQuery, QuorumUnavailable
from tests.contract.backends import Backend
from tests.contract.timing import in_time
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 2.0


def test_a_frozen_broker_costs_its_own_answer_only(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2, 3]], records=5)
    queries = [OffsetQuery(broker, topic_name, 0, OffsetKind.LATEST) for broker in backend.broker_ids]
    admin.replica_offsets(queries, deadline=DEADLINE)

    with backend.frozen(2):
        with in_time(DEADLINE):
            sizes = admin.log_dirs(backend.broker_ids, deadline=DEADLINE)
        with in_time(DEADLINE):
            offsets = admin.replica_offsets(queries, deadline=DEADLINE)
        with in_time(DEADLINE):
            versions = admin.api_versions(deadline=DEADLINE)

    assert sizes.brokers.keys() == {1, 3}
    assert sizes.errors.keys() == {2}
    assert "Broker 2" in sizes.errors[2].text
    assert sizes.errors[2].code is None
    assert {query.broker for query in offsets.offsets} == {1, 3}
    assert {query.broker for query in offsets.errors} == {2}
    assert {1, 3} <= versions.brokers.keys()
    wait_until(lambda: not admin.log_dirs([2], deadline=DEADLINE).errors, "broker 2 answers again")


def test_what_any_broker_can_answer_does_not_wait_for_a_frozen_one(admin: WireAdmin, backend: Backend) -> None:
    admin.metadata(deadline=DEADLINE)

    with backend.frozen(1):
        for _ in range(4):
            with in_time(DEADLINE):
                admin.metadata(deadline=DEADLINE)
            with in_time(DEADLINE):
                admin.describe_cluster(deadline=DEADLINE)


def test_a_client_that_starts_beside_a_frozen_broker_finds_the_others(admin: WireAdmin, backend: Backend) -> None:
    with backend.frozen(1), in_time(DEADLINE):
        assert admin.metadata(deadline=DEADLINE).cluster_id


def test_lost_controllers_are_told_apart_from_dead_brokers(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]], records=1)
    admin.quorum(deadline=DEADLINE)

    with backend.without_controllers():
        with in_time(DEADLINE), pytest.raises(QuorumUnavailable, match="brokers answer"):
            admin.quorum(deadline=DEADLINE)
        with in_time(DEADLINE), pytest.raises(QuorumUnavailable):
            admin.list_reassignments(deadline=DEADLINE)
        with in_time(DEADLINE):
            assert [topic.name for topic in admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics]
        with in_time(DEADLINE):
            assert not admin.log_dirs([1, 2], deadline=DEADLINE).errors

    assert admin.quorum(deadline=10).leader_id == backend.controller()
