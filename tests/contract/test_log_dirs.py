"""What lies in the log directories."""

import pytest

from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.port import LogDir
from tests.contract.backends import Backend

pytestmark = pytest.mark.contract

DEADLINE = 10.0


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
            assert directory.cordoned is False
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
