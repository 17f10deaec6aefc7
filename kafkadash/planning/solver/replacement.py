"""Other brokers in the place of those that one partition does not get to."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from kafkadash.planning.topology import PlannedBroker


def replace_lost(
    current: Collection[int],
    target: Sequence[int],
    lost: Collection[int],
    brokers: Mapping[int, PlannedBroker],
    *,
    disk_limit: float,
) -> tuple[int, ...] | None:
    """``target`` with an eligible broker in the place of each in ``lost``; None where there are not enough of them.

    Those of ``current`` that the move leaves are not among them: to stay there is no move. The rack of the one it
    replaces comes first, then one that no other replica is in; among those the most room below ``disk_limit`` (0 to
    1), where that is known, then the lowest id.
    """
    found = list(target)
    out = {*lost, *current, *target}
    for place, broker in enumerate(target):
        if broker in lost:
            free = [b for b in brokers.values() if b.eligible and b.id not in out and b.id not in found]
            if not free:
                return None
            rack = _rack(broker, brokers)
            others = {_rack(id_, brokers) for at, id_ in enumerate(found) if at != place}
            found[place] = _choose_best(free, rack, others, disk_limit)
    return tuple(found)


def lost_of(current: Iterable[int], target: Sequence[int], brokers: Mapping[int, PlannedBroker]) -> frozenset[int]:
    """Which of the target are to be replaced: those that are away or fenced; where none is, all it is copied to."""
    offline = frozenset(id_ for id_ in target if id_ not in brokers or not brokers[id_].up)
    return offline or frozenset(target) - frozenset(current)


def _choose_best(
    free: Iterable[PlannedBroker], rack: str | None, others: Collection[str | None], disk_limit: float
) -> int:
    return min(
        free, key=lambda broker: (_rank_rack(broker, rack, others), -(broker.room(disk_limit) or 0), broker.id)
    ).id


def _rank_rack(broker: PlannedBroker, rack: str | None, others: Collection[str | None]) -> int:
    if broker.rack == rack and rack is not None:
        return 0
    return 1 if broker.rack not in others else 2


def _rack(broker: int, brokers: Mapping[int, PlannedBroker]) -> str | None:
    return brokers[broker].rack if broker in brokers else None
