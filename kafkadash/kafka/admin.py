"""``WireAdmin``: the port's calls as Kafka requests, and Kafka's answers and error codes as the port's values."""

from __future__ import annotations

import base64
import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar
from uuid import UUID

from kafkadash.kafka import clock, port
from kafkadash.kafka.asking import Answer, Ask, Lane
from kafkadash.kafka.codes import NOT_CONTROLLER, call_failure, item_error
from kafkadash.kafka.config_reads import ConfigReading
from kafkadash.kafka.messages import (
    METADATA,
    QUORUM_TOPIC,
    ApiVersionsAnswer,
    ClusterAnswer,
    LogDirResult,
    LogDirsAnswer,
    MetadataAnswer,
    MetadataTopic,
    OffsetsAnswer,
    QuorumAnswer,
    QuorumPartition,
    QuorumReplicaState,
    ReassignmentsAnswer,
    Response,
    api_versions_request,
    cluster_request,
    log_dirs_request,
    metadata_request,
    offsets_request,
    quorum_request,
    reassignments_request,
)
from kafkadash.kafka.permissions import cluster_permissions_request, operations, topic_permissions_request
from kafkadash.kafka.port import (
    AuthenticationFailed,
    ConfigResource,
    Connection,
    ItemError,
    KafkaFailure,
    OffsetKind,
    OffsetQuery,
)
from kafkadash.kafka.wire import Wire, WireClosed

_DESCRIBE_CLUSTER_PERMISSION = "Describe on the cluster"
R = TypeVar("R")
A = TypeVar("A", bound=Response)


class WireAdmin:
    """One cluster's reads. The wire is made at the first call, and made anew after a fork or when it hung."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._wire: Wire | None = None
        self._lock = threading.Lock()
        self._lock_pid = os.getpid()
        self._closed = False

    def api_versions(self, *, deadline: float) -> port.ApiVersions:
        left = countdown(deadline)
        ids = [broker.id for broker in self.metadata(deadline=left(), topics=()).brokers]
        ask: Ask[ApiVersionsAnswer] = Ask(api_versions_request)
        results = self._with_wire(lambda wire: wire.ask_each([(broker, ask) for broker in ids], deadline=left()))
        ranges: dict[int, Mapping[int, tuple[int, int]]] = {}
        features: dict[int, port.Features] = {}
        errors: dict[int, ItemError] = {}
        for broker, result in zip(ids, results, strict=True):
            if isinstance(result, KafkaFailure):
                errors[broker] = ItemError(str(result))
            elif result.response.error_code:
                errors[broker] = item_error(
                    result.response.error_code, f"Broker {broker} does not tell its API versions"
                )
            else:
                keys = result.response.api_keys
                ranges[broker] = {key.api_key: (key.min_version, key.max_version) for key in keys}
                features[broker] = _features(result.response)
        return port.ApiVersions(ranges, errors, _oldest(results), features)

    def describe_cluster(self, *, deadline: float) -> port.ClusterDescription:
        ask: Ask[ClusterAnswer | MetadataAnswer] = Ask(cluster_request)
        answer = self._with_wire(lambda wire: wire.ask_any(ask, deadline=deadline))
        response = answer.response
        if response.API_KEY == METADATA:
            return _cluster_from_metadata(response, answer.taken_at)  # type: ignore[arg-type]
        return _cluster(response, answer.taken_at)  # type: ignore[arg-type]

    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> port.Metadata:
        """Raw Metadata. A topic that the principal may not describe is left out of "all topics" by Kafka."""
        ask: Ask[MetadataAnswer] = Ask(lambda offered: metadata_request(offered, topics))
        answer = self._with_wire(lambda wire: wire.ask_any(ask, deadline=deadline))
        response = answer.response
        if response.error_code:  # top level from v13 on
            raise call_failure(response.error_code, "Metadata", permission="Describe on the topics")
        return port.Metadata(
            cluster_id=response.cluster_id or "",
            brokers=_brokers(response),
            topics=sorted((_topic(topic, response.API_VERSION) for topic in response.topics), key=lambda t: t.name),
            taken_at=answer.taken_at,
        )

    def list_reassignments(self, *, deadline: float) -> port.Reassignments:
        left = countdown(deadline)
        ask: Ask[ReassignmentsAnswer] = Ask(
            lambda offered: reassignments_request(offered, timeout_ms=max(1, int(left() * 1000))), Lane.CONTROLLER
        )
        answer = self._with_wire(lambda wire: wire.ask_controller(ask, deadline=left()))
        if answer.response.error_code == NOT_CONTROLLER:
            answer = self._ask_named_controller(ask, left)
        response = answer.response
        if response.error_code:
            raise call_failure(
                response.error_code,
                "ListPartitionReassignments",
                permission=_DESCRIBE_CLUSTER_PERMISSION,
                through_controller=True,
                detail=response.error_message,
            )
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
        return port.Reassignments(sorted(rows, key=lambda row: (row.topic, row.partition)), answer.taken_at)

    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> port.LogDirs:
        ids = list(dict.fromkeys(brokers))
        ask: Ask[LogDirsAnswer] = Ask(log_dirs_request)
        results = self._with_wire(lambda wire: wire.ask_each([(broker, ask) for broker in ids], deadline=deadline))
        found: dict[int, Sequence[port.LogDir]] = {}
        errors: dict[int, ItemError] = {}
        for broker, result in zip(ids, results, strict=True):
            if isinstance(result, KafkaFailure):
                errors[broker] = ItemError(str(result))
            elif error := _log_dirs_error(broker, result.response):
                errors[broker] = error
            else:
                found[broker] = [
                    _log_dir(broker, directory, result.response.API_VERSION) for directory in result.response.results
                ]
        return port.LogDirs(found, errors, _oldest(results))

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> port.ReplicaOffsets:
        left = countdown(deadline)
        groups: dict[tuple[int, OffsetKind], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for query in dict.fromkeys(queries):
            groups[query.broker, query.kind][query.topic].append(query.partition)

        def offsets(kind: OffsetKind, partitions: Mapping[str, list[int]]) -> Ask[OffsetsAnswer]:
            return Ask(lambda offered: offsets_request(offered, partitions, kind, max(1, int(left() * 1000))))

        asks = [(broker, offsets(kind, partitions)) for (broker, kind), partitions in groups.items()]
        results = self._with_wire(lambda wire: wire.ask_each(asks, deadline=left())) if asks else []
        found: dict[OffsetQuery, port.ReplicaOffset] = {}
        errors: dict[OffsetQuery, ItemError] = {}
        for ((broker, kind), partitions), result in zip(groups.items(), results, strict=True):
            asked = [OffsetQuery(broker, topic, p, kind) for topic, indexes in partitions.items() for p in indexes]
            _sort_offsets(asked, result, found, errors)
        return port.ReplicaOffsets(found, errors)

    def quorum(self, *, deadline: float) -> port.Quorum:
        ask: Ask[QuorumAnswer] = Ask(quorum_request, Lane.CONTROLLER)
        answer = self._with_wire(lambda wire: wire.ask_controller(ask, deadline=deadline))
        response = answer.response
        # The top level is 0 even where a controller that does not lead was asked: the truth is in the partition.
        partition = next((p for t in response.topics if t.topic_name == QUORUM_TOPIC for p in t.partitions), None)
        code = response.error_code or (partition.error_code if partition else 0)
        if code or partition is None:
            detail = response.error_message or (partition.error_message if partition else None)
            raise call_failure(
                code, "DescribeQuorum", permission=_DESCRIBE_CLUSTER_PERMISSION, through_controller=True, detail=detail
            )
        if partition.leader_id < 0:
            raise port.QuorumUnavailable("The controllers have no leader at the moment.")
        return _quorum(partition, answer.taken_at)

    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> port.Configs:
        return ConfigReading(keys).read(resources, self._with_wire, countdown(deadline))

    def permissions(self, *, deadline: float) -> port.Permissions:
        left = countdown(deadline)
        about_cluster: Ask[ClusterAnswer] = Ask(cluster_permissions_request)
        about_topics: Ask[MetadataAnswer] = Ask(topic_permissions_request)
        cluster = self._with_wire(lambda wire: wire.ask_any(about_cluster, deadline=left()))
        topics = self._with_wire(lambda wire: wire.ask_any(about_topics, deadline=left()))
        return port.Permissions(
            operations(cluster.response.authorized_operations),
            {
                topic.name: operations(topic.authorized_operations)
                for topic in topics.response.topics
                if topic.name and not topic.error_code
            },
            min(cluster.taken_at, topics.taken_at),
        )

    def close(self) -> None:
        """Ends the wire; a later call raises Unreachable."""
        with self._guard():
            self._closed = True
            wire, self._wire = self._wire, None
        if wire is not None and wire.pid == os.getpid():
            wire.close()

    # ---- the wire's life

    def _with_wire(self, question: Callable[[Wire], R]) -> R:
        while True:
            wire = self._current_wire()
            try:
                return question(wire)
            except WireClosed:
                continue  # somebody else's call gave this wire up between our look and our call
            except AuthenticationFailed:
                wire.retire()  # the library remembers refusals; credentials may be granted meanwhile
                raise

    def _current_wire(self) -> Wire:
        with self._guard():
            if self._closed:
                raise port.Unreachable("This connection was closed because its settings changed. Ask for a new one.")
            if self._wire is None or not self._wire.usable:
                if self._wire is not None and self._wire.pid != os.getpid():
                    _INHERITED.append(self._wire)
                self._wire = Wire(self._connection)
            return self._wire

    def _guard(self) -> threading.Lock:
        if self._lock_pid != os.getpid():  # a lock may have been held by another thread while we were forked
            self._lock, self._lock_pid = threading.Lock(), os.getpid()
        return self._lock

    def _ask_named_controller(
        self, ask: Ask[ReassignmentsAnswer], left: Callable[[], float]
    ) -> Answer[ReassignmentsAnswer]:
        """ZooKeeper mode: brokers do not forward, but Metadata names the controller truly."""
        controller = self.describe_cluster(deadline=left()).controller_id
        if controller is None:
            raise port.QuorumUnavailable("The cluster has no controller at the moment.")
        [result] = self._with_wire(lambda wire: wire.ask_each([(controller, ask)], deadline=left()))
        if isinstance(result, KafkaFailure):
            raise result
        return result


# Wires of the parent process. Closing or collecting them here would shut the parent's sockets or warn about them.
_INHERITED: list[Wire] = []


def countdown(deadline: float) -> Callable[[], float]:
    until = time.monotonic() + deadline
    return lambda: max(0.0, until - time.monotonic())


def _oldest(results: Iterable[Answer[A] | KafkaFailure]) -> float:
    """The age of a joint answer is that of its oldest part."""
    return min((result.taken_at for result in results if isinstance(result, Answer)), default=clock.seconds())


def _features(response: ApiVersionsAnswer) -> port.Features:
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


def _cluster_from_metadata(response: MetadataAnswer, taken_at: float) -> port.ClusterDescription:
    controller = response.controller_id if response.controller_id >= 0 else None
    return port.ClusterDescription(response.cluster_id or "", controller, _brokers(response), taken_at)


def _cluster(response: ClusterAnswer, taken_at: float) -> port.ClusterDescription:
    if response.error_code:
        raise call_failure(
            response.error_code,
            "DescribeCluster",
            permission=_DESCRIBE_CLUSTER_PERMISSION,
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


def _log_dirs_error(broker: int, response: LogDirsAnswer) -> ItemError | None:
    subject = f"Broker {broker} does not tell its log directories"
    if response.error_code:  # top level from v3 on
        return item_error(response.error_code, subject, detail=f"the principal needs {_DESCRIBE_CLUSTER_PERMISSION}")
    if not response.results:  # every broker has a directory: before v3 this is how a refusal looks
        return ItemError(f"{subject}: the answer is empty; the principal may lack {_DESCRIBE_CLUSTER_PERMISSION}.")
    return None


def _log_dir(broker: int, directory: LogDirResult, version: int) -> port.LogDir:
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


def _sort_offsets(
    asked: Sequence[OffsetQuery],
    result: Answer[OffsetsAnswer] | KafkaFailure,
    found: dict[OffsetQuery, port.ReplicaOffset],
    errors: dict[OffsetQuery, ItemError],
) -> None:
    """Puts each query that was asked in one request into ``found`` or into ``errors``."""
    if isinstance(result, KafkaFailure):
        errors.update(dict.fromkeys(asked, ItemError(str(result))))
        return
    answers = {(t.name, p.partition_index): p for t in result.response.topics for p in t.partitions}
    for query in asked:
        word = "log end" if query.kind is OffsetKind.LATEST else "log start"
        subject = f"Broker {query.broker} gives no {word} offset of {query.topic}-{query.partition}"
        answer = answers.get((query.topic, query.partition))
        if answer is None:
            errors[query] = ItemError(f"{subject}: the answer leaves it out.")
        elif answer.error_code:
            errors[query] = item_error(answer.error_code, subject)
        elif answer.offset < 0:
            errors[query] = ItemError(f"{subject}: it is not known there.")
        else:
            found[query] = port.ReplicaOffset(answer.offset, result.taken_at)


def _quorum(partition: QuorumPartition, taken_at: float) -> port.Quorum:
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
