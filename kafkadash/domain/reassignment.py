"""Telling one reassignment of a partition from the next, and how one ended.

Kafka gives a reassignment neither an id nor a start time (KIP-455's listing carries only the sets of replicas), while
KIP-240 asks for an identity that two successive reassignments of a partition do not share. These functions decide from
what two successive refreshes saw.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum


class Continuity(Enum):
    """What a listed reassignment is, compared with the one known for that partition."""

    SAME = "same"
    SUPERSEDED = "superseded"
    RESTARTED = "restarted"


class End(Enum):
    """How a reassignment that left the listing ended, read from the partition."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    TOPIC_DELETED = "topic_deleted"


@dataclass(frozen=True, slots=True)
class Sight:
    """A reassignment as one refresh saw it. ``log_ends``: adding broker → its log end offset, where it answered."""

    replicas: tuple[int, ...]
    adding: frozenset[int]
    removing: frozenset[int]
    leader_epoch: int | None
    log_ends: Mapping[int, int]

    @property
    def target(self) -> frozenset[int]:
        return frozenset(r for r in self.replicas if r not in self.removing)

    @property
    def original(self) -> frozenset[int]:
        return frozenset(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class PartitionNow:
    """The partition as the cluster's metadata tells it; ``topic_id`` '' where the cluster has no topic ids."""

    topic_id: str
    replicas: tuple[int, ...]
    isr: frozenset[int]


def continuity(before: Sight, now: Sight) -> Continuity:
    """Whether the listed reassignment is still the one seen before.

    The same sets and either the same leader epoch, or no adding replica that fell behind where it was: completion and
    cancel both bump the epoch, and a second copy starts over. A log end nobody could read counts as no evidence.
    """
    if (before.adding, before.removing) != (now.adding, now.removing):
        return Continuity.SUPERSEDED
    if before.leader_epoch == now.leader_epoch:
        return Continuity.SAME
    fell = any(end < before.log_ends[broker] for broker, end in now.log_ends.items() if broker in before.log_ends)
    return Continuity.RESTARTED if fell else Continuity.SAME


def replaced_as(before: Sight, now: Sight) -> End:
    """How a reassignment ended in whose place another one, with other sets, is listed.

    Kafka reckons a new target from the replicas without those still being added: where the new one starts from the old
    one's target, the old one had reached it.
    """
    if now.original == before.target != before.original:
        return End.COMPLETED
    return End.SUPERSEDED


def ended_as(last: Sight, topic_id: str, partition: PartitionNow | None, *, settled: bool) -> End | None:
    """How the reassignment ended, or None while the answering broker may not have heard of the end yet.

    ``partition`` is None when the topic or the partition is gone. Having left the listing is not success: the
    partition must hold the target replicas. The order is not compared, because a reorder right after the end leaves
    the copies where they are. While the partition still has all the replicas it had under way, an answer from before
    the end and one from after it may look the same: that counts only when ``settled``, which means that an earlier
    look did not find the reassignment listed either.
    """
    if partition is None or (topic_id and partition.topic_id and partition.topic_id != topic_id):
        return End.TOPIC_DELETED
    current = frozenset(partition.replicas)
    if current == frozenset(last.replicas) and not settled:
        return None
    if current == last.target:
        return End.COMPLETED
    return End.CANCELLED if current == last.original else End.SUPERSEDED
