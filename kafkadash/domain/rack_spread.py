"""Whether the replicas of a partition are spread over the racks as evenly as they can be (KIP-36)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Spread:
    """How one partition lies. ``moves`` replicas must change their rack to make it even; 0 is no violation.

    ``crowded`` are racks that hold more than an even share, ``missing`` says how many more racks could hold one.
    """

    per_rack: Mapping[str, int]
    moves: int
    missing: int
    crowded: tuple[str, ...]

    @property
    def violates(self) -> bool:
        return self.moves > 0


def racks_known(racks: Iterable[str | None]) -> bool:
    """Spread is judged only where every broker names its rack and there are at least two racks."""
    named = set(racks)
    return None not in named and len(named) > 1


def spread(replicas: Sequence[int], rack_of: Mapping[int, str], rack_count: int) -> Spread:
    """Judges ``replicas`` on a cluster with ``rack_count`` racks.

    Even means that every rack holds at most its share rounded up, and that as many racks as possible hold one. A
    replica on a broker whose rack is not known (it left the cluster) counts for no rack and is not judged.
    """
    per_rack = Counter(rack_of[broker] for broker in replicas if broker in rack_of)
    total = sum(per_rack.values())
    share = -(-total // rack_count) if rack_count else total
    missing = max(0, min(total, rack_count) - len(per_rack))
    over = sum(held - share for held in per_rack.values() if held > share)
    moves = max(over, missing)
    crowded = tuple(sorted(rack for rack, held in per_rack.items() if held > share or (missing and held > 1)))
    return Spread(dict(per_rack), moves, missing, crowded if moves else ())
