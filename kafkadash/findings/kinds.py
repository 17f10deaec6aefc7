"""Kinds of findings in order of urgency with their rules, the ``JudgedFinding`` value, and its message codes.

There is a code for each sentence, as a kind may have several. Texts are in ``findings.messages``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kafkadash.core.messages import CodedMessage
from kafkadash.core.status import HealthState


class FindingKind(StrEnum):
    """Most urgent first. The value is the name of the runbook and part of addresses, so it never changes."""

    OFFLINE = "offline-partitions"
    QUORUM_LOST = "quorum-lost"
    QUORUM_MARGIN = "quorum-margin"
    UNDER_MIN_ISR = "under-min-isr"
    BROKER_DOWN = "broker-down"
    CANARY_FAILS = "canary-fails"
    FAILED_DIRECTORY = "failed-log-directory"
    AT_MIN_ISR = "at-min-isr"
    UNDER_REPLICATED = "under-replicated"
    CANARY_SLOW = "canary-slow"
    DISK_SOON = "disk-full-soon"
    DISK_FULL = "disk-full"
    QUORUM_FLAPPING = "quorum-flapping"
    CONSUMER_LOSS = "consumer-data-loss"
    CONSUMER_LAG = "consumer-lag"
    HANGING_TRANSACTION = "hanging-transaction"
    RUN_TROUBLE = "run-needs-attention"
    ORPHAN_THROTTLE = "orphan-throttle"
    ZOMBIE_REASSIGNMENT = "zombie-reassignment"
    RACK_VIOLATION = "rack-violation"
    LEADER_SKEW = "leader-skew"
    MIXED_VERSIONS = "mixed-versions"
    CONFIG_DRIFT = "config-drift"
    BROKER_AWAY = "broker-away"
    SEGMENT_SET_ASIDE = "segment-set-aside"
    PIPELINE_STILL = "pipeline-stands-still"
    OWN_TASK = "own-task-overdue"
    RECEIVER_FAILS = "receiver-fails"
    NEVER_READ = "never-read-completely"
    TOPICS_HIDDEN = "topics-hidden"
    ANOTHER_CLUSTER = "another-cluster"
    REGISTERED_TWICE = "registered-twice"
    UNREACHABLE = "unreachable"
    STALE = "stale-data"
    ZOOKEEPER = "zookeeper-mode"
    DISABLED = "collection-off"

    @property
    def rank(self) -> int:
        """0 is the most urgent."""
        return _RANKS.get(self, len(_RANKS))

    @property
    def about(self) -> FindingTraits:
        return ABOUT.get(self, _OF_ANOTHER_VERSION)


_RANKS = {kind: rank for rank, kind in enumerate(FindingKind)}


def stored_kind(value: str) -> FindingKind:
    """Return the kind that was stored; one that only another version has is no member, and its state is unknown."""
    try:
        return FindingKind(value)
    except ValueError:
        kind = str.__new__(FindingKind, value)
    kind._name_ = kind._value_ = value
    return kind


class FactSource(StrEnum):
    """The facts a finding is read from; the values are those of the collectors' kinds."""

    ANSWERS = "answers"
    METADATA = "metadata"
    REASSIGNMENTS = "reassignments"
    QUORUM = "quorum"
    LOG_DIRS = "log_dirs"
    CONFIGS = "configs"
    VERSIONS = "versions"
    GROUPS = "groups"
    CANARY = "canary"
    TRANSACTIONS = "transactions"
    RUNS = "runs"
    """Not read from the cluster: runs of changes, as their workers store them."""
    PIPELINE = "pipeline"
    """Not read from the cluster: what the pipeline says of itself and makes of what was read."""
    READING = "reading"
    """Not read from the cluster: which kinds of facts were ever read completely."""
    PRODUCT = "product"
    """Tasks of kafkadash and receivers of notifications; no cluster. Judged by ``services.judge_product``."""
    AGES = "ages"
    """Not read from the cluster: what kafkadash knows about its own reading. Judged whenever it is looked at."""


@dataclass(frozen=True, slots=True)
class FindingTraits:
    """How a kind is treated.

    ``word`` stands on its pill, ``name`` in lists and headings. ``looks`` is in how many successive readings it must
    be seen before it opens. ``many`` is the title where several scopes have it, with ``{n}``; empty where there is
    only one scope.
    """

    state: HealthState
    word: str
    name: str
    source: FactSource
    looks: int = 1
    many: str = ""


_CRITICAL, _WARNING, _UNKNOWN = HealthState.CRITICAL, HealthState.WARNING, HealthState.UNKNOWN

# Two looks where one reading may catch what passes by itself: a follower that fetched late falls out of the ISR for
# seconds, a voter lags while it compacts, leaders and racks are uneven in the middle of a restart or a move, a
# directory is cleaned at its limit, a group commits again after a rebalance. One look where the fact is certain: a
# missing leader, refused writes, a fenced broker or a failed directory is what a broker or the controller says of
# itself, and whoever is on call should not wait for a second reading. Lost quorum, flapping and orphan throttles have
# counted several readings already, and brokers that differ have done so for an hour; a forecast is made of days of
# readings, and the next one is an hour away. Failed and slow canaries have been so in several probes, and a hanging
# transaction has been open for longer than any may be.
ABOUT: Mapping[FindingKind, FindingTraits] = {
    FindingKind.OFFLINE: FindingTraits(_CRITICAL, "Critical", "Offline partitions", FactSource.METADATA),
    FindingKind.QUORUM_LOST: FindingTraits(_CRITICAL, "Critical", "Controller quorum lost", FactSource.QUORUM),
    FindingKind.QUORUM_MARGIN: FindingTraits(
        _WARNING, "Quorum", "Controller quorum at minimum", FactSource.QUORUM, looks=2
    ),
    FindingKind.UNDER_MIN_ISR: FindingTraits(_CRITICAL, "Critical", "Partitions under min-ISR", FactSource.METADATA),
    FindingKind.BROKER_DOWN: FindingTraits(
        _CRITICAL, "Critical", "Broker down", FactSource.METADATA, many="{n} brokers are down"
    ),
    FindingKind.CANARY_FAILS: FindingTraits(
        _CRITICAL, "Critical", "Broker fails its canary", FactSource.CANARY, many="{n} brokers fail their canary"
    ),
    FindingKind.FAILED_DIRECTORY: FindingTraits(
        _WARNING, "Disk", "Failed log directory", FactSource.LOG_DIRS, many="{n} log directories failed"
    ),
    FindingKind.AT_MIN_ISR: FindingTraits(_WARNING, "Warning", "Partitions at min-ISR", FactSource.METADATA, looks=2),
    FindingKind.UNDER_REPLICATED: FindingTraits(
        _WARNING, "Warning", "Under-replicated partitions", FactSource.METADATA, looks=2
    ),
    FindingKind.CANARY_SLOW: FindingTraits(
        _WARNING, "Latency", "Broker is slow for clients", FactSource.CANARY, many="{n} brokers are slow for clients"
    ),
    FindingKind.DISK_SOON: FindingTraits(
        _WARNING,
        "Disk",
        "Log directory full within a day",
        FactSource.PIPELINE,
        many="{n} log directories projected to fill",
    ),
    FindingKind.DISK_FULL: FindingTraits(
        _WARNING, "Disk", "Log directory nearly full", FactSource.LOG_DIRS, 2, "{n} log directories are nearly full"
    ),
    FindingKind.QUORUM_FLAPPING: FindingTraits(_WARNING, "Quorum", "Frequent controller elections", FactSource.QUORUM),
    FindingKind.CONSUMER_LAG: FindingTraits(
        _WARNING, "Lag", "Consumer group stuck", FactSource.GROUPS, 2, "{n} consumer groups are stuck"
    ),
    FindingKind.HANGING_TRANSACTION: FindingTraits(
        _WARNING, "Transaction", "Hanging transaction", FactSource.TRANSACTIONS
    ),
    FindingKind.CONSUMER_LOSS: FindingTraits(
        _WARNING,
        "Data loss",
        "Unread records deleted",
        FactSource.GROUPS,
        2,
        "{n} consumer groups: unread records deleted",
    ),
    FindingKind.RUN_TROUBLE: FindingTraits(
        _WARNING, "Run", "Run needs attention", FactSource.RUNS, many="{n} runs need attention"
    ),
    FindingKind.ORPHAN_THROTTLE: FindingTraits(_WARNING, "Throttle", "Orphan throttle", FactSource.CONFIGS),
    FindingKind.ZOMBIE_REASSIGNMENT: FindingTraits(_WARNING, "Move", "Stuck reassignment", FactSource.REASSIGNMENTS),
    FindingKind.RACK_VIOLATION: FindingTraits(_WARNING, "Racks", "Rack violation", FactSource.METADATA, looks=2),
    FindingKind.LEADER_SKEW: FindingTraits(_WARNING, "Leaders", "Leader skew", FactSource.METADATA, looks=2),
    FindingKind.MIXED_VERSIONS: FindingTraits(_WARNING, "Versions", "Mixed Kafka versions", FactSource.VERSIONS),
    FindingKind.CONFIG_DRIFT: FindingTraits(_WARNING, "Configs", "Broker configs differ", FactSource.CONFIGS),
    FindingKind.BROKER_AWAY: FindingTraits(
        _WARNING, "Broker", "Empty broker offline", FactSource.METADATA, looks=2, many="{n} empty brokers are offline"
    ),
    FindingKind.SEGMENT_SET_ASIDE: FindingTraits(_WARNING, "Pipeline", "Quarantined segments", FactSource.PIPELINE),
    FindingKind.PIPELINE_STILL: FindingTraits(_WARNING, "Pipeline", "Pipeline stalled", FactSource.PIPELINE, looks=2),
    FindingKind.OWN_TASK: FindingTraits(
        _WARNING, "Task", "kafkadash task overdue", FactSource.PRODUCT, many="{n} tasks of kafkadash are overdue"
    ),
    FindingKind.RECEIVER_FAILS: FindingTraits(
        _WARNING, "Receiver", "Receiver of notifications fails", FactSource.PRODUCT, many="{n} receivers fail"
    ),
    FindingKind.NEVER_READ: FindingTraits(_WARNING, "Collection", "Never read completely", FactSource.READING),
    FindingKind.TOPICS_HIDDEN: FindingTraits(_UNKNOWN, "Unknown", "Hidden topics", FactSource.LOG_DIRS),
    FindingKind.ANOTHER_CLUSTER: FindingTraits(_UNKNOWN, "Unknown", "Cluster ID mismatch", FactSource.AGES),
    FindingKind.REGISTERED_TWICE: FindingTraits(_UNKNOWN, "Unknown", "Duplicate registration", FactSource.AGES),
    FindingKind.UNREACHABLE: FindingTraits(_UNKNOWN, "Unknown", "Cluster unreachable", FactSource.AGES),
    FindingKind.STALE: FindingTraits(_UNKNOWN, "Unknown", "Stale data", FactSource.AGES),
    FindingKind.ZOOKEEPER: FindingTraits(_UNKNOWN, "Unknown", "ZooKeeper mode", FactSource.AGES),
    FindingKind.DISABLED: FindingTraits(HealthState.MAINTENANCE, "Not watched", "Collection disabled", FactSource.AGES),
}
_OF_ANOTHER_VERSION = FindingTraits(_UNKNOWN, "Unknown", "Finding of another version", FactSource.METADATA)


@dataclass(frozen=True, slots=True)
class JudgedFinding:
    """Something that is wrong. ``message`` has a ``FindingCode``; its parameters are rounded as they are shown.

    ``scope`` tells findings of one kind apart (a broker's id, "broker:path"; '' where the cluster has only one).
    ``value`` in ``unit`` is the measured number, ``threshold`` what it must not reach; ``measured`` and ``limit`` say
    both in words. ``taken_at`` is when the facts were read, ``since`` when it began, if they tell.
    """

    kind: FindingKind
    message: CodedMessage
    taken_at: datetime
    scope: str = ""
    value: float | None = None
    unit: str = ""
    threshold: float | None = None
    measured: str = ""
    limit: str = ""
    since: datetime | None = None

    @property
    def state(self) -> HealthState:
        return self.kind.about.state


class FindingCode(StrEnum):
    """Codes of ``JudgedFinding.message``, in the order of the kinds; values are stored, and people search for them."""

    PARTITIONS_LEADERLESS = "partitions-without-leader"
    QUORUM_SILENT = "controller-quorum-lost"
    QUORUM_AT_MARGIN = "controller-quorum-at-margin"
    WRITES_REFUSED = "partitions-refuse-writes"
    DOWN_FENCED = "broker-down-fenced"
    DOWN_NOT_REGISTERED = "broker-down-not-registered"
    DOWN_SILENT = "broker-down-silent"
    DOWN_UNSEEN = "brokers-down-never-seen"
    CANARY_FAILED = "canary-failed-on-broker"
    DIRECTORY_FAILED = "log-directory-failed"
    NEXT_STOPS_WRITES = "next-lost-replica-stops-writes"
    NEXT_GOES_OFFLINE = "next-lost-replica-offline"
    NEXT_DOES_BOTH = "next-lost-replica-offline-in-part"
    UNDER_REPLICATED = "partitions-under-replicated"
    DIRECTORY_FULL_SOON = "log-directory-full-soon"
    DIRECTORY_FULL_NOW = "log-directory-full-any-moment"
    DIRECTORY_FILLS_UP = "log-directory-fills-up"
    KEEPS_ELECTING = "controllers-keep-electing"
    GROUP_STALLS = "group-stalls"
    GROUP_STOPPED = "group-without-members"
    GROUP_SET_BACK = "group-set-back"
    GROUP_STANDS_STILL = "group-stands-still"
    MORE_GROUPS_BEHIND = "more-groups-do-not-read"
    RECORDS_LOST = "records-deleted-unread"
    MORE_RECORDS_LOST = "more-records-deleted-unread"
    TRANSACTIONS_HANG = "transactions-hang"
    RUN_FAILED = "change-run-failed"
    RUN_STUCK = "run-stuck"
    RUN_ASKS = "run-asks"
    RUN_BLOCKED = "run-blocked"
    RUN_UNREAD = "run-unread"
    RUN_STALLED = "run-stalled"
    RUN_OWES = "run-owes-throttles"
    TRANSACTIONS_HANG_AT_LEAST = "transactions-hang-at-least"
    THROTTLES_ORPHANED = "orphan-throttles"
    MOVES_NEVER_END = "zombie-reassignments"
    RACKS_UNEVEN = "racks-uneven"
    LEADS_MORE = "broker-leads-more"
    LEADS_FEWER = "broker-leads-fewer"
    VERSIONS_DIFFER = "kafka-versions-differ"
    CANARY_LATE = "canary-slow-on-broker"
    APIS_DIFFER = "api-versions-differ"
    CONFIGS_DIFFER = "broker-configs-differ"
    AWAY_FENCED = "empty-broker-fenced"
    AWAY_NOT_REGISTERED = "empty-broker-not-registered"
    AWAY_SILENT = "empty-broker-silent"
    SEGMENTS_UNREAD = "segments-set-aside"
    PIPELINE_STILL = "pipeline-stands"
    BEAT_SILENT = "beat-silent"
    TICK_SILENT = "tick-silent"
    QUEUE_SILENT = "workers-of-queue-silent"
    AUDIT_SILENT = "audit-silent"
    CLEANUP_LATE = "cleanup-late"
    DEAD_MAN_LATE = "dead-man-ping-late"
    RECEIVER_FAILS = "receiver-fails-for-long"
    NEVER_COMPLETE = "facts-never-complete"
    TOPICS_NOT_SHOWN = "topics-not-shown"
    OTHER_CLUSTER_ANSWERS = "other-cluster-answers"
    REGISTERED_TWICE = "cluster-registered-twice"
    NO_BROKER_ANSWERS = "no-broker-answers"
    NO_BROKER_ANSWERED_YET = "no-broker-answered-yet"
    NOTHING_READ = "nothing-read"
    NOTHING_READ_YET = "nothing-read-yet"
    NOTHING_COLLECTED = "nothing-collected"
    NOTHING_COLLECTED_YET = "nothing-collected-yet"
    NOT_JUDGED = "facts-not-judged"
    NOT_JUDGED_YET = "facts-not-judged-yet"
    FACTS_OLD = "facts-old"
    FACTS_UNREAD_YET = "facts-unread-yet"
    ZOOKEEPER_ADDRESS = "zookeeper-address-missing"
    ZOOKEEPER_OLD = "zookeeper-facts-old"
    COLLECTION_OFF = "collection-switched-off"


class FindingNoteCode(StrEnum):
    """Codes of what a finding may say besides; they are parameters of its message."""

    NAMED = "note-named"
    OF_PARTITIONS = "note-of-partitions"
    RETURN_OF_ANY = "note-return-of-any-broker"
    RETURN_OF_ALL = "note-return-of-all-brokers"
    NO_ELIGIBLE = "note-no-eligible-leader"
    PRODUCERS_SEE = "note-not-enough-replicas"
    WATERMARK_HELD = "note-high-watermark-held"
    CAN_LEAD = "note-eligible-replicas-can-lead"
    MISS_REPLICA = "note-miss-replica"
    EXPLAINED_BY_MOVES = "note-explained-by-moves"
    FAILING_PARTITIONS = "note-failing-partitions"
    MOST_WAIT_IN = "note-most-wait-in"
    MEMBERS = "note-members"
    MEMBERS_UNKNOWN = "note-members-unknown"
    OPEN_TRANSACTION = "note-open-transaction"
    GROUPS_STALL = "note-groups-stall"
    GROUPS_STAND_STILL = "note-groups-stand-still"
    GROUPS_SET_BACK = "note-groups-set-back"
    GROUPS_STOPPED = "note-groups-without-members"
    RELEASE = "note-release"
