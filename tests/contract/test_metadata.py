"""Topics, partitions, leaders, replicas and ISR."""

import time
from datetime import UTC, datetime, timedelta

import pytest

from kafkadash.kafka import clock
from kafkadash.kafka.admin import WireAdmin
from kafkadash.kafka.port import Partition
from tests.contract.backends import Backend

pytestmark = pytest.mark.contract

DEADLINE = 10.0


def test_partitions_are_told_as_kafka_tells_them(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1, 2], [2, 3], [3, 1]])

    [topic] = admin.metadata(deadline=DEADLINE, topics=[topic_name]).topics

    assert [(p.leader, p.replicas, p.isr) for p in topic.partitions] == backend.topic(topic_name)
    assert [p.partition for p in topic.partitions] == [0, 1, 2]
    assert topic.partitions[0] == Partition(
        partition=0, leader=1, leader_epoch=0, replicas=(1, 2), isr=(1, 2), offline=()
    )
    assert len(topic.topic_id) == 36
    assert not topic.internal
    assert topic.error is None


def test_all_topics_are_told_when_none_is_named(admin: WireAdmin, backend: Backend, topic_name: str) -> None:
    backend.create_topic(topic_name, [[1], [2]])

    before = time.time()
    metadata = admin.metadata(deadline=DEADLINE)
    after = time.time()

    assert topic_name in [topic.name for topic in metadata.topics]
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
