"""A topology in columns: brokers by their ids, partitions by topic and number, racks by name.

Columns hold a million partitions in some hundred megabytes and are what the exact planner works on. Brokers that only
the replicas name (removed long ago) have a place too; nobody gives them anything.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Flags, Ints
from kafkadash.domain.planner.topology import Broker, Partition, Topic, Topology
from kafkadash.domain.rack_spread import racks_known

UNKNOWN = -1
"""In ``sizes``: nobody could read it."""


@dataclass(frozen=True, slots=True)
class Columns:
    """``ids`` B ascending. ``rack_of`` B; ``racks`` their names, '' where racks are not judged or it is not known.

    ``eligible`` and ``alive`` B as of ``Broker``. ``rows`` P: topic and partition. ``held`` P×W: places of brokers in
    the order of the replicas. ``sizes`` P: bytes, or ``UNKNOWN``. ``reckoned`` P: the weights, where they are known.
    """

    ids: Ints
    rack_of: Ints
    racks: tuple[str, ...]
    eligible: Flags
    alive: Flags
    rows: tuple[tuple[Topic, Partition], ...]
    held: Ints
    sizes: Ints
    reckoned: Ints | None = None

    def only(self, which: Flags) -> Columns:
        """These partitions (P flags); what a new replica of them costs is reckoned with all."""
        rows = tuple(row for row, chosen in zip(self.rows, which, strict=True) if chosen)
        return replace(self, rows=rows, held=self.held[which], sizes=self.sizes[which], reckoned=self.weights()[which])

    def places(self, brokers: Collection[int]) -> Flags:
        """B: whether a broker is one of those."""
        found: Flags = np.isin(self.ids, np.fromiter(brokers, np.int64, len(brokers)))
        return found

    def costs(self) -> Ints:
        """P: the same with 1 byte for an empty one, so that it does not move for nothing."""
        return np.maximum(self.weights(), 1)

    def weights(self) -> Ints:
        """P: bytes of a new replica; where they are not known the median of the topic's, of all, or 1."""
        if self.reckoned is not None:
            return self.reckoned
        known = self.sizes[self.sizes != UNKNOWN]
        if len(known) == len(self.sizes):
            return self.sizes
        usual = int(np.median(known)) if len(known) else 1
        costs = np.where(self.sizes == UNKNOWN, usual, self.sizes)
        begin = 0
        while begin < len(self.rows):
            end, topic = begin, self.rows[begin][0].name
            while end < len(self.rows) and self.rows[end][0].name == topic:
                end += 1
            part = self.sizes[begin:end]
            told = part[part != UNKNOWN]
            if 0 < len(told) < len(part):
                costs[begin:end][part == UNKNOWN] = int(np.median(told))
            begin = end
        return costs


def columns_of(topology: Topology, topics: Collection[str] | None = None, *, ignore_racks: bool = False) -> Columns:
    """The partitions of these topics, of all without them; of no topic that the topology does not have."""
    chosen = sorted(topology.topics if topics is None else topology.topics.keys() & set(topics))
    rows = tuple(
        (topology.topics[name], partition) for name in chosen for partition in _by_number(topology.topics[name])
    )
    width = max((len(partition.replicas) for _, partition in rows), default=0)
    brokers = np.full((len(rows), width), NOBODY, np.int64)
    for row, (_, partition) in enumerate(rows):
        brokers[row, : len(partition.replicas)] = partition.replicas
    named = np.unique(brokers[brokers != NOBODY])
    ids = np.union1d(np.fromiter(topology.brokers, np.int64, len(topology.brokers)), named)
    held = np.where(brokers == NOBODY, NOBODY, np.searchsorted(ids, brokers))
    known = [topology.brokers.get(int(id_)) for id_ in ids]
    racks, rack_of = _racks(known, blind=ignore_racks)
    sizes = [UNKNOWN if p.size_bytes is None else p.size_bytes for _, p in rows]
    return Columns(
        ids,
        rack_of,
        racks,
        np.array([broker is not None and broker.eligible for broker in known], np.bool_),
        np.array([broker is not None and broker.alive for broker in known], np.bool_),
        rows,
        held,
        np.array(sizes, np.int64),
    )


def _by_number(topic: Topic) -> Sequence[Partition]:
    """Mostly they are in this order already."""
    return sorted(topic.partitions, key=lambda partition: partition.partition)


def _racks(brokers: list[Broker | None], *, blind: bool) -> tuple[tuple[str, ...], Ints]:
    """Names, and the rack of each broker. Where racks are not judged all are in one, which has no name."""
    named = [broker.rack for broker in brokers if broker is not None and broker.alive]
    if blind or not racks_known(named):
        return ("",), np.zeros(len(brokers), np.int64)
    of_each = ["" if broker is None or broker.rack is None else broker.rack for broker in brokers]
    racks = tuple(sorted(set(of_each)))
    return racks, np.array([racks.index(rack) for rack in of_each], np.int64)
