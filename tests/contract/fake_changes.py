"""How a fake broker carries out what changes a cluster, with the codes and words of Kafka 4.3.

The sources are org.apache.kafka.controller.ReplicationControlManager and ConfigurationControlManager,
kafka.server.ConfigAdminManager and kafka.server.ReplicaManager.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from typing import Any

from kio.schema.errors import ErrorCode

from tests.contract.fake_configs import LEGAL_NAME, TOPIC_DEFAULTS, TOPIC_TYPE
from tests.contract.fake_entities import Entities
from tests.contract.fake_model import ClusterModel, FakeBroker, FakePartition, Mode, QuorumState

CREATE_TOPICS, DELETE_TOPICS, ALTER_LOG_DIRS, CREATE_PARTITIONS = 19, 20, 34, 37
ELECT_LEADERS, ALTER_CONFIGS, ALTER_REASSIGNMENTS, UNREGISTER_BROKER = 43, 44, 45, 64


_SET, _DELETE, _APPEND, _SUBTRACT = range(4)
_LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_PAIRS = re.compile(r"(\*|(\d+:\d+)(,\d+:\d+)*)?")
_RATES = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
Refused = tuple[ErrorCode, str | None]
_FINE: Refused = (ErrorCode.none, None)


def _unavailable(model: ClusterModel, broker: FakeBroker, denied: bool) -> Refused | None:
    """What a controller's answer says as a whole."""
    if denied:
        return ErrorCode.cluster_authorization_failed, None
    if model.mode is Mode.ZOOKEEPER and broker.id != model.controller:
        return ErrorCode.not_controller, None
    if model.quorum is QuorumState.LEADERLESS:
        return ErrorCode.request_timed_out, None
    return None


# ---- reassignments


def alter_reassignments(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    whole = _unavailable(model, broker, denied)
    keep_factor = not getattr(request, "allow_replication_factor_change", True)
    topics = []
    for topic in request.topics if whole is None else ():
        rows = []
        for asked in topic.partitions:
            key = f"{topic.name}-{asked.partition_index}"
            code, message = model.refusals.get(key) or _alter(model, topic.name, asked, keep_factor)
            rows.append(
                entities.new(
                    "ReassignablePartitionResponse",
                    partition_index=asked.partition_index,
                    error_code=code,
                    error_message=message,
                )
            )
        topics.append(entities.new("ReassignableTopicResponse", name=topic.name, partitions=tuple(rows)))
    code, message = whole or _FINE
    return entities.new(
        "AlterPartitionReassignmentsResponse",
        throttle_time=timedelta(0),
        allow_replication_factor_change=not keep_factor,
        error_code=code,
        error_message=message,
        responses=tuple(topics),
    )


def _alter(model: ClusterModel, name: str, asked: Any, keep_factor: bool) -> Refused:
    index = asked.partition_index
    if name not in model.topics:
        return ErrorCode.unknown_topic_or_partition, f"Unable to find a topic named {name}."
    if not 0 <= index < len(model.topics[name].partitions):
        return ErrorCode.unknown_topic_or_partition, f"Unable to find partition {name}:{index}."
    partition = model.partition(name, index)
    if asked.replicas is None:
        if (name, index) not in model.moving:
            return ErrorCode.no_reassignment_in_progress, None
        model.cancel(name, index)
        return _FINE
    target = list(asked.replicas)
    wrong = _wrong_assignment(model, target)
    if wrong:
        return ErrorCode.invalid_replica_assignment, f"The manual partition assignment includes {wrong}."
    factor = len(set(partition.order) - set(partition.removing))
    if keep_factor and factor != len(target):
        words = f"The replication factor is changed from {factor} to {len(target)}"
        return ErrorCode.invalid_replication_factor, words
    model.reassign(name, index, target)
    return _FINE


def _wrong_assignment(model: ClusterModel, target: Sequence[int]) -> str:
    if not target:
        return "an empty replica list"
    for node, times in Counter(target).items():
        if times > 1:
            return f"the broker {node} more than once"
        if node not in model.brokers:
            return f"broker {node}, but no such broker is registered"
    return ""


# ---- topics


def create_topics(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    whole = _unavailable(model, broker, denied)
    rows = []
    for topic in request.topics:
        code, message = whole or _create(model, topic, validate_only=request.validate_only)
        if denied:
            code, message = ErrorCode.topic_authorization_failed, "Authorization failed."
        told = {"name": topic.name, "error_code": code, "error_message": message, "topic_id": None, "configs": ()}
        rows.append(entities.new("CreatableTopicResult", **told))
    return entities.new("CreateTopicsResponse", throttle_time=timedelta(0), topics=tuple(rows))


def _create(model: ClusterModel, topic: Any, *, validate_only: bool) -> Refused:
    if topic.name in model.topics:
        return ErrorCode.topic_already_exists, f"Topic '{topic.name}' already exists."
    placement = [list(row.broker_ids) for row in sorted(topic.assignments, key=lambda row: row.partition_index)]
    if wrong := next(filter(None, (_wrong_assignment(model, row) for row in placement)), ""):
        return ErrorCode.invalid_replica_assignment, f"The manual partition assignment includes {wrong}."
    for config in topic.configs:
        if config.name not in TOPIC_DEFAULTS:
            return ErrorCode.invalid_config, f"Unknown topic config name: {config.name}"
    if not validate_only:
        model.add_topic(topic.name, placement)
        for config in topic.configs:
            model.set_config(topic.name, config.name, config.value)
    return _FINE


def create_partitions(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    whole = _unavailable(model, broker, denied)
    rows = []
    for topic in request.topics:
        code, message = whole or _grow(model, topic, validate_only=request.validate_only)
        if denied:
            code, message = ErrorCode.topic_authorization_failed, "Authorization failed."
        rows.append(
            entities.new("CreatePartitionsTopicResult", name=topic.name, error_code=code, error_message=message)
        )
    return entities.new("CreatePartitionsResponse", throttle_time=timedelta(0), results=tuple(rows))


def _grow(model: ClusterModel, topic: Any, *, validate_only: bool) -> Refused:
    if topic.name not in model.topics:
        return ErrorCode.unknown_topic_or_partition, "This server does not host this topic-partition."
    there = len(model.topics[topic.name].partitions)
    if topic.count <= there:
        return ErrorCode.invalid_partitions, f"The topic {topic.name} currently has {there} partition(s)."
    placement = [list(row.broker_ids) for row in topic.assignments]
    if wrong := next(filter(None, (_wrong_assignment(model, row) for row in placement)), ""):
        return ErrorCode.invalid_replica_assignment, f"The manual partition assignment includes {wrong}."
    if not validate_only:
        model.grow_topic(topic.name, placement)
    return _FINE


def delete_topics(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    whole = _unavailable(model, broker, denied)
    rows = []
    for asked in request.topics:
        code, message = whole or _delete(model, asked.topic_id)
        if denied:
            code, message = ErrorCode.topic_authorization_failed, "Authorization failed."
        told = {"name": None, "topic_id": asked.topic_id, "error_code": code, "error_message": message}
        rows.append(entities.new("DeletableTopicResult", **told))
    return entities.new("DeleteTopicsResponse", throttle_time=timedelta(0), responses=tuple(rows))


def _delete(model: ClusterModel, topic_id: Any) -> Refused:
    name = next((name for name, topic in model.topics.items() if topic.id == topic_id), None)
    if name is None:
        return ErrorCode.unknown_topic_id, "This server does not host this topic ID."
    model.delete_topic(name)
    return _FINE


# ---- elections


def elect_leaders(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    whole = _unavailable(model, broker, denied)
    everywhere = whole if whole and whole[0] is ErrorCode.not_controller else None
    topics = []
    for topic in request.topic_partitions if whole is None or everywhere else ():
        rows = []
        for index in topic.partitions:
            unclean = getattr(request, "election_type", 0) == 1
            code, message = everywhere or _elect(model, topic.topic, index, unclean=unclean)
            rows.append(entities.new("PartitionResult", partition_id=index, error_code=code, error_message=message))
        topics.append(entities.new("ReplicaElectionResult", topic=topic.topic, partition_result=tuple(rows)))
    return entities.new(
        "ElectLeadersResponse",
        throttle_time=timedelta(0),
        error_code=ErrorCode.none if whole is None or everywhere else whole[0],
        replica_election_results=tuple(topics),
    )


def _elect(model: ClusterModel, name: str, index: int, *, unclean: bool) -> Refused:
    """org.apache.kafka.controller.ReplicationControlManager.electLeader."""
    if name not in model.topics:
        return ErrorCode.unknown_topic_or_partition, f"No such topic as {name}"
    if not 0 <= index < len(model.topics[name].partitions):
        return ErrorCode.unknown_topic_or_partition, f"No such partition as {name}-{index}"
    partition = model.partition(name, index)
    if unclean and partition.leader < 0:
        live = [b for b in partition.order if not model.brokers[b].fenced]
        if not live:
            return ErrorCode.eligible_leaders_not_available, None
        partition.isr = [live[0]]
        model.change_leader(name, index, live[0])
        return _FINE
    preferred = partition.order[0]
    if unclean or partition.leader == preferred:
        return ErrorCode.election_not_needed, None
    if preferred not in partition.isr or model.brokers[preferred].fenced:
        return ErrorCode.preferred_leader_not_available, None
    model.change_leader(name, index, preferred)
    return _FINE


# ---- configs


def alter_configs(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    rows = []
    for resource in request.resources:
        code, message = _alter_resource(model, broker, resource, denied, validate_only=request.validate_only)
        rows.append(
            entities.new(
                "AlterConfigsResourceResponse",
                error_code=code,
                error_message=message,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return entities.new("IncrementalAlterConfigsResponse", throttle_time=timedelta(0), responses=tuple(rows))


def _alter_resource(
    model: ClusterModel, broker: FakeBroker, resource: Any, denied: bool, *, validate_only: bool
) -> Refused:
    """The changes of one resource are done all or none."""
    name, is_topic = resource.resource_name, resource.resource_type == TOPIC_TYPE
    wrong = _wrong_resource(model, broker, name, is_topic, denied)
    if wrong is not None:
        return wrong
    if len({config.name for config in resource.configs}) < len(resource.configs):
        return ErrorCode.invalid_request, "Error due to duplicate config keys"
    owner: str | int | None = name if is_topic else int(name) if name else None
    after: dict[str, str | None] = {}
    for config in resource.configs:
        value = _value_after(_present(model, owner, config.name), config)
        unchecked = broker.id not in model.brokers and not is_topic  # a controller leaves it to the broker
        words = "" if unchecked else _wrong_value(config.name, value)
        if words:
            return (ErrorCode.invalid_config if is_topic else ErrorCode.invalid_request), words
        after[config.name] = value
    for key, value in after.items() if not validate_only else ():
        model.set_config(owner, key, value)
    return _FINE


def _wrong_resource(model: ClusterModel, broker: FakeBroker, name: str, is_topic: bool, denied: bool) -> Refused | None:
    if denied:
        return (ErrorCode.topic_authorization_failed if is_topic else ErrorCode.cluster_authorization_failed), None
    if broker.id not in model.brokers and broker.id != model.controller:
        return ErrorCode.not_controller, None
    if model.quorum is QuorumState.LEADERLESS:
        return ErrorCode.request_timed_out, None
    return _wrong_topic(model, name) if is_topic else _wrong_broker(model, broker, name)


def _wrong_topic(model: ClusterModel, name: str) -> Refused | None:
    if not LEGAL_NAME.fullmatch(name):
        return ErrorCode.invalid_topic_exception, f"Topic name is invalid: '{name}'"
    if name not in model.topics:
        return ErrorCode.unknown_topic_or_partition, f"The topic '{name}' does not exist."
    return None


def _wrong_broker(model: ClusterModel, broker: FakeBroker, name: str) -> Refused | None:
    if broker.id in model.brokers:
        if name not in ("", str(broker.id)):
            return ErrorCode.invalid_request, f"Unexpected broker id, expected {broker.id}, but received {name}"
    elif name and int(name) not in model.brokers:
        return ErrorCode.broker_id_not_registered, f"No node with id {name} found."
    return None


def _present(model: ClusterModel, owner: str | int | None, key: str) -> str:
    configs = model.configs
    if isinstance(owner, str):
        return configs.topics.get(owner, {}).get(key, TOPIC_DEFAULTS.get(key, ""))
    return (configs.default if owner is None else configs.brokers.get(owner, {})).get(key, "")


def _value_after(present: str, config: Any) -> str | None:
    operation = int(config.config_operation)
    if operation == _DELETE:
        return None
    if operation == _SET:
        return str(config.value)
    items = [item for item in present.split(",") if item]
    given = [item for item in config.value.split(",") if item]
    if operation == _APPEND:
        return ",".join([*items, *(item for item in given if item not in items)])
    return ",".join(item for item in items if item not in given)


def _wrong_value(key: str, value: str | None) -> str:
    if value is None:
        return ""
    if key in _LISTS and not _PAIRS.fullmatch(value):
        shown = ", ".join(value.split(","))
        return f"Invalid value [{shown}] for configuration {key}: {key} must be the literal '*' or a list of replicas"
    if key in _RATES:
        if not re.fullmatch(r"-?\d+", value):
            return f"Invalid value {value} for configuration {key}: Not a number of type LONG"
        if int(value) < 0:
            return f"Invalid value {value} for configuration {key}: Value must be at least 0"
    return ""


# ---- directories


def alter_log_dirs(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    found: dict[str, list[Any]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            for index in topic.partitions:
                code = (
                    ErrorCode.cluster_authorization_failed
                    if denied
                    else _place(model, broker, topic.name, index, directory.path)
                )
                row = entities.new("AlterReplicaLogDirPartitionResult", partition_index=index, error_code=code)
                found.setdefault(topic.name, []).append(row)
    return entities.new(
        "AlterReplicaLogDirsResponse",
        throttle_time=timedelta(0),
        results=tuple(
            entities.new("AlterReplicaLogDirTopicResult", topic_name=name, partitions=tuple(rows))
            for name, rows in found.items()
        ),
    )


def _place(model: ClusterModel, broker: FakeBroker, name: str, index: int, path: str) -> ErrorCode:
    topic = model.topics.get(name)
    if topic is None or not 0 <= index < len(topic.partitions):
        return ErrorCode.unknown_topic_or_partition
    if path not in broker.directories:
        return ErrorCode.log_dir_not_found
    number = broker.directories.index(path)
    if number in broker.offline_directories:
        return ErrorCode.kafka_storage_error
    partition: FakePartition = topic.partitions[index]
    model.prefer_directory(name, index, broker.id, number)
    return ErrorCode.none if broker.id in partition.replicas else ErrorCode.replica_not_available


def unregister_broker(model: ClusterModel, broker: FakeBroker, entities: Entities, request: Any, denied: bool) -> Any:
    """Whatever the state of the broker (org.apache.kafka.controller.ClusterControlManager)."""
    code, message = _unavailable(model, broker, denied) or _unregister(model, int(request.broker_id))
    return entities.new("UnregisterBrokerResponse", throttle_time=timedelta(0), error_code=code, error_message=message)


def _unregister(model: ClusterModel, broker: int) -> Refused:
    if model.brokers.pop(broker, None) is None:
        return ErrorCode.broker_id_not_registered, f"Broker ID {broker} is not currently registered"
    return _FINE


CHANGES: Mapping[int, Callable[[ClusterModel, FakeBroker, Entities, Any, bool], Any]] = {
    CREATE_TOPICS: create_topics,
    DELETE_TOPICS: delete_topics,
    CREATE_PARTITIONS: create_partitions,
    ALTER_LOG_DIRS: alter_log_dirs,
    ELECT_LEADERS: elect_leaders,
    ALTER_CONFIGS: alter_configs,
    ALTER_REASSIGNMENTS: alter_reassignments,
    UNREGISTER_BROKER: unregister_broker,
}
