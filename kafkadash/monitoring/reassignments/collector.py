"""Collector of reassignments (KIP-240): progress of those in flight, and the end of those no longer listed.

Kafka gives a reassignment neither an id nor a start time (KIP-455's listing has only the sets of replicas), while
KIP-240 asks for an identity that two successive reassignments of a partition do not share. ``judge_continuity``,
``replaced_as`` and ``ended_as`` decide from two successive refreshes. The pipeline gets the moves and the log ends.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import Enum

from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.leases import WriteStamp
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.export.encoding import Columns
from kafkadash.export.outbox import OutboxFacts
from kafkadash.export.schema import SegmentKind
from kafkadash.kafka.api import (
    UNKNOWN_TOPIC_OR_PARTITION,
    ItemError,
    OffsetKind,
    OffsetQuery,
    OngoingReassignment,
    PartitionMetadata,
    ReplicaOffset,
    ReplicaOffsets,
    TopicMetadata,
)
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts, broker_error, to_utc
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import (
    BrokerWeights,
    MoveOutcome,
    ReassignmentSnapshot,
    StartedFrom,
    StartedThrough,
    TopicState,
)
from kafkadash.monitoring.ownership import NEVER_LISTED, new_move_id
from kafkadash.monitoring.reassignments.ensemble import EnsembleReading, MoveOrigin, MoveStart, list_beside_znodes
from kafkadash.monitoring.reassignments.progress import RateMeter, bytes_per_second, copied_percent, find_copy_start
from kafkadash.monitoring.tiers.stored import find_perhaps_tiered

_LATE_METADATA = timedelta(seconds=60)
"""A broker that has not heard of a submission for as long is fenced."""

_Replica = tuple[str, int, int, int | None, int | None, bool, bool | None]
_REPLICA = ("topic", "partition", "broker", "log_end", "log_start", "is_leader", "in_isr")


def move_facts(running: Sequence[ReassignmentSnapshot]) -> list[OutboxFacts]:
    """Return the facts of the rows just read. No moves are a fact, too; log ends were not read then."""
    facts = [OutboxFacts(SegmentKind.REASSIGNMENT, [_build_move_columns(running)])]
    if running:
        facts.append(OutboxFacts(SegmentKind.REPLICA, [_build_replica_columns(running)]))
    return facts


def _build_move_columns(running: Sequence[ReassignmentSnapshot]) -> Columns:
    return {
        "topic": [row.topic for row in running],
        "partition": [row.partition for row in running],
        "replicas": [row.replicas for row in running],
        "adding": [row.adding for row in running],
        "removing": [row.removing for row in running],
        "first_seen": [row.started_before for row in running],
        "move": [row.claimed_by or None for row in running],
    }


def _build_replica_columns(running: Sequence[ReassignmentSnapshot]) -> Columns:
    """Leader and adding replicas, as far as their log ends were read: what did not answer has no row."""
    rows = [replica for row in running for replica in _read_replicas(row)]
    columns = dict(zip(_REPLICA, zip(*rows, strict=True), strict=True)) if rows else dict.fromkeys(_REPLICA, ())
    return {**columns, "directory": "", "is_future": False, "method": "exact"}


def _read_replicas(row: ReassignmentSnapshot) -> Iterator[_Replica]:
    if row.leader is not None and row.leader_log_end is not None:
        yield row.topic, row.partition, row.leader, row.leader_log_end, row.leader_log_start, True, True
    for replica in row.replicas_progress:
        if replica["log_end"] is not None and replica["broker"] != row.leader:
            end, in_isr = replica["log_end"], replica["in_isr"]
            yield row.topic, row.partition, replica["broker"], end, None, False, in_isr


class MoveContinuity(Enum):
    """Relation of a listed reassignment to the one known for that partition."""

    SAME = "same"
    SUPERSEDED = "superseded"
    RESTARTED = "restarted"


class MoveEnd(Enum):
    """How a reassignment that left the listing ended, read from the partition."""

    COMPLETED = "completed"
    CANCELLED = "cancelled"
    SUPERSEDED = "superseded"
    TOPIC_DELETED = "topic_deleted"


@dataclass(frozen=True, slots=True)
class MoveSighting:
    """A reassignment as one refresh saw it. ``log_ends``: adding broker → its log end offset, where it answered.

    ``batch``: czxid of the legacy znode in ZooKeeper that started it, '' where none did or it was not read.
    """

    replicas: tuple[int, ...]
    adding: frozenset[int]
    removing: frozenset[int]
    leader_epoch: int | None
    log_ends: Mapping[int, int]
    batch: str = ""

    @property
    def target(self) -> frozenset[int]:
        return frozenset(r for r in self.replicas if r not in self.removing)

    @property
    def original(self) -> frozenset[int]:
        return frozenset(r for r in self.replicas if r not in self.adding)


@dataclass(frozen=True, slots=True)
class PartitionNow:
    """The partition as the cluster's metadata tells it; ``topic_id`` '' where the cluster has no topic ids."""

    topic_id: str
    replicas: tuple[int, ...]
    isr: frozenset[int]


def judge_continuity(before: MoveSighting, now: MoveSighting) -> MoveContinuity:
    """Return whether the listed reassignment is still the one seen before.

    SAME needs the same sets and either the same leader epoch, or no adding replica whose log end fell: completion and
    cancel both bump the epoch, and a second copy starts over. A log end that could not be read counts as no evidence.
    """
    if (before.adding, before.removing) != (now.adding, now.removing):
        return MoveContinuity.SUPERSEDED
    if before.batch and now.batch and before.batch != now.batch:
        return MoveContinuity.RESTARTED
    if before.leader_epoch == now.leader_epoch:
        return MoveContinuity.SAME
    fell = any(end < before.log_ends[broker] for broker, end in now.log_ends.items() if broker in before.log_ends)
    return MoveContinuity.RESTARTED if fell else MoveContinuity.SAME


def replaced_as(before: MoveSighting, now: MoveSighting) -> MoveEnd:
    """How a reassignment ended in whose place another one, with other sets, is listed.

    Kafka reckons a new target from the replicas without those still being added: where the new one starts from the old
    one's target, the old one had reached it.
    """
    if now.original == before.target != before.original:
        return MoveEnd.COMPLETED
    return MoveEnd.SUPERSEDED


def ended_as(last: MoveSighting, topic_id: str, partition: PartitionNow | None, *, settled: bool) -> MoveEnd | None:
    """How the reassignment ended, or None while the answering broker may not have heard of the end yet.

    ``partition`` is None when the topic or the partition is gone. Having left the listing is not success: the
    partition must hold the target replicas. The order is not compared, because a reorder right after the end leaves
    the copies where they are. While the partition still has all the replicas it had under way, an answer from before
    the end and one from after it may look the same: that counts only when ``settled``, which means that an earlier
    look did not find the reassignment listed either.
    """
    if partition is None or (topic_id and partition.topic_id and partition.topic_id != topic_id):
        return MoveEnd.TOPIC_DELETED
    current = frozenset(partition.replicas)
    if current == frozenset(last.replicas) and not settled:
        return None
    if current == last.target:
        return MoveEnd.COMPLETED
    return MoveEnd.CANCELLED if current == last.original else MoveEnd.SUPERSEDED


_OBSERVED_FIELDS = [
    "replicas",
    "target",
    "leader",
    "leader_epoch",
    "leader_log_end",
    "leader_log_start",
    "replicas_progress",
    "percent",
    "sampled_at",
    "size_bytes",
    "size_taken_at",
    "rate_bytes",
    "rate_state",
    "started_through",
    "batch_id",
    "continuity_gap",
    "started_before",
    "outcome",
    "ended_at",
    "last_seen_at",
    "epoch",
    "seq",
]


@dataclass(frozen=True, slots=True)
class _ClusterView:
    """The moving topics as metadata tells them, found by name and by partition."""

    topics: Mapping[str, TopicMetadata]
    partitions: Mapping[tuple[str, int], PartitionMetadata]

    @classmethod
    def of(cls, topics: Iterable[TopicMetadata]) -> _ClusterView:
        by_name = {t.name: t for t in topics}
        return cls(by_name, {(t.name, p.partition): p for t in by_name.values() if not t.error for p in t.partitions})


@dataclass(slots=True)
class _MoveChanges:
    new: list[ReassignmentSnapshot] = field(default_factory=list)
    kept: list[ReassignmentSnapshot] = field(default_factory=list)
    ended: list[ReassignmentSnapshot] = field(default_factory=list)
    started: list[ReassignmentSnapshot] = field(default_factory=list)
    """Rows of ``kept`` whose start was told only now."""


@dataclass(frozen=True, slots=True)
class _SeenMoves:
    """Listed reassignment with all facts that were read about it."""

    row: OngoingReassignment
    topic_id: str
    partition: PartitionMetadata | None
    offsets: ReplicaOffsets
    origin: MoveOrigin | None = None

    def offset(self, broker: int | None, kind: OffsetKind) -> ReplicaOffset | None:
        if broker is None:
            return None
        return self.offsets.offsets.get(OffsetQuery(broker, self.row.topic, self.row.partition, kind))

    def error(self, broker: int, kind: OffsetKind) -> str | None:
        failed = self.offsets.errors.get(OffsetQuery(broker, self.row.topic, self.row.partition, kind))
        return failed.text if failed else None

    @property
    def leader(self) -> int | None:
        return self.partition.leader if self.partition else None

    def sight(self) -> MoveSighting:
        ends = {b: o.offset for b in self.row.adding if (o := self.offset(b, OffsetKind.LATEST))}
        epoch = self.partition.leader_epoch if self.partition else None
        sets = frozenset(self.row.adding), frozenset(self.row.removing)
        return MoveSighting(self.row.replicas, *sets, epoch, ends, self.origin.batch_id if self.origin else "")


def read(asking: CollectContext) -> CollectedFacts:
    """Listing, metadata of the moving topics, then one round of log end offsets from the replicas themselves."""
    asking.step()
    beside = list_beside_znodes(asking)
    listing, reading = beside.listing, beside.reading
    told = [coded(CollectionErrorCode.ZOOKEEPER_NOT_READ, why=beside.failure)] if beside.failure else []
    known = {
        (s.topic, s.partition): s
        for s in ReassignmentSnapshot.objects.filter(cluster=asking.cluster, outcome=MoveOutcome.RUNNING)
    }
    names = {row.topic for row in listing.rows} | {topic for topic, _ in known}
    # The time of the listing, not of the figures that follow: what begins in between was not there to be seen.
    taken_at = to_utc(listing.taken_at)
    if not names:
        return CollectedFacts(
            taken_at=taken_at,
            rows=0,
            write=lambda _: beside.store(asking.cluster, taken_at),
            errors=told,
            facts=move_facts([]),
        )
    asking.step()
    metadata = asking.admin.metadata(deadline=asking.deadline, topics=sorted(names))
    view = _ClusterView.of(metadata.topics)
    asking.step()
    tiered = find_perhaps_tiered(asking.cluster, {row.topic for row in listing.rows})
    offsets = _read_offsets(asking, listing.rows, view, tiered)
    sizes = _LeaderSizes(asking.cluster.pk)
    changes = _decide(asking, listing.rows, known, view, offsets, sizes, reading, taken_at)

    def write(stamp: WriteStamp) -> None:
        for snapshot in (*changes.ended, *changes.kept, *changes.new):
            snapshot.epoch, snapshot.seq = stamp.epoch, stamp.seq
        # Ended rows go first: a partition has at most one running row.
        ReassignmentSnapshot.objects.bulk_update([*changes.ended, *changes.kept], _OBSERVED_FIELDS, batch_size=500)
        # A run may have registered its move since the rows were read: the next refresh updates that row.
        ReassignmentSnapshot.objects.bulk_create(changes.new, batch_size=500, ignore_conflicts=True)
        _store_starts(changes.started)
        beside.store(asking.cluster, taken_at)

    silent = sorted({q.broker for q, error in offsets.errors.items() if error.code is None})
    return CollectedFacts(
        taken_at=taken_at,
        rows=len(listing.rows),
        write=write,
        not_answered=silent,
        errors=[*told, *_distinct_errors(offsets.errors)],
        facts=move_facts([*changes.kept, *changes.new]),
    )


def _read_offsets(
    asking: CollectContext, rows: Iterable[OngoingReassignment], view: _ClusterView, tiered: Collection[str]
) -> ReplicaOffsets:
    """Log ends, and where the leader's local log starts; of topics that may be tiered also where copies do."""
    queries = set()
    for row in rows:
        partition = view.partitions.get((row.topic, row.partition))
        if partition and partition.leader is not None:
            queries.add(OffsetQuery(partition.leader, row.topic, row.partition, OffsetKind.LATEST))
            queries.add(OffsetQuery(partition.leader, row.topic, row.partition, OffsetKind.EARLIEST_LOCAL))
        kinds = (OffsetKind.LATEST, OffsetKind.EARLIEST_LOCAL) if row.topic in tiered else (OffsetKind.LATEST,)
        queries.update(OffsetQuery(b, row.topic, row.partition, kind) for b in row.adding for kind in kinds)
    if not queries:
        return ReplicaOffsets({}, {})
    return asking.admin.replica_offsets(queries, deadline=asking.deadline)


def _decide(
    asking: CollectContext,
    rows: Sequence[OngoingReassignment],
    known: Mapping[tuple[str, int], ReassignmentSnapshot],
    view: _ClusterView,
    offsets: ReplicaOffsets,
    sizes: _LeaderSizes,
    reading: EnsembleReading | None,
    taken_at: datetime,
) -> _MoveChanges:
    changes = _MoveChanges()
    orders = _OldOrders(asking.cluster.pk, {row.topic for row in rows if (row.topic, row.partition) not in known})
    gap = asking.succeeded_at is not None and (taken_at - asking.succeeded_at).total_seconds() > 2 * asking.interval_s
    listed = set()
    for row in rows:
        key = (row.topic, row.partition)
        listed.add(key)
        topic = view.topics.get(row.topic)
        origin = reading.origin_of(row) if reading else None
        seen = _SeenMoves(row, topic.topic_id if topic else "", view.partitions.get(key), offsets, origin)
        before = known.get(key)
        verdict = judge_continuity(_last_sight(before), seen.sight()) if before else None
        if before and seen.topic_id and before.topic_id != seen.topic_id:
            _end_snapshot(before, MoveOutcome.TOPIC_DELETED, taken_at, changes)
        elif before and verdict is MoveContinuity.SAME:
            if gap:
                _mark_gap(before, seen, taken_at)
            if reading and _tell_late_start(before, row, reading):
                changes.started.append(before)
            changes.kept.append(_update_snapshot(before, seen, sizes, taken_at))
            continue
        elif before:
            superseded = verdict is MoveContinuity.SUPERSEDED
            outcome = (
                MoveOutcome(replaced_as(_last_sight(before), seen.sight()).value) if superseded else MoveOutcome.UNKNOWN
            )
            _end_snapshot(before, outcome, taken_at, changes)
        new = _begin_snapshot(asking, seen, orders, taken_at)
        new.continuity_gap = gap
        if reading:
            last_look = None if gap else asking.succeeded_at
            _tell_start(new, reading.start_of(row, last_look, taken_at))
        changes.new.append(_update_snapshot(new, seen, sizes, taken_at))
    for key, before in known.items():
        if key not in listed and not _accepted_later(before, taken_at):
            settled = asking.succeeded_at is not None and before.last_seen_at < asking.succeeded_at
            _judge_end(before, view, taken_at, changes, settled=settled)
    return changes


def _accepted_later(before: ReassignmentSnapshot, taken_at: datetime) -> bool:
    """Return whether Kafka accepted it after the listing was read, which therefore tells nothing of it."""
    return before.epoch == NEVER_LISTED and before.last_seen_at >= taken_at


def _mark_gap(before: ReassignmentSnapshot, seen: _SeenMoves, taken_at: datetime) -> None:
    """Record a gap in observation: with another leader epoch, a move of the same sets may have begun meanwhile."""
    before.continuity_gap = True
    epoch = seen.partition.leader_epoch if seen.partition else None
    if before.started_from == StartedFrom.FIRST_SEEN and (epoch is None or epoch != before.leader_epoch):
        before.started_before = taken_at


def _judge_end(
    before: ReassignmentSnapshot, view: _ClusterView, taken_at: datetime, changes: _MoveChanges, *, settled: bool
) -> None:
    """A row that is no longer listed: read the partition. One whose end cannot be read yet stays as it was."""
    topic = view.topics.get(before.topic)
    partition = view.partitions.get((before.topic, before.partition))
    gone = topic is None or (topic.error is not None and topic.error.code == UNKNOWN_TOPIC_OR_PARTITION)
    if topic is not None and not gone and partition is None:
        return
    now = PartitionNow(topic.topic_id, partition.replicas, frozenset(partition.isr)) if topic and partition else None
    end = ended_as(_last_sight(before), before.topic_id, now, settled=settled)
    if end is MoveEnd.CANCELLED and before.epoch == NEVER_LISTED and taken_at - before.last_seen_at < _LATE_METADATA:
        return  # the broker may answer from before the submission
    if end is not None:
        _end_snapshot(before, MoveOutcome(end.value), taken_at, changes)


def _end_snapshot(
    before: ReassignmentSnapshot, outcome: MoveOutcome, taken_at: datetime, changes: _MoveChanges
) -> None:
    before.outcome, before.ended_at = outcome, taken_at
    if outcome is MoveOutcome.COMPLETED:
        # Every target holds the log now: that is read from the partition, so it is a sample like the others.
        before.percent, before.sampled_at = 100.0, taken_at
    changes.ended.append(before)


def _begin_snapshot(
    asking: CollectContext, seen: _SeenMoves, orders: _OldOrders, taken_at: datetime
) -> ReassignmentSnapshot:
    row = seen.row
    return ReassignmentSnapshot(
        cluster=asking.cluster,
        public_id=new_move_id(),
        topic_id=seen.topic_id or row.topic,
        topic=row.topic,
        partition=row.partition,
        adding=sorted(row.adding),
        removing=sorted(row.removing),
        original=orders.of(row),
        started_after=asking.succeeded_at,
        started_before=taken_at,
        started_from=StartedFrom.FIRST_SEEN,
    )


def _tell_start(row: ReassignmentSnapshot, start: MoveStart | None) -> None:
    if start is not None:
        row.started_after, row.started_before, row.started_from = start.after, start.before, start.source


def _tell_late_start(before: ReassignmentSnapshot, row: OngoingReassignment, reading: EnsembleReading) -> bool:
    """Give a reassignment that was only seen the start of its batch, which was not read then; return whether it got it.

    A batch that was created after the reassignment was seen did not start it.
    """
    if before.started_from != StartedFrom.FIRST_SEEN or before.started_through == StartedThrough.API:
        return False
    start = reading.batch_start_of(row, before.started_before)
    _tell_start(before, start)
    return start is not None


def _store_starts(rows: Sequence[ReassignmentSnapshot]) -> None:
    """Only of those that nobody has claimed meanwhile; one statement for each batch."""
    starts: dict[tuple[datetime | None, datetime, str], list[int]] = {}
    for row in rows:
        starts.setdefault((row.started_after, row.started_before, row.started_from), []).append(row.pk)
    for (after, before, source), keys in starts.items():
        only_seen = ReassignmentSnapshot.objects.filter(pk__in=keys, started_from=StartedFrom.FIRST_SEEN)
        only_seen.update(started_after=after, started_before=before, started_from=source)


def _update_snapshot(
    snapshot: ReassignmentSnapshot, seen: _SeenMoves, sizes: _LeaderSizes, taken_at: datetime
) -> ReassignmentSnapshot:
    """Puts what was read into the row. What could not be read becomes empty, never the value of last time."""
    end = seen.offset(seen.leader, OffsetKind.LATEST)
    start = seen.offset(seen.leader, OffsetKind.EARLIEST_LOCAL)
    if seen.origin is not None and not snapshot.started_through:  # an entry of the legacy znode may go before its move
        snapshot.started_through, snapshot.batch_id = seen.origin.through, seen.origin.batch_id
    snapshot.replicas, snapshot.target = list(seen.row.replicas), list(seen.row.target)
    snapshot.leader = seen.leader
    snapshot.leader_epoch = seen.partition.leader_epoch if seen.partition else None
    snapshot.leader_log_end = end.offset if end else None
    snapshot.leader_log_start = start.offset if start else None
    adding = set(seen.row.adding)
    seen_ends = _last_sight(snapshot).log_ends
    snapshot.replicas_progress = [
        _pack_replica(seen, b, start, end, seen_ends.get(b)) for b in snapshot.target if b in adding
    ]
    percents = [r["percent"] for r in snapshot.replicas_progress]
    snapshot.percent = min(percents) if percents and None not in percents else None
    times = [o.taken_at for b in seen.row.adding if (o := seen.offset(b, OffsetKind.LATEST))]
    snapshot.sampled_at = to_utc(min(times)) if times and snapshot.percent is not None else None
    size, snapshot.size_taken_at = sizes.of(seen.leader, seen.row.topic, seen.row.partition)
    _measure_rate(snapshot, seen, end, start, size, seen_ends)
    snapshot.size_bytes = _scale_to_copy(size, snapshot)
    snapshot.last_seen_at = taken_at
    return snapshot


def _pack_replica(
    seen: _SeenMoves, broker: int, start: ReplicaOffset | None, end: ReplicaOffset | None, seen_end: int | None
) -> dict[str, float | int | str | bool | None]:
    """``seen_end`` is the log end that was read last, which a silent broker does not make forgotten."""
    own = seen.offset(broker, OffsetKind.LATEST)
    known = own is not None and start is not None and end is not None
    begin = _locate_copy_start(seen, broker, start)
    return {
        "broker": broker,
        "log_end": own.offset if own else None,
        "seen_end": own.offset if own else seen_end,
        "copy_start": begin,
        "percent": copied_percent(begin, end.offset, own.offset) if own and begin is not None and end else None,
        "lag_records": max(0, end.offset - own.offset) if own and end else None,
        "in_isr": broker in seen.partition.isr if seen.partition else None,
        "taken_at": to_utc(own.taken_at).isoformat() if own else None,
        "error": None if known else seen.error(broker, OffsetKind.LATEST),
    }


def _locate_copy_start(seen: _SeenMoves, broker: int, start: ReplicaOffset | None) -> int | None:
    own = seen.offset(broker, OffsetKind.EARLIEST_LOCAL)
    return find_copy_start(start.offset, own.offset if own else None) if start else None


def _scale_to_copy(size: int | None, snapshot: ReassignmentSnapshot) -> int | None:
    """Return the bytes that the slowest copy gets of the leader's log, which has ``size`` on the leader's disk."""
    start, end = snapshot.leader_log_start, snapshot.leader_log_end
    copies = [r for r in snapshot.replicas_progress if r["percent"] is not None]
    if size is None or start is None or end is None or not copies:
        return size
    begin = min(copies, key=lambda r: r["percent"])["copy_start"]
    return size if begin <= start or end <= start else round(size * max(0, end - begin) / (end - start))


def _distinct_errors(errors: Mapping[OffsetQuery, ItemError]) -> list[CodedMessage]:
    found = {(query.broker, error.text): error.message for query, error in errors.items()}
    return [broker_error(broker, why) for (broker, _), why in sorted(found.items(), key=lambda each: each[0])]


def _measure_rate(
    snapshot: ReassignmentSnapshot,
    seen: _SeenMoves,
    end: ReplicaOffset | None,
    start: ReplicaOffset | None,
    size: int | None,
    seen_ends: Mapping[int, int],
) -> None:
    """Rate of the slowest adding replica; a sample that is missing leaves the measurement as it was.

    ``size``: bytes of the leader's log. The meter counts records that the copy got. Its start and that of the leader's
    log move without any: by retention, and when a copy begins after what is in remote storage (KIP-1023).
    """
    ends = {b: o for b in seen.row.adding if (o := seen.offset(b, OffsetKind.LATEST))}
    if not ends or len(ends) < len(seen.row.adding):
        snapshot.rate_bytes = None
        return
    begins = {r["broker"]: r["copy_start"] for r in snapshot.replicas_progress}
    grown = {b: _count_new_records(own.offset, begins[b], seen_ends.get(b)) for b, own in ends.items()}
    slowest = min(ends, key=lambda b: (ends[b].offset, grown[b] or 0))
    at, new = ends[slowest].taken_at, grown[slowest]
    meter = unpack_dataclass(RateMeter, snapshot.rate_state) if snapshot.rate_state else None
    meter = meter.add(at, meter.value + new) if meter and new is not None else RateMeter.start(at, 0)
    records = end.offset - start.offset if end and start else 0
    snapshot.rate_state = pack_dataclass(meter)
    snapshot.rate_bytes = bytes_per_second(meter.per_second(), size, records)


def _count_new_records(own: int, begin: int | None, seen_end: int | None) -> int | None:
    """Return the records that a copy got since its log end was seen; None where it was not, or the log was cut."""
    if seen_end is None or own < seen_end:
        return None
    return max(0, own - max(begin or 0, seen_end))


def _last_sight(snapshot: ReassignmentSnapshot) -> MoveSighting:
    ends = {r["broker"]: r.get("seen_end", r["log_end"]) for r in snapshot.replicas_progress}
    return MoveSighting(
        tuple(snapshot.replicas),
        frozenset(snapshot.adding),
        frozenset(snapshot.removing),
        snapshot.leader_epoch,
        {broker: end for broker, end in ends.items() if end is not None},
        snapshot.batch_id,
    )


class _OldOrders:
    """The replicas of partitions in the order of before, from the last look at the metadata."""

    def __init__(self, cluster_id: int, topics: Collection[str]) -> None:
        self._orders: dict[tuple[str, int], list[int]] = {}
        if topics:
            stored = TopicState.objects.filter(cluster_id=cluster_id, name__in=topics).values_list("name", "partitions")
            self._orders = {(name, p[0]): p[3] for name, partitions in stored for p in partitions}

    def of(self, row: OngoingReassignment) -> list[int]:
        """Return the replicas in their old order; Kafka's listing order if the metadata is newer than the start."""
        order = self._orders.get((row.topic, row.partition), [])
        return order if set(order) == set(row.original) else list(row.original)


class _LeaderSizes:
    """Sizes of replicas from the last log directory reads; each broker's row is unpacked once, and only if asked."""

    def __init__(self, cluster_id: int) -> None:
        self._cluster_id = cluster_id
        self._brokers: dict[int, tuple[Mapping[str, Mapping[str, int]], datetime | None]] = {}

    def of(self, broker: int | None, topic: str, partition: int) -> tuple[int | None, datetime | None]:
        """Bytes of that broker's replica and when they were read; both None when not known."""
        if broker is None:
            return None, None
        if broker not in self._brokers:
            row = BrokerWeights.objects.filter(cluster_id=self._cluster_id, broker_id=broker).first()
            self._brokers[broker] = (json.loads(zlib.decompress(row.data)), row.taken_at) if row else ({}, None)
        sizes, taken_at = self._brokers[broker]
        size = sizes.get(topic, {}).get(str(partition))
        return size, taken_at if size is not None else None
