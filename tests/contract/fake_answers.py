"""What a fake broker answers: Kafka's requests to kio's response entities, with Kafka's error codes.

The sources are Kafka's request handlers (kafka.server.KafkaApis, org.apache.kafka.server.* and the raft client).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode
from kio.schema.index import api_key_map, schema_name_map

from tests.contract.fake_changes import (
    ALTER_CONFIGS,
    ALTER_REASSIGNMENTS,
    CHANGES,
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    ELECT_LEADERS,
    UNREGISTER_BROKER,
)
from tests.contract.fake_configs import DEFAULT_SOURCE, LEGAL_NAME, SENSITIVE, STATIC_SOURCE, TOPIC_TYPE, picked
from tests.contract.fake_entities import Entities
from tests.contract.fake_groups import GROUP_ANSWERS
from tests.contract.fake_model import ClusterModel, FakeBroker, FakePartition, FakeTopic, Mode, QuorumState
from tests.contract.fake_offsets import describe_producers, describe_transactions, list_offsets, list_transactions
from tests.contract.fake_quorum import describe_quorum

LIST_OFFSETS, METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 2, 3, 17, 18, 36
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 32, 35
LIST_REASSIGNMENTS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 46, 55, 60, 75
FORWARDED = (
    LIST_REASSIGNMENTS,
    DESCRIBE_QUORUM,
    CREATE_TOPICS,
    DELETE_TOPICS,
    CREATE_PARTITIONS,
    ALTER_REASSIGNMENTS,
    ALTER_CONFIGS,
    ELECT_LEADERS,
    UNREGISTER_BROKER,
)
ASKED_OF_CONTROLLERS = (
    API_VERSIONS,
    SASL_HANDSHAKE,
    SASL_AUTHENTICATE,
    ALTER_CONFIGS,
    DESCRIBE_QUORUM,
    DESCRIBE_CLUSTER,
)

_BROKER_ENDPOINT, _CONTROLLER_ENDPOINT = 1, 2


class Drop(Exception):
    """The broker closes the connection instead of answering."""


def offered_versions(
    model: ClusterModel, overrides: Mapping[int, tuple[int, int] | None]
) -> dict[int, tuple[int, int]]:
    """Every version kio has, as ``{key: (lowest, highest)}``; an override of None takes a key away."""
    keys = [LIST_OFFSETS, METADATA, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE]
    keys += [DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS, LIST_REASSIGNMENTS, DESCRIBE_CLUSTER]
    keys += [DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS]
    keys += [*CHANGES, *GROUP_ANSWERS]
    if model.mode is Mode.KRAFT:
        keys += [DESCRIBE_QUORUM, DESCRIBE_TOPIC_PARTITIONS]
    offered: dict[int, tuple[int, int]] = {}
    for key in keys:
        versions = schema_name_map[api_key_map[key]]
        choice = overrides.get(key, (min(versions), max(versions)))
        if choice is not None:
            offered[key] = choice
    return offered


def answer(
    model: ClusterModel, broker: FakeBroker, api_key: int, version: int, request: Any, denied: frozenset[int]
) -> Any:
    """The response entity to a request that reached ``broker``. ``denied`` are API keys without permission."""
    entities = Entities(api_key, version)
    return _ANSWERS[api_key](model, broker, entities, request, api_key in denied)


def api_versions_answer(model: ClusterModel, version: int, offered: Mapping[int, tuple[int, int]]) -> Any:
    """Up to v3 features whose lowest level is 0 are left out (KAFKA-17011)."""
    entities = Entities(API_VERSIONS, version)
    supported: list[Any] = []
    finalized: list[Any] = []
    if version >= 3 and model.mode is Mode.KRAFT:
        for name, (low, high, level) in model.features.items():
            if version >= 4 or low > 0:
                supported.append(entities.new("SupportedFeatureKey", name=name, min_version=low, max_version=high))
            if level is not None:
                key = entities.new("FinalizedFeatureKey", name=name, max_version_level=level, min_version_level=level)
                finalized.append(key)
    return entities.new(
        "ApiVersionsResponse",
        error_code=ErrorCode.none,
        **_ranges(entities, offered),
        supported_features=tuple(supported),
        finalized_features=tuple(finalized),
        finalized_features_epoch=model.controller_epoch if finalized else -1,
        zk_migration_ready=False,
    )


def unsupported_api_version_answer(offered: Mapping[int, tuple[int, int]]) -> Any:
    """KIP-511: always in version 0, with the ranges, so that the client can try again."""
    entities = Entities(API_VERSIONS, 0)
    return entities.new("ApiVersionsResponse", error_code=ErrorCode.unsupported_version, **_ranges(entities, offered))


def _ranges(entities: Entities, offered: Mapping[int, tuple[int, int]]) -> dict[str, object]:
    keys = [
        entities.new("ApiVersion", api_key=key, min_version=low, max_version=high)
        for key, (low, high) in sorted(offered.items())
    ]
    return {"api_keys": tuple(keys), "throttle_time": timedelta(0)}


def _metadata(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    del broker
    if request.topics is None:
        asked: Sequence[tuple[str, FakeTopic | None]] = [] if denied else list(model.topics.items())
    else:
        asked = [(topic.name, model.topics.get(topic.name)) for topic in request.topics]
    live = model.live_brokers()
    return entities.new(
        "MetadataResponse",
        throttle_time=timedelta(0),
        brokers=tuple(
            entities.new("MetadataResponseBroker", node_id=b.id, host="127.0.0.1", port=b.port, rack=b.rack)
            for b in live
        ),
        cluster_id=model.cluster_id,
        controller_id=_named_controller(model, live),
        topics=tuple(_metadata_topic(model, entities, name, topic, denied) for name, topic in asked),
        error_code=ErrorCode.none,
    )


def _named_controller(model: ClusterModel, live: Sequence[FakeBroker]) -> int:
    """KRaft brokers name any live broker (kafka.server.metadata.KRaftMetadataCache); ZooKeeper mode names the one."""
    if model.mode is Mode.ZOOKEEPER:
        return model.controller
    return random.choice(live).id if live else -1


def _metadata_topic(model: ClusterModel, entities: Entities, name: str, topic: FakeTopic | None, denied: bool) -> Any:
    if denied or topic is None:
        missing = (
            ErrorCode.unknown_topic_or_partition if LEGAL_NAME.fullmatch(name) else ErrorCode.invalid_topic_exception
        )
        code = ErrorCode.topic_authorization_failed if denied else missing
        return entities.new(
            "MetadataResponseTopic", error_code=code, name=name, topic_id=None, is_internal=False, partitions=()
        )
    return entities.new(
        "MetadataResponseTopic",
        error_code=ErrorCode.none,
        name=name,
        topic_id=topic.id,
        is_internal=topic.internal,
        partitions=tuple(_metadata_partition(model, entities, partition) for partition in topic.partitions),
    )


def _metadata_partition(model: ClusterModel, entities: Entities, partition: FakePartition) -> Any:
    rumours = model.rumours.get((partition.topic, partition.index))
    return entities.new(
        "MetadataResponsePartition",
        error_code=ErrorCode.none if partition.leader >= 0 else ErrorCode.leader_not_available,
        partition_index=partition.index,
        leader_id=rumours.pop(0) if rumours else partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=tuple(partition.order),
        isr_nodes=tuple(partition.isr),
        offline_replicas=tuple(b for b in partition.order if b not in model.brokers or model.brokers[b].fenced),
    )


def _describe_topic_partitions(
    model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool
) -> Any:
    """kafka.server.handlers.DescribeTopicPartitionsRequestHandler: sorted, from the cursor on, up to a limit."""
    del broker
    names = sorted(topic.name for topic in request.topics)
    first = (request.cursor.topic_name, request.cursor.partition_index) if request.cursor else ("", 0)
    limit = min(request.response_partition_limit, model.partitions_per_page)
    pages: dict[str, list[Any]] = {}
    cursor = None
    for name in names:
        for p in model.topics[name].partitions if name in model.topics and not denied else ():
            if (name, p.index) < first:
                continue
            if sum(map(len, pages.values())) == limit:
                cursor = entities.new("Cursor", topic_name=name, partition_index=p.index)
                break
            pages.setdefault(name, []).append(_described_partition(model, entities, p))
        if cursor:
            break
    code = ErrorCode.topic_authorization_failed if denied else ErrorCode.unknown_topic_or_partition
    missing = [name for name in names if denied or name not in model.topics]
    return entities.new(
        "DescribeTopicPartitionsResponse",
        throttle_time=timedelta(0),
        topics=tuple(
            entities.new(
                "DescribeTopicPartitionsResponseTopic",
                error_code=ErrorCode.none if name in pages else code,
                name=name,
                topic_id=model.topics[name].id if name in pages else None,
                is_internal=False,
                partitions=tuple(pages.get(name, ())),
                topic_authorized_operations=-(1 << 31),
            )
            for name in (*pages, *missing)
        ),
        next_cursor=cursor,
    )


def _described_partition(model: ClusterModel, entities: Entities, partition: FakePartition) -> Any:
    eligible, last_known = model.eligible.get((partition.topic, partition.index), ((), ()))
    return entities.new(
        "DescribeTopicPartitionsResponsePartition",
        error_code=ErrorCode.none if partition.leader >= 0 else ErrorCode.leader_not_available,
        partition_index=partition.index,
        leader_id=partition.leader,
        leader_epoch=partition.leader_epoch,
        replica_nodes=tuple(partition.order),
        isr_nodes=tuple(partition.isr),
        eligible_leader_replicas=tuple(eligible),
        last_known_elr=tuple(last_known),
        offline_replicas=(),
    )


def _describe_cluster(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    del denied
    live = model.live_brokers()
    with_fenced = getattr(request, "include_fenced_brokers", False)
    asked_there = broker.id in model.controllers and broker.id not in model.brokers
    endpoint = _CONTROLLER_ENDPOINT if asked_there else _BROKER_ENDPOINT
    wrong_endpoint = getattr(request, "endpoint_type", _BROKER_ENDPOINT) != endpoint
    return entities.new(
        "DescribeClusterResponse",
        throttle_time=timedelta(0),
        error_code=ErrorCode.mismatched_endpoint_type if wrong_endpoint else ErrorCode.none,
        error_message=None,
        cluster_id=model.cluster_of_controllers or model.cluster_id if asked_there else model.cluster_id,
        controller_id=_named_controller(model, live),
        brokers=tuple(
            entities.new(
                "DescribeClusterBroker",
                broker_id=b.id,
                host="127.0.0.1",
                port=b.port,
                rack=b.rack,
                is_fenced=b.fenced,
            )
            for b in (model.brokers.values() if with_fenced else live)
        ),
    )


def _list_reassignments(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    code = ErrorCode.none
    if denied:
        code = ErrorCode.cluster_authorization_failed
    elif model.mode is Mode.ZOOKEEPER and broker.id != model.controller:
        code = ErrorCode.not_controller
    elif model.quorum is QuorumState.LEADERLESS:
        code = ErrorCode.request_timed_out
    wanted = None if request.topics is None else {(t.name, i) for t in request.topics for i in t.partition_indexes}
    rows: dict[str, list[Any]] = {}
    for (topic, index), partition in model.moving.items() if code is ErrorCode.none else ():
        if wanted is None or (topic, index) in wanted:
            row = entities.new(
                "OngoingPartitionReassignment",
                partition_index=index,
                replicas=tuple(partition.order),
                adding_replicas=tuple(partition.adding),
                removing_replicas=tuple(partition.removing),
            )
            rows.setdefault(topic, []).append(row)
    return entities.new(
        "ListPartitionReassignmentsResponse",
        throttle_time=timedelta(0),
        error_code=code,
        error_message=None,
        topics=tuple(
            entities.new("OngoingTopicReassignment", name=name, partitions=tuple(partitions))
            for name, partitions in rows.items()
        ),
    )


def _describe_log_dirs(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    del model
    wanted = None if request.topics is None else {(t.topic, i) for t in request.topics for i in t.partitions}
    found: dict[int, dict[str, list[Any]]] = {n: {} for n in range(len(broker.directories))}
    for (topic, index), partition in broker.hosted.items() if wanted is None else _picked(broker, wanted):
        replica = partition.replicas[broker.id]
        if replica.directory in broker.offline_directories:
            continue
        # offset_lag is about copies between directories only: it is 0 for a replica that is being added
        row = entities.new(
            "DescribeLogDirsPartition",
            partition_index=index,
            partition_size=replica.size,
            offset_lag=0,
            is_future_key=False,
        )
        found[replica.directory].setdefault(topic, []).append(row)
        if replica.future_bytes is not None:
            copy = entities.new(
                "DescribeLogDirsPartition",
                partition_index=index,
                partition_size=replica.future_bytes,
                offset_lag=max(0, replica.size - replica.future_bytes) // 1000,
                is_future_key=True,
            )
            other = (replica.directory + 1) % len(broker.directories)
            found[other].setdefault(topic, []).append(copy)
    return entities.new(
        "DescribeLogDirsResponse",
        throttle_time=timedelta(0),
        error_code=ErrorCode.cluster_authorization_failed if denied else ErrorCode.none,
        results=() if denied else tuple(_log_dir(broker, entities, n, topics) for n, topics in found.items()),
    )


def _picked(broker: FakeBroker, wanted: set[tuple[str, int]]) -> Sequence[tuple[tuple[str, int], FakePartition]]:
    return [(key, broker.hosted[key]) for key in wanted if key in broker.hosted]


def _log_dir(broker: FakeBroker, entities: Entities, number: int, topics: Mapping[str, Sequence[Any]]) -> Any:
    offline = number in broker.offline_directories
    return entities.new(
        "DescribeLogDirsResult",
        error_code=ErrorCode.kafka_storage_error if offline else ErrorCode.none,
        log_dir=broker.directories[number],
        topics=tuple(
            entities.new("DescribeLogDirsTopic", name=name, partitions=tuple(rows)) for name, rows in topics.items()
        ),
        total_bytes=-1 if offline else 1 << 40,
        usable_bytes=-1 if offline else 1 << 39,
        is_cordoned=number in broker.cordoned_directories,
    )


def _describe_configs(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    return entities.new(
        "DescribeConfigsResponse",
        throttle_time=timedelta(0),
        results=tuple(_configs_of(model, broker, entities, resource, denied) for resource in request.resources),
    )


def _configs_of(model: ClusterModel, broker: FakeBroker, entities: Entities, resource: Any, denied: bool) -> Any:
    """kafka.server.ConfigHelper: a broker answers for itself and for the default of all."""
    name, kind = resource.resource_name, resource.resource_type
    code, message = ErrorCode.none, None
    entries: Mapping[str, tuple[str | None, int]] = {}
    if denied:
        topic = kind == TOPIC_TYPE
        code = ErrorCode.topic_authorization_failed if topic else ErrorCode.cluster_authorization_failed
    elif kind == TOPIC_TYPE and name in model.topics:
        entries = model.configs.of_topic(name)
    elif kind == TOPIC_TYPE:
        legal = LEGAL_NAME.fullmatch(name)
        code = ErrorCode.unknown_topic_or_partition if legal else ErrorCode.invalid_topic_exception
    elif name == "":
        entries = model.configs.of_all_brokers()
    elif name == str(broker.id):
        entries = model.configs.of_broker(broker.id, broker.rack)
    else:
        code = ErrorCode.invalid_request
        message = f"Unexpected broker id, expected {broker.id} or empty string, but received {name}"
    return entities.new(
        "DescribeConfigsResult",
        error_code=code,
        error_message=message,
        resource_type=kind,
        resource_name=name,
        configs=tuple(
            entities.new(
                "DescribeConfigsResourceResult",
                name=key,
                value=value,
                read_only=source == STATIC_SOURCE,
                config_source=source,
                is_default=source == DEFAULT_SOURCE,
                is_sensitive=key == SENSITIVE,
                synonyms=(),
                config_type=0,
                documentation=None,
            )
            for key, value, source in picked(entries, resource.configuration_keys)
        ),
    )


_ANSWERS: Mapping[int, Callable[[ClusterModel, FakeBroker, Entities, Any, bool], Any]] = {
    LIST_OFFSETS: list_offsets,
    DESCRIBE_PRODUCERS: describe_producers,
    DESCRIBE_TRANSACTIONS: describe_transactions,
    LIST_TRANSACTIONS: list_transactions,
    METADATA: _metadata,
    DESCRIBE_CONFIGS: _describe_configs,
    DESCRIBE_LOG_DIRS: _describe_log_dirs,
    LIST_REASSIGNMENTS: _list_reassignments,
    DESCRIBE_QUORUM: describe_quorum,
    DESCRIBE_CLUSTER: _describe_cluster,
    DESCRIBE_TOPIC_PARTITIONS: _describe_topic_partitions,
    **CHANGES,
    **GROUP_ANSWERS,
}
