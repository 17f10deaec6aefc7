"""Port to a Kafka cluster: reads, changes, answers and errors, independent of any client library.

Every call takes a ``deadline`` in seconds from now and returns or raises within that deadline plus half a second,
whatever the brokers do; an answer about 200,000 partitions takes about a second more to become values. A failure of the
whole call is a ``KafkaFailure``; a failure of one broker, partition or replica is data inside the answer, so that a
missing figure is never mistaken for zero.

Offsets are counted in records, sizes in bytes, ``taken_at`` in seconds since the epoch on the clock of
``kafkadash.core.clock``. A broker reads its state between the request and its answer; ``taken_at`` is the middle of the
two, so the error is at most half of the duration of the call. For an answer from several brokers ``taken_at`` is that
of the oldest.

A cluster may have 5,000 groups that read 200,000 partitions, so figures of partitions are nested dictionaries of plain
numbers, and one call asks for all of them.

A call that changes something raises a ``KafkaFailure`` only if nothing of it can have reached Kafka. Everything else is
in its answer: an item was done, was refused in Kafka's words, or is lost, so that nobody knows whether it was or will
be done. Nothing is sent twice: the caller looks up a lost item in the cluster.

Kafka leaves topics that the principal may not describe out of every list, so counts would be too small unnoticed.
DescribeLogDirs needs Describe on the cluster only and reports all topics on the disks. ``hidden_topics`` asks by name
for topics that are there and in no list: Kafka then answers whether a topic is hidden, new or deleted.

Connection settings of a cluster: addresses, TLS, credentials.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import ClassVar, Generic, NamedTuple, Protocol, TypeVar

from kafkadash.core.errors import UserError
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.kafka.errors import KafkaErrorCode


class KafkaFailure(UserError):
    """A call that failed as a whole, with a message that a person on call can act on."""

    kind: ClassVar = FailureKind.OTHER


class KafkaUnreachable(KafkaFailure):
    """No broker accepted a connection: wrong address, closed port, or everything is down."""

    kind: ClassVar = FailureKind.UNREACHABLE


class DeadlineExceeded(KafkaFailure):
    """Something accepted the connection or the request and did not answer in time."""

    kind: ClassVar = FailureKind.DEADLINE_EXCEEDED


class AuthenticationFailed(KafkaFailure):
    """The brokers refused the credentials, or the TLS handshake failed."""

    kind: ClassVar = FailureKind.CREDENTIALS_REFUSED


class TokenUnavailable(KafkaFailure):
    """The token endpoint gave no access token, so that no broker lets us in; nothing is known of the brokers."""

    kind: ClassVar = FailureKind.TOKEN_UNAVAILABLE


class NotAuthorized(KafkaFailure):
    """The principal lacks a permission; the sentence names the resource and the operation."""

    kind: ClassVar = FailureKind.NOT_AUTHORIZED


class NotSupported(KafkaFailure):
    """The cluster does not offer this request, or no version of it that we speak."""

    kind: ClassVar = FailureKind.NOT_SUPPORTED


class AnswerTooLarge(KafkaFailure):
    """The answer has more bytes than are read; a question about less may be answered."""

    kind: ClassVar = FailureKind.ANSWER_TOO_LARGE


class QuorumUnavailable(KafkaFailure):
    """The controllers have no majority (or no leader yet), so nothing can be listed or changed."""

    kind: ClassVar = FailureKind.QUORUM_UNAVAILABLE


class RequestFailed(KafkaFailure):
    """Kafka answered with an error code; ``number`` is the protocol's and ``name`` Kafka's word for it."""

    kind: ClassVar = FailureKind.REQUEST_FAILED

    def __init__(self, message: CodedMessage, *, number: int, name: str) -> None:
        super().__init__(message)
        self.number = number
        self.name = name


@dataclass(frozen=True, slots=True)
class ItemError:
    """Why one item of an answer is missing.

    ``code`` is None when no answer arrived (connection, deadline); ``name`` may then be the kind of the failure.
    """

    message: CodedMessage
    code: int | None = None
    name: str = ""

    @property
    def text(self) -> str:
        return str(self.message)

    @property
    def cause(self) -> str:
        """Return it without what to do next, which whoever shows a refused change says for all of them."""
        return self.message.cause


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class ClusterFeatures:
    """Feature levels (KIP-584) as one broker tells them; both empty where it is too old to (ApiVersions before v3).

    ``supported``: name → (lowest, highest) level the broker's software knows. ``finalized``: name → level in force in
    the whole cluster, as of ``epoch``, which is None while the broker does not know.
    """

    supported: Mapping[str, tuple[int, int]]
    finalized: Mapping[str, int]
    epoch: int | None


@dataclass(frozen=True, slots=True)
class ApiVersions:
    """Versions each answering broker offers: broker id → {API key: (lowest, highest)}; ``features`` likewise."""

    brokers: Mapping[int, Mapping[int, tuple[int, int]]]
    errors: Mapping[int, ItemError]
    taken_at: float
    features: Mapping[int, ClusterFeatures] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """A registered broker. ``fenced`` is None when the cluster is too old to tell (DescribeCluster before v2)."""

    id: int
    host: str
    port: int
    rack: str | None
    fenced: bool | None


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """DescribeCluster (KIP-700), or the broker part of Metadata where that is all there is.

    ``controller_id`` is the id the answer carried. On KRaft that is a random broker, not the active controller:
    ask ``quorum()`` for that one.
    """

    cluster_id: str
    controller_id: int | None
    brokers: Sequence[BrokerInfo]
    taken_at: float


@dataclass(frozen=True, slots=True)
class PartitionMetadata:
    """Partition as Metadata describes it. ``leader`` is None when there is none; ``error`` keeps Kafka's code."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """``topic_id`` is the 36-character UUID text, or '' from clusters that have no topic ids (before 2.8)."""

    name: str
    topic_id: str
    internal: bool
    partitions: Sequence[PartitionMetadata]
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class ClusterMetadata:
    cluster_id: str
    brokers: Sequence[BrokerInfo]
    topics: Sequence[TopicMetadata]
    taken_at: float


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """Row of ListPartitionReassignments (KIP-455): targets first in ``replicas``, then the ones being removed."""

    topic: str
    partition: int
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """Replicas once the reassignment is complete, the preferred leader first."""
        return tuple(r for r in self.replicas if r not in self.removing)

    @property
    def original(self) -> tuple[int, ...]:
        """Replicas after a cancel at this moment (``replicas − adding``); the order is Kafka's, not the old one."""
        return tuple(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class ListedReassignments:
    """Everything in flight in the cluster. An empty listing says nothing about whether a partition exists."""

    rows: Sequence[OngoingReassignment]
    taken_at: float


@dataclass(frozen=True, slots=True)
class ReplicaSize:
    """A replica in a log directory. ``future`` marks a copy that is being moved between disks of one broker."""

    topic: str
    partition: int
    size_bytes: int
    future: bool


@dataclass(frozen=True, slots=True)
class LogDir:
    """Log directory; ``total_bytes`` and ``usable_bytes`` are None before Kafka 3.3, ``cordoned`` before 4.3."""

    path: str
    replicas: Sequence[ReplicaSize]
    total_bytes: int | None
    usable_bytes: int | None
    cordoned: bool | None = None
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class LogDirs:
    """DescribeLogDirs of several brokers; each asked broker is in ``brokers`` or in ``errors``, never in neither."""

    brokers: Mapping[int, Sequence[LogDir]]
    errors: Mapping[int, ItemError]
    taken_at: float


class ConfigResourceType(IntEnum):
    """Type of the resource of a config (org.apache.kafka.common.config.ConfigResource.Type)."""

    TOPIC = 2
    BROKER = 4


@dataclass(frozen=True, slots=True, order=True)
class ConfigResource:
    """A topic, a broker, or with ``CLUSTER_DEFAULT`` what all brokers start from."""

    type: ConfigResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> ConfigResource:
        return cls(ConfigResourceType.TOPIC, name)

    @classmethod
    def broker(cls, broker: int) -> ConfigResource:
        return cls(ConfigResourceType.BROKER, str(broker))

    def __str__(self) -> str:
        if self.type is ConfigResourceType.TOPIC:
            return f"topic {self.name}"
        return f"broker {self.name}" if self.name else "the cluster default"


CLUSTER_DEFAULT = ConfigResource(ConfigResourceType.BROKER, "")


class ExtensibleEnum(IntEnum):
    """Numbers that Kafka extends: one that is newer than this program is UNKNOWN (0), as in Kafka's own clients."""

    @classmethod
    def _missing_(cls, _: object) -> ExtensibleEnum:
        return cls(0)


class ConfigOrigin(ExtensibleEnum):
    """Source of a config value (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource).

    The names are those of org.apache.kafka.clients.admin.ConfigEntry.ConfigSource, as Kafka's tools print them.
    """

    UNKNOWN = 0
    DYNAMIC_TOPIC_CONFIG = 1
    DYNAMIC_BROKER_CONFIG = 2
    DYNAMIC_DEFAULT_BROKER_CONFIG = 3
    STATIC_BROKER_CONFIG = 4
    DEFAULT_CONFIG = 5
    DYNAMIC_BROKER_LOGGER_CONFIG = 6
    DYNAMIC_CLIENT_METRICS_CONFIG = 7
    DYNAMIC_GROUP_CONFIG = 8


class ConfigType(ExtensibleEnum):
    """Type of a config's value (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigType)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config in force. ``value`` is None where Kafka keeps it back (``sensitive``) or where there is none.

    ``type`` is unknown before Kafka 2.6 (DescribeConfigs v3).
    """

    name: str
    value: str | None
    source: ConfigOrigin
    sensitive: bool
    read_only: bool
    type: ConfigType = ConfigType.UNKNOWN


@dataclass(frozen=True, slots=True)
class ResourceConfigs:
    """DescribeConfigs: each asked resource is in ``resources`` (config name → entry) or in ``errors``."""

    resources: Mapping[ConfigResource, Mapping[str, ConfigEntry]]
    errors: Mapping[ConfigResource, ItemError]
    taken_at: float


class OffsetKind(IntEnum):
    """The ``timestamp`` of ListOffsets: what to ask a replica for.

    EARLIEST_LOCAL: start of the log on the broker's disks, which is later than EARLIEST where older records are in
    tiered storage only (KIP-405). Brokers before ListOffsets v8 have no tiered storage and answer EARLIEST.
    LATEST_TIERED: the last offset in tiered storage (KIP-1005, Kafka 3.9). −1 where nothing is there, and where the
    leader does not know: it keeps the offset in memory, and reads it anew when it looks for segments to upload.
    """

    LATEST = -1
    EARLIEST = -2
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


@dataclass(frozen=True, slots=True, order=True)
class OffsetQuery:
    """A question to one replica: ``broker`` answers for its own copy (ListOffsets with replica_id −2)."""

    broker: int
    topic: str
    partition: int
    kind: OffsetKind


@dataclass(frozen=True, slots=True)
class ReplicaOffset:
    """A replica's own log end (LATEST) or log start (EARLIEST) offset, as its broker answered.

    ``took``: seconds from the question to the answer; ``taken_at`` is off by half of it at most.
    """

    offset: int
    taken_at: float
    took: float = 0.0


@dataclass(frozen=True, slots=True)
class ReplicaOffsets:
    """Each query is in ``offsets`` or in ``errors``, never in neither."""

    offsets: Mapping[OffsetQuery, ReplicaOffset]
    errors: Mapping[OffsetQuery, ItemError]


@dataclass(frozen=True, slots=True)
class EligibleReplicas:
    """Eligible leader replicas (ELR) and last known ELR of a partition (KIP-966); None where the broker has neither.

    The ELR holds all committed records although it is not in sync. It is empty as long as the ISR has
    min.insync.replicas, and in clusters without the feature ``eligible.leader.replicas.version``.
    """

    eligible: tuple[int, ...] | None
    last_known: tuple[int, ...] | None


@dataclass(frozen=True, slots=True)
class QuorumReplica:
    """A voter or observer as the active controller tells it (KIP-836).

    The timestamps are milliseconds on the **leader's** clock; None where the leader has not heard from the replica
    since it became leader, or where the version (v0, up to Kafka 3.2) has none. ``log_end_offset`` likewise.
    ``directory_id`` is in Kafka's own form (22 characters, as in meta.properties), '' before v2 (Kafka 3.9).
    """

    id: int
    directory_id: str
    log_end_offset: int | None
    last_fetch_ms: int | None
    last_caught_up_ms: int | None


@dataclass(frozen=True, slots=True)
class QuorumDescription:
    """DescribeQuorum's answer. ``leader_id`` is the active controller: the only true source for it on KRaft.

    ``high_watermark`` is None while a new leader does not know it yet.
    """

    leader_id: int
    leader_epoch: int
    high_watermark: int | None
    voters: Sequence[QuorumReplica]
    observers: Sequence[QuorumReplica]
    taken_at: float


@dataclass(frozen=True, slots=True)
class GrantedPermissions:
    """Operations that this principal may do, by Kafka's names, such as "DescribeConfigs" (KIP-430).

    None where a broker did not tell. ``cluster`` is empty for a principal without Describe on the cluster, whatever
    else it may do there. ``topics`` has only the topics that it may describe.
    """

    cluster: frozenset[str] | None
    topics: Mapping[str, frozenset[str] | None]
    taken_at: float


class KafkaAdmin(Protocol):
    """The reads of a cluster. Implementations are safe to call from several threads at once."""

    def api_versions(self, *, deadline: float) -> ApiVersions: ...

    def describe_cluster(self, *, deadline: float) -> ClusterDescription: ...

    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> ClusterMetadata:
        """All topics, or only the named ones; a named topic that does not exist comes back with its ``error``."""
        ...

    def list_reassignments(self, *, deadline: float) -> ListedReassignments: ...

    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> LogDirs: ...

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets: ...

    def eligible_replicas(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[TopicPartition, EligibleReplicas]:
        """DescribeTopicPartitions (75, KIP-966), page by page; what cannot be described is left out.

        Raises NotSupported where brokers do not offer it.
        """
        ...

    def quorum(self, *, deadline: float) -> QuorumDescription: ...

    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> ResourceConfigs:
        """The named ``keys``, or all of them. A broker answers for itself alone: one that is down is an error.

        A key that a resource does not have is absent (a broker's replication rates while they are not set).
        """
        ...

    def permissions(self, *, deadline: float) -> GrantedPermissions:
        """Raises NotSupported before Kafka 2.8."""
        ...

    def close(self) -> None: ...


Offsets = Mapping[str, Mapping[int, int]]
"""topic → partition → offset."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """``instance_id`` is None for a dynamic member (KIP-345); ``assigned``: topic → partitions."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assigned: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class GroupDescription:
    """Group with committed offsets. ``state`` and ``type`` are Kafka's own words (org.apache.kafka.common.GroupState,
    GroupType): Stable, Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, NotReady, Dead, Unknown;
    Classic, Consumer (KIP-848), Streams (KIP-1071). A member of a streams group is assigned the source and repartition
    partitions of its active tasks.

    ``assignor`` is '' while there is none, and of an empty group. ``members`` is None where the group could not be
    described: not the same as no members. ``coordinator`` is a broker's id, None where nobody said.
    """

    name: str
    state: str
    type: str
    protocol_type: str
    assignor: str
    coordinator: int | None
    members: Sequence[GroupMember] | None
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """A group without committed offsets to judge: ``kind`` is Kafka's word for its type ("share", or one of a newer
    Kafka), or for its protocol where only that tells it apart ("connect"). ``state`` is Kafka's word.

    ``members`` and ``coordinator`` are those of a share group (``is_share``, KIP-932) as of ``GroupDescription``; None
    for any other.
    """

    name: str
    kind: str
    state: str
    is_share: bool = False
    coordinator: int | None = None
    members: Sequence[GroupMember] | None = None
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class GroupListing:
    """``errors``: brokers that did not list theirs, so that groups may be missing. ``others``: share groups, and those
    that only the list tells of.
    """

    groups: Mapping[str, GroupDescription]
    errors: Mapping[int, ItemError]
    taken_at: float
    others: Mapping[str, OtherGroup] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CommittedOffsets:
    """``offsets``: group → what it has committed; a partition without a commit is absent, never 0 and never −1.

    Each asked group is in ``offsets`` or in ``errors``, never in neither; one that was deleted meanwhile has an empty
    entry. ``taken_at``: when the first of them was read; all were read before ``finished_at``. A broker that is silent
    moves ``finished_at`` to the deadline: log ends that are read after that are by as much newer than the others'
    commits. Topics that the principal may not describe are left out by Kafka, without an error.

    A commit may lie beyond the log's end (a topic made anew, an unclean election) or before its start. A coordinator
    that has just taken over answers from its own high watermark, which may still be behind (CoordinatorLoaderImpl): for
    a moment an older commit, or none, without an error.
    """

    offsets: Mapping[str, Offsets]
    errors: Mapping[str, ItemError]
    taken_at: float
    finished_at: float


class ShareOffset(NamedTuple):
    """Share partition (KIP-932): ``start`` is its start offset, before which each record is acknowledged or archived;
    None as long as no record of it was read, and where Kafka has an error. ``lag``: records from there to the log end
    that are neither, those in flight included (KIP-1226); None where Kafka does not tell, as before 4.2.
    """

    start: int | None
    lag: int | None


@dataclass(frozen=True, slots=True)
class ShareOffsets:
    """``offsets``: share group → topic → partition → offset. Each asked group is in ``offsets`` or in ``errors``, and
    in both where a partition has an error.
    """

    offsets: Mapping[str, Mapping[str, Mapping[int, ShareOffset]]]
    errors: Mapping[str, ItemError]
    taken_at: float


class LogSpan(NamedTuple):
    """Log span of a partition, as its leader answered: ``start`` is the log start, ``end`` the offset of the next
    record that consumers can read (high watermark), in records; ``taken_at`` in seconds since the epoch.
    """

    start: int
    end: int
    taken_at: float


@dataclass(frozen=True, slots=True)
class LogSpans:
    """topic → partition → span. Each asked partition is in ``spans`` or in ``errors``."""

    spans: Mapping[str, Mapping[int, LogSpan]]
    errors: Mapping[str, Mapping[int, ItemError]]
    taken_at: float


class OpenTransaction(NamedTuple):
    """Transaction that is open in a partition: ``start`` is the offset of its first record, ``last_at`` the time of its
    producer's last record in seconds since the epoch, by the producer's clock; None where that is not known.
    Epochs are −1 where Kafka has none.
    """

    producer_id: int
    start: int
    last_at: float | None
    producer_epoch: int = -1
    coordinator_epoch: int = -1


class CoordinatedTransaction(NamedTuple):
    """Transaction as its coordinator has it. ``state`` is Kafka's word, "" where the coordinator forgot it meanwhile.
    ``partitions``: those in which it is to end yet.
    """

    transactional_id: str
    state: str
    partitions: frozenset[tuple[str, int]]


@dataclass(frozen=True, slots=True)
class CoordinatedTransactions:
    """``described``: producer → its transaction, None where a coordinator lists one and did not describe it.

    A producer that is absent has no transaction, provided that the answer is ``complete`` (all partitions of
    ``__transaction_state`` had a leader, the same before and after, and each broker told of those that it coordinates)
    and ``sees_all`` (the principal may describe a transactional id that nobody has, so Kafka leaves out none, unless an
    ACL denies single ones).
    """

    described: Mapping[int, CoordinatedTransaction | None]
    complete: bool
    sees_all: bool


class KafkaGroups(Protocol):
    """The reads of groups. Implementations are safe to call from several threads at once."""

    def groups(self, *, deadline: float) -> GroupListing:
        """All groups of the protocol types "consumer" and '' (offsets committed without one), with their members.

        Of the protocols classic, KIP-848 and KIP-1071 (streams), and share groups (KIP-932) with their members. Of
        others only what the list tells.
        """
        ...

    def share_offsets(self, groups: Collection[str], *, deadline: float) -> ShareOffsets:
        """Return start offsets and lag of these share groups, as DescribeShareGroupOffsets (90) answers them."""
        ...

    def committed(self, groups: Collection[str], *, deadline: float) -> CommittedOffsets:
        """Return the offsets that these groups committed, many groups to each request to each group's coordinator."""
        ...

    def group_permissions(self, groups: Collection[str], *, deadline: float) -> Mapping[str, frozenset[str] | None]:
        """Return what is granted on these consumer groups (KIP-430), by the names of AclOperation; None: not told.

        A group that does not exist, or that the principal may not describe, is left out.
        """
        ...

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        """Log start and end of partitions (topic → numbers), in one fan-out to their leaders.

        What is asked of ``committed`` before this can never lie behind it: lag is never negative by our doing.
        """
        ...

    def stable_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        """As ``log_spans``, but each ends at the last stable offset: consumers with read_committed stop there."""
        ...

    def unstable_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        """As ``log_spans``, but each begins at the last stable offset: records that consumers with read_committed
        cannot read yet. It is empty where no transaction is open.
        """
        ...

    def open_transactions(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[str, Mapping[int, Sequence[OpenTransaction]]]:
        """Return transactions that are open, by topic and partition, as DescribeProducers (61) answers, oldest first.

        A partition is absent where that is not known: it needs Read on the topic, and Kafka 2.8.
        """
        ...

    def transactional_ids(self, producers: Collection[int], *, deadline: float) -> Mapping[int, str] | None:
        """Return the transactional ids of producers whose transaction a coordinator lists as in progress, as
        ListTransactions (66) answers. None where a broker does not tell, so that one may be missing.

        Kafka leaves out transactional ids on which the principal has no Describe, without an error.
        """
        ...

    def coordinated_transactions(self, producers: Collection[int], *, deadline: float) -> CoordinatedTransactions:
        """Return what coordinators know of the transactions of producers, as ListTransactions (66) and
        DescribeTransactions (65) answer. Not complete before Kafka 3.0.
        """
        ...


class KafkaReads(KafkaAdmin, KafkaGroups, Protocol):
    """All that can be read of a cluster and of its groups."""


T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ItemChanged(Generic[T]):
    """Each item that was asked for is in exactly one of the three.

    ``refused``: it was certainly not done. Its ``code`` is Kafka's, or None where it was not sent (its broker could
    not be connected, while others of the same call could).
    ``lost``: its ``code`` is Kafka's where Kafka itself does not know (REQUEST_TIMED_OUT 7, UNKNOWN_SERVER_ERROR -1).
    ``guarded``: whether Kafka itself refused changes of the replication factor (AlterPartitionReassignments v1).
    """

    done: frozenset[T] = frozenset()
    refused: Mapping[T, ItemError] = field(default_factory=dict)
    lost: Mapping[T, ItemError] = field(default_factory=dict)
    guarded: bool = False


class ConfigOperation(IntEnum):
    """org.apache.kafka.clients.admin.AlterConfigOp.OpType (KIP-339)."""

    SET = 0
    DELETE = 1
    APPEND = 2
    SUBTRACT = 3


@dataclass(frozen=True, slots=True)
class ConfigChange:
    """``value`` is None for DELETE. One request names a key of a resource once (else INVALID_REQUEST 42)."""

    resource: ConfigResource
    key: str
    operation: ConfigOperation
    value: str | None = None

    @classmethod
    def set_or_delete(cls, resource: ConfigResource, key: str, value: str | None) -> ConfigChange:
        """Return the change after which a resource has this value of its own, None for no value of its own."""
        return cls(resource, key, ConfigOperation.DELETE if value is None else ConfigOperation.SET, value)


@dataclass(frozen=True, slots=True, order=True)
class ReplicaPlace:
    """A replica of a partition on a broker, to be put into one of its log directories."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition} on broker {self.broker}"


@dataclass(frozen=True, slots=True)
class NewTopic:
    """``replicas``: broker ids of each partition, the preferred leader first. ``configs``: key to value."""

    name: str
    replicas: tuple[tuple[int, ...], ...]
    configs: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NewPartitions:
    """Partitions that a topic gets: ``first`` is the number of the first one, ``replicas`` their brokers in order."""

    topic: str
    first: int
    replicas: tuple[tuple[int, ...], ...]


class KafkaChanges(Protocol):
    """The mutating calls. ``deadline`` in seconds from now, as for the reads."""

    def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None], *, deadline: float, keep_factor: bool
    ) -> ItemChanged[TopicPartition]:
        """AlterPartitionReassignments (45): new replicas in order, None cancels.

        ``keep_factor``: have Kafka refuse a change of the replication factor where it can (v1, Kafka 4.1+); where it
        cannot, ``guarded`` is false in the answer. Without it v1's flag allows the change.
        """
        ...

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[ConfigResource]:
        """IncrementalAlterConfigs (44); the changes of one resource are done all or none.

        ``validate_only``: Kafka says what it would do, and changes nothing.
        A broker's go to that broker, or, where it does not answer and the connection names controllers, to the active
        controller; a topic's to any broker.
        """
        ...

    def elect_leaders(
        self, partitions: Collection[TopicPartition], *, deadline: float, unclean: bool = False
    ) -> ItemChanged[TopicPartition]:
        """ElectLeaders (43): of the preferred replicas, or ``unclean``: of any live one where there is no leader.

        ELECTION_NOT_NEEDED (84) is done where it is preferred, and refused where it is unclean.
        """
        ...

    def create_topics(
        self, topics: Collection[NewTopic], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[str]:
        """CreateTopics (19), by name. ``validate_only``: Kafka says what it would do, and creates nothing.

        TOPIC_ALREADY_EXISTS (36) is refused, also where an earlier request whose answer was lost created the topic.
        """
        ...

    def create_partitions(
        self, topics: Collection[NewPartitions], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[str]:
        """CreatePartitions (37), by topic. Kafka gets the number of partitions in all, so it never adds them twice.

        INVALID_PARTITIONS (37) is refused, also where an earlier request whose answer was lost added them.
        """
        ...

    def delete_topics(self, topic_ids: Collection[str], *, deadline: float) -> ItemChanged[str]:
        """DeleteTopics (20), by topic id: a topic that was created again under the same name stays.

        UNKNOWN_TOPIC_ID (100) is refused, also where an earlier request whose answer was lost deleted the topic.
        """
        ...

    def place_replicas(self, places: Mapping[ReplicaPlace, str], *, deadline: float) -> ItemChanged[ReplicaPlace]:
        """AlterReplicaLogDirs (34): replica → directory.

        REPLICA_NOT_AVAILABLE (9) is done: the broker does not host it yet and keeps the preference.
        """
        ...

    def unregister_broker(self, broker: int, *, deadline: float) -> ItemChanged[int]:
        """UnregisterBroker (64). Kafka does so too where the broker is alive or hosts replicas: the caller looks.

        BROKER_ID_NOT_REGISTERED (102) is refused, also where an earlier request whose answer was lost did it.
        """
        ...


class KafkaClient(KafkaAdmin, KafkaChanges, Protocol):
    """A client that reads and changes."""


class KafkaGroupChanges(Protocol):
    """The mutating calls about single consumer groups, each sent to its coordinator, and the reads before them."""

    def describe_groups(self, groups: Collection[str], *, deadline: float) -> Mapping[str, GroupDescription]:
        """Return the consumer groups of these names; one that does not exist, or is of another type, is left out.

        ``members`` is None where the group could not be described.
        """
        ...

    def offsets_at(self, partitions: Mapping[str, Collection[int]], at_ms: int, *, deadline: float) -> LogSpans:
        """Return the spans from the first record with this time or a later one, as KIP-33 finds it by timestamp.

        ``start`` is the end where there is no such record. ``at_ms``: milliseconds since the epoch.
        """
        ...

    def commit_offsets(
        self, group: str, offsets: Mapping[TopicPartition, int], *, deadline: float
    ) -> ItemChanged[TopicPartition]:
        """OffsetCommit (8) by nobody: member "", generation −1, which Kafka takes for groups without members only.

        UNKNOWN_MEMBER_ID (25): the group has members. A group that does not exist would be created.
        """
        ...

    def delete_offsets(
        self, group: str, partitions: Collection[TopicPartition], *, deadline: float
    ) -> ItemChanged[TopicPartition]:
        """OffsetDelete (47). A partition without a committed offset is done.

        GROUP_SUBSCRIBED_TO_TOPIC (86): members read the topic. GROUP_ID_NOT_FOUND (69) is refused.
        """
        ...

    def delete_groups(self, groups: Collection[str], *, deadline: float) -> ItemChanged[str]:
        """DeleteGroups (42), with all committed offsets. NON_EMPTY_GROUP (68): the group has members.

        GROUP_ID_NOT_FOUND (69) is refused, also where an earlier request whose answer was lost deleted the group.
        """
        ...


class WholeClient(KafkaClient, KafkaGroups, KafkaGroupChanges, Protocol):
    """A client for everything that is asked of a cluster and its consumer groups."""


UNKNOWN_TOPIC_OR_PARTITION, TOPIC_AUTHORIZATION_FAILED = 3, 29
GROUP_ID_NOT_FOUND, ELECTION_NOT_NEEDED, BROKER_ID_NOT_REGISTERED = 69, 84, 102
TRANSACTIONS_TOPIC = "__transaction_state"
QUORUM_TOPIC = "__cluster_metadata"
"""The controllers' own log: it lies on the disks of a broker that is a controller too, and no list of topics has it."""
MOST_ASKED = 100


def hidden_topics(admin: KafkaAdmin, suspects: Iterable[str], *, deadline: float) -> list[str]:
    """Return the topics of ``suspects`` that are hidden, sorted; at most ``MOST_ASKED`` of them are looked at.

    Raises KafkaFailure.
    """
    names = sorted(name for name in suspects if name != QUORUM_TOPIC)[:MOST_ASKED]
    if not names:
        return []
    answer = admin.metadata(deadline=deadline, topics=names)
    return sorted(t.name for t in answer.topics if t.error is not None and t.error.code == TOPIC_AUTHORIZATION_FAILED)


def name_subjects(answer: ClusterMetadata) -> dict[str, TopicMetadata | None]:
    """Return topics by name: None for a name that no topic has. A topic that could not be read is left out."""
    return {
        topic.name: topic if topic.error is None else None
        for topic in answer.topics
        if topic.error is None or topic.error.code == UNKNOWN_TOPIC_OR_PARTITION
    }


def read_named_topics(admin: KafkaAdmin, names: Collection[str], *, deadline: float) -> dict[str, TopicMetadata | None]:
    """Read topics with one Metadata request, as ``name_subjects`` returns them. Raises KafkaFailure."""
    return name_subjects(admin.metadata(deadline=deadline, topics=sorted(names))) if names else {}


def hidden_message(hidden: list[str], *, all_of_them: bool = False) -> CodedMessage:
    """Return what is missing and what it costs."""
    shown = ", ".join(f"“{name}”" for name in hidden[:3])
    more = f" and {len(hidden) - 3} more topics" if len(hidden) > 3 else ""
    which = "all topics" if all_of_them else f"{shown}{more}"
    return coded(KafkaErrorCode.TOPICS_HIDDEN, which=which)


class ProbeFault(StrEnum):
    """Codes of why a partition could not be measured; the values are stored."""

    NO_LEADER = "no-leader"
    NOT_READABLE = "not-readable"
    NOT_WRITTEN = "not-written"
    NOT_CONSUMED = "not-consumed"


@dataclass(slots=True)
class PartitionProbe:
    """Measurement of one partition. ``leader`` and ``replicas`` are as metadata said before it, ids of brokers.

    ``written_s``: until the leader had the record on all in-sync replicas (acks=all). ``consumed_s``: until a consumer
    had it. Seconds on this machine's clock; None where it did not come to that, and then ``fault`` says why.
    ``refused`` is librdkafka's name of the error of the producer. ``epoch``: the leader epoch in which the
    consumed record was written (KIP-101); None where the record has none.
    """

    leader: int | None
    replicas: tuple[int, ...]
    written_s: float | None = None
    consumed_s: float | None = None
    fault: ProbeFault | None = None
    refused: str = ""
    epoch: int | None = None


@dataclass(frozen=True, slots=True)
class CanaryAnswer:
    """``partitions`` is empty for a topic that does not exist. ``taken_at``: seconds since the epoch.

    ``silence`` is librdkafka's name of the error where no broker answered: nothing is known of the topic then.
    """

    partitions: Mapping[int, PartitionProbe]
    taken_at: float
    silence: str = ""


@dataclass(frozen=True, slots=True)
class ConnectionSecurity:
    """How to connect. Secrets are in here: ``repr`` hides them.

    With OAUTHBEARER, user name and password are the ID and the secret of a client of ``oauth_endpoint``;
    ``oauth_extensions`` are SASL extensions (KIP-342), ``name=value`` separated by commas.
    """

    protocol: str = "PLAINTEXT"
    sasl_mechanism: str = ""
    sasl_username: str = ""
    sasl_password: str = field(default="", repr=False)
    ca_pem: str = field(default="", repr=False)
    certificate_pem: str = field(default="", repr=False)
    key_pem: str = field(default="", repr=False)
    check_hostname: bool = True
    oauth_endpoint: str = ""
    oauth_scope: str = ""
    oauth_extensions: str = ""


@dataclass(frozen=True, slots=True)
class ZooKeeperConnection:
    """How to reach the ensemble of a cluster. ``chroot``: the path below which Kafka keeps its znodes, '' for none.

    ``tls``: what verifies the servers and which certificate is shown to them; None for no TLS. ``kafka_id``: the id
    that the cluster must have there; '' while it is not known.
    """

    addresses: tuple[str, ...]
    chroot: str = ""
    username: str = ""
    password: str = field(default="", repr=False)
    tls: ConnectionSecurity | None = None
    networks: tuple[str, ...] = ()
    kafka_id: str = ""


@dataclass(frozen=True, slots=True)
class ClusterConnection:
    """Connection settings. ``version`` changes whenever an address or a credential does, and gives a fresh client.

    ``controller_servers``: host:port of the controllers' own listeners (KRaft), connected in the same way; empty where
    they cannot be reached. ``networks``: nothing outside of these is connected, whatever a name resolves to or a broker
    names; empty for everywhere. ``zookeeper``: of brokers without KRaft, where its address is known.
    """

    key: str
    version: int
    bootstrap_servers: tuple[str, ...]
    security: ConnectionSecurity = field(default_factory=ConnectionSecurity)
    client_id: str = "kafkadash"
    controller_servers: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    zookeeper: ZooKeeperConnection | None = None


def wire_thread(key: str) -> str:
    """Name of the thread that drives the sockets of a connection."""
    return f"kafka-wire-{key}"
