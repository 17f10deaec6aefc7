"""A stored cluster, a queued drain on it, and a virtual Kafka behind it that steps are taken on by a virtual clock.

A run whose first moves are in flight, and whether anything of its throttles is left.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from unittest import mock

from django.db.models.functions import Now

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.changes import services as running
from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import RowLease
from kafkadash.core.messages import CodedReason
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.execution.worker import step as stepping
from kafkadash.execution.worker.running import RunningStep
from kafkadash.kafka.api import KafkaClient
from kafkadash.monitoring.models import BrokerWeights, CollectorRun
from kafkadash.planning.stored_topology import load_topology
from tests.execution.executor_cluster import Cluster as Model
from tests.execution.model_kafka import ModelKafka
from tests.factories import GB
from tests.planning.plans import planned

SIZE = 3 * GB
RATE = 500_000_000
OPTIONS = RunOptions(RATE, RATE // 10, 2 * RATE, per_broker=5, per_cluster=50)
ROWS = (
    PartitionMove("orders", "id-of-orders", 0, (1, 2, 3), (1, 2, 6)),
    PartitionMove("orders", "id-of-orders", 1, (2, 3, 4), (2, 6, 4)),
    PartitionMove("orders", "id-of-orders", 2, (3, 4, 5), (6, 4, 5)),
    PartitionMove("orders", "id-of-orders", 4, (3, 1, 2), (6, 1, 2)),
    PartitionMove("orders", "id-of-orders", 3, (4, 5, 6), (5, 4, 6)),
    PartitionMove("clicks", "id-of-clicks", 0, (3, 5), (6, 5)),
)
"""Broker 3 of ``tests.planning.stored.TOPICS`` is drained to broker 6, and one partition gets another leader."""


@dataclass
class World:
    """``clock`` is what the runs' lease gives as the time; ``tick`` takes one step of each and lets the model go on."""

    cluster: Cluster
    kafka: ModelKafka
    clock: datetime = field(default_factory=lambda: datetime.now(UTC))
    runs: list[int] = field(default_factory=list)
    executions: dict[int, int] = field(default_factory=dict)

    @property
    def model(self) -> Model:
        return self.kafka.model

    def tick(self, seconds: float = 2.0) -> None:
        for number in self.runs:
            self.step(number)
        self.passes(seconds)

    def step(self, number: int | None = None) -> None:
        self.reset(number)
        self.take(number)

    def reset(self, number: int | None = None) -> None:
        """Its turn has come."""
        Execution.objects.filter(request=number or self.runs[0]).update(next_at=Now(), lease_until=None)

    def take(self, number: int | None = None) -> None:
        stepping.step_once(self.executions[number or self.runs[0]])

    def passes(self, seconds: float) -> None:
        """Time goes by, the cluster moves on, and the collectors read all that they read."""
        self.clock += timedelta(seconds=seconds)
        self.model.pass_time(seconds)
        CollectorRun.objects.filter(cluster=self.cluster).update(succeeded_at=self.clock)
        BrokerWeights.objects.filter(cluster=self.cluster).update(taken_at=self.clock)

    def until(self, state: str, most: int = 200, number: int | None = None) -> ChangeRequest:
        for _ in range(most):
            if self.change(number).state == state:
                return self.change(number)
            self.tick()
        run = self.run(number)
        raise AssertionError(f"{self.change(number).state}, not {state}: {run.error} {run.held} {self.states(number)}")

    def change(self, number: int | None = None) -> ChangeRequest:
        return ChangeRequest.objects.select_related("cluster").get(pk=number or self.runs[0])

    @property
    def arrived(self) -> Counter[tuple[str, int]]:
        """How often a target arrived in Kafka, by partition."""
        return Counter(
            (item.topic, item.partition)
            for call, targets in self.kafka.sent
            if call == "alter_reassignments" and isinstance(targets, dict)
            for item, target in targets.items()
            if target is not None
        )

    def run(self, number: int | None = None) -> Execution:
        return Execution.objects.get(request=number or self.runs[0])

    def states(self, number: int | None = None) -> dict[str, tuple[str, CodedReason | None]]:
        moves = Move.objects.filter(execution__request=number or self.runs[0])
        return {f"{m.topic}-{m.partition}": (m.state, m.reason) for m in moves}

    def audit(self, number: int | None = None) -> list[str]:
        events = AuditEvent.objects.filter(object_type="changerequest", object_id=str(number or self.runs[0]))
        return list(events.order_by("id").values_list("action", flat=True))

    def queue(self, user: User, rows: Sequence[PartitionMove] = ROWS, options: RunOptions = OPTIONS) -> ChangeRequest:
        """An approved request for these rows that its operator has started."""
        topology = load_topology(self.cluster).topology
        change = planned(self.cluster, topology, rows, options=options, approvals_needed=0)
        ChangeRequest.objects.filter(pk=change.pk).update(
            state=RequestState.APPROVED, expires_at=datetime.now(UTC) + timedelta(days=1)
        )
        queued = running.start(change, user, "Now.")
        self.runs.append(queued.pk)
        self.executions[queued.pk] = self.run(queued.pk).pk
        return queued


def model_of(cluster: Cluster, rate: float = RATE) -> ModelKafka:
    """A virtual Kafka as the stored cluster is."""
    topology = load_topology(cluster).topology
    rows = [
        PartitionMove(topic.name, topic.id, p.partition, p.replicas, p.replicas)
        for topic in topology.topics.values()
        for p in topic.partitions
    ]
    sizes = {(row.topic, row.partition): float(SIZE) for row in rows}
    model = Model(rows, sizes, topology.brokers, rate)
    for partition in model.partitions.values():
        partition.min_isr = 2
    return ModelKafka(model, cluster.kafka_id)


@contextmanager
def patched(world: World, known_for_s: float = 0.0) -> Iterator[None]:
    """Steps use the world's Kafka and clock."""

    def client(_: RunningStep) -> KafkaClient:
        return world.kafka

    def now(_: RowLease) -> datetime:
        return world.clock

    with (
        mock.patch.object(stepping, "client_of", client),
        mock.patch.object(RowLease, "now", now),
        mock.patch.object(stepping, "KNOWN_FOR_S", known_for_s),
    ):
        yield


def begun(world: World, operator: User) -> None:
    """In flight, and Kafka has answered."""
    world.queue(operator)
    world.step()
    world.passes(2)
    world.step()
    assert "moving" in {state for state, _ in world.states().values()}


def clean(world: World) -> bool:
    values = [value for own in world.kafka.configs.values() for value in own.values()]
    return not any(values) and not ThrottleEntry.objects.exclude(state="cleared").exists()
