"""A Kafka cluster in memory behind the port, for what collectors decide.

What the wire does is the contract suite's business; here only answers matter. Offsets are set by hand.

Consumer groups in memory behind their port, for what the collector decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from kafkadash.core.messages import as_message
from kafkadash.kafka.api import (
    CLUSTER_DEFAULT,
    ApiVersions,
    BrokerInfo,
    ClusterDescription,
    ClusterFeatures,
    ClusterMetadata,
    CommittedOffsets,
    ConfigEntry,
    ConfigOrigin,
    ConfigResource,
    ConfigResourceType,
    CoordinatedTransactions,
    EligibleReplicas,
    GrantedPermissions,
    GroupDescription,
    GroupListing,
    GroupMember,
    ItemError,
    KafkaFailure,
    ListedReassignments,
    LogDir,
    LogDirs,
    LogSpan,
    LogSpans,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    OngoingReassignment,
    OpenTransaction,
    OtherGroup,
    PartitionMetadata,
    QuorumDescription,
    QuorumReplica,
    ReplicaOffset,
    ReplicaOffsets,
    ReplicaSize,
    ResourceConfigs,
    ShareOffset,
    ShareOffsets,
    TopicMetadata,
    TopicPartition,
)

FEATURES = ClusterFeatures({"metadata.version": (7, 30), "group.version": (0, 1)}, {"metadata.version": 30}, 5)
TOPIC_DEFAULTS = {
    "min.insync.replicas": "1",
    "retention.ms": "604800000",
    "leader.replication.throttled.replicas": "",
    "follower.replication.throttled.replicas": "",
}
SILENT = ItemError(as_message("did not answer within 8 s"))
OWN_SOURCE = {
    ConfigResourceType.TOPIC: ConfigOrigin.DYNAMIC_TOPIC_CONFIG,
    ConfigResourceType.BROKER: ConfigOrigin.DYNAMIC_BROKER_CONFIG,
}
KRAFT_4_3 = {35: (1, 5), 45: (0, 1), 55: (0, 2), 60: (0, 2)}


@dataclass
class Log:
    """A partition: ``ends`` maps a broker to its replica's log end offset.

    ``local``: broker → where the log on its disk starts, if not at ``start``; ``tiered``: last tiered offset.
    """

    replicas: tuple[int, ...]
    leader: int | None
    isr: tuple[int, ...]
    adding: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    epoch: int = 1
    start: int = 0
    ends: dict[int, int] = field(default_factory=dict)
    size: int = 1_000_000
    offline: tuple[int, ...] = ()
    local: dict[int, int] = field(default_factory=dict)
    tiered: int = -1
    transactions: list[OpenTransaction] | None = field(default_factory=list)  # None: its leader does not tell them

    def offset(self, query: OffsetQuery) -> int:
        if query.kind is OffsetKind.EARLIEST_LOCAL:
            return self.local.get(query.broker, self.start)
        found = {OffsetKind.EARLIEST: self.start, OffsetKind.LATEST_TIERED: self.tiered}
        return found.get(query.kind, self.ends[query.broker])


@dataclass
class MemoryCluster:
    """Implements ``KafkaAdmin``. ``clock`` gives the time of every answer; ``fail`` makes every call fail.

    ``eligible``: ELR and last known ELR of partitions that have any, None where no broker offers it; ``described`` are
    the partitions that it was asked for.
    """

    clock: Callable[[], float]
    cluster_id: str = "kafka-1"
    racks: dict[int, str | None] = field(default_factory=lambda: {1: "a", 2: "a", 3: "b", 4: "b", 5: "c"})
    topics: dict[str, dict[int, Log]] = field(default_factory=dict)
    topic_ids: dict[str, str] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    fenced: set[int] = field(default_factory=set)
    tells_fenced: bool = True
    fail: KafkaFailure | None = None
    hidden: set[str] = field(default_factory=set)  # topics that may not be described
    fail_calls: dict[str, KafkaFailure] = field(default_factory=dict)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    denied: set[ConfigResource] = field(default_factory=set)
    versions: dict[int, dict[int, tuple[int, int]]] = field(default_factory=dict)
    features: dict[int, ClusterFeatures] = field(default_factory=dict)
    voters: list[QuorumReplica] | None = None
    observers: list[QuorumReplica] | None = None
    leader: int = 1
    leader_epoch: int = 3
    bad_directories: set[int] = field(default_factory=set)
    copying: set[int] = field(default_factory=set)
    eligible: dict[tuple[str, int], tuple[tuple[int, ...], tuple[int, ...]]] | None = field(default_factory=dict)
    described: list[tuple[str, int]] = field(default_factory=list)
    coordinated: CoordinatedTransactions = field(
        default_factory=lambda: CoordinatedTransactions({}, complete=True, sees_all=True)
    )
    granted: frozenset[str] = frozenset({"Describe", "DescribeConfigs", "Alter", "AlterConfigs", "Create", "Delete"})
    granted_on: dict[str, frozenset[str]] = field(default_factory=dict)  # topics with other rights
    not_described: set[str] = field(default_factory=set)
    before_answer: Callable[[str], None] = lambda _: None

    def add(self, topic: str, partition: int, *replicas: int, end: int = 1000) -> Log:
        self.topic_ids.setdefault(topic, str(UUID(int=len(self.topic_ids) + 1)))
        log = Log(replicas, replicas[0], replicas, ends=dict.fromkeys(replicas, end))
        self.topics.setdefault(topic, {})[partition] = log
        return log

    def move(self, topic: str, partition: int, *target: int) -> Log:
        """Starts a reassignment as the controller does: targets first, then what goes."""
        log = self.topics[topic][partition]
        before = tuple(r for r in log.replicas if r not in log.adding)
        log.adding = tuple(r for r in target if r not in before)
        log.removing = tuple(r for r in before if r not in target)
        log.replicas = target + log.removing
        for broker in log.adding:
            log.ends.setdefault(broker, 0)
        return log

    def complete(self, topic: str, partition: int) -> None:
        log = self.topics[topic][partition]
        log.replicas = tuple(r for r in log.replicas if r not in log.removing)
        log.isr, log.adding, log.removing, log.epoch = log.replicas, (), (), log.epoch + 1
        log.leader = log.leader if log.leader in log.replicas else log.replicas[0]

    def cancel(self, topic: str, partition: int) -> None:
        log = self.topics[topic][partition]
        log.replicas = tuple(r for r in log.replicas if r not in log.adding)
        log.adding, log.removing, log.epoch = (), (), log.epoch + 1

    def delete(self, topic: str) -> None:
        del self.topics[topic], self.topic_ids[topic]

    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        """Of a topic (its name), of a broker (its id), or None: of all brokers. The value None deletes it."""
        resource = ConfigResource.topic(owner) if isinstance(owner, str) else CLUSTER_DEFAULT
        if isinstance(owner, int):
            resource = ConfigResource.broker(owner)
        entries = self.configs.setdefault(resource, {})
        if value is None:
            del entries[key]
        else:
            entries[key] = value

    # The port.

    def api_versions(self, *, deadline: float) -> ApiVersions:
        self._answer("api_versions")
        answering = self.racks.keys() - self.silent
        offered = {broker: self.versions.get(broker, KRAFT_4_3) for broker in sorted(answering)}
        features = {broker: self.features.get(broker, FEATURES) for broker in offered}
        return ApiVersions(offered, self._silence(self.racks), self.clock(), features)

    def permissions(self, *, deadline: float) -> GrantedPermissions:
        self._answer("permissions")
        return GrantedPermissions(
            self.granted, {topic: self.granted_on.get(topic, self.granted) for topic in self.topics}, self.clock()
        )

    def group_permissions(self, groups: Collection[str], *, deadline: float) -> dict[str, frozenset[str] | None]:
        self._answer("group_permissions")
        told = [group for group in groups if group not in self.not_described]
        return {group: self.granted_on.get(group, self.granted) for group in told}

    def describe_cluster(self, *, deadline: float) -> ClusterDescription:
        self._answer("describe_cluster")
        return ClusterDescription(self.cluster_id, 1, self._brokers(), self.clock())

    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> ClusterMetadata:
        self._answer("metadata")
        names = sorted(self.topics.keys() - self.hidden) if topics is None else topics
        live = [b for b in self._brokers() if not b.fenced]
        return ClusterMetadata(self.cluster_id, live, [self._topic(name) for name in names], self.clock())

    def list_reassignments(self, *, deadline: float) -> ListedReassignments:
        self._answer("list_reassignments")
        rows = [
            OngoingReassignment(topic, p, log.replicas, log.adding, log.removing)
            for topic, partitions in self.topics.items()
            for p, log in partitions.items()
            if log.adding or log.removing
        ]
        return ListedReassignments(rows, self.clock())

    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> LogDirs:
        self._answer("log_dirs")
        asked = list(brokers)
        answers = {b: [self._directory(b)] for b in asked if b not in self.silent}
        return LogDirs(answers, self._silence(asked), self.clock())

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets:
        self._answer("replica_offsets")
        offsets, errors = {}, {}
        for query in queries:
            log = self.topics.get(query.topic, {}).get(query.partition)
            if query.broker in self.silent:
                errors[query] = SILENT
            elif log is None or query.broker not in log.ends:
                errors[query] = ItemError(as_message("does not have this replica"), 6, "NOT_LEADER_OR_FOLLOWER")
            else:
                offsets[query] = ReplicaOffset(log.offset(query), self.clock())
        return ReplicaOffsets(offsets, errors)

    def eligible_replicas(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[TopicPartition, EligibleReplicas]:
        self._answer("eligible_replicas")
        if self.eligible is None:
            raise NotSupported(as_message("not offered"))
        asked = [(topic, number) for topic, numbers in partitions.items() for number in numbers]
        self.described += asked
        return {TopicPartition(*key): EligibleReplicas(*self.eligible.get(key, ((), ()))) for key in asked}

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        self._answer("log_spans")
        spans: dict[str, dict[int, LogSpan]] = {}
        errors: dict[str, dict[int, ItemError]] = {}
        for topic, numbers in partitions.items():
            for number in numbers:
                log = self.topics.get(topic, {}).get(number)
                if log is None or log.leader is None:
                    errors.setdefault(topic, {})[number] = NOT_THERE
                elif log.leader in self.silent:
                    errors.setdefault(topic, {})[number] = SILENT
                else:
                    spans.setdefault(topic, {})[number] = LogSpan(log.start, log.ends[log.leader], self.clock())
        return LogSpans(spans, errors, self.clock())

    def unstable_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        read = self.log_spans(partitions, deadline=deadline)
        spans = {
            topic: {
                number: span._replace(
                    start=min([span.end, *(each.start for each in self.topics[topic][number].transactions or ())])
                )
                for number, span in own.items()
            }
            for topic, own in read.spans.items()
        }
        return LogSpans(spans, read.errors, read.taken_at)

    def open_transactions(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[str, Mapping[int, Sequence[OpenTransaction]]]:
        self._answer("open_transactions")
        told = {t: {n: self.topics[t][n].transactions for n in numbers} for t, numbers in partitions.items()}
        return {t: {n: own for n, own in numbers.items() if own is not None} for t, numbers in told.items()}

    def coordinated_transactions(self, producers: Collection[int], *, deadline: float) -> CoordinatedTransactions:
        self._answer("coordinated_transactions")
        return self.coordinated

    def quorum(self, *, deadline: float) -> QuorumDescription:
        self._answer("quorum")
        now = round(self.clock() * 1000)
        voters = self.voters or [QuorumReplica(1, "d1", 500, now, now)]
        observers = self.observers
        if observers is None:
            observers = [QuorumReplica(b, f"d{b}", 499, now - 100, now - 100) for b in sorted(self.racks) if b != 1]
        return QuorumDescription(self.leader, self.leader_epoch, 499, voters, observers, self.clock())

    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> ResourceConfigs:
        self._answer("describe_configs")
        found, errors = {}, {}
        for resource in resources:
            topic = resource.type is ConfigResourceType.TOPIC
            if resource in self.denied:
                code, name = (29, "TOPIC_AUTHORIZATION_FAILED") if topic else (31, "CLUSTER_AUTHORIZATION_FAILED")
                permission = f"DescribeConfigs on the {'topic' if topic else 'cluster'}"
                errors[resource] = ItemError(as_message(f"The principal needs {permission} ({name})."), code, name)
            elif topic and resource.name not in self.topics:
                errors[resource] = ItemError(as_message("does not exist"), 3, "UNKNOWN_TOPIC_OR_PARTITION")
            elif not topic and resource.name and int(resource.name) in self.silent:
                errors[resource] = SILENT
            else:
                entries = self._configs_of(resource)
                found[resource] = {name: e for name, e in entries.items() if keys is None or name in keys}
        return ResourceConfigs(found, errors, self.clock())

    def close(self) -> None:
        self.silent = set(self.racks)

    def _answer(self, call: str) -> None:
        self.before_answer(call)
        if failure := self.fail or self.fail_calls.get(call):
            raise failure

    def _configs_of(self, resource: ConfigResource) -> dict[str, ConfigEntry]:
        """As brokers do: the own value, else that of all brokers, else the default."""
        topic = resource.type is ConfigResourceType.TOPIC
        default = {k: (v, ConfigOrigin.DEFAULT_CONFIG) for k, v in TOPIC_DEFAULTS.items() if topic}
        of_all = {
            k: (v, ConfigOrigin.DYNAMIC_DEFAULT_BROKER_CONFIG)
            for k, v in self.configs.get(CLUSTER_DEFAULT, {}).items()
            if not topic or k in TOPIC_DEFAULTS
        }
        own = {}
        if resource != CLUSTER_DEFAULT:
            own = {k: (v, OWN_SOURCE[resource.type]) for k, v in self.configs.get(resource, {}).items()}
        merged = {**default, **of_all, **own}
        return {k: ConfigEntry(k, value, source, False, False) for k, (value, source) in merged.items()}

    def _silence(self, brokers: Iterable[int]) -> dict[int, ItemError]:
        return {b: SILENT for b in brokers if b in self.silent}

    def _brokers(self) -> list[BrokerInfo]:
        return [
            BrokerInfo(b, "127.0.0.1", 9000 + b, rack, b in self.fenced if self.tells_fenced else None)
            for b, rack in self.racks.items()
        ]

    def _topic(self, name: str) -> TopicMetadata:
        if name not in self.topics:
            return TopicMetadata(
                name, "", False, [], ItemError(as_message("does not exist"), 3, "UNKNOWN_TOPIC_OR_PARTITION")
            )
        if name in self.hidden:
            return TopicMetadata(
                name, "", False, [], ItemError(as_message("not authorized"), 29, "TOPIC_AUTHORIZATION_FAILED")
            )
        partitions = [
            PartitionMetadata(p, log.leader, log.epoch, log.replicas, log.isr, log.offline)
            for p, log in self.topics[name].items()
        ]
        return TopicMetadata(name, self.topic_ids[name], False, partitions)

    def _directory(self, broker: int) -> LogDir:
        sizes = [
            ReplicaSize(topic, p, log.size, False)
            for topic, partitions in self.topics.items()
            for p, log in partitions.items()
            if broker in log.replicas
        ]
        if broker in self.bad_directories:
            error = ItemError(
                as_message("Disk error when trying to access log file on the disk (KAFKA_STORAGE_ERROR)."), 56
            )
            return LogDir("/data", [], None, None, cordoned=False, error=error)
        if broker in self.copying:
            sizes.append(ReplicaSize(*next((s.topic, s.partition) for s in sizes), 10, True))
        return LogDir("/data", sizes, 10_000_000_000, 9_000_000_000, cordoned=broker == 5)


NOT_THERE = ItemError(as_message("does not exist"), 3, "UNKNOWN_TOPIC_OR_PARTITION")
REFUSED = ItemError(as_message("The principal needs Describe on the group (GROUP_AUTHORIZATION_FAILED)."), 30)


@dataclass
class MemoryGroup:
    """``committed``: topic → partition → offset. ``members``: client id → what it is assigned; None: not described."""

    committed: dict[str, dict[int, int]] = field(default_factory=dict)
    members: dict[str, dict[str, list[int]]] | None = field(default_factory=dict)
    state: str = ""
    type: str = "Classic"
    coordinator: int = 1


@dataclass
class MemoryGroups:
    """Implements ``KafkaGroups``. ``logs``: topic → partition → [start, end]. ``unread``: groups whose commits are
    refused; ``silent``: brokers that list nothing. ``before_answer`` is called with the name of each call.
    """

    clock: Callable[[], float]
    all: dict[str, MemoryGroup] = field(default_factory=dict)
    logs: dict[str, dict[int, list[int]]] = field(default_factory=dict)
    silent: set[int] = field(default_factory=set)
    unread: set[str] = field(default_factory=set)
    others: dict[str, OtherGroup] = field(default_factory=dict)
    shared: dict[str, dict[str, dict[int, ShareOffset]]] = field(default_factory=dict)
    transactions: dict[tuple[str, int], list[OpenTransaction]] = field(default_factory=dict)
    transactional: dict[int, str] | None = field(default_factory=dict)
    calls: list[str] = field(default_factory=list)
    before_answer: Callable[[str], None] = lambda _: None

    def add(self, name: str, committed: Mapping[str, Mapping[int, int]] | None = None, **more: object) -> MemoryGroup:
        group = MemoryGroup({t: dict(p) for t, p in (committed or {}).items()}, **more)  # type: ignore[arg-type]
        self.all[name] = group
        return group

    def log(self, topic: str, ends: Iterable[int], start: int = 0) -> None:
        self.logs[topic] = {number: [start, end] for number, end in enumerate(ends)}

    def groups(self, *, deadline: float) -> GroupListing:
        self._answer("groups")
        listed = {name: self._group(name, g) for name, g in self.all.items() if g.coordinator not in self.silent}
        return GroupListing(listed, dict.fromkeys(self.silent, SILENT), self.clock(), dict(self.others))

    def committed(self, groups: Collection[str], *, deadline: float) -> CommittedOffsets:
        self._answer("committed")
        read = [name for name in groups if name not in self.unread]
        offsets = {n: {t: dict(p) for t, p in self.all[n].committed.items()} if n in self.all else {} for n in read}
        errors = {name: REFUSED for name in groups if name in self.unread}
        return CommittedOffsets(offsets, errors, self.clock(), self.clock())

    def stable_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        self._answer("stable_spans")
        spans = self.log_spans(partitions, deadline=deadline)
        stable = {
            topic: {
                number: span._replace(
                    end=min([span.end, *(t.start for t in self.transactions.get((topic, number), ()))])
                )
                for number, span in own.items()
            }
            for topic, own in spans.spans.items()
        }
        return LogSpans(stable, spans.errors, spans.taken_at)

    def open_transactions(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[str, Mapping[int, Sequence[OpenTransaction]]]:
        self._answer("open_transactions")
        return {t: {n: self.transactions.get((t, n), []) for n in numbers} for t, numbers in partitions.items()}

    def transactional_ids(self, producers: Collection[int], *, deadline: float) -> Mapping[int, str] | None:
        self._answer("transactional_ids")
        return self.transactional

    def share_offsets(self, groups: Collection[str], *, deadline: float) -> ShareOffsets:
        self._answer("share_offsets")
        errors = {name: REFUSED for name in groups if name in self.unread}
        return ShareOffsets({n: self.shared.get(n, {}) for n in groups if n not in errors}, errors, self.clock())

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        self._answer("log_spans")
        spans: dict[str, dict[int, LogSpan]] = {}
        errors: dict[str, dict[int, ItemError]] = {}
        for topic, numbers in partitions.items():
            for number in numbers:
                log = self.logs.get(topic, {}).get(number)
                if log is None:
                    errors.setdefault(topic, {})[number] = NOT_THERE
                else:
                    spans.setdefault(topic, {})[number] = LogSpan(log[0], log[1], self.clock())
        return LogSpans(spans, errors, self.clock())

    def _answer(self, call: str) -> None:
        self.calls.append(call)
        self.before_answer(call)

    def _group(self, name: str, group: MemoryGroup) -> GroupDescription:
        members = None
        if group.members is not None:
            members = [GroupMember(f"{c}-1", c, "10.0.0.1", None, assigned) for c, assigned in group.members.items()]
        state = group.state or ("Stable" if members else "Empty")
        error = REFUSED if members is None else None
        return GroupDescription(name, state, group.type, "consumer", "range", group.coordinator, members, error)
