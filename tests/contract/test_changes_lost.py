"""A change is sent once. Where its answer is missing, it is lost: neither done nor refused, and not sent again."""

import re
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest
from kio.schema.errors import ErrorCode

from kafkadash.kafka.changing import Changed, ConfigChange, ConfigOperation, ReplicaPlace
from kafkadash.kafka.connection import Connection, Security
from kafkadash.kafka.once import Once
from kafkadash.kafka.port import AuthenticationFailed, ConfigResource, NotSupported, TopicPartition, Unreachable
from kafkadash.kafka.wire_client import WireClient
from tests.contract.fake_broker import FakeKafka, Login
from tests.contract.fake_changes import ALTER_CONFIGS, ALTER_LOG_DIRS, ALTER_REASSIGNMENTS, ELECT_LEADERS
from tests.contract.fake_model import ClusterModel, Mode, QuorumState
from tests.contract.timing import in_time

pytestmark = pytest.mark.contract

DEADLINE = 10.0
SHORT = 1.0
PARTITION = TopicPartition("t", 0)
TOPIC = ConfigResource.topic("t")
PLACE = ReplicaPlace(1, "t", 0)
LIST = ConfigChange(TOPIC, "leader.replication.throttled.replicas", ConfigOperation.APPEND, "0:1")


@pytest.fixture
def admin(fake: FakeKafka, connect: Callable[[Connection], WireClient]) -> WireClient:
    fake.model.add_topic("t", [[1, 2]], records=3)
    return connect(Connection("fake", 1, fake.bootstrap_servers))


def _move(admin: WireClient, *, deadline: float = DEADLINE, keep_factor: bool = True) -> Changed[TopicPartition]:
    return admin.alter_reassignments({PARTITION: (3, 2)}, deadline=deadline, keep_factor=keep_factor)


CALLS: dict[int, Callable[[WireClient, float], Changed[object]]] = {
    ALTER_REASSIGNMENTS: lambda admin, deadline: _move(admin, deadline=deadline),  # type: ignore[dict-item,return-value]
    ALTER_CONFIGS: lambda admin, deadline: admin.alter_configs([LIST], deadline=deadline),  # type: ignore[dict-item,return-value]
    ELECT_LEADERS: lambda admin, deadline: admin.elect_leaders([PARTITION], deadline=deadline),  # type: ignore[dict-item,return-value]
    ALTER_LOG_DIRS: lambda admin, deadline: admin.place_replicas({PLACE: "/fake/1/d1"}, deadline=deadline),  # type: ignore[dict-item,return-value]
}


@pytest.mark.parametrize("api_key", CALLS)
def test_a_lost_reply_is_lost_and_the_request_was_sent_once(api_key: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.loses_reply[api_key] = 9

    changed = CALLS[api_key](admin, DEADLINE)

    assert (len(changed.done), len(changed.refused), len(changed.lost)) == (0, 0, 1)
    [error] = changed.lost.values()
    assert "closed the connection" in error.text
    assert fake.requests[api_key] == 1


@pytest.mark.parametrize("api_key", CALLS)
def test_a_broker_that_dies_of_the_request_is_not_replaced_by_another(
    api_key: int, fake: FakeKafka, admin: WireClient
) -> None:
    fake.dies_on = dict.fromkeys((1, 2, 3), api_key)

    changed = CALLS[api_key](admin, DEADLINE)

    assert len(changed.lost) == 1
    assert fake.requests[api_key] == 1


@pytest.mark.parametrize("api_key", [ALTER_REASSIGNMENTS, ALTER_CONFIGS, ELECT_LEADERS])
def test_silent_controllers_lose_what_was_sent_to_them(api_key: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.set_quorum(QuorumState.SILENT)

    with in_time(SHORT):
        changed = CALLS[api_key](admin, SHORT)

    [error] = changed.lost.values()
    waited = re.search(r"no controller did within ([\d.]+) s", error.text)
    assert waited is not None
    assert SHORT / 2 <= float(waited[1]) <= SHORT
    assert fake.requests[api_key] == 1
    fake.set_quorum(QuorumState.LED)


@pytest.mark.parametrize("api_key", [ALTER_REASSIGNMENTS, ALTER_CONFIGS, ELECT_LEADERS])
def test_a_time_out_told_by_kafka_is_lost(api_key: int, fake: FakeKafka, admin: WireClient) -> None:
    """REQUEST_TIMED_OUT: the broker does not know either."""
    fake.model.set_quorum(QuorumState.LEADERLESS)

    [error] = CALLS[api_key](admin, DEADLINE).lost.values()

    assert (error.code, error.name) == (7, "REQUEST_TIMED_OUT")


def test_of_one_request_one_may_be_done_and_another_lost(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_topic("u", [[1, 2], [1, 2]])
    fake.model.refusals["u-0"] = ErrorCode.unknown_server_error, None
    fake.model.refusals["u-1"] = ErrorCode.policy_violation, "Moves are not allowed here."
    targets = {PARTITION: (3, 2), TopicPartition("u", 0): (3, 2), TopicPartition("u", 1): (3, 2)}

    changed = admin.alter_reassignments(targets, deadline=DEADLINE, keep_factor=True)

    assert changed.done == {PARTITION}
    assert {p: error.code for p, error in changed.lost.items()} == {TopicPartition("u", 0): -1}
    refused = changed.refused[TopicPartition("u", 1)]
    assert (refused.code, refused.name) == (44, "POLICY_VIOLATION")
    assert "Moves are not allowed here" in refused.text


def test_a_frozen_broker_does_not_keep_a_change_from_the_others(
    fake: FakeKafka, connect: Callable[[Connection], WireClient]
) -> None:
    """It is connected, but does not say which versions it speaks: nothing was sent to it."""
    fake.model.add_topic("t", [[1, 2]], records=3)
    fake.freeze(1)
    fake.freeze(2)
    for _ in range(3):
        admin = connect(Connection("fake", 1, fake.bootstrap_servers))
        assert admin.elect_leaders([PARTITION], deadline=2 * SHORT).done == {PARTITION}
    assert fake.asked_of[ELECT_LEADERS] == {3: 3}


def test_a_dead_broker_does_not_keep_a_change_from_the_others(fake: FakeKafka, admin: WireClient) -> None:
    admin.metadata(deadline=DEADLINE)
    fake.kill(1)
    fake.kill(2)

    assert _move(admin).done == {PARTITION}
    assert fake.requests[ALTER_REASSIGNMENTS] == 1


def test_it_raises_where_nothing_was_sent(fake: FakeKafka, admin: WireClient) -> None:
    admin.metadata(deadline=DEADLINE)
    for broker in (1, 2, 3):
        fake.kill(broker)

    for call in CALLS.values():
        with in_time(0), pytest.raises(Unreachable):
            call(admin, DEADLINE)
    with in_time(0), pytest.raises(Unreachable):
        admin.metadata(deadline=DEADLINE)
    assert not fake.requests.keys() & CALLS.keys()


def test_what_its_caller_gave_up_is_never_sent() -> None:
    once = Once()

    assert not once.give_up()
    assert not once.begin()
    assert not once.begun


def test_what_was_begun_may_have_left_until_it_is_known_that_it_did_not() -> None:
    once, other = Once(), Once()

    assert once.begin()
    assert other.begin()
    other.not_begun()

    assert once.give_up()
    assert not other.give_up()


def test_refused_credentials_raise(connect: Callable[[Connection], WireClient]) -> None:
    with FakeKafka(ClusterModel(1), login=Login("PLAIN", "ops", "right")) as kafka:
        kafka.model.add_topic("t", [[1]])
        security = Security("SASL_PLAINTEXT", "PLAIN", "ops", "wrong")
        admin = connect(Connection("sasl", 1, kafka.bootstrap_servers, security))
        with pytest.raises(AuthenticationFailed):
            admin.elect_leaders([PARTITION], deadline=DEADLINE)
        right = connect(Connection("sasl", 1, kafka.bootstrap_servers, replace(security, sasl_password="right")))
        assert right.elect_leaders([PARTITION], deadline=DEADLINE).done == {PARTITION}


@pytest.mark.parametrize("api_key", CALLS)
def test_a_missing_permission_is_a_refusal_that_names_it(api_key: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.denied = {api_key}

    [error] = CALLS[api_key](admin, DEADLINE).refused.values()

    assert error.code in (29, 31)
    assert "the principal needs Alter" in error.text


@pytest.mark.parametrize("api_key", CALLS)
def test_a_cluster_without_the_request_says_so(api_key: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.versions[api_key] = None

    with pytest.raises(NotSupported):
        CALLS[api_key](admin, DEADLINE)


def test_without_kafkas_guard_the_answer_says_so(fake: FakeKafka, admin: WireClient) -> None:
    """Version 0 has no such flag: a change of the replication factor would be carried out."""
    fake.versions[ALTER_REASSIGNMENTS] = (0, 0)

    changed = _move(admin, keep_factor=True)

    assert changed.done == {PARTITION}
    assert not changed.guarded


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elections_of_every_version(version: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.versions[ELECT_LEADERS] = (version, version)
    fake.model.change_leader("t", 0, 2)

    assert admin.elect_leaders([PARTITION], deadline=DEADLINE).done == {PARTITION}
    assert fake.model.partition("t", 0).leader == 1


@pytest.mark.parametrize("version", [1, 2])
def test_directories_of_every_version(version: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.versions[ALTER_LOG_DIRS] = (version, version)

    assert admin.place_replicas({PLACE: "/fake/1/d1"}, deadline=DEADLINE).done == {PLACE}


@pytest.mark.parametrize("version", [0, 1])
def test_configs_of_every_version(version: int, fake: FakeKafka, admin: WireClient) -> None:
    fake.versions[ALTER_CONFIGS] = (version, version)

    assert admin.alter_configs([LIST], deadline=DEADLINE).done == {TOPIC}
    assert fake.model.configs.topics["t"][LIST.key] == "0:1"


def test_two_thousand_partitions_go_in_one_request(
    fake: FakeKafka, connect: Callable[[Connection], WireClient]
) -> None:
    fake.model.add_topic("wide", [[1, 2]] * 2000)
    targets = {TopicPartition("wide", index): (2, 3) for index in range(2000)}

    changed = connect(Connection("fake", 1, fake.bootstrap_servers)).alter_reassignments(
        targets, deadline=DEADLINE, keep_factor=True
    )

    assert changed.done == targets.keys()
    assert fake.requests[ALTER_REASSIGNMENTS] == 1


def test_changes_from_several_threads_do_not_mix(fake: FakeKafka, admin: WireClient) -> None:
    fake.model.add_topic("many", [[1, 2]] * 40)
    answers: list[Changed[TopicPartition]] = []

    def elect(index: int) -> None:
        answers.append(admin.elect_leaders([TopicPartition("many", index)], deadline=DEADLINE))

    threads = [threading.Thread(target=elect, args=(index,)) for index in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(p.partition for answer in answers for p in answer.done) == list(range(40))


class TestZooKeeperMode:
    @pytest.mark.parametrize("api_key", [ALTER_REASSIGNMENTS, ELECT_LEADERS])
    def test_the_controller_is_asked_where_another_broker_refused(
        self, api_key: int, connect: Callable[[Connection], WireClient]
    ) -> None:
        """NOT_CONTROLLER is told before anything is done: asking the one that is named sends it once more safely."""
        with FakeKafka(ClusterModel(3, controllers=[2], mode=Mode.ZOOKEEPER)) as old:
            old.model.add_topic("t", [[1, 2]], records=3)
            admin = connect(Connection("old", 1, old.bootstrap_servers))
            for _ in range(6):
                assert CALLS[api_key](admin, DEADLINE).done
            assert old.asked_of[api_key][2] == 6

    def test_a_topics_configs_go_to_any_broker(self, connect: Callable[[Connection], WireClient]) -> None:
        with FakeKafka(ClusterModel(3, controllers=[2], mode=Mode.ZOOKEEPER)) as old:
            old.model.add_topic("t", [[1, 2]], records=3)
            admin = connect(Connection("old", 1, old.bootstrap_servers))
            assert admin.alter_configs([LIST], deadline=DEADLINE).done == {TOPIC}
            assert old.requests[ALTER_CONFIGS] == 1
