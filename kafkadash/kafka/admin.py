"""``WireAdmin``: the port's calls as Kafka requests, each to the brokers that it has to be asked of."""

from __future__ import annotations

import os
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TypeVar

from kafkadash.kafka import clock, port
from kafkadash.kafka.answers import (
    DESCRIBE_CLUSTER,
    cluster_of,
    cluster_of_metadata,
    features_of,
    log_dir_of,
    log_dirs_error,
    metadata_of,
    quorum_of,
    reassignments_of,
    sort_offsets,
)
from kafkadash.kafka.asking import Answer, Ask, Lane
from kafkadash.kafka.codes import NOT_CONTROLLER, call_failure, item_error
from kafkadash.kafka.committed_reads import CommittedReading
from kafkadash.kafka.config_reads import ConfigReading
from kafkadash.kafka.connection import Connection
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_reads import GroupReading
from kafkadash.kafka.groups import Committed, Groups, LogSpans
from kafkadash.kafka.messages import (
    METADATA,
    QUORUM_TOPIC,
    ApiVersionsAnswer,
    ClusterAnswer,
    LogDirsAnswer,
    MetadataAnswer,
    OffsetsAnswer,
    QuorumAnswer,
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
from kafkadash.kafka.port import AuthenticationFailed, ConfigResource, ItemError, KafkaFailure, OffsetKind, OffsetQuery
from kafkadash.kafka.span_reads import SpanReading
from kafkadash.kafka.talk import Talk
from kafkadash.kafka.wire import Wire, WireClosed

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
                errors[broker] = ItemError(result.message, name=result.kind)
            elif result.response.error_code:
                errors[broker] = item_error(
                    result.response.error_code, f"Broker {broker} does not tell its API versions"
                )
            else:
                keys = result.response.api_keys
                ranges[broker] = {key.api_key: (key.min_version, key.max_version) for key in keys}
                features[broker] = features_of(result.response)
        return port.ApiVersions(ranges, errors, _oldest(results), features)

    def describe_cluster(self, *, deadline: float) -> port.ClusterDescription:
        ask: Ask[ClusterAnswer | MetadataAnswer] = Ask(cluster_request)
        answer = self._with_wire(lambda wire: wire.ask_any(ask, deadline=deadline))
        response = answer.response
        if response.API_KEY == METADATA:
            return cluster_of_metadata(response, answer.taken_at)  # type: ignore[arg-type]
        return cluster_of(response, answer.taken_at)  # type: ignore[arg-type]

    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> port.Metadata:
        """Raw Metadata. A topic that the principal may not describe is left out of "all topics" by Kafka."""
        ask: Ask[MetadataAnswer] = Ask(lambda offered: metadata_request(offered, topics))
        answer = self._with_wire(lambda wire: wire.ask_any(ask, deadline=deadline))
        response = answer.response
        if response.error_code:  # top level from v13 on
            raise call_failure(response.error_code, "Metadata", permission="Describe on the topics")
        return metadata_of(response, answer.taken_at)

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
                permission=DESCRIBE_CLUSTER,
                through_controller=True,
                detail=response.error_message,
            )
        return reassignments_of(response, answer.taken_at)

    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> port.LogDirs:
        ids = list(dict.fromkeys(brokers))
        ask: Ask[LogDirsAnswer] = Ask(log_dirs_request)
        results = self._with_wire(lambda wire: wire.ask_each([(broker, ask) for broker in ids], deadline=deadline))
        found: dict[int, Sequence[port.LogDir]] = {}
        errors: dict[int, ItemError] = {}
        for broker, result in zip(ids, results, strict=True):
            if isinstance(result, KafkaFailure):
                errors[broker] = ItemError(result.message)
            elif error := log_dirs_error(broker, result.response):
                errors[broker] = error
            else:
                found[broker] = [
                    log_dir_of(broker, directory, result.response.API_VERSION) for directory in result.response.results
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
            sort_offsets(asked, result, found, errors)
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
                code, "DescribeQuorum", permission=DESCRIBE_CLUSTER, through_controller=True, detail=detail
            )
        if partition.leader_id < 0:
            raise port.QuorumUnavailable(KafkaErrorCode.QUORUM_WITHOUT_LEADER)
        return quorum_of(partition, answer.taken_at)

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

    def groups(self, *, deadline: float) -> Groups:
        return self._talk(lambda talk: GroupReading(talk).read(), deadline)

    def committed(self, groups: Collection[str], *, deadline: float) -> Committed:
        return self._talk(lambda talk: CommittedReading(talk).read(groups), deadline)

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        return self._talk(lambda talk: SpanReading(talk).read(partitions), deadline)

    def close(self) -> None:
        """Ends the wire; a later call raises Unreachable."""
        with self._guard():
            self._closed = True
            wire, self._wire = self._wire, None
        if wire is not None and wire.pid == os.getpid():
            wire.close()

    # ---- the wire's life

    def _talk(self, read: Callable[[Talk], R], deadline: float) -> R:
        def question(wire: Wire) -> R:
            with wire.conversation(deadline=deadline) as conversation:
                return read(Talk(conversation))

        return self._with_wire(question)

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
                raise port.Unreachable(KafkaErrorCode.CONNECTION_RENEWED)
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
            raise port.QuorumUnavailable(KafkaErrorCode.NO_CONTROLLER)
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
