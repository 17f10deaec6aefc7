"""Clusters of the planner's bench, made straight as columns: lognormal sizes, Pareto topics, placed as Kafka places."""

from __future__ import annotations

import numpy as np

from kafkadash.planning.solver.demand import Flags, Ints, SolverAnswer, TopologyColumns
from kafkadash.planning.solver.kafka_placement import assign_replicas

BROKERS, RACKS, SEED = 300, 3, 36
USUAL_SIZE, SIGMA = 2e9, 1.8  # bytes; of the lognormal distribution of sizes
PARETO, MOST_IN_TOPIC = 1.1, 5_000


def even_racks(brokers: int = BROKERS) -> Ints:
    return np.arange(brokers) % RACKS


def uneven_racks(brokers: int = BROKERS) -> Ints:
    """40, 33 and 27 % of them."""
    return np.repeat(np.arange(RACKS), [brokers * 40 // 100, brokers * 33 // 100, brokers * 27 // 100])


def cluster(
    partitions: int, factor: int, rack_of: Ints, *, empty: int = 0, one_topic_each: bool = False
) -> TopologyColumns:
    """``empty``: so many of the last brokers hold nothing yet. Without topics of several partitions replicas are
    where chance puts them.
    """
    chance = np.random.default_rng(SEED)
    old = len(rack_of) - empty
    table = _table(rack_of[:old], factor)
    sizes = np.exp(chance.normal(np.log(USUAL_SIZE), SIGMA, partitions)).astype(np.int64)
    if one_topic_each:
        held = table[chance.integers(0, len(table), partitions)]
    else:
        topics = np.minimum((chance.pareto(PARETO, partitions) + 1).astype(np.int64), MOST_IN_TOPIC)
        topic_of = np.repeat(np.arange(partitions), topics)[:partitions]
        number = np.arange(partitions) - (np.cumsum(topics) - topics)[topic_of]
        start, shift = chance.integers(0, old, partitions), chance.integers(0, old, partitions)
        turns = shift[topic_of] + number // old
        held = table[turns % (old - 1) * old + (number + start[topic_of]) % old]
    return columns(held, sizes, rack_of)


def columns(held: Ints, sizes: Ints, rack_of: Ints) -> TopologyColumns:
    everybody = np.ones(len(rack_of), np.bool_)
    names = tuple(f"rack-{rack}" for rack in range(RACKS))
    return TopologyColumns(np.arange(len(rack_of)), rack_of, names, everybody, everybody, (), held, sizes)


def violated(cluster: TopologyColumns, share: float) -> TopologyColumns:
    """The same with one replica of so many partitions in the rack of another one."""
    chance = np.random.default_rng(SEED + 1)
    held = cluster.held.copy()
    rows = chance.permutation(len(held))[: int(share * len(held))]
    per_rack = len(cluster.ids) // RACKS
    moved = held[rows, 1] // RACKS + 1 + chance.integers(0, per_rack - 1, len(rows))
    held[rows, 2] = moved % per_rack * RACKS + cluster.rack_of[held[rows, 1]]
    return columns(held, cluster.sizes, cluster.rack_of)


def result(before: TopologyColumns, answer: SolverAnswer) -> TopologyColumns:
    """The cluster once it has been done; new replicas behind those that stay."""
    kept = np.where(answer.stays, before.held, -1)
    after = np.concatenate([kept, answer.new], axis=1)
    order = np.argsort(after < 0, axis=1, kind="stable")
    after = np.take_along_axis(after, order, axis=1)
    return columns(after[:, : int((after >= 0).sum(axis=1).max())], before.sizes, before.rack_of)


def these(brokers: Ints, count: int) -> Flags:
    return np.isin(np.arange(count), brokers)


def _table(rack_of: Ints, factor: int) -> Ints:
    """Every row that KIP-36 knows, by shift and place of the leader."""
    racks = {broker: f"rack-{rack}" for broker, rack in enumerate(rack_of.tolist())}
    many = len(racks)
    return assign_replicas(racks, many * (many - 1), factor, start=0, shift=0)
