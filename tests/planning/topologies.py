"""Small clusters for tests of planning, and random ones.

A cluster after a plan was run on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hypothesis import strategies as st

from kafkadash.changes.plan import PartitionMove
from kafkadash.planning.topology import ClusterTopology, LogDirectory, PlannedBroker, PlannedPartition, PlannedTopic

RACKS = {1: "a", 2: "b", 3: "c", 4: "a", 5: "b", 6: "c"}
GB = 10**9


def broker(
    id_: int, rack: str | None = None, *, total: int | None = 1000, used: int | None = 100, **more: bool
) -> PlannedBroker:
    return PlannedBroker(id_, RACKS.get(id_) if rack is None else rack, dirs=(LogDirectory("/d", total, used),), **more)


def topology(
    placed: Mapping[str, Sequence[Sequence[int]]],
    brokers: Sequence[PlannedBroker] = (),
    *,
    size: int | None = 10,
    min_isr: int | None = 1,
    internal: Sequence[str] = (),
) -> ClusterTopology:
    """Topics of partitions with these replicas, all in sync and led by their first; brokers 1 to 6 in racks a, b, c."""
    own = brokers or [broker(id_) for id_ in RACKS]
    topics = {
        name: PlannedTopic(
            name,
            tuple(
                PlannedPartition(number, tuple(replicas), tuple(replicas), replicas[0], size, 1.0)
                for number, replicas in enumerate(partitions)
            ),
            f"id-{name}",
            name in internal,
            min_isr,
        )
        for name, partitions in placed.items()
    }
    return ClusterTopology({b.id: b for b in own}, topics)


def row(cluster: ClusterTopology, topic: str, partition: int, target: Sequence[int]) -> PartitionMove:
    """A row as a planner would make it."""
    current = next(p.replicas for p in cluster.topics[topic].partitions if p.partition == partition)
    return PartitionMove(topic, cluster.topics[topic].id, partition, current, tuple(target))


@st.composite
def clusters(draw: st.DrawFn, *, racks: bool | None = None) -> ClusterTopology:
    """Of 3 to 9 brokers, unevenly over up to 4 racks (or none), disks large enough."""
    ids = list(range(1, draw(st.integers(3, 9)) + 1))
    named = draw(st.booleans()) if racks is None else racks
    brokers = [
        PlannedBroker(
            id_,
            draw(st.sampled_from("abcd"[: max(2, len(ids) // 2)])) if named else None,
            dirs=(LogDirectory("/d", 10**9, draw(st.integers(0, 1000))),),
        )
        for id_ in ids
    ]
    topics = {}
    for name in ("t", "u")[: draw(st.integers(1, 2))]:
        factor = draw(st.integers(1, min(4, len(ids))))
        partitions = []
        for number in range(draw(st.integers(1, 12))):
            replicas = tuple(draw(st.permutations(ids))[:factor])
            size = draw(st.integers(0, 1000))
            partitions.append(PlannedPartition(number, replicas, replicas, replicas[0], size))
        topics[name] = PlannedTopic(name, tuple(partitions), f"id-{name}", min_isr=1)
    return ClusterTopology({b.id: b for b in brokers}, topics)


def moved(cluster: ClusterTopology, rows: Iterable[PartitionMove]) -> ClusterTopology:
    """Every row is done: all replicas are in sync, and the first leads."""
    targets = {(row.topic, row.partition): row.target for row in rows}
    topics = {}
    for name, topic in cluster.topics.items():
        partitions = []
        for partition in topic.partitions:
            target = targets.get((name, partition.partition))
            new = partition if target is None else replace(partition, replicas=target, isr=target, leader=target[0])
            partitions.append(new)
        topics[name] = replace(topic, partitions=tuple(partitions))
    return replace(cluster, topics=topics)
