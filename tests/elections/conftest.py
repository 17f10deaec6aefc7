"""A cluster of which brokers lead partitions that others are preferred for, and elections on it."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes import services
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Role
from kafkadash.elections.kind import KIND
from kafkadash.elections.unclean import KIND as UNCLEAN
from kafkadash.kafka.api import EligibleReplicas, TopicPartition
from kafkadash.monitoring.models import BrokerState, EligibleReplicaState, LogEndWindow, TopicState
from kafkadash.monitoring.traffic.rules import shard_of
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


class UncleanWorld(ElectionWorld):
    """orders-0 of brokers 1, 2 and 3 was led by broker 3, which is down; 1 and 2 were out of sync."""

    approvers: tuple[User, ...] = ()

    def queue(self, wanted: Mapping[str, Any] | None = None) -> ChangeRequest:
        """A change that two people approved, started."""
        change = self.submit(wanted)
        for approver in self.approvers:
            change = services.approve(change, approver, change.digest)
        return services.start(change, self.operator, "Now.")

    def submit(self, wanted: Mapping[str, Any] | None = None) -> ChangeRequest:
        draft = self.draft(wanted)
        return services.submit(draft, self.operator, why="The broker's disks are lost.", version=draft.version)

    def orphan(self, topic: str, partition: int, isr: list[int], down: list[int]) -> None:
        """Take the leader of a partition away, in Kafka and as stored; these brokers are down."""
        own = self.kafka.model.partitions[topic, partition]
        own.leader, own.leader_epoch, own.isr = None, 6, set(isr)
        for broker in down:
            self.kafka.model.brokers[broker] = False
        BrokerState.objects.filter(cluster=self.cluster, broker_id__in=down).update(fenced=True)
        row = TopicState.objects.get(cluster=self.cluster, name=topic)
        offline = [broker for broker in own.replicas if broker in down]
        row.partitions[partition] = [partition, None, 6, list(own.replicas), isr, offline]
        row.offline_partitions = sum(p[1] is None for p in row.partitions)
        row.save()

    def know(self, elr: list[int] | None, last_known: list[int] | None, ends: Mapping[int, int]) -> None:
        """Store and tell what is known of orders-0; its leader told 1,000 as its last end."""
        at = self.clock.timestamp() - 60
        known = {str(broker): [end, at] for broker, end in ends.items()}
        EligibleReplicaState.objects.update_or_create(
            cluster=self.cluster,
            topic_id="id-of-orders",
            defaults={"partitions": {"0": [elr, last_known, known]}, "taken_at": self.clock},
        )
        data = zlib.compress(json.dumps({"orders": ["id-of-orders", {"0": [1000, at - 60]}]}).encode())
        LogEndWindow.objects.update_or_create(cluster=self.cluster, shard=shard_of("orders"), defaults={"data": data})
        lists = EligibleReplicas(tuple(elr or ()), tuple(last_known or ()))
        self.kafka.eligible = None if elr is None else {TopicPartition("orders", 0): lists}

    @property
    def uncleanly(self) -> int:
        return sum(call == "elect_uncleanly" for call, _ in self.kafka.sent)


@pytest.fixture
def orphaned(db: None, operator: User, make_user: Callable[..., User]) -> Iterator[UncleanWorld]:
    cluster = stored()
    made = UncleanWorld(cluster, model_of(cluster), operator, UNCLEAN)
    made.approvers = (make_user("ann", Role.APPROVER), make_user("ben", Role.APPROVER))
    made.orphan("orders", 0, isr=[3], down=[3])
    made.know([], [], {1: 900, 2: 1000})
    with stepped(made):
        yield made
