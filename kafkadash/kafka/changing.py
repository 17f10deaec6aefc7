"""What kafkadash changes in a Kafka cluster, and what came of it item by item, independent of any client library.

A call raises a ``KafkaFailure`` only when nothing of it can have reached Kafka. Everything else is in its answer: an
item was done, was refused in Kafka's words, or is lost, where nobody knows whether it was done, now or later. Nothing
is sent twice: a lost item is for the caller to look up in the cluster.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import Generic, Protocol, TypeVar

from kafkadash.kafka.groups import KafkaGroups
from kafkadash.kafka.port import ConfigResource, ItemError, KafkaAdmin, TopicPartition

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Changed(Generic[T]):
    """Each item that was asked for is in exactly one of the three.

    ``refused``: it was certainly not done. Its ``code`` is Kafka's, or None where it was not sent (its broker could
    not be connected, while others of the same call could).
    ``lost``: its ``code`` is Kafka's where Kafka itself does not know (REQUEST_TIMED_OUT 7, UNKNOWN_SERVER_ERROR -1).
    ``guarded``: whether Kafka itself refused changes of the replication factor (AlterPartitionReassignments v1).
    """

    done: frozenset[T] = frozenset()
    refused: Mapping[T, ItemError] = field(default_factory=dict)
    lost: Mapping[T, ItemError] = field(default_factory=dict)
    guarded: bool = False


class ConfigOperation(IntEnum):
    """org.apache.kafka.clients.admin.AlterConfigOp.OpType (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """``value`` is None for DELETE. One request names a key of a resource once (else INVALID_REQUEST 42)."""

    resource: ConfigResource
    key: str
    operation: ConfigOperation
    value: str | None = None


@dataclass(frozen=True, slots=True, order=True)
class ReplicaPlace:
    """A replica of a partition on a broker, to be put into one of its log directories."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


class KafkaChanges(Protocol):
    """The mutating calls. ``deadline`` in seconds from now, as for the reads."""

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, deadline: float, keep_factor: bool
    ) -> Changed[TopicPartition]:
        """AlterPartitionReassignments (45): new replicas in order, None cancels.

        ``keep_factor``: have Kafka refuse a change of the replication factor where it can (v1, Kafka 4.1+); where it
        cannot, ``guarded`` is false in the answer. Without it v1's flag allows the change.
        """
        ...

    def alter_configs(self, changes: Sequence[ConfigChange], *, deadline: float) -> Changed[ConfigResource]:
        """IncrementalAlterConfigs (44); the changes of one resource are done all or none.

        A broker's go to that broker, or, where it does not answer and the connection names controllers, to the active
        controller; a topic's to any broker.
        """
        ...

    def elect_leaders(self, partitions: Collection[TopicPartition], *, deadline: float) -> Changed[TopicPartition]:
        """ElectLeaders (43), preferred; ELECTION_NOT_NEEDED (84) is done."""
        ...

    def place_replicas(self, places: Mapping[ReplicaPlace, str], *, deadline: float) -> Changed[ReplicaPlace]:
        """AlterReplicaLogDirs (34): replica → directory.

        REPLICA_NOT_AVAILABLE (9) is done: the broker does not host it yet and keeps the preference.
        """
        ...


class KafkaClient(KafkaAdmin, KafkaChanges, Protocol):
    """A client that reads and changes."""


class WholeClient(KafkaClient, KafkaGroups, Protocol):
    """A client for everything that is asked of a cluster and its consumer groups."""
