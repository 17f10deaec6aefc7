"""A registered cluster whose Kafka is kept in memory, with a clock that only the test moves."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from kafkadash.clusters.models import Cluster
from kafkadash.monitoring import collection
from kafkadash.monitoring.models import CollectorRun
from tests.monitoring.memory_kafka import MemoryCluster


@dataclass
class Clock:
    """Starts at the present, so that it never runs behind the database's."""

    now: float = field(default_factory=time.time)

    def __call__(self) -> float:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def kafka(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    memory = MemoryCluster(clock)
    monkeypatch.setattr(collection, "admin_for", lambda _: memory)
    return memory


@pytest.fixture
def cluster(db: None) -> Cluster:
    cluster = Cluster.objects.create(name="memory", slug="memory", bootstrap_servers="127.0.0.1:1")
    collection.ensure_runs()
    return cluster


@pytest.fixture
def refresh(cluster: Cluster, kafka: MemoryCluster) -> Callable[[str], collection.RefreshOutcome]:
    """Refreshes one kind now, whether it is due or not."""

    def run(kind: str) -> collection.RefreshOutcome:
        result = collection.refresh(CollectorRun.objects.get(cluster=cluster, kind=kind).pk, only_if_due=False)
        assert result is not None
        return result

    return run
