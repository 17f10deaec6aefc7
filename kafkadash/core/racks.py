"""Short rack names for narrow places, and whether the replicas of a partition are spread evenly over racks (KIP-36)."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

LONGEST = 4


def short_labels(racks: Collection[str]) -> Mapping[str, str]:
    """Return labels that tell the racks apart: names without the beginning that all share, where that leaves at most
    ``LONGEST`` characters of each ("eu-1a", "eu-1b" → "a", "b"). Else the whole names; nothing is invented.
    """
    names = set(racks)
    shared = _shared_beginning(names)
    ends = {name: name[len(shared) :].strip() for name in names}
    fit = len(set(ends.values())) == len(names) and all(0 < len(end) <= LONGEST for end in ends.values())
    return ends if fit else {name: name for name in names}


def _shared_beginning(names: Collection[str]) -> str:
    """Return the beginning that all names share: the one that the first and the last in order share."""
    first, last = min(names, default=""), max(names, default="")
    if first == last:
        return ""
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]


@dataclass(frozen=True, slots=True)
class RackSpread:
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


def alternate_racks(racks: Mapping[int, str]) -> tuple[int, ...]:
    """Return brokers with their racks alternating, as Kafka lists them before it places replicas (KIP-36).

    Brokers by id within their racks, one of each rack in turn, racks by name, until none is left.
    """
    by_rack: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks, reverse=True):
        by_rack[racks[broker]].append(broker)
    waiting = [by_rack[rack] for rack in sorted(by_rack)]
    found: list[int] = []
    while any(waiting):
        found += [brokers.pop() for brokers in waiting if brokers]
    return tuple(found)


def judge_spread(replicas: Sequence[int], rack_of: Mapping[int, str], rack_count: int) -> RackSpread:
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
    return RackSpread(dict(per_rack), moves, missing, crowded if moves else ())
