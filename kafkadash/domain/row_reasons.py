"""Why a row of a run waits, was left out, failed or ended otherwise than planned."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from kafkadash.domain.reasons import CodedReason

BrokerIds = tuple[int, ...]


class RowReasonCode(StrEnum):
    """Codes of ``Move.reason``; the values are stored."""

    REASSIGNED_BY_OTHERS = "reassigned-by-others"
    NOT_AS_PLANNED = "not-as-planned"
    THERE_ALREADY = "there-already"
    FACTOR_NOT_APPROVED = "factor-not-approved"
    TOPIC_DELETED = "topic-deleted"
    TOPIC_CREATED_AGAIN = "topic-created-again"
    TOPIC_DELETED_SINCE = "topic-deleted-since"
    MOVED_BY_OTHERS = "moved-by-others"
    OLD_REPLICAS_SUBMITTED = "old-replicas-submitted"
    CHANGED_BY_OTHERS = "changed-by-others"
    CHANGED_SINCE = "changed-since"
    CANCELLED_BY_OTHERS = "cancelled-by-others"
    ORDERED_BY_OTHERS = "ordered-by-others"
    ORDER_NOT_RESTORED = "order-not-restored"
    NO_TRACE = "no-trace"
    ANSWER_LOST = "answer-lost"
    ANSWER_UNCLEAR = "answer-unclear"
    ARRIVED_LATE = "arrived-late"
    ARRIVED_LATE_CANCELLED = "arrived-late-cancelled"
    REFUSED_BY_KAFKA = "refused-by-kafka"
    NOT_SENT = "not-sent"
    REFUSED_TO_CANCEL = "refused-to-cancel"
    REFUSED_TO_ORDER = "refused-to-order"
    NOT_ELECTED = "not-elected"
    UNTOLD = "untold"
    NOT_REREAD = "not-reread"
    NO_TIME_LEFT = "no-time-left"
    NO_TIME_FOR_THROTTLE = "no-time-for-throttle"
    THROTTLE_CHANGED_MEANWHILE = "throttle-changed-meanwhile"
    THROTTLE_NOT_SET = "throttle-not-set"
    CANCELLED_BEFORE = "cancelled-before"
    RUN_ENDED_BEFORE = "run-ended-before"
    RUN_ENDED_UNSEEN = "run-ended-unseen"
    GIVEN_UP = "given-up"
    ENDED_BY_OPERATOR = "ended-by-operator"
    ENDED_BY_OPERATOR_WITH_NOTE = "ended-by-operator-with-note"
    BROKER_AWAY = "broker-away"
    BROKER_FENCED = "broker-fenced"
    BROKER_NOT_REGISTERED = "broker-not-registered"
    BROKER_CORDONED = "broker-cordoned"
    RATE_IN_USE = "rate-in-use"
    DISKS_NOT_READ = "disks-not-read"
    DISKS_READ_LONG_AGO = "disks-read-long-ago"
    DISKS_FULL = "disks-full"
    DISKS_ABOVE_LIMIT = "disks-above-limit"
    NO_LEADER = "no-leader"
    UNDER_MIN_ISR = "under-min-isr"
    LIES_ELSEWHERE = "lies-elsewhere"
    LIES_NOBODY_KNOWS = "lies-nobody-knows"


@dataclass(frozen=True, slots=True)
class ReassignedByOthers(CodedReason):
    code: ClassVar = RowReasonCode.REASSIGNED_BY_OTHERS
    target: BrokerIds


@dataclass(frozen=True, slots=True)
class NotAsPlanned(CodedReason):
    code: ClassVar = RowReasonCode.NOT_AS_PLANNED
    replicas: BrokerIds
    expected: BrokerIds


@dataclass(frozen=True, slots=True)
class ThereAlready(CodedReason):
    code: ClassVar = RowReasonCode.THERE_ALREADY
    replicas: BrokerIds
    expected: BrokerIds


@dataclass(frozen=True, slots=True)
class FactorNotApproved(CodedReason):
    """``has`` and ``target`` are numbers of replicas."""

    code: ClassVar = RowReasonCode.FACTOR_NOT_APPROVED
    has: int
    target: int


@dataclass(frozen=True, slots=True)
class TopicDeleted(CodedReason):
    code: ClassVar = RowReasonCode.TOPIC_DELETED
    topic: str


@dataclass(frozen=True, slots=True)
class TopicCreatedAgain(CodedReason):
    code: ClassVar = RowReasonCode.TOPIC_CREATED_AGAIN
    topic: str


@dataclass(frozen=True, slots=True)
class TopicDeletedSince(CodedReason):
    """The row was done before."""

    code: ClassVar = RowReasonCode.TOPIC_DELETED_SINCE
    topic: str


@dataclass(frozen=True, slots=True)
class MovedByOthers(CodedReason):
    code: ClassVar = RowReasonCode.MOVED_BY_OTHERS
    target: BrokerIds


@dataclass(frozen=True, slots=True)
class OldReplicasSubmitted(CodedReason):
    """By others, while it moved: Kafka can never end that."""

    code: ClassVar = RowReasonCode.OLD_REPLICAS_SUBMITTED


@dataclass(frozen=True, slots=True)
class ChangedByOthers(CodedReason):
    code: ClassVar = RowReasonCode.CHANGED_BY_OTHERS
    replicas: BrokerIds
    target: BrokerIds


@dataclass(frozen=True, slots=True)
class ChangedSince(CodedReason):
    """The row was done before."""

    code: ClassVar = RowReasonCode.CHANGED_SINCE
    replicas: BrokerIds


@dataclass(frozen=True, slots=True)
class CancelledByOthers(CodedReason):
    code: ClassVar = RowReasonCode.CANCELLED_BY_OTHERS


@dataclass(frozen=True, slots=True)
class OrderedByOthers(CodedReason):
    """Others put its replicas into another order."""

    code: ClassVar = RowReasonCode.ORDERED_BY_OTHERS


@dataclass(frozen=True, slots=True)
class OrderNotRestored(CodedReason):
    code: ClassVar = RowReasonCode.ORDER_NOT_RESTORED
    replicas: BrokerIds


@dataclass(frozen=True, slots=True)
class NoTraceOfIt(CodedReason):
    """Requests of this number left no trace; the operator is asked."""

    code: ClassVar = RowReasonCode.NO_TRACE
    times: int


@dataclass(frozen=True, slots=True)
class AnswerLost(CodedReason):
    """Kafka's answer to the submission is missing."""

    code: ClassVar = RowReasonCode.ANSWER_LOST


@dataclass(frozen=True, slots=True)
class AnswerUnclear(CodedReason):
    """``answer``: Kafka's own words, which do not tell whether its submission was done."""

    code: ClassVar = RowReasonCode.ANSWER_UNCLEAR
    answer: str


@dataclass(frozen=True, slots=True)
class ArrivedLate(CodedReason):
    """A request of ours that had gone astray."""

    code: ClassVar = RowReasonCode.ARRIVED_LATE


@dataclass(frozen=True, slots=True)
class ArrivedLateCancelled(CodedReason):
    """A request of ours that had gone astray; it is cancelled again."""

    code: ClassVar = RowReasonCode.ARRIVED_LATE_CANCELLED


@dataclass(frozen=True, slots=True)
class RefusedByKafka(CodedReason):
    """``answer``: Kafka's own words about its submission."""

    code: ClassVar = RowReasonCode.REFUSED_BY_KAFKA
    answer: str


@dataclass(frozen=True, slots=True)
class NotSentYet(CodedReason):
    """``why``: what kept the request from leaving."""

    code: ClassVar = RowReasonCode.NOT_SENT
    why: str


@dataclass(frozen=True, slots=True)
class RefusedToCancel(CodedReason):
    code: ClassVar = RowReasonCode.REFUSED_TO_CANCEL
    answer: str


@dataclass(frozen=True, slots=True)
class RefusedToOrder(CodedReason):
    code: ClassVar = RowReasonCode.REFUSED_TO_ORDER
    answer: str


@dataclass(frozen=True, slots=True)
class NotElected(CodedReason):
    """A row that is done, but not led by its preferred leader. ``why``: Kafka's own words, or what held it up."""

    code: ClassVar = RowReasonCode.NOT_ELECTED
    why: str | CodedReason


@dataclass(frozen=True, slots=True)
class EndUntold(CodedReason):
    """Its topic is described to nobody any more, so nobody can tell how it ended."""

    code: ClassVar = RowReasonCode.UNTOLD
    topic: str


@dataclass(frozen=True, slots=True)
class NotReread(CodedReason):
    """The row was done, but its topic is described to nobody any more at the verification."""

    code: ClassVar = RowReasonCode.NOT_REREAD
    topic: str


@dataclass(frozen=True, slots=True)
class NoTimeLeft(CodedReason):
    code: ClassVar = RowReasonCode.NO_TIME_LEFT


@dataclass(frozen=True, slots=True)
class NoTimeForThrottle(CodedReason):
    code: ClassVar = RowReasonCode.NO_TIME_FOR_THROTTLE


@dataclass(frozen=True, slots=True)
class ThrottleChangedMeanwhile(CodedReason):
    """Others changed the rate right before ours was set."""

    code: ClassVar = RowReasonCode.THROTTLE_CHANGED_MEANWHILE


@dataclass(frozen=True, slots=True)
class ThrottleNotSet(CodedReason):
    code: ClassVar = RowReasonCode.THROTTLE_NOT_SET


@dataclass(frozen=True, slots=True)
class CancelledBefore(CodedReason):
    """The run was cancelled before the row began."""

    code: ClassVar = RowReasonCode.CANCELLED_BEFORE


@dataclass(frozen=True, slots=True)
class RunEndedBefore(CodedReason):
    """The run ended before the row began."""

    code: ClassVar = RowReasonCode.RUN_ENDED_BEFORE


@dataclass(frozen=True, slots=True)
class RunEndedUnseen(CodedReason):
    """The run ended while nobody could see what became of the row."""

    code: ClassVar = RowReasonCode.RUN_ENDED_UNSEEN


@dataclass(frozen=True, slots=True)
class GivenUp(CodedReason):
    code: ClassVar = RowReasonCode.GIVEN_UP


@dataclass(frozen=True, slots=True)
class EndedByOperator(CodedReason):
    code: ClassVar = RowReasonCode.ENDED_BY_OPERATOR
    name: str


@dataclass(frozen=True, slots=True)
class EndedByOperatorWithNote(CodedReason):
    """``note``: what the operator gave as a reason."""

    code: ClassVar = RowReasonCode.ENDED_BY_OPERATOR_WITH_NOTE
    name: str
    note: str


@dataclass(frozen=True, slots=True)
class BrokerAway(CodedReason):
    code: ClassVar = RowReasonCode.BROKER_AWAY
    broker: int


@dataclass(frozen=True, slots=True)
class BrokerFenced(CodedReason):
    code: ClassVar = RowReasonCode.BROKER_FENCED
    broker: int


@dataclass(frozen=True, slots=True)
class BrokerNotRegistered(CodedReason):
    code: ClassVar = RowReasonCode.BROKER_NOT_REGISTERED
    broker: int


@dataclass(frozen=True, slots=True)
class BrokerCordoned(CodedReason):
    code: ClassVar = RowReasonCode.BROKER_CORDONED
    broker: int


@dataclass(frozen=True, slots=True)
class RateInUse(CodedReason):
    """``rate`` as Kafka holds it: bytes per second."""

    code: ClassVar = RowReasonCode.RATE_IN_USE
    broker: int
    rate: str


@dataclass(frozen=True, slots=True)
class DisksNotRead(CodedReason):
    code: ClassVar = RowReasonCode.DISKS_NOT_READ
    broker: int


@dataclass(frozen=True, slots=True)
class DisksReadLongAgo(CodedReason):
    """``age`` in seconds."""

    code: ClassVar = RowReasonCode.DISKS_READ_LONG_AGO
    broker: int
    age: float


@dataclass(frozen=True, slots=True)
class DisksFull(CodedReason):
    """``room`` and ``coming`` in bytes."""

    code: ClassVar = RowReasonCode.DISKS_FULL
    broker: int
    room: int
    coming: int


@dataclass(frozen=True, slots=True)
class DisksAboveLimit(CodedReason):
    """``room`` and ``coming`` in bytes; ``limit`` is the share of its disks that may be filled, in percent."""

    code: ClassVar = RowReasonCode.DISKS_ABOVE_LIMIT
    broker: int
    room: int
    coming: int
    limit: float


@dataclass(frozen=True, slots=True)
class NoLeader(CodedReason):
    code: ClassVar = RowReasonCode.NO_LEADER


@dataclass(frozen=True, slots=True)
class UnderMinIsr(CodedReason):
    """``brokers`` have to catch up first."""

    code: ClassVar = RowReasonCode.UNDER_MIN_ISR
    brokers: BrokerIds


@dataclass(frozen=True, slots=True)
class LiesElsewhere(CodedReason):
    """A new replica lies in the directory ``there`` instead of ``path``."""

    code: ClassVar = RowReasonCode.LIES_ELSEWHERE
    broker: int
    there: str
    path: str


@dataclass(frozen=True, slots=True)
class LiesNobodyKnows(CodedReason):
    """The directory of a new replica could not be read; ``why`` in the words of the failure, or empty."""

    code: ClassVar = RowReasonCode.LIES_NOBODY_KNOWS
    broker: int
    path: str
    why: str = ""
