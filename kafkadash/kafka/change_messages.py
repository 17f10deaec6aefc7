"""The requests that change something, and the fields that we read from their answers.

Each is built once the versions of the broker are known, as in ``messages``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol, TypeVar

from kafkadash.kafka.changing import ConfigChange, ReplicaPlace
from kafkadash.kafka.kafka_python import (
    AlterPartitionReassignmentsRequest,
    AlterReplicaLogDirsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
)
from kafkadash.kafka.messages import ApiRanges, Request, Response, require
from kafkadash.kafka.port import ConfigResource, TopicPartition

ALTER_LOG_DIRS, ELECT_LEADERS, ALTER_CONFIGS, ALTER_REASSIGNMENTS = 34, 43, 44, 45
T = TypeVar("T")
_PREFERRED = 0  # org.apache.kafka.common.ElectionType


class AlteredPartition(Protocol):
    partition_index: int
    error_code: int
    error_message: str | None


class AlteredTopic(Protocol):
    name: str
    partitions: Sequence[AlteredPartition]


class AlterReassignmentsAnswer(Response, Protocol):
    error_code: int
    error_message: str | None
    responses: Sequence[AlteredTopic]


class AlteredResource(Protocol):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str


class AlterConfigsAnswer(Response, Protocol):
    responses: Sequence[AlteredResource]


class ElectedPartition(Protocol):
    partition_id: int
    error_code: int
    error_message: str | None


class ElectedTopic(Protocol):
    topic: str
    partition_result: Sequence[ElectedPartition]


class ElectLeadersAnswer(Response, Protocol):
    error_code: int
    replica_election_results: Sequence[ElectedTopic]


class PlacedPartition(Protocol):
    partition_index: int
    error_code: int


class PlacedTopic(Protocol):
    topic_name: str
    partitions: Sequence[PlacedPartition]


class AlterLogDirsAnswer(Response, Protocol):
    results: Sequence[PlacedTopic]


def alter_reassignments_request(
    offered: ApiRanges,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    *,
    keep_factor: bool,
    timeout_ms: int,
) -> Request:
    """v0 has no ``allow_replication_factor_change`` and allows it: whoever depends on it reads the answer's version."""
    require(offered, ALTER_REASSIGNMENTS, "AlterPartitionReassignments (Kafka 2.4)")
    topic = AlterPartitionReassignmentsRequest.ReassignableTopic
    return AlterPartitionReassignmentsRequest(
        timeout_ms=timeout_ms,
        allow_replication_factor_change=not keep_factor,
        topics=[
            topic(
                name=name,
                partitions=[
                    topic.ReassignablePartition(
                        partition_index=index, replicas=None if target is None else list(target)
                    )
                    for index, target in rows
                ],
            )
            for name, rows in _by_topic((p, target) for p, target in targets.items()).items()
        ],
    )


def alter_configs_request(offered: ApiRanges, changes: Mapping[ConfigResource, Sequence[ConfigChange]]) -> Request:
    """There is nothing instead of it before Kafka 2.3: AlterConfigs (33) replaces all of a resource's configs."""
    require(offered, ALTER_CONFIGS, "IncrementalAlterConfigs (Kafka 2.3)")
    resource = IncrementalAlterConfigsRequest.AlterConfigsResource
    return IncrementalAlterConfigsRequest(
        resources=[
            resource(
                resource_type=int(owner.type),
                resource_name=owner.name,
                configs=[
                    resource.AlterableConfig(name=c.key, config_operation=int(c.operation), value=c.value) for c in own
                ],
            )
            for owner, own in changes.items()
        ],
        validate_only=False,
    )


def elect_leaders_request(offered: ApiRanges, partitions: Iterable[TopicPartition], *, timeout_ms: int) -> Request:
    require(offered, ELECT_LEADERS, "ElectLeaders (Kafka 2.2)")
    return ElectLeadersRequest(
        election_type=_PREFERRED,
        timeout_ms=timeout_ms,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=name, partitions=[index for index, _ in rows])
            for name, rows in _by_topic((p, None) for p in partitions).items()
        ],
    )


def alter_log_dirs_request(offered: ApiRanges, places: Mapping[ReplicaPlace, str]) -> Request:
    """For one broker: replica → directory."""
    require(offered, ALTER_LOG_DIRS, "AlterReplicaLogDirs (Kafka 1.1)", at_least=1)
    directories: defaultdict[str, defaultdict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
    for place, path in places.items():
        directories[path][place.topic].append(place.partition)
    directory = AlterReplicaLogDirsRequest.AlterReplicaLogDir
    return AlterReplicaLogDirsRequest(
        dirs=[
            directory(
                path=path,
                topics=[directory.AlterReplicaLogDirTopic(name=name, partitions=own) for name, own in topics.items()],
            )
            for path, topics in directories.items()
        ]
    )


def _by_topic(rows: Iterable[tuple[TopicPartition, T]]) -> dict[str, list[tuple[int, T]]]:
    found: defaultdict[str, list[tuple[int, T]]] = defaultdict(list)
    for partition, value in rows:
        found[partition.topic].append((partition.partition, value))
    return found
