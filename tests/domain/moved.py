"""A cluster after a plan was run on it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Topology


def moved(cluster: Topology, rows: Iterable[Row]) -> Topology:
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
