"""Values of the executor: the states of the rows of a run, observations of the cluster, and actions to take.

``execution.engine.step`` makes new values from them; nothing here performs I/O or reads a clock.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from enum import StrEnum

from kafkadash.changes.plan import PartitionMove
from kafkadash.core.messages import CodedReason, is_same_reason

Key = tuple[str, int]
"""Topic and partition."""

MOST_ATTEMPTS = 3
"""So often a request is sent that leaves no trace in the cluster; then the operator is asked."""

MOST_SUBMITTED = 1_000
"""Rows that begin in one step: their intents are one short transaction."""

ASK_AFTER = timedelta(minutes=10)
"""So long after the first attempt it is tried again; a call of ours that shows after that is nobody's any more."""

UNANSWERED = timedelta(seconds=75)
"""So long after it was stored, a request whose answer nobody has may still be carried out: a broker that finds no
controller keeps what it forwards for 60 s, whatever the request's own time limit (kafka.server.BrokerServer)."""

LATE_METADATA = timedelta(seconds=10)
"""So far a broker's metadata may be behind the controller's listing: it may still show what was before a submission."""

UNREAD_FOR = timedelta(minutes=10)
"""So long a topic that nobody describes to us is waited for, before a row of it ends without anybody knowing how."""

RETRY = timedelta(seconds=10)
"""Between two cancels, reorders or elections of one row."""


class RowState(StrEnum):
    """State of a row of a run; the values are stored. SLOW and STUCK are marks on MOVING and no states."""

    PENDING = "pending"
    WAITING = "waiting"
    SUBMITTING = "submitting"
    MOVING = "moving"
    CATCHING_UP = "catching_up"
    CANCELLING = "cancelling"
    UNKNOWN = "unknown"
    DONE = "done"
    CANCELLED = "cancelled"
    SKIPPED = "skipped"
    SUPERSEDED = "superseded"
    TOPIC_DELETED = "topic_deleted"
    FAILED = "failed"


BEFORE = frozenset({RowState.PENDING, RowState.WAITING})
"""Nothing was sent."""

IN_FLIGHT = frozenset(
    {RowState.SUBMITTING, RowState.MOVING, RowState.CATCHING_UP, RowState.CANCELLING, RowState.UNKNOWN}
)
"""Kafka may be at work on it: it counts against the limits and keeps its throttle."""

ENDED = frozenset(RowState) - BEFORE - IN_FLIGHT

REOPENED = frozenset({RowState.CANCELLED, RowState.SUPERSEDED, RowState.FAILED, RowState.SKIPPED})
"""Ended, and yet a late request of ours may set it in motion again."""


class RunMode(StrEnum):
    """Mode that the run is asked for: ``PAUSED`` submits nothing more, ``CANCELLING`` ends what is in flight."""

    EXECUTING = "executing"
    PAUSED = "paused"
    CANCELLING = "cancelling"


class CallReply(StrEnum):
    """Kafka's answer for one partition: ``LOST`` is none, or one that does not tell whether it was done."""

    ACCEPTED = "accepted"
    REFUSED = "refused"
    LOST = "lost"


@dataclass(frozen=True, slots=True)
class CopyWork:
    """Facts of a row that a run never changes. ``size_bytes``: of one replica when the run began; None: not known.

    ``mends_racks``: its target lies better over the racks than its present replicas do.
    """

    row: PartitionMove
    size_bytes: int | None = None
    mends_racks: bool = False
    key: Key = field(init=False)
    adding: tuple[int, ...] = field(init=False)
    removing: frozenset[int] = field(init=False)
    only_reorders: bool = field(init=False)

    def __post_init__(self) -> None:
        """Once for all steps; the loops over 14,000 rows read them."""
        object.__setattr__(self, "key", (self.row.topic, self.row.partition))
        object.__setattr__(self, "adding", self.row.adding)
        object.__setattr__(self, "removing", frozenset(self.row.removing))
        object.__setattr__(self, "only_reorders", self.row.only_reorders)


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of a run as it is stored.

    ``since``: when it came to its state. ``attempt`` counts the requests stored for its target, ``unanswered`` those
    of them without an answer; ``first_at`` and ``submitted_at`` are the times of the first and the last.
    ``acted_at``: of the last request of any kind; what was read before tells nothing about it. ``cancelled_at``: of
    the last cancel; ``reorders`` and ``elections`` count those. ``hint``: the end that the last look suggested, first
    at ``hint_at``: an end that a broker's late metadata could feign takes two looks. ``asks``: it waits for the
    operator's answer.
    """

    work: CopyWork
    state: RowState = RowState.PENDING
    reason: CodedReason | None = None
    since: datetime | None = None
    attempt: int = 0
    unanswered: int = 0
    first_at: datetime | None = None
    submitted_at: datetime | None = None
    acted_at: datetime | None = None
    cancelled_at: datetime | None = None
    reorders: int = 0
    elections: int = 0
    hint: RowState | None = None
    hint_at: datetime | None = None
    asks: bool = False

    @property
    def key(self) -> Key:
        return self.work.key

    @property
    def in_flight(self) -> bool:
        return self.state in IN_FLIGHT

    @property
    def ended(self) -> bool:
        return self.state in ENDED

    def holds_slot(self, now: datetime) -> bool:
        """Return whether the row counts against the limits: one that asks, only while a late request may still show."""
        return self.state in IN_FLIGHT and (not self.asks or self.may_be_ours(now))

    def may_be_ours(self, now: datetime) -> bool:
        """Return whether a reassignment to the row's target that shows only now would be our late request."""
        return bool(self.unanswered) and self.submitted_at is not None and now - self.submitted_at < ASK_AFTER

    def quiet(self, now: datetime) -> bool:
        """Return whether no request of ours can still reach Kafka and set the row in motion."""
        return not self.unanswered or self.submitted_at is None or now - self.submitted_at >= UNANSWERED

    def over(self, now: datetime) -> bool:
        """Return whether the row ended and no late request of ours can change that."""
        return self.state in ENDED and (self.state not in REOPENED or self.quiet(now))

    def to(self, state: RowState, now: datetime, reason: CodedReason | None = None) -> RunRow:
        """In another state, or in this one for another reason; ``since`` is of the state."""
        if state is self.state and is_same_reason(reason, self.reason) and self.hint is None:
            return self
        since = self.since if state is self.state else now
        return replace(self, state=state, reason=reason, since=since, hint=None, hint_at=None, asks=False)


@dataclass(frozen=True, slots=True)
class ListedReassignment:
    """A row of Kafka's listing (KIP-455): ``replicas`` are the targets in order, then those that go."""

    replicas: tuple[int, ...]
    adding: frozenset[int] = frozenset()
    removing: frozenset[int] = frozenset()

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)

    @property
    def zombie(self) -> bool:
        """Return whether the reassignment adds brokers that it also removes, so that it can never end."""
        return not self.adding.isdisjoint(self.removing)


@dataclass(frozen=True, slots=True)
class PartitionSeen:
    """A partition in the cluster's metadata, and in the listing if it is there.

    ``offline``: replicas on brokers that are away, exact only after fencing. ``copied``: adding replicas whose log end
    has reached the leader's. ``min_isr`` is min.insync.replicas in force, None where not known.
    """

    replicas: tuple[int, ...]
    isr: frozenset[int] = frozenset()
    leader: int | None = None
    min_isr: int | None = None
    offline: frozenset[int] = frozenset()
    listed: ListedReassignment | None = None
    copied: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class TopicSeen:
    """``id`` is Kafka's, '' before Kafka 2.8; ``partitions`` how many it has, moving or not."""

    id: str
    partitions: int


@dataclass(frozen=True, slots=True)
class BrokerSeen:
    """A registered broker. ``full``: why its disk cannot take what the plan brings; None if it can.

    ``others_rate``: the rate that moves of others use on it, as Kafka shows the value; '' where there is none.
    """

    alive: bool = True
    fenced: bool = False
    cordoned: bool = False
    full: CodedReason | None = None
    others_rate: str = ""


@dataclass(frozen=True, slots=True)
class PartitionBelowMinIsr:
    """A partition anywhere in the cluster whose in-sync replicas are at min.insync.replicas or fewer.

    Fewer and equal are judged here, because an adding replica that is not in sync yet is not a missing one.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...]
    isr: frozenset[int]
    min_isr: int
    offline: frozenset[int] = frozenset()
    adding: frozenset[int] = frozenset()

    @property
    def lagging(self) -> frozenset[int]:
        """Replicas that should be in sync and live, so that a copy may be what holds them up."""
        return frozenset(self.replicas) - self.adding - self.isr - self.offline

    @property
    def under(self) -> bool:
        return len(self.isr) < self.min_isr


@dataclass(frozen=True, slots=True)
class ClusterObservation:
    """State of the cluster from one look; ``at`` is when the first of its reads was sent.

    ``topics`` has those of the plan that exist, ``unread`` those that nobody answered for; ``partitions`` all of the
    plan, ``unread_listed`` what is listed of unread topics. ``listing``: whether the reassignments could be read;
    ``quorum``: whether the controller answers. ``withheld``: what else keeps everything from being submitted.
    """

    at: datetime
    topics: Mapping[str, TopicSeen]
    partitions: Mapping[Key, PartitionSeen]
    brokers: Mapping[int, BrokerSeen]
    pressed: tuple[PartitionBelowMinIsr, ...] = ()
    unread: frozenset[str] = frozenset()
    unread_listed: Mapping[Key, ListedReassignment] = field(default_factory=dict)
    listing: bool = True
    quorum: bool = True
    window_open: bool = True
    withheld: tuple[CodedReason, ...] = ()


@dataclass(frozen=True, slots=True)
class BrokerSlot:
    """AlterReplicaLogDirs (34) before a row's ``SubmitAction``: (broker, directory) of replicas that will come.

    A broker keeps it in memory until the replica comes (kafka.server.ReplicaManager), so it goes before every attempt.
    Where it was refused or lost, the row is not submitted, and takes that as the answer to its submission.
    """

    key: Key
    directories: tuple[tuple[int, str], ...]


@dataclass(frozen=True, slots=True)
class SubmitAction:
    """AlterPartitionReassignments (45) of one partition to its target."""

    key: Key
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class CancelAction:
    """The same with null. Answered with 85, it had ended: the next look tells how."""

    key: Key


@dataclass(frozen=True, slots=True)
class ReorderAction:
    """45 with the original replicas in their order after a cancel, which does not restore it."""

    key: Key
    replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ElectAction:
    """ElectLeaders (43), preferred; 84 (not needed) is as good as done."""

    key: Key


@dataclass(frozen=True, slots=True)
class StateTransition:
    """A row before and after; ``after`` is to be stored before any action of its step is taken."""

    before: RunRow
    after: RunRow
