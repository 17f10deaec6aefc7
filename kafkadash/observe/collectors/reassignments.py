"""Reassignments in flight with their true progress, and how those ended that are no longer listed (KIP-240)."""

from __future__ import annotations

import json
import secrets
import zlib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from kafkadash.domain.progress import RateMeter, bytes_per_second, copied_percent
from kafkadash.domain.reassignment import Continuity, PartitionNow, Sight, continuity, ended_as, replaced_as
from kafkadash.kafka.port import (
    OffsetKind,
    OffsetQuery,
    OngoingReassignment,
    Partition,
    ReplicaOffset,
    ReplicaOffsets,
    Topic,
)
from kafkadash.observe.collectors.move_facts import move_facts
from kafkadash.observe.collectors.reading import Asking, Reading, moment
from kafkadash.observe.lease import Stamp
from kafkadash.observe.models import BrokerWeights, Outcome, ReassignmentSnapshot, StartedFrom, TopicState

_UNKNOWN_TOPIC_OR_PARTITION = 3

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
    "continuity_gap",
    "started_before",
    "outcome",
    "ended_at",
    "last_seen_at",
    "epoch",
    "seq",
]


@dataclass(frozen=True, slots=True)
class _View:
    """The moving topics as metadata tells them, found by name and by partition."""

    topics: Mapping[str, Topic]
    partitions: Mapping[tuple[str, int], Partition]

    @classmethod
    def of(cls, topics: Iterable[Topic]) -> _View:
        by_name = {t.name: t for t in topics}
        return cls(by_name, {(t.name, p.partition): p for t in by_name.values() if not t.error for p in t.partitions})


@dataclass(slots=True)
class _Changes:
    new: list[ReassignmentSnapshot] = field(default_factory=list)
    kept: list[ReassignmentSnapshot] = field(default_factory=list)
    ended: list[ReassignmentSnapshot] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Seen:
    """One listed reassignment with everything that was read about it."""

    row: OngoingReassignment
    topic_id: str
    partition: Partition | None
    offsets: ReplicaOffsets

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

    def sight(self) -> Sight:
        ends = {b: o.offset for b in self.row.adding if (o := self.offset(b, OffsetKind.LATEST))}
        epoch = self.partition.leader_epoch if self.partition else None
        return Sight(self.row.replicas, frozenset(self.row.adding), frozenset(self.row.removing), epoch, ends)


def read(asking: Asking) -> Reading:
    """Listing, metadata of the moving topics, then one round of log end offsets from the replicas themselves."""
    asking.step()
    listing = asking.admin.list_reassignments(deadline=asking.deadline)
    known = {
        (s.topic, s.partition): s
        for s in ReassignmentSnapshot.objects.filter(cluster=asking.cluster, outcome=Outcome.RUNNING)
    }
    names = {row.topic for row in listing.rows} | {topic for topic, _ in known}
    if not names:
        return Reading(taken_at=moment(listing.taken_at), rows=0, write=lambda _: None, facts=move_facts([]))
    asking.step()
    metadata = asking.admin.metadata(deadline=asking.deadline, topics=sorted(names))
    view = _View.of(metadata.topics)
    asking.step()
    offsets = _read_offsets(asking, listing.rows, view)
    # The time of the listing, not of the figures that follow: what begins in between was not there to be seen.
    taken_at = moment(listing.taken_at)
    sizes = _LeaderSizes(asking.cluster.pk)
    changes = _decide(asking, listing.rows, known, view, offsets, sizes, taken_at)

    def write(stamp: Stamp) -> None:
        for snapshot in (*changes.ended, *changes.kept, *changes.new):
            snapshot.epoch, snapshot.seq = stamp.epoch, stamp.seq
        # Ended rows go first: a partition has at most one running row.
        ReassignmentSnapshot.objects.bulk_update([*changes.ended, *changes.kept], _OBSERVED_FIELDS, batch_size=500)
        ReassignmentSnapshot.objects.bulk_create(changes.new, batch_size=500)

    silent = sorted({q.broker for q, error in offsets.errors.items() if error.code is None})
    return Reading(
        taken_at=taken_at,
        rows=len(listing.rows),
        write=write,
        not_answered=silent,
        errors=sorted({f"broker {q.broker}: {error.text}" for q, error in offsets.errors.items()}),
        facts=move_facts([*changes.kept, *changes.new]),
    )


def _read_offsets(asking: Asking, rows: Iterable[OngoingReassignment], view: _View) -> ReplicaOffsets:
    queries = set()
    for row in rows:
        partition = view.partitions.get((row.topic, row.partition))
        if partition and partition.leader is not None:
            queries.add(OffsetQuery(partition.leader, row.topic, row.partition, OffsetKind.LATEST))
            queries.add(OffsetQuery(partition.leader, row.topic, row.partition, OffsetKind.EARLIEST))
        queries.update(OffsetQuery(b, row.topic, row.partition, OffsetKind.LATEST) for b in row.adding)
    if not queries:
        return ReplicaOffsets({}, {})
    return asking.admin.replica_offsets(queries, deadline=asking.deadline)


def _decide(
    asking: Asking,
    rows: Sequence[OngoingReassignment],
    known: Mapping[tuple[str, int], ReassignmentSnapshot],
    view: _View,
    offsets: ReplicaOffsets,
    sizes: _LeaderSizes,
    taken_at: datetime,
) -> _Changes:
    changes = _Changes()
    orders = _OldOrders(asking.cluster.pk, {row.topic for row in rows if (row.topic, row.partition) not in known})
    gap = asking.succeeded_at is not None and (taken_at - asking.succeeded_at).total_seconds() > 2 * asking.interval_s
    listed = set()
    for row in rows:
        key = (row.topic, row.partition)
        listed.add(key)
        topic = view.topics.get(row.topic)
        seen = _Seen(row, topic.topic_id if topic else "", view.partitions.get(key), offsets)
        before = known.get(key)
        verdict = continuity(_last_sight(before), seen.sight()) if before else None
        if before and seen.topic_id and before.topic_id != seen.topic_id:
            _end(before, Outcome.TOPIC_DELETED, taken_at, changes)
        elif before and verdict is Continuity.SAME:
            if gap:
                _doubt(before, seen, taken_at)
            changes.kept.append(_observe(before, seen, sizes, taken_at))
            continue
        elif before:
            superseded = verdict is Continuity.SUPERSEDED
            outcome = Outcome(replaced_as(_last_sight(before), seen.sight()).value) if superseded else Outcome.UNKNOWN
            _end(before, outcome, taken_at, changes)
        new = _begin(asking, seen, orders, taken_at)
        new.continuity_gap = gap
        changes.new.append(_observe(new, seen, sizes, taken_at))
    for key, before in known.items():
        if key not in listed:
            settled = asking.succeeded_at is not None and before.last_seen_at < asking.succeeded_at
            _judge_end(before, view, taken_at, changes, settled=settled)
    return changes


def _doubt(before: ReassignmentSnapshot, seen: _Seen, taken_at: datetime) -> None:
    """Nobody looked for long: with another leader epoch it may be another one with the same sets, begun meanwhile."""
    before.continuity_gap = True
    epoch = seen.partition.leader_epoch if seen.partition else None
    if before.started_from == StartedFrom.FIRST_SEEN and (epoch is None or epoch != before.leader_epoch):
        before.started_before = taken_at


def _judge_end(
    before: ReassignmentSnapshot, view: _View, taken_at: datetime, changes: _Changes, *, settled: bool
) -> None:
    """A row that is no longer listed: read the partition. One whose end cannot be read yet stays as it was."""
    topic = view.topics.get(before.topic)
    partition = view.partitions.get((before.topic, before.partition))
    gone = topic is None or (topic.error is not None and topic.error.code == _UNKNOWN_TOPIC_OR_PARTITION)
    if topic is not None and not gone and partition is None:
        return
    now = PartitionNow(topic.topic_id, partition.replicas, frozenset(partition.isr)) if topic and partition else None
    end = ended_as(_last_sight(before), before.topic_id, now, settled=settled)
    if end is not None:
        _end(before, Outcome(end.value), taken_at, changes)


def _end(before: ReassignmentSnapshot, outcome: Outcome, taken_at: datetime, changes: _Changes) -> None:
    before.outcome, before.ended_at = outcome, taken_at
    if outcome is Outcome.COMPLETED:
        # Every target holds the log now: that is read from the partition, so it is a sample like the others.
        before.percent, before.sampled_at = 100.0, taken_at
    changes.ended.append(before)


def _begin(asking: Asking, seen: _Seen, orders: _OldOrders, taken_at: datetime) -> ReassignmentSnapshot:
    row = seen.row
    return ReassignmentSnapshot(
        cluster=asking.cluster,
        public_id=f"r-{secrets.token_hex(6)}",
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


def _observe(
    snapshot: ReassignmentSnapshot, seen: _Seen, sizes: _LeaderSizes, taken_at: datetime
) -> ReassignmentSnapshot:
    """Puts what was read into the row. What could not be read becomes empty, never the value of last time."""
    end = seen.offset(seen.leader, OffsetKind.LATEST)
    start = seen.offset(seen.leader, OffsetKind.EARLIEST)
    snapshot.replicas, snapshot.target = list(seen.row.replicas), list(seen.row.target)
    snapshot.leader = seen.leader
    snapshot.leader_epoch = seen.partition.leader_epoch if seen.partition else None
    snapshot.leader_log_end = end.offset if end else None
    snapshot.leader_log_start = start.offset if start else None
    adding = set(seen.row.adding)
    seen_ends = _last_sight(snapshot).log_ends
    snapshot.replicas_progress = [
        _replica(seen, b, start, end, seen_ends.get(b)) for b in snapshot.target if b in adding
    ]
    percents = [r["percent"] for r in snapshot.replicas_progress]
    snapshot.percent = min(percents) if percents and None not in percents else None
    times = [o.taken_at for b in seen.row.adding if (o := seen.offset(b, OffsetKind.LATEST))]
    snapshot.sampled_at = moment(min(times)) if times and snapshot.percent is not None else None
    snapshot.size_bytes, snapshot.size_taken_at = sizes.of(seen.leader, seen.row.topic, seen.row.partition)
    _measure_rate(snapshot, seen, end, start)
    snapshot.last_seen_at = taken_at
    return snapshot


def _replica(
    seen: _Seen, broker: int, start: ReplicaOffset | None, end: ReplicaOffset | None, seen_end: int | None
) -> dict[str, float | int | str | bool | None]:
    """``seen_end`` is the log end that was read last, which a silent broker does not make forgotten."""
    own = seen.offset(broker, OffsetKind.LATEST)
    known = own is not None and start is not None and end is not None
    return {
        "broker": broker,
        "log_end": own.offset if own else None,
        "seen_end": own.offset if own else seen_end,
        "percent": copied_percent(start.offset, end.offset, own.offset) if own and start and end else None,
        "lag_records": max(0, end.offset - own.offset) if own and end else None,
        "in_isr": broker in seen.partition.isr if seen.partition else None,
        "taken_at": moment(own.taken_at).isoformat() if own else None,
        "error": None if known else seen.error(broker, OffsetKind.LATEST),
    }


def _measure_rate(
    snapshot: ReassignmentSnapshot, seen: _Seen, end: ReplicaOffset | None, start: ReplicaOffset | None
) -> None:
    """Rate of the slowest adding replica; a sample that is missing leaves the measurement as it was."""
    ends = [o for b in seen.row.adding if (o := seen.offset(b, OffsetKind.LATEST))]
    if not ends or len(ends) < len(seen.row.adding):
        snapshot.rate_bytes = None
        return
    slowest = min(ends, key=lambda o: o.offset)
    meter = RateMeter.from_list(snapshot.rate_state) if snapshot.rate_state else None
    meter = meter.add(slowest.taken_at, slowest.offset) if meter else RateMeter.start(slowest.taken_at, slowest.offset)
    records = end.offset - start.offset if end and start else 0
    snapshot.rate_state = meter.as_list()
    snapshot.rate_bytes = bytes_per_second(meter.per_second(), snapshot.size_bytes, records)


def _last_sight(snapshot: ReassignmentSnapshot) -> Sight:
    ends = {r["broker"]: r.get("seen_end", r["log_end"]) for r in snapshot.replicas_progress}
    return Sight(
        tuple(snapshot.replicas),
        frozenset(snapshot.adding),
        frozenset(snapshot.removing),
        snapshot.leader_epoch,
        {broker: end for broker, end in ends.items() if end is not None},
    )


class _OldOrders:
    """The replicas of partitions in the order of before, from the last look at the metadata."""

    def __init__(self, cluster_id: int, topics: Collection[str]) -> None:
        self._orders: dict[tuple[str, int], list[int]] = {}
        if topics:
            stored = TopicState.objects.filter(cluster_id=cluster_id, name__in=topics).values_list("name", "partitions")
            self._orders = {(name, p[0]): p[3] for name, partitions in stored for p in partitions}

    def of(self, row: OngoingReassignment) -> list[int]:
        """Where that look was after the start, the order is not known: then that of the listing, which is Kafka's."""
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
