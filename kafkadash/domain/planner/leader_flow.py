"""Who leads what, as evenly as the replicas allow, with as few changes as that takes: a flow of its own.

A partition is led by one of its replicas. Brokers are filled evenly first, at any price; then the present leader is
kept before a replica that has the data, and that before one that has still to copy it.
"""

from __future__ import annotations

import numpy as np

from kafkadash.domain.planner.demand import Flags, Ints
from kafkadash.domain.planner.flow import Arcs

KEPT, HAS_IT, NEW = 0, 1, 2


def leaders(replicas: Ints, costs: Ints, led: Ints, leads: Flags) -> Ints:
    """P: the column of ``replicas`` that should lead.

    ``replicas`` P×N: places of brokers, below 0 where there are fewer. ``costs`` P×N: ``KEPT``, ``HAS_IT`` or ``NEW``.
    ``led`` B: what each broker leads besides. ``leads`` B: brokers that the mean is of (alive); others lead as little
    as possible. Counts differ by one at most wherever that can be had.
    """
    count, brokers = len(replicas), len(led)
    rows, columns = np.nonzero(replicas >= 0)
    total = count + int(led[leads].sum())
    mean, more = divmod(total, max(1, int(leads.sum())))
    low = np.where(leads, np.maximum(0, mean - led), 0)
    high = np.where(leads, np.maximum(0, mean + bool(more) - led), 0)
    supplies = np.zeros(count + brokers + 1, np.int64)
    supplies[:count] = 1
    supplies[-1] = -count
    arcs = Arcs(supplies)
    arcs.add(rows, count + replicas[rows, columns], 1, costs[rows, columns])
    dear = NEW * count + 1  # one leader in a better place outweighs all that is kept
    sink = np.full(brokers, count + brokers)
    for room, price in ((low, 0), (high - low, dear), (np.full(brokers, count), 3 * dear)):
        arcs.add(count + np.arange(brokers), sink, room, price)
    chosen = arcs.solved()[0] > 0
    found = np.zeros(count, np.int64)
    found[rows[chosen]] = columns[chosen]
    return found
