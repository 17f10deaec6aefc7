"""Configs of topics, of brokers and of all brokers, with where each value comes from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest

from kafkadash.kafka import config_reads
from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.port import (
    CLUSTER_DEFAULT,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    DeadlineExceeded,
    NotSupported,
)
from tests.contract.backends import Backend
from tests.contract.fake_answers import DESCRIBE_CONFIGS
from tests.contract.fake_broker import FakeKafka
from tests.waiting import wait_until

pytestmark = pytest.mark.contract

DEADLINE = 10.0
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
    assert own[RATE] == ConfigEntry(RATE, "1000001", ConfigSource.DYNAMIC_BROKER_CONFIG, False, own[RATE].read_only)
    assert RATE not in other
    assert other["follower.replication.throttled.rate"].source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    assert (other["broker.rack"].value, other["broker.rack"].source) == ("a", ConfigSource.STATIC_BROKER_CONFIG)
    assert other["broker.rack"].read_only
    secret = other["ssl.keystore.password"]
    assert (secret.sensitive, secret.value) == (True, None)


def test_only_the_named_keys_are_told(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1]])
    topic = ConfigResource.topic(topic_name)

    answer = admin.describe_configs([topic], keys=["min.insync.replicas", RATE], deadline=DEADLINE)

    assert list(answer.resources[topic]) == ["min.insync.replicas"]


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


def test_nothing_asked_is_nothing_answered(admin: WireAdmin) -> None:
    answer = admin.describe_configs([], deadline=DEADLINE)

    assert (answer.resources, answer.errors) == ({}, {})


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
    def admin(self, fake: FakeKafka, connect: Callable[[Connection], WireAdmin]) -> WireAdmin:
        return connect(Connection("fake", 1, fake.bootstrap_servers))

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

        assert "DescribeConfigs on the topic (TOPIC_AUTHORIZATION_FAILED)" in answer.errors[topic].text
        assert "DescribeConfigs on the cluster (CLUSTER_AUTHORIZATION_FAILED)" in answer.errors[broker].text

    def test_many_topics_are_asked_in_portions(
        self, fake: FakeKafka, admin: WireAdmin, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(config_reads, "TOPICS_PER_QUESTION", 4)
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
        monkeypatch.setattr(config_reads, "TOPICS_PER_QUESTION", 2)
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
    """Of several answers, as any broker may give the next one."""
    answers = [admin.describe_configs([resource], keys=[key], deadline=DEADLINE) for _ in range(3)]
    return all(key in a.resources[resource] and a.resources[resource][key].value == value for a in answers)


def _told(admin: WireAdmin, resource: ConfigResource) -> Told:
    answer = admin.describe_configs([resource], deadline=DEADLINE)
    assert not answer.errors
    return _plain(answer.resources[resource])


def _plain(entries: Mapping[str, ConfigEntry]) -> Told:
    return {name: (entry.value, entry.source.name) for name, entry in entries.items()}
