"""The state of a fake Kafka cluster, and what can happen to it. No network here, and no clock but the caller's.

Nothing looks at every partition unless every partition is asked for: tests run this at 200,000 partitions.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Concatenate, ParamSpec, TypeVar

from kio.schema.errors import ErrorCode

from tests.contract.fake_configs import FakeConfigs
from tests.contract.fake_groups import FakeGroup, FakeGroups

P = ParamSpec("P")
T = TypeVar("T")
TopicPartition = tuple[str, int]

BYTES_PER_RECORD = 1000


class Mode(Enum):
    KRAFT = "kraft"
    ZOOKEEPER = "zookeeper"


class QuorumState(Enum):
    """How the controllers are: forwarded requests are answered, never answered, or answered with an error code."""

    LED = "led"
    SILENT = "silent"
    LEADERLESS = "leaderless"


@dataclass(slots=True)
class FakeReplica:
    log_start: int
    log_end: int
    directory: int = 0
    future_bytes: int | None = None  # a copy under way to another directory of the same broker
    local_start: int | None = None  # where records before are in tiered storage only
    last_tiered: int = -1

    @property
    def size(self) -> int:
        start = self.log_start if self.local_start is None else self.local_start
        return (self.log_end - start) * BYTES_PER_RECORD


@dataclass(slots=True)
class FakePartition:
    topic: str
    index: int
    order: list[int]
    isr: list[int]
    leader: int
    replicas: dict[int, FakeReplica]
    leader_epoch: int = 0
    adding: list[int] = field(default_factory=list)
    removing: list[int] = field(default_factory=list)

    @property
    def high_watermark(self) -> int:
        return min((self.replicas[broker].log_end for broker in self.isr), default=0)


@dataclass(slots=True)
class FakeTopic:
    name: str
    id: uuid.UUID
    internal: bool
    partitions: list[FakePartition]


@dataclass(slots=True)
class FakeBroker:
    id: int
    rack: str | None
    directories: tuple[str, ...]
    port: int = 0
    fenced: bool = False
    offline_directories: set[int] = field(default_factory=set)
    cordoned_directories: set[int] = field(default_factory=set)
    hosted: dict[TopicPartition, FakePartition] = field(default_factory=dict)
    preferred: dict[TopicPartition, int] = field(default_factory=dict)  # directories of replicas that are not here yet


@dataclass(slots=True)
class FakeVoter:
    """``caught_up_ms`` is on the leader's clock; −1 where the leader has not heard from it yet."""

    id: int
    directory_id: uuid.UUID
    log_end: int
    fetch_ms: int
    caught_up_ms: int


def _changes(method: Callable[Concatenate[ClusterModel, P], T]) -> Callable[Concatenate[ClusterModel, P], T]:
    """A change takes the lock and gives the model a new revision, by which answers are cached."""

    def changed(self: ClusterModel, /, *args: P.args, **kwargs: P.kwargs) -> T:
        with self.lock:
            self.revision += 1
            return method(self, *args, **kwargs)

    return changed


class ClusterModel:
    """Brokers, topics, reassignments in flight and controllers. Methods raise ValueError where Kafka would refuse."""

    def __init__(
        self,
        brokers: int = 3,
        *,
        racks: Sequence[str | None] = (),
        directories: int = 2,
        controllers: Sequence[int] = (101, 102, 103),
        mode: Mode = Mode.KRAFT,
    ) -> None:
        self.lock = threading.RLock()
        self.revision = 0
        self.mode = mode
        self.cluster_id = "fakeClusterAAAAAAAAAAA"
        self.brokers = {
            broker: FakeBroker(
                broker,
                racks[(broker - 1) % len(racks)] if racks else None,
                tuple(f"/fake/{broker}/d{n}" for n in range(directories)),
            )
            for broker in range(1, brokers + 1)
        }
        self.controllers = {node: FakeBroker(node, None, ()) for node in controllers}  # with listeners of their own
        self.topics: dict[str, FakeTopic] = {}
        self.moving: dict[TopicPartition, FakePartition] = {}
        self.configs = FakeConfigs()
        self.groups = FakeGroups()
        # (topic, partition) → producer id and offset of the first record of transactions that are open
        self.open_transactions: dict[TopicPartition, list[tuple[int, int]]] = {}
        self.written_after: dict[TopicPartition, int] = {}  # records that are written after each ListOffsets
        self.transactional_ids: dict[int, str] = {}  # of producers whose transaction a coordinator has in progress
        self.forgotten: set[TopicPartition] = set()  # partitions that a coordinator no longer has in a transaction
        # leaders that Metadata names, one after the other, before the true one (brokers hear of a change in turn)
        self.rumours: dict[TopicPartition, list[int]] = {}
        self.refusals: dict[str, tuple[ErrorCode, str | None]] = {}  # "topic-partition" → what 45 says of it
        # name → (lowest, highest level that brokers know, level in force or None)
        self.features: dict[str, tuple[int, int, int | None]] = {
            "metadata.version": (7, 30, 30),
            "kraft.version": (0, 1, 1),
            "group.version": (0, 1, None),
        }
        # (ELR, last known ELR) of partitions that have either, and how many partitions an answer describes
        self.eligible: dict[TopicPartition, tuple[Sequence[int], Sequence[int]]] = {}
        self.partitions_per_page = 2000
        self.quorum = QuorumState.LED
        self.controller = controllers[0]
        self.cluster_of_controllers = ""  # another one than the brokers', where their addresses lead elsewhere
        self.controller_epoch = 1
        self.metadata_end = 100
        self.voters = {
            node: FakeVoter(node, uuid.UUID(int=(node << 64) + 1), self.metadata_end, 1_000_000, 1_000_000)
            for node in controllers
        }
        self.observers = {
            node: FakeVoter(node, uuid.UUID(int=(node << 64) + 2), self.metadata_end, 1_000_000, 1_000_000)
            for node in self.brokers
        }

    # ---- topics and records

    @_changes
    def add_topic(
        self, name: str, assignment: Iterable[Sequence[int]], *, records: int = 0, internal: bool = False
    ) -> FakeTopic:
        placement = list(assignment)
        if len({len(order) for order in placement}) != 1 or name in self.topics:
            raise ValueError("INVALID_REPLICA_ASSIGNMENT")
        topic = self.topics[name] = FakeTopic(name, uuid.uuid5(uuid.NAMESPACE_URL, name), internal, [])
        self.grow_topic(name, placement, records=records)
        return topic

    @_changes
    def grow_topic(self, name: str, placement: Iterable[Sequence[int]], *, records: int = 0) -> None:
        """Add partitions with these replicas."""
        topic = self.topics[name]
        for index, order in enumerate(placement, start=len(topic.partitions)):
            replicas = {broker: FakeReplica(0, records, index % self._directories(broker)) for broker in order}
            partition = FakePartition(name, index, list(order), list(order), order[0], replicas)
            topic.partitions.append(partition)
            for broker in order:
                self.brokers[broker].hosted[name, index] = partition

    @_changes
    def delete_topic(self, name: str) -> None:
        self.configs.topics.pop(name, None)
        for partition in self.topics.pop(name).partitions:
            self.moving.pop((name, partition.index), None)
            for broker in partition.replicas:
                self.brokers[broker].hosted.pop((name, partition.index))

    @_changes
    def append(self, topic: str, index: int, records: int) -> None:
        """The leader gets records, and every other replica in sync has fetched them."""
        partition = self.partition(topic, index)
        for broker in partition.isr:
            partition.replicas[broker].log_end += records

    @_changes
    def drop_from_isr(self, topic: str, index: int) -> None:
        """The last replica in sync has fallen behind."""
        self.partition(topic, index).isr.pop()

    @_changes
    def append_to_leader(self, topic: str, index: int, records: int) -> None:
        """Records that no follower has fetched yet: the high watermark stays behind the leader's log end."""
        partition = self.partition(topic, index)
        partition.replicas[partition.leader].log_end += records

    @_changes
    def delete_records(self, topic: str, index: int, before: int) -> None:
        partition = self.partition(topic, index)
        for replica in partition.replicas.values():
            replica.log_start = before
            replica.log_end = max(replica.log_end, before)

    # ---- reassignments, as Kafka's class PartitionReassignmentReplicas reckons them

    @_changes
    def reassign(self, topic: str, index: int, target: Sequence[int]) -> None:
        partition = self.partition(topic, index)
        if not target or len(set(target)) != len(target) or not set(target) <= self.brokers.keys():
            raise ValueError("INVALID_REPLICA_ASSIGNMENT")
        current = partition.order
        original = [broker for broker in current if broker not in partition.adding]
        partition.adding = sorted(broker for broker in target if broker not in original)
        partition.removing = sorted(broker for broker in current if broker not in target)
        partition.order = [*target, *partition.removing]
        for broker in partition.adding:
            if broker not in partition.replicas:
                directory = self.brokers[broker].preferred.pop((topic, index), 0)
                self._host(partition, broker, FakeReplica(0, 0, directory))
        if partition.adding or partition.removing:
            self.moving[topic, index] = partition

    @_changes
    def fetch(self, topic: str, index: int, broker: int, log_end: int) -> None:
        """A follower has copied up to ``log_end``; it joins the ISR once it has everything that is committed."""
        partition = self.partition(topic, index)
        leader_end = partition.replicas[partition.leader].log_end
        if log_end > leader_end:
            raise ValueError("a follower cannot be ahead of its leader")
        partition.replicas[broker].log_end = log_end
        if broker not in partition.isr and log_end >= partition.high_watermark:
            partition.isr.append(broker)

    @_changes
    def complete(self, topic: str, index: int) -> None:
        partition = self.partition(topic, index)
        target = [broker for broker in partition.order if broker not in partition.removing]
        if not set(partition.adding) <= set(partition.isr):
            raise ValueError("an adding replica is not in sync yet")
        self._settle(partition, target)

    @_changes
    def cancel(self, topic: str, index: int) -> None:
        """Kafka keeps the order it has: replicas − adding, not the order from before."""
        partition = self.partition(topic, index)
        if (topic, index) not in self.moving:
            raise ValueError("NO_REASSIGNMENT_IN_PROGRESS")
        self._settle(partition, [broker for broker in partition.order if broker not in partition.adding])

    @_changes
    def change_leader(self, topic: str, index: int, leader: int) -> None:
        partition = self.partition(topic, index)
        if leader not in partition.isr:
            raise ValueError("only a replica in sync can lead")
        partition.leader, partition.leader_epoch = leader, partition.leader_epoch + 1

    @_changes
    def move_between_directories(self, topic: str, index: int, broker: int, copied: int) -> None:
        self.partition(topic, index).replicas[broker].future_bytes = copied

    @_changes
    def prefer_directory(self, topic: str, index: int, broker: int, directory: int) -> None:
        """A replica that is there begins to be copied into it; one that comes later will be put there."""
        replica = self.partition(topic, index).replicas.get(broker)
        if replica is None:
            self.brokers[broker].preferred[topic, index] = directory
        elif replica.directory != directory:
            replica.future_bytes = 0

    # ---- groups

    @_changes
    def add_group(self, /, name: str, **values: Any) -> FakeGroup:
        """``values`` of ``FakeGroup``; its coordinator follows from the name unless it is given."""
        return self.groups.add(name, self.brokers, **values)

    @_changes
    def commit(self, group: str, topic: str, offsets: Mapping[int, int]) -> None:
        self.groups.all[group].committed.setdefault(topic, {}).update(offsets)

    # ---- configs

    @_changes
    def set_config(self, owner: str | int | None, key: str, value: str | None) -> None:
        """Of a topic (its name), of a broker (its id), or None: of all brokers. The value None deletes it."""
        if isinstance(owner, str):
            entries = self.configs.topics.setdefault(owner, {})
        else:
            entries = self.configs.default if owner is None else self.configs.brokers.setdefault(owner, {})
        if value is None:
            entries.pop(key, None)
        else:
            entries[key] = value

    # ---- brokers and controllers

    @_changes
    def fence(self, broker: int) -> None:
        """What the controller does when a broker's session ends: out of every ISR, no leadership, not in Metadata."""
        self.brokers[broker].fenced = True
        for partition in self.brokers[broker].hosted.values():
            partition.isr = [b for b in partition.isr if b != broker] or partition.isr
            if partition.leader == broker:
                partition.leader = next((b for b in partition.isr if not self.brokers[b].fenced), -1)
                partition.leader_epoch += 1

    @_changes
    def unfence(self, broker: int) -> None:
        self.brokers[broker].fenced = False
        for partition in self.brokers[broker].hosted.values():
            if partition.leader == -1 and broker in partition.isr:
                partition.leader, partition.leader_epoch = broker, partition.leader_epoch + 1
            if broker not in partition.isr:
                partition.replicas[broker].log_end = partition.replicas[partition.leader].log_end
                partition.isr.append(broker)

    @_changes
    def set_port(self, broker: int, port: int) -> None:
        (self.brokers.get(broker) or self.controllers[broker]).port = port

    @_changes
    def lose_directory(self, broker: int, directory: int) -> None:
        self.brokers[broker].offline_directories.add(directory)

    @_changes
    def cordon_directory(self, broker: int, directory: int) -> None:
        self.brokers[broker].cordoned_directories.add(directory)

    @_changes
    def set_quorum(self, state: QuorumState) -> None:
        self.quorum = state

    @_changes
    def elect_controller(self, controller: int) -> None:
        """A new leader has not heard from the others yet (−1), and its own stamps are always *now*."""
        self.controller, self.controller_epoch = controller, self.controller_epoch + 1
        self.quorum = QuorumState.LED
        for voter in self.voters.values():
            if voter.id != controller:
                voter.log_end = voter.fetch_ms = voter.caught_up_ms = -1

    # ---- looking things up

    def partition(self, topic: str, index: int) -> FakePartition:
        return self.topics[topic].partitions[index]

    def live_brokers(self) -> list[FakeBroker]:
        return [broker for broker in self.brokers.values() if not broker.fenced]

    def _directories(self, broker: int) -> int:
        return len(self.brokers[broker].directories)

    def _host(self, partition: FakePartition, broker: int, replica: FakeReplica) -> None:
        partition.replicas[broker] = replica
        self.brokers[broker].hosted[partition.topic, partition.index] = partition

    def _settle(self, partition: FakePartition, order: list[int]) -> None:
        for broker in set(partition.replicas) - set(order):
            del partition.replicas[broker]
            del self.brokers[broker].hosted[partition.topic, partition.index]
        partition.order, partition.adding, partition.removing = order, [], []
        partition.isr = [broker for broker in partition.isr if broker in order]
        if partition.leader not in partition.isr:
            partition.leader = next((broker for broker in order if broker in partition.isr), -1)
        partition.leader_epoch += 1
        self.moving.pop((partition.topic, partition.index), None)
