"""What kafkadash asks of consumer groups: the answers, independent of any client library. See ``kafka.port``.

A cluster may have 5,000 groups that read 200,000 partitions, so figures of partitions are nested dictionaries of plain
numbers, and one call asks for all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from kafkadash.kafka.port import ItemError, KafkaAdmin

Offsets = Mapping[str, Mapping[int, int]]
"""topic → partition → offset."""


@dataclass(frozen=True, slots=True)
class GroupMember:
    """``instance_id`` is None for a dynamic member (KIP-345); ``assigned``: topic → partitions."""

    member_id: str
    client_id: str
    host: str
    instance_id: str | None
    assigned: Mapping[str, Sequence[int]]


@dataclass(frozen=True, slots=True)
class Group:
    """One consumer group. ``state`` and ``type`` are Kafka's own words (org.apache.kafka.common.GroupState, GroupType):
    Stable, Empty, PreparingRebalance, CompletingRebalance, Assigning, Reconciling, Dead, Unknown; Classic, Consumer.

    ``assignor`` is '' while there is none, and of an empty group. ``members`` is None where the group could not be
    described: not the same as no members. ``coordinator`` is a broker's id, None where nobody said.
    """

    name: str
    state: str
    type: str
    protocol_type: str
    assignor: str
    coordinator: int | None
    members: Sequence[GroupMember] | None
    error: ItemError | None = None


@dataclass(frozen=True, slots=True)
class OtherGroup:
    """A group that is no consumer group: ``kind`` is Kafka's word for its type ("share", "streams"), or for its
    protocol where only that tells it apart ("connect"). ``state`` as of ``Group``.
    """

    name: str
    kind: str
    state: str


@dataclass(frozen=True, slots=True)
class Groups:
    """``errors``: brokers that did not list theirs, so that groups may be missing. ``others``: no consumer groups."""

    groups: Mapping[str, Group]
    errors: Mapping[int, ItemError]
    taken_at: float
    others: Mapping[str, OtherGroup] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Committed:
    """``offsets``: group → what it has committed; a partition without a commit is absent, never 0 and never −1.

    Each asked group is in ``offsets`` or in ``errors``, never in neither; one that was deleted meanwhile has an empty
    entry. ``taken_at``: when the first of them was read; all were read before ``finished_at``. A broker that is silent
    moves ``finished_at`` to the deadline: log ends that are read after that are by as much newer than the others'
    commits. Topics that the principal may not describe are left out by Kafka, without an error.

    A commit may lie beyond the log's end (a topic made anew, an unclean election) or before its start. A coordinator
    that has just taken over answers from its own high watermark, which may still be behind (CoordinatorLoaderImpl): for
    a moment an older commit, or none, without an error.
    """

    offsets: Mapping[str, Offsets]
    errors: Mapping[str, ItemError]
    taken_at: float
    finished_at: float


class LogSpan(NamedTuple):
    """Of a partition, as its leader answered: ``start`` is the log start, ``end`` the offset of the next record that
    consumers can read (high watermark), in records; ``taken_at`` in seconds since the epoch.
    """

    start: int
    end: int
    taken_at: float


@dataclass(frozen=True, slots=True)
class LogSpans:
    """topic → partition → span. Each asked partition is in ``spans`` or in ``errors``."""

    spans: Mapping[str, Mapping[int, LogSpan]]
    errors: Mapping[str, Mapping[int, ItemError]]
    taken_at: float


class KafkaGroups(Protocol):
    """The reads of groups. Implementations are safe to call from several threads at once."""

    def groups(self, *, deadline: float) -> Groups:
        """All groups of the protocol types "consumer" and '' (offsets committed without one), with their members.

        Of both protocols, classic and KIP-848. Of share groups, streams groups and others only what the list tells.
        """
        ...

    def committed(self, groups: Collection[str], *, deadline: float) -> Committed:
        """What these groups have committed, many groups to each request; asked of each group's coordinator."""
        ...

    def log_spans(self, partitions: Mapping[str, Collection[int]], *, deadline: float) -> LogSpans:
        """Log start and end of partitions (topic → numbers), in one fan-out to their leaders.

        What is asked of ``committed`` before this can never lie behind it: lag is never negative by our doing.
        """
        ...


class KafkaReads(KafkaAdmin, KafkaGroups, Protocol):
    """All that can be read of a cluster and of its groups."""
