"""Partitions that need a look."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import F, Q

from kafkadash.clusters.models import Cluster
from kafkadash.domain.partition_state import PartitionTrouble, trouble_of
from kafkadash.domain.topology import PartitionShape
from kafkadash.observe.models import Kind, Outcome, ReassignmentSnapshot, TopicState
from kafkadash.observe.standing import Standing, standing

MOST_TROUBLED = 20


@dataclass(frozen=True, slots=True)
class PartitionRow:
    """A partition that has no leader, or fewer replicas in sync than it should have."""

    topic: TopicState
    partition: int
    shape: PartitionShape
    trouble: PartitionTrouble

    @property
    def name(self) -> str:
        return f"{self.topic.name}-{self.partition}"

    @property
    def missing(self) -> list[int]:
        return [broker for broker in self.shape.replicas if broker not in self.shape.isr]


def partitions_context(cluster: Cluster, now: datetime, known: Standing | None = None) -> dict[str, Any]:
    """Partitions that need a look: worst class first. Those that only wait for the replicas a move adds are left out.

    At most ``MOST_TROUBLED``; ``more`` says that there are others.
    """
    freshness = (known or standing(cluster, now)).freshness_of(Kind.METADATA)
    troubled = Q(offline_partitions__gt=0) | Q(under_min_isr__gt=0) | Q(under_replicated__gt=0)
    topics = TopicState.objects.filter(cluster=cluster).filter(troubled)
    order = ("-offline_partitions", F("under_min_isr").desc(nulls_last=True), "-under_replicated", "name")
    worst = list(topics.order_by(*order)[: MOST_TROUBLED + 1])
    moving = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=Outcome.RUNNING)
    adding = {
        (topic, partition): frozenset(brokers)
        for topic, partition, brokers in moving.filter(topic__in=[t.name for t in worst]).values_list(
            "topic", "partition", "adding"
        )
    }
    rows = [row for topic in worst for row in _troubled(topic, adding)]
    rows.sort(key=lambda row: (row.trouble.rank, row.topic.name, row.partition))
    return {
        "cluster": cluster,
        "now": now,
        "sampled_at": freshness.taken_at,
        "partitions": rows[:MOST_TROUBLED],
        "more": len(rows) > MOST_TROUBLED or len(worst) > MOST_TROUBLED,
        "freshness": freshness,
    }


def _troubled(topic: TopicState, adding: Mapping[tuple[str, int], frozenset[int]]) -> Iterator[PartitionRow]:
    for number, leader, _, replicas, isr, _ in topic.partitions:
        shape = PartitionShape(leader, tuple(replicas), tuple(isr), adding.get((topic.name, number), frozenset()))
        trouble = trouble_of(shape, topic.min_isr)
        if trouble.state != "ok":
            yield PartitionRow(topic, number, shape, trouble)
