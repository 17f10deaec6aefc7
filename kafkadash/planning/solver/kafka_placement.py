"""Kafka's own rack-aware placement of replicas (KIP-36; class AdminUtils), and the bytes that it would copy.

Kafka draws where to start and how far the followers are shifted; given both, the result here is the same, bit for bit.
A row depends only on the place of its leader in the list of brokers and on the shift modulo n − 1, so there are at most
n (n − 1) different ones: they are made all together, and each partition takes its own. Where racks differ in size, the
busiest broker may hold many times its share; therefore changes are planned otherwise.

``generated_bytes`` is a figure to compare with: ``kafka-reassign-partitions --generate`` places every partition of the
topics anew, wherever it is now. Kafka starts at random; here the start follows from the topic's name, so that the same
plan shows the same figure. The figure is one draw of many, so an approximation.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from kafkadash.changes.plan import PartitionMove
from kafkadash.core.racks import alternate_racks, racks_known
from kafkadash.planning.solver.demand import Ints
from kafkadash.planning.solver.request import ADD, BALANCE, DRAIN, REPLACE, PlanRequest
from kafkadash.planning.topology import ClusterTopology, PlannedTopic


def assign_replicas(
    racks: Mapping[int, str], partitions: int, factor: int, *, start: int, shift: int, first: int = 0
) -> Ints:
    """Partitions × factor: ids of brokers, the leader first.

    ``racks``: broker → rack; one name for all where racks are not judged. ``start`` and ``shift`` are what Kafka draws,
    0 to n − 1. ``first``: number of the first partition, above 0 where a topic grows. Raises ValueError for a factor
    that is not 1 to n.
    """
    brokers = np.array(alternate_racks(racks), np.int64)
    many = len(brokers)
    if not 1 <= factor <= many:
        raise ValueError(f"replication factor {factor} with {many} brokers")
    if many == 1:
        return np.repeat(brokers, partitions)[:, None]
    # One turn through the list of brokers after the other: the leaders of each are the same, and the shift is one more.
    turns = np.arange(first // many, (first + partitions) // many + 1)
    shifts = (shift + turns - (max(first, 1) - 1) // many) % (many - 1)
    of_shift = build_placement_table(racks, factor).reshape(many, many - 1, factor).transpose(1, 0, 2)
    rows = np.roll(of_shift, -start, axis=1)[shifts].reshape(-1, factor)
    found: Ints = rows[first % many : first % many + partitions]
    return found


def build_placement_table(racks: Mapping[int, str], factor: int) -> Ints:
    """n (n − 1) × factor: ids of brokers of every row there is, by the place of its leader and the shift."""
    brokers = np.array(alternate_racks(racks), np.int64)
    names = sorted(set(racks.values()))
    found: Ints = brokers[_rows(np.array([names.index(racks[int(b)]) for b in brokers]), len(names), factor)]
    return found


def _rows(rack_of: Ints, racks: int, factor: int) -> NDArray[np.int32]:
    """n (n − 1) × factor: places in the list, by the leader's place and the shift.

    Followers come from the list behind the leader; one is skipped while its rack is used and another is not, or while
    it holds a replica already.
    """
    many = len(rack_of)
    leaders, shifts = np.divmod(np.arange(many * (many - 1), dtype=np.int32), np.int32(many - 1))
    chosen = np.full((len(leaders), factor), -1, np.int32)
    chosen[:, 0] = leaders
    used = np.zeros((len(leaders), racks), np.bool_)
    used[np.arange(len(leaders)), rack_of[leaders]] = True
    placed = np.ones(len(leaders), np.int32)
    open_rows, tried = np.flatnonzero(placed < factor), 0
    while len(open_rows):
        step = 1 + (shifts[open_rows] * racks + tried) % (many - 1)
        candidate = (leaders[open_rows] + step) % many
        rack = rack_of[candidate]
        fits = ~used[open_rows, rack] | used[open_rows].all(axis=1)
        fits &= (chosen[open_rows] != candidate[:, None]).all(axis=1)
        row = open_rows[fits]
        chosen[row, placed[row]] = candidate[fits]
        used[row, rack[fits]] = True
        placed[row] += 1
        open_rows, tried = open_rows[placed[open_rows] < factor], tried + 1
    return chosen


def generated_bytes(rows: Sequence[PartitionMove], topology: ClusterTopology, request: PlanRequest) -> int | None:
    """Bytes of all new replicas, for the topics of the plan on the brokers that may hold replicas afterwards.

    None where it has no such proposal (other modes, mixed racks, fewer brokers than replicas), or sizes are missing.
    """
    if request.mode not in (ADD, DRAIN, REPLACE, BALANCE) or not rows:
        return None
    leaving = set(request.brokers) if request.mode in (DRAIN, REPLACE) else set()
    brokers = [b for b in topology.brokers.values() if b.eligible and b.id not in leaving]
    named = [broker.rack for broker in brokers]
    if not brokers or (None in named and any(named) and not request.ignore_racks):
        return None
    blind = request.ignore_racks or not racks_known(named)
    racks = {broker.id: "" if blind else broker.rack or "" for broker in brokers}
    tables: dict[int, Ints] = {}
    total = 0
    for name in sorted({row.topic for row in rows}):
        topic = topology.topics[name]
        factor = len(topic.partitions[0].replicas)
        if factor > len(brokers) or any(partition.size_bytes is None for partition in topic.partitions):
            return None
        if factor not in tables:
            tables[factor] = (
                build_placement_table(racks, factor)
                if len(brokers) > 1
                else np.array([alternate_racks(racks)], np.int64)
            )
        total += _count_copied_bytes(topic, tables[factor], len(brokers))
    return total


def _count_copied_bytes(topic: PlannedTopic, rows: Ints, brokers: int) -> int:
    drawn = zlib.crc32(topic.name.encode())
    start, shift = drawn % brokers, drawn // brokers % brokers
    total = 0
    for place, partition in enumerate(topic.partitions):
        leader = (place + start) % brokers
        row = leader * (brokers - 1) + (shift + place // brokers) % (brokers - 1) if brokers > 1 else 0
        total += (partition.size_bytes or 0) * len(set(rows[row].tolist()) - set(partition.replicas))
    return total
