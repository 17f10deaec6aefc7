"""Coded reasons of runs, of their rows, of rows that do not get on, and of entries of the throttle ledger.

Rates are bytes per second, unless a reason says that it holds one as Kafka does.
"""

from __future__ import annotations

from enum import StrEnum
from typing import ClassVar

from kafkadash.core.messages import CodedReason
from kafkadash.execution.progress.figures import StuckCause

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
    RATE_NOT_APPLIED = "rate-not-applied"
    NO_TIME_FOR_THROTTLE = "no-time-for-throttle"
    THROTTLE_CHANGED_MEANWHILE = "throttle-changed-meanwhile"
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


class ReassignedByOthers(CodedReason, code=RowReasonCode.REASSIGNED_BY_OTHERS):
    target: BrokerIds


class NotAsPlanned(CodedReason, code=RowReasonCode.NOT_AS_PLANNED):
    replicas: BrokerIds
    expected: BrokerIds


class ThereAlready(CodedReason, code=RowReasonCode.THERE_ALREADY):
    replicas: BrokerIds
    expected: BrokerIds


class FactorNotApproved(CodedReason, code=RowReasonCode.FACTOR_NOT_APPROVED):
    """``has`` and ``target`` are numbers of replicas."""

    has: int
    target: int


class TopicDeleted(CodedReason, code=RowReasonCode.TOPIC_DELETED):
    topic: str


class TopicCreatedAgain(CodedReason, code=RowReasonCode.TOPIC_CREATED_AGAIN):
    topic: str


class TopicDeletedSince(CodedReason, code=RowReasonCode.TOPIC_DELETED_SINCE):
    """The row was done before."""

    topic: str


class MovedByOthers(CodedReason, code=RowReasonCode.MOVED_BY_OTHERS):
    target: BrokerIds


class ChangedByOthers(CodedReason, code=RowReasonCode.CHANGED_BY_OTHERS):
    replicas: BrokerIds
    target: BrokerIds


class ChangedSince(CodedReason, code=RowReasonCode.CHANGED_SINCE):
    """The row was done before."""

    replicas: BrokerIds


class OrderNotRestored(CodedReason, code=RowReasonCode.ORDER_NOT_RESTORED):
    replicas: BrokerIds


class NoTraceOfIt(CodedReason, code=RowReasonCode.NO_TRACE):
    """Requests of this number left no trace; the operator is asked."""

    times: int


class AnswerUnclear(CodedReason, code=RowReasonCode.ANSWER_UNCLEAR):
    """``answer``: Kafka's own words, which do not tell whether its submission was done."""

    answer: str


class RefusedByKafka(CodedReason, code=RowReasonCode.REFUSED_BY_KAFKA):
    """``answer``: Kafka's own words about its submission."""

    answer: str


class NotSentYet(CodedReason, code=RowReasonCode.NOT_SENT):
    """``why``: what kept the request from leaving."""

    why: str | CodedReason


class RefusedToCancel(CodedReason, code=RowReasonCode.REFUSED_TO_CANCEL):
    answer: str


class RefusedToOrder(CodedReason, code=RowReasonCode.REFUSED_TO_ORDER):
    answer: str


class NotElected(CodedReason, code=RowReasonCode.NOT_ELECTED):
    """A row that is done, but not led by its preferred leader. ``why``: Kafka's own words, or what held it up."""

    why: str | CodedReason


class EndUntold(CodedReason, code=RowReasonCode.UNTOLD):
    """Outcome that cannot be read, because the topic may not be described any more."""

    topic: str


class NotReread(CodedReason, code=RowReasonCode.NOT_REREAD):
    """The row was done, but its topic is described to nobody any more at the verification."""

    topic: str


class EndedByOperator(CodedReason, code=RowReasonCode.ENDED_BY_OPERATOR):
    name: str


class EndedByOperatorWithNote(CodedReason, code=RowReasonCode.ENDED_BY_OPERATOR_WITH_NOTE):
    """``note``: what the operator gave as a reason."""

    name: str
    note: str


class BrokerAway(CodedReason, code=RowReasonCode.BROKER_AWAY):
    broker: int


class BrokerFenced(CodedReason, code=RowReasonCode.BROKER_FENCED):
    broker: int


class BrokerNotRegistered(CodedReason, code=RowReasonCode.BROKER_NOT_REGISTERED):
    broker: int


class BrokerCordoned(CodedReason, code=RowReasonCode.BROKER_CORDONED):
    broker: int


class RateNotApplied(CodedReason, code=RowReasonCode.RATE_NOT_APPLIED):
    broker: int


class RateInUse(CodedReason, code=RowReasonCode.RATE_IN_USE):
    """``rate`` as Kafka holds it: bytes per second."""

    broker: int
    rate: str


class DisksNotRead(CodedReason, code=RowReasonCode.DISKS_NOT_READ):
    broker: int


class DisksReadLongAgo(CodedReason, code=RowReasonCode.DISKS_READ_LONG_AGO):
    """``age`` in seconds."""

    broker: int
    age: float


class DisksFull(CodedReason, code=RowReasonCode.DISKS_FULL):
    """``room`` and ``coming`` in bytes."""

    broker: int
    room: int
    coming: int


class DisksAboveLimit(CodedReason, code=RowReasonCode.DISKS_ABOVE_LIMIT):
    """``room`` and ``coming`` in bytes; ``limit`` is the share of its disks that may be filled, in percent."""

    broker: int
    room: int
    coming: int
    limit: float


class UnderMinIsr(CodedReason, code=RowReasonCode.UNDER_MIN_ISR):
    """``brokers`` have to catch up first."""

    brokers: BrokerIds


class LiesElsewhere(CodedReason, code=RowReasonCode.LIES_ELSEWHERE):
    """A new replica lies in the directory ``there`` instead of ``path``."""

    broker: int
    there: str
    path: str


class LiesNobodyKnows(CodedReason, code=RowReasonCode.LIES_NOBODY_KNOWS):
    """The directory of a new replica could not be read; ``why`` in the words of the failure, or empty."""

    broker: int
    path: str
    why: str = ""


class RunReasonCode(StrEnum):
    """Codes of ``Execution.blocked``, ``held``, ``brake`` and ``error``; the values are stored."""

    CLUSTER_READ_ONLY = "read-only"
    NOT_WATCHED = "not-watched"
    WINDOW_NOT_OPEN = "window-closed"
    NOT_READ_LATELY = "not-read-lately"
    CHECK_FAILED = "check-failed"
    QUORUM_SILENT = "quorum-silent"
    LISTING_UNREAD = "listing-unread"
    TOPICS_UNREAD = "topics-unread"
    LOOKED_ONCE_MORE = "looked-once-more"
    ROW_HELD_UP = "row-held-up"
    LACKS_PERMISSION = "lacks-permission"
    START_REFUSED = "start-refused"
    MORE_LIKE_IT = "more-like-it"
    PAUSED = "paused"
    WINDOW_CLOSED = "run-window-closed"
    LOOK_TOO_OLD = "look-too-old"
    OTHER_TOPICS_NEVER_READ = "other-topics-never-read"
    OTHER_TOPICS_READ_LONG_AGO = "other-topics-read-long-ago"
    THROTTLE_REMOVED = "throttle-removed"
    THROTTLE_MISSING = "throttle-missing"
    UNDER_MIN_ISR = "brake"
    CLUSTER_UNREADABLE = "cluster-unreadable"
    STEP_FAILED = "step-failed"
    ANOTHER_CLUSTER = "another-cluster"
    NEWER_VERSION = "newer-version"
    STILL_GOING = "still-going"
    ALL_REFUSED = "all-refused"
    GIVEN_UP_BY = "given-up-by"


class ClusterReadOnly(CodedReason, code=RunReasonCode.CLUSTER_READ_ONLY):
    cluster: str


class NotWatched(CodedReason, code=RunReasonCode.NOT_WATCHED):
    cluster: str


class NotReadLately(CodedReason, code=RunReasonCode.NOT_READ_LATELY):
    """``facts``: kinds of refreshes, values of ``monitoring.models.CollectorKind``."""

    facts: tuple[str, ...]


class CheckFailed(CodedReason, code=RunReasonCode.CHECK_FAILED):
    """``check``: code of the check of health that failed first, ``problem``: its message."""

    check: str
    problem: CodedReason


class TopicsUnread(CodedReason, code=RunReasonCode.TOPICS_UNREAD):
    """``number`` topics were not described; ``topics`` are the first of them."""

    number: int
    topics: tuple[str, ...]


class LookedOnceMore(CodedReason, code=RunReasonCode.LOOKED_ONCE_MORE):
    """The row named ``row`` is not as approved, or late metadata of a broker feigned that."""

    row: str
    why: CodedReason | None


class RowHeldUp(CodedReason, code=RunReasonCode.ROW_HELD_UP):
    """``why`` is a reason of the row named ``row``."""

    row: str
    why: CodedReason


class LacksPermission(CodedReason, code=RunReasonCode.LACKS_PERMISSION):
    """``permissions``: pairs of an operation (AclOperation) and a topic, '' for the cluster."""

    permissions: tuple[tuple[str, str], ...]


class StartRefused(CodedReason, code=RunReasonCode.START_REFUSED):
    """The change does not allow it, in the ``words`` of its refusal."""

    words: str


class MoreLikeIt(CodedReason, code=RunReasonCode.MORE_LIKE_IT):
    number: int


class LookTooOld(CodedReason, code=RunReasonCode.LOOK_TOO_OLD):
    """``age`` in seconds."""

    age: float


class OtherTopicsReadLongAgo(CodedReason, code=RunReasonCode.OTHER_TOPICS_READ_LONG_AGO):
    """``age`` in seconds."""

    age: float


class ThrottleRemoved(CodedReason, code=RunReasonCode.THROTTLE_REMOVED):
    """Not for the first time. ``again``: minutes until it is set again."""

    places: str
    again: int


class ThrottleMissing(CodedReason, code=RunReasonCode.THROTTLE_MISSING):
    places: str


class UnderMinIsrBrake(CodedReason, code=RunReasonCode.UNDER_MIN_ISR):
    """``number`` partitions are under min.insync.replicas while their brokers live; ``partition`` is the first."""

    partition: str
    number: int


class ClusterUnreadable(CodedReason, code=RunReasonCode.CLUSTER_UNREADABLE):
    """``words``: of the failure of Kafka, or of the secret that does not open."""

    words: str


class AnotherClusterAnswers(CodedReason, code=RunReasonCode.ANOTHER_CLUSTER):
    """``answered`` and ``expected`` are Kafka's cluster ids."""

    cluster: str
    answered: str
    expected: str


class NewerVersion(CodedReason, code=RunReasonCode.NEWER_VERSION):
    """``format`` of the run is newer than ``own``, the one of this version."""

    format: int
    own: int


class StillGoing(CodedReason, code=RunReasonCode.STILL_GOING):
    """``number`` moves of a run that is over are still in flight."""

    number: int


class AllRefused(CodedReason, code=RunReasonCode.ALL_REFUSED):
    """``why`` is the reason of the first row."""

    rows: int
    why: CodedReason | None


class GivenUpBy(CodedReason, code=RunReasonCode.GIVEN_UP_BY):
    """An administrator gave the run up; ``note`` is what he wrote."""

    name: str
    note: str


class StuckReasonCode(StrEnum):
    """Codes of ``RowNow.why``; the values are stored with the figures of the run."""

    DESTINATION_UNREGISTERED = "destination-unregistered"
    DESTINATION_AWAY = "destination-away"
    DESTINATION_FENCED = "destination-fenced"
    KEPT_REPLICA_AWAY = "kept-replica-away"
    KEPT_NOT_IN_SYNC = "kept-not-in-sync"
    NO_SOURCE = "no-source"
    ROW_ABOVE_LIMIT = "row-above-limit"
    BROKER_ABOVE_LIMIT = "broker-above-limit"
    LIMIT_NOT_OURS = "limit-not-ours"
    COPY_BELOW_INBOUND = "copy-below-inbound"
    DESTINATION_DISK_FULL = "destination-disk-full"
    DESTINATION_DISK_NOT_READ = "destination-disk-not-read"
    DESTINATION_CORDONED = "destination-cordoned"
    SOURCE_AT_ITS_LIMIT = "source-at-its-limit"
    RATE_OF_OTHERS = "rate-of-others"
    LIST_OF_OTHERS = "list-of-others"
    CLUSTER_REFUSES = "cluster-refuses"
    NO_CAUSE_FOUND = "no-cause-found"


class StuckReason(CodedReason):
    """``cause`` groups reasons for which the same can be done (``run_stuck.fixes``)."""

    cause: ClassVar[StuckCause] = StuckCause.UNKNOWN


class DestinationUnregistered(StuckReason, code=StuckReasonCode.DESTINATION_UNREGISTERED):
    cause: ClassVar = StuckCause.DESTINATION_AWAY
    broker: int


class DestinationAway(StuckReason, code=StuckReasonCode.DESTINATION_AWAY):
    cause: ClassVar = StuckCause.DESTINATION_AWAY
    broker: int


class DestinationFenced(StuckReason, code=StuckReasonCode.DESTINATION_FENCED):
    cause: ClassVar = StuckCause.DESTINATION_AWAY
    broker: int


class KeptReplicaAway(StuckReason, code=StuckReasonCode.KEPT_REPLICA_AWAY):
    """All is copied; ``brokers`` that keep a replica are away, and the move ends only when every replica is in sync."""

    cause: ClassVar = StuckCause.KEPT_REPLICA_AWAY
    brokers: tuple[int, ...]


class KeptNotInSync(StuckReason, code=StuckReasonCode.KEPT_NOT_IN_SYNC):
    cause: ClassVar = StuckCause.KEPT_REPLICA_AWAY
    brokers: tuple[int, ...]


class NoSource(StuckReason, code=StuckReasonCode.NO_SOURCE):
    cause: ClassVar = StuckCause.NO_LEADER


class RowAboveLimit(StuckReason, code=StuckReasonCode.ROW_ABOVE_LIMIT):
    """Producers write to the row alone at least what the broker's throttle lets through. ``direction``: in or out."""

    cause: ClassVar = StuckCause.BELOW_INBOUND
    broker: int
    direction: str
    limit: float
    row: str
    inbound: float


class BrokerAboveLimit(StuckReason, code=StuckReasonCode.BROKER_ABOVE_LIMIT):
    """The same of all that is copied to or from the broker."""

    cause: ClassVar = StuckCause.BELOW_INBOUND
    broker: int
    direction: str
    limit: float
    inbound: float


class LimitNotOurs(StuckReason, code=StuckReasonCode.LIMIT_NOT_OURS):
    """Said of the reason that it comes with."""


class CopyBelowInbound(StuckReason, code=StuckReasonCode.COPY_BELOW_INBOUND):
    cause: ClassVar = StuckCause.BELOW_INBOUND
    row: str
    inbound: float


class DestinationDiskFull(StuckReason, code=StuckReasonCode.DESTINATION_DISK_FULL):
    """``room`` and ``coming`` in bytes."""

    cause: ClassVar = StuckCause.DESTINATION_DISK
    broker: int
    room: int
    coming: int


class DestinationDiskNotRead(StuckReason, code=StuckReasonCode.DESTINATION_DISK_NOT_READ):
    cause: ClassVar = StuckCause.DESTINATION_DISK
    broker: int


class DestinationCordoned(StuckReason, code=StuckReasonCode.DESTINATION_CORDONED):
    cause: ClassVar = StuckCause.DESTINATION_DISK
    broker: int


class SourceAtItsLimit(StuckReason, code=StuckReasonCode.SOURCE_AT_ITS_LIMIT):
    """``idle`` brokers have the partition in sync and could send."""

    cause: ClassVar = StuckCause.SOURCE_AT_THROTTLE
    broker: int
    sent: float
    limit: float
    idle: tuple[int, ...]


class RateOfOthers(StuckReason, code=StuckReasonCode.RATE_OF_OTHERS):
    """``value`` of ``key`` as Kafka holds it."""

    cause: ClassVar = StuckCause.FOREIGN_THROTTLE
    broker: str
    key: str
    value: str


class ListOfOthers(StuckReason, code=StuckReasonCode.LIST_OF_OTHERS):
    cause: ClassVar = StuckCause.FOREIGN_THROTTLE
    topic: str
    key: str


class ClusterRefuses(StuckReason, code=StuckReasonCode.CLUSTER_REFUSES):
    """``words`` are Kafka's own."""

    cause: ClassVar = StuckCause.REFUSED
    words: str


class NoCauseFound(StuckReason, code=StuckReasonCode.NO_CAUSE_FOUND):
    """``quiet``: seconds for which it has not come nearer to its leader."""

    quiet: float


class LedgerReasonCode(StrEnum):
    """Codes of ``ThrottleEntry.reason``; the values are stored."""

    THROTTLE_NOT_READ = "throttle-not-read"
    THROTTLE_CALL_REFUSED = "throttle-call-refused"
    THROTTLE_ANSWER_LOST = "throttle-answer-lost"
    THROTTLE_CLEARED = "throttle-cleared"
    LIST_NAMES_EVERY_REPLICA = "list-names-every-replica"
    LIST_DELETED_WITH_TOPIC = "list-deleted-with-topic"
    LIST_AS_BEFORE = "list-as-before"
    PAIRS_REMOVED_BY_OTHERS = "pairs-removed-by-others"
    PAIRS_OF_OTHERS_STAY = "pairs-of-others-stay"
    RATE_NOT_SET = "rate-not-set"
    RATE_STOOD_BEFORE = "rate-stood-before"
    RATE_RESTORED = "rate-restored"
    RATE_BEFORE_UNCERTAIN = "rate-before-uncertain"
    RATE_REMOVED_BY_OTHERS = "rate-removed-by-others"
    RATE_SET_AGAIN = "rate-set-again"
    RATE_RESTORED_BY_OTHERS = "rate-restored-by-others"
    RATE_NOT_PUT_BACK = "rate-not-put-back"
    RATE_OF_OTHERS_LEFT = "rate-of-others-left"


class ThrottleNotRead(CodedReason, code=LedgerReasonCode.THROTTLE_NOT_READ):
    why: CodedReason


class ThrottleCallRefused(CodedReason, code=LedgerReasonCode.THROTTLE_CALL_REFUSED):
    """Kafka refused to change it, or was not reached."""

    why: CodedReason


class ThrottleAnswerLost(CodedReason, code=LedgerReasonCode.THROTTLE_ANSWER_LOST):
    why: CodedReason


class PairsRemovedByOthers(CodedReason, code=LedgerReasonCode.PAIRS_REMOVED_BY_OTHERS):
    """``pairs``: number of ours."""

    pairs: int


class PairsOfOthersStay(CodedReason, code=LedgerReasonCode.PAIRS_OF_OTHERS_STAY):
    """Ours were removed. ``pairs``: number of those of others."""

    pairs: int


class RateRestored(CodedReason, code=LedgerReasonCode.RATE_RESTORED):
    """``rate`` as Kafka holds it: bytes per second."""

    rate: str


class RateNotPutBack(CodedReason, code=LedgerReasonCode.RATE_NOT_PUT_BACK):
    """Others removed ours; ``rate`` stood there before, as Kafka holds it."""

    rate: str


class RateOfOthersLeft(CodedReason, code=LedgerReasonCode.RATE_OF_OTHERS_LEFT):
    """``rate`` as Kafka holds it."""

    rate: str
