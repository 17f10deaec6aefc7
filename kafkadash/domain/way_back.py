"""What the way back of a plan that was run whole copies: the replicas that left come back from whoever leads then."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Topology


@dataclass(frozen=True, slots=True)
class WayBack:
    """Bytes at the sizes of the plan; None where a size is not known. ``longest_bytes`` bounds the time: the most that
    one broker receives or sends, or the largest single copy.
    """

    partitions: int
    copied_bytes: int | None
    longest_bytes: int | None


def way_back_of(rows: Iterable[Row], topology: Topology) -> WayBack:
    """Sizes are the leader's replicas in ``topology``; a partition that is not in it has no known size."""
    sizes = {(t.name, p.partition): p.size_bytes for t in topology.topics.values() for p in t.partitions}
    moved: Counter[tuple[str, int]] = Counter()
    partitions, copied, largest, unsized = 0, 0, 0, False
    for row in rows:
        partitions += 1
        if not row.removing:
            continue
        size = sizes.get((row.topic, row.partition))
        if size is None:
            unsized = True
            continue
        copied += size * len(row.removing)
        largest = max(largest, size)
        moved["out", row.target[0]] += size * len(row.removing)
        for broker in row.removing:
            moved["in", broker] += size
    if unsized:
        return WayBack(partitions, None, None)
    return WayBack(partitions, copied, max([largest, *moved.values()]))
