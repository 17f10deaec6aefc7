"""How risky a change is, as far as the server can tell by itself; a client cannot lower it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from kafkadash.core.messages import CodedMessage, coded

# Points at most for each part; what is not known gets all of them.
BYTES = 35
PARTITIONS = 20
RF_DECREASE = 60
INTERNAL = 12
SPREAD_WORSE = 40
RACK_ON_ONE_BROKER = 12
TOPICS_DELETED = 60
RECORDS_LOST = 60
OFFSETS_RESET = 25
OFFSETS_DELETED = 60
RECORDS_AT_RISK = 30
BROKERS_UNREGISTERED = 25
FEW_BROKERS_LEFT = 25
HIGHEST = 100

MEDIUM_FROM = 25
HIGH_FROM = 60


@dataclass(frozen=True, slots=True)
class RiskFacts:
    """Facts for the risk floor. Shares are 0 to 1, of the whole cluster; None is not known and never harmless.

    ``rf_decreases``: partitions that lose a replica for good. ``internal_topics``: those that move.
    ``spread_worse``: partitions whose rack spread gets worse. ``racks_on_one_broker``: racks left with one broker that
    holds replicas. ``deleted_topics``: those whose records are gone afterwards. ``unclean_elections``: partitions that
    get a leader which lacks records. ``reset_offsets``: partitions in which a group goes on elsewhere;
    ``deleted_offsets``: those whose committed offset is gone afterwards. ``records_at_risk``: configs by which Kafka
    keeps records for a shorter time, or may lose them. ``unregistered_brokers``: stopped ones that leave the
    cluster. ``lacking_brokers``: how many fewer can take new replicas than the highest replication factor.
    """

    bytes_share: float | None
    partitions_share: float | None
    rf_decreases: int = 0
    internal_topics: int = 0
    spread_worse: int | None = 0
    racks_on_one_broker: tuple[str, ...] = ()
    deleted_topics: int = 0
    unclean_elections: int = 0
    reset_offsets: int = 0
    deleted_offsets: int = 0
    records_at_risk: int = 0
    unregistered_brokers: int = 0
    lacking_brokers: int = 0


class RiskLevel(StrEnum):
    LOW = "low"
    MEDIUM = "medium"
    HIGH = "high"


class RiskCode(StrEnum):
    """Codes of what a change is risky by."""

    BYTES = "risk-bytes"
    BYTES_UNKNOWN = "risk-bytes-unknown"
    PARTITIONS = "risk-partitions"
    PARTITIONS_UNKNOWN = "risk-partitions-unknown"
    FEWER_REPLICAS = "risk-fewer-replicas"
    INTERNAL_TOPICS = "risk-internal-topics"
    SPREAD_WORSE = "risk-spread-worse"
    SPREAD_UNKNOWN = "risk-spread-unknown"
    RACKS_ON_ONE_BROKER = "risk-racks-on-one-broker"
    TOPICS_DELETED = "risk-topics-deleted"
    RECORDS_LOST = "risk-records-lost"
    OFFSETS_RESET = "risk-offsets-reset"
    OFFSETS_DELETED = "risk-offsets-deleted"
    RECORDS_AT_RISK = "risk-records-at-risk"
    BROKERS_UNREGISTERED = "risk-brokers-unregistered"
    FEW_BROKERS_LEFT = "risk-few-brokers-left"


@dataclass(frozen=True, slots=True)
class RiskReason:
    """A part of the floor: "+14 moves 16 % of the bytes"."""

    points: int
    message: CodedMessage


@dataclass(frozen=True, slots=True)
class RiskFloor:
    """``points`` 0 to 100; ``reasons`` in a fixed order, those without points left out. Their sum may pass 100."""

    points: int
    reasons: tuple[RiskReason, ...]

    @property
    def level(self) -> RiskLevel:
        return level_of(self.points)


def level_of(points: int | None) -> RiskLevel:
    """Return the level of the points; unknown points are high."""
    if points is None or points >= HIGH_FROM:
        return RiskLevel.HIGH
    return RiskLevel.MEDIUM if points >= MEDIUM_FROM else RiskLevel.LOW


def compute_floor(facts: RiskFacts) -> RiskFloor:
    """The risk floor. More of anything never lowers it, and not knowing weighs as much as the worst."""
    reasons = tuple(reason for reason in _collect_reasons(facts) if reason.points)
    return RiskFloor(min(HIGHEST, sum(reason.points for reason in reasons)), reasons)


def _collect_reasons(facts: RiskFacts) -> Iterator[RiskReason]:
    yield _weigh_bytes(facts.bytes_share)
    yield _weigh_partitions(facts.partitions_share)
    if facts.rf_decreases:
        points = min(RF_DECREASE, 40 + facts.rf_decreases)
        yield RiskReason(points, coded(RiskCode.FEWER_REPLICAS, partitions=facts.rf_decreases))
    if facts.internal_topics:
        topics = facts.internal_topics
        yield RiskReason(min(INTERNAL, 3 * topics), coded(RiskCode.INTERNAL_TOPICS, topics=topics))
    yield from _weigh_spread(facts.spread_worse)
    if facts.racks_on_one_broker:
        racks = facts.racks_on_one_broker
        yield RiskReason(min(RACK_ON_ONE_BROKER, 4 * len(racks)), coded(RiskCode.RACKS_ON_ONE_BROKER, racks=racks))
    if facts.deleted_topics:
        yield RiskReason(TOPICS_DELETED, coded(RiskCode.TOPICS_DELETED, topics=facts.deleted_topics))
    if facts.unclean_elections:
        yield RiskReason(RECORDS_LOST, coded(RiskCode.RECORDS_LOST, partitions=facts.unclean_elections))
    if facts.reset_offsets:
        yield RiskReason(OFFSETS_RESET, coded(RiskCode.OFFSETS_RESET, partitions=facts.reset_offsets))
    if facts.deleted_offsets:
        yield RiskReason(OFFSETS_DELETED, coded(RiskCode.OFFSETS_DELETED, partitions=facts.deleted_offsets))
    if facts.records_at_risk:
        yield RiskReason(RECORDS_AT_RISK, coded(RiskCode.RECORDS_AT_RISK, configs=facts.records_at_risk))
    if facts.unregistered_brokers:
        brokers = facts.unregistered_brokers
        yield RiskReason(BROKERS_UNREGISTERED, coded(RiskCode.BROKERS_UNREGISTERED, brokers=brokers))
    if facts.lacking_brokers:
        yield RiskReason(FEW_BROKERS_LEFT, coded(RiskCode.FEW_BROKERS_LEFT, brokers=facts.lacking_brokers))


def _weigh_bytes(share: float | None) -> RiskReason:
    """By the root of the share: the first tenth of a cluster's data says more than the last."""
    if share is None:
        return RiskReason(BYTES, coded(RiskCode.BYTES_UNKNOWN))
    return RiskReason(round(BYTES * math.sqrt(_clamp_share(share))), coded(RiskCode.BYTES, share=share))


def _weigh_partitions(share: float | None) -> RiskReason:
    if share is None:
        return RiskReason(PARTITIONS, coded(RiskCode.PARTITIONS_UNKNOWN))
    return RiskReason(round(PARTITIONS * _clamp_share(share)), coded(RiskCode.PARTITIONS, share=share))


def _weigh_spread(worse: int | None) -> Iterator[RiskReason]:
    if worse is None:
        yield RiskReason(SPREAD_WORSE, coded(RiskCode.SPREAD_UNKNOWN))
    elif worse:
        yield RiskReason(min(SPREAD_WORSE, 20 + worse), coded(RiskCode.SPREAD_WORSE, partitions=worse))


def _clamp_share(share: float) -> float:
    return min(1.0, max(0.0, share))
