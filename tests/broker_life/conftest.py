"""A stored cluster of six brokers whose broker 6 hosts nothing, and changes of its brokers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kafkadash.accounts.models import User
from kafkadash.broker_life import cordon, unregister
from kafkadash.changes.models import ChangeRequest
from kafkadash.kafka.api import ConfigResource
from kafkadash.monitoring.models import BrokerState
from tests.execution.worlds import model_of
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped

EMPTY = 6
TOPICS = {"orders": [[1, 2, 3], [2, 3, 4], [3, 4, 5]], "clicks": [[3, 5], [1, 2]]}


class BrokerWorld(ShortWorld):
    def cordon(self, broker: int = EMPTY, value: str | None = "*") -> ChangeRequest:
        """An approved change of the directories that take no new replicas, started."""
        self.kind = cordon.KIND
        return self.queue({"values": {str(broker): value}})

    def unregister(self, broker: int = EMPTY) -> ChangeRequest:
        """An approved change that unregisters a broker, started."""
        self.kind = unregister.KIND
        return self.queue({"broker": broker})

    def stop(self, broker: int = EMPTY) -> None:
        """Stop a broker in the virtual Kafka, and in the rows."""
        self.kafka.model.brokers[broker] = False
        BrokerState.objects.filter(broker_id=broker).update(fenced=True)

    def config(self, broker: int = EMPTY) -> str | None:
        return self.kafka.configs.get(ConfigResource.broker(broker), {}).get(cordon.KEY)

    def calls(self, name: str) -> int:
        return len([call for call, _ in self.kafka.sent if call == name])


@pytest.fixture
def world(db: None, operator: User) -> Iterator[BrokerWorld]:
    cluster = stored(topics=TOPICS)
    kafka = model_of(cluster)
    kafka.cordons = True
    for row in BrokerState.objects.filter(cluster=cluster):
        row.host, row.port = "127.0.0.1", 9000 + row.broker_id  # as the virtual Kafka has them
        row.save()
    made = BrokerWorld(cluster, kafka, operator, cordon.KIND)
    with stepped(made):
        yield made
