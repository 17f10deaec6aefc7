"""A million partitions placed as Kafka would."""

from __future__ import annotations

import time

from kafkadash.planning.solver.kafka_placement import assign_replicas
from tests.bench.bars import Bar, at_most

PARTITIONS, FACTOR, BROKERS, RACKS = 1_000_000, 3, 300, 3
TIMES, MOST_S = 5, 0.1


def measure() -> list[Bar]:
    racks = {broker: f"rack-{broker % RACKS}" for broker in range(BROKERS)}
    took = []
    for turn in range(TIMES):
        begun = time.perf_counter()
        assign_replicas(racks, PARTITIONS, FACTOR, start=turn, shift=turn)
        took.append(time.perf_counter() - begun)
    return [at_most("1M partitions as KIP-36 places them, best of 5", min(took), MOST_S, "s")]
