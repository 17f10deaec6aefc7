"""Short names of racks for places with little room."""

from __future__ import annotations

from collections.abc import Collection, Mapping

LONGEST = 4


def short_labels(racks: Collection[str]) -> Mapping[str, str]:
    """What tells the racks apart: their names without the beginning that all share, where that leaves at most
    ``LONGEST`` characters of each ("eu-1a", "eu-1b" → "a", "b"). Else the whole names; nothing is invented."""
    names = set(racks)
    shared = _shared_beginning(names)
    ends = {name: name[len(shared) :].strip() for name in names}
    fit = len(set(ends.values())) == len(names) and all(0 < len(end) <= LONGEST for end in ends.values())
    return ends if fit else {name: name for name in names}


def _shared_beginning(names: Collection[str]) -> str:
    """Of all of them; what the first and the last in order share, all share."""
    first, last = min(names, default=""), max(names, default="")
    if first == last:
        return ""
    return first[: next((i for i, (a, b) in enumerate(zip(first, last, strict=False)) if a != b), len(first))]
