"""Clusters of Kafka and clients of them, made for one case."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from kafkadash.kafka.connection import Connection, Security
from kafkadash.kafka.port import (
    KafkaFailure,
)
from kafkadash.kafka.wire_client import WireClient
from tests.contract.fake_broker import FakeKafka
from tests.contract.fake_model import ClusterModel, Mode
from tests.refusals.driving import refused

DEADLINE = 10.0
SHORT = 0.4


class Net:
    """Clusters and clients that end with the test."""

    def __init__(self, ending: ExitStack) -> None:
        self.ending = ending
        self.clients = 0

    def kafka(self, brokers: int = 2, mode: Mode = Mode.KRAFT, **options: Any) -> FakeKafka:
        controllers = [2] if mode is Mode.ZOOKEEPER else [101, 102, 103]
        model = ClusterModel(brokers, mode=mode, controllers=controllers)
        model.add_topic("t", [list(model.brokers)[:2]], records=3)
        return self.ending.enter_context(FakeKafka(model, **options))

    def client(self, servers: tuple[str, ...] | str, security: Security | None = None, **more: Any) -> WireClient:
        self.clients += 1
        servers = (servers,) if isinstance(servers, str) else servers
        made = WireClient(Connection(f"said-{self.clients}", 1, servers, security or Security(), **more))
        self.ending.callback(made.close)
        return made

    def asked(self, servers: tuple[str, ...] | str, security: Security | None = None, seconds: float = DEADLINE) -> str:
        client = self.client(servers, security)
        return refused(KafkaFailure, lambda: client.metadata(deadline=seconds))

    def at(self, listener: Any, security: Security | None = None, seconds: float = DEADLINE) -> str:
        return self.asked(self.ending.enter_context(listener), security, seconds)

    def of(self, set_up: Callable[[FakeKafka], object], call: Callable[[WireClient], object], **options: Any) -> str:
        """What a call fails with as a whole."""
        fake = self.kafka(**options)
        set_up(fake)
        client = self.client(fake.bootstrap_servers)
        return refused(KafkaFailure, lambda: call(client))


@pytest.fixture
def net() -> Iterator[Net]:
    with ExitStack() as ending:
        yield Net(ending)
