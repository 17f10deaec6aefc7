"""What can be wrong with a cluster: the kinds of findings, in the order of urgency, and how each is treated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.domain.status import State


class FindingKind(StrEnum):
    """Most urgent first. The value is the name of the runbook and part of addresses, so it never changes."""

    OFFLINE = "offline-partitions"
    QUORUM_LOST = "quorum-lost"
    QUORUM_MARGIN = "quorum-margin"
    UNDER_MIN_ISR = "under-min-isr"
    BROKER_DOWN = "broker-down"
    FAILED_DIRECTORY = "failed-log-directory"
    AT_MIN_ISR = "at-min-isr"
    UNDER_REPLICATED = "under-replicated"
    DISK_SOON = "disk-full-soon"
    DISK_FULL = "disk-full"
    QUORUM_FLAPPING = "quorum-flapping"
    CONSUMER_LOSS = "consumer-data-loss"
    CONSUMER_LAG = "consumer-lag"
    ORPHAN_THROTTLE = "orphan-throttle"
    ZOMBIE_REASSIGNMENT = "zombie-reassignment"
    RACK_VIOLATION = "rack-violation"
    LEADER_SKEW = "leader-skew"
    MIXED_VERSIONS = "mixed-versions"
    BROKER_AWAY = "broker-away"
    SEGMENT_SET_ASIDE = "segment-set-aside"
    PIPELINE_STILL = "pipeline-stands-still"
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
        return _RANKS[self]

    @property
    def about(self) -> About:
        return ABOUT[self]


_RANKS = {kind: rank for rank, kind in enumerate(FindingKind)}


class Source(StrEnum):
    """The facts a finding is read from; the values are those of the collectors' kinds."""

    ANSWERS = "answers"
    METADATA = "metadata"
    REASSIGNMENTS = "reassignments"
    QUORUM = "quorum"
    LOG_DIRS = "log_dirs"
    CONFIGS = "configs"
    VERSIONS = "versions"
    GROUPS = "groups"
    PIPELINE = "pipeline"
    """Not read from the cluster: what the pipeline says of itself and makes of what was read."""
    AGES = "ages"
    """Not read from the cluster: what kafkadash knows about its own reading. Judged whenever it is looked at."""


@dataclass(frozen=True, slots=True)
class About:
    """How a kind is treated.

    ``word`` stands on its pill, ``name`` in lists and headings. ``looks`` is in how many successive readings it must
    be seen before it opens. ``many`` continues the cluster's name when several scopes have it, with ``{n}``; empty
    where there is only one scope.
    """

    state: State
    word: str
    name: str
    source: Source
    looks: int = 1
    many: str = ""


_CRITICAL, _WARNING, _UNKNOWN = State.CRITICAL, State.WARNING, State.UNKNOWN

# Two looks where one reading may catch what passes by itself: a follower that fetched late falls out of the ISR for
# seconds, a voter lags while it compacts, leaders and racks are uneven in the middle of a restart or a move, a
# directory is cleaned at its limit, a group commits again after a rebalance. One look where the fact is certain: a
# missing leader, refused writes, a fenced broker or a failed directory is what a broker or the controller says of
# itself, and whoever is on call should not wait for a second reading. Lost quorum, flapping and orphan throttles have
# counted several readings already; a forecast is made of days of them, and the next one is an hour away.
ABOUT: Mapping[FindingKind, About] = {
    FindingKind.OFFLINE: About(_CRITICAL, "Critical", "Offline partitions", Source.METADATA),
    FindingKind.QUORUM_LOST: About(_CRITICAL, "Critical", "Controller quorum lost", Source.QUORUM),
    FindingKind.QUORUM_MARGIN: About(_WARNING, "Quorum", "Controller quorum without margin", Source.QUORUM, looks=2),
    FindingKind.UNDER_MIN_ISR: About(_CRITICAL, "Critical", "Partitions under min-ISR", Source.METADATA),
    FindingKind.BROKER_DOWN: About(
        _CRITICAL, "Critical", "Broker down", Source.METADATA, many="has {n} brokers down that host replicas"
    ),
    FindingKind.FAILED_DIRECTORY: About(
        _WARNING, "Disk", "Failed log directory", Source.LOG_DIRS, many="has {n} failed log directories"
    ),
    FindingKind.AT_MIN_ISR: About(_WARNING, "Warning", "Partitions at min-ISR", Source.METADATA, looks=2),
    FindingKind.UNDER_REPLICATED: About(_WARNING, "Warning", "Under-replicated partitions", Source.METADATA, looks=2),
    FindingKind.DISK_SOON: About(
        _WARNING,
        "Disk",
        "Log directory full within a day",
        Source.PIPELINE,
        many="has {n} log directories that are full within a day",
    ),
    FindingKind.DISK_FULL: About(
        _WARNING, "Disk", "Log directory nearly full", Source.LOG_DIRS, 2, "has {n} log directories that fill up"
    ),
    FindingKind.QUORUM_FLAPPING: About(_WARNING, "Quorum", "Controllers keep electing", Source.QUORUM),
    FindingKind.CONSUMER_LAG: About(
        _WARNING, "Lag", "Consumer group does not read", Source.GROUPS, 2, "has several groups that do not read"
    ),
    FindingKind.CONSUMER_LOSS: About(
        _WARNING, "Data loss", "Records deleted unread", Source.GROUPS, 2, "has several groups with records deleted"
    ),
    FindingKind.ORPHAN_THROTTLE: About(_WARNING, "Throttle", "Orphan throttle", Source.CONFIGS),
    FindingKind.ZOMBIE_REASSIGNMENT: About(_WARNING, "Move", "Zombie reassignment", Source.REASSIGNMENTS),
    FindingKind.RACK_VIOLATION: About(_WARNING, "Racks", "Uneven spread over racks", Source.METADATA, looks=2),
    FindingKind.LEADER_SKEW: About(_WARNING, "Leaders", "Uneven leaders", Source.METADATA, looks=2),
    FindingKind.MIXED_VERSIONS: About(_WARNING, "Versions", "Mixed versions", Source.VERSIONS),
    FindingKind.BROKER_AWAY: About(
        _WARNING, "Broker", "Broker away", Source.METADATA, looks=2, many="misses {n} brokers that host nothing"
    ),
    FindingKind.SEGMENT_SET_ASIDE: About(_WARNING, "Pipeline", "Segments set aside", Source.PIPELINE),
    FindingKind.PIPELINE_STILL: About(_WARNING, "Pipeline", "Pipeline stands still", Source.PIPELINE, looks=2),
    FindingKind.TOPICS_HIDDEN: About(_UNKNOWN, "Cannot tell", "Topics hidden", Source.LOG_DIRS),
    FindingKind.ANOTHER_CLUSTER: About(_UNKNOWN, "Cannot tell", "Another cluster answers", Source.AGES),
    FindingKind.REGISTERED_TWICE: About(_UNKNOWN, "Cannot tell", "Registered twice", Source.AGES),
    FindingKind.UNREACHABLE: About(_UNKNOWN, "Cannot tell", "Unreachable", Source.AGES),
    FindingKind.STALE: About(_UNKNOWN, "Cannot tell", "Stale data", Source.AGES),
    FindingKind.ZOOKEEPER: About(_UNKNOWN, "Not supported", "ZooKeeper mode", Source.AGES),
    FindingKind.DISABLED: About(State.MAINTENANCE, "Not watched", "Collection switched off", Source.AGES),
}
