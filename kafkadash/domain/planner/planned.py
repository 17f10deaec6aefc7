"""What every mode of planning answers with, and the judgements that several of them need."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from kafkadash.domain.plan import Row
from kafkadash.domain.planner.request import Proof
from kafkadash.domain.planner.topology import Broker, Partition, Topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import asked as said
from kafkadash.domain.wording import listed_shortly, size


@dataclass(frozen=True, slots=True)
class Planned:
    """``rows`` sorted by topic and partition; none where there is a problem. ``notices`` keep nothing from going on.

    ``proof``: how far it is from the least that has to move; None where rows were brought or nothing is moved.
    """

    rows: tuple[Row, ...]
    problems: tuple[Problem, ...] = ()
    notices: tuple[Problem, ...] = ()
    proof: Proof | None = None


def answer(
    rows: Iterable[Row], problems: Sequence[Problem], notices: Sequence[Problem], proof: Proof | None = None
) -> Planned:
    if problems:
        return Planned((), tuple(problems), tuple(notices))
    return Planned(tuple(sorted(rows, key=lambda row: (row.topic, row.partition))), (), tuple(notices), proof)


@dataclass(frozen=True, slots=True)
class Arriving:
    """What rows copy: broker → bytes, broker → bytes of its largest new replica, and rows of unknown size."""

    bytes: Counter[int]
    largest: Mapping[int, int]
    unsized: int


def overflows(arriving: Arriving, topology: Topology, limit: float) -> list[Problem]:
    """A sentence per broker that would be above ``limit`` (0 to 1) of its disk while what leaves is not yet deleted.

    A broker whose disk is not known is not judged here.
    """
    found = []
    for id_, incoming in sorted(arriving.bytes.items()):
        broker = topology.brokers.get(id_)
        rooms = broker.rooms(limit) if broker else None
        if broker is None or rooms is None:
            continue
        largest = arriving.largest.get(id_, 0)
        if incoming > sum(rooms):
            total, used = broker.disk_bytes or 0, broker.used_bytes or 0
            share = f"{100 * (used + incoming) / total:.1f} %" if total else "more than all"
            sentence = said.DISK_LIMIT(
                broker=id_,
                share=share,
                used=size(used),
                coming=size(incoming),
                total=size(total),
                limit=100 * limit,
                room=size(sum(rooms)),
            )
            found.append(Problem(ProblemCode.DISK_LIMIT, sentence))
        elif largest > max(rooms, default=0):
            sentence = said.DISK_LIMIT_OF_A_DIRECTORY(
                broker=id_, replica=size(largest), room=size(max(rooms, default=0)), limit=100 * limit
            )
            found.append(Problem(ProblemCode.DISK_LIMIT, sentence))
    return found


def disk_notices(arriving: Arriving, topology: Topology, limit: float) -> list[Problem]:
    """What keeps the disk limit from being judged."""
    receiving, unsized = arriving.bytes.keys(), arriving.unsized
    found = []
    unknown = [str(b) for b in sorted(receiving) if b in topology.brokers and topology.brokers[b].room(limit) is None]
    if unknown:
        found.append(Problem(ProblemCode.DISK_UNKNOWN, said.DISK_UNJUDGED(brokers=brokers_named(unknown))))
    if unsized:
        which = "1 partition that moves" if unsized == 1 else f"{unsized:,} partitions that move"
        found.append(Problem(ProblemCode.SIZE_UNKNOWN, said.SIZE_UNJUDGED(partitions=which)))
    return found


def arriving(moves: Iterable[tuple[Row, Partition]]) -> Arriving:
    copied: Counter[int] = Counter()
    largest: dict[int, int] = {}
    unsized = 0
    for row, partition in moves:
        adding = row.adding
        unsized += bool(adding) and partition.size_bytes is None
        for broker in adding:
            copied[broker] += partition.size_bytes or 0
            largest[broker] = max(largest.get(broker, 0), partition.size_bytes or 0)
    return Arriving(copied, largest, unsized)


def already_moving(name: str, line: int | None = None) -> Problem:
    return Problem(ProblemCode.ALREADY_MOVING, said.MOVES_ALREADY(row=name), line)


def why_unfit(broker: Broker) -> str:
    """Why it can be given no replicas, after its name: "is fenced"."""
    if not broker.alive:
        return "is away"
    if broker.fenced:
        return "is fenced"
    return "does not answer" if broker.silent else "is cordoned"


def brokers_named(ids: Sequence[object]) -> str:
    """ "broker 3", "brokers 1 and 2", "brokers 1, 2, … and 7 more"."""
    texts = [str(id_) for id_ in ids]
    return f"broker {texts[0]}" if len(texts) == 1 else f"brokers {listed_shortly(texts, 8)}"
