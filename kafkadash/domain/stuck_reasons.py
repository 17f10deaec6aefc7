"""Why a row in flight does not get on: codes with parameters (04-changes.md §7). Rates in bytes per second."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar

from kafkadash.domain.reasons import CodedReason
from kafkadash.domain.run_progress import Cause


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


@dataclass(frozen=True, slots=True)
class StuckReason(CodedReason):
    """``cause`` groups reasons for which the same can be done (``run_stuck.fixes``)."""

    cause: ClassVar[Cause] = Cause.UNKNOWN


@dataclass(frozen=True, slots=True)
class DestinationUnregistered(StuckReason):
    code: ClassVar = StuckReasonCode.DESTINATION_UNREGISTERED
    cause: ClassVar = Cause.DESTINATION_AWAY
    broker: int


@dataclass(frozen=True, slots=True)
class DestinationAway(StuckReason):
    code: ClassVar = StuckReasonCode.DESTINATION_AWAY
    cause: ClassVar = Cause.DESTINATION_AWAY
    broker: int


@dataclass(frozen=True, slots=True)
class DestinationFenced(StuckReason):
    code: ClassVar = StuckReasonCode.DESTINATION_FENCED
    cause: ClassVar = Cause.DESTINATION_AWAY
    broker: int


@dataclass(frozen=True, slots=True)
class KeptReplicaAway(StuckReason):
    """All is copied; ``brokers`` that keep a replica are away, and the move ends only when every replica is in sync."""

    code: ClassVar = StuckReasonCode.KEPT_REPLICA_AWAY
    cause: ClassVar = Cause.KEPT_REPLICA_AWAY
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KeptNotInSync(StuckReason):
    code: ClassVar = StuckReasonCode.KEPT_NOT_IN_SYNC
    cause: ClassVar = Cause.KEPT_REPLICA_AWAY
    brokers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class NoSource(StuckReason):
    code: ClassVar = StuckReasonCode.NO_SOURCE
    cause: ClassVar = Cause.NO_LEADER


@dataclass(frozen=True, slots=True)
class RowAboveLimit(StuckReason):
    """Producers write to the row alone at least what the broker's throttle lets through. ``direction``: in or out."""

    code: ClassVar = StuckReasonCode.ROW_ABOVE_LIMIT
    cause: ClassVar = Cause.BELOW_INBOUND
    broker: int
    direction: str
    limit: float
    row: str
    inbound: float


@dataclass(frozen=True, slots=True)
class BrokerAboveLimit(StuckReason):
    """The same of all that is copied to or from the broker."""

    code: ClassVar = StuckReasonCode.BROKER_ABOVE_LIMIT
    cause: ClassVar = Cause.BELOW_INBOUND
    broker: int
    direction: str
    limit: float
    inbound: float


@dataclass(frozen=True, slots=True)
class LimitNotOurs(StuckReason):
    """Said of the reason that it comes with."""

    code: ClassVar = StuckReasonCode.LIMIT_NOT_OURS


@dataclass(frozen=True, slots=True)
class CopyBelowInbound(StuckReason):
    code: ClassVar = StuckReasonCode.COPY_BELOW_INBOUND
    cause: ClassVar = Cause.BELOW_INBOUND
    row: str
    inbound: float


@dataclass(frozen=True, slots=True)
class DestinationDiskFull(StuckReason):
    """``room`` and ``coming`` in bytes."""

    code: ClassVar = StuckReasonCode.DESTINATION_DISK_FULL
    cause: ClassVar = Cause.DESTINATION_DISK
    broker: int
    room: int
    coming: int


@dataclass(frozen=True, slots=True)
class DestinationDiskNotRead(StuckReason):
    code: ClassVar = StuckReasonCode.DESTINATION_DISK_NOT_READ
    cause: ClassVar = Cause.DESTINATION_DISK
    broker: int


@dataclass(frozen=True, slots=True)
class DestinationCordoned(StuckReason):
    code: ClassVar = StuckReasonCode.DESTINATION_CORDONED
    cause: ClassVar = Cause.DESTINATION_DISK
    broker: int


@dataclass(frozen=True, slots=True)
class SourceAtItsLimit(StuckReason):
    """``idle`` brokers have the partition in sync and could send."""

    code: ClassVar = StuckReasonCode.SOURCE_AT_ITS_LIMIT
    cause: ClassVar = Cause.SOURCE_AT_THROTTLE
    broker: int
    sent: float
    limit: float
    idle: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class RateOfOthers(StuckReason):
    """``value`` of ``key`` as Kafka holds it."""

    code: ClassVar = StuckReasonCode.RATE_OF_OTHERS
    cause: ClassVar = Cause.FOREIGN_THROTTLE
    broker: str
    key: str
    value: str


@dataclass(frozen=True, slots=True)
class ListOfOthers(StuckReason):
    code: ClassVar = StuckReasonCode.LIST_OF_OTHERS
    cause: ClassVar = Cause.FOREIGN_THROTTLE
    topic: str
    key: str


@dataclass(frozen=True, slots=True)
class ClusterRefuses(StuckReason):
    """``words`` are Kafka's own."""

    code: ClassVar = StuckReasonCode.CLUSTER_REFUSES
    cause: ClassVar = Cause.REFUSED
    words: str


@dataclass(frozen=True, slots=True)
class NoCauseFound(StuckReason):
    """``quiet``: seconds for which it has not come nearer to its leader."""

    code: ClassVar = StuckReasonCode.NO_CAUSE_FOUND
    quiet: float
