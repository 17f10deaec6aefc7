"""A cluster that moves replicas by a virtual clock, as Kafka's controller and its replication quota do it.

Reassignments follow Kafka (org.apache.kafka.controller.ReplicationControlManager): a target submitted
while another is in flight is reckoned from all replicas there are, so the original set submitted to a move in flight
makes a zombie; a cancel takes what was being added and leaves the order as it is.

One row of a run, and single looks at a cluster in which nothing else happens.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from kafkadash.changes.plan import PartitionMove, RunOptions
from kafkadash.execution.engine.state import (
    BrokerSeen,
    ClusterObservation,
    CopyWork,
    Key,
    ListedReassignment,
    PartitionSeen,
    RowState,
    RunMode,
    RunRow,
    TopicSeen,
)
from kafkadash.execution.engine.step import plan_step

START = datetime(2026, 11, 21, 3, tzinfo=UTC)


@dataclass
class Partition:
    replicas: tuple[int, ...]
    isr: set[int]
    leader: int | None
    size: float
    min_isr: int = 1
    leader_epoch: int = 5
    adding: set[int] = field(default_factory=set)
    removing: set[int] = field(default_factory=set)
    left: dict[int, float] = field(default_factory=dict)
    past: list[tuple[int, ...]] = field(default_factory=list)
    seen: tuple[object, PartitionSeen] | None = None

    @property
    def moving(self) -> bool:
        return bool(self.adding or self.removing)

    @property
    def zombie(self) -> bool:
        return bool(self.adding & self.removing)


class Cluster:
    """``rate``: bytes per second that a broker sends, and that it fetches, for reassignments."""

    def __init__(
        self, rows: Iterable[PartitionMove], sizes: dict[Key, float], brokers: Iterable[int], rate: float
    ) -> None:
        self.now = START
        self.rate = rate
        self.brokers = dict.fromkeys(brokers, True)
        self.partitions: dict[Key, Partition] = {}
        self.topics: dict[str, str] = {}
        self.moving: set[Key] = set()
        for row in rows:
            self.topics[row.topic] = row.topic_id
            key = (row.topic, row.partition)
            self.partitions[key] = Partition(row.current, set(row.current), row.current[0], sizes[key])
        self.number = Counter(topic for topic, _ in self.partitions)

    def add_topic(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        """Create an empty topic, as CreateTopics does."""
        self.topics[name] = f"id-of-{name}"
        self.grow_topic(name, replicas)

    def grow_topic(self, name: str, replicas: Sequence[Sequence[int]]) -> None:
        """Add empty partitions, as CreatePartitions does."""
        for number, row in enumerate(replicas, start=self.number[name]):
            self.partitions[name, number] = Partition(tuple(row), set(row), row[0], 0.0)
        self.number[name] += len(replicas)

    def submit(self, key: Key, target: tuple[int, ...]) -> bool:
        partition = self.partitions.get(key)
        if partition is None:
            return False
        there = set(partition.replicas)
        adding, removing = set(target) - there, there - set(target)
        if not (adding or removing or partition.moving):
            self._put(partition, target)
            return True
        if adding:
            partition.left |= dict.fromkeys(adding, partition.size)
            partition.adding = adding
        partition.removing = removing
        partition.replicas = (*target, *(b for b in partition.replicas if b in removing))
        partition.left = {b: left for b, left in partition.left.items() if b in partition.replicas}
        self.moving.add(key)
        self._end_if_copied(key)
        return True

    def cancel(self, key: Key) -> bool:
        """False: 85, nothing in flight."""
        partition = self.partitions.get(key)
        if partition is None or not partition.moving:
            return False
        self._settle(key, tuple(b for b in partition.replicas if b not in partition.adding))
        return True

    def elect(self, key: Key) -> None:
        partition = self.partitions[key]
        if partition.replicas[0] in partition.isr:
            partition.leader = partition.replicas[0]

    def delete(self, topic: str) -> None:
        self.topics.pop(topic, None)
        for key in [key for key in self.partitions if key[0] == topic]:
            del self.partitions[key]
            self.moving.discard(key)

    def create(self, topic: str, topic_id: str, number: int, replicas: tuple[int, ...]) -> None:
        self.topics[topic] = topic_id
        for place in range(number):
            self.partitions[topic, place] = Partition(replicas, set(replicas), replicas[0], 1e6)

    def stop(self, broker: int) -> None:
        self.brokers[broker] = False
        for partition in self.partitions.values():
            if len(partition.isr) > 1:
                partition.isr.discard(broker)
            if partition.leader == broker:
                partition.leader = min(partition.isr - {broker}, default=None)

    def start(self, broker: int) -> None:
        self.brokers[broker] = True
        for key, partition in self.partitions.items():
            if broker in partition.replicas and broker not in partition.adding:
                partition.isr.add(broker)
                partition.leader = broker if partition.leader is None else partition.leader
                self._end_if_copied(key)

    def pass_time(self, seconds: float) -> None:
        """Every broker shares what it may send and fetch among its copies; what one leaves is shared again."""
        self.now += timedelta(seconds=seconds)
        flows = [
            (partition, partition.leader, broker)
            for partition in (self.partitions[key] for key in self.moving)
            if partition.leader is not None and self.brokers[partition.leader]
            for broker, left in partition.left.items()
            if left > 0 and self.brokers[broker]
        ]
        sends = {broker: self.speed(broker, "out") * seconds for broker in self.brokers}
        fetches = {broker: self.speed(broker, "in") * seconds for broker in self.brokers}
        for _ in range(6):
            out, into = Counter(f[1] for f in flows), Counter(f[2] for f in flows)
            send = {b: sends[b] / n for b, n in out.items()}
            fetch = {b: fetches[b] / n for b, n in into.items()}
            for partition, leader, broker in flows:
                part = min(send[leader], fetch[broker], partition.left[broker])
                partition.left[broker] -= part
                sends[leader] -= part
                fetches[broker] -= part
            flows = [f for f in flows if f[0].left[f[2]] > 0 and sends[f[1]] > 1 and fetches[f[2]] > 1]
            if not flows:
                break
        for key in list(self.moving):
            partition = self.partitions[key]
            partition.isr.update(b for b, left in partition.left.items() if left <= 0 and self.brokers[b])
            self._end_if_copied(key)

    def speed(self, broker: int, way: str) -> float:
        """Bytes per second that the broker can take ("in") or send ("out") now."""
        return self.rate

    def look(self, keys: Iterable[Key] | None = None) -> ClusterObservation:
        wanted = self.partitions if keys is None else [key for key in keys if key in self.partitions]
        whole = all(self.brokers.values())
        return ClusterObservation(
            self.now,
            {name: TopicSeen(id_, self.number[name]) for name, id_ in self.topics.items()},
            {key: self._seen(self.partitions[key], whole) for key in wanted},
            {id_: BrokerSeen(alive) for id_, alive in self.brokers.items()},
        )

    def _seen(self, partition: Partition, whole: bool) -> PartitionSeen:
        """The same object as long as nothing moves: a look at 14,000 partitions is taken often."""
        if partition.moving or not whole:
            return self._new(partition)
        state = (partition.replicas, partition.leader, len(partition.isr), partition.min_isr)
        if partition.seen is None or partition.seen[0] != state:
            partition.seen = state, self._new(partition)
        return partition.seen[1]

    def _new(self, partition: Partition) -> PartitionSeen:
        listed = None
        if partition.moving:
            listed = ListedReassignment(partition.replicas, frozenset(partition.adding), frozenset(partition.removing))
        offline = frozenset(b for b in partition.replicas if not self.brokers[b])
        copied = frozenset(b for b, left in partition.left.items() if left <= 0)
        return PartitionSeen(
            partition.replicas, frozenset(partition.isr), partition.leader, partition.min_isr, offline, listed, copied
        )

    def _end_if_copied(self, key: Key) -> None:
        partition = self.partitions[key]
        target = tuple(b for b in partition.replicas if b not in partition.removing)
        if partition.moving and not partition.zombie and partition.isr.issuperset(target):
            self._settle(key, target)

    def _settle(self, key: Key, replicas: tuple[int, ...]) -> None:
        partition = self.partitions[key]
        partition.adding, partition.removing, partition.left = set(), set(), {}
        partition.isr &= set(replicas)
        if partition.leader not in replicas:
            partition.leader = next((b for b in replicas if b in partition.isr), None)
        self.moving.discard(key)
        self._put(partition, replicas)

    def _put(self, partition: Partition, replicas: tuple[int, ...]) -> None:
        partition.past.append(partition.replicas)
        partition.replicas = replicas


RATE = 2_000_000
OPTIONS = RunOptions(RATE, RATE, RATE)
ROW = PartitionMove("t", "id", 0, (3, 1, 2), (2, 5, 3))
KEY = ("t", 0)
IN_FLIGHT = PartitionSeen(
    (2, 5, 3, 1), frozenset({1, 2, 3}), 3, 2, listed=ListedReassignment((2, 5, 3, 1), frozenset({5}), frozenset({1}))
)


AT_REST = PartitionSeen((3, 1, 2), frozenset({1, 2, 3}), 3, 2)


def seen(partition: PartitionSeen | None = AT_REST, *, seconds: float = 0, **other: object) -> ClusterObservation:
    there = {KEY: partition} if partition else {}
    look = ClusterObservation(
        START + timedelta(seconds=seconds), {"t": TopicSeen("id", 8)}, there, {b: BrokerSeen() for b in range(1, 7)}
    )
    return replace(look, **other)  # type: ignore[arg-type]


def moving(row: PartitionMove = ROW, state: RowState = RowState.MOVING, **other: object) -> RunRow:
    before = START - timedelta(minutes=1)
    move = RunRow(
        CopyWork(row, 10), state, since=before, attempt=1, first_at=before, submitted_at=before, acted_at=before
    )
    return replace(move, **other)  # type: ignore[arg-type]


def after(move: RunRow, *looks: ClusterObservation, mode: RunMode = RunMode.EXECUTING) -> RunRow:
    """The row after these looks, with every request answered well."""
    for look in looks:
        taken = plan_step([move], look, OPTIONS, look.at, mode)
        move = taken.transitions[0].after if taken.transitions else move
    return move
