"""The contract suite's cluster that is the fake one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from kafkadash.kafka.api import ClusterConnection, OngoingReassignment
from tests.contract.backends import RACKS
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel, QuorumState

# Numbers of DescribeConfigs' sources in the words of Kafka's tools.
_SOURCES = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
}


class FakeBackend:
    name = "fake"
    has_quorum = True
    release = (4, 3)

    def __init__(self, kafka: FakeKafka) -> None:
        self.kafka = kafka
        self.connection = ClusterConnection("fake", 1, kafka.bootstrap_servers)
        self.broker_ids = sorted(kafka.model.brokers)

    @property
    def model(self) -> ClusterModel:
        return self.kafka.model

    def create_topic(self, name: str, placement: Sequence[Sequence[int]], records: int = 0) -> None:
        self.model.add_topic(name, placement, records=records)

    def start_move(self, topic: str, partition: int, target: Sequence[int]) -> None:
        self.model.reassign(topic, partition, target)

    def keep_moving(self, topic: str, partition: int, broker: int) -> None:
        replicas = self.model.partition(topic, partition).replicas
        self.model.fetch(topic, partition, broker, replicas[broker].log_end + 1)

    def finish_move(self, topic: str, partition: int, broker: int) -> None:
        move = self.model.partition(topic, partition)
        self.model.fetch(topic, partition, broker, move.replicas[move.leader].log_end)
        self.model.complete(topic, partition)

    def cancel_move(self, topic: str, partition: int) -> None:
        self.model.cancel(topic, partition)

    def cluster_id(self) -> str:
        return self.model.cluster_id

    def topic(self, name: str) -> list[tuple[int, tuple[int, ...], tuple[int, ...]]]:
        return [(p.leader, tuple(p.order), tuple(p.isr)) for p in self.model.topics[name].partitions]

    def reassignments(self) -> list[OngoingReassignment]:
        return [
            OngoingReassignment(p.topic, p.index, tuple(p.order), tuple(p.adding), tuple(p.removing))
            for _, p in sorted(self.model.moving.items())
        ]

    def sizes(self, broker: int) -> dict[tuple[str, str, int], int]:
        node = self.model.brokers[broker]
        return {
            (node.directories[p.replicas[broker].directory], topic, index): p.replicas[broker].size
            for (topic, index), p in node.hosted.items()
        }

    def end_offset(self, broker: int, topic: str, partition: int) -> int:
        return self.model.partition(topic, partition).replicas[broker].log_end

    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        self.model.set_config(owner, key, value)

    def configs(self, owner: str | int | None) -> dict[str, tuple[str | None, str]]:
        configs = self.model.configs
        entries: Mapping[str, tuple[str | None, int]]
        if isinstance(owner, str):
            entries = configs.of_topic(owner)
        else:
            entries = configs.of_all_brokers() if owner is None else configs.of_broker(owner, RACKS[owner - 1])
        return {key: (value, _SOURCES[source]) for key, (value, source) in entries.items()}

    def finalized_features(self) -> dict[str, int]:
        return {name: level for name, (_, _, level) in self.model.features.items() if level is not None}

    def controller(self) -> int:
        return self.model.controller

    def voters(self) -> dict[int, str]:
        return {101: "AAAAAAAAAGUAAAAAAAAAAQ", 102: "AAAAAAAAAGYAAAAAAAAAAQ", 103: "AAAAAAAAAGcAAAAAAAAAAQ"}

    @contextmanager
    def frozen(self, broker: int) -> Iterator[None]:
        self.kafka.freeze(broker)
        try:
            yield
        finally:
            self.kafka.thaw(broker)

    def controller_servers(self) -> tuple[str, ...]:
        self.kafka.start_controllers()
        return self.kafka.controller_servers

    @contextmanager
    def fenced(self, broker: int) -> Iterator[None]:
        self.kafka.kill(broker)
        self.model.fence(broker)
        try:
            yield
        finally:
            self.kafka.start(broker)
            self.model.unfence(broker)

    @contextmanager
    def without_controllers(self) -> Iterator[None]:
        self.kafka.set_quorum(QuorumState.SILENT)
        try:
            yield
        finally:
            self.kafka.set_quorum(QuorumState.LED)
