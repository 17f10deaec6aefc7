"""What kafkadash asks of a Kafka cluster: questions, answers and errors, independent of any client library.

Every call takes a ``deadline`` in seconds from now and returns or raises within that deadline plus half a second,
whatever the brokers do; an answer about 200,000 partitions takes about a second more to become values. What fails for
the call as a whole is a ``KafkaFailure``; what fails for one broker, one partition or one replica is data inside the
answer, so that a missing figure is never mistaken for zero.

Offsets are counted in records, sizes in bytes, ``taken_at`` in seconds since the epoch on the clock of
``kafkadash.kafka.clock``. A broker looked at some moment between our sending and its answer; ``taken_at`` is the middle
of the two, so that it is never off by more than half of the time that the question took. Of an answer that several
brokers gave together it is that of the oldest.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from typing import ClassVar, Protocol

from kafkadash.domain.errors import UserError
from kafkadash.domain.failure_kinds import FailureKind
from kafkadash.domain.messages import CodedMessage


class KafkaFailure(UserError):
    """A call that failed as a whole, with a message that a person on call can act on."""

    kind: ClassVar = FailureKind.OTHER


class Unreachable(KafkaFailure):
    """No broker accepted a connection: wrong address, closed port, or everything is down."""

    kind: ClassVar = FailureKind.UNREACHABLE


class DeadlineExceeded(KafkaFailure):
    """Something accepted the connection or the request and did not answer in time."""

    kind: ClassVar = FailureKind.DEADLINE_EXCEEDED


class AuthenticationFailed(KafkaFailure):
    """The brokers refused the credentials, or the TLS handshake failed."""

    kind: ClassVar = FailureKind.CREDENTIALS_REFUSED


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

    message: CodedMessage | str
    code: int | None = None
    name: str = ""

    @property
    def text(self) -> str:
        return str(self.message)


@dataclass(frozen=True, slots=True, order=True)
class TopicPartition:
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True, slots=True)
class Features:
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
    features: Mapping[int, Features] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Broker:
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
    brokers: Sequence[Broker]
    taken_at: float


@dataclass(frozen=True, slots=True)
class Partition:
    """One partition as Metadata tells it. ``leader`` is None when there is none; ``error`` keeps Kafka's code."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline: tuple[int, ...]
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class Topic:
    """``topic_id`` is the 36-character UUID text, or '' from clusters that have no topic ids (before 2.8)."""

    name: str
    topic_id: str
    internal: bool
    partitions: Sequence[Partition]
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class Metadata:
    cluster_id: str
    brokers: Sequence[Broker]
    topics: Sequence[Topic]
    taken_at: float


@dataclass(frozen=True, slots=True)
class OngoingReassignment:
    """One row of ListPartitionReassignments (KIP-455): targets first in ``replicas``, then the ones being removed."""

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
        """What a cancel at this moment goes back to (``replicas − adding``); the order is Kafka's, not the old one."""
        return tuple(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class Reassignments:
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
    """One directory; ``total_bytes`` and ``usable_bytes`` are None before Kafka 3.3, ``cordoned`` before 4.3."""

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
    """What a config belongs to (org.apache.kafka.common.config.ConfigResource.Type)."""

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
        return f"broker {self.name}" if self.name else "the cluster's default"


CLUSTER_DEFAULT = ConfigResource(ConfigResourceType.BROKER, "")


class ConfigSource(IntEnum):
    """Where a value comes from (org.apache.kafka.common.requests.DescribeConfigsResponse.ConfigSource).

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


@dataclass(frozen=True, slots=True)
class ConfigEntry:
    """A config in force. ``value`` is None where Kafka keeps it back (``sensitive``) or where there is none."""

    name: str
    value: str | None
    source: ConfigSource
    sensitive: bool
    read_only: bool


@dataclass(frozen=True, slots=True)
class Configs:
    """DescribeConfigs: each asked resource is in ``resources`` (config name → entry) or in ``errors``."""

    resources: Mapping[ConfigResource, Mapping[str, ConfigEntry]]
    errors: Mapping[ConfigResource, ItemError]
    taken_at: float


class OffsetKind(IntEnum):
    """The ``timestamp`` of ListOffsets: what to ask a replica for."""

    LATEST = -1
    EARLIEST = -2


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
class Quorum:
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
class Permissions:
    """What this principal may do, by Kafka's names of the operations, such as "DescribeConfigs" (KIP-430).

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

    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> Metadata:
        """All topics, or only the named ones; a named topic that does not exist comes back with its ``error``."""
        ...

    def list_reassignments(self, *, deadline: float) -> Reassignments: ...

    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> LogDirs: ...

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets: ...

    def quorum(self, *, deadline: float) -> Quorum: ...

    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> Configs:
        """The named ``keys``, or all of them. A broker answers for itself alone: one that is down is an error.

        A key that a resource does not have is absent (a broker's replication rates while they are not set).
        """
        ...

    def permissions(self, *, deadline: float) -> Permissions:
        """Raises NotSupported before Kafka 2.8."""
        ...

    def close(self) -> None: ...
