"""What is in use on disks of which only the whole is told: the sizes of the replicas that are there."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from kafkadash.domain.planner.topology import Broker, Topology


def with_use_reckoned(topology: Topology) -> tuple[Topology, list[int]]:
    """The same with what is in use filled in where a broker tells ``disk_bytes`` alone, and these brokers' ids.

    A broker with a replica whose size is not known stays as it is: its use would be too low.
    """
    bare = {id_ for id_, broker in topology.brokers.items() if _is_bare(broker)}
    if not bare:
        return topology, []
    used: Counter[int] = Counter()
    unsized: set[int] = set()
    for topic in topology.topics.values():
        for partition in topic.partitions:
            if partition.size_bytes is None:
                unsized.update(partition.replicas)
            else:
                for broker in partition.replicas:
                    used[broker] += partition.size_bytes
    reckoned = sorted(bare - unsized)
    filled = {id_: _filled(topology.brokers[id_], used[id_]) for id_ in reckoned}
    return replace(topology, brokers={**topology.brokers, **filled}), reckoned


def _is_bare(broker: Broker) -> bool:
    return len(broker.dirs) == 1 and broker.dirs[0].used_bytes is None and broker.dirs[0].total_bytes is not None


def _filled(broker: Broker, used: int) -> Broker:
    return replace(broker, dirs=(replace(broker.dirs[0], used_bytes=used),))
