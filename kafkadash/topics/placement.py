"""Assignments of new partitions: Kafka's own rack-aware placement (KIP-36), balanced ones, and those people type.

Kafka draws two numbers, where the first leader is in the list of brokers and how far the followers are shifted. Whoever
has both, and the list, gets the same assignment (class AdminUtils, assignReplicasToBrokersRackAware).
``planning.solver.kafka_placement`` places a million partitions at once by the same rules.
"""

from __future__ import annotations

import re
from bisect import insort
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.racks import alternate_racks
from kafkadash.topics.errors import TopicErrorCode

Assignment = tuple[tuple[int, ...], ...]
"""Broker ids of each partition in order, the preferred leader first."""

MOST_PARTITIONS = 10_000
"""Partitions of one request (class ReplicationControlManager, MAX_PARTITIONS_PER_BATCH)."""

_COMPARED = 64
"""Brokers of a rack among which the next follower is chosen: more would take time and gain nothing."""
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


@dataclass(frozen=True, slots=True)
class BrokerLoad:
    """Load of a broker: ``rack`` is one name for all where racks are not judged; ``led``: as first replica."""

    rack: str
    replicas: int = 0
    led: int = 0


def place_evenly(brokers: Mapping[int, BrokerLoad], partitions: int, factor: int) -> Assignment:
    """Place new partitions in turn, so that new replicas and new leaders are even over the brokers.

    The replicas of a partition are spread over the racks as evenly as these allow. What is left over goes to the
    brokers that hold least in the cluster; so a topic does not come to lie on the few brokers that were added last.
    The same input gives the same assignment. Raises ValueError for a factor that is not 1 to the number of brokers.
    """
    if not 1 <= factor <= len(brokers):
        raise ValueError(f"replication factor {factor} with {len(brokers)} brokers")
    placing = _BalancedPlacing(brokers)
    return tuple(placing.place_partition(factor) for _ in range(partitions))


class _BalancedPlacing:
    """Brokers in the order in which they are to be given what comes next: new ones, those in the cluster, id."""

    def __init__(self, brokers: Mapping[int, BrokerLoad]) -> None:
        self._racks = {id_: load.rack for id_, load in brokers.items()}
        self._leaders = sorted((0, load.led, 0, load.replicas, id_) for id_, load in brokers.items())
        self._replicas: dict[str, list[tuple[int, int, int]]] = {load.rack: [] for load in brokers.values()}
        for id_, load in sorted(brokers.items()):
            insort(self._replicas[load.rack], (0, load.replicas, id_))
        self._held = {id_: (0, load.replicas) for id_, load in brokers.items()}
        self._pairs: Counter[tuple[int, int]] = Counter()

    def place_partition(self, factor: int) -> tuple[int, ...]:
        led, all_led, *_, leader = self._leaders.pop(0)
        found = [leader]
        self._replicas[self._racks[leader]].remove((*self._held[leader], leader))
        while len(found) < factor:
            found.append(self._take_follower(leader, Counter(self._racks[broker] for broker in found)))
        for broker in found:
            held, all_held = self._held[broker]
            self._held[broker] = held + 1, all_held + 1
            insort(self._replicas[self._racks[broker]], (held + 1, all_held + 1, broker))
        insort(self._leaders, (led + 1, all_led + 1, *self._held[leader], leader))
        return tuple(found)

    def _take_follower(self, leader: int, in_rack: Mapping[str, int]) -> int:
        """Take a broker of a rack that has fewest replicas of the partition.

        Of those with as few new replicas, it is the one that follows the leader least often: so what a broker leads is
        taken over by many.
        """
        open_racks = {rack: waiting for rack, waiting in self._replicas.items() if waiting}
        _, _, rack = min((in_rack[rack], waiting[0], rack) for rack, waiting in open_racks.items())
        waiting = self._replicas[rack]
        alike = (place for place in range(min(_COMPARED, len(waiting))) if waiting[place][0] == waiting[0][0])
        place = min(alike, key=lambda place: (self._pairs[leader, waiting[place][2]], place))
        *_, broker = waiting.pop(place)
        self._pairs[leader, broker] += 1
        return broker


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


def take_assignment(text: str, brokers: Collection[int]) -> Assignment | CodedMessage:
    """Read an assignment and check it with the brokers that can take replicas; or return what is wrong with it."""
    read = read_assignment(text)
    fault = read if isinstance(read, CodedMessage) else check_assignment(read, brokers)
    return read if fault is None else fault


def format_assignment(assignment: Collection[Collection[int]]) -> str:
    """Return an assignment as ``kafka-topics --replica-assignment`` takes it."""
    return ",".join(":".join(map(str, replicas)) for replicas in assignment)
