"""A stored cluster with a virtual Kafka behind it, and changes that are lists of items, stepped by a virtual clock."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import RowLease
from kafkadash.monitoring.models import CollectorRun
from kafkadash.short_runs import worker
from kafkadash.short_runs.models import ShortRun
from kafkadash.short_runs.plans import plan_draft
from tests.execution.model_kafka import ModelKafka


@dataclass
class ShortWorld:
    """``kind`` of its changes; ``clock`` is the time of the runs' lease."""

    cluster: Cluster
    kafka: ModelKafka
    operator: User
    kind: str
    clock: datetime = field(default_factory=lambda: datetime.now(UTC))

    def draft(self, wanted: Mapping[str, Any] | None = None) -> ChangeRequest:
        made = services.create_draft(
            self.cluster, self.kind, self.operator, title="Mend it", input=wanted or {}, options={}
        )
        return plan_draft(made)

    def queue(self, wanted: Mapping[str, Any] | None = None) -> ChangeRequest:
        """An approved change that its operator has started."""
        change = self.draft(wanted)
        services.submit(change, self.operator, why="It was found.", version=change.version)
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

    def until_stale(self, change: ChangeRequest) -> ChangeRequest:
        """Two readings that find the same: a broker may have told the first one late."""
        assert self.step(change).state == "queued"
        change = self.step(change)
        assert change.state == "stale"
        return change

    def run(self, change: ChangeRequest) -> ShortRun:
        return ShortRun.objects.get(request=change)

    def states(self, change: ChangeRequest) -> dict[str, str]:
        return dict(self.run(change).rows.values_list("subject", "state"))

    def reasons(self, change: ChangeRequest) -> dict[str, str]:
        return dict(self.run(change).rows.values_list("subject", "reason_code"))


@contextmanager
def stepped(world: ShortWorld) -> Iterator[None]:
    """Steps use the world's Kafka and clock."""

    def now(_: RowLease) -> datetime:
        return world.clock

    with mock.patch.object(worker, "admin_for", return_value=world.kafka), mock.patch.object(RowLease, "now", now):
        yield
