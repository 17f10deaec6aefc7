"""What changes a cluster: what is done, what is refused, and in whose words. On the fake and on real Kafka."""

from collections.abc import Iterator

import pytest

from kafkadash.kafka.changing import Changed, ConfigChange, ConfigOperation, ReplicaPlace
from kafkadash.kafka.port import CLUSTER_DEFAULT, ConfigResource, ItemError, TopicPartition
from kafkadash.kafka.wire_client import WireClient
from tests.contract.backends import Backend
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0
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
) -> Changed[TopicPartition]:
    return admin.alter_reassignments({partition: target}, deadline=DEADLINE, keep_factor=keep_factor)


def _refusal(changed: Changed[TopicPartition]) -> ItemError:
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
    assert started.guarded
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
    assert "includes the broker 2 more than once" in changed.refused[second].text
    assert "Unable to find partition" in changed.refused[beyond].text
    assert not changed.lost


def test_an_assignment_that_cannot_be_is_refused_in_kafkas_words(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    partition = TopicPartition(topic_name, 0)

    nobody, empty = _refusal(_alter(admin, partition, (1, 99))), _refusal(_alter(admin, partition, ()))

    assert (nobody.code, empty.code) == (39, 39)
    assert "broker 99, but no such broker is registered" in nobody.text
    assert "an empty replica list" in empty.text
    assert backend.topic(topic_name)[0][1] == (1, 2)


@pytest.mark.usefixtures("slow")
def test_the_replication_factor_is_guarded_unless_its_change_is_meant(
    admin: WireClient, backend: Backend, topic_name: str
) -> None:
    [partition] = _held(admin, backend, topic_name, [[1, 2]])

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


def test_lists_grow_and_shrink_by_pairs(admin: WireClient, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    topic = ConfigResource.topic(topic_name)

    def change(operation: ConfigOperation, value: str | None = None) -> Changed[ConfigResource]:
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
    assert admin.alter_reassignments({}, deadline=DEADLINE, keep_factor=True) == Changed()
    assert admin.alter_configs([], deadline=DEADLINE) == Changed()
    assert admin.elect_leaders([], deadline=DEADLINE) == Changed()
    assert admin.place_replicas({}, deadline=DEADLINE) == Changed()
