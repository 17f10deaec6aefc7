"""Brokers that die, come back, or come back elsewhere."""

from collections.abc import Callable

import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.connection import Connection
from tests.contract.fake_answers import DESCRIBE_LOG_DIRS, METADATA
from tests.contract.fake_broker import FakeKafka
from tests.contract.timing import in_time

pytestmark = pytest.mark.contract

DEADLINE = 5.0


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[Connection], WireAdmin]) -> WireAdmin:
    admin = connect(Connection("fake", 1, fake.bootstrap_servers))
    assert sorted(admin.log_dirs([1, 2, 3], deadline=DEADLINE).brokers) == [1, 2, 3]
    return admin


def test_a_killed_broker_is_told_at_once(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.kill(2)

    with in_time(0.5):
        answer = admin.log_dirs([1, 2, 3], deadline=DEADLINE)

    assert sorted(answer.brokers) == [1, 3]
    assert "connection refused" in answer.errors[2].text


def test_a_killed_broker_that_the_cluster_dropped_is_told_as_such(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.kill(2)
    fake.model.fence(2)
    admin.log_dirs([2], deadline=DEADLINE)

    assert "not among the live brokers" in admin.log_dirs([2], deadline=DEADLINE).errors[2].text


def test_a_broker_that_died_of_a_question_after_the_cluster_dropped_it(fake: FakeKafka, admin: WireAdmin) -> None:
    """The connection is lost first and refused then: the refusal is what asks the cluster for the address anew."""
    fake.model.fence(2)
    fake.dies_on[2] = DESCRIBE_LOG_DIRS
    assert admin.log_dirs([2], deadline=DEADLINE).errors.keys() == {2}

    assert "not among the live brokers" in admin.log_dirs([2], deadline=DEADLINE).errors[2].text


def test_a_broker_that_loses_each_connection_after_the_cluster_dropped_it(fake: FakeKafka, admin: WireAdmin) -> None:
    """As one whose listener is still open while its process ends: nothing is refused, and it is gone all the same."""
    fake.model.fence(2)
    fake.cached.discard(DESCRIBE_LOG_DIRS)
    fake.loses_reply[DESCRIBE_LOG_DIRS] = 2
    assert admin.log_dirs([2], deadline=DEADLINE).errors.keys() == {2}

    assert "not among the live brokers" in admin.log_dirs([2], deadline=DEADLINE).errors[2].text


def test_a_broker_that_left_the_metadata_and_came_back(fake: FakeKafka, admin: WireAdmin) -> None:
    port = fake.model.brokers[2].port
    fake.kill(2)
    fake.model.fence(2)
    assert admin.log_dirs([2], deadline=DEADLINE).errors.keys() == {2}

    fake.start(2, port=port)
    fake.model.unfence(2)

    assert admin.log_dirs([2], deadline=DEADLINE).brokers.keys() == {2}


def test_a_broker_that_restarted_on_another_port_is_found_in_the_same_call(fake: FakeKafka, admin: WireAdmin) -> None:
    before = fake.model.brokers[2].port
    fake.kill(2)
    fake.start(2)
    assert fake.model.brokers[2].port != before

    answer = admin.log_dirs([1, 2, 3], deadline=DEADLINE)

    assert sorted(answer.brokers) == [1, 2, 3]


def test_a_broker_that_joined_later_is_found(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.kill(3)
    fake.model.fence(3)
    assert admin.log_dirs([3], deadline=DEADLINE).errors.keys() == {3}
    fake.start(3)
    fake.model.unfence(3)

    assert admin.log_dirs([3], deadline=DEADLINE).brokers.keys() == {3}


def test_a_cluster_that_moved_altogether_is_found_by_its_bootstrap_servers(
    fake: FakeKafka, connect: Callable[[Connection], WireAdmin]
) -> None:
    """Here the bootstrap server stays, as a load balancer does."""
    admin = connect(Connection("fake", 1, fake.bootstrap_servers[:1]))
    admin.metadata(deadline=DEADLINE)
    for broker in (2, 3):
        fake.kill(broker)
        fake.start(broker)

    assert sorted(admin.log_dirs([1, 2, 3], deadline=DEADLINE).brokers) == [1, 2, 3]
    assert admin.metadata(deadline=DEADLINE).cluster_id == fake.model.cluster_id


def test_dead_brokers_are_asked_last_for_what_any_broker_can_answer(fake: FakeKafka, admin: WireAdmin) -> None:
    fake.freeze(1)
    admin.log_dirs([1], deadline=0.3)
    asked = fake.requests[METADATA]

    for _ in range(5):
        with in_time(0):
            admin.metadata(deadline=30)

    assert fake.requests[METADATA] == asked + 5


def test_everything_down_and_up_again(fake: FakeKafka, admin: WireAdmin) -> None:
    ports = {broker: node.port for broker, node in fake.model.brokers.items()}
    for broker in ports:
        fake.kill(broker)
    assert admin.log_dirs([1], deadline=DEADLINE).errors.keys() == {1}
    for broker, port in ports.items():
        fake.start(broker, port=port)

    assert sorted(admin.log_dirs([1, 2, 3], deadline=DEADLINE).brokers) == [1, 2, 3]
    assert admin.quorum(deadline=DEADLINE).leader_id == 101
