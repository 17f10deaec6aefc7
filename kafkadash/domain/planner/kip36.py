"""Replicas of new topics as Kafka places them with racks (KIP-36; class AdminUtils, which also makes the proposals of
``kafka-reassign-partitions --generate``).

Kafka draws where to start and how far the followers are shifted; given both, this is what it would do, bit for bit. A
row depends on nothing but the place of its leader in the list of brokers and on the shift modulo n − 1, so there are at
most n (n − 1) different ones: they are made all together, and each partition takes its own. Where racks differ in size
the busiest broker may hold many times its share; that is why changes are planned otherwise.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kafkadash.domain.planner.demand import Ints


def alternated(racks: Mapping[int, str]) -> tuple[int, ...]:
    """Brokers by id within their racks, one of each rack in turn, racks by name, until none is left."""
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks, reverse=True):
        by_rack[racks[broker]].append(broker)
    waiting = [by_rack[rack] for rack in sorted(by_rack)]
    found: list[int] = []
    while any(waiting):
        found += [brokers.pop() for brokers in waiting if brokers]
    return tuple(found)


def assignment(
    racks: Mapping[int, str], partitions: int, factor: int, *, start: int, shift: int, first: int = 0
) -> Ints:
    """Partitions × factor: ids of brokers, the leader first.

    ``racks``: broker → rack; one name for all where racks are not judged. ``start`` and ``shift`` are what Kafka draws,
    0 to n − 1. ``first``: number of the first partition, above 0 where a topic grows. Raises ValueError for a factor
    that is not 1 to n.
    """
    brokers = np.array(alternated(racks), np.int64)
    many = len(brokers)
    if not 1 <= factor <= many:
        raise ValueError(f"replication factor {factor} with {many} brokers")
    if many == 1:
        return np.repeat(brokers, partitions)[:, None]
    # One turn through the list of brokers after the other: the leaders of each are the same, and the shift is one more.
    turns = np.arange(first // many, (first + partitions) // many + 1)
    shifts = (shift + turns - (max(first, 1) - 1) // many) % (many - 1)
    of_shift = table(racks, factor).reshape(many, many - 1, factor).transpose(1, 0, 2)
    rows = np.roll(of_shift, -start, axis=1)[shifts].reshape(-1, factor)
    found: Ints = rows[first % many : first % many + partitions]
    return found


def table(racks: Mapping[int, str], factor: int) -> Ints:
    """n (n − 1) × factor: ids of brokers of every row there is, by the place of its leader and the shift."""
    brokers = np.array(alternated(racks), np.int64)
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
