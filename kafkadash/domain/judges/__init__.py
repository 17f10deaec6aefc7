"""What is wrong, kind by kind. A judge gets facts that are fresh, the time they were read, and the time now."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from datetime import datetime

from kafkadash.domain.facts import Facts
from kafkadash.domain.finding import Finding
from kafkadash.domain.finding_kinds import FindingKind
from kafkadash.domain.judges.brokers import broker_away, broker_down, leader_skew, mixed_versions
from kafkadash.domain.judges.controllers import quorum_flapping, quorum_lost, quorum_margin
from kafkadash.domain.judges.directories import disk_full, failed_directory
from kafkadash.domain.judges.groups import consumer_lag, consumer_loss
from kafkadash.domain.judges.partitions import (
    at_min_isr,
    offline,
    rack_violation,
    topics_hidden,
    under_min_isr,
    under_replicated,
)
from kafkadash.domain.judges.pipeline import disk_soon, pipeline_still, segment_set_aside
from kafkadash.domain.judges.reassignments import orphan_throttle, zombie

JUDGES: Mapping[FindingKind, Callable[[Facts, datetime, datetime], Iterator[Finding]]] = {
    FindingKind.OFFLINE: offline,
    FindingKind.QUORUM_LOST: quorum_lost,
    FindingKind.QUORUM_MARGIN: quorum_margin,
    FindingKind.UNDER_MIN_ISR: under_min_isr,
    FindingKind.BROKER_DOWN: broker_down,
    FindingKind.FAILED_DIRECTORY: failed_directory,
    FindingKind.AT_MIN_ISR: at_min_isr,
    FindingKind.UNDER_REPLICATED: under_replicated,
    FindingKind.DISK_SOON: disk_soon,
    FindingKind.DISK_FULL: disk_full,
    FindingKind.QUORUM_FLAPPING: quorum_flapping,
    FindingKind.CONSUMER_LAG: consumer_lag,
    FindingKind.CONSUMER_LOSS: consumer_loss,
    FindingKind.ORPHAN_THROTTLE: orphan_throttle,
    FindingKind.ZOMBIE_REASSIGNMENT: zombie,
    FindingKind.RACK_VIOLATION: rack_violation,
    FindingKind.LEADER_SKEW: leader_skew,
    FindingKind.MIXED_VERSIONS: mixed_versions,
    FindingKind.BROKER_AWAY: broker_away,
    FindingKind.SEGMENT_SET_ASIDE: segment_set_aside,
    FindingKind.PIPELINE_STILL: pipeline_still,
    FindingKind.TOPICS_HIDDEN: topics_hidden,
}
