"""Topology of a cluster for planning and checking, and the pipeline's workload, from stored rows only."""

from __future__ import annotations

import json
import zlib
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from threading import Lock
from typing import Any

from django.db.models import Count, Max, Min, Q, QuerySet
from django.utils import timezone

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.core.status import NEVER, RefreshStatus
from kafkadash.history.models import Workload
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    MoveOutcome,
    ReassignmentSnapshot,
    TopicState,
    is_closed,
)
from kafkadash.planning.preconditions import ClusterSeen, MovingPartitions
from kafkadash.planning.solver.workload import FRESH, TopicWorkload, WorkloadBytes, Workloads, with_rates
from kafkadash.planning.topology import ClusterTopology, LogDirectory, PlannedBroker, PlannedPartition, PlannedTopic

KEPT = 4
"""Plans whose rates a process keeps, for they are checked again and again."""


@dataclass(frozen=True, slots=True)
class WorkloadModel:
    """Workload model of a cluster: ``topics`` with a fresh model, from when to when; ``old_at`` is the time of the
    newest where all of them are too old, None where there never was one.
    """

    topics: int
    from_at: datetime | None
    to_at: datetime | None
    old_at: datetime | None


def load_workloads(cluster: Cluster, topics: Collection[str] | None, now: datetime) -> Workloads:
    """Fresh ones, of all topics or of these; two queries at most."""
    rows = _filter_fresh(cluster, now)
    if topics is None:
        return _unpack_workloads(rows)
    rows = rows.filter(topic__in=list(topics))
    made = rows.aggregate(count=Count("pk"), version=Max("version"))
    if not made["count"]:
        return {}
    return _workload_cache.get(cluster, topics, (made["count"], made["version"]), rows)


def model_of(cluster: Cluster, now: datetime) -> WorkloadModel:
    """Return the workload model of the cluster, with one query."""
    fresh = Q(format=Workload.FORMAT, to_at__gte=now - FRESH)
    found = Workload.objects.filter(cluster=cluster).aggregate(
        topics=Count("pk", filter=fresh),
        begin=Min("from_at", filter=fresh),
        end=Max("to_at", filter=fresh),
        newest=Max("to_at"),
    )
    return WorkloadModel(found["topics"], found["begin"], found["end"], None if found["topics"] else found["newest"])


def _filter_fresh(cluster: Cluster, now: datetime) -> QuerySet[Workload]:
    return Workload.objects.filter(cluster=cluster, format=Workload.FORMAT, to_at__gte=now - FRESH)


def _unpack_workloads(rows: QuerySet[Workload]) -> Workloads:
    return {
        topic: TopicWorkload(from_at, to_at, _workload_partitions(packed))
        for topic, from_at, to_at, packed in rows.values_list("topic", "from_at", "to_at", "partitions")
    }


def _workload_partitions(packed: Mapping[str, list[Any]]) -> dict[int, WorkloadBytes]:
    figures = zip(packed["partition"], packed["in"], packed["peak"], packed["grows"], strict=True)
    return {partition: WorkloadBytes(typical, peak, grows) for partition, typical, peak, grows in figures}


class _WorkloadCache:
    """Cache of the workloads of plans' topics, until the pipeline hands back another model of one topic."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[tuple[int, frozenset[str]], tuple[tuple[int, int], Workloads]] = OrderedDict()

    def get(
        self, cluster: Cluster, topics: Collection[str], version: tuple[int, int], rows: QuerySet[Workload]
    ) -> Workloads:
        key = cluster.pk, frozenset(topics)
        with self._lock:
            kept, workloads = self._of.get(key, (None, {}))
        if kept != version:
            workloads = _unpack_workloads(rows)
        with self._lock:
            self._of[key] = version, workloads
            self._of.move_to_end(key)
            while len(self._of) > KEPT:
                self._of.popitem(last=False)
        return workloads


_workload_cache = _WorkloadCache()


KEPT_PARTITIONS = 250_000
"""Unpacked topics that a process keeps for the next check; about 100 MB."""

KEPT_SIZES = 4
"""Plans whose sizes a process keeps; of 50,000 rows about 15 MB each."""

Sizes = Mapping[int, Mapping[str, Mapping[str, int]]]
"""Broker → topic → partition as text → bytes."""


@dataclass(frozen=True, slots=True)
class LoadedTopology:
    """``seen`` has the topology with what moves and how reading went.

    ``facts_at``: age of the oldest facts in it, None if some kind was never read. ``workloads``: what the rates in it
    are from, which are older than all that.
    """

    seen: ClusterSeen
    facts_at: datetime | None
    workloads: Workloads = field(default_factory=dict)

    @property
    def topology(self) -> ClusterTopology:
        return self.seen.topology


@without_search_for_cycles()
def load_topology(cluster: Cluster, topics: Collection[str] | None = None, *, sizes: bool = True) -> LoadedTopology:
    """All topics, or these only; eight queries at most.

    A partition is as large as its leader's replica; where that broker was not read, or there is no leader, as the
    largest replica in sync that was. What it takes in is what the pipeline reckoned, where that is fresh. Without
    ``sizes`` both stay unknown, which is quicker.
    """
    runs = {run.kind: run for run in CollectorRun.objects.filter(cluster=cluster)}
    moving = _load_moving(cluster, topics)
    known_sizes = _sizes_kept.get(cluster, topics, runs.get(CollectorKind.LOG_DIRS)) if sizes else {}
    weights = {w.broker_id: w for w in _load_weights(cluster, packed=known_sizes is None)}
    brokers = {b.broker_id: _broker(b, weights.get(b.broker_id)) for b in BrokerState.objects.filter(cluster=cluster)}
    if known_sizes is None:
        known_sizes = {id_: _unpack_sizes(w, topics) for id_, w in weights.items()}
        _sizes_kept.put(cluster, topics, runs.get(CollectorKind.LOG_DIRS), known_sizes)
    workloads = load_workloads(cluster, topics, timezone.now()) if sizes else {}
    found = {
        topic.name: with_rates(_add_sizes(topic, moving, known_sizes), workloads.get(topic.name))
        for topic in _load_topics(cluster, topics)
    }
    log_dirs = _build_refreshed(runs.get(CollectorKind.LOG_DIRS))
    serving = [id_ for id_, broker in brokers.items() if broker.up]
    read = [weights[id_].taken_at for id_ in serving if id_ in weights]
    if log_dirs.taken_at is not None and read:
        # A broker that did not answer keeps what was read before; the refresh as a whole looks newer than that. Those
        # that are not up are given nothing.
        log_dirs = replace(log_dirs, taken_at=min([log_dirs.taken_at, *read]))
    seen = ClusterSeen(
        topology=ClusterTopology(brokers, found, cluster.kafka_id),
        moving=moving,
        metadata=_build_refreshed(runs.get(CollectorKind.METADATA)),
        reassignments=_build_refreshed(runs.get(CollectorKind.REASSIGNMENTS)),
        quorum=_build_refreshed(runs.get(CollectorKind.QUORUM)),
        log_dirs=log_dirs,
        zookeeper=cluster.mode == ClusterMode.ZOOKEEPER,
    )
    times = [seen.metadata.taken_at, seen.reassignments.taken_at, *([log_dirs.taken_at] if sizes else [])]
    known = [at for at in times if at is not None]
    return LoadedTopology(seen, min(known) if len(known) == len(times) else None, workloads)


def load_brokers(cluster: Cluster) -> dict[int, PlannedBroker]:
    """With their disks, without what is on them; two queries."""
    weights = {w.broker_id: w for w in _load_weights(cluster, packed=False)}
    return {b.broker_id: _broker(b, weights.get(b.broker_id)) for b in BrokerState.objects.filter(cluster=cluster)}


def _load_moving(cluster: Cluster, topics: Collection[str] | None) -> dict[tuple[str, int], MovingPartitions]:
    rows = ReassignmentSnapshot.objects.filter(cluster=cluster, outcome=MoveOutcome.RUNNING)
    if topics is not None:
        rows = rows.filter(topic__in=list(topics))
    listed = rows.values_list("topic", "partition", "adding", "removing")
    return {
        (topic, number): MovingPartitions(frozenset(adding), frozenset(removing))
        for topic, number, adding, removing in listed
    }


def _load_weights(cluster: Cluster, *, packed: bool) -> Iterable[BrokerWeights]:
    rows = BrokerWeights.objects.filter(cluster=cluster)
    return rows if packed else rows.defer("data")


def _broker(row: BrokerState, weights: BrokerWeights | None) -> PlannedBroker:
    """Return the broker of a stored row; a gone broker is not alive and has no directories."""
    if row.gone_at is not None:
        return PlannedBroker(row.broker_id, row.rack, alive=False)
    dirs = tuple(_directory(stored) for stored in weights.dirs) if weights else ()
    return PlannedBroker(
        row.broker_id, row.rack, alive=True, fenced=bool(row.fenced), dirs=dirs, silent=row.silent_since is not None
    )


def _directory(stored: Mapping[str, Any]) -> LogDirectory:
    """Return the stored log directory. Planning takes an offline one as cordoned."""
    total, usable = stored["total_bytes"], stored["usable_bytes"]
    used = None if total is None or usable is None else max(0, total - usable)
    return LogDirectory(stored["path"], total, used, is_closed(stored))


def _unpack_sizes(weights: BrokerWeights, topics: Collection[str] | None) -> dict[str, dict[str, int]]:
    packed: dict[str, dict[str, int]] = json.loads(zlib.decompress(weights.data))
    return packed if topics is None else {name: packed[name] for name in topics if name in packed}


def _load_topics(cluster: Cluster, topics: Collection[str] | None) -> Iterable[PlannedTopic]:
    """Return the stored topics. Named topics that were unpacked before and have not changed come from the cache."""
    rows = TopicState.objects.filter(cluster=cluster)
    if topics is not None:
        rows = rows.filter(name__in=list(topics))
    if topics is None:
        names = rows.values_list("topic_id", "name", "internal", "min_isr", "partitions")
        return [_topic(*row[:4], _unpack_partitions(row[4])) for row in names]
    heads = list(rows.values_list("pk", "shape", "topic_id", "name", "internal", "min_isr"))
    kept = {pk: _topology_cache.get((pk, shape)) for pk, shape, *_ in heads}
    missing = [pk for pk, partitions in kept.items() if partitions is None]
    for pk, shape, packed in TopicState.objects.filter(pk__in=missing).values_list("pk", "shape", "partitions"):
        # The shape as well: what is kept under it must be what it is the digest of, also if it changed just now.
        kept[pk] = partitions = _unpack_partitions(packed)
        _topology_cache.put((pk, shape), partitions)
    result = []
    for pk, _, topic_id, name, internal, min_isr in heads:
        own = kept[pk]
        if own is not None:
            result.append(_topic(topic_id, name, internal, min_isr, own))
    return result


def _topic(
    topic_id: str, name: str, internal: bool, min_isr: int | None, partitions: tuple[PlannedPartition, ...]
) -> PlannedTopic:
    """Before Kafka 2.8 the name is stored in place of an id; a plan has none then."""
    return PlannedTopic(name, partitions, "" if topic_id == name else topic_id, internal, min_isr)


def _unpack_partitions(packed: Sequence[Sequence[Any]]) -> tuple[PlannedPartition, ...]:
    return tuple(
        PlannedPartition(number, tuple(replicas), tuple(isr), leader) for number, leader, _, replicas, isr, _ in packed
    )


def _add_sizes(topic: PlannedTopic, moving: Mapping[tuple[str, int], MovingPartitions], sizes: Sizes) -> PlannedTopic:
    of_topic = {broker: own for broker, topics in sizes.items() if (own := topics.get(topic.name))}
    if not of_topic and not any((topic.name, p.partition) in moving for p in topic.partitions):
        return topic
    partitions = tuple(
        PlannedPartition(
            p.partition,
            p.replicas,
            p.isr,
            p.leader,
            _find_size(p, str(p.partition), of_topic),
            None,
            (topic.name, p.partition) in moving,
        )
        for p in topic.partitions
    )
    return PlannedTopic(topic.name, partitions, topic.id, topic.internal, topic.min_isr)


def _find_size(p: PlannedPartition, number: str, sizes: Mapping[int, Mapping[str, int]]) -> int | None:
    if p.leader is not None and p.leader in sizes and number in sizes[p.leader]:
        return sizes[p.leader][number]
    return max((sizes[b][number] for b in p.isr if b in sizes and number in sizes[b]), default=None)


def _build_refreshed(run: CollectorRun | None) -> RefreshStatus:
    if run is None:
        return NEVER
    return RefreshStatus(run.succeeded_at, run.interval_s, run.failures, run.last_failure, run.last_error)


class _TopologyCache:
    """The topics used last, by primary key and digest of their shape."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._topics: OrderedDict[tuple[int, str], tuple[PlannedPartition, ...]] = OrderedDict()
        self._size = 0

    def get(self, key: tuple[int, str]) -> tuple[PlannedPartition, ...] | None:
        with self._lock:
            if key in self._topics:
                self._topics.move_to_end(key)
            return self._topics.get(key)

    def put(self, key: tuple[int, str], partitions: tuple[PlannedPartition, ...]) -> None:
        with self._lock:
            if key not in self._topics:
                self._topics[key] = partitions
                self._size += len(partitions)
            while self._size > KEPT_PARTITIONS and len(self._topics) > 1:
                _, dropped = self._topics.popitem(last=False)
                self._size -= len(dropped)


class _SizesKept:
    """Sizes of the topics of plans that are checked again and again, until log directories are read the next time."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[tuple[int, frozenset[str]], tuple[tuple[int, int], Sizes]] = OrderedDict()

    def get(self, cluster: Cluster, topics: Collection[str] | None, run: CollectorRun | None) -> Sizes | None:
        """None where they have to be read."""
        if topics is None or run is None:
            return None
        with self._lock:
            refresh, sizes = self._of.get((cluster.pk, frozenset(topics)), (None, None))
        return sizes if refresh == (run.epoch, run.seq) else None

    def put(self, cluster: Cluster, topics: Collection[str] | None, run: CollectorRun | None, sizes: Sizes) -> None:
        """``run`` as it was before the sizes were read: if they are newer, they are read once more than needed."""
        if topics is None or run is None:
            return
        with self._lock:
            self._of[cluster.pk, frozenset(topics)] = (run.epoch, run.seq), sizes
            self._of.move_to_end((cluster.pk, frozenset(topics)))
            while len(self._of) > KEPT_SIZES:
                self._of.popitem(last=False)


_topology_cache = _TopologyCache()
_sizes_kept = _SizesKept()
