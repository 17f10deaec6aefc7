"""Marks of rows that do not get on, the causes, and what can be done about each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from kafkadash.core.formatting import LARGEST_INT, read_whole_number
from kafkadash.execution.engine.reasons import (
    BrokerAboveLimit,
    ClusterRefuses,
    CopyBelowInbound,
    DestinationAway,
    DestinationCordoned,
    DestinationDiskFull,
    DestinationDiskNotRead,
    DestinationFenced,
    DestinationUnregistered,
    DisksAboveLimit,
    DisksFull,
    KeptNotInSync,
    KeptReplicaAway,
    LimitNotOurs,
    ListOfOthers,
    NoCauseFound,
    NoSource,
    RateOfOthers,
    RowAboveLimit,
    SourceAtItsLimit,
    StuckReason,
)
from kafkadash.execution.engine.state import ClusterObservation, PartitionSeen, RunRow
from kafkadash.execution.progress.copies import AT_THROTTLE, Lane, RowMemory
from kafkadash.execution.progress.figures import FlowDirection, RowMark, StuckCause

SLOW_AFTER_S, STUCK_AFTER_S = 90.0, 300.0
SLOW_BELOW = 100_000.0
"""Bytes per second."""

IDLE_BELOW = 0.3
"""Share of the throttle: a broker that sends less could send more."""


class StuckFix(StrEnum):
    """Fix that may be offered for a row that does not get on; pages name it."""

    RAISE_THROTTLE = "raise_throttle"
    SETTLE_THROTTLE = "settle_throttle"
    ELECT_LEADER = "elect_leader"
    REPLAN_ROW = "replan_row"
    CANCEL_ROW = "cancel_row"


_FIXES = {
    StuckCause.DESTINATION_AWAY: (StuckFix.REPLAN_ROW, StuckFix.CANCEL_ROW),
    StuckCause.KEPT_REPLICA_AWAY: (StuckFix.REPLAN_ROW, StuckFix.CANCEL_ROW),
    StuckCause.NO_LEADER: (StuckFix.ELECT_LEADER, StuckFix.CANCEL_ROW),
    StuckCause.BELOW_INBOUND: (StuckFix.RAISE_THROTTLE, StuckFix.CANCEL_ROW),
    StuckCause.DESTINATION_DISK: (StuckFix.REPLAN_ROW, StuckFix.CANCEL_ROW),
    StuckCause.SOURCE_AT_THROTTLE: (StuckFix.RAISE_THROTTLE, StuckFix.ELECT_LEADER, StuckFix.CANCEL_ROW),
    StuckCause.FOREIGN_THROTTLE: (
        StuckFix.SETTLE_THROTTLE,
        StuckFix.ELECT_LEADER,
        StuckFix.REPLAN_ROW,
        StuckFix.CANCEL_ROW,
    ),
    StuckCause.REFUSED: (StuckFix.CANCEL_ROW,),
    StuckCause.UNKNOWN: (StuckFix.ELECT_LEADER, StuckFix.REPLAN_ROW, StuckFix.CANCEL_ROW),
}


def suggest_fixes(cause: StuckCause | None, *, foreign: bool = False) -> tuple[StuckFix, ...]:
    """Return the fixes for the cause, the best first. ``foreign``: a throttle that is not ours is in force on one of
    the row's brokers, so that raising ours does not help.
    """
    if cause is None:
        return ()
    own = _FIXES[cause]
    if foreign and StuckFix.RAISE_THROTTLE in own:
        return tuple(StuckFix.SETTLE_THROTTLE if fix is StuckFix.RAISE_THROTTLE else fix for fix in own)
    return own


@dataclass(frozen=True, slots=True)
class ForeignThrottle:
    """A throttle of somebody else in force while we run: a rate of a broker (bytes per second), or a topic's list."""

    resource: str
    name: str
    key: str
    value: str

    @property
    def lane(self) -> Lane | None:
        """The broker and direction that a replication rate holds back; None for a list, or a rate between disks."""
        broker = read_whole_number(self.name, LARGEST_INT) if self.resource == "broker" else None
        if broker is None:
            return None
        ways = {"leader.": FlowDirection.OUT, "follower.": FlowDirection.IN}
        way = next((way for head, way in ways.items() if self.key.startswith(head)), None)
        return (broker, way) if way else None

    @property
    def rate(self) -> int | None:
        return read_whole_number(self.value)


@dataclass(frozen=True, slots=True)
class RowSurroundings:
    """State that a row shares with the others. ``throttle`` is ours, ``limits`` those in force that differ. ``rates``
    in bytes per second; ``inbound``: what producers add to all that is copied there, counted once for each copy.
    """

    throttle: int
    limits: Mapping[Lane, int] = field(default_factory=dict)
    foreign: tuple[ForeignThrottle, ...] = ()
    rates: Mapping[Lane, float] = field(default_factory=dict)
    inbound: Mapping[Lane, float] = field(default_factory=dict)

    def limit(self, lane: Lane) -> int:
        return self.limits.get(lane, self.throttle)


def quiet_s(row: RowMemory, now: float) -> float:
    """Seconds for which the row has not come nearer to its leader."""
    since = [row.grew_at if row.grew_at is not None else row.begun_at]
    if row.losing_since is not None:
        since.append(row.losing_since)
    if row.copied_at is not None:
        since = [row.copied_at]
    return now - min(since)


def mark_row(row: RowMemory, rate: float | None, now: float) -> RowMark | None:
    """Return the mark of a copying row in flight; one with complete copies is never SLOW, but may be STUCK."""
    quiet = quiet_s(row, now)
    if quiet >= STUCK_AFTER_S:
        return RowMark.STUCK
    if row.copied_at is not None:
        return None
    return RowMark.SLOW if quiet >= SLOW_AFTER_S or (rate is not None and rate < SLOW_BELOW) else None


def stuck_reason(
    move: RunRow, row: RowMemory, seen: ClusterObservation, around: RowSurroundings, inbound: float | None, now: float
) -> StuckReason:
    """Return the first reason that matches, with its figures."""
    partition = seen.partitions.get(move.key)
    lacking = tuple(b for b in move.work.adding if row.log_end is None or (row.copies[b].end or 0) < row.log_end)
    found = (
        _destination_away(move.work.adding, seen)
        or _kept_away(move, partition, seen)
        or (NoSource() if partition is not None and partition.leader is None else None)
        or _below_inbound(move, row, lacking, around, inbound)
        or _find_full_disk(lacking or move.work.adding, seen)
        or _source_full(row, partition, around)
        or _find_foreign_throttle(move, row, around)
    )
    if found:
        return found
    return ClusterRefuses(row.refused) if row.refused else NoCauseFound(quiet_s(row, now))


def _destination_away(adding: Collection[int], seen: ClusterObservation) -> StuckReason | None:
    for broker in adding:
        state = seen.brokers.get(broker)
        if state is None:
            return DestinationUnregistered(broker)
        if not state.alive:
            return DestinationAway(broker)
        if state.fenced:
            return DestinationFenced(broker)
    return None


def _kept_away(move: RunRow, partition: PartitionSeen | None, seen: ClusterObservation) -> StuckReason | None:
    """All is copied and in sync, and yet it is listed: a reassignment ends only when every target is in sync."""
    if partition is None or not partition.isr.issuperset(move.work.adding):
        return None
    kept = [b for b in move.work.row.target if b not in move.work.adding and b not in partition.isr]
    offline = [b for b in kept if b in partition.offline or b not in seen.brokers or not seen.brokers[b].alive]
    if offline:
        return KeptReplicaAway(tuple(offline))
    return KeptNotInSync(tuple(kept)) if kept else None


def _below_inbound(
    move: RunRow, row: RowMemory, lacking: Collection[int], around: RowSurroundings, inbound: float | None
) -> StuckReason | None:
    """Producers write at least what the throttle lets through: the copy falls behind for ever."""
    lanes: list[Lane] = [(broker, FlowDirection.IN) for broker in lacking]
    if row.source is not None:
        lanes.append((row.source, FlowDirection.OUT))
    for lane in lanes:
        limit, way = around.limit(lane), lane[1].value
        share = (inbound or 0.0) * (len(lacking) if lane[1] is FlowDirection.OUT else 1)
        needed = max(around.inbound.get(lane, 0.0), share)
        if needed < limit or needed <= 0:
            continue
        also = (LimitNotOurs(),) if lane in around.limits and limit != around.throttle else ()
        if share >= limit:
            return RowAboveLimit(lane[0], way, limit, move.work.row.name, inbound or 0.0, also=also)
        return BrokerAboveLimit(lane[0], way, limit, needed, also=also)
    if row.losing_since is not None and inbound:
        return CopyBelowInbound(move.work.row.name, inbound)
    return None


def _find_full_disk(adding: Collection[int], seen: ClusterObservation) -> StuckReason | None:
    for broker in adding:
        state = seen.brokers.get(broker)
        if state is not None and isinstance(state.full, DisksFull | DisksAboveLimit):
            return DestinationDiskFull(broker, state.full.room, state.full.coming)
        if state is not None and state.full:
            return DestinationDiskNotRead(broker)
        if state is not None and state.cordoned:
            return DestinationCordoned(broker)
    return None


def _source_full(row: RowMemory, partition: PartitionSeen | None, around: RowSurroundings) -> StuckReason | None:
    if row.source is None or partition is None or around.throttle <= 0:
        return None
    lane = (row.source, FlowDirection.OUT)
    sent, limit = around.rates.get(lane, 0.0), around.limit(lane)
    if sent < AT_THROTTLE * limit:
        return None
    idle = tuple(
        broker
        for broker in partition.replicas
        if broker != row.source
        and broker in partition.isr
        and around.rates.get((broker, FlowDirection.OUT), 0.0) < IDLE_BELOW * around.limit((broker, FlowDirection.OUT))
    )
    return SourceAtItsLimit(row.source, sent, limit, idle) if idle else None


def _find_foreign_throttle(move: RunRow, row: RowMemory, around: RowSurroundings) -> StuckReason | None:
    lanes = {(broker, FlowDirection.IN) for broker in move.work.adding} | {(row.source, FlowDirection.OUT)}
    for throttle in around.foreign:
        if throttle.lane in lanes:
            return RateOfOthers(throttle.name, throttle.key, throttle.value)
        if throttle.resource == "topic" and throttle.name == move.work.row.topic:
            return ListOfOthers(throttle.name, throttle.key)
    return None
