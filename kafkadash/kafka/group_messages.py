"""The requests about consumer groups, and the fields that we read from their answers. See ``messages``."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Protocol

from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import (
    ConsumerGroupDescribeRequest,
    DescribeGroupsRequest,
    FindCoordinatorRequest,
    ListGroupsRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
)
from kafkadash.kafka.messages import LIST_OFFSETS, ApiRanges, Request, Response, require
from kafkadash.kafka.port import NotSupported

OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS, LIST_GROUPS, DESCRIBE_CONSUMER_GROUPS = 9, 10, 15, 16, 69
# org.apache.kafka.common.requests.ListOffsetsRequest.CONSUMER_REPLICA_ID: the leader answers what consumers can read.
ASK_AS_CONSUMER = -1
READ_UNCOMMITTED = 0


class OneAtATime(NotSupported):
    """This broker takes one group in each such request; nothing was sent."""


class ListedGroup(Protocol):
    group_id: str
    protocol_type: str
    group_state: str  # from v4 (Kafka 2.6) on
    group_type: str  # from v5 (Kafka 3.8) on


class ListGroupsAnswer(Response, Protocol):
    error_code: int
    groups: Sequence[ListedGroup]


class DescribedMember(Protocol):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_assignment: bytes


class DescribedGroup(Protocol):
    error_code: int
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: Sequence[DescribedMember]


class DescribeGroupsAnswer(Response, Protocol):
    groups: Sequence[DescribedGroup]


class AssignedTopic(Protocol):
    topic_name: str
    partitions: Sequence[int]


class Assignment(Protocol):
    topic_partitions: Sequence[AssignedTopic]


class ConsumerMember(Protocol):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: Assignment


class ConsumerGroup(Protocol):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    assignor_name: str
    members: Sequence[ConsumerMember]


class ConsumerGroupsAnswer(Response, Protocol):
    groups: Sequence[ConsumerGroup]


class Coordinator(Protocol):
    key: str
    node_id: int
    error_code: int


class CoordinatorsAnswer(Response, Protocol):
    """``coordinators`` from v4 on, the others before."""

    coordinators: Sequence[Coordinator]
    error_code: int
    node_id: int


class FetchedPartition(Protocol):
    partition_index: int
    committed_offset: int
    error_code: int


class FetchedTopic(Protocol):
    name: str
    partitions: Sequence[FetchedPartition]


class FetchedGroup(Protocol):
    group_id: str
    error_code: int
    topics: Sequence[FetchedTopic]


class OffsetFetchAnswer(Response, Protocol):
    """``groups`` from v8 on, the others before."""

    groups: Sequence[FetchedGroup]
    error_code: int
    topics: Sequence[FetchedTopic]


def list_groups_request(offered: ApiRanges) -> Request:
    """All states and types: filters of one version are unknown to the one before."""
    require(offered, LIST_GROUPS, "ListGroups")
    return ListGroupsRequest(states_filter=[], types_filter=[])


def describe_groups_request(offered: ApiRanges, groups: Collection[str]) -> Request:
    require(offered, DESCRIBE_GROUPS, "DescribeGroups")
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=False)


def describe_consumer_groups_request(offered: ApiRanges, groups: Collection[str]) -> Request:
    """Raises NotSupported before Kafka 3.7, where no group is of that type."""
    require(offered, DESCRIBE_CONSUMER_GROUPS, "ConsumerGroupDescribe (Kafka 3.7)")
    return ConsumerGroupDescribeRequest(group_ids=list(groups), include_authorized_operations=False)


def coordinators_request(offered: ApiRanges, groups: Sequence[str]) -> Request:
    """Raises OneAtATime for several before Kafka 3.0 (KIP-699)."""
    require(offered, FIND_COORDINATOR, "FindCoordinator")
    if offered[FIND_COORDINATOR][1] >= 4:
        return FindCoordinatorRequest(key_type=0, coordinator_keys=list(groups))
    if len(groups) > 1:
        raise OneAtATime(KafkaErrorCode.NOT_OFFERED, what="FindCoordinator of several groups (Kafka 3.0)")
    return FindCoordinatorRequest(key=groups[0], key_type=0, max_version=3)


def committed_request(offered: ApiRanges, groups: Sequence[str]) -> Request:
    """Everything that these groups have committed. v9 at most: v10 answers with topic ids instead of names.

    ``require_stable`` stays off: an offset that a transaction is about to replace is the one that is committed now.
    Raises OneAtATime for several before Kafka 3.0 (KIP-709).
    """
    require(offered, OFFSET_FETCH, "OffsetFetch of all topics (Kafka 0.10.2)", at_least=2)
    if offered[OFFSET_FETCH][1] >= 8:
        group = OffsetFetchRequest.OffsetFetchRequestGroup
        return OffsetFetchRequest(
            groups=[group(group_id=name, member_id=None, member_epoch=-1, topics=None) for name in groups],
            require_stable=False,
            max_version=9,
        )
    if len(groups) > 1:
        raise OneAtATime(KafkaErrorCode.NOT_OFFERED, what="OffsetFetch of several groups (Kafka 3.0)")
    return OffsetFetchRequest(group_id=groups[0], topics=None, require_stable=False, max_version=7)


def span_request(
    offered: ApiRanges, partitions: Mapping[str, Collection[int]], timestamp: int, timeout_ms: int
) -> Request:
    """What consumers can read: a leader answers, with its high watermark (−1) or its log start (−2)."""
    require(offered, LIST_OFFSETS, "ListOffsets with a single offset", at_least=1)
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=ASK_AS_CONSUMER,
        isolation_level=READ_UNCOMMITTED,
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
