"""Kafka's answers and error codes as the port's values; what a version of an answer does not have is None."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from uuid import UUID

from kafkadash.domain.messages import coded
from kafkadash.kafka import port
from kafkadash.kafka.asking import Answer
from kafkadash.kafka.codes import call_failure, item_error
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.messages import (
    ApiVersionsAnswer,
    ClusterAnswer,
    LogDirResult,
    LogDirsAnswer,
    MetadataAnswer,
    MetadataTopic,
    OffsetsAnswer,
    QuorumPartition,
    QuorumReplicaState,
    ReassignmentsAnswer,
)
from kafkadash.kafka.port import ItemError, KafkaFailure, OffsetKind, OffsetQuery

DESCRIBE_CLUSTER = "Describe on the cluster"
"""The permission that most questions about a cluster need."""


def features_of(response: ApiVersionsAnswer) -> port.Features:
    """Finalized levels are only valid with an epoch (ApiVersionsResponse.json)."""
    known = response.API_VERSION >= 3 and response.finalized_features_epoch >= 0
    return port.Features(
        supported={f.name: (f.min_version, f.max_version) for f in response.supported_features or ()},
        finalized={f.name: f.max_version_level for f in response.finalized_features or ()} if known else {},
        epoch=response.finalized_features_epoch if known else None,
    )


def _brokers(response: MetadataAnswer) -> list[port.Broker]:
    brokers = (port.Broker(b.node_id, b.host, b.port, b.rack, fenced=None) for b in response.brokers)
    return sorted(brokers, key=lambda broker: broker.id)


def cluster_of_metadata(response: MetadataAnswer, taken_at: float) -> port.ClusterDescription:
    controller = response.controller_id if response.controller_id >= 0 else None
    return port.ClusterDescription(response.cluster_id or "", controller, _brokers(response), taken_at)


def cluster_of(response: ClusterAnswer, taken_at: float) -> port.ClusterDescription:
    if response.error_code:
        raise call_failure(
            response.error_code,
            "DescribeCluster",
            permission=DESCRIBE_CLUSTER,
            detail=response.error_message,
        )
    tells_fenced = response.API_VERSION >= 2
    brokers = [
        port.Broker(b.broker_id, b.host, b.port, b.rack, fenced=b.is_fenced if tells_fenced else None)
        for b in response.brokers
    ]
    controller = response.controller_id if response.controller_id >= 0 else None
    return port.ClusterDescription(
        response.cluster_id, controller, sorted(brokers, key=lambda broker: broker.id), taken_at
    )


def metadata_of(response: MetadataAnswer, taken_at: float) -> port.Metadata:
    return port.Metadata(
        cluster_id=response.cluster_id or "",
        brokers=_brokers(response),
        topics=sorted((_topic(topic, response.API_VERSION) for topic in response.topics), key=lambda t: t.name),
        taken_at=taken_at,
    )


def _topic(topic: MetadataTopic, version: int) -> port.Topic:
    name = topic.name or ""
    code = topic.error_code
    partitions = [
        port.Partition(
            partition=p.partition_index,
            leader=p.leader_id if p.leader_id >= 0 else None,
            leader_epoch=p.leader_epoch if version >= 7 and p.leader_epoch >= 0 else None,
            replicas=tuple(p.replica_nodes),
            isr=tuple(p.isr_nodes),
            offline=tuple(p.offline_replicas),
            error=item_error(p.error_code, f"Partition {name}-{p.partition_index} is impaired")
            if p.error_code
            else None,
        )
        for p in topic.partitions
    ]
    partitions.sort(key=lambda partition: partition.partition)
    return port.Topic(
        name=name,
        topic_id=str(topic.topic_id) if topic.topic_id else "",
        internal=topic.is_internal,
        partitions=partitions,
        error=item_error(code, f"Topic {name} cannot be described") if code else None,
    )


def reassignments_of(response: ReassignmentsAnswer, taken_at: float) -> port.Reassignments:
    rows = [
        port.OngoingReassignment(
            topic=topic.name,
            partition=partition.partition_index,
            replicas=tuple(partition.replicas),
            adding=tuple(partition.adding_replicas),
            removing=tuple(partition.removing_replicas),
        )
        for topic in response.topics
        for partition in topic.partitions
    ]
    return port.Reassignments(sorted(rows, key=lambda row: (row.topic, row.partition)), taken_at)


def log_dirs_error(broker: int, response: LogDirsAnswer) -> ItemError | None:
    subject = f"Broker {broker} does not tell its log directories"
    if response.error_code:  # top level from v3 on
        return item_error(response.error_code, subject, permission=DESCRIBE_CLUSTER)
    if not response.results:  # every broker has a directory: before v3 this is how a refusal looks
        return ItemError(coded(KafkaErrorCode.DIRECTORIES_HIDDEN, broker=broker, permission=DESCRIBE_CLUSTER))
    return None


def log_dir_of(broker: int, directory: LogDirResult, version: int) -> port.LogDir:
    """Unknown sizes are −1 on the wire (before v4, or where the disk cannot be read)."""
    subject = f"Log directory {directory.log_dir} of broker {broker} cannot be read"
    return port.LogDir(
        path=directory.log_dir,
        replicas=[
            port.ReplicaSize(topic.name, p.partition_index, p.partition_size, p.is_future_key)
            for topic in directory.topics
            for p in topic.partitions
        ],
        total_bytes=directory.total_bytes if directory.total_bytes >= 0 else None,
        usable_bytes=directory.usable_bytes if directory.usable_bytes >= 0 else None,
        cordoned=directory.is_cordoned if version >= 5 else None,
        error=item_error(directory.error_code, subject) if directory.error_code else None,
    )


def sort_offsets(
    asked: Sequence[OffsetQuery],
    result: Answer[OffsetsAnswer] | KafkaFailure,
    found: dict[OffsetQuery, port.ReplicaOffset],
    errors: dict[OffsetQuery, ItemError],
) -> None:
    """Puts each query that was asked in one request into ``found`` or into ``errors``."""
    if isinstance(result, KafkaFailure):
        errors.update(dict.fromkeys(asked, ItemError(result.message)))
        return
    answers = {(t.name, p.partition_index): p for t in result.response.topics for p in t.partitions}
    for query in asked:
        word = "log end" if query.kind is OffsetKind.LATEST else "log start"
        subject = f"Broker {query.broker} gives no {word} offset of {query.topic}-{query.partition}"
        answer = answers.get((query.topic, query.partition))
        if answer is None:
            errors[query] = ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject))
        elif answer.error_code:
            errors[query] = item_error(answer.error_code, subject)
        elif answer.offset < 0:
            errors[query] = ItemError(coded(KafkaErrorCode.NOT_KNOWN_THERE, subject=subject))
        else:
            found[query] = port.ReplicaOffset(answer.offset, result.taken_at, result.took)


def quorum_of(partition: QuorumPartition, taken_at: float) -> port.Quorum:
    return port.Quorum(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=_known(partition.high_watermark),
        voters=[_quorum_replica(replica) for replica in sorted(partition.current_voters, key=lambda r: r.replica_id)],
        observers=[_quorum_replica(replica) for replica in sorted(partition.observers, key=lambda r: r.replica_id)],
        taken_at=taken_at,
    )


def _quorum_replica(replica: QuorumReplicaState) -> port.QuorumReplica:
    return port.QuorumReplica(
        id=replica.replica_id,
        directory_id=_kafka_uuid(replica.replica_directory_id),
        log_end_offset=_known(replica.log_end_offset),
        last_fetch_ms=_known(replica.last_fetch_timestamp),
        last_caught_up_ms=_known(replica.last_caught_up_timestamp),
    )


def _known(value: int) -> int | None:
    """−1 means unknown in DescribeQuorum (org.apache.kafka.raft.internals.KafkaRaftMetrics, KIP-836)."""
    return value if value >= 0 else None


def _kafka_uuid(value: UUID | None) -> str:
    """As org.apache.kafka.common.Uuid prints it; '' for none."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode() if value and value.int else ""
