"""Input of the exact flow and of its proof, in columns: the topology, the selected partitions, the required result.

Partitions are numbered 0 … P−1, brokers 0 … B−1 and racks 0 … R−1 by their place; W is the largest number of replicas
that any partition has now. Brokers are ordered by id, partitions by topic and number, racks by name; a cluster without
racks is one rack. Columns hold a million partitions in some hundred megabytes. Brokers that only the replicas name
(removed long ago) have a place too, and get no replicas.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from kafkadash.core.racks import racks_known
from kafkadash.planning.solver.request import PlanRequest, choose_topics
from kafkadash.planning.topology import ClusterTopology, PlannedBroker, PlannedPartition, PlannedTopic

Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]

NOBODY = -1
"""In ``held``: this partition has fewer replicas."""


MOST_COST = 2**60
"""Above it, multiplied by the number of nodes, OR-tools refuses costs (BAD_COST_RANGE)."""


@dataclass(frozen=True, slots=True)
class PlacementDemand:
    """``bytes`` P: what a new replica costs. ``factors`` P: replicas at the end. ``held`` P×W: who has one now.

    ``may_stay`` and ``must_stay`` P×W say it of each of those. ``rack_of`` B; ``receives`` B: may be given new ones.
    ``least`` and ``most`` B: replicas at the end. ``rack_least`` and ``rack_most`` P×R: replicas of a partition in a
    rack at the end.
    """

    bytes: Ints
    factors: Ints
    held: Ints
    may_stay: Flags
    must_stay: Flags
    rack_of: Ints
    receives: Flags
    least: Ints
    most: Ints
    rack_least: Ints
    rack_most: Ints

    @property
    def partitions(self) -> int:
        return len(self.bytes)

    @property
    def brokers(self) -> int:
        return len(self.rack_of)

    @property
    def racks(self) -> int:
        return int(self.rack_least.shape[1])

    @property
    def nodes(self) -> int:
        """Number of nodes of the flow network, if no partition is left out: see ``flow``."""
        return self.partitions * (1 + self.racks) + self.racks + self.brokers + 1

    @property
    def unit(self) -> int:
        """Costs are rounded to multiples of so many bytes, which keeps them in the range that OR-tools takes."""
        largest = int(self.bytes.max()) if self.partitions else 0
        return max(1, -(-largest * self.nodes // MOST_COST))

    @property
    def receivers(self) -> Ints:
        """Brokers that may be given new replicas."""
        return np.flatnonzero(self.receives)

    @property
    def pooled(self) -> Flags:
        """R: racks with so many receivers that no partition can need all of them; there a new replica is anybody's."""
        several = np.bincount(self.rack_of[self.receives], minlength=self.racks)
        enough: Flags = several > (int(self.factors.max()) if self.partitions else 0)
        return enough

    @property
    def settled(self) -> Flags:
        """P: partitions that are as they should be if all replicas stay that may."""
        in_racks = self.stayed_in_racks(self.may_stay)
        whole = np.count_nonzero(self.may_stay, axis=1) == self.factors
        fits: Flags = whole & ((in_racks >= self.rack_least) & (in_racks <= self.rack_most)).all(axis=1)
        return fits

    def only(self, which: Flags | Ints | slice) -> PlacementDemand:
        """Some of the partitions; the bounds of brokers are still those of all."""
        return replace(
            self,
            bytes=self.bytes[which],
            factors=self.factors[which],
            held=self.held[which],
            may_stay=self.may_stay[which],
            must_stay=self.must_stay[which],
            rack_least=self.rack_least[which],
            rack_most=self.rack_most[which],
        )

    def stayed_in_racks(self, stays: Flags) -> Ints:
        """P×R: how many of the replicas that stay are in each rack."""
        return self.in_racks(np.where(stays, self.held, NOBODY))

    def in_racks(self, brokers: Ints) -> Ints:
        """P×R: how many of these brokers (P×N, ``NOBODY`` where fewer) are in each rack."""
        rows, columns = np.nonzero(brokers >= 0)
        places = rows * self.racks + self.rack_of[brokers[rows, columns]]
        return np.bincount(places, minlength=len(brokers) * self.racks).reshape(len(brokers), self.racks)


@dataclass(frozen=True, slots=True)
class SolverAnswer:
    """``stays`` P×W: which of the replicas held now stay. ``new`` P×N: brokers that get one, ``NOBODY`` where fewer."""

    stays: Flags
    new: Ints

    def moved(self, demand: PlacementDemand) -> int:
        """Bytes of all new replicas."""
        many: Ints = np.count_nonzero(self.new != NOBODY, axis=1)
        return int((many * demand.bytes).sum())

    def counts(self, demand: PlacementDemand) -> Ints:
        """B: replicas at the end."""
        kept = np.bincount(demand.held[self.stays], minlength=demand.brokers)
        return kept + np.bincount(self.new[self.new != NOBODY], minlength=demand.brokers)


UNKNOWN = -1
"""In ``sizes``: nobody could read it."""


@dataclass(frozen=True, slots=True)
class TopologyColumns:
    """``ids`` B ascending. ``rack_of`` B; ``racks`` their names, '' where racks are not judged or it is not known.

    ``eligible`` and ``alive`` B as of ``PlannedBroker``. ``rows`` P: topic and partition. ``held`` P×W: places of
    brokers in the order of the replicas. ``sizes`` P: bytes, or ``UNKNOWN``. ``reckoned`` P: the weights, where they
    are known.
    """

    ids: Ints
    rack_of: Ints
    racks: tuple[str, ...]
    eligible: Flags
    alive: Flags
    rows: tuple[tuple[PlannedTopic, PlannedPartition], ...]
    held: Ints
    sizes: Ints
    reckoned: Ints | None = None

    def only(self, which: Flags) -> TopologyColumns:
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


def columns_of(
    topology: ClusterTopology, topics: Collection[str] | None = None, *, ignore_racks: bool = False
) -> TopologyColumns:
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
    racks, rack_of = _index_racks(known, blind=ignore_racks)
    sizes = [UNKNOWN if p.size_bytes is None else p.size_bytes for _, p in rows]
    return TopologyColumns(
        ids,
        rack_of,
        racks,
        np.array([broker is not None and broker.eligible for broker in known], np.bool_),
        np.array([broker is not None and broker.alive for broker in known], np.bool_),
        rows,
        held,
        np.array(sizes, np.int64),
    )


def _by_number(topic: PlannedTopic) -> Sequence[PlannedPartition]:
    """Mostly they are in this order already."""
    return sorted(topic.partitions, key=lambda partition: partition.partition)


def _index_racks(brokers: list[PlannedBroker | None], *, blind: bool) -> tuple[tuple[str, ...], Ints]:
    """Names, and the rack of each broker. Where racks are not judged all are in one, which has no name."""
    named = [broker.rack for broker in brokers if broker is not None and broker.alive]
    if blind or not racks_known(named):
        return ("",), np.zeros(len(brokers), np.int64)
    of_each = ["" if broker is None or broker.rack is None else broker.rack for broker in brokers]
    racks = tuple(sorted(set(of_each)))
    return racks, np.array([racks.index(rack) for rack in of_each], np.int64)


def select_partitions(columns: TopologyColumns, request: PlanRequest) -> Flags:
    """P: whether the topic of a partition is one that the request names. Raises BadPattern."""
    internal = frozenset[str]() if request.internal else {topic.name for topic, _ in columns.rows if topic.internal}
    names = frozenset(choose_topics(request, {topic.name for topic, _ in columns.rows}, internal))
    return np.fromiter((topic.name in names for topic, _ in columns.rows), np.bool_, len(columns.rows))


def find_moving(columns: TopologyColumns) -> Flags:
    """P: whether a partition is being reassigned already."""
    return np.fromiter((partition.moving for _, partition in columns.rows), np.bool_, len(columns.rows))
