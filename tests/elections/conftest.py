"""A cluster of which brokers lead partitions that others are preferred for, and elections on it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkadash.accounts.models import User
from kafkadash.elections.kind import KIND
from kafkadash.monitoring.models import TopicState
from tests.execution.worlds import model_of
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped


class ElectionWorld(ShortWorld):
    def lead(self, topic: str, partition: int, leader: int, isr: list[int] | None = None) -> None:
        """Let another broker lead a partition, in Kafka and as stored."""
        own = self.kafka.model.partitions[topic, partition]
        own.leader = leader
        own.isr = set(own.replicas if isr is None else isr)
        row = TopicState.objects.get(cluster=self.cluster, name=topic)
        row.partitions[partition][1], row.partitions[partition][4] = leader, sorted(own.isr)
        row.preferred_leaders = sum(bool(p[3]) and p[1] == p[3][0] for p in row.partitions)
        row.save()

    @property
    def elections(self) -> list[str]:
        """Partitions of each request that arrived in Kafka."""
        return [
            ",".join(sorted(f"{p.topic}-{p.partition}" for p in asked))
            for call, asked in self.kafka.sent
            if call == "elect_leaders" and isinstance(asked, tuple)
        ]


@pytest.fixture
def world(db: None, operator: User) -> Iterator[ElectionWorld]:
    cluster = stored()
    made = ElectionWorld(cluster, model_of(cluster), operator, KIND)
    with stepped(made):
        yield made


@pytest.fixture
def two_misled(world: ElectionWorld) -> ElectionWorld:
    """orders-0 and orders-1 have other leaders than brokers 1 and 2, which are in sync."""
    world.lead("orders", 0, 3)
    world.lead("orders", 1, 3)
    return world
