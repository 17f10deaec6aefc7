"""Who the brokers are, and what they speak.

Topics, partitions, leaders, replicas and ISR.

Configs of topics, of brokers and of all brokers, with where each value comes from.

What lies in the log directories.

The active controller and its followers.

What is in flight, and how far each replica has come.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import partial

import pytest

from kafkadash.core import clock
from kafkadash.kafka import reads as config_reads
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    ClusterConnection,
    ConfigEntry,
    ConfigOrigin,
    ConfigResource,
    DeadlineExceeded,
    EligibleReplicas,
    LogDir,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    PartitionMetadata,
    TopicMetadata,
    TopicPartition,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.reads import WireAdmin
from tests.contract.backends import RACKS, Backend
from tests.contract.fake_answers import DESCRIBE_CONFIGS, DESCRIBE_TOPIC_PARTITIONS
from tests.contract.fake_broker import FakeKafka
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0


def test_every_broker_is_described_with_rack_and_state(admin: WireAdmin, backend: Backend) -> None:
    cluster = admin.describe_cluster(deadline=DEADLINE)

    assert cluster.cluster_id == backend.cluster_id()
    assert [(broker.id, broker.rack, broker.fenced) for broker in cluster.brokers] == [
        (broker, rack, False if backend.release >= (4, 0) else None)
        for broker, rack in zip(backend.broker_ids, RACKS, strict=True)
    ]
    addresses = {f"{broker.host}:{broker.port}" for broker in cluster.brokers}
    assert addresses == set(backend.connection.bootstrap_servers)


@pytest.mark.quorum
def test_the_controller_named_on_kraft_is_some_broker_and_not_the_active_controller(
    admin: WireAdmin, backend: Backend
) -> None:
    named = admin.describe_cluster(deadline=DEADLINE).controller_id

    assert named in backend.broker_ids
    assert named != backend.controller()


@pytest.mark.quorum
def test_each_broker_tells_the_versions_it_speaks(admin: WireAdmin, backend: Backend) -> None:
    versions = admin.api_versions(deadline=DEADLINE)

    assert sorted(versions.brokers) == backend.broker_ids
    assert not versions.errors
    for ranges in versions.brokers.values():
        assert ranges[46] == (0, 0)  # ListPartitionReassignments
        assert ranges[55] == (0, 2)  # DescribeQuorum
        assert ranges[3][1] >= (13 if backend.release >= (4, 0) else 12)  # Metadata


def test_partitions_are_told_as_kafka_tells_them(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3], [3, 1]])

    def read() -> TopicMetadata:
        [topic] = admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics
        return topic

    wait_until(lambda: read().error is None, "the broker that is asked knows the topic")
    topic = read()

    assert [(p.leader, p.replicas, p.isr) for p in topic.partitions] == backend.topic(topic_name)
    assert [p.partition for p in topic.partitions] == [0, 1, 2]
    assert topic.partitions[0] == PartitionMetadata(
        partition=0, leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2), offline=()
    )
    assert len(topic.topic_id) == 36
    assert not topic.internal
    assert topic.error is None


def test_all_topics_are_told_when_none_is_named(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1], [2]])

    def is_told() -> bool:
        return topic_name in [topic.name for topic in admin.metadata(deadline=DEADLINE).topics]

    wait_until(is_told, "the broker that is asked knows the topic")
    before = time.time()
    metadata = admin.metadata(deadline=DEADLINE)
    after = time.time()

    assert [broker.id for broker in metadata.brokers] == backend.broker_ids
    assert metadata.cluster_id == backend.cluster_id()
    assert before <= metadata.taken_at <= after


def test_answers_have_the_time_that_this_process_was_told_and_not_that_of_the_machine(admin: WireAdmin) -> None:
    right = datetime.now(UTC) + timedelta(hours=1)
    clock.set_right(right)
    try:
        taken_at = admin.metadata(deadline=DEADLINE).taken_at
    finally:
        clock.set_right(datetime.now(UTC))
    assert 0 <= taken_at - right.timestamp() < 60


def test_no_topics_are_told_when_an_empty_list_is_named(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1]])

    assert admin.metadata(deadline=DEADLINE, topics=[]).topics == []


@pytest.mark.quorum
def test_eligible_replicas__of_partitions_in_sync__are_none(
    admin: WireAdmin, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3], [3, 1]])
    found = admin.eligible_replicas({topic_name: [0, 2], "no-such-topic": [0]}, deadline=DEADLINE)
    assert found == {TopicPartition(topic_name, index): EligibleReplicas((), ()) for index in (0, 2)}


def test_eligible_replicas__are_read_page_by_page(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
) -> None:
    fake.model.partitions_per_page = 2
    for name in ("a", "b", "c"):
        fake.model.add_topic(name, [[1, 2]] * 5)
    fake.model.eligible = {("a", 4): ([2], [1]), ("c", 0): ([], [2])}
    wanted = {"a": [0, 4], "b": [3], "c": range(3)}
    found = connect(ClusterConnection("fake", 1, fake.bootstrap_servers)).eligible_replicas(wanted, deadline=DEADLINE)
    assert {(p.topic, p.partition) for p in found} == {(name, i) for name, own in wanted.items() for i in own}
    assert found[TopicPartition("a", 4)] == EligibleReplicas((2,), (1,))
    assert found[TopicPartition("c", 0)] == EligibleReplicas((), (2,))
    assert sum(fake.asked_of[DESCRIBE_TOPIC_PARTITIONS].values()) == 5


def test_eligible_replicas__broker_names_the_same_page_again__comes_to_an_end(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
) -> None:
    fake.model.partitions_per_page = 0
    fake.model.add_topic("a", [[1, 2]] * 5)
    admin = connect(ClusterConnection("fake", 1, fake.bootstrap_servers))
    assert admin.eligible_replicas({"a": [0, 4]}, deadline=DEADLINE) == {}


def test_eligible_replicas__broker_does_not_offer_them__is_not_supported(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]
) -> None:
    fake.versions[DESCRIBE_TOPIC_PARTITIONS] = None
    with pytest.raises(NotSupported):
        connect(ClusterConnection("fake", 1, fake.bootstrap_servers)).eligible_replicas({"a": [0]}, deadline=DEADLINE)


def test_a_topic_that_does_not_exist_comes_back_with_its_error_and_is_not_created(
    admin: WireAdmin, topic_name: str
) -> None:
    for _ in range(2):
        [topic] = admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics
        assert topic.error is not None
        assert (topic.error.code, topic.error.name) == (3, "UNKNOWN_TOPIC_OR_PARTITION")
        assert topic_name in topic.error.text
        assert topic.partitions == []


def test_a_name_that_cannot_be_a_topic_comes_back_with_its_error(admin: WireAdmin) -> None:
    [topic] = admin.metadata(deadline=DEADLINE, topics=["not a topic"]).topics

    assert topic.error is not None
    assert topic.error.name == "INVALID_TOPIC_EXCEPTION"


RATE, LIST = "leader.replication.throttled.rate", "leader.replication.throttled.replicas"
Told = Mapping[str, tuple[str | None, str]]


@pytest.fixture
def set_config(backend: Backend) -> Iterator[Callable[[str | int | None, str, str], None]]:
    """Taken back when the test ends; a topic is the test's own, and may keep what it has."""
    done: list[tuple[int | None, str]] = []

    def change(owner: str | int | None, key: str, value: str) -> None:
        if not isinstance(owner, str):
            done.append((owner, key))
        backend.set_config(owner, key, value)

    yield change
    for owner, key in done:
        backend.set_config(owner, key, None)


def test_a_topics_configs_are_told_as_kafka_tells_them(
    admin: WireAdmin, backend: Backend, topic_name: str, set_config: Callable[..., None]
) -> None:
    backend.create_topic(topic_name, [[1, 2]])
    set_config(topic_name, LIST, "0:1,0:2")
    set_config(topic_name, "retention.ms", "7200000")
    topic = ConfigResource.topic(topic_name)

    wait_until(partial(_has, admin, topic, "retention.ms", "7200000"), "the topic's config is known everywhere")
    told = _told(admin, topic)

    assert told == backend.configs(topic_name)
    assert told[LIST] == ("0:1,0:2", "DYNAMIC_TOPIC_CONFIG")
    assert told["follower.replication.throttled.replicas"] == ("", "DEFAULT_CONFIG")
    assert len(told) >= 30


def test_a_brokers_configs_are_those_that_it_tells_of_itself(
    admin: WireAdmin, backend: Backend, set_config: Callable[..., None]
) -> None:
    set_config(2, RATE, "1000001")
    set_config(None, "follower.replication.throttled.rate", "2000002")

    wait_until(partial(_has, admin, ConfigResource.broker(2), RATE, "1000001"), "broker 2 knows its rate")
    for broker in (1, 2):
        follower = partial(_has, admin, ConfigResource.broker(broker), "follower.replication.throttled.rate", "2000002")
        wait_until(follower, f"broker {broker} knows the rate of all")
    wait_until(partial(_has, admin, CLUSTER_DEFAULT, "follower.replication.throttled.rate", "2000002"), "so does any")
    answer = admin.describe_configs([*map(ConfigResource.broker, (1, 2)), CLUSTER_DEFAULT], deadline=DEADLINE)

    assert not answer.errors
    assert _plain(answer.resources[CLUSTER_DEFAULT]) == backend.configs(None)
    for broker in (1, 2):
        assert _plain(answer.resources[ConfigResource.broker(broker)]) == backend.configs(broker)
    own, other = answer.resources[ConfigResource.broker(2)], answer.resources[ConfigResource.broker(1)]
    rate = own[RATE]
    assert (rate.value, rate.source, rate.sensitive) == ("1000001", ConfigOrigin.DYNAMIC_BROKER_CONFIG, False)
    assert RATE not in other
    assert other["follower.replication.throttled.rate"].source is ConfigOrigin.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert (other["broker.rack"].value, other["broker.rack"].source) == ("a", ConfigOrigin.STATIC_BROKER_CONFIG)
    assert other["broker.rack"].read_only
    secret = other["ssl.keystore.password"]
    assert (secret.sensitive, secret.value) == (True, None)


def test_only_the_named_keys_are_told(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1]])
    topic = ConfigResource.topic(topic_name)

    def told() -> list[str]:
        answer = admin.describe_configs([topic], keys=["min.insync.replicas", RATE], deadline=DEADLINE)
        return list(answer.resources.get(topic, ()))

    # The broker that is asked may not know the topic yet.
    wait_until(lambda: told() == ["min.insync.replicas"], "only the named key is told")


def test_what_does_not_exist_is_an_error_beside_the_others_answers(
    admin: WireAdmin, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1]])
    there, missing = ConfigResource.topic(topic_name), ConfigResource.topic(f"{topic_name}-not")
    nobody, illegal = ConfigResource.broker(99), ConfigResource.topic("not a topic")

    answer = admin.describe_configs([there, missing, illegal, nobody], deadline=DEADLINE)

    assert answer.resources.keys() == {there}
    assert answer.errors.keys() == {missing, illegal, nobody}
    assert answer.errors[missing].name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.errors[illegal].name == "INVALID_TOPIC_EXCEPTION"
    assert "Broker 99" in answer.errors[nobody].text


def test_no_configs_asked_are_none_answered(admin: WireAdmin) -> None:
    answer = admin.describe_configs([], deadline=DEADLINE)

    assert (answer.resources, answer.errors) == ({}, {})


@pytest.mark.quorum
def test_features_are_those_in_force(admin: WireAdmin, backend: Backend) -> None:
    told = admin.api_versions(deadline=DEADLINE)

    assert told.features.keys() == set(backend.broker_ids)
    for features in told.features.values():
        assert features.finalized == backend.finalized_features()
        assert features.epoch is not None
        low, high = features.supported["metadata.version"]
        assert low <= features.finalized["metadata.version"] <= high


class TestOnTheFake:
    @pytest.fixture
    def admin(self, fake: FakeKafka, connect: Callable[[ClusterConnection], WireAdmin]) -> WireAdmin:
        return connect(ClusterConnection("fake", 1, fake.bootstrap_servers))

    @pytest.mark.parametrize("version", range(1, 5))
    def test_every_version_is_spoken(self, version: int, fake: FakeKafka, admin: WireAdmin) -> None:
        fake.versions[DESCRIBE_CONFIGS] = (version, version)
        fake.model.add_topic("t", [[1]])
        fake.model.set_config("t", "retention.ms", "5")

        told = _told(admin, ConfigResource.topic("t"))

        assert told["retention.ms"] == ("5", "DYNAMIC_TOPIC_CONFIG")

    def test_a_version_without_sources_is_not_spoken(self, fake: FakeKafka, admin: WireAdmin) -> None:
        fake.versions[DESCRIBE_CONFIGS] = (0, 0)

        with pytest.raises(NotSupported, match="DescribeConfigs"):
            admin.describe_configs([CLUSTER_DEFAULT], deadline=DEADLINE)

    def test_a_missing_permission_names_operation_and_resource(self, fake: FakeKafka, admin: WireAdmin) -> None:
        fake.model.add_topic("t", [[1]])
        fake.denied.add(DESCRIBE_CONFIGS)
        topic, broker = ConfigResource.topic("t"), ConfigResource.broker(1)

        answer = admin.describe_configs([topic, broker], deadline=DEADLINE)

        for resource, kind in ((topic, "topic"), (broker, "cluster")):
            message = answer.errors[resource].message
            assert message.code == KafkaErrorCode.ITEM_FORBIDDEN
            assert message.params["permission"] == f"DescribeConfigs on the {kind}"
            assert message.params["code"] == f"{kind.upper()}_AUTHORIZATION_FAILED"

    def test_many_topics_are_asked_in_portions(
        self, fake: FakeKafka, admin: WireAdmin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config_reads, "CONFIGS_PER_REQUEST", 4)
        topics = [f"t{n}" for n in range(50)]
        for name in topics:
            fake.model.add_topic(name, [[1]])
        fake.model.set_config("t7", "retention.ms", "5")

        answer = admin.describe_configs([ConfigResource.topic(name) for name in topics], deadline=DEADLINE)

        assert answer.resources.keys() == {ConfigResource.topic(name) for name in topics}
        assert fake.requests[DESCRIBE_CONFIGS] == 16
        assert answer.resources[ConfigResource.topic("t7")]["retention.ms"].value == "5"
        assert answer.resources[ConfigResource.topic("t8")]["retention.ms"].value == "604800000"

    def test_a_frozen_broker_costs_its_own_configs_alone(
        self, fake: FakeKafka, admin: WireAdmin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config_reads, "CONFIGS_PER_REQUEST", 2)
        topics = [ConfigResource.topic(f"t{n}") for n in range(30)]
        for topic in topics:
            fake.model.add_topic(topic.name, [[1]])
        admin.describe_cluster(deadline=DEADLINE)
        fake.freeze(2)

        answer = admin.describe_configs([*topics, *map(ConfigResource.broker, (1, 2, 3))], deadline=2.0)

        assert answer.errors.keys() == {ConfigResource.broker(2)}
        assert len(answer.resources) == 32

    def test_a_frozen_cluster_is_a_failure_of_the_whole(self, fake: FakeKafka, admin: WireAdmin) -> None:
        admin.describe_cluster(deadline=DEADLINE)
        for broker in (1, 2, 3):
            fake.freeze(broker)

        with pytest.raises(DeadlineExceeded):
            admin.describe_configs([CLUSTER_DEFAULT, ConfigResource.broker(1)], deadline=0.6)

    def test_a_value_that_brokers_disagree_about_does_not_change_with_every_answer(
        self, fake: FakeKafka, admin: WireAdmin
    ) -> None:
        """Static values of topics come from whichever broker answers: it is the same one each time."""
        for name in ("a", "b", "c"):
            fake.model.add_topic(name, [[1]])
        asked = [ConfigResource.topic(name) for name in ("a", "b", "c")]
        counts = []
        for _ in range(6):
            admin.describe_configs(asked, deadline=DEADLINE)
            counts.append({broker: n for broker, n in fake.asked_of[DESCRIBE_CONFIGS].items() if n})
        assert [len(count) for count in counts] == [1] * 6


def _has(admin: WireAdmin, resource: ConfigResource, key: str, value: str) -> bool:
    """Ask several times: any broker may answer next, also one that does not know the topic yet."""
    answers = [admin.describe_configs([resource], keys=[key], deadline=DEADLINE) for _ in range(3)]
    found = [answer.resources.get(resource, {}).get(key) for answer in answers]
    return all(entry is not None and entry.value == value for entry in found)


def _told(admin: WireAdmin, resource: ConfigResource) -> Told:
    answer = admin.describe_configs([resource], deadline=DEADLINE)
    assert not answer.errors
    return _plain(answer.resources[resource])


def _plain(entries: Mapping[str, ConfigEntry]) -> Told:
    return {name: (entry.value, entry.source.name) for name, entry in entries.items()}


def test_sizes_are_those_that_kafka_tells(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3], [3, 1]], records=10)

    answer = admin.log_dirs(backend.broker_ids, deadline=DEADLINE)

    assert sorted(answer.brokers) == backend.broker_ids
    assert not answer.errors
    for broker in backend.broker_ids:
        ours = _sizes_of(topic_name, answer.brokers[broker])
        assert ours == {key: size for key, size in backend.sizes(broker).items() if key[1] == topic_name}
        assert sum(ours.values()) > 0
        for directory in answer.brokers[broker]:
            assert directory.error is None
            assert directory.cordoned is (False if backend.release >= (4, 3) else None)
            assert directory.total_bytes is not None
            assert directory.usable_bytes is not None
            assert 0 < directory.usable_bytes < directory.total_bytes


def test_a_broker_that_is_not_there_is_an_error_beside_the_others_answers(admin: WireAdmin, backend: Backend) -> None:
    answer = admin.log_dirs([1, 99], deadline=DEADLINE)

    assert answer.brokers.keys() == {1}
    assert answer.errors.keys() == {99}
    assert "Broker 99" in answer.errors[99].text


def test_nobody_asked_is_nobody_answered(admin: WireAdmin) -> None:
    answer = admin.log_dirs([], deadline=DEADLINE)

    assert (answer.brokers, answer.errors) == ({}, {})


def _sizes_of(topic: str, directories: object) -> dict[tuple[str, str, int], int]:
    assert isinstance(directories, list)
    found: dict[tuple[str, str, int], int] = {}
    for directory in directories:
        assert isinstance(directory, LogDir)
        for replica in directory.replicas:
            if replica.topic == topic:
                found[directory.path, topic, replica.partition] = replica.size_bytes
    return found


@pytest.mark.quorum
def test_the_leader_is_the_one_that_kafka_names(admin: WireAdmin, backend: Backend) -> None:
    quorum = admin.quorum(deadline=DEADLINE)

    assert quorum.leader_id == backend.controller()
    assert quorum.leader_epoch > 0
    assert quorum.high_watermark is not None
    assert quorum.high_watermark > 0


@pytest.mark.quorum
def test_voters_and_observers_come_with_directories_and_offsets(admin: WireAdmin, backend: Backend) -> None:
    quorum = admin.quorum(deadline=DEADLINE)

    assert {voter.id: voter.directory_id for voter in quorum.voters} == backend.voters()
    assert [observer.id for observer in quorum.observers] == backend.broker_ids
    leader = next(voter for voter in quorum.voters if voter.id == quorum.leader_id)
    assert leader.log_end_offset is not None
    for replica in [*quorum.voters, *quorum.observers]:
        assert replica.log_end_offset is not None
        assert replica.log_end_offset <= leader.log_end_offset
        assert replica.last_caught_up_ms is not None


def test_a_move_in_flight_is_listed_as_kafka_lists_it(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3]], records=400)
    backend.start_move(topic_name, 0, [3, 2])
    try:
        rows = list(admin.list_reassignments(deadline=DEADLINE).rows)
        truth = backend.reassignments()
    finally:
        backend.cancel_move(topic_name, 0)

    assert rows == truth
    [row] = rows
    assert (row.topic, row.partition) == (topic_name, 0)
    assert (row.adding, row.removing) == ((3,), (1,))
    assert row.target == (3, 2)
    assert set(row.original) == {1, 2}


def test_nothing_in_flight_is_an_empty_listing(admin: WireAdmin, backend: Backend) -> None:
    assert admin.list_reassignments(deadline=DEADLINE).rows == []
    assert backend.reassignments() == []


def test_an_adding_replica_tells_its_own_growing_log_end(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    records = 2_000
    backend.create_topic(topic_name, [[1, 2]], records=records)
    seen: list[int] = []
    failed: dict[OffsetQuery, object] = {}
    query = OffsetQuery(3, topic_name, 0, OffsetKind.LATEST)

    def has_grown() -> bool:
        backend.keep_moving(topic_name, 0, 3)
        answer = admin.replica_offsets([query], deadline=DEADLINE)
        failed.update(answer.errors)
        if query in answer.offsets:  # until it has its first fetch answered, a new follower may not know the topic
            seen.append(answer.offsets[query].offset)
        return len({offset for offset in seen if 0 < offset < records}) >= 2

    backend.start_move(topic_name, 0, [1, 2, 3])
    try:
        try:
            wait_until(has_grown, "the adding replica grows")
        except AssertionError as error:
            raise AssertionError(f"seen {seen}, errors {failed}") from error
        leader = backend.end_offset(1, topic_name, 0)
    finally:
        backend.cancel_move(topic_name, 0)
    assert seen == sorted(seen)
    assert leader == records


def test_each_replica_tells_log_start_and_log_end(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3]], records=20)
    queries = [
        OffsetQuery(broker, topic_name, partition, kind)
        for broker, partition in [(1, 0), (2, 0), (2, 1), (3, 1)]
        for kind in OffsetKind
    ]

    answer = admin.replica_offsets(queries, deadline=DEADLINE)

    assert not answer.errors
    for query in queries:
        expected = {
            OffsetKind.LATEST: backend.end_offset(query.broker, topic_name, query.partition),
            OffsetKind.LATEST_TIERED: -1,
        }
        assert answer.offsets[query].offset == expected.get(query.kind, 0)
    assert answer.offsets[queries[0]].offset == 20


def test_what_a_broker_cannot_tell_is_an_error_of_that_query_only(
    admin: WireAdmin, backend: Backend, topic_name: str
) -> None:
    backend.create_topic(topic_name, [[1, 2]], records=1)
    good = OffsetQuery(1, topic_name, 0, OffsetKind.LATEST)
    elsewhere = OffsetQuery(3, topic_name, 0, OffsetKind.LATEST)
    beyond = OffsetQuery(1, topic_name, 7, OffsetKind.LATEST)
    unknown = OffsetQuery(1, "no-such-topic", 0, OffsetKind.LATEST)
    nobody = OffsetQuery(99, topic_name, 0, OffsetKind.LATEST)

    answer = admin.replica_offsets([good, elsewhere, beyond, unknown, nobody], deadline=DEADLINE)

    assert answer.offsets.keys() == {good}
    assert answer.errors[elsewhere].name == "NOT_LEADER_OR_FOLLOWER"
    assert answer.errors[beyond].name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.errors[unknown].name == "UNKNOWN_TOPIC_OR_PARTITION"
    assert answer.errors[nobody].code is None
    assert "Broker 99" in answer.errors[nobody].text


def test_no_offsets_asked_are_none_answered(admin: WireAdmin) -> None:
    answer = admin.replica_offsets([], deadline=DEADLINE)

    assert (answer.offsets, answer.errors) == ({}, {})
