"""Assignments of new partitions: Kafka's own rack-aware placement (KIP-36), and assignments that people type.

Kafka draws two numbers, where the first leader is in the list of brokers and how far the followers are shifted. Whoever
has both, and the list, gets the same assignment (class AdminUtils, assignReplicasToBrokersRackAware).
``planning.solver.kafka_placement`` places a million partitions at once by the same rules.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.racks import alternate_racks
from kafkadash.topics.errors import TopicErrorCode

Assignment = tuple[tuple[int, ...], ...]
"""Broker ids of each partition in order, the preferred leader first."""

MOST_PARTITIONS = 10_000
"""Partitions of one request (class ReplicationControlManager, MAX_PARTITIONS_PER_BATCH)."""

_BROKER = re.compile(r"\d{1,9}")
_SHOWN = 40


def place_partitions(
    racks: Mapping[int, str], partitions: int, factor: int, *, start: int, shift: int, first: int = 0
) -> Assignment:
    """Place partitions ``first`` to ``first + partitions - 1`` as Kafka does.

    ``racks``: broker to rack, one name for all where racks are not judged. ``start`` and ``shift`` are what Kafka
    draws. Raises ValueError for a factor that is not 1 to the number of brokers.
    """
    brokers = alternate_racks(racks)
    many, names = len(brokers), set(racks.values())
    if not 1 <= factor <= many:
        raise ValueError(f"replication factor {factor} with {many} brokers")
    found = []
    for number in range(first, first + partitions):
        if number > 0 and number % many == 0:
            shift += 1
        place = (number + start) % many
        row, used, tried = [brokers[place]], {racks[brokers[place]]}, 0
        while len(row) < factor:
            broker = brokers[(place + 1 + (shift * len(names) + tried) % (many - 1)) % many]
            if (racks[broker] not in used or used == names) and broker not in row:
                row.append(broker)
                used.add(racks[broker])
            tried += 1
        found.append(tuple(row))
    return tuple(found)


def read_assignment(text: str) -> Assignment | CodedMessage:
    """Read an assignment as ``kafka-topics --replica-assignment`` takes it: ``1:2:3,2:3:1``; or say what is wrong."""
    parts = [part.strip() for part in text.replace("\n", ",").split(",") if part.strip()]
    if not parts:
        return coded(TopicErrorCode.ASSIGNMENT_MISSING)
    if len(parts) > MOST_PARTITIONS:
        return coded(TopicErrorCode.ASSIGNMENT_TOO_LONG, most=MOST_PARTITIONS)
    found: list[tuple[int, ...]] = []
    for part in parts:
        ids = [each.strip() for each in part.split(":")]
        if not all(each.isascii() and _BROKER.fullmatch(each) for each in ids):
            return coded(TopicErrorCode.ASSIGNMENT_FORMAT, part=part[:_SHOWN])
        found.append(tuple(map(int, ids)))
    return tuple(found)


def check_assignment(assignment: Assignment, brokers: Collection[int]) -> CodedMessage | None:
    """Return what Kafka would refuse of an assignment: ``brokers`` are those that can take replicas."""
    expected = len(assignment[0])
    for number, replicas in enumerate(assignment):
        if len(replicas) != expected:
            return coded(TopicErrorCode.ASSIGNMENT_UNEVEN, partition=number, replicas=len(replicas), expected=expected)
        for place, broker in enumerate(replicas):
            if broker in replicas[:place]:
                return coded(TopicErrorCode.ASSIGNMENT_REPEATS, partition=number, broker=broker)
            if broker not in brokers:
                return coded(TopicErrorCode.ASSIGNMENT_BROKER, partition=number, broker=broker)
    return None


def format_assignment(assignment: Collection[Collection[int]]) -> str:
    """Return an assignment as ``kafka-topics --replica-assignment`` takes it."""
    return ",".join(":".join(map(str, replicas)) for replicas in assignment)
