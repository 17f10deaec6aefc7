"""Calls whose answers are broken, some of each kind; thousands are in ``make proof``, also on ZooKeeper's wire."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkadash.kafka.api import ClusterConnection, ConfigChange, ConfigResource, KafkaUnreachable
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.mutations import WireClient
from tests.contract.broken_calls import break_kafka
from tests.contract.fake_answers import LIST_REASSIGNMENTS
from tests.contract.fake_broker import FakeKafka
from tests.raised_codes import raises_code

FAULTS = 60


@pytest.mark.contract
def test_a_call_whose_answers_are_broken__is_right_or_fails_in_time() -> None:
    tally = break_kafka(1, FAULTS)
    assert not tally.wrong
    assert len(tally.answered) + len(tally.failed) > 10


WITHOUT_TOPICS = bytes(1 + 4 + 2 + 1 + 1 + 1)
"""Header, throttle time, error code, error message, topics (an array that must not be null) and tags."""
ALTER_CONFIGS, WITHOUT_RESPONSES = 44, bytes(1 + 4 + 1 + 1)
"""Header, throttle time, responses (an array that must not be null) and tags."""


@pytest.mark.contract
def test_an_answer_with_null_for_an_array__is_refused(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]
) -> None:
    client = connect(ClusterConnection("malformed", 1, fake.bootstrap_servers))
    fake.replaced[LIST_REASSIGNMENTS] = WITHOUT_TOPICS
    with raises_code(KafkaErrorCode.ANSWER_MALFORMED, KafkaUnreachable):
        client.list_reassignments(deadline=5)


@pytest.mark.contract
def test_a_change_whose_answer_is_malformed__is_lost(
    fake: FakeKafka, connect: Callable[[ClusterConnection], WireClient]
) -> None:
    fake.model.add_topic("orders", [[1, 2]])
    client = connect(ClusterConnection("malformed", 1, fake.bootstrap_servers))
    fake.replaced[ALTER_CONFIGS] = WITHOUT_RESPONSES
    resource = ConfigResource.topic("orders")
    changed = client.alter_configs([ConfigChange.set_or_delete(resource, "retention.ms", "1")], deadline=5)
    assert [item.message.code for item in changed.lost.values()] == [KafkaErrorCode.ANSWER_MALFORMED]
    assert (list(changed.lost), changed.done, dict(changed.refused)) == ([resource], frozenset(), {})
