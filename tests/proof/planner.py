"""Part "planner": random small clusters in every mode, planned once more by a solver that knows nothing of flows.

Nothing below what that solver calls the least can exist; nearly always the plan is exactly that, and where it is not
the proof that comes with it says how far it may be.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from tests.planning.other_solver import compared
from tests.planning.test_placement_and_disks import compare_rooms
from tests.proof.extent import Extent

CLUSTERS = 200
"""In each round."""
EQUAL, WITHIN = 0.99, 1.01


def prove(folder: Path, extent: Extent) -> bool:
    """600 clusters in three rounds."""
    del folder
    found: Counter[str] = Counter()
    below, far = [], []
    for seed in range(CLUSTERS * extent.rounds):
        for one in compared(seed):
            found["compared"] += 1
            found["equal"] += one.moved == one.least
            found["proven"] += one.moved == one.bound
            if one.moved < one.least or one.bound > one.least:
                below.append(one)
            if one.moved > WITHIN * one.bound:
                far.append(one)
    equal = found["equal"] / max(1, found["compared"])
    print(  # noqa: T201
        f"planner: {found['compared']:,} plans of {CLUSTERS * extent.rounds:,} clusters, {100 * equal:.2f} % move the "
        f"least there is, {found['proven']:,} say so themselves; {len(below)} below it, {len(far)} more than 1 % above "
        f"their bound"
    )
    for wrong in (below + far)[:10]:
        print(f"planner: {wrong}")  # noqa: T201
    rooms = compare_rooms(range(CLUSTERS * extent.rounds))
    print(  # noqa: T201
        f"planner: {rooms.judged:,} clusters with rooms of brokers, {rooms.fitting:,} in which all fits, "
        f"{rooms.repaired:,} after a repair; none is more over its rooms than it must be"
    )
    return bool(found["compared"] and rooms.repaired) and equal >= EQUAL and not below and not far
