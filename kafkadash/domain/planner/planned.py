"""What every mode of planning answers with, and the judgements that several of them need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.topology import Partition, Topology
from kafkadash.domain.problem import Problem
from kafkadash.domain.wording import listed_shortly, size


@dataclass(frozen=True, slots=True)
class Planned:
    """``rows`` sorted by topic and partition; none where there is a problem. ``notices`` keep nothing from going on."""

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...] = ()
    notices: tuple[Problem, ...] = ()


def answer(rows: Iterable[Row], problems: Sequence[Problem], notices: Sequence[Problem]) -> Planned:
    if problems:
        return Planned((), tuple(problems), tuple(notices))
    return Planned(tuple(sorted(rows, key=lambda row: (row.topic, row.partition))), (), tuple(notices))


def overflows(arriving: Counter[int], topology: Topology, limit: float) -> list[Problem]:
    """A sentence per broker that would be above ``limit`` (0 to 1) of its disk while what leaves is not yet deleted.

    ``arriving``: broker → bytes copied to it. A broker whose disk is not known is not judged here.
    """
    found = []
    for id_, incoming in sorted(arriving.items()):
        broker = topology.brokers.get(id_)
        room = broker.room(limit) if broker else None
        if broker is None or room is None or incoming <= room:
            continue
        total, used = broker.disk_bytes or 0, broker.used_bytes or 0
        share = f"{100 * (used + incoming) / total:.1f} %" if total else "more than all"
        sentence = (
            f"Broker {id_} would come to {share} of its disk: {size(used)} in use and {size(incoming)} more, "
            f"of {size(total)}. The limit is {100 * limit:.0f} %, which leaves room for {size(room)}."
        )
        found.append(Problem("disk limit", sentence))
    return found


def disk_notices(receiving: Collection[int], unsized: int, topology: Topology, limit: float) -> list[Problem]:
    """What keeps the disk limit from being judged."""
    found = []
    unknown = [str(b) for b in sorted(receiving) if b in topology.brokers and topology.brokers[b].room(limit) is None]
    if unknown:
        sentence = f"The disk of {brokers_named(unknown)} is not known, so the limit was not kept there."
        found.append(Problem("disk unknown", sentence))
    if unsized:
        which = "1 partition that moves" if unsized == 1 else f"{unsized:,} partitions that move"
        sentence = f"The size of {which} is not known; it is missing in what was reckoned for disks."
        found.append(Problem("size unknown", sentence))
    return found


def arriving_bytes(moves: Iterable[tuple[Row, Partition]]) -> tuple[Counter[int], set[int], int]:
    """Broker → bytes copied to it, all brokers that receive, and how many rows copy something of unknown size."""
    arriving: Counter[int] = Counter()
    receiving: set[int] = set()
    unsized = 0
    for row, partition in moves:
        adding = row.adding
        receiving.update(adding)
        unsized += bool(adding) and partition.size_bytes is None
        for broker in adding:
            arriving[broker] += partition.size_bytes or 0
    return arriving, receiving, unsized


def already_moving(name: str, line: int | None = None) -> Problem:
    sentence = f"{name} is being reassigned already. Wait until that is done, or cancel it."
    return Problem("already moving", sentence, line)


def brokers_named(ids: Sequence[object]) -> str:
    """ "broker 3", "brokers 1 and 2", "brokers 1, 2, … and 7 more"."""
    texts = [str(id_) for id_ in ids]
    return f"broker {texts[0]}" if len(texts) == 1 else f"brokers {listed_shortly(texts, 8)}"
