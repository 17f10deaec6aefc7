"""``WireAdmin``: the read calls of ``kafka.api`` as Kafka requests, each sent to the brokers that must answer it.

Answers and error codes become values of the port; a field that the version of an answer does not have is None.
DescribeConfigs asks each broker for its own configs, and any broker for portions of the topics. Permissions are those
that the brokers report (KIP-430).

Log start and high watermark come from ListOffsets as a consumer sends it, to the leaders. The start is asked for before
the end, on the same connection, which a broker answers in order, so that a start never lies behind its end. If it does
(the two went over different connections), both are asked for again. The last stable offset is asked for after the end:
if it is below that, a transaction was open then and still is.
"""

from __future__ import annotations

import base64
import logging
import os
import secrets
import threading
import time
import zlib
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from functools import partial, wraps
from typing import ParamSpec, TypeVar
from uuid import UUID

from kafkadash.core import clock
from kafkadash.core.messages import coded
from kafkadash.kafka import api as port
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    QUORUM_TOPIC,
    TRANSACTIONS_TOPIC,
    AnswerTooLarge,
    AuthenticationFailed,
    ClusterConnection,
    CommittedOffsets,
    ConfigEntry,
    ConfigOrigin,
    ConfigResource,
    ConfigResourceType,
    ConfigType,
    DeadlineExceeded,
    GroupListing,
    ItemError,
    KafkaFailure,
    KafkaUnreachable,
    LogSpan,
    LogSpans,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    ShareOffsets,
)
from kafkadash.kafka.dispatch import BrokerAnswer, BrokerRequest, ClusterWire, ConnectionPool, FanOut, Then, WireClosed
from kafkadash.kafka.error_codes import (
    LEADER_MOVES,
    LEADER_NOT_AVAILABLE,
    NOT_CONTROLLER,
    UNKNOWN_TOPIC_OR_PARTITION,
    call_failure,
    item_error,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.group_reads import CommittedReading, GroupReading, ShareReading, clean_text
from kafkadash.kafka.kafka_python import DescribeClusterRequest, MetadataRequest
from kafkadash.kafka.messages import (
    DESCRIBE_CLUSTER,
    METADATA,
    READ_COMMITTED,
    READ_UNCOMMITTED,
    TRANSACTIONS_IN_PROGRESS,
    ApiRanges,
    ApiVersionsAnswer,
    ClusterAnswer,
    ConfigAnswer,
    ConfigsAnswer,
    ConfigsResult,
    DescribedTransactionsAnswer,
    KafkaResponse,
    LogDirResult,
    LogDirsAnswer,
    MetadataAnswer,
    MetadataTopic,
    OffsetsAnswer,
    ProducersAnswer,
    QuorumAnswer,
    QuorumPartition,
    QuorumReplicaAnswer,
    ReassignmentsAnswer,
    Request,
    TopicPartitionsAnswer,
    TransactionsAnswer,
    api_versions_request,
    cluster_request,
    configs_request,
    described_transactions_request,
    log_dirs_request,
    metadata_request,
    name_operations,
    offsets_request,
    producers_request,
    quorum_request,
    reassignments_request,
    span_request,
    topic_partitions_request,
    transactions_request,
)

CLUSTER_PERMISSION = "Describe on the cluster"
"""The permission that most questions about a cluster need."""


def features_of(response: ApiVersionsAnswer) -> port.ClusterFeatures:
    """Finalized levels are only valid with an epoch (ApiVersionsResponse.json)."""
    known = response.API_VERSION >= 3 and response.finalized_features_epoch >= 0
    return port.ClusterFeatures(
        supported={f.name: (f.min_version, f.max_version) for f in response.supported_features or ()},
        finalized={f.name: f.max_version_level for f in response.finalized_features or ()} if known else {},
        epoch=response.finalized_features_epoch if known else None,
    )


def _brokers(response: MetadataAnswer) -> list[port.BrokerInfo]:
    brokers = (port.BrokerInfo(b.node_id, b.host, b.port, b.rack, fenced=None) for b in response.brokers)
    return sorted(brokers, key=lambda broker: broker.id)


def cluster_of_metadata(response: MetadataAnswer, taken_at: float) -> port.ClusterDescription:
    controller = response.controller_id if response.controller_id >= 0 else None
    return port.ClusterDescription(response.cluster_id or "", controller, _brokers(response), taken_at)


def cluster_of(response: ClusterAnswer, taken_at: float) -> port.ClusterDescription:
    if response.error_code:
        raise call_failure(
            response.error_code,
            "DescribeCluster",
            permission=CLUSTER_PERMISSION,
            detail=response.error_message,
        )
    tells_fenced = response.API_VERSION >= 2
    brokers = [
        port.BrokerInfo(b.broker_id, b.host, b.port, b.rack, fenced=b.is_fenced if tells_fenced else None)
        for b in response.brokers
    ]
    controller = response.controller_id if response.controller_id >= 0 else None
    return port.ClusterDescription(
        response.cluster_id, controller, sorted(brokers, key=lambda broker: broker.id), taken_at
    )


def metadata_of(response: MetadataAnswer, taken_at: float) -> port.ClusterMetadata:
    return port.ClusterMetadata(
        cluster_id=response.cluster_id or "",
        brokers=_brokers(response),
        topics=sorted((_topic(topic, response.API_VERSION) for topic in response.topics), key=lambda t: t.name),
        taken_at=taken_at,
    )


def _topic(topic: MetadataTopic, version: int) -> port.TopicMetadata:
    name = topic.name or ""
    code = topic.error_code
    partitions = [
        port.PartitionMetadata(
            partition=p.partition_index,
            leader=p.leader_id if p.leader_id >= 0 else None,
            leader_epoch=p.leader_epoch if version >= 7 and p.leader_epoch >= 0 else None,
            replicas=tuple(p.replica_nodes),
            isr=tuple(p.isr_nodes),
            offline=tuple(p.offline_replicas),
            error=item_error(p.error_code, f"Partition {name}-{p.partition_index} has an error")
            if p.error_code
            else None,
        )
        for p in topic.partitions
    ]
    partitions.sort(key=lambda partition: partition.partition)
    topic_id: UUID | None = topic.topic_id  # None before v10 (Kafka 2.8)
    return port.TopicMetadata(
        name=name,
        topic_id=str(topic_id) if topic_id else "",
        internal=topic.is_internal,
        partitions=partitions,
        error=item_error(code, f"Topic {name} cannot be described") if code else None,
    )


def reassignments_of(response: ReassignmentsAnswer, taken_at: float) -> port.ListedReassignments:
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
    return port.ListedReassignments(sorted(rows, key=lambda row: (row.topic, row.partition)), taken_at)


def log_dirs_error(broker: int, response: LogDirsAnswer) -> ItemError | None:
    subject = f"Log directories of broker {broker} cannot be read"
    if response.error_code:  # top level from v3 on
        return item_error(response.error_code, subject, permission=CLUSTER_PERMISSION)
    if not response.results:  # every broker has a directory: before v3 this is how a refusal looks
        return ItemError(coded(KafkaErrorCode.DIRECTORIES_HIDDEN, broker=broker, permission=CLUSTER_PERMISSION))
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


_OFFSET_WORDS = {
    OffsetKind.LATEST: "log end",
    OffsetKind.EARLIEST: "log start",
    OffsetKind.EARLIEST_LOCAL: "local log start",
    OffsetKind.LATEST_TIERED: "last tiered",
}


def sort_offsets(
    queries: Sequence[OffsetQuery],
    result: BrokerAnswer[OffsetsAnswer] | KafkaFailure,
    found: dict[OffsetQuery, port.ReplicaOffset],
    errors: dict[OffsetQuery, ItemError],
) -> None:
    """Puts each query that was asked in one request into ``found`` or into ``errors``."""
    if isinstance(result, KafkaFailure):
        errors.update(dict.fromkeys(queries, ItemError(result.message)))
        return
    answers = {(t.name, p.partition_index): p for t in result.response.topics for p in t.partitions}
    for query in queries:
        word = _OFFSET_WORDS[query.kind]
        subject = f"Broker {query.broker} returned no {word} offset of {query.topic}-{query.partition}"
        answer = answers.get((query.topic, query.partition))
        if answer is None:
            errors[query] = ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject))
        elif answer.error_code:
            errors[query] = item_error(answer.error_code, subject)
        elif answer.offset < 0 and query.kind is not OffsetKind.LATEST_TIERED:
            errors[query] = ItemError(coded(KafkaErrorCode.NOT_KNOWN_THERE, subject=subject))
        else:
            found[query] = port.ReplicaOffset(answer.offset, result.taken_at, result.took)


def eligible_of(
    response: TopicPartitionsAnswer,
) -> Iterator[tuple[port.TopicPartition, port.EligibleReplicas]]:
    """Yield the partitions of a page; a partition without a leader has an error and is described all the same."""
    for topic in response.topics:
        for p in topic.partitions if topic.error_code == 0 else ():
            lists = (p.eligible_leader_replicas, p.last_known_elr)
            eligible, last_known = (None if each is None else tuple(each) for each in lists)
            yield (
                port.TopicPartition(topic.name or "", p.partition_index),
                port.EligibleReplicas(eligible, last_known),
            )


def quorum_of(partition: QuorumPartition, taken_at: float) -> port.QuorumDescription:
    return port.QuorumDescription(
        leader_id=partition.leader_id,
        leader_epoch=partition.leader_epoch,
        high_watermark=_drop_unknown(partition.high_watermark),
        voters=[_quorum_replica(replica) for replica in sorted(partition.current_voters, key=lambda r: r.replica_id)],
        observers=[_quorum_replica(replica) for replica in sorted(partition.observers, key=lambda r: r.replica_id)],
        taken_at=taken_at,
    )


def _quorum_replica(replica: QuorumReplicaAnswer) -> port.QuorumReplica:
    return port.QuorumReplica(
        id=replica.replica_id,
        directory_id=_kafka_uuid(replica.replica_directory_id),
        log_end_offset=_drop_unknown(replica.log_end_offset),
        last_fetch_ms=_drop_unknown(replica.last_fetch_timestamp),
        last_caught_up_ms=_drop_unknown(replica.last_caught_up_timestamp),
    )


def _drop_unknown(value: int) -> int | None:
    """−1 means unknown in DescribeQuorum (org.apache.kafka.raft.internals.KafkaRaftMetrics, KIP-836)."""
    return value if value >= 0 else None


def _kafka_uuid(value: UUID | None) -> str:
    """Return the UUID as org.apache.kafka.common.Uuid prints it; '' for none."""
    return base64.urlsafe_b64encode(value.bytes).rstrip(b"=").decode() if value and value.int else ""


# A topic has some thirty configs: a portion is about a megabyte, and a wave of portions a few tens of megabytes once
# decoded, however many topics there are.
CONFIGS_PER_REQUEST = 500
QUESTIONS_PER_WAVE = 4

_PERMISSIONS = {
    ConfigResourceType.TOPIC: "DescribeConfigs on the topic",
    ConfigResourceType.BROKER: "DescribeConfigs on the cluster",
}
Result = BrokerAnswer[ConfigsAnswer] | KafkaFailure


class ConfigReading:
    """Collects the answers of one call. Equal entries are kept once: most topics have most values by default."""

    def __init__(self, keys: Collection[str] | None) -> None:
        self._keys = keys
        self._found: dict[ConfigResource, Mapping[str, ConfigEntry]] = {}
        self._errors: dict[ConfigResource, ItemError] = {}
        self._entries: dict[tuple[str, str | None, int, bool, bool, int], ConfigEntry] = {}
        self._taken_at: list[float] = []
        self._failures: list[KafkaFailure] = []

    def read(
        self,
        resources: Collection[ConfigResource],
        with_wire: Callable[[Callable[[ClusterWire], list[Result]]], list[Result]],
        left: Callable[[], float],
    ) -> port.ResourceConfigs:
        """Raises the first KafkaFailure when nothing at all was answered."""
        unique = list(dict.fromkeys(resources))
        portions = _split_configs([r for r in unique if r.type is ConfigResourceType.TOPIC])
        if CLUSTER_DEFAULT in unique:
            portions.append((0, [CLUSTER_DEFAULT]))
        for start in range(0, len(portions), QUESTIONS_PER_WAVE):
            wave = portions[start : start + QUESTIONS_PER_WAVE]
            asked = [portion for _, portion in wave]
            if left() > 0:
                turns = [(turn, self._ask(portion)) for turn, portion in wave]
                self._round(asked, partial(with_wire, partial(_ask_in_turn, turns, left)))
            else:
                self._fail(asked, DeadlineExceeded(KafkaErrorCode.TURN_TOO_LATE))
        # Brokers come last: one that is silent takes all the time there is.
        brokers = [r for r in unique if r.type is ConfigResourceType.BROKER and r != CLUSTER_DEFAULT]
        if brokers:
            asks = [(int(broker.name), self._ask([broker])) for broker in brokers]
            self._round([[b] for b in brokers], lambda: with_wire(lambda wire: wire.ask_each(asks, deadline=left())))
        if self._failures and not self._taken_at:
            raise self._failures[0]
        return port.ResourceConfigs(self._found, self._errors, min(self._taken_at, default=clock.seconds()))

    def _round(self, portions: Sequence[Sequence[ConfigResource]], ask: Callable[[], list[Result]]) -> None:
        try:
            results = ask()
        except KafkaFailure as failure:
            self._fail(portions, failure)
        else:
            for portion, result in zip(portions, results, strict=True):
                self._sort(portion, result)

    def _fail(self, portions: Sequence[Sequence[ConfigResource]], failure: KafkaFailure) -> None:
        for portion in portions:
            self._sort(portion, failure)

    def _ask(self, resources: Sequence[ConfigResource]) -> BrokerRequest[ConfigsAnswer]:
        return BrokerRequest(
            lambda offered: configs_request(offered, [(r.type, r.name) for r in resources], self._keys)
        )

    def _sort(self, resources: Sequence[ConfigResource], result: Result) -> None:
        """Puts each resource that was asked in one request into what was found or into the errors."""
        if isinstance(result, KafkaFailure):
            self._failures.append(result)
            self._errors.update(dict.fromkeys(resources, ItemError(result.message)))
            return
        self._taken_at.append(result.taken_at)
        answers = {(row.resource_type, row.resource_name): row for row in result.response.results}
        for resource in resources:
            row = answers.get((int(resource.type), resource.name))
            if row is None:
                self._errors[resource] = ItemError(
                    coded(KafkaErrorCode.NOT_IN_ANSWER, subject=f"The configuration of {resource} cannot be read")
                )
            elif row.error_code:
                self._errors[resource] = _error(resource, row)
            else:
                self._found[resource] = {config.name: self._entry(config) for config in row.configs}

    def _entry(self, config: ConfigAnswer) -> ConfigEntry:
        value = None if config.is_sensitive else config.value
        flags = config.is_sensitive, config.read_only
        key = (config.name, value, config.config_source, *flags, config.config_type)
        entry = self._entries.get(key)
        if entry is None:
            origin, type_ = ConfigOrigin(config.config_source), ConfigType(config.config_type)
            entry = ConfigEntry(config.name, value, origin, *flags, type_)
            self._entries[key] = entry
        return entry


def _split_configs(topics: Sequence[ConfigResource]) -> list[tuple[int, list[ConfigResource]]]:
    """(turn, topics) by a digest of their names, so that one is asked of the same broker time after time.

    Where a topic's value comes from the static config of brokers, brokers may differ, and an answer that changes with
    whoever gives it looks like a change.
    """
    count = 1
    while count * CONFIGS_PER_REQUEST < len(topics):
        count *= 2
    portions: list[list[ConfigResource]] = [[] for _ in range(count)]
    for topic in topics:
        portions[zlib.crc32(topic.name.encode()) % count].append(topic)
    return [(turn, portion) for turn, portion in enumerate(portions) if portion]


def _ask_in_turn(
    turns: Sequence[tuple[int, BrokerRequest[ConfigsAnswer]]], left: Callable[[], float], wire: ClusterWire
) -> list[Result]:
    return wire.ask_in_turn(turns, deadline=left())


def _error(resource: ConfigResource, row: ConfigsResult) -> ItemError:
    return item_error(
        row.error_code,
        f"The configuration of {resource} cannot be read",
        detail=row.error_message,
        permission=_PERMISSIONS[resource.type],
    )


TOPICS_PER_METADATA = 1000  # of Metadata
PARTITIONS_PER_QUESTION = 5000  # of ListOffsets: a quarter of a megabyte
PARTITIONS_PER_PRODUCERS = 20  # of DescribeProducers: a partition may have thousands of idempotent producers
DESCRIBE_TOPIC = "Describe on the topic"

Wanted = Mapping[str, Collection[int]]
Offset = tuple[int, int]  # error code, offset


class ProducerReading:
    """Collects transactions that are open in partitions, from their leaders. What no leader answers is left out."""

    def __init__(self, talk: FanOut) -> None:
        self._talk = talk
        self._found: dict[str, dict[int, list[port.OpenTransaction]]] = defaultdict(dict)

    def read(self, partitions: Wanted) -> Mapping[str, Mapping[int, Sequence[port.OpenTransaction]]]:
        """Raises KafkaFailure when nobody answered anything."""
        ask: BrokerRequest[MetadataAnswer] = BrokerRequest(partial(metadata_request, topics=partitions.keys()))
        self._talk.ask(None, ask, partial(self._told_leaders, partitions))
        self._talk.run()
        return self._found

    def _told_leaders(self, wanted: Wanted, result: BrokerAnswer[MetadataAnswer] | KafkaFailure) -> None:
        by_leader: dict[int, dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for topic in () if isinstance(result, KafkaFailure) else result.response.topics:
            for row in topic.partitions:
                if row.leader_id >= 0 and row.partition_index in wanted.get(topic.name or "", ()):
                    by_leader[row.leader_id][topic.name or ""].append(row.partition_index)
        for leader, theirs in by_leader.items():
            for portion in _split_partitions(theirs, PARTITIONS_PER_PRODUCERS):
                self._ask(leader, portion)

    def _ask(self, leader: int, partitions: Mapping[str, Sequence[int]]) -> None:
        ask: BrokerRequest[ProducersAnswer] = BrokerRequest(partial(producers_request, partitions=partitions))
        self._talk.ask(leader, ask, partial(self._told, leader, partitions))

    def _told(
        self,
        leader: int,
        partitions: Mapping[str, Sequence[int]],
        result: BrokerAnswer[ProducersAnswer] | KafkaFailure,
    ) -> None:
        number = sum(map(len, partitions.values()))
        if isinstance(result, AnswerTooLarge) and number > 1:
            for portion in _split_partitions(partitions, (number + 1) // 2):
                self._ask(leader, portion)
            return
        for topic in () if isinstance(result, KafkaFailure) else result.response.topics:
            for row in topic.partitions:
                if row.error_code:
                    continue
                opened = [
                    port.OpenTransaction(
                        producer.producer_id,
                        producer.current_txn_start_offset,
                        producer.last_timestamp / 1000 if producer.last_timestamp >= 0 else None,
                        producer.producer_epoch,
                        producer.coordinator_epoch,
                    )
                    for producer in row.active_producers
                    if producer.current_txn_start_offset >= 0
                ]
                self._found[topic.name][row.partition_index] = sorted(opened, key=lambda each: each.start)


class TransactionReading:
    """Collects transactions in progress from all brokers, each of which tells those that it coordinates."""

    def __init__(self, talk: FanOut, producers: Collection[int]) -> None:
        self._talk = talk
        self._producers = producers
        self._found: dict[int, str] = {}
        self._complete = True

    def read(self) -> Mapping[int, str] | None:
        """Raises KafkaFailure when nobody answered anything."""
        brokers: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, ()))
        self._talk.ask(None, brokers, self._told_brokers)
        self._talk.run()
        return self._found if self._complete else None

    def _told_brokers(self, result: BrokerAnswer[MetadataAnswer] | KafkaFailure) -> None:
        self._complete = not isinstance(result, KafkaFailure)
        for broker in () if isinstance(result, KafkaFailure) else result.response.brokers:
            ask: BrokerRequest[TransactionsAnswer] = BrokerRequest(
                partial(transactions_request, producers=self._producers, states=TRANSACTIONS_IN_PROGRESS)
            )
            self._talk.ask(broker.node_id, ask, self._told)

    def _told(self, result: BrokerAnswer[TransactionsAnswer] | KafkaFailure) -> None:
        if isinstance(result, KafkaFailure) or result.response.error_code:
            self._complete = False
            return
        for row in result.response.transaction_states:
            self._found[row.producer_id] = clean_text(row.transactional_id)


_TRANSACTIONAL_ID_NOT_FOUND = 105
_MAY_DESCRIBE = frozenset({0, 14, 15, 16, _TRANSACTIONAL_ID_NOT_FOUND})
"""Answers about a transactional id that Kafka gives only to those who may describe it (kafka.server.KafkaApis)."""


class CoordinatorReading:
    """Collects what coordinators know of transactions: each broker lists those that it coordinates, then describes
    them. It is also asked for a transactional id that nobody has, which tells whether Kafka hides any.

    A partition of ``__transaction_state`` without a leader is coordinated by nobody, and its transactions are in no
    list; nor need those be of one that moves meanwhile. So its leaders are read before the lists and after them.
    """

    def __init__(self, talk: FanOut, producers: Collection[int]) -> None:
        self._talk = talk
        self._producers = producers
        self._found: dict[int, port.CoordinatedTransaction | None] = {}
        self._complete = True
        self._sees_all = False
        self._nobodys = f"~{secrets.token_hex(12)}"
        self._lists_to_come = 0

    def read(self) -> port.CoordinatedTransactions:
        """Raises KafkaFailure when nobody answered anything."""
        self._ask_leaders(self._told_brokers)
        self._talk.run()
        return port.CoordinatedTransactions(self._found, self._complete, self._sees_all)

    def _ask_leaders(self, then: Then[MetadataAnswer]) -> None:
        ask: BrokerRequest[MetadataAnswer] = BrokerRequest(partial(metadata_request, topics=[TRANSACTIONS_TOPIC]))
        self._talk.ask(None, ask, then)

    def _told_brokers(self, result: BrokerAnswer[MetadataAnswer] | KafkaFailure) -> None:
        leaders = _find_coordinators(result)
        self._complete = leaders is not None
        brokers = () if isinstance(result, KafkaFailure) else result.response.brokers
        self._lists_to_come = len(brokers)
        for broker in brokers:
            ask: BrokerRequest[TransactionsAnswer] = BrokerRequest(
                partial(transactions_request, producers=self._producers)
            )
            self._talk.ask(broker.node_id, ask, partial(self._told_list, broker.node_id, leaders))

    def _told_list(
        self, broker: int, leaders: _Coordinators | None, result: BrokerAnswer[TransactionsAnswer] | KafkaFailure
    ) -> None:
        self._lists_to_come -= 1
        if not self._lists_to_come:
            self._ask_leaders(partial(self._told_leaders_again, leaders))
        if isinstance(result, KafkaFailure) or result.response.error_code:
            self._complete = False
            return
        own = {row.transactional_id: row.producer_id for row in result.response.transaction_states}
        self._found |= dict.fromkeys(own.values())
        ask: BrokerRequest[DescribedTransactionsAnswer] = BrokerRequest(
            partial(described_transactions_request, transactional_ids=[*own, self._nobodys])
        )
        self._talk.ask(broker, ask, partial(self._told, own))

    def _told_leaders_again(
        self, leaders: _Coordinators | None, result: BrokerAnswer[MetadataAnswer] | KafkaFailure
    ) -> None:
        if _find_coordinators(result) != leaders:
            self._complete = False

    def _told(self, own: Mapping[str, int], result: BrokerAnswer[DescribedTransactionsAnswer] | KafkaFailure) -> None:
        if isinstance(result, KafkaFailure):
            self._complete = False
            return
        for row in result.response.transaction_states:
            if row.transactional_id == self._nobodys:
                self._sees_all |= row.error_code in _MAY_DESCRIBE
            elif row.transactional_id in own and row.error_code in (0, _TRANSACTIONAL_ID_NOT_FOUND):
                partitions = frozenset((topic.topic, index) for topic in row.topics for index in topic.partitions)
                state = "" if row.error_code else clean_text(row.transaction_state)
                self._found[own[row.transactional_id]] = port.CoordinatedTransaction(
                    clean_text(row.transactional_id), state, partitions
                )


_Coordinators = Mapping[int, tuple[int, int]]
"""Partition of ``__transaction_state`` → its leader and leader epoch."""


def _find_coordinators(result: BrokerAnswer[MetadataAnswer] | KafkaFailure) -> _Coordinators | None:
    """Return None unless all partitions are known and led by brokers of the same answer."""
    if isinstance(result, KafkaFailure):
        return None
    brokers = {broker.node_id for broker in result.response.brokers}
    topic = next((each for each in result.response.topics if each.name == TRANSACTIONS_TOPIC), None)
    if topic is None or topic.error_code or not topic.partitions:
        return None
    if any(row.leader_id not in brokers for row in topic.partitions):
        return None
    version = result.response.API_VERSION
    return {row.partition_index: (row.leader_id, row.leader_epoch if version >= 7 else -1) for row in topic.partitions}


LAST_STABLE = -1_000
"""Begin of spans that is no timestamp of ListOffsets: the newest offset for consumers with read_committed."""


class SpanReading:
    """Collects the answers of one call. ``begin``: where spans begin, as the ``timestamp`` of ListOffsets, or
    LAST_STABLE. ``isolation``: of the consumers for which they end.
    """

    def __init__(self, talk: FanOut, begin: int = OffsetKind.EARLIEST, isolation: int = READ_UNCOMMITTED) -> None:
        self._talk = talk
        self._begin, self._isolation = begin, isolation
        self._spans: dict[str, dict[int, LogSpan]] = {}
        self._errors: dict[str, dict[int, ItemError]] = {}
        self._taken_at: list[float] = []

    def read(self, partitions: Wanted) -> LogSpans:
        """Raises KafkaFailure when nobody answered anything."""
        self._find_leaders({topic: list(dict.fromkeys(indexes)) for topic, indexes in partitions.items() if indexes})
        self._talk.run()
        return LogSpans(self._spans, self._errors, min(self._taken_at, default=clock.seconds()))

    # ---- who leads

    def _find_leaders(self, wanted: Wanted) -> None:
        names = list(wanted)
        for start in range(0, len(names), TOPICS_PER_METADATA):
            part = {name: wanted[name] for name in names[start : start + TOPICS_PER_METADATA]}
            ask: BrokerRequest[MetadataAnswer] = BrokerRequest(partial(metadata_request, topics=part.keys()))
            self._talk.ask(None, ask, partial(self._told_leaders, part))

    def _find_leaders_again(self, moved: Mapping[str, Mapping[int, ItemError]]) -> None:
        """Find the leaders of moved partitions again; ``moved``: the error of each partition if no time is left."""
        if moved and not self._talk.later(partial(self._find_leaders, moved)):
            for topic, why in moved.items():
                self._errors.setdefault(topic, {}).update(why)

    def _told_leaders(self, wanted: Wanted, result: BrokerAnswer[MetadataAnswer] | KafkaFailure) -> None:
        if isinstance(result, KafkaFailure):
            self._fail(wanted, ItemError(result.message))
            return
        by_leader: dict[int, dict[str, list[int]]] = defaultdict(dict)
        topics = {topic.name: topic for topic in result.response.topics}
        for name, indexes in wanted.items():
            topic = topics.get(name)
            if topic is None or topic.error_code:
                self._fail({name: indexes}, _topic_error(name, topic.error_code if topic else None))
                continue
            leaders = {partition.partition_index: partition.leader_id for partition in topic.partitions}
            for index in indexes:
                leader = leaders.get(index)
                if leader is None or leader < 0:
                    self._fail({name: [index]}, _no_leader(name, index, exists=leader is not None))
                else:
                    by_leader[leader].setdefault(name, []).append(index)
        for leader, theirs in by_leader.items():
            for portion in _split_partitions(theirs):
                self._ask(leader, portion)

    # ---- what the leader says

    def _ask(self, leader: int, partitions: Wanted) -> None:
        pair = _ReplicaPair()
        kinds = [self._begin, OffsetKind.LATEST]
        if self._begin == LAST_STABLE:  # what is written and committed between two answers is no open transaction
            kinds.reverse()
        for kind in kinds:
            self._talk.ask(
                leader, self._question(partitions, kind), partial(self._told, leader, partitions, pair, kind)
            )

    def _question(self, partitions: Wanted, kind: int) -> BrokerRequest[OffsetsAnswer]:
        isolation = self._isolation
        if kind == LAST_STABLE:
            kind, isolation = OffsetKind.LATEST, READ_COMMITTED
        return BrokerRequest(
            lambda offered: span_request(offered, partitions, kind, max(1, int(self._talk.left() * 1000)), isolation)
        )

    def _told(
        self,
        leader: int,
        partitions: Wanted,
        pair: _ReplicaPair,
        kind: int,
        result: BrokerAnswer[OffsetsAnswer] | KafkaFailure,
    ) -> None:
        pair.results[kind] = result
        if len(pair.results) < 2:
            return
        results = list(pair.results.values())
        failure = next((result for result in results if isinstance(result, KafkaFailure)), None)
        if isinstance(failure, KafkaUnreachable):  # it may have stopped, and others lead now
            error = ItemError(failure.message)
            self._find_leaders_again({topic: dict.fromkeys(indexes, error) for topic, indexes in partitions.items()})
        elif failure is not None:
            self._fail(partitions, ItemError(failure.message))
        else:
            self._sort(leader, partitions, pair)

    def _sort(self, leader: int, partitions: Wanted, pair: _ReplicaPair) -> None:
        starts, _ = pair.offsets(self._begin)
        ends, taken_at = pair.offsets(OffsetKind.LATEST)
        self._taken_at.append(taken_at)
        moved: dict[str, dict[int, ItemError]] = {}
        for topic, indexes in partitions.items():
            spans: dict[int, LogSpan] = {}
            none: dict[int, Offset] = {}
            topic_starts, topic_ends = starts.get(topic, none), ends.get(topic, none)
            for index in indexes:
                start, end = topic_starts.get(index), topic_ends.get(index)
                if start is None or end is None:
                    subject = _describe_log(leader, topic, index)
                    self._fail({topic: [index]}, ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject)))
                elif code := start[0] or end[0]:
                    error = item_error(code, _describe_log(leader, topic, index), permission=DESCRIBE_TOPIC)
                    if code in LEADER_MOVES:
                        moved.setdefault(topic, {})[index] = error
                    else:
                        self._fail({topic: [index]}, error)
                elif self._begins_nowhere(start[1], end[1]):
                    spans[index] = LogSpan(end[1], end[1], taken_at)
                elif start[1] < 0 or end[1] < 0 or start[1] > end[1]:
                    subject = _describe_log(leader, topic, index)
                    moved.setdefault(topic, {})[index] = ItemError(
                        coded(KafkaErrorCode.NOT_KNOWN_THERE, subject=subject)
                    )
                else:
                    spans[index] = LogSpan(start[1], end[1], taken_at)
            if spans:
                self._spans.setdefault(topic, {}).update(spans)
        self._find_leaders_again(moved)

    def _begins_nowhere(self, start: int, end: int) -> bool:
        """Return whether no transaction was open at the end, or no record is as late as the begin."""
        if self._begin == LAST_STABLE:
            return 0 <= end < start
        return self._begin >= 0 and start < 0 <= end

    def _fail(self, partitions: Wanted, error: ItemError) -> None:
        for topic, indexes in partitions.items():
            self._errors.setdefault(topic, {}).update(dict.fromkeys(indexes, error))


class _ReplicaPair:
    """The two answers about the same partitions."""

    def __init__(self) -> None:
        self.results: dict[int, BrokerAnswer[OffsetsAnswer] | KafkaFailure] = {}

    def offsets(self, kind: int) -> tuple[dict[str, dict[int, Offset]], float]:
        answer = self.results[kind]
        assert isinstance(answer, BrokerAnswer)
        return {
            topic.name: {p.partition_index: (p.error_code, p.offset) for p in topic.partitions}
            for topic in answer.response.topics
        }, answer.taken_at


def _split_partitions(
    partitions: Mapping[str, Sequence[int]], most: int = PARTITIONS_PER_QUESTION
) -> Iterator[dict[str, Sequence[int]]]:
    portion: dict[str, Sequence[int]] = {}
    size = 0
    for topic, indexes in partitions.items():
        for start in range(0, len(indexes), most):
            part = indexes[start : start + most]
            if size + len(part) > most:
                yield portion
                portion, size = {}, 0
            portion[topic] = part
            size += len(part)
    if portion:
        yield portion


def _describe_log(leader: int, topic: str, index: int) -> str:
    return f"Broker {leader} returned no log start and end offsets of {topic}-{index}"


def _topic_error(name: str, code: int | None) -> ItemError:
    subject = f"Log start and end offsets of topic {name} cannot be read"
    if code is None:
        return ItemError(coded(KafkaErrorCode.NOT_IN_ANSWER, subject=subject))
    return item_error(code, subject, permission=DESCRIBE_TOPIC)


def _no_leader(topic: str, index: int, *, exists: bool) -> ItemError:
    subject = f"Log start and end offsets of {topic}-{index} cannot be read"
    return item_error(LEADER_NOT_AVAILABLE if exists else UNKNOWN_TOPIC_OR_PARTITION, subject)


def cluster_permissions_request(offered: ApiRanges) -> Request:
    """Raises NotSupported before Kafka 2.8."""
    if DESCRIBE_CLUSTER not in offered:
        raise NotSupported(KafkaErrorCode.NOT_OFFERED, what="DescribeCluster (Kafka 2.8)")
    return DescribeClusterRequest(include_cluster_authorized_operations=True)


def topic_permissions_request(offered: ApiRanges) -> Request:
    """All topics that may be described. Raises NotSupported before Kafka 2.3 (Metadata v8)."""
    if METADATA not in offered or offered[METADATA][1] < 8:
        raise NotSupported(KafkaErrorCode.NOT_OFFERED, what="the permissions on topics (Metadata v8, Kafka 2.3)")
    return MetadataRequest(topics=None, allow_auto_topic_creation=False, include_topic_authorized_operations=True)


log = logging.getLogger(__name__)
P = ParamSpec("P")
R = TypeVar("R")
A = TypeVar("A", bound=KafkaResponse)
PARTITIONS_PER_PAGE = 2000
"""As many as a broker describes at once by default (max.request.partition.size.limit)."""


def _ask_any(ask: BrokerRequest[A], deadline: float, wire: ClusterWire) -> BrokerAnswer[A]:
    return wire.ask_any(ask, deadline=deadline)


MALFORMED = (AttributeError, LookupError, TypeError, ValueError, ArithmeticError)
"""Raised where an answer is read that was decoded, and lacks fields or has others than its version says."""


def refuses_malformed(read: Callable[P, R]) -> Callable[P, R]:
    """Have a read raise KafkaUnreachable where an answer lacks fields, or has others, than its version says."""

    @wraps(read)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return read(*args, **kwargs)
        except MALFORMED as error:
            log.exception("kafka.answer_malformed")
            raise port.KafkaUnreachable(KafkaErrorCode.ANSWER_MALFORMED) from error

    return checked


class WireAdmin:
    """Reads of one cluster. The wire is made at the first call, and made anew after a fork or when it hung."""

    def __init__(self, connection: ClusterConnection) -> None:
        self._connection = connection
        self._wire: ClusterWire | None = None
        self._lock = threading.Lock()
        self._lock_pid = os.getpid()
        self._closed = False

    @refuses_malformed
    def api_versions(self, *, deadline: float) -> port.ApiVersions:
        left = start_countdown(deadline)
        ids = [broker.id for broker in self.metadata(deadline=left(), topics=()).brokers]
        ask: BrokerRequest[ApiVersionsAnswer] = BrokerRequest(api_versions_request)
        results = self._with_wire(lambda wire: wire.ask_each([(broker, ask) for broker in ids], deadline=left()))
        ranges: dict[int, Mapping[int, tuple[int, int]]] = {}
        features: dict[int, port.ClusterFeatures] = {}
        errors: dict[int, ItemError] = {}
        for broker, result in zip(ids, results, strict=True):
            if isinstance(result, KafkaFailure):
                errors[broker] = ItemError(result.message, name=result.kind)
            elif result.response.error_code:
                errors[broker] = item_error(
                    result.response.error_code, f"API versions of broker {broker} cannot be read"
                )
            else:
                keys = result.response.api_keys
                ranges[broker] = {key.api_key: (key.min_version, key.max_version) for key in keys}
                features[broker] = features_of(result.response)
        return port.ApiVersions(ranges, errors, _find_oldest(results), features)

    @refuses_malformed
    def describe_cluster(self, *, deadline: float) -> port.ClusterDescription:
        ask: BrokerRequest[ClusterAnswer | MetadataAnswer] = BrokerRequest(cluster_request)
        answer = self._with_wire(lambda wire: wire.ask_any(ask, deadline=deadline))
        response = answer.response
        if response.API_KEY == METADATA:
            return cluster_of_metadata(response, answer.taken_at)  # type: ignore[arg-type]
        return cluster_of(response, answer.taken_at)  # type: ignore[arg-type]

    @refuses_malformed
    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> port.ClusterMetadata:
        """Raw Metadata. A topic that the principal may not describe is left out of "all topics" by Kafka."""
        ask: BrokerRequest[MetadataAnswer] = BrokerRequest(lambda offered: metadata_request(offered, topics))
        answer = self._with_wire(lambda wire: wire.ask_any(ask, deadline=deadline))
        response = answer.response
        if response.error_code:  # top level from v13 on
            raise call_failure(response.error_code, "Metadata", permission="Describe on the topics")
        return metadata_of(response, answer.taken_at)

    @refuses_malformed
    def list_reassignments(self, *, deadline: float) -> port.ListedReassignments:
        left = start_countdown(deadline)
        ask: BrokerRequest[ReassignmentsAnswer] = BrokerRequest(
            lambda offered: reassignments_request(offered, timeout_ms=max(1, int(left() * 1000))),
            ConnectionPool.CONTROLLER,
        )
        answer = self._with_wire(lambda wire: wire.ask_controller(ask, deadline=left()))
        if answer.response.error_code == NOT_CONTROLLER:
            answer = self._ask_named_controller(ask, left)
        response = answer.response
        if response.error_code:
            raise call_failure(
                response.error_code,
                "ListPartitionReassignments",
                permission=CLUSTER_PERMISSION,
                through_controller=True,
                detail=response.error_message,
            )
        return reassignments_of(response, answer.taken_at)

    @refuses_malformed
    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> port.LogDirs:
        ids = list(dict.fromkeys(brokers))
        ask: BrokerRequest[LogDirsAnswer] = BrokerRequest(log_dirs_request)
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
        return port.LogDirs(found, errors, _find_oldest(results))

    @refuses_malformed
    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> port.ReplicaOffsets:
        left = start_countdown(deadline)
        groups: dict[tuple[int, OffsetKind], dict[str, list[int]]] = defaultdict(lambda: defaultdict(list))
        for query in dict.fromkeys(queries):
            groups[query.broker, query.kind][query.topic].append(query.partition)

        def offsets(kind: OffsetKind, partitions: Mapping[str, list[int]]) -> BrokerRequest[OffsetsAnswer]:
            return BrokerRequest(lambda offered: offsets_request(offered, partitions, kind, max(1, int(left() * 1000))))

        asks = [(broker, offsets(kind, partitions)) for (broker, kind), partitions in groups.items()]
        results = self._with_wire(lambda wire: wire.ask_each(asks, deadline=left())) if asks else []
        found: dict[OffsetQuery, port.ReplicaOffset] = {}
        errors: dict[OffsetQuery, ItemError] = {}
        for ((broker, kind), partitions), result in zip(groups.items(), results, strict=True):
            asked = [OffsetQuery(broker, topic, p, kind) for topic, indexes in partitions.items() for p in indexes]
            sort_offsets(asked, result, found, errors)
        return port.ReplicaOffsets(found, errors)

    @refuses_malformed
    def eligible_replicas(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[port.TopicPartition, port.EligibleReplicas]:
        """A page begins at the first partition that is still wanted, so that no other is read before it."""
        left = start_countdown(deadline)
        pending = sorted({(topic, index) for topic, indexes in partitions.items() for index in indexes})
        wanted = set(pending)
        found: dict[port.TopicPartition, port.EligibleReplicas] = {}
        while pending:
            names = sorted({topic for topic, _ in pending[:PARTITIONS_PER_PAGE]})
            ask: BrokerRequest[TopicPartitionsAnswer] = BrokerRequest(
                partial(topic_partitions_request, topics=names, first=pending[0], most=PARTITIONS_PER_PAGE)
            )
            response = self._with_wire(partial(_ask_any, ask, left())).response
            found |= {key: own for key, own in eligible_of(response) if (key.topic, key.partition) in wanted}
            cursor = response.next_cursor
            rest = None if cursor is None else (cursor.topic_name, cursor.partition_index)
            later = [each for each in pending if each[0] not in names or (rest is not None and each >= rest)]
            if len(later) == len(pending):
                break  # a broker that names a page before this one never comes to an end
            pending = later
        return found

    @refuses_malformed
    def quorum(self, *, deadline: float) -> port.QuorumDescription:
        ask: BrokerRequest[QuorumAnswer] = BrokerRequest(quorum_request, ConnectionPool.CONTROLLER)
        answer = self._with_wire(lambda wire: wire.ask_controller(ask, deadline=deadline))
        response = answer.response
        # The top level is 0 even where a controller that does not lead was asked: the truth is in the partition.
        partition = next((p for t in response.topics if t.topic_name == QUORUM_TOPIC for p in t.partitions), None)
        code = response.error_code or (partition.error_code if partition else 0)
        if code or partition is None:
            detail = response.error_message or (partition.error_message if partition else None)
            raise call_failure(
                code, "DescribeQuorum", permission=CLUSTER_PERMISSION, through_controller=True, detail=detail
            )
        if partition.leader_id < 0:
            raise port.QuorumUnavailable(KafkaErrorCode.QUORUM_WITHOUT_LEADER)
        return quorum_of(partition, answer.taken_at)

    @refuses_malformed
    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> port.ResourceConfigs:
        return ConfigReading(keys).read(resources, self._with_wire, start_countdown(deadline))

    @refuses_malformed
    def permissions(self, *, deadline: float) -> port.GrantedPermissions:
        left = start_countdown(deadline)
        about_cluster: BrokerRequest[ClusterAnswer] = BrokerRequest(cluster_permissions_request)
        about_topics: BrokerRequest[MetadataAnswer] = BrokerRequest(topic_permissions_request)
        cluster = self._with_wire(lambda wire: wire.ask_any(about_cluster, deadline=left()))
        topics = self._with_wire(lambda wire: wire.ask_any(about_topics, deadline=left()))
        return port.GrantedPermissions(
            name_operations(cluster.response.authorized_operations),
            {
                topic.name: name_operations(topic.authorized_operations)
                for topic in topics.response.topics
                if topic.name and not topic.error_code
            },
            min(cluster.taken_at, topics.taken_at),
        )

    @refuses_malformed
    def groups(self, *, deadline: float) -> GroupListing:
        return self._talk(lambda talk: GroupReading(talk).read(), deadline)

    @refuses_malformed
    def committed(self, groups: Collection[str], *, deadline: float) -> CommittedOffsets:
        return self._talk(lambda talk: CommittedReading(talk).read(groups), deadline)

    @refuses_malformed
    def share_offsets(self, groups: Collection[str], *, deadline: float) -> ShareOffsets:
        return self._talk(lambda talk: ShareReading(talk).read(groups), deadline)

    @refuses_malformed
    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        return self._talk(lambda talk: SpanReading(talk).read(partitions), deadline)

    @refuses_malformed
    def stable_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        return self._talk(lambda talk: SpanReading(talk, isolation=READ_COMMITTED).read(partitions), deadline)

    @refuses_malformed
    def unstable_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        return self._talk(lambda talk: SpanReading(talk, LAST_STABLE).read(partitions), deadline)

    @refuses_malformed
    def open_transactions(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[str, Mapping[int, Sequence[port.OpenTransaction]]]:
        return self._talk(lambda talk: ProducerReading(talk).read(partitions), deadline)

    @refuses_malformed
    def transactional_ids(self, producers: Collection[int], *, deadline: float) -> Mapping[int, str] | None:
        return self._talk(lambda talk: TransactionReading(talk, producers).read(), deadline)

    @refuses_malformed
    def coordinated_transactions(self, producers: Collection[int], *, deadline: float) -> port.CoordinatedTransactions:
        return self._talk(lambda talk: CoordinatorReading(talk, producers).read(), deadline)

    @refuses_malformed
    def describe_groups(self, groups: Collection[str], *, deadline: float) -> Mapping[str, port.GroupDescription]:
        return self._talk(lambda talk: GroupReading(talk).read_named(groups), deadline)

    @refuses_malformed
    def group_permissions(self, groups: Collection[str], *, deadline: float) -> Mapping[str, frozenset[str] | None]:
        return self._talk(lambda talk: GroupReading(talk).read_rights(groups), deadline)

    @refuses_malformed
    def offsets_at(self, partitions: Mapping[str, Collection[int]], at_ms: int, *, deadline: float) -> LogSpans:
        return self._talk(lambda talk: SpanReading(talk, at_ms).read(partitions), deadline)

    def close(self) -> None:
        """Ends the wire; a later call raises Unreachable."""
        with self._guard():
            self._closed = True
            wire, self._wire = self._wire, None
        if wire is not None and wire.pid == os.getpid():
            wire.close()

    # ---- the wire's life

    def _talk(self, read: Callable[[FanOut], R], deadline: float) -> R:
        def question(wire: ClusterWire) -> R:
            with wire.conversation(deadline=deadline) as conversation:
                return read(FanOut(conversation))

        return self._with_wire(question)

    def _with_wire(self, question: Callable[[ClusterWire], R]) -> R:
        while True:
            wire = self._current_wire()
            try:
                return question(wire)
            except WireClosed:
                continue  # somebody else's call gave this wire up between our look and our call
            except AuthenticationFailed:
                wire.retire()  # the library remembers refusals; credentials may be granted meanwhile
                raise

    def _current_wire(self) -> ClusterWire:
        with self._guard():
            if self._closed:
                raise port.KafkaUnreachable(KafkaErrorCode.CONNECTION_RENEWED)
            if self._wire is None or not self._wire.usable:
                if self._wire is not None and self._wire.pid != os.getpid():
                    _INHERITED.append(self._wire)
                self._wire = ClusterWire(self._connection)
            return self._wire

    def _guard(self) -> threading.Lock:
        if self._lock_pid != os.getpid():  # a lock may have been held by another thread while we were forked
            self._lock, self._lock_pid = threading.Lock(), os.getpid()
        return self._lock

    def _ask_named_controller(
        self, ask: BrokerRequest[ReassignmentsAnswer], left: Callable[[], float]
    ) -> BrokerAnswer[ReassignmentsAnswer]:
        """ZooKeeper mode: brokers do not forward, but Metadata names the controller truly."""
        controller = self.describe_cluster(deadline=left()).controller_id
        if controller is None:
            raise port.QuorumUnavailable(KafkaErrorCode.NO_CONTROLLER)
        [result] = self._with_wire(lambda wire: wire.ask_each([(controller, ask)], deadline=left()))
        if isinstance(result, KafkaFailure):
            raise result
        return result


# Wires of the parent process. Closing or collecting them here would shut the parent's sockets or warn about them.
_INHERITED: list[ClusterWire] = []


def start_countdown(deadline: float) -> Callable[[], float]:
    until = time.monotonic() + deadline
    return lambda: max(0.0, until - time.monotonic())


def _find_oldest(results: Iterable[BrokerAnswer[A] | KafkaFailure]) -> float:
    """The age of a joint answer is that of its oldest part."""
    return min((result.taken_at for result in results if isinstance(result, BrokerAnswer)), default=clock.seconds())
