"""Who gets which of the new replicas, so that disks fill evenly: largest first, each to the emptiest that may have it.

How many each broker gets is fixed, and what a replica costs is the same wherever it goes in its rack, so neither the
counts nor the bytes that move change.
"""

from __future__ import annotations

import heapq

import numpy as np

from kafkadash.domain.planner.demand import NOBODY, Answer, Demand, Ints


def by_size(demand: Demand, answer: Answer, beside: Ints) -> Answer:
    """``beside`` B: bytes on each broker of partitions that are not planned. A rack in which that way leaves a replica
    without a place stays as it was.
    """
    load = beside.astype(np.int64)
    rows, columns = np.nonzero(answer.stays)
    np.add.at(load, demand.held[rows, columns], demand.bytes[rows])
    new = answer.new.copy()
    rows, columns = np.nonzero(answer.new != NOBODY)
    racks = demand.rack_of[answer.new[rows, columns]]
    for rack in np.unique(racks):
        of_rack = racks == rack
        _deal(demand, answer, new, (rows[of_rack], columns[of_rack]), load)
    new.sort(axis=1)
    return Answer(answer.stays, new[:, ::-1])


def _deal(demand: Demand, answer: Answer, new: Ints, cells: tuple[Ints, Ints], load: Ints) -> None:
    """The cells of one rack in ``new``."""
    rows, columns = cells
    before = answer.new[rows, columns]
    slots = np.bincount(before, minlength=demand.brokers).tolist()
    heap = [(int(load[broker]), broker) for broker in np.flatnonzero(slots).tolist()]
    heapq.heapify(heap)
    sizes = demand.bytes[rows]
    found: dict[int, int] = {}
    taken: dict[int, set[int]] = {}
    for unit in np.lexsort((columns, rows, -sizes)).tolist():
        row = int(rows[unit])
        if row not in taken:
            # What may stay and does not would be no move at all there: the flow has already decided against it.
            taken[row] = set(demand.held[row][demand.may_stay[row] | answer.stays[row]].tolist())
        aside = []
        while heap and heap[0][1] in taken[row]:
            aside.append(heapq.heappop(heap))
        if not heap:
            return
        held, broker = heapq.heappop(heap)
        found[unit] = broker
        taken[row].add(broker)
        slots[broker] -= 1
        if slots[broker]:
            heapq.heappush(heap, (held + int(sizes[unit]), broker))
        for one in aside:
            heapq.heappush(heap, one)
    order = np.fromiter(found, np.int64, len(found))
    chosen = np.fromiter(found.values(), np.int64, len(found))
    new[rows[order], columns[order]] = chosen
    np.add.at(load, chosen, sizes[order])
