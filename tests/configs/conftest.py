"""A stored cluster of six brokers whose topics have two replicas in sync at least, and changes of its configs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.configs.kind import KIND
from kafkadash.kafka.api import CLUSTER_DEFAULT, ConfigResource, ConfigType
from kafkadash.kafka.config_values import UNCLEAN_ELECTION
from kafkadash.monitoring.models import BrokerState, ConfigCatalog, TopicState
from tests.execution.worlds import model_of
from tests.planning.stored import stored
from tests.short_runs.worlds import ShortWorld, stepped

MIN_ISR, RETENTION = "min.insync.replicas", "retention.ms"
ORDERS = "orders: retention.ms"
TOPIC_KEYS: dict[str, list[Any]] = {
    "cleanup.policy": [ConfigType.LIST, False, False, ["delete", "default"]],
    "leader.replication.throttled.replicas": [ConfigType.LIST, False, False, ["", "default"]],
    "min.cleanable.dirty.ratio": [ConfigType.DOUBLE, False, False, ["0.5", "default"]],
    MIN_ISR: [ConfigType.INT, False, False, ["1", "default"]],
    "preallocate": [ConfigType.BOOLEAN, False, False, ["false", "default"]],
    RETENTION: [ConfigType.LONG, False, False, ["604800000", "default"]],
    UNCLEAN_ELECTION: [ConfigType.BOOLEAN, False, False, ["false", "default"]],
}
BROKER_KEYS: dict[str, list[Any]] = {
    "leader.replication.throttled.rate": [ConfigType.LONG, False, False, None],
    "log.cleaner.threads": [ConfigType.INT, False, False, ["1", "default"]],
    "log.retention.hours": [ConfigType.INT, True, False, ["72", "static"]],
    "ssl.keystore.password": [ConfigType.PASSWORD, False, True, [None, "static"]],
}


class ConfigWorld(ShortWorld):
    def edit(self, topic: str, key: str, value: str | None) -> dict[str, Any]:
        return {"edits": [{"of": "topic", "ids": [f"id-of-{topic}"], "key": key, "value": value}]}

    def queue_edit(self, key: str = RETENTION, value: str | None = "60000", topic: str = "orders") -> ChangeRequest:
        """An approved change of one config of a topic, started."""
        return self.queue(self.edit(topic, key, value))

    def set_value(self, topic: str, key: str, value: str | None) -> None:
        """Set or remove a value in Kafka and in what is stored."""
        row = TopicState.objects.get(name=topic)
        own, stored = self.kafka.configs.setdefault(ConfigResource.topic(topic), {}), row.config or {}
        if value is None:
            own.pop(key, None)
            stored.pop(key, None)
        else:
            own[key], stored[key] = value, [value, "topic"]
        row.config = stored
        row.save(update_fields=["config"])

    @property
    def requests(self) -> int:
        """IncrementalAlterConfigs requests that arrived in Kafka."""
        return len([call for call, _ in self.kafka.sent if call == "alter_configs"])

    def value_of(self, topic: str, key: str) -> str | None:
        return self.kafka.configs[ConfigResource.topic(topic)].get(key)


@pytest.fixture
def world(db: None, operator: User) -> Iterator[ConfigWorld]:
    cluster = stored()
    ConfigCatalog.objects.create(cluster=cluster, topics=TOPIC_KEYS, brokers=BROKER_KEYS, default={})
    BrokerState.objects.filter(cluster=cluster).update(config={"log.retention.hours": ["72", "static"]})
    made = ConfigWorld(cluster, model_of(cluster), operator, KIND)
    for topic in TopicState.objects.filter(cluster=cluster):
        made.kafka.configs[ConfigResource.topic(topic.name)] = {MIN_ISR: "2"}
    made.kafka.configs[CLUSTER_DEFAULT] = {}
    with stepped(made):
        yield made
