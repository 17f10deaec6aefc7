"""The requests that we send and the fields that we read from their answers (kafka-python's generated classes, typed).

A request is built once the versions of the broker are known: kafka-python silently drops a field that the agreed
version does not have, so whoever depends on a field asks for its version here.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol

from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import (
    ApiVersionsRequest,
    DescribeClusterRequest,
    DescribeConfigsRequest,
    DescribeLogDirsRequest,
    DescribeQuorumRequest,
    ListOffsetsRequest,
    ListPartitionReassignmentsRequest,
    MetadataRequest,
    MetadataResponse,
)
from kafkadash.kafka.port import NotSupported

LIST_OFFSETS, METADATA, API_VERSIONS, DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 2, 3, 18, 32, 35
LIST_REASSIGNMENTS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER = 46, 55, 60

QUORUM_TOPIC = "__cluster_metadata"
# org.apache.kafka.common.requests.ListOffsetsRequest.DEBUGGING_REPLICA_ID: any replica answers, with its own offsets.
ASK_THE_REPLICA_ITSELF = -2

Request = Any  # a kafka-python request: the wire only hands it on
ApiRanges = Mapping[int, tuple[int, int]]


class Response(Protocol):
    """What all answers have. ``API_VERSION`` is the version that was agreed with that broker."""

    API_KEY: int
    API_VERSION: int


class VersionRange(Protocol):
    api_key: int
    min_version: int
    max_version: int


class SupportedFeature(Protocol):
    name: str
    min_version: int
    max_version: int


class FinalizedFeature(Protocol):
    name: str
    max_version_level: int


class ApiVersionsAnswer(Response, Protocol):
    error_code: int
    api_keys: Sequence[VersionRange]
    supported_features: Sequence[SupportedFeature]
    finalized_features: Sequence[FinalizedFeature]
    finalized_features_epoch: int


class MetadataBroker(Protocol):
    node_id: int
    host: str
    port: int
    rack: str | None


class MetadataPartition(Protocol):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    offline_replicas: Sequence[int]


class MetadataTopic(Protocol):
    error_code: int
    name: str | None
    topic_id: uuid.UUID | None
    is_internal: bool
    partitions: Sequence[MetadataPartition]
    authorized_operations: Collection[int] | None  # codes; kafka-python makes a set of the bits


class MetadataAnswer(Response, Protocol):
    error_code: int
    cluster_id: str | None
    controller_id: int
    brokers: Sequence[MetadataBroker]
    topics: Sequence[MetadataTopic]


class ClusterBroker(Protocol):
    broker_id: int
    host: str
    port: int
    rack: str | None
    is_fenced: bool


class ClusterAnswer(Response, Protocol):
    error_code: int
    error_message: str | None
    cluster_id: str
    controller_id: int
    brokers: Sequence[ClusterBroker]
    authorized_operations: Collection[int] | None


class ReassignedPartition(Protocol):
    partition_index: int
    replicas: Sequence[int]
    adding_replicas: Sequence[int]
    removing_replicas: Sequence[int]


class ReassignedTopic(Protocol):
    name: str
    partitions: Sequence[ReassignedPartition]


class ReassignmentsAnswer(Response, Protocol):
    error_code: int
    error_message: str | None
    topics: Sequence[ReassignedTopic]


class LogDirPartition(Protocol):
    partition_index: int
    partition_size: int
    is_future_key: bool


class LogDirTopic(Protocol):
    name: str
    partitions: Sequence[LogDirPartition]


class LogDirResult(Protocol):
    error_code: int
    log_dir: str
    topics: Sequence[LogDirTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool


class LogDirsAnswer(Response, Protocol):
    error_code: int
    results: Sequence[LogDirResult]


class ConfigAnswer(Protocol):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool


class ConfigsResult(Protocol):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: Sequence[ConfigAnswer]


class ConfigsAnswer(Response, Protocol):
    results: Sequence[ConfigsResult]


class OffsetPartition(Protocol):
    partition_index: int
    error_code: int
    offset: int


class OffsetTopic(Protocol):
    name: str
    partitions: Sequence[OffsetPartition]


class OffsetsAnswer(Response, Protocol):
    topics: Sequence[OffsetTopic]


class QuorumReplicaState(Protocol):
    replica_id: int
    replica_directory_id: uuid.UUID | None
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int


class QuorumPartition(Protocol):
    error_code: int
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: Sequence[QuorumReplicaState]
    observers: Sequence[QuorumReplicaState]


class QuorumTopic(Protocol):
    topic_name: str
    partitions: Sequence[QuorumPartition]


class QuorumAnswer(Response, Protocol):
    error_code: int
    error_message: str | None
    topics: Sequence[QuorumTopic]


def api_versions_request(offered: ApiRanges) -> Request:
    require(offered, API_VERSIONS, "ApiVersions")
    return ApiVersionsRequest(client_software_name="kafkadash", client_software_version="0")


def metadata_request(offered: ApiRanges, topics: Collection[str] | None) -> Request:
    """All topics when ``topics`` is None. v5 (Kafka 1.0) is the first with offline replicas; from v4 on nobody's

    question creates a topic (allow_auto_topic_creation).
    """
    require(offered, METADATA, "Metadata with offline replicas", at_least=5)
    named = None if topics is None else [MetadataRequest.MetadataRequestTopic(name=name) for name in topics]
    return MetadataRequest(topics=named, allow_auto_topic_creation=False)


def brokers_only(answer: MetadataAnswer) -> Any:
    """The same answer without its topics, for the connection manager, which needs the addresses alone."""
    return MetadataResponse(
        version=answer.API_VERSION,
        brokers=answer.brokers,
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        topics=[],
    )


def cluster_request(offered: ApiRanges) -> Request:
    """DescribeCluster (KIP-700) with the fenced brokers where the version has them (v2, KIP-1073), else Metadata."""
    if DESCRIBE_CLUSTER not in offered:
        return metadata_request(offered, ())
    if offered[DESCRIBE_CLUSTER][1] >= 2:
        return DescribeClusterRequest(include_fenced_brokers=True)
    return DescribeClusterRequest()


def controllers_request(offered: ApiRanges) -> Request:
    """DescribeCluster to a controller's own listener, for the id of its cluster (KIP-919)."""
    require(offered, DESCRIBE_CLUSTER, "DescribeCluster of controllers (Kafka 3.7)", at_least=1)
    return DescribeClusterRequest(endpoint_type=2)


def reassignments_request(offered: ApiRanges, timeout_ms: int) -> Request:
    require(offered, LIST_REASSIGNMENTS, "ListPartitionReassignments (Kafka 2.4)")
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)


def log_dirs_request(offered: ApiRanges) -> Request:
    require(offered, DESCRIBE_LOG_DIRS, "DescribeLogDirs (Kafka 1.0)")
    return DescribeLogDirsRequest(topics=None)


def configs_request(offered: ApiRanges, resources: Iterable[tuple[int, str]], keys: Collection[str] | None) -> Request:
    """``resources`` as (type, name). v1 (Kafka 1.1) is the first that tells where a value comes from."""
    require(offered, DESCRIBE_CONFIGS, "DescribeConfigs with sources (Kafka 1.1)", at_least=1)
    asked = None if keys is None else sorted(keys)
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=asked) for kind, name in resources
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def offsets_request(
    offered: ApiRanges, partitions: Mapping[str, Iterable[int]], timestamp: int, timeout_ms: int
) -> Request:
    """One timestamp for each partition: Kafka refuses a request that names a partition twice."""
    require(offered, LIST_OFFSETS, "ListOffsets with a single offset", at_least=1)
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=ASK_THE_REPLICA_ITSELF,
        isolation_level=0,
        timeout_ms=timeout_ms,
        topics=[
            topic(
                name=name,
                partitions=[
                    partition(partition_index=index, current_leader_epoch=-1, timestamp=timestamp) for index in indexes
                ],
            )
            for name, indexes in partitions.items()
        ],
    )


def quorum_request(offered: ApiRanges) -> Request:
    """Not to be sent to a cluster in ZooKeeper mode: it answers by dropping the connection."""
    if DESCRIBE_QUORUM not in offered:
        raise NotSupported(KafkaErrorCode.NO_QUORUM_TO_DESCRIBE)
    topic = DescribeQuorumRequest.TopicData
    return DescribeQuorumRequest(
        topics=[topic(topic_name=QUORUM_TOPIC, partitions=[topic.PartitionData(partition_index=0)])]
    )


def require(offered: ApiRanges, api_key: int, what: str, *, at_least: int = 0) -> None:
    if api_key not in offered or offered[api_key][1] < at_least:
        raise NotSupported(KafkaErrorCode.NOT_OFFERED, what=what)
