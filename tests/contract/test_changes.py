"""What changes a cluster: what is done, what is refused, and in whose words. On the fake and on real Kafka.

Changes while a broker is away: those that are done, and those that are refused. On the fake and on real Kafka.

All of it is tried while the broker is away once: a real one takes seconds to be missed.

A broker that is down keeps its configs in the cluster: they are changed through the active controller's listener.

A change is sent once. Where its answer is missing, it is lost: neither done nor refused, and not sent again.
"""

from __future__ import annotations

import itertools
import re
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from uuid import UUID

import pytest
from kio.schema.errors import ErrorCode

from kafkadash.core.messages import CodedMessage
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    AuthenticationFailed,
    ClusterConnection,
    ConfigChange,
    ConfigOperation,
    ConfigResource,
    ConnectionSecurity,
    ItemChanged,
    ItemError,
    KafkaUnreachable,
    NewPartitions,
    NewTopic,
    NotSupported,
    ReplicaPlace,
    TopicPartition,
)
from kafkadash.kafka.dispatch import AtMostOnce
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.mutations import WireClient
from tests.contract.backends import Backend
from tests.contract.fake_broker import FakeKafka, Login
from tests.contract.fake_changes import (
    ALTER_CONFIGS,
    ALTER_LOG_DIRS,
    ALTER_REASSIGNMENTS,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    UNREGISTER_BROKER,
)
from tests.contract.fake_groups import DELETE_GROUPS, OFFSET_COMMIT, OFFSET_DELETE, FakeMember
from tests.contract.fake_model import ClusterModel, Mode, QuorumState
from tests.contract.sockets import closed_port
from tests.contract.timing import in_time
from tests.raised_codes import raises_code
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0
GUARDED = (4, 1)
"""The first release with a guard of the replication factor (KIP-860)."""
LEADERS, FOLLOWERS = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
SET, DELETE, APPEND, SUBTRACT = ConfigOperation


@pytest.fixture
def slow(admin: WireClient, backend: Backend) -> Iterator[None]:
    """Every broker may send and fetch hardly anything of what is throttled, so that moves stay in flight."""
    brokers = [ConfigResource.broker(broker) for broker in backend.broker_ids]
    set_rates = [ConfigChange(broker, key, SET, "50000") for broker in brokers for key in RATES]
    assert admin.alter_configs(set_rates, deadline=DEADLINE).done == set(brokers)
    yield
    clear = [ConfigChange(broker, key, DELETE) for broker in brokers for key in RATES]
    assert admin.alter_configs(clear, deadline=DEADLINE).done == set(brokers)
    wait_until(lambda: not _rates(admin, brokers), "the brokers have heard that the rates are gone")


def _rates(admin: WireClient, brokers: list[ConfigResource]) -> list[str]:
    """A broker tells them until it has heard from the controller, a few tens of milliseconds after the change."""
    found = admin.describe_configs(brokers, keys=RATES, deadline=DEADLINE)
    assert not found.errors
    return [key for entries in found.resources.values() for key in entries]


def _held(admin: WireClient, backend: Backend, name: str, placement: list[list[int]]) -> list[TopicPartition]:
    """The partitions of a new topic whose copies go at the pace of ``slow``."""
    backend.create_topic(name, placement, records=400)
    everything = ",".join(f"{index}:{broker}" for index in range(len(placement)) for broker in backend.broker_ids)
    lists = [ConfigChange(ConfigResource.topic(name), key, SET, everything) for key in (LEADERS, FOLLOWERS)]
    assert admin.alter_configs(lists, deadline=DEADLINE).done == {ConfigResource.topic(name)}
    return [TopicPartition(name, index) for index in range(len(placement))]


def _alter(
    admin: WireClient, partition: TopicPartition, target: tuple[int, ...] | None, *, keep_factor: bool = True
) -> ItemChanged[TopicPartition]:
    return admin.alter_reassignments({partition: target}, deadline=DEADLINE, keep_factor=keep_factor)


def _refusal(changed: ItemChanged[TopicPartition]) -> ItemError:
    [error] = changed.refused.values()
    assert not changed.done
    assert not changed.lost
    return error


@pytest.mark.usefixtures("slow")
def test_a_move_starts_is_retargeted_and_cancelled(admin: WireClient, backend: Backend, topic_name: str) -> None:
    [partition] = _held(admin, backend, topic_name, [[1, 2]])

    started = _alter(admin, partition, (3, 2))
    listed = backend.reassignments()
    retargeted = _alter(admin, partition, (1, 3))
    cancelled = _alter(admin, partition, None)
    again = _refusal(_alter(admin, partition, None))

    assert started.done == {partition}
    assert started.guarded is (backend.release >= GUARDED)
    assert [(row.adding, row.removing) for row in listed] == [((3,), (1,))]
    assert retargeted.done == {partition}
    assert cancelled.done == {partition}
    assert (again.code, again.name) == (85, "NO_REASSIGNMENT_IN_PROGRESS")
    assert str(partition) in again.text
    wait_until(lambda: set(backend.topic(topic_name)[0][1]) == {1, 2}, "the replicas are those from before")


@pytest.mark.usefixtures("slow")
def test_partitions_of_one_request_are_judged_each_for_itself(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    first, second = _held(admin, backend, topic_name, [[1, 2], [2, 3]])
    beyond, nowhere = TopicPartition(topic_name, 7), TopicPartition("no-such-topic", 0)
    targets = {first: (3, 2), second: (2, 2), beyond: (1, 2), nowhere: (1, 2)}

    changed = admin.alter_reassignments(targets, deadline=DEADLINE, keep_factor=True)
    _alter(admin, first, None)

    assert changed.done == {first}
    codes = {partition: error.code for partition, error in changed.refused.items()}
    assert codes == {second: 39, beyond: 3, nowhere: 3}
    said = ("includes the broker 2 more than once", "Unable to find partition")
    if not backend.has_quorum:
        said = ("Duplicate replica ids", "The partition does not exist")
    assert said[0] in changed.refused[second].text
    assert said[1] in changed.refused[beyond].text
    assert not changed.lost


def test_an_assignment_that_cannot_be_is_refused_in_kafkas_words(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    partition = TopicPartition(topic_name, 0)

    nobody, empty = _refusal(_alter(admin, partition, (1, 99))), _refusal(_alter(admin, partition, ()))

    assert (nobody.code, empty.code) == (39, 39)
    said = ("broker 99, but no such broker is registered", "an empty replica list")
    if not backend.has_quorum:
        said = ("brokers that are not alive. Replica list: ArrayBuffer(99)", "Empty replica list")
    assert said[0] in nobody.text
    assert said[1] in empty.text
    assert backend.topic(topic_name)[0][1] == (1, 2)


@pytest.mark.usefixtures("slow")
def test_the_replication_factor_is_guarded_unless_its_change_is_meant(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    [partition] = _held(admin, backend, topic_name, [[1, 2]])
    if backend.release < GUARDED:
        assert not _alter(admin, partition, (1, 2, 3)).guarded
        _alter(admin, partition, None)
        return

    refused = _alter(admin, partition, (1, 2, 3))
    meant = _alter(admin, partition, (1, 2, 3), keep_factor=False)
    _alter(admin, partition, None)

    assert _refusal(refused).code == 38
    assert "from 2 to 3" in _refusal(refused).text
    assert refused.guarded
    assert meant.done == {partition}
    assert not meant.guarded


def test_another_order_is_done_at_once_and_then_its_leader_is_elected(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3]])
    partition, settled = TopicPartition(topic_name, 0), TopicPartition(topic_name, 1)
    beyond = TopicPartition(topic_name, 9)

    reordered = _alter(admin, partition, (2, 1))
    wait_until(lambda: backend.topic(topic_name)[0][1] == (2, 1), "the order is in force")
    elected = admin.elect_leaders([partition, settled, beyond], deadline=DEADLINE)

    assert reordered.done == {partition}
    assert elected.done == {partition, settled}
    assert elected.refused[beyond].code == 3
    wait_until(lambda: backend.topic(topic_name)[0][0] == 2, "the preferred replica leads")


def test_unclean_election__elects_a_live_replica_where_nobody_leads(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.model.add_topic("orders", [[1, 2, 3], [2, 3, 1]])
    orphan, led = (TopicPartition("orders", index) for index in (0, 1))
    own = fake.model.partition("orders", 0)
    fake.model.fence(1)
    own.isr, own.leader = [1], -1
    assert fake_admin.elect_leaders([orphan], deadline=DEADLINE).refused[orphan].code == 80
    elected = fake_admin.elect_leaders([orphan, led], deadline=DEADLINE, unclean=True)
    assert elected.done == {orphan}
    assert elected.refused[led].code == 84
    assert (own.leader, own.isr, fake.model.partition("orders", 1).leader) == (2, [2], 2)


def test_unclean_election__broker_knows_only_preferred_ones__sends_nothing(
    fake: FakeKafka, fake_admin: WireClient
) -> None:
    fake.versions[ELECT_LEADERS] = (0, 0)
    with pytest.raises(NotSupported):
        fake_admin.elect_leaders([PARTITION], deadline=DEADLINE, unclean=True)
    assert ELECT_LEADERS not in fake.asked_of


def test_topics_are_created_as_assigned__and_what_kafka_refuses_is_told_of_each(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    first, second, twice, unknown = (f"{topic_name}-{part}" for part in ("a", "b", "twice", "unknown"))
    asked = [
        NewTopic(first, ((2, 1), (3, 2)), {"retention.ms": "60000"}),
        NewTopic(second, ((3, 1),)),
        NewTopic(twice, ((1, 1),)),
        NewTopic(unknown, ((1, 2),), {"no.such.key": "1"}),
    ]

    validated = admin.create_topics(asked, deadline=DEADLINE, validate_only=True)
    nothing_yet = admin.metadata(deadline=DEADLINE, topics=[first])
    created = admin.create_topics(asked, deadline=DEADLINE)
    again = admin.create_topics(asked[:1], deadline=DEADLINE)

    assert [topic.error and topic.error.code for topic in nothing_yet.topics] == [3]
    assert validated == created, "a dry run says what the request says then"
    assert created.done == {first, second}
    assert {name: error.code for name, error in created.refused.items()} == {twice: 39, unknown: 40}
    assert again.refused[first].code == 36
    wait_until(lambda: not admin.metadata(deadline=DEADLINE, topics=[first]).topics[0].error, "the brokers know it")
    assert [row[1] for row in backend.topic(first)] == [(2, 1), (3, 2)]
    assert backend.configs(first)["retention.ms"] == ("60000", "DYNAMIC_TOPIC_CONFIG")


def test_partitions_are_added_as_assigned__and_never_twice(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    more = NewPartitions(topic_name, 1, ((3, 1), (2, 3)))
    absent = NewPartitions(f"{topic_name}-absent", 1, ((1, 2),))

    validated = admin.create_partitions([more, absent], deadline=DEADLINE, validate_only=True)
    before = backend.topic(topic_name)
    added = admin.create_partitions([more, absent], deadline=DEADLINE)
    again = admin.create_partitions([more], deadline=DEADLINE)

    assert len(before) == 1
    assert validated == added
    assert added.done == {topic_name}
    assert added.refused[absent.topic].code == 3
    assert again.refused[topic_name].code == 37
    wait_until(
        lambda: [row[1] for row in backend.topic(topic_name)] == [(1, 2), (3, 1), (2, 3)], "the brokers know them"
    )


def test_a_topic_is_deleted_by_its_id_only(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    [topic] = admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics
    absent = str(UUID(int=77))

    deleted = admin.delete_topics([topic.topic_id, absent], deadline=DEADLINE)
    again = admin.delete_topics([topic.topic_id], deadline=DEADLINE)

    assert deleted.done == {topic.topic_id}
    assert deleted.refused[absent].code == 100
    # With ZooKeeper the topic stays known by its id until its deletion has ended.
    assert again.refused[topic.topic_id].code in ({100} if backend.has_quorum else {3, 100})

    def is_gone() -> bool:
        [told] = admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics
        return told.error is not None and told.error.code == 3

    wait_until(is_gone, "the brokers have heard of it")


@pytest.mark.quorum
def test_a_broker_that_is_not_registered_cannot_be_unregistered(admin: WireClient) -> None:
    error = admin.unregister_broker(77, deadline=DEADLINE).refused[77]
    assert (error.code, error.name) == (102, "BROKER_ID_NOT_REGISTERED")
    assert "77" in error.text


def test_a_stopped_broker_is_unregistered(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.model.fence(3)

    assert fake_admin.unregister_broker(3, deadline=DEADLINE).done == {3}
    assert [broker.id for broker in fake_admin.describe_cluster(deadline=DEADLINE).brokers] == [1, 2]
    assert fake_admin.unregister_broker(3, deadline=DEADLINE).refused[3].code == 102


def test_offsets_are_committed_by_nobody_and_deleted(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 1]])
    group, first, second = f"of-{topic_name}", TopicPartition(topic_name, 0), TopicPartition(topic_name, 1)
    absent = TopicPartition(f"no-{topic_name}", 0)

    wait_until(  # the coordinator hears of the topic after the broker that was asked for it
        lambda: admin.commit_offsets(group, {first: 1, second: 1}, deadline=DEADLINE).done == {first, second},
        "the coordinator knows the topic",
    )
    committed = admin.commit_offsets(group, {first: 7, second: 0, absent: 1}, deadline=DEADLINE)
    told = admin.committed([group], deadline=DEADLINE).offsets[group]
    [described] = admin.describe_groups([group, f"no-{group}"], deadline=DEADLINE).values()

    assert committed.done == {first, second}
    assert committed.refused[absent].code == 3
    assert told == {topic_name: {0: 7, 1: 0}}
    assert (described.name, described.state, described.members) == (group, "Empty", [])
    assert admin.delete_offsets(group, [first], deadline=DEADLINE).done == {first}
    assert admin.delete_offsets(group, [first], deadline=DEADLINE).done == {first}
    assert admin.committed([group], deadline=DEADLINE).offsets[group] == {topic_name: {1: 0}}

    deleted = admin.delete_groups([group, f"no-{group}"], deadline=DEADLINE)

    assert deleted.done == {group}
    assert deleted.refused[f"no-{group}"].code == 69
    assert admin.describe_groups([group], deadline=DEADLINE) == {}
    assert admin.delete_offsets(group, [second], deadline=DEADLINE).refused[second].code == 69


def test_offsets_by_time__none_is_that_late__are_the_end(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]], records=3)

    def starts(at_ms: int) -> int:
        return admin.offsets_at({topic_name: [0]}, at_ms, deadline=DEADLINE).spans[topic_name][0].start

    assert (starts(0), starts(2**52)) == (0, 3)


def test_lists_grow_and_shrink_by_pairs(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    topic = ConfigResource.topic(topic_name)

    def change(operation: ConfigOperation, value: str | None = None) -> ItemChanged[ConfigResource]:
        return admin.alter_configs([ConfigChange(topic, LEADERS, operation, value)], deadline=DEADLINE)

    def reads(value: str, source: str) -> None:
        wait_until(lambda: backend.configs(topic_name)[LEADERS] == (value, source), f"the list is {value!r}")

    assert change(APPEND, "0:1").done == {topic}
    assert change(APPEND, "0:1,0:2").done == {topic}
    reads("0:1,0:2", "DYNAMIC_TOPIC_CONFIG")
    assert change(SUBTRACT, "0:1,5:5").done == {topic}
    reads("0:2", "DYNAMIC_TOPIC_CONFIG")
    assert change(SUBTRACT, "0:2").done == {topic}
    reads("", "DYNAMIC_TOPIC_CONFIG")
    assert change(DELETE).done == {topic}
    assert change(DELETE).done == {topic}
    reads("", "DEFAULT_CONFIG")


def test_configs_that_are_only_validated_stay_as_they_are(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    topic, broker = ConfigResource.topic(topic_name), ConfigResource.broker(2)

    fine = [ConfigChange(topic, LEADERS, SET, "0:1"), ConfigChange(broker, RATES[0], SET, "1000")]
    wrong = [ConfigChange(topic, LEADERS, SET, "all"), ConfigChange(broker, RATES[0], SET, "fast")]
    validated = admin.alter_configs(fine, deadline=DEADLINE, validate_only=True)
    refused = admin.alter_configs(wrong, deadline=DEADLINE, validate_only=True)

    assert validated.done == {topic, broker}
    assert {resource: error.code for resource, error in refused.refused.items()} == {topic: 40, broker: 42}
    assert admin.alter_configs([ConfigChange(topic, FOLLOWERS, SET, "0:1")], deadline=DEADLINE).done == {topic}
    wait_until(lambda: backend.configs(topic_name)[FOLLOWERS][0] == "0:1", "the broker knows of the change after it")
    assert backend.configs(topic_name)[LEADERS] == ("", "DEFAULT_CONFIG")
    assert RATES[0] not in backend.configs(2)


def test_a_list_of_everything_is_not_extended(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    topic = ConfigResource.topic(topic_name)
    admin.alter_configs([ConfigChange(topic, LEADERS, SET, "*")], deadline=DEADLINE)

    appended = admin.alter_configs([ConfigChange(topic, LEADERS, APPEND, "0:1")], deadline=DEADLINE)
    subtracted = admin.alter_configs([ConfigChange(topic, LEADERS, SUBTRACT, "0:1")], deadline=DEADLINE)

    assert appended.refused[topic].code == 40
    assert "must be the literal '*'" in appended.refused[topic].text
    assert subtracted.done == {topic}
    wait_until(lambda: backend.configs(topic_name)[LEADERS][0] == "*", "the list is untouched")


def test_the_changes_of_a_resource_are_done_all_or_none(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    topic, other = ConfigResource.topic(topic_name), ConfigResource.topic("no-such-topic")

    twice = admin.alter_configs(
        [ConfigChange(topic, LEADERS, APPEND, "0:1"), ConfigChange(topic, LEADERS, SUBTRACT, "0:2")], deadline=DEADLINE
    )
    half = admin.alter_configs(
        [
            ConfigChange(topic, LEADERS, SET, "0:1"),
            ConfigChange(topic, FOLLOWERS, SET, "nonsense"),
            ConfigChange(other, LEADERS, SET, "0:1"),
            ConfigChange(CLUSTER_DEFAULT, "log.cleaner.threads", DELETE),
        ],
        deadline=DEADLINE,
    )

    assert (twice.refused[topic].code, twice.refused[topic].name) == (42, "INVALID_REQUEST")
    assert half.done == {CLUSTER_DEFAULT}
    assert {resource: error.code for resource, error in half.refused.items()} == {topic: 40, other: 3}
    assert backend.configs(topic_name)[LEADERS] == ("", "DEFAULT_CONFIG")


def test_a_rate_is_set_through_its_own_broker(admin: WireClient, backend: Backend) -> None:
    second, third, nobody = (ConfigResource.broker(broker) for broker in (2, 3, 99))

    changed = admin.alter_configs(
        [ConfigChange(b, RATES[0], SET, "1234567") for b in (second, third, nobody)], deadline=DEADLINE
    )
    wrong = admin.alter_configs(
        [ConfigChange(second, RATES[1], SET, "-1"), ConfigChange(third, RATES[1], SET, "fast")], deadline=DEADLINE
    )

    assert changed.done == {second, third}
    assert changed.refused[nobody].code is None
    assert "Broker 99" in changed.refused[nobody].text
    assert {resource: error.code for resource, error in wrong.refused.items()} == {second: 42, third: 42}
    assert "Not a number" in wrong.refused[third].text
    wait_until(lambda: RATES[0] in backend.configs(3), "the rate is in force")
    assert backend.configs(3)[RATES[0]] == ("1234567", "DYNAMIC_BROKER_CONFIG")
    cleared = admin.alter_configs([ConfigChange(b, RATES[0], DELETE) for b in (second, third)], deadline=DEADLINE)
    assert cleared.done == {second, third}
    wait_until(lambda: not _rates(admin, [second, third]), "the rates are gone")


def test_a_directory_is_chosen_before_the_replica_comes(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [1, 2]], records=1)
    first, second = (directory.path for directory in admin.log_dirs([3], deadline=DEADLINE).brokers[3])
    places = {ReplicaPlace(3, topic_name, 0): second, ReplicaPlace(3, topic_name, 1): first}
    beyond = ReplicaPlace(3, topic_name, 9)
    targets = {TopicPartition(topic_name, index): (1, 3) for index in (0, 1)}

    placed = admin.place_replicas({**places, beyond: first}, deadline=DEADLINE)
    admin.alter_reassignments(targets, deadline=DEADLINE, keep_factor=True)
    for index in (0, 1):
        backend.finish_move(topic_name, index, 3)

    assert placed.done == set(places)
    assert placed.refused[beyond].code == 3
    wait_until(lambda: all(set(row[1]) == {1, 3} for row in backend.topic(topic_name)), "the moves are over")
    assert {(second, topic_name, 0), (first, topic_name, 1)} <= backend.sizes(3).keys()


def test_a_directory_that_is_not_there_is_refused(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    place, dead = ReplicaPlace(1, topic_name, 0), ReplicaPlace(99, topic_name, 0)

    changed = admin.place_replicas({place: "/no/such/directory", dead: "/no/such/directory"}, deadline=DEADLINE)

    assert (changed.refused[place].code, changed.refused[place].name) == (57, "LOG_DIR_NOT_FOUND")
    assert changed.refused[dead].code is None


def test_nothing_to_change_asks_nobody(admin: WireClient) -> None:
    assert admin.alter_reassignments({}, deadline=DEADLINE, keep_factor=True) == ItemChanged()
    assert admin.alter_configs([], deadline=DEADLINE) == ItemChanged()
    assert admin.elect_leaders([], deadline=DEADLINE) == ItemChanged()
    assert admin.create_topics([], deadline=DEADLINE) == ItemChanged()
    assert admin.create_partitions([], deadline=DEADLINE) == ItemChanged()
    assert admin.delete_topics([], deadline=DEADLINE) == ItemChanged()
    assert admin.place_replicas({}, deadline=DEADLINE) == ItemChanged()
    assert admin.commit_offsets("g", {}, deadline=DEADLINE) == ItemChanged()
    assert admin.delete_offsets("g", [], deadline=DEADLINE) == ItemChanged()
    assert admin.delete_groups([], deadline=DEADLINE) == ItemChanged()


LEADER_RATE, FOLLOWER_RATE = "leader.replication.throttled.rate", "follower.replication.throttled.rate"
AWAY = 3
DEAD, ALIVE, NOBODY = (ConfigResource.broker(broker) for broker in (AWAY, 1, 77))
Connect = Callable[[ClusterConnection], WireClient]


@pytest.mark.quorum
def test_a_broker_that_is_away__cannot_lead_but_may_be_a_target__and_its_rate_needs_the_controller(
    connect: Connect, backend: Backend, topic_name: str
) -> None:
    by_brokers = connect(backend.connection)
    by_controller = connect(replace(backend.connection, controller_servers=backend.controller_servers()))
    led, moved = f"{topic_name}-led", f"{topic_name}-moved"
    backend.create_topic(led, [[AWAY, 2]])
    backend.create_topic(moved, [[1, 2]], records=1)
    with backend.fenced(AWAY):
        is_not_elected(by_brokers, backend, led)
        is_accepted_as_a_target(by_brokers, backend, moved)
        rate_is_set_by_the_active_controller(by_controller)
        rate_is_certainly_not_set(by_brokers)
    wait_until(lambda: LEADER_RATE in backend.configs(AWAY), "the broker came back with its rate")
    assert backend.configs(AWAY)[LEADER_RATE] == ("1234567", "DYNAMIC_BROKER_CONFIG")
    assert FOLLOWER_RATE not in backend.configs(AWAY)
    cleared = by_brokers.alter_configs([ConfigChange(b, LEADER_RATE, DELETE) for b in (DEAD, ALIVE)], deadline=DEADLINE)
    assert cleared.done == {DEAD, ALIVE}


def is_not_elected(admin: WireClient, backend: Backend, topic: str) -> None:
    """The preferred replica is not in sync, so the election is refused."""
    partition = TopicPartition(topic, 0)
    wait_until(lambda: backend.topic(topic)[0][0] == 2, "broker 2 leads")
    refused = admin.elect_leaders([partition], deadline=DEADLINE)
    assert refused.refused[partition].code == 80
    assert refused.refused[partition].name == "PREFERRED_LEADER_NOT_AVAILABLE"


def is_accepted_as_a_target(admin: WireClient, backend: Backend, topic: str) -> None:
    """The move hangs until the broker is back: whoever submits must look first."""
    partition = TopicPartition(topic, 0)
    accepted = admin.alter_reassignments({partition: (1, AWAY)}, deadline=DEADLINE, keep_factor=True)
    listed = backend.reassignments()
    cancelled = admin.alter_reassignments({partition: None}, deadline=DEADLINE, keep_factor=True)
    assert accepted.done == {partition}
    assert [(row.adding, row.removing) for row in listed] == [((AWAY,), (2,))]
    assert cancelled.done == {partition}


def rate_is_certainly_not_set(admin: WireClient) -> None:
    """A client that does not know the controllers' own addresses cannot set it."""
    with raises_code(KafkaErrorCode.BROKER_NOT_LIVE, KafkaUnreachable, broker=3):
        admin.alter_configs([ConfigChange(DEAD, FOLLOWER_RATE, SET, "7654321")], deadline=DEADLINE)
    mixed = admin.alter_configs([ConfigChange(b, FOLLOWER_RATE, DELETE) for b in (DEAD, ALIVE)], deadline=DEADLINE)
    assert mixed.done == {ALIVE}
    assert mixed.refused[DEAD].code is None


def rate_is_set_by_the_active_controller(admin: WireClient) -> None:
    """The active controller sets both rates of the broker and deletes one again."""
    both = admin.alter_configs([ConfigChange(b, LEADER_RATE, SET, "1234567") for b in (DEAD, ALIVE)], deadline=DEADLINE)
    unregistered = admin.alter_configs(
        [ConfigChange(b, LEADER_RATE, SET, "1234567") for b in (ALIVE, NOBODY)], deadline=DEADLINE
    )
    assert both.done == {DEAD, ALIVE}
    assert unregistered.done == {ALIVE}
    assert (unregistered.refused[NOBODY].code, unregistered.refused[NOBODY].name) == (102, "BROKER_ID_NOT_REGISTERED")
    for operation, value in ((SET, "1234567"), (DELETE, None)):
        changes = [ConfigChange(broker, FOLLOWER_RATE, operation, value) for broker in (DEAD, ALIVE)]
        assert admin.alter_configs(changes, deadline=DEADLINE).done == {DEAD, ALIVE}


RATE = "leader.replication.throttled.rate"
STOPPED_BROKER, RUNNING_BROKER, UNKNOWN_BROKER = (ConfigResource.broker(broker) for broker in (3, 1, 77))


def _set(resource: ConfigResource, value: str = "1234567") -> ConfigChange:
    return ConfigChange(resource, RATE, ConfigOperation.SET, value)


def _clear(resource: ConfigResource) -> ConfigChange:
    return ConfigChange(resource, RATE, ConfigOperation.DELETE)


@pytest.mark.parametrize("value", ["-1", "fast", "1.5", "", str(2**63)])
def test_a_value_that_the_broker_would_refuse_is_not_sent_past_it(
    connect: Connect, fake: FakeKafka, value: str
) -> None:
    """A controller takes anything: the broker would find it when it comes back."""
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    with raises_code(KafkaErrorCode.BROKER_NOT_LIVE, KafkaUnreachable, broker=3):
        admin.alter_configs([_set(STOPPED_BROKER, value)], deadline=DEADLINE)
    other = ConfigChange(STOPPED_BROKER, "log.cleaner.threads", ConfigOperation.SET, "2")
    with raises_code(KafkaErrorCode.BROKER_NOT_LIVE, KafkaUnreachable, broker=3):
        admin.alter_configs([_set(STOPPED_BROKER), other], deadline=DEADLINE)

    assert ALTER_CONFIGS not in fake.requests


def test_a_live_brokers_rate_goes_to_itself(connect: Connect, fake: FakeKafka) -> None:
    fake.start_controllers()
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    assert admin.alter_configs([_set(STOPPED_BROKER), _set(RUNNING_BROKER)], deadline=DEADLINE).done == {
        STOPPED_BROKER,
        RUNNING_BROKER,
    }

    assert fake.asked_of[ALTER_CONFIGS] == {1: 1, 3: 1}


def test_only_the_active_controller_is_sent_it(connect: Connect, fake: FakeKafka) -> None:
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))
    for active in (101, 103, 102):
        fake.model.elect_controller(active)
        fake.asked_of.clear()
        assert admin.alter_configs([_set(STOPPED_BROKER)], deadline=DEADLINE).done == {STOPPED_BROKER}
        assert fake.asked_of[ALTER_CONFIGS] == {active: 1}


def test_its_lost_reply_is_lost(connect: Connect, fake: FakeKafka) -> None:
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    fake.loses_reply[ALTER_CONFIGS] = 9
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    changed = admin.alter_configs([_set(STOPPED_BROKER)], deadline=DEADLINE)

    assert changed.lost.keys() == {STOPPED_BROKER}
    assert fake.requests[ALTER_CONFIGS] == 1


def test_controllers_that_cannot_be_reached_are_named_with_the_broker(connect: Connect, fake: FakeKafka) -> None:
    fake.kill(3)
    fake.model.fence(3)
    with closed_port() as address:
        admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=(address,)))
        with in_time(1), pytest.raises(KafkaUnreachable, match=f"Broker 3 .* {address} cannot be reached"):
            admin.alter_configs([_set(STOPPED_BROKER)], deadline=DEADLINE)
        mixed = admin.alter_configs([_set(STOPPED_BROKER), _set(RUNNING_BROKER)], deadline=DEADLINE)
    assert mixed.done == {RUNNING_BROKER}
    assert mixed.refused[STOPPED_BROKER].code is None


def test_controllers_without_a_leader_are_stored_with_the_listener_that_is_silent(
    connect: Connect, fake: FakeKafka
) -> None:
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    fake.set_quorum(QuorumState.LEADERLESS)
    with closed_port() as address:
        admin = connect(
            ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=(address, *fake.controller_servers))
        )
        refused = (
            admin.alter_configs([_set(STOPPED_BROKER), _set(RUNNING_BROKER)], deadline=DEADLINE)
            .refused[STOPPED_BROKER]
            .message
        )

    stored = CodedMessage.from_json(refused.as_json())
    assert KafkaErrorCode.NO_LEADER_THERE in stored.params["why"].codes
    assert address in str(stored)


def test_a_closed_client_asks_no_controller(fake: FakeKafka) -> None:
    fake.start_controllers()
    admin = WireClient(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))
    admin.alter_configs([_set(RUNNING_BROKER)], deadline=DEADLINE)
    admin.close()
    with pytest.raises(KafkaUnreachable, match="closed because"):
        admin.alter_configs([_set(STOPPED_BROKER)], deadline=DEADLINE)


def test_controllers_of_another_cluster_are_sent_nothing(connect: Connect, fake: FakeKafka) -> None:
    """Brokers are numbered alike everywhere."""
    fake.start_controllers()
    fake.kill(3)
    fake.model.fence(3)
    fake.model.cluster_of_controllers = "another-cluster"
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers, controller_servers=fake.controller_servers))

    with pytest.raises(KafkaUnreachable, match="belong to the Kafka cluster another-cluster"):
        admin.alter_configs([_set(STOPPED_BROKER)], deadline=DEADLINE)

    assert ALTER_CONFIGS not in fake.requests


SHORT = 1.0
PARTITION = TopicPartition("t", 0)
TOPIC = ConfigResource.topic("t")
PLACE = ReplicaPlace(1, "t", 0)
LIST = ConfigChange(TOPIC, "leader.replication.throttled.replicas", ConfigOperation.APPEND, "0:1")


@pytest.fixture
def fake_admin(fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]) -> WireClient:
    fake.model.add_topic("t", [[1, 2]], records=3)
    return connect(ClusterConnection("fake", 1, fake.bootstrap_servers))


def _move(admin: WireClient, *, deadline: float = DEADLINE, keep_factor: bool = True) -> ItemChanged[TopicPartition]:
    return admin.alter_reassignments({PARTITION: (3, 2)}, deadline=deadline, keep_factor=keep_factor)


def _create(admin: WireClient, deadline: float) -> ItemChanged[str]:
    return admin.create_topics([NewTopic(f"new-{next(NUMBERS)}", ((1, 2),))], deadline=deadline)


def _grow(admin: WireClient, deadline: float) -> ItemChanged[str]:
    return admin.create_partitions([NewPartitions("t", next(NUMBERS), ((1, 2),))], deadline=deadline)


NUMBERS = itertools.count(1)
NEEDS = {
    CREATE_TOPICS: "Create",
    DELETE_TOPICS: "Delete",
    OFFSET_COMMIT: "Read",
    OFFSET_DELETE: "Delete",
    DELETE_GROUPS: "Delete",
}
CALLS: dict[int, Callable[[WireClient, float], ItemChanged[object]]] = {
    ALTER_REASSIGNMENTS: lambda admin, deadline: _move(admin, deadline=deadline),  # type: ignore[dict-item,return-value]
    ALTER_CONFIGS: lambda admin, deadline: admin.alter_configs([LIST], deadline=deadline),  # type: ignore[dict-item,return-value]
    ELECT_LEADERS: lambda admin, deadline: admin.elect_leaders([PARTITION], deadline=deadline),  # type: ignore[dict-item,return-value]
    CREATE_TOPICS: _create,  # type: ignore[dict-item]
    CREATE_PARTITIONS: _grow,  # type: ignore[dict-item]
    DELETE_TOPICS: lambda admin, deadline: admin.delete_topics([str(UUID(int=5))], deadline=deadline),  # type: ignore[dict-item,return-value]
    OFFSET_COMMIT: lambda admin, deadline: admin.commit_offsets("g", {PARTITION: 1}, deadline=deadline),  # type: ignore[dict-item,return-value]
    OFFSET_DELETE: lambda admin, deadline: admin.delete_offsets("g", [PARTITION], deadline=deadline),  # type: ignore[dict-item,return-value]
    DELETE_GROUPS: lambda admin, deadline: admin.delete_groups(["g"], deadline=deadline),  # type: ignore[dict-item,return-value]
    UNREGISTER_BROKER: lambda admin, deadline: admin.unregister_broker(3, deadline=deadline),  # type: ignore[dict-item,return-value]
    ALTER_LOG_DIRS: lambda admin, deadline: admin.place_replicas({PLACE: "/fake/1/d1"}, deadline=deadline),  # type: ignore[dict-item,return-value]
}


@pytest.mark.parametrize("api_key", CALLS)
def test_a_lost_reply_is_lost_and_the_request_was_sent_once(
    api_key: int, fake: FakeKafka, fake_admin: WireClient
) -> None:
    fake.loses_reply[api_key] = 9

    changed = CALLS[api_key](fake_admin, DEADLINE)

    assert (len(changed.done), len(changed.refused), len(changed.lost)) == (0, 0, 1)
    [error] = changed.lost.values()
    assert "closed the connection" in error.text
    assert fake.requests[api_key] == 1


@pytest.mark.parametrize("api_key", CALLS)
def test_a_broker_that_dies_of_the_request_is_not_replaced_by_another(
    api_key: int, fake: FakeKafka, fake_admin: WireClient
) -> None:
    fake.dies_on = dict.fromkeys((1, 2, 3), api_key)

    changed = CALLS[api_key](fake_admin, DEADLINE)

    assert len(changed.lost) == 1
    assert fake.requests[api_key] == 1


@pytest.mark.parametrize("api_key", [ALTER_REASSIGNMENTS, ALTER_CONFIGS, CREATE_TOPICS, ELECT_LEADERS])
def test_silent_controllers_lose_what_was_sent_to_them(api_key: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.set_quorum(QuorumState.SILENT)

    with in_time(SHORT):
        changed = CALLS[api_key](fake_admin, SHORT)

    [error] = changed.lost.values()
    waited = re.search(r"no controller answered within ([\d.]+) s", error.text)
    assert waited is not None
    assert SHORT / 2 <= float(waited[1]) <= SHORT
    assert fake.requests[api_key] == 1
    fake.set_quorum(QuorumState.LED)


@pytest.mark.parametrize(
    "api_key", [ALTER_REASSIGNMENTS, CREATE_TOPICS, ALTER_CONFIGS, ELECT_LEADERS, UNREGISTER_BROKER]
)
def test_a_time_out_told_by_kafka_is_lost(api_key: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    """REQUEST_TIMED_OUT: the broker does not know either."""
    fake.model.set_quorum(QuorumState.LEADERLESS)

    [error] = CALLS[api_key](fake_admin, DEADLINE).lost.values()

    assert (error.code, error.name) == (7, "REQUEST_TIMED_OUT")


def test_of_one_request_one_may_be_done_and_another_lost(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.model.add_topic("u", [[1, 2], [1, 2]])
    fake.model.refusals["u-0"] = ErrorCode.unknown_server_error, None
    policys_words = "Moves are not allowed here"
    fake.model.refusals["u-1"] = ErrorCode.policy_violation, f"{policys_words}."
    targets = {PARTITION: (3, 2), TopicPartition("u", 0): (3, 2), TopicPartition("u", 1): (3, 2)}

    changed = fake_admin.alter_reassignments(targets, deadline=DEADLINE, keep_factor=True)

    assert changed.done == {PARTITION}
    assert {p: error.code for p, error in changed.lost.items()} == {TopicPartition("u", 0): -1}
    refused = changed.refused[TopicPartition("u", 1)]
    assert (refused.code, refused.name) == (44, "POLICY_VIOLATION")
    assert policys_words in refused.text


def test_a_frozen_broker_does_not_keep_a_change_from_the_others(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]
) -> None:
    """It is connected, but does not say which versions it speaks: nothing was sent to it."""
    fake.model.add_topic("t", [[1, 2]], records=3)
    fake.freeze(1)
    fake.freeze(2)
    for _ in range(3):
        admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers))
        assert admin.elect_leaders([PARTITION], deadline=2 * SHORT).done == {PARTITION}
    assert fake.asked_of[ELECT_LEADERS] == {3: 3}


def test_a_dead_broker_does_not_keep_a_change_from_the_others(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake_admin.metadata(deadline=DEADLINE)
    fake.kill(1)
    fake.kill(2)

    assert _move(fake_admin).done == {PARTITION}
    assert fake.requests[ALTER_REASSIGNMENTS] == 1


def test_it_raises_where_nothing_was_sent(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake_admin.metadata(deadline=DEADLINE)
    for broker in (1, 2, 3):
        fake.kill(broker)

    for call in CALLS.values():
        with in_time(0), pytest.raises(KafkaUnreachable):
            call(fake_admin, DEADLINE)
    with in_time(0), pytest.raises(KafkaUnreachable):
        fake_admin.metadata(deadline=DEADLINE)
    assert not fake.requests.keys() & CALLS.keys()


def test_what_its_caller_gave_up_is_never_sent() -> None:
    once = AtMostOnce()

    assert not once.give_up()
    assert not once.begin()
    assert not once.begun


def test_what_was_begun_may_have_left_until_it_is_known_that_it_did_not() -> None:
    once, other = AtMostOnce(), AtMostOnce()

    assert once.begin()
    assert other.begin()
    other.not_begun()

    assert once.give_up()
    assert not other.give_up()


def test_refused_credentials_raise(connect: Callable[[ClusterConnection], WireClient]) -> None:
    with FakeKafka(ClusterModel(1), login=Login("PLAIN", "ops", "right")) as kafka:
        kafka.model.add_topic("t", [[1]])
        security = ConnectionSecurity("SASL_PLAINTEXT", "PLAIN", "ops", "wrong")
        admin = connect(ClusterConnection("sasl", 1, kafka.bootstrap_servers, security))
        with pytest.raises(AuthenticationFailed):
            admin.elect_leaders([PARTITION], deadline=DEADLINE)
        right = connect(ClusterConnection("sasl", 1, kafka.bootstrap_servers, replace(security, sasl_password="right")))
        assert right.elect_leaders([PARTITION], deadline=DEADLINE).done == {PARTITION}


@pytest.mark.parametrize("api_key", CALLS)
def test_a_missing_permission_is_a_refusal_that_names_it(api_key: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.denied = {api_key}

    [error] = CALLS[api_key](fake_admin, DEADLINE).refused.values()

    assert error.code in (29, 30, 31)
    assert f"the principal needs {NEEDS.get(api_key, 'Alter')}" in error.text


@pytest.mark.parametrize("api_key", CALLS)
def test_a_cluster_without_the_request_says_so(api_key: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.versions[api_key] = None

    with pytest.raises(NotSupported):
        CALLS[api_key](fake_admin, DEADLINE)


def test_without_kafkas_guard_the_answer_says_so(fake: FakeKafka, fake_admin: WireClient) -> None:
    """Version 0 has no such flag: a change of the replication factor would be carried out."""
    fake.versions[ALTER_REASSIGNMENTS] = (0, 0)

    changed = _move(fake_admin, keep_factor=True)

    assert changed.done == {PARTITION}
    assert not changed.guarded


@pytest.mark.parametrize("version", [0, 1, 2])
def test_elections_of_every_version(version: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.versions[ELECT_LEADERS] = (version, version)
    fake.model.change_leader("t", 0, 2)

    assert fake_admin.elect_leaders([PARTITION], deadline=DEADLINE).done == {PARTITION}
    assert fake.model.partition("t", 0).leader == 1


@pytest.mark.parametrize("version", [1, 2])
def test_directories_of_every_version(version: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.versions[ALTER_LOG_DIRS] = (version, version)

    assert fake_admin.place_replicas({PLACE: "/fake/1/d1"}, deadline=DEADLINE).done == {PLACE}


@pytest.mark.parametrize("version", [0, 1])
def test_configs_of_every_version(version: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.versions[ALTER_CONFIGS] = (version, version)

    assert fake_admin.alter_configs([LIST], deadline=DEADLINE).done == {TOPIC}
    assert fake.model.configs.topics["t"][LIST.key] == "0:1"


def test_two_thousand_partitions_go_in_one_request(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]
) -> None:
    fake.model.add_topic("wide", [[1, 2]] * 2000)
    targets = {TopicPartition("wide", index): (2, 3) for index in range(2000)}

    changed = connect(ClusterConnection("fake", 1, fake.bootstrap_servers)).alter_reassignments(
        targets, deadline=DEADLINE, keep_factor=True
    )

    assert changed.done == targets.keys()
    assert fake.requests[ALTER_REASSIGNMENTS] == 1


def test_changes_from_several_threads_do_not_mix(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.model.add_topic("many", [[1, 2]] * 40)
    answers: list[ItemChanged[TopicPartition]] = []

    def elect(index: int) -> None:
        answers.append(fake_admin.elect_leaders([TopicPartition("many", index)], deadline=DEADLINE))

    threads = [threading.Thread(target=elect, args=(index,)) for index in range(40)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(p.partition for answer in answers for p in answer.done) == list(range(40))


def test_groups_with_members_refuse(fake: FakeKafka, fake_admin: WireClient) -> None:
    fake.model.groups.add("g", [1, 2, 3], members=[FakeMember("m", "m", {"t": (0,)})], type="consumer")

    assert fake_admin.describe_groups(["g"], deadline=DEADLINE)["g"].type == "Consumer"
    assert fake_admin.commit_offsets("g", {PARTITION: 1}, deadline=DEADLINE).refused[PARTITION].code == 25
    assert fake_admin.delete_offsets("g", [PARTITION], deadline=DEADLINE).refused[PARTITION].code == 86
    assert fake_admin.delete_groups(["g"], deadline=DEADLINE).refused["g"].code == 68


@pytest.mark.parametrize("api_key", [OFFSET_COMMIT, OFFSET_DELETE, DELETE_GROUPS])
def test_a_coordinator_that_moved_may_have_done_it(api_key: int, fake: FakeKafka, fake_admin: WireClient) -> None:
    group = fake.model.groups.add("g", [1, 2, 3], committed={"t": {0: 5}})
    fake.model.groups.rumours["g"] = [group.coordinator % 3 + 1]

    [error] = CALLS[api_key](fake_admin, DEADLINE).lost.values()

    assert (error.code, fake.requests[api_key]) == (16, 1)


@pytest.mark.parametrize("api_key", [OFFSET_COMMIT, OFFSET_DELETE, DELETE_GROUPS])
def test_of_a_group_whose_coordinator_nobody_knows_nothing_is_sent(
    api_key: int, fake: FakeKafka, fake_admin: WireClient
) -> None:
    fake.model.groups.homeless = {"g"}

    with pytest.raises(KafkaUnreachable, match="coordinator of group g is unknown"):
        CALLS[api_key](fake_admin, SHORT)
    assert api_key not in fake.requests


class TestZooKeeperMode:
    @pytest.mark.parametrize("api_key", [ALTER_REASSIGNMENTS, CREATE_TOPICS, ELECT_LEADERS])
    def test_the_controller_is_asked_where_another_broker_refused(
        self, api_key: int, connect: Callable[[ClusterConnection], WireClient]
    ) -> None:
        """NOT_CONTROLLER is told before anything is done: asking the one that is named sends it once more safely."""
        with FakeKafka(ClusterModel(3, controllers=[2], mode=Mode.ZOOKEEPER)) as old:
            old.model.add_topic("t", [[1, 2]], records=3)
            admin = connect(ClusterConnection("old", 1, old.bootstrap_servers))
            for _ in range(6):
                assert CALLS[api_key](admin, DEADLINE).done
            assert old.asked_of[api_key][2] == 6

    def test_a_topics_configs_go_to_any_broker(self, connect: Callable[[ClusterConnection], WireClient]) -> None:
        with FakeKafka(ClusterModel(3, controllers=[2], mode=Mode.ZOOKEEPER)) as old:
            old.model.add_topic("t", [[1, 2]], records=3)
            admin = connect(ClusterConnection("old", 1, old.bootstrap_servers))
            assert admin.alter_configs([LIST], deadline=DEADLINE).done == {TOPIC}
            assert old.requests[ALTER_CONFIGS] == 1
