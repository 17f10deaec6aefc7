"""The port's client over the virtual cluster of ``tests.execution.executor_cluster``, with what may go wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from kafkadash.core.messages import as_message
from kafkadash.kafka.api import (
    ApiVersions,
    BrokerInfo,
    ClusterDescription,
    ClusterMetadata,
    ConfigChange,
    ConfigEntry,
    ConfigOperation,
    ConfigOrigin,
    ConfigResource,
    ConfigResourceType,
    EligibleReplicas,
    GrantedPermissions,
    ItemChanged,
    ItemError,
    KafkaFailure,
    KafkaUnreachable,
    ListedReassignments,
    LogDir,
    LogDirs,
    NewPartitions,
    NewTopic,
    NotSupported,
    OffsetKind,
    OffsetQuery,
    OngoingReassignment,
    PartitionMetadata,
    QuorumDescription,
    ReplicaOffset,
    ReplicaOffsets,
    ReplicaPlace,
    ReplicaSize,
    ResourceConfigs,
    TopicMetadata,
    TopicPartition,
)
from tests.execution.executor_cluster import Cluster

Targets = Mapping[TopicPartition, tuple[int, ...] | None]
CORDONED = "cordoned.log.dirs"
LISTS = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")


@dataclass
class ModelKafka:
    """Implements ``KafkaClient``. ``before`` and ``after`` get the name of each call; ``fail`` makes calls fail.

    ``lose``: what becomes of changes: None, or whether one whose answer is lost is done all the same;
    ``lose_configs``: the same of changes of configs. ``refuse``:
    partition → Kafka's words, ``refuse_topics``: those about new topics, ``refuse_configs``: those about config keys,
    ``refuse_places``: broker → those about its directories, whose answers ``lose_places`` loses; a ``forgetful`` one
    restarts before the replica comes. ``sent`` are all calls that changed something, in order. ``eligible``: ELR of
    partitions; None where no broker offers it. ``cordons``: whether brokers know ``cordoned.log.dirs``;
    ``file_cordons``: its values in their files. ``failed_dirs``: a directory of theirs that is offline.
    ``not_applied``: brokers that have not heard of the rates that are set.
    """

    model: Cluster
    cluster_id: str
    fail: dict[str, KafkaFailure] = field(default_factory=dict)
    lose: bool | None = None
    lose_configs: bool | None = None
    refuse: dict[TopicPartition, ItemError] = field(default_factory=dict)
    refuse_elections: ItemError | None = None
    refuse_topics: dict[str, ItemError] = field(default_factory=dict)
    refuse_configs: dict[str, ItemError] = field(default_factory=dict)
    sent: list[tuple[str, object]] = field(default_factory=list)
    configs: dict[ConfigResource, dict[str, str]] = field(default_factory=dict)
    lacks: frozenset[str] = frozenset()
    hidden: set[str] = field(default_factory=set)
    refuse_places: dict[int, ItemError] = field(default_factory=dict)
    lose_places: bool = False
    forgetful: bool = False
    placed: dict[ReplicaPlace, str] = field(default_factory=dict)
    eligible: dict[TopicPartition, EligibleReplicas] | None = None
    cordons: bool = False
    not_applied: Collection[int] = ()
    file_cordons: dict[int, str] = field(default_factory=dict)
    failed_dirs: dict[int, str] = field(default_factory=dict)
    before: Callable[[str], None] = lambda _: None
    after: Callable[[str], None] = lambda _: None

    # What reads.

    def list_reassignments(self, *, deadline: float) -> ListedReassignments:
        self._called("list_reassignments")
        moving = ((key, self.model.partitions[key]) for key in sorted(self.model.moving))
        rows = [OngoingReassignment(*key, p.replicas, tuple(p.adding), tuple(p.removing)) for key, p in moving]
        self.after("list_reassignments")
        return ListedReassignments(rows, time.time())

    def metadata(self, *, deadline: float, topics: Collection[str] | None = None) -> ClusterMetadata:
        self._called("metadata")
        names = sorted(self.model.topics) if topics is None else topics
        live = [broker for broker in self._brokers() if not broker.fenced]
        return ClusterMetadata(self.cluster_id, live, [self._topic(name) for name in names], time.time())

    def describe_cluster(self, *, deadline: float) -> ClusterDescription:
        self._called("describe_cluster")
        return ClusterDescription(self.cluster_id, 1, self._brokers(), time.time())

    def replica_offsets(self, queries: Collection[OffsetQuery], *, deadline: float) -> ReplicaOffsets:
        self._called("replica_offsets")
        offsets, errors = {}, {}
        for query in queries:
            partition = self.model.partitions.get((query.topic, query.partition))
            if partition is None or query.broker not in partition.replicas or not self.model.brokers[query.broker]:
                errors[query] = ItemError(as_message("does not have this replica"), 6, "NOT_LEADER_OR_FOLLOWER")
                continue
            left = partition.left.get(query.broker, 0.0)
            end = 0 if query.kind is OffsetKind.EARLIEST_LOCAL else int(partition.size - left)
            offsets[query] = ReplicaOffset(end, time.time())
        return ReplicaOffsets(offsets, errors)

    def eligible_replicas(
        self, partitions: Mapping[str, Collection[int]], *, deadline: float
    ) -> Mapping[TopicPartition, EligibleReplicas]:
        self._called("eligible_replicas")
        if self.eligible is None:
            raise NotSupported(as_message("not offered"))
        asked = [TopicPartition(topic, number) for topic, numbers in partitions.items() for number in numbers]
        return {each: self.eligible.get(each, EligibleReplicas((), ())) for each in asked}

    def permissions(self, *, deadline: float) -> GrantedPermissions:
        self._called("permissions")
        held = frozenset({"Alter", "AlterConfigs", "Describe", "DescribeConfigs"}) - self.lacks
        return GrantedPermissions(held, dict.fromkeys(self.model.topics, held), time.time())

    def describe_configs(
        self, resources: Collection[ConfigResource], *, deadline: float, keys: Collection[str] | None = None
    ) -> ResourceConfigs:
        self._called("describe_configs")
        found, errors = {}, {}
        for resource in resources:
            topic = resource.type is ConfigResourceType.TOPIC
            if topic and resource.name not in self.model.topics:
                errors[resource] = ItemError(as_message("does not exist"), 3, "UNKNOWN_TOPIC_OR_PARTITION")
            elif not topic and resource.name and not self.model.brokers.get(int(resource.name)):
                errors[resource] = ItemError(as_message("did not answer in time"))
            else:
                own = dict(self.configs.get(resource, {}))
                if not topic and resource.name and int(resource.name) in self.not_applied:
                    own = {key: value for key, value in own.items() if not key.endswith(".rate")}
                source = ConfigOrigin.DYNAMIC_TOPIC_CONFIG if topic else ConfigOrigin.DYNAMIC_BROKER_CONFIG
                if not resource.name:
                    source = ConfigOrigin.DYNAMIC_DEFAULT_BROKER_CONFIG
                entries = {key: ConfigEntry(key, value, source, False, False) for key, value in own.items()}
                if file := None if topic or not resource.name else self.file_cordons.get(int(resource.name)):
                    static = ConfigEntry(CORDONED, file, ConfigOrigin.STATIC_BROKER_CONFIG, False, False)
                    entries.setdefault(CORDONED, static)
                for key in LISTS if topic else (CORDONED,) if self.cordons else ():
                    entries.setdefault(key, ConfigEntry(key, "", ConfigOrigin.DEFAULT_CONFIG, False, False))
                found[resource] = {key: entry for key, entry in entries.items() if keys is None or key in keys}
        self.after("describe_configs")
        return ResourceConfigs(found, errors, time.time())

    def api_versions(self, *, deadline: float) -> ApiVersions:
        self._not_asked()

    def log_dirs(self, brokers: Iterable[int], *, deadline: float) -> LogDirs:
        """Each broker has every replica where it was told to put it, else in its first directory."""
        self._called("log_dirs")
        found = {}
        for broker in brokers:
            held = [key for key, partition in self.model.partitions.items() if broker in partition.replicas]
            lies = {key: self.placed.get(ReplicaPlace(broker, *key), "/data-1") for key in held}
            own = self.configs.get(ConfigResource.broker(broker), {}).get(CORDONED)
            cordoned = (self.file_cordons.get(broker, "") if own is None else own).split(",")
            found[broker] = [
                LogDir(
                    path,
                    [ReplicaSize(*key, 1, False) for key in held if lies[key] == path],
                    None,
                    None,
                    bool({"*", path} & set(cordoned)) if self.cordons else None,
                )
                for path in sorted({"/data-1", *lies.values()})
            ]
            if offline := self.failed_dirs.get(broker):
                error = ItemError(as_message("the disk failed"), 56, "KAFKA_STORAGE_ERROR")
                found[broker].append(LogDir(offline, [], None, None, False if self.cordons else None, error))
        return LogDirs(found, {}, time.time())

    def quorum(self, *, deadline: float) -> QuorumDescription:
        self._not_asked()

    def close(self) -> None:
        """Nothing is open."""

    # What changes.

    def alter_reassignments(
        self, targets: Targets, *, deadline: float, keep_factor: bool
    ) -> ItemChanged[TopicPartition]:
        self._called("alter_reassignments")
        self.sent.append(("alter_reassignments", dict(targets)))
        changed = self._changed(targets, self._alter)
        self.after("alter_reassignments")
        return changed

    def alter_configs(
        self, changes: Sequence[ConfigChange], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[ConfigResource]:
        call = "validate_configs" if validate_only else "alter_configs"
        self._called(call)
        if not validate_only:
            self.sent.append((call, tuple(changes)))
        by_resource: dict[ConfigResource, list[ConfigChange]] = {}
        for change in changes:
            by_resource.setdefault(change.resource, []).append(change)
        done, refused, lost = set(), {}, {}
        for resource, own in by_resource.items():
            of_broker = resource.type is ConfigResourceType.BROKER and resource.name
            if of_broker and not self.model.brokers.get(int(resource.name)):
                lost[resource] = ItemError(as_message("did not answer in time"))
                continue
            wrong = next((self.refuse_configs[change.key] for change in own if change.key in self.refuse_configs), None)
            if wrong is not None:
                refused[resource] = wrong
                continue
            if self.lose_configs is None:
                done.add(resource)
            else:
                lost[resource] = ItemError(as_message("did not answer in time"), 7, "REQUEST_TIMED_OUT")
            for change in own if not validate_only and self.lose_configs is not False else ():
                self._configure(change)
        self.after(call)
        return ItemChanged(frozenset(done), refused, lost)

    def elect_leaders(
        self, partitions: Collection[TopicPartition], *, deadline: float, unclean: bool = False
    ) -> ItemChanged[TopicPartition]:
        self._called("elect_leaders")
        self.sent.append(("elect_uncleanly" if unclean else "elect_leaders", tuple(partitions)))
        if self.refuse_elections is not None:
            return ItemChanged(refused=dict.fromkeys(partitions, self.refuse_elections))
        changed = self._changed(dict.fromkeys(partitions), self._elect_uncleanly if unclean else self._elect)
        self.after("elect_leaders")
        return changed

    def create_topics(
        self, topics: Collection[NewTopic], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[str]:
        self._called("create_topics")
        self.sent.append(("create_topics", tuple(topics)))
        done, refused, lost = set(), {}, {}
        for new in topics:
            if new.name in self.refuse_topics or new.name in self.model.topics:
                there = ItemError(as_message("exists"), 36, "TOPIC_ALREADY_EXISTS")
                refused[new.name] = self.refuse_topics.get(new.name, there)
                continue
            if self.lose is not False and not validate_only:
                self.model.add_topic(new.name, new.replicas)
                self.configs[ConfigResource.topic(new.name)] = dict(new.configs)
            if self.lose is None:
                done.add(new.name)
            else:
                lost[new.name] = ItemError(as_message("did not answer in time"))
        self.after("create_topics")
        return ItemChanged(frozenset(done), refused, lost)

    def create_partitions(
        self, topics: Collection[NewPartitions], *, deadline: float, validate_only: bool = False
    ) -> ItemChanged[str]:
        self._called("create_partitions")
        self.sent.append(("create_partitions", tuple(topics)))
        done, refused, lost = set(), {}, {}
        for new in topics:
            if new.first != self.model.number[new.topic]:
                refused[new.topic] = ItemError(as_message("has other partitions"), 37, "INVALID_PARTITIONS")
                continue
            if self.lose is not False and not validate_only:
                self.model.grow_topic(new.topic, new.replicas)
            if self.lose is None:
                done.add(new.topic)
            else:
                lost[new.topic] = ItemError(as_message("did not answer in time"))
        self.after("create_partitions")
        return ItemChanged(frozenset(done), refused, lost)

    def delete_topics(self, topic_ids: Collection[str], *, deadline: float) -> ItemChanged[str]:
        self._called("delete_topics")
        self.sent.append(("delete_topics", tuple(topic_ids)))
        done, refused, lost = set(), {}, {}
        for topic_id in topic_ids:
            name = next((name for name, own in self.model.topics.items() if own == topic_id), None)
            if name is None:
                refused[topic_id] = ItemError(as_message("does not exist"), 100, "UNKNOWN_TOPIC_ID")
                continue
            if self.lose is not False:
                del self.model.topics[name]
            if self.lose is None:
                done.add(topic_id)
            else:
                lost[topic_id] = ItemError(as_message("did not answer in time"))
        self.after("delete_topics")
        return ItemChanged(frozenset(done), refused, lost)

    def unregister_broker(self, broker: int, *, deadline: float) -> ItemChanged[int]:
        self._called("unregister_broker")
        self.sent.append(("unregister_broker", broker))
        if broker not in self.model.brokers:
            return ItemChanged(
                refused={broker: ItemError(as_message("not registered"), 102, "BROKER_ID_NOT_REGISTERED")}
            )
        if self.lose is not False:
            del self.model.brokers[broker]
        self.after("unregister_broker")
        if self.lose is not None:
            return ItemChanged(lost={broker: ItemError(as_message("timed out"), 7, "REQUEST_TIMED_OUT")})
        return ItemChanged(frozenset({broker}))

    def place_replicas(self, places: Mapping[ReplicaPlace, str], *, deadline: float) -> ItemChanged[ReplicaPlace]:
        self._called("place_replicas")
        self.sent.append(("place_replicas", dict(places)))
        if self.lose_places:
            lost = {place: ItemError(as_message(f"Broker {place.broker} did not answer in time.")) for place in places}
            return ItemChanged(lost=lost)
        refused = {p: self.refuse_places[p.broker] for p in places if p.broker in self.refuse_places}
        self.placed |= {place: path for place, path in places.items() if place not in refused and not self.forgetful}
        return ItemChanged(frozenset(places.keys() - refused.keys()), refused)

    # How.

    def _called(self, call: str) -> None:
        self.before(call)
        if not any(self.model.brokers.values()):
            raise KafkaUnreachable(as_message("No broker answers."))
        if failure := self.fail.get(call):
            raise failure

    def _changed(
        self, targets: Targets, do: Callable[[TopicPartition, tuple[int, ...] | None], ItemError | None]
    ) -> ItemChanged[TopicPartition]:
        done, refused, lost = set(), {}, {}
        for item, target in targets.items():
            if item in self.refuse:
                refused[item] = self.refuse[item]
                continue
            if self.lose is not None:
                if self.lose:
                    do(item, target)
                lost[item] = ItemError(as_message("did not answer in time"))
                continue
            error = do(item, target)
            if error:
                refused[item] = error
            else:
                done.add(item)
        return ItemChanged(frozenset(done), refused, lost)

    def _alter(self, item: TopicPartition, target: tuple[int, ...] | None) -> ItemError | None:
        key = item.topic, item.partition
        if target is None:
            return (
                None
                if self.model.cancel(key)
                else ItemError(as_message("nothing in flight"), 85, "NO_REASSIGNMENT_IN_PROGRESS")
            )
        if self.model.submit(key, target):
            return None
        return ItemError(as_message("does not exist"), 3, "UNKNOWN_TOPIC_OR_PARTITION")

    def _elect(self, item: TopicPartition, _: tuple[int, ...] | None) -> None:
        self.model.elect((item.topic, item.partition))

    def _elect_uncleanly(self, item: TopicPartition, _: tuple[int, ...] | None) -> ItemError | None:
        own = self.model.partitions[item.topic, item.partition]
        if own.leader is not None:
            return ItemError(as_message("has a leader"), 84, "ELECTION_NOT_NEEDED")
        own.leader = next(broker for broker in own.replicas if self.model.brokers[broker])
        own.isr = {own.leader}
        own.leader_epoch += 1
        return None

    def _configure(self, change: ConfigChange) -> None:
        own = self.configs.setdefault(change.resource, {})
        has = [pair for pair in own.get(change.key, "").split(",") if pair]
        given = (change.value or "").split(",")
        if change.operation is ConfigOperation.DELETE:
            own.pop(change.key, None)
        elif change.operation is ConfigOperation.SET:
            own[change.key] = change.value or ""
        elif change.operation is ConfigOperation.APPEND:
            own[change.key] = ",".join([*has, *(pair for pair in given if pair not in has)])
        else:
            own[change.key] = ",".join(pair for pair in has if pair not in given)

    def _brokers(self) -> list[BrokerInfo]:
        return [BrokerInfo(id_, "127.0.0.1", 9000 + id_, None, not alive) for id_, alive in self.model.brokers.items()]

    def _topic(self, name: str) -> TopicMetadata:
        if name in self.hidden:
            return TopicMetadata(
                name, "", False, [], ItemError(as_message("not authorized"), 29, "TOPIC_AUTHORIZATION_FAILED")
            )
        if name not in self.model.topics:
            return TopicMetadata(
                name, "", False, [], ItemError(as_message("does not exist"), 3, "UNKNOWN_TOPIC_OR_PARTITION")
            )
        partitions = [
            PartitionMetadata(
                number,
                p.leader,
                p.leader_epoch,
                p.replicas,
                tuple(sorted(p.isr)),
                tuple(b for b in p.replicas if not self.model.brokers.get(b)),
            )
            for (topic, number), p in self.model.partitions.items()
            if topic == name
        ]
        return TopicMetadata(name, self.model.topics[name], False, partitions)

    def _not_asked(self) -> NoReturn:
        raise AssertionError("a step does not ask this")
