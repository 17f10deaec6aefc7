"""Why a run as a whole does not begin, does not go on, or failed: codes with parameters, as they are stored with it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from kafkadash.domain.reasons import CodedReason


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


@dataclass(frozen=True, slots=True)
class ClusterReadOnly(CodedReason):
    code: ClassVar = RunReasonCode.CLUSTER_READ_ONLY
    cluster: str


@dataclass(frozen=True, slots=True)
class NotWatched(CodedReason):
    code: ClassVar = RunReasonCode.NOT_WATCHED
    cluster: str


@dataclass(frozen=True, slots=True)
class WindowNotOpen(CodedReason):
    """A queued run whose window has not begun, or is over."""

    code: ClassVar = RunReasonCode.WINDOW_NOT_OPEN


@dataclass(frozen=True, slots=True)
class NotReadLately(CodedReason):
    """``facts``: kinds of refreshes, values of ``observe.models.Kind``."""

    code: ClassVar = RunReasonCode.NOT_READ_LATELY
    facts: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CheckFailed(CodedReason):
    """``check``: code of the check of health that failed first, with its ``problem`` and what to do about it."""

    code: ClassVar = RunReasonCode.CHECK_FAILED
    check: str
    problem: str
    then: str


@dataclass(frozen=True, slots=True)
class QuorumSilent(CodedReason):
    code: ClassVar = RunReasonCode.QUORUM_SILENT


@dataclass(frozen=True, slots=True)
class ListingUnread(CodedReason):
    code: ClassVar = RunReasonCode.LISTING_UNREAD


@dataclass(frozen=True, slots=True)
class TopicsUnread(CodedReason):
    """``number`` topics were not described; ``topics`` are the first of them."""

    code: ClassVar = RunReasonCode.TOPICS_UNREAD
    number: int
    topics: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class LookedOnceMore(CodedReason):
    """What a broker's late metadata could feign, of the row named ``row``."""

    code: ClassVar = RunReasonCode.LOOKED_ONCE_MORE
    row: str
    why: CodedReason | None


@dataclass(frozen=True, slots=True)
class RowHeldUp(CodedReason):
    """``why`` is a reason of the row named ``row``."""

    code: ClassVar = RunReasonCode.ROW_HELD_UP
    row: str
    why: CodedReason


@dataclass(frozen=True, slots=True)
class LacksPermission(CodedReason):
    """``permissions``: pairs of an operation (AclOperation) and a topic, '' for the cluster."""

    code: ClassVar = RunReasonCode.LACKS_PERMISSION
    permissions: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class StartRefused(CodedReason):
    """The change does not allow it, in the ``words`` of its refusal."""

    code: ClassVar = RunReasonCode.START_REFUSED
    words: str


@dataclass(frozen=True, slots=True)
class MoreLikeIt(CodedReason):
    code: ClassVar = RunReasonCode.MORE_LIKE_IT
    number: int


@dataclass(frozen=True, slots=True)
class RunPaused(CodedReason):
    code: ClassVar = RunReasonCode.PAUSED


@dataclass(frozen=True, slots=True)
class RunWindowClosed(CodedReason):
    code: ClassVar = RunReasonCode.WINDOW_CLOSED


@dataclass(frozen=True, slots=True)
class LookTooOld(CodedReason):
    """``age`` in seconds."""

    code: ClassVar = RunReasonCode.LOOK_TOO_OLD
    age: float


@dataclass(frozen=True, slots=True)
class OtherTopicsNeverRead(CodedReason):
    code: ClassVar = RunReasonCode.OTHER_TOPICS_NEVER_READ


@dataclass(frozen=True, slots=True)
class OtherTopicsReadLongAgo(CodedReason):
    """``age`` in seconds."""

    code: ClassVar = RunReasonCode.OTHER_TOPICS_READ_LONG_AGO
    age: float


@dataclass(frozen=True, slots=True)
class ThrottleRemoved(CodedReason):
    """Not for the first time. ``again``: minutes until it is set again."""

    code: ClassVar = RunReasonCode.THROTTLE_REMOVED
    places: str
    again: int


@dataclass(frozen=True, slots=True)
class ThrottleMissing(CodedReason):
    code: ClassVar = RunReasonCode.THROTTLE_MISSING
    places: str


@dataclass(frozen=True, slots=True)
class UnderMinIsrBrake(CodedReason):
    """``number`` partitions are under min.insync.replicas while their brokers live; ``partition`` is the first."""

    code: ClassVar = RunReasonCode.UNDER_MIN_ISR
    partition: str
    number: int


@dataclass(frozen=True, slots=True)
class ClusterUnreadable(CodedReason):
    """``words``: of the failure of Kafka, or of the secret that does not open."""

    code: ClassVar = RunReasonCode.CLUSTER_UNREADABLE
    words: str


@dataclass(frozen=True, slots=True)
class StepFailed(CodedReason):
    """A fault inside of kafkadash."""

    code: ClassVar = RunReasonCode.STEP_FAILED


@dataclass(frozen=True, slots=True)
class AnotherClusterAnswers(CodedReason):
    """``answered`` and ``expected`` are Kafka's cluster ids."""

    code: ClassVar = RunReasonCode.ANOTHER_CLUSTER
    cluster: str
    answered: str
    expected: str


@dataclass(frozen=True, slots=True)
class NewerVersion(CodedReason):
    """``format`` of the run is newer than ``own``, the one of this version."""

    code: ClassVar = RunReasonCode.NEWER_VERSION
    format: int
    own: int


@dataclass(frozen=True, slots=True)
class StillGoing(CodedReason):
    """``number`` moves of a run that is over are still in flight."""

    code: ClassVar = RunReasonCode.STILL_GOING
    number: int


@dataclass(frozen=True, slots=True)
class AllRefused(CodedReason):
    """``why`` is the reason of the first row."""

    code: ClassVar = RunReasonCode.ALL_REFUSED
    rows: int
    why: CodedReason | None


@dataclass(frozen=True, slots=True)
class GivenUpBy(CodedReason):
    """An administrator gave the run up; ``note`` is what he wrote."""

    code: ClassVar = RunReasonCode.GIVEN_UP_BY
    name: str
    note: str
