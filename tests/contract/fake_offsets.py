"""ListOffsets as a fake broker answers it: also of its own copy, whoever leads (kafka.server.ReplicaManager)."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

from kio.schema.errors import ErrorCode

from tests.contract.fake_entities import Entities
from tests.contract.fake_model import ClusterModel, FakeBroker

_NEWEST, _OLDEST, _OLDEST_LOCAL, _LAST_TIERED = -1, -2, -4, -5  # ListOffsets' timestamps
_CONSUMER, _DEBUGGER = -1, -2  # ListOffsets' replica ids


def list_offsets(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    del denied
    asked = Counter((t.name, p.partition_index) for t in request.topics for p in t.partitions)
    topics = []
    for topic in request.topics:
        rows = []
        for question in topic.partitions:
            if asked[topic.name, question.partition_index] > 1:  # kafka.server.KafkaApis: duplicates are refused
                code, offset, epoch = ErrorCode.invalid_request, -1, -1
            else:
                code, offset, epoch = _offset(model, broker, topic.name, question, request.replica_id)
                opened = model.open_transactions.get((topic.name, question.partition_index))
                if opened and question.timestamp == _NEWEST and getattr(request, "isolation_level", 0) == 1:
                    offset = min(offset, *(start for _, start in opened))
            rows.append(
                entities.new(
                    "ListOffsetsPartitionResponse",
                    partition_index=question.partition_index,
                    error_code=code,
                    timestamp=-1,
                    offset=offset,
                    leader_epoch=epoch,
                )
            )
            if records := model.written_after.get((topic.name, question.partition_index)):
                model.append(topic.name, question.partition_index, records)
        topics.append(entities.new("ListOffsetsTopicResponse", name=topic.name, partitions=tuple(rows)))
    return entities.new("ListOffsetsResponse", throttle_time=timedelta(0), topics=tuple(topics))


def _offset(
    model: ClusterModel, broker: FakeBroker, name: str, question: Any, replica_id: int
) -> tuple[ErrorCode, int, int]:
    topic = model.topics.get(name)
    if topic is None or not 0 <= question.partition_index < len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition, -1, -1
    partition = topic.partitions[question.partition_index]
    replica = partition.replicas.get(broker.id)
    if replica is None or (replica_id != _DEBUGGER and partition.leader != broker.id):
        return ErrorCode.not_leader_or_follower, -1, -1
    if replica.directory in broker.offline_directories:
        return ErrorCode.kafka_storage_error, -1, -1
    epoch = getattr(question, "current_leader_epoch", -1)
    if epoch >= 0 and epoch != partition.leader_epoch:
        stale = epoch < partition.leader_epoch
        return (ErrorCode.fenced_leader_epoch if stale else ErrorCode.unknown_leader_epoch), -1, -1
    if question.timestamp == _OLDEST:
        return ErrorCode.none, replica.log_start, partition.leader_epoch
    if question.timestamp == _OLDEST_LOCAL:
        local = replica.log_start if replica.local_start is None else replica.local_start
        return ErrorCode.none, local, partition.leader_epoch
    if question.timestamp == _LAST_TIERED:
        return ErrorCode.none, replica.last_tiered, partition.leader_epoch
    end = partition.high_watermark if replica_id == _CONSUMER else replica.log_end
    if question.timestamp >= 0:  # a record has its offset as its time
        first = max(question.timestamp, replica.log_start)
        return ErrorCode.none, first if first < end else -1, partition.leader_epoch
    if question.timestamp != _NEWEST:
        raise NotImplementedError(f"the fake has no such offset ({question.timestamp})")
    return ErrorCode.none, end, partition.leader_epoch


def describe_producers(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    """Producers with a transaction, and one that has none."""
    code = ErrorCode.topic_authorization_failed if denied else ErrorCode.none
    return entities.new(
        "DescribeProducersResponse",
        throttle_time=timedelta(0),
        topics=tuple(
            entities.new(
                "TopicResponse",
                name=topic.name,
                partitions=tuple(
                    entities.new(
                        "PartitionResponse",
                        partition_index=index,
                        error_code=_producers_error(model, broker, topic.name, index, code),
                        error_message=None,
                        active_producers=tuple(
                            entities.new(
                                "ProducerState",
                                producer_id=producer,
                                producer_epoch=1,
                                last_sequence=0,
                                last_timestamp=1_700_000_000_000 if start >= 0 else -1,
                                coordinator_epoch=0,
                                current_txn_start_offset=start,
                            )
                            for producer, start in [*model.open_transactions.get((topic.name, index), ()), (1, -1)]
                            if code is ErrorCode.none
                        ),
                    )
                    for index in topic.partition_indexes
                ),
            )
            for topic in request.topics
        ),
    )


def list_transactions(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    """Broker 1 coordinates all. Kafka leaves out what the principal may not describe."""
    del denied
    loading = model.groups.loading.get(broker.id)
    return entities.new(
        "ListTransactionsResponse",
        throttle_time=timedelta(0),
        error_code=ErrorCode.coordinator_load_in_progress if loading else ErrorCode.none,
        unknown_state_filters=(),
        transaction_states=tuple(
            entities.new("TransactionState", transactional_id=name, producer_id=producer, transaction_state="Ongoing")
            for producer, name in model.transactional_ids.items()
            if broker.id == 1 and producer in request.producer_id_filters
        ),
    )


def describe_transactions(
    model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool
) -> Any:
    return entities.new(
        "DescribeTransactionsResponse",
        throttle_time=timedelta(0),
        transaction_states=tuple(
            _describe_transaction(model, broker, entities, name, denied) for name in request.transactional_ids
        ),
    )


def _describe_transaction(model: ClusterModel, broker: FakeBroker, entities: Entities, name: str, denied: bool) -> Any:
    """Only broker 1 coordinates. Denied are all but those that are listed, as by an ACL for their names."""
    producer = next((each for each, own in model.transactional_ids.items() if own == name), None)
    code = ErrorCode.none
    if producer is None:
        code = ErrorCode.transactional_id_authorization_failed if denied else ErrorCode.transactional_id_not_found
        code = code if denied or broker.id == 1 else ErrorCode.not_coordinator
    own = sorted(
        place
        for place, opened in model.open_transactions.items()
        if place not in model.forgotten and producer in {each for each, _ in opened}
    )
    return entities.new(
        "TransactionState",
        error_code=code,
        transactional_id=name,
        transaction_state="Ongoing" if producer is not None else "",
        transaction_timeout=timedelta(minutes=1),
        transaction_start_time=datetime.fromtimestamp(0, UTC),
        producer_id=-1 if producer is None else producer,
        producer_epoch=0,
        topics=tuple(
            entities.new("TopicData", topic=topic, partitions=tuple(n for each, n in own if each == topic))
            for topic in sorted({each for each, _ in own})
        ),
    )


def _producers_error(model: ClusterModel, broker: FakeBroker, name: str, index: int, code: ErrorCode) -> ErrorCode:
    leads = model.topics[name].partitions[index].leader == broker.id
    return code if leads else ErrorCode.not_leader_or_follower
