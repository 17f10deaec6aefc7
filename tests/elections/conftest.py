"""A cluster of which brokers lead partitions that others are preferred for, and elections on it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import RowLease
from kafkadash.elections.kind import KIND
from kafkadash.monitoring.models import CollectorRun, TopicState
from kafkadash.short_runs import worker
from kafkadash.short_runs.change_kind import plan_draft
from kafkadash.short_runs.models import ShortRun
from tests.execution.model_kafka import ModelKafka
from tests.execution.worlds import model_of
from tests.planning.stored import stored


@dataclass
class ElectionWorld:
    """``clock`` is the time of the runs' lease."""

    cluster: Cluster
    kafka: ModelKafka
    operator: User
    clock: datetime = field(default_factory=lambda: datetime.now(UTC))

    def lead(self, topic: str, partition: int, leader: int, isr: list[int] | None = None) -> None:
        """Let another broker lead a partition, in Kafka and as stored."""
        own = self.kafka.model.partitions[topic, partition]
        own.leader = leader
        own.isr = set(own.replicas if isr is None else isr)
        row = TopicState.objects.get(cluster=self.cluster, name=topic)
        row.partitions[partition][1], row.partitions[partition][4] = leader, sorted(own.isr)
        row.preferred_leaders = sum(bool(p[3]) and p[1] == p[3][0] for p in row.partitions)
        row.save()

    def draft(self, wanted: Mapping[str, Any] | None = None) -> ChangeRequest:
        made = services.create_draft(
            self.cluster, KIND, self.operator, title="Elect leaders", input=wanted or {}, options={}
        )
        return plan_draft(made)

    def queue(self, wanted: Mapping[str, Any] | None = None) -> ChangeRequest:
        """An approved election that its operator has started."""
        change = self.draft(wanted)
        services.submit(change, self.operator, why="Leaders are skewed.", version=change.version)
        expires = datetime.now(UTC) + timedelta(days=1)
        ChangeRequest.objects.filter(pk=change.pk).update(state="approved", approvals_needed=0, expires_at=expires)
        return services.start(ChangeRequest.objects.get(pk=change.pk), self.operator, "Now.")

    def step(self, change: ChangeRequest, seconds: float = 1.0) -> ChangeRequest:
        self.clock += timedelta(seconds=seconds)
        CollectorRun.objects.filter(cluster=self.cluster).update(succeeded_at=self.clock)
        run = ShortRun.objects.filter(request=change).first()
        if run is not None:
            ShortRun.objects.filter(pk=run.pk).update(next_at=Now(), lease_until=None)
            worker.step_once(run.pk)
        return ChangeRequest.objects.select_related("cluster").get(pk=change.pk)

    def until(self, change: ChangeRequest, state: str, most: int = 40) -> ChangeRequest:
        for _ in range(most):
            change = self.step(change)
            if change.state == state:
                return change
        raise AssertionError(f"{change.state}, not {state}: {self.states(change)} {self.run(change).error}")

    def run(self, change: ChangeRequest) -> ShortRun:
        return ShortRun.objects.get(request=change)

    def states(self, change: ChangeRequest) -> dict[str, str]:
        return dict(self.run(change).rows.values_list("subject", "state"))

    def reasons(self, change: ChangeRequest) -> dict[str, str]:
        return dict(self.run(change).rows.values_list("subject", "reason_code"))

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
    made = ElectionWorld(cluster, model_of(cluster), operator)

    def now(_: RowLease) -> datetime:
        return made.clock

    with mock.patch.object(worker, "admin_for", return_value=made.kafka), mock.patch.object(RowLease, "now", now):
        yield made


@pytest.fixture
def two_misled(world: ElectionWorld) -> ElectionWorld:
    """orders-0 and orders-1 have other leaders than brokers 1 and 2, which are in sync."""
    world.lead("orders", 0, 3)
    world.lead("orders", 1, 3)
    return world
