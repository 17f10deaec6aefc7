"""A stored cluster of six brokers in three racks, and changes of its topics."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.kafka.api import NewTopic
from kafkadash.topics.creation import KIND
from kafkadash.topics.deletion import KIND as DELETION
from kafkadash.topics.growth import KIND as GROWTH
from tests.execution.worlds import model_of
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped

TWO = {"names": ["bills", "dues"], "partitions": 2, "factor": 3, "start": 1, "shift": 0, "configs": {}}


class TopicWorld(ShortWorld):
    def grow(self, topic: str, count: int) -> ChangeRequest:
        """An approved change that gives a topic as many partitions, started."""
        self.kind = GROWTH
        return self.queue({"topic": topic, "count": count})

    def delete(self, *topics: str) -> ChangeRequest:
        """An approved change that deletes topics, started."""
        self.kind = DELETION
        return self.queue({"topic_ids": [f"id-of-{topic}" for topic in topics]})

    @property
    def created(self) -> list[list[str]]:
        """Topics of each CreateTopics request that arrived in Kafka."""
        return [
            [topic.name for topic in asked if isinstance(topic, NewTopic)]
            for call, asked in self.kafka.sent
            if call == "create_topics" and isinstance(asked, tuple)
        ]


@pytest.fixture
def world(db: None, operator: User) -> Iterator[TopicWorld]:
    cluster = stored()
    made = TopicWorld(cluster, model_of(cluster), operator, KIND)
    with stepped(made):
        yield made
