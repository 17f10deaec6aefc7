"""Which replicas a list of throttled replicas (KIP-73) names, and rates and lists in words.

A replica is throttled only where two things meet: its broker has a rate, and its topic's list names it. Leaders send
and followers fetch under rates and lists of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kafkadash.domain.throttles import DISK_RATE, EVERY_REPLICA, FOLLOWER_LIST, FOLLOWER_RATE, LEADER_LIST, LEADER_RATE
from kafkadash.domain.whole_numbers import LARGEST_INT, read_whole_number

WORDS: Mapping[str, str] = {
    LEADER_RATE: "sending as leader",
    FOLLOWER_RATE: "fetching as follower",
    DISK_RATE: "copying between its directories",
    LEADER_LIST: "replicas throttled as leaders",
    FOLLOWER_LIST: "replicas throttled as followers",
}


@dataclass(frozen=True, slots=True)
class ThrottledReplicas:
    """The value of a topic's list: ``everything`` for ``*``, else pairs of partition and broker.

    ``unreadable`` is a part that is neither, where there is one: Kafka refuses it, or takes it and fails to read it.
    """

    everything: bool = False
    pairs: frozenset[tuple[int, int]] = frozenset()
    unreadable: str = ""

    @property
    def empty(self) -> bool:
        """Set, but off."""
        return not self.everything and not self.pairs and not self.unreadable

    def names(self, partition: int, broker: int) -> bool:
        return self.everything or (partition, broker) in self.pairs


def throttled_replicas(value: str) -> ThrottledReplicas:
    """Reads ``*`` or ``0:101,1:102`` (kafka.server.ThrottledReplicaListValidator). Never raises."""
    stripped = value.strip()
    if stripped == EVERY_REPLICA:
        return ThrottledReplicas(everything=True)
    pairs = set()
    for part in filter(None, (piece.strip() for piece in stripped.split(","))):
        partition, broker = (read_whole_number(number, LARGEST_INT) for number in part.partition(":")[::2])
        if partition is None or broker is None:
            return ThrottledReplicas(unreadable=part)
        pairs.add((partition, broker))
    return ThrottledReplicas(pairs=frozenset(pairs))


def rate_of(value: str) -> int | None:
    """A rate in bytes per second, or None for text that is none."""
    return read_whole_number(value)
