"""Requests that kafkadash sends, and the fields read from the answers (kafka-python's generated classes, typed).

A request is built once the API versions of the broker are known: kafka-python silently drops a field that the agreed
version does not have, so code that depends on a field requires its version here.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar
from uuid import UUID

from kafkadash.kafka.api import (
    QUORUM_TOPIC,
    ConfigChange,
    ConfigResource,
    NewPartitions,
    NewTopic,
    NotSupported,
    OffsetKind,
    ReplicaPlace,
    TopicPartition,
)
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.kafka.kafka_python import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConsumerGroupDescribeRequest,
    CreatePartitionsRequest,
    CreatePartitionsResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeClusterRequest,
    DescribeClusterResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeProducersRequest,
    DescribeProducersResponse,
    DescribeQuorumRequest,
    DescribeQuorumResponse,
    DescribeShareGroupOffsetsRequest,
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
    DescribeTransactionsRequest,
    DescribeTransactionsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    ListTransactionsRequest,
    ListTransactionsResponse,
    MetadataRequest,
    MetadataResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetDeleteRequest,
    OffsetDeleteResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
    UnregisterBrokerRequest,
)

LIST_OFFSETS, METADATA, API_VERSIONS, DESCRIBE_CONFIGS, DESCRIBE_LOG_DIRS = 2, 3, 18, 32, 35
LIST_REASSIGNMENTS, DESCRIBE_QUORUM, DESCRIBE_CLUSTER, DESCRIBE_TOPIC_PARTITIONS = 46, 55, 60, 75

# Versions of ListOffsets from which on these offsets can be asked for; before, the timestamp would mean a time.
EARLIEST_LOCAL, LAST_TIERED = 8, 9
# org.apache.kafka.common.requests.ListOffsetsRequest.DEBUGGING_REPLICA_ID: any replica answers, with its own offsets.
ASK_THE_REPLICA_ITSELF = -2

Request = Any  # a kafka-python request: the wire only hands it on
ApiRanges = Mapping[int, tuple[int, int]]


class KafkaResponse(Protocol):
    """Fields of all answers. ``API_VERSION`` is the version that was agreed with that broker."""

    API_KEY: int
    API_VERSION: int


class UnregisterBrokerAnswer(KafkaResponse, Protocol):
    """Fields of the answer, whose class has no types."""

    error_code: int
    error_message: str | None


ApiVersionsAnswer = ApiVersionsResponse
VersionRange = ApiVersionsResponse.ApiVersion
SupportedFeature = ApiVersionsResponse.SupportedFeatureKey
FinalizedFeature = ApiVersionsResponse.FinalizedFeatureKey
MetadataAnswer = MetadataResponse
MetadataBroker = MetadataResponse.MetadataResponseBroker
MetadataTopic = MetadataResponse.MetadataResponseTopic
MetadataPartition = MetadataTopic.MetadataResponsePartition
ClusterAnswer = DescribeClusterResponse
ClusterBroker = DescribeClusterResponse.DescribeClusterBroker
ReassignmentsAnswer = ListPartitionReassignmentsResponse
ReassignedTopic = ListPartitionReassignmentsResponse.OngoingTopicReassignment
ReassignedPartition = ReassignedTopic.OngoingPartitionReassignment
LogDirsAnswer = DescribeLogDirsResponse
LogDirResult = DescribeLogDirsResponse.DescribeLogDirsResult
LogDirTopic = LogDirResult.DescribeLogDirsTopic
LogDirPartition = LogDirTopic.DescribeLogDirsPartition
ConfigsAnswer = DescribeConfigsResponse
ConfigsResult = DescribeConfigsResponse.DescribeConfigsResult
ConfigAnswer = ConfigsResult.DescribeConfigsResourceResult
OffsetsAnswer = ListOffsetsResponse
OffsetTopic = ListOffsetsResponse.ListOffsetsTopicResponse
OffsetPartition = OffsetTopic.ListOffsetsPartitionResponse
QuorumAnswer = DescribeQuorumResponse
QuorumTopic = DescribeQuorumResponse.TopicData
QuorumPartition = QuorumTopic.PartitionData
QuorumReplicaAnswer = QuorumPartition.ReplicaState
TopicPartitionsAnswer = DescribeTopicPartitionsResponse
ProducersAnswer = DescribeProducersResponse
TransactionsAnswer = ListTransactionsResponse
DescribedTransactionsAnswer = DescribeTransactionsResponse
ListGroupsAnswer = ListGroupsResponse
ListedGroup = ListGroupsResponse.ListedGroup
DescribeGroupsAnswer = DescribeGroupsResponse
DescribedGroup = DescribeGroupsResponse.DescribedGroup
DescribedMember = DescribedGroup.DescribedGroupMember
CoordinatorsAnswer = FindCoordinatorResponse
GroupCoordinator = FindCoordinatorResponse.Coordinator
OffsetFetchAnswer = OffsetFetchResponse
FetchedGroup = OffsetFetchResponse.OffsetFetchResponseGroup
FetchedTopic: TypeAlias = OffsetFetchResponse.OffsetFetchResponseTopic | FetchedGroup.OffsetFetchResponseTopics
AlterReassignmentsAnswer = AlterPartitionReassignmentsResponse
AlteredTopic = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
AlteredPartition = AlteredTopic.ReassignablePartitionResponse
AlterConfigsAnswer = IncrementalAlterConfigsResponse
AlteredResource = IncrementalAlterConfigsResponse.AlterConfigsResourceResponse
ElectLeadersAnswer = ElectLeadersResponse
ElectedTopic = ElectLeadersResponse.ReplicaElectionResult
ElectedPartition = ElectedTopic.PartitionResult
AlterLogDirsAnswer = AlterReplicaLogDirsResponse
CreateTopicsAnswer = CreateTopicsResponse
CreatePartitionsAnswer = CreatePartitionsResponse
DeleteTopicsAnswer = DeleteTopicsResponse
DeleteGroupsAnswer = DeleteGroupsResponse
OffsetCommitAnswer = OffsetCommitResponse
OffsetDeleteAnswer = OffsetDeleteResponse
PlacedTopic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
PlacedPartition = PlacedTopic.AlterReplicaLogDirPartitionResult


def api_versions_request(offered: ApiRanges) -> Request:
    require_api(offered, API_VERSIONS, "ApiVersions")
    return ApiVersionsRequest(client_software_name="kafkadash", client_software_version="0")


def metadata_request(offered: ApiRanges, topics: Collection[str] | None) -> Request:
    """All topics when ``topics`` is None. v5 (Kafka 1.0) is the first with offline replicas; from v4 on nobody's

    question creates a topic (allow_auto_topic_creation).
    """
    require_api(offered, METADATA, "Metadata with offline replicas", at_least=5)
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
    require_api(offered, DESCRIBE_CLUSTER, "DescribeCluster of controllers (Kafka 3.7)", at_least=1)
    return DescribeClusterRequest(endpoint_type=2)


def reassignments_request(offered: ApiRanges, timeout_ms: int) -> Request:
    require_api(offered, LIST_REASSIGNMENTS, "ListPartitionReassignments (Kafka 2.4)")
    return ListPartitionReassignmentsRequest(timeout_ms=timeout_ms, topics=None)


def log_dirs_request(offered: ApiRanges) -> Request:
    require_api(offered, DESCRIBE_LOG_DIRS, "DescribeLogDirs (Kafka 1.0)")
    return DescribeLogDirsRequest(topics=None)


def configs_request(offered: ApiRanges, resources: Iterable[tuple[int, str]], keys: Collection[str] | None) -> Request:
    """``resources`` as (type, name). v1 (Kafka 1.1) is the first that tells where a value comes from."""
    require_api(offered, DESCRIBE_CONFIGS, "DescribeConfigs with sources (Kafka 1.1)", at_least=1)
    names = None if keys is None else sorted(keys)
    resource = DescribeConfigsRequest.DescribeConfigsResource
    return DescribeConfigsRequest(
        resources=[
            resource(resource_type=kind, resource_name=name, configuration_keys=names) for kind, name in resources
        ],
        include_synonyms=False,
        include_documentation=False,
    )


def offsets_request(
    offered: ApiRanges, partitions: Mapping[str, Iterable[int]], timestamp: int, timeout_ms: int
) -> Request:
    """Return a request with one timestamp for each partition: Kafka refuses one that names a partition twice.

    Brokers before version 8 have no tiered storage: the start of their local log is the start of the log.
    """
    require_api(offered, LIST_OFFSETS, "ListOffsets with a single offset", at_least=1)
    if timestamp == OffsetKind.LATEST_TIERED:
        require_api(offered, LIST_OFFSETS, "the last tiered offset (ListOffsets v9, Kafka 3.9)", at_least=LAST_TIERED)
    if timestamp == OffsetKind.EARLIEST_LOCAL and offered[LIST_OFFSETS][1] < EARLIEST_LOCAL:
        timestamp = OffsetKind.EARLIEST
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


def topic_partitions_request(offered: ApiRanges, topics: Collection[str], first: tuple[str, int], most: int) -> Request:
    """Return a request for partitions of these topics, from ``first`` on, ``most`` at most (KIP-966).

    ``first`` has to be in one of the topics (kafka.server.handlers.DescribeTopicPartitionsRequestHandler).
    """
    require_api(offered, DESCRIBE_TOPIC_PARTITIONS, "DescribeTopicPartitions (Kafka 3.8)")
    message = DescribeTopicPartitionsRequest
    return message(
        topics=[message.TopicRequest(name=name) for name in topics],
        response_partition_limit=most,
        cursor=message.Cursor(topic_name=first[0], partition_index=first[1]),
    )


def require_api(offered: ApiRanges, api_key: int, what: str, *, at_least: int = 0) -> None:
    if api_key not in offered or offered[api_key][1] < at_least:
        raise NotSupported(KafkaErrorCode.NOT_OFFERED, what=what)


OFFSET_FETCH, FIND_COORDINATOR, DESCRIBE_GROUPS, LIST_GROUPS, DESCRIBE_CONSUMER_GROUPS = 9, 10, 15, 16, 69
DESCRIBE_SHARE_GROUPS, DESCRIBE_STREAMS_GROUPS, DESCRIBE_SHARE_OFFSETS = 77, 89, 90
# org.apache.kafka.common.requests.ListOffsetsRequest.CONSUMER_REPLICA_ID: the leader answers what consumers can read.
ASK_AS_CONSUMER = -1
READ_UNCOMMITTED, READ_COMMITTED = 0, 1
DESCRIBE_PRODUCERS, DESCRIBE_TRANSACTIONS, LIST_TRANSACTIONS = 61, 65, 66
# org.apache.kafka.coordinator.transaction.TransactionState: the coordinator goes on with these.
TRANSACTIONS_IN_PROGRESS = ("Ongoing", "PrepareCommit", "PrepareAbort")


class OneAtATime(NotSupported):
    """The broker takes one group in each such request; nothing was sent."""


class AssignedTopic(Protocol):
    topic_name: str
    partitions: Sequence[int]


class MemberAssignment(Protocol):
    topic_partitions: Sequence[AssignedTopic]


class ConsumerMember(Protocol):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: MemberAssignment


class ConsumerGroup(Protocol):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    assignor_name: str
    members: Sequence[ConsumerMember]
    authorized_operations: Collection[int] | None


class ConsumerGroupsAnswer(KafkaResponse, Protocol):
    groups: Sequence[ConsumerGroup]


class ShareMember(Protocol):
    member_id: str
    client_id: str
    client_host: str
    assignment: MemberAssignment


class ShareGroup(Protocol):
    error_code: int
    group_id: str
    group_state: str
    assignor_name: str
    members: Sequence[ShareMember]


class ShareGroupsAnswer(KafkaResponse, Protocol):
    groups: Sequence[ShareGroup]


class SharePartition(Protocol):
    """``start_offset`` and ``lag`` are −1 where they are not known; ``lag`` always is before version 1."""

    partition_index: int
    start_offset: int
    lag: int
    error_code: int


class ShareTopic(Protocol):
    topic_name: str
    partitions: Sequence[SharePartition]


class ShareGroupOffsets(Protocol):
    group_id: str
    topics: Sequence[ShareTopic]
    error_code: int


class ShareOffsetsAnswer(KafkaResponse, Protocol):
    groups: Sequence[ShareGroupOffsets]


class RepartitionTopic(Protocol):
    name: str


class StreamsSubtopology(Protocol):
    subtopology_id: str
    source_topics: Sequence[str]
    repartition_source_topics: Sequence[RepartitionTopic]


class StreamsTopology(Protocol):
    """``subtopologies`` is None where source topics are missing, or do not have the partitions they need."""

    subtopologies: Sequence[StreamsSubtopology] | None


class StreamsTasks(Protocol):
    subtopology_id: str
    partitions: Sequence[int]


class StreamsAssignment(Protocol):
    active_tasks: Sequence[StreamsTasks]


class StreamsMember(Protocol):
    member_id: str
    instance_id: str | None
    client_id: str
    client_host: str
    assignment: StreamsAssignment


class StreamsGroup(Protocol):
    error_code: int
    group_id: str
    group_state: str
    topology: StreamsTopology | None
    members: Sequence[StreamsMember]
    authorized_operations: Collection[int] | None


class StreamsGroupsAnswer(KafkaResponse, Protocol):
    groups: Sequence[StreamsGroup]


def list_groups_request(offered: ApiRanges) -> Request:
    """All states and types: filters of one version are unknown to the one before."""
    require_api(offered, LIST_GROUPS, "ListGroups")
    return ListGroupsRequest(states_filter=[], types_filter=[])


def describe_groups_request(offered: ApiRanges, groups: Collection[str], *, with_rights: bool = False) -> Request:
    require_api(offered, DESCRIBE_GROUPS, "DescribeGroups")
    return DescribeGroupsRequest(groups=list(groups), include_authorized_operations=with_rights)


def describe_consumer_groups_request(
    offered: ApiRanges, groups: Collection[str], *, with_rights: bool = False
) -> Request:
    """Raises NotSupported before Kafka 3.7, where no group is of that type."""
    require_api(offered, DESCRIBE_CONSUMER_GROUPS, "ConsumerGroupDescribe (Kafka 3.7)")
    make: Any = ConsumerGroupDescribeRequest  # its base class has no types
    return make(group_ids=list(groups), include_authorized_operations=with_rights)


def describe_streams_groups_request(
    offered: ApiRanges, groups: Collection[str], *, with_rights: bool = False
) -> Request:
    """Raises NotSupported before Kafka 4.1, where no group is of that type."""
    require_api(offered, DESCRIBE_STREAMS_GROUPS, "StreamsGroupDescribe (Kafka 4.1)")
    make: Any = StreamsGroupDescribeRequest
    return make(group_ids=list(groups), include_authorized_operations=with_rights)


def describe_share_groups_request(offered: ApiRanges, groups: Collection[str]) -> Request:
    """Raises NotSupported before Kafka 4.1: the version of 4.0 was for early access, and no other broker knows it."""
    require_api(offered, DESCRIBE_SHARE_GROUPS, "ShareGroupDescribe (Kafka 4.1)", at_least=1)
    make: Any = ShareGroupDescribeRequest
    return make(group_ids=list(groups), include_authorized_operations=False)


def share_offsets_request(offered: ApiRanges, groups: Collection[str]) -> Request:
    """Ask for start offsets of all partitions of these share groups."""
    require_api(offered, DESCRIBE_SHARE_OFFSETS, "DescribeShareGroupOffsets (Kafka 4.1)")
    make: Any = DescribeShareGroupOffsetsRequest
    return make(groups=[make.DescribeShareGroupOffsetsRequestGroup(group_id=name, topics=None) for name in groups])


def coordinators_request(offered: ApiRanges, groups: Sequence[str]) -> Request:
    """Raises OneAtATime for several before Kafka 3.0 (KIP-699)."""
    require_api(offered, FIND_COORDINATOR, "FindCoordinator")
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
    require_api(offered, OFFSET_FETCH, "OffsetFetch of all topics (Kafka 0.10.2)", at_least=2)
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


def producers_request(offered: ApiRanges, partitions: Mapping[str, Collection[int]]) -> Request:
    """Return a request for the producers that write to partitions, for their leader (KIP-664)."""
    require_api(offered, DESCRIBE_PRODUCERS, "DescribeProducers (Kafka 2.8)")
    topic = DescribeProducersRequest.TopicRequest
    return DescribeProducersRequest(
        topics=[topic(name=name, partition_indexes=list(indexes)) for name, indexes in partitions.items()]
    )


def transactions_request(offered: ApiRanges, producers: Collection[int], states: Collection[str] = ()) -> Request:
    """Return a request for transactions of producers, in some states or in any, for each coordinator (KIP-664)."""
    require_api(offered, LIST_TRANSACTIONS, "ListTransactions (Kafka 3.0)")
    return ListTransactionsRequest(state_filters=list(states), producer_id_filters=list(producers), max_version=0)


def described_transactions_request(offered: ApiRanges, transactional_ids: Collection[str]) -> Request:
    """Return a request for transactions by their transactional ids, for their coordinator (KIP-664)."""
    require_api(offered, DESCRIBE_TRANSACTIONS, "DescribeTransactions (Kafka 3.0)")
    return DescribeTransactionsRequest(transactional_ids=list(transactional_ids))


def span_request(
    offered: ApiRanges,
    partitions: Mapping[str, Collection[int]],
    timestamp: int,
    timeout_ms: int,
    isolation: int = READ_UNCOMMITTED,
) -> Request:
    """Return a request for what consumers can read: a leader answers its high watermark (−1) or log start (−2), and
    with READ_COMMITTED the last stable offset instead of the high watermark.

    For a time in milliseconds it answers the offset of the first record of then or later, −1 where there is none.
    """
    require_api(offered, LIST_OFFSETS, "ListOffsets with a single offset", at_least=1)
    topic, partition = ListOffsetsRequest.ListOffsetsTopic, ListOffsetsRequest.ListOffsetsTopic.ListOffsetsPartition
    return ListOffsetsRequest(
        replica_id=ASK_AS_CONSUMER,
        isolation_level=isolation,
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


CREATE_TOPICS, DELETE_TOPICS, ALTER_LOG_DIRS, CREATE_PARTITIONS = 19, 20, 34, 37
ELECT_LEADERS, ALTER_CONFIGS, ALTER_REASSIGNMENTS, UNREGISTER_BROKER = 43, 44, 45, 64
T = TypeVar("T")
_PREFERRED, _UNCLEAN = 0, 1  # org.apache.kafka.common.ElectionType


def alter_reassignments_request(
    offered: ApiRanges,
    targets: Mapping[TopicPartition, tuple[int, ...] | None],
    *,
    keep_factor: bool,
    timeout_ms: int,
) -> Request:
    """v0 has no ``allow_replication_factor_change`` and allows it: whoever depends on it reads the answer's version."""
    require_api(offered, ALTER_REASSIGNMENTS, "AlterPartitionReassignments (Kafka 2.4)")
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


def alter_configs_request(
    offered: ApiRanges, changes: Mapping[ConfigResource, Sequence[ConfigChange]], *, validate_only: bool = False
) -> Request:
    """Return the request (Kafka 2.3). No older one will do: AlterConfigs (33) replaces all of a resource's configs."""
    require_api(offered, ALTER_CONFIGS, "IncrementalAlterConfigs (Kafka 2.3)")
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
        validate_only=validate_only,
    )


def elect_leaders_request(
    offered: ApiRanges, partitions: Iterable[TopicPartition], *, unclean: bool, timeout_ms: int
) -> Request:
    """v0 has no type and elects preferred leaders, so an unclean election needs v1 (KIP-460)."""
    if unclean:
        require_api(offered, ELECT_LEADERS, "Unclean elections (Kafka 2.4)", at_least=1)
    require_api(offered, ELECT_LEADERS, "ElectLeaders (Kafka 2.2)")
    return ElectLeadersRequest(
        election_type=_UNCLEAN if unclean else _PREFERRED,
        timeout_ms=timeout_ms,
        topic_partitions=[
            ElectLeadersRequest.TopicPartitions(topic=name, partitions=[index for index, _ in rows])
            for name, rows in _by_topic((p, None) for p in partitions).items()
        ],
    )


def create_topics_request(
    offered: ApiRanges, topics: Iterable[NewTopic], *, timeout_ms: int, validate_only: bool
) -> Request:
    """The number of partitions and the replication factor follow from the assignment; Kafka takes -1 for both then.

    v1 is the first with ``validate_only`` (KIP-4).
    """
    require_api(offered, CREATE_TOPICS, "CreateTopics with validation (Kafka 0.10.2)", at_least=1)
    topic = CreateTopicsRequest.CreatableTopic
    return CreateTopicsRequest(
        topics=[
            topic(
                name=new.name,
                num_partitions=-1,
                replication_factor=-1,
                assignments=[
                    topic.CreatableReplicaAssignment(partition_index=index, broker_ids=list(replicas))
                    for index, replicas in enumerate(new.replicas)
                ],
                configs=[topic.CreatableTopicConfig(name=key, value=value) for key, value in new.configs.items()],
            )
            for new in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def create_partitions_request(
    offered: ApiRanges, topics: Iterable[NewPartitions], *, timeout_ms: int, validate_only: bool
) -> Request:
    require_api(offered, CREATE_PARTITIONS, "CreatePartitions (Kafka 1.0)")
    topic = CreatePartitionsRequest.CreatePartitionsTopic
    return CreatePartitionsRequest(
        topics=[
            topic(
                name=new.topic,
                count=new.first + len(new.replicas),
                assignments=[topic.CreatePartitionsAssignment(broker_ids=list(replicas)) for replicas in new.replicas],
            )
            for new in topics
        ],
        timeout_ms=timeout_ms,
        validate_only=validate_only,
    )


def delete_topics_request(offered: ApiRanges, topic_ids: Iterable[str], *, timeout_ms: int) -> Request:
    """Delete by id, so that a topic that was created again under the same name stays (v6, KIP-516)."""
    require_api(offered, DELETE_TOPICS, "DeleteTopics by topic id (Kafka 2.8)", at_least=6)
    state = DeleteTopicsRequest.DeleteTopicState
    topics = [state(name=None, topic_id=UUID(topic_id)) for topic_id in topic_ids]
    return DeleteTopicsRequest(topics=topics, topic_names=[], timeout_ms=timeout_ms)


def alter_log_dirs_request(offered: ApiRanges, places: Mapping[ReplicaPlace, str]) -> Request:
    """For one broker: replica → directory."""
    require_api(offered, ALTER_LOG_DIRS, "AlterReplicaLogDirs (Kafka 1.1)", at_least=1)
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


def unregister_broker_request(offered: ApiRanges, broker: int) -> Request:
    require_api(offered, UNREGISTER_BROKER, "UnregisterBroker (Kafka 2.8 with KRaft)")
    make: Any = UnregisterBrokerRequest  # its base class has no types
    return make(broker_id=broker)


OFFSET_COMMIT, DELETE_GROUPS, OFFSET_DELETE = 8, 42, 47


def commit_offsets_request(offered: ApiRanges, group: str, offsets: Mapping[TopicPartition, int]) -> Request:
    """For a group without members, as Kafka's tools send it. v9 at most: v10 names topics by id."""
    require_api(offered, OFFSET_COMMIT, "OffsetCommit (Kafka 0.9)", at_least=2)
    topic = OffsetCommitRequest.OffsetCommitRequestTopic
    partition = topic.OffsetCommitRequestPartition
    return OffsetCommitRequest(
        group_id=group,
        generation_id_or_member_epoch=-1,
        member_id="",
        topics=[
            topic(
                name=name,
                partitions=[
                    partition(partition_index=index, committed_offset=offset, committed_metadata="")
                    for index, offset in rows
                ],
            )
            for name, rows in _by_topic(offsets.items()).items()
        ],
        max_version=9,
    )


def delete_offsets_request(offered: ApiRanges, group: str, partitions: Iterable[TopicPartition]) -> Request:
    require_api(offered, OFFSET_DELETE, "OffsetDelete (Kafka 2.4)")
    topic = OffsetDeleteRequest.OffsetDeleteRequestTopic
    return OffsetDeleteRequest(
        group_id=group,
        topics=[
            topic(
                name=name,
                partitions=[topic.OffsetDeleteRequestPartition(partition_index=index) for index, _ in rows],
            )
            for name, rows in _by_topic((p, None) for p in partitions).items()
        ],
    )


def delete_groups_request(offered: ApiRanges, groups: Iterable[str]) -> Request:
    require_api(offered, DELETE_GROUPS, "DeleteGroups (Kafka 1.1)")
    return DeleteGroupsRequest(groups_names=list(groups))


def _by_topic(rows: Iterable[tuple[TopicPartition, T]]) -> dict[str, list[tuple[int, T]]]:
    found: defaultdict[str, list[tuple[int, T]]] = defaultdict(list)
    for partition, value in rows:
        found[partition.topic].append((partition.partition, value))
    return found


# org.apache.kafka.common.acl.AclOperation: code → the name that people know from kafka-acls.
_OPERATIONS = {
    3: "Read",
    4: "Write",
    5: "Create",
    6: "Delete",
    7: "Alter",
    8: "Describe",
    9: "ClusterAction",
    10: "DescribeConfigs",
    11: "AlterConfigs",
}


def name_operations(codes: Collection[int] | None) -> frozenset[str] | None:
    """The names of these operations; None where the broker did not tell."""
    return None if codes is None else frozenset(_OPERATIONS[code] for code in codes if code in _OPERATIONS)
