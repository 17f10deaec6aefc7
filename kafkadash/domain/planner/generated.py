"""What Kafka's own ``kafka-reassign-partitions --generate`` would copy for the same: a figure to compare with.

It places every partition of the topics anew (KIP-36), wherever it is now. Where it starts is drawn by lot there; here
it follows from the topic's name, so that the same plan shows the same figure. It is one draw of many: about so much.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence

import numpy as np

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.demand import Ints
from kafkadash.domain.planner.kip36 import alternated, table
from kafkadash.domain.planner.request import ADD, BALANCE, DRAIN, REPLACE, PlanRequest
from kafkadash.domain.planner.topology import Topic, Topology
from kafkadash.domain.rack_spread import racks_known


def generated_bytes(rows: Sequence[Row], topology: Topology, request: PlanRequest) -> int | None:
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
            tables[factor] = table(racks, factor) if len(brokers) > 1 else np.array([alternated(racks)], np.int64)
        total += _copied(topic, tables[factor], len(brokers))
    return total


def _copied(topic: Topic, rows: Ints, brokers: int) -> int:
    drawn = zlib.crc32(topic.name.encode())
    start, shift = drawn % brokers, drawn // brokers % brokers
    total = 0
    for place, partition in enumerate(topic.partitions):
        leader = (place + start) % brokers
        row = leader * (brokers - 1) + (shift + place // brokers) % (brokers - 1) if brokers > 1 else 0
        total += (partition.size_bytes or 0) * len(set(rows[row].tolist()) - set(partition.replicas))
    return total
