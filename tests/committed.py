"""Commits of a consumer on a real Kafka whose coordinator may just have been elected."""

from __future__ import annotations

from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

from tests.waiting import wait_until


def commit_offsets(consumer: Consumer, offsets: Sequence[TopicPartition]) -> None:
    """Commits them, as soon as the group's coordinator has loaded what was committed before."""

    def is_committed() -> bool:
        try:
            consumer.commit(offsets=list(offsets), asynchronous=False)
        except KafkaException as refused:
            if refused.args[0].code() != KafkaError.COORDINATOR_LOAD_IN_PROGRESS:
                raise
            return False
        return True

    wait_until(is_committed, "the coordinator takes a commit")
