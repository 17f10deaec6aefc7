"""Facts about reassignments that only ZooKeeper has: how and when they were started, and which ones wait there.

Kafka lists what is in flight, whoever started it. An entry of the legacy znode that is listed was started through it,
one that is not listed is queued, and what is listed without an entry was started through Kafka's API. The znode is read
before and after the listing: an entry that comes or goes meanwhile is never taken for one of the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.clusters.secrets import SecretError
from kafkadash.core.messages import CodedMessage, message_columns
from kafkadash.kafka.api import (
    KafkaFailure,
    ListedReassignments,
    OngoingReassignment,
    TopicPartition,
    ZooKeeperConnection,
)
from kafkadash.kafka.connect import open_zookeeper
from kafkadash.kafka.znodes import (
    ReassignmentBatch,
    TopicZNode,
    ZNodeReader,
    ZooKeeperFacts,
    read_batch,
    read_facts,
    read_topics,
)
from kafkadash.monitoring.cluster_events.rules import EventDraft, describe_controller
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.collectors import CollectContext
from kafkadash.monitoring.models import StartedFrom, StartedThrough, ZooKeeperState

_LATEST = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class MoveOrigin:
    """How a listed reassignment was started; ``batch_id`` is '' where it was not through the legacy znode."""

    through: StartedThrough
    batch_id: str = ""


@dataclass(frozen=True, slots=True)
class MoveStart:
    """When it started, as of ``ReassignmentSnapshot``."""

    after: datetime | None
    before: datetime
    source: StartedFrom


_SKEW = timedelta(minutes=1)
"""How far the clocks of ZooKeeper's servers may be ahead."""


@dataclass(frozen=True, slots=True)
class EnsembleReading:
    """Reading of ZooKeeper by a refresh. ``known_batch``: the legacy znode of the last good reading."""

    facts: ZooKeeperFacts
    earlier: ReassignmentBatch | None
    topics: Mapping[str, TopicZNode]
    listed: frozenset[TopicPartition]
    known_batch: str

    def origin_of(self, row: OngoingReassignment) -> MoveOrigin:
        batch = self._batch_of(row)
        return MoveOrigin(StartedThrough.ZNODE, batch.id) if batch else MoveOrigin(StartedThrough.API)

    def start_of(self, row: OngoingReassignment, last_look: datetime | None, taken_at: datetime) -> MoveStart | None:
        """Return when a reassignment started that no earlier refresh has seen; None where ZooKeeper does not tell.

        ``last_look``: when it was not listed; None where nobody looked lately. The last write of the topic's znode is
        the latest start: new partitions, other moves, and a KRaft controller that copies its changes write it too. A
        time far after ``taken_at``, or before ``last_look``, is none.
        """
        latest = taken_at + _SKEW
        if self._batch_of(row):
            return self.batch_start_of(row, latest)
        topic = self.topics.get(row.topic)
        if topic is None or _sets_of(topic, row.partition) != (frozenset(row.adding), frozenset(row.removing)):
            return None
        written = _to_utc(topic.modified_ms)
        if written > latest or (last_look and written < last_look):
            return None
        return MoveStart(last_look, written, StartedFrom.ZK_MTIME)

    def batch_start_of(self, row: OngoingReassignment, latest: datetime) -> MoveStart | None:
        """Return the creation of the batch that started it; None where none did, or one later than ``latest``.

        An entry that was added to a batch seen before was started by a new controller, at a time unknown.
        """
        batch = self._batch_of(row)
        if batch is None or (batch.id == self.known_batch and not self._is_original(row, batch)):
            return None
        created = _to_utc(batch.created_ms)
        return MoveStart(created, created, StartedFrom.ZK_CTIME) if created <= latest else None

    def queued(self) -> list[list[Any]]:
        """Entries that are not listed, seen before and after the listing."""
        batch, earlier = self.facts.batch, self.earlier
        if batch is None or earlier is None or batch.czxid != earlier.czxid:
            return []
        waiting = (batch.targets.keys() & earlier.targets.keys()) - self.listed
        return [[each.topic, each.partition, list(batch.targets[each])] for each in sorted(waiting)]

    def _batch_of(self, row: OngoingReassignment) -> ReassignmentBatch | None:
        """The batch with this partition and target: a move through the API takes the place of its entry."""
        return next(iter(self._batches_with(row)), None)

    def _batches_with(self, row: OngoingReassignment) -> list[ReassignmentBatch]:
        """The newest first, of the two readings."""
        key = TopicPartition(row.topic, row.partition)
        return [batch for batch in (self.facts.batch, self.earlier) if batch and batch.targets.get(key) == row.target]

    def _is_original(self, row: OngoingReassignment, batch: ReassignmentBatch) -> bool:
        """Return whether the batch was created with this entry, as far as one of the readings tells it."""
        return any(each.version == 0 for each in self._batches_with(row) if each.czxid == batch.czxid)


@dataclass(frozen=True, slots=True)
class ListingBeside:
    """Kafka's listing with what ZooKeeper told; ``failure`` says why it told nothing, if it was asked."""

    listing: ListedReassignments
    reading: EnsembleReading | None = None
    failure: CodedMessage | None = None

    def store(self, cluster: Cluster, taken_at: datetime) -> None:
        """Keep what was told, and an election of the controller; after a failure the values stay, with their age."""
        if self.reading is not None:
            values = _pack_reading(self.reading, taken_at)
            before = ZooKeeperState.objects.filter(cluster=cluster).first()
            if before is not None:
                store_events(cluster.pk, _find_election(before, values), taken_at, before.taken_at)
        elif self.failure is not None:
            values = {"failed_at": taken_at, **message_columns(self.failure, "error")}
        else:
            return
        ZooKeeperState.objects.update_or_create(cluster=cluster, defaults=values)


def _find_election(before: ZooKeeperState, values: Mapping[str, Any]) -> list[EventDraft]:
    epoch, leader = values["controller_epoch"], values["controller_id"]
    if before.controller_epoch is None or epoch is None or epoch <= before.controller_epoch or leader is None:
        return []
    known = -1 if before.controller_id is None else before.controller_id
    return [describe_controller((known, before.controller_epoch), (leader, epoch))]


_LONGEST_S = 2.0
"""For ZooKeeper before and after Kafka's listing: running moves wait for that one."""


def list_beside_znodes(asking: CollectContext) -> ListingBeside:
    """List what is in flight, and read ZooKeeper where the cluster runs in that mode and its address is known.

    Raises KafkaFailure where Kafka does not answer; a failure of ZooKeeper is part of the answer.
    """
    if asking.cluster.mode != ClusterMode.ZOOKEEPER or not asking.cluster.zookeeper:
        return ListingBeside(asking.admin.list_reassignments(deadline=asking.deadline))
    known = ZooKeeperState.objects.filter(cluster=asking.cluster).values_list("batch_id", flat=True).first() or ""
    failure: CodedMessage | None = None
    session: ZNodeReader | None = None
    earlier: ReassignmentBatch | None = None
    with ExitStack() as stack:
        try:
            seconds = min(_LONGEST_S, asking.deadline)
            session = stack.enter_context(open_zookeeper(_connection_of(asking.cluster), deadline=seconds))
            earlier = read_batch(session)
        except (KafkaFailure, SecretError) as error:
            failure = error.message
        asking.step()
        listing = asking.admin.list_reassignments(deadline=asking.deadline)
        if session is None or failure is not None:
            return ListingBeside(listing, failure=failure)
        try:
            session.extend(min(_LONGEST_S, asking.deadline))
            return ListingBeside(listing, _read_rest(session, listing, earlier, known))
        except KafkaFailure as error:
            return ListingBeside(listing, failure=error.message)


def _connection_of(cluster: Cluster) -> ZooKeeperConnection:
    connection = cluster.zookeeper_connection()
    assert connection is not None
    return connection


def _read_rest(
    session: ZNodeReader, listing: ListedReassignments, earlier: ReassignmentBatch | None, known: str
) -> EnsembleReading:
    return EnsembleReading(
        read_facts(session),
        earlier,
        read_topics(session, {row.topic for row in listing.rows}),
        frozenset(TopicPartition(row.topic, row.partition) for row in listing.rows),
        known,
    )


def _pack_reading(reading: EnsembleReading, taken_at: datetime) -> dict[str, Any]:
    facts, most = reading.facts, ZooKeeperState.MOST_PENDING
    controller, batch, queued = facts.controller, facts.batch, reading.queued()
    return {
        "taken_at": taken_at,
        "controller_id": controller.broker_id if controller else None,
        "controller_epoch": facts.controller_epoch,
        "elected_at": _to_utc(controller.elected_ms) if controller and controller.elected_ms is not None else None,
        "kraft_epoch": controller.kraft_epoch if controller else None,
        "batch_id": batch.id if batch else "",
        "batch_at": _to_utc(batch.created_ms) if batch else None,
        "batch_count": len(batch.targets) if batch else 0,
        "queued": queued[:most],
        "queued_count": len(queued),
        "elections": [[each.topic, each.partition] for each in facts.elections[:most]],
        "elections_count": len(facts.elections),
        "deletions": list(facts.deletions[:most]),
        "deletions_count": len(facts.deletions),
        "failed_at": None,
        **message_columns(None, "error"),
    }


def _sets_of(topic: TopicZNode, partition: int) -> tuple[frozenset[int], frozenset[int]]:
    return frozenset(topic.adding.get(partition, ())), frozenset(topic.removing.get(partition, ()))


def _to_utc(ms: int) -> datetime:
    """A time that no calendar has is the latest one there is."""
    try:
        return datetime.fromtimestamp(ms / 1000, UTC)
    except (ValueError, OverflowError, OSError):
        return _LATEST
