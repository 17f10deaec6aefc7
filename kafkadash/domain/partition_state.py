"""What is wrong with one partition, in the classes of Kafka's own tools (kafka-topics --describe --under-…)."""

from __future__ import annotations

from collections.abc import Set
from enum import Enum

from kafkadash.domain.topology import PartitionShape


class PartitionTrouble(Enum):
    """The worst that holds, worst first."""

    OFFLINE = "Offline"
    LEADER_SILENT = "Leader does not answer"
    UNDER_MIN_ISR = "Under min-ISR"
    AT_MIN_ISR = "At min-ISR"
    UNDER_REPLICATED = "Under-replicated"
    IN_DOUBT = "Cannot tell"
    CATCHING_UP = "Moving"
    NONE = "OK"

    @property
    def rank(self) -> int:
        return list(PartitionTrouble).index(self)

    @property
    def state(self) -> str:
        """critical where producers fail now, warning where the next failure hurts, unknown where nobody can tell."""
        if self is PartitionTrouble.IN_DOUBT:
            return "unknown"
        if self in (PartitionTrouble.OFFLINE, PartitionTrouble.LEADER_SILENT, PartitionTrouble.UNDER_MIN_ISR):
            return "critical"
        return "ok" if self in (PartitionTrouble.CATCHING_UP, PartitionTrouble.NONE) else "warning"


def trouble_of(shape: PartitionShape, min_isr: int | None, silent: Set[int] = frozenset()) -> PartitionTrouble:
    """The worst class of a partition; ``min_isr`` None: not known, then nothing is said about it.

    ``silent`` brokers do not answer us although the controllers have them alive: whom they lead is not served, and that
    their replicas are in sync is only what was true before.

    A partition with all its replicas in sync is never "at min-ISR" here, though Kafka's tool lists it when its
    replication factor equals min.insync.replicas: nothing has failed. One that only waits for added replicas is moving.
    """
    in_sync = len(set(shape.isr))
    if shape.offline:
        return PartitionTrouble.OFFLINE
    if shape.leader in silent:
        return PartitionTrouble.LEADER_SILENT
    if min_isr is not None and in_sync < min_isr:
        return PartitionTrouble.UNDER_MIN_ISR
    if not shape.under_replicated:
        return PartitionTrouble.NONE if silent.isdisjoint(shape.isr) else PartitionTrouble.IN_DOUBT
    if shape.explained_by_move:
        return PartitionTrouble.CATCHING_UP
    if min_isr is not None and in_sync == min_isr:
        return PartitionTrouble.AT_MIN_ISR
    return PartitionTrouble.UNDER_REPLICATED
