"""Collector of log directories: bytes of every replica and usage of every directory, also as facts for the pipeline."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import read_whole_number
from kafkadash.core.leases import WriteStamp, one_writer_of_shapes
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.rows import update_rows, without_search_for_cycles
from kafkadash.export.encoding import Columns
from kafkadash.export.outbox import OutboxFacts
from kafkadash.export.schema import SegmentKind
from kafkadash.kafka.api import KafkaFailure, LogDir, LogDirs, hidden_message, hidden_topics
from kafkadash.kafka.throttles import RATES
from kafkadash.monitoring.collectors import (
    CollectContext,
    CollectedFacts,
    broker_errors,
    find_silent_brokers,
    refuse_nothing,
    split_updates,
    to_utc,
)
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.metadata_collector import store_figures
from kafkadash.monitoring.models import BrokerState, BrokerWeights, ThrottledResource, ThrottleState, TopicState
from kafkadash.monitoring.partitions import two_digits
from kafkadash.monitoring.tiers.collector import read_tiers, write_tiers

Dirs = Mapping[int, Sequence[LogDir]]
"""Broker → its directories, of those that answered."""
_Ids = tuple[int, ...]


def disk_facts(cluster: Cluster, dirs: Dirs, taken_at: datetime) -> list[OutboxFacts]:
    """To be asked before the new figures are stored: growth is against those that are."""
    known = _KnownDirectories(cluster, dirs.keys(), taken_at)
    return [
        OutboxFacts(SegmentKind.BROKER, [_build_directory_columns(dirs, known)]),
        OutboxFacts(SegmentKind.REPLICA, _build_replica_columns(cluster, dirs)),
    ]


def _build_replica_columns(cluster: Cluster, dirs: Dirs) -> Iterator[Columns]:
    """Yield the columns broker by broker. Leaders and in-sync replicas are those of the last metadata."""
    shapes = _TopicShapes(cluster) if dirs else None
    for broker, directories in dirs.items():
        for directory in directories:
            found = directory.replicas
            roles = [shapes.role(broker, r.topic, r.partition) if shapes else (None, None) for r in found]
            yield {
                "topic": [r.topic for r in found],
                "partition": [r.partition for r in found],
                "broker": broker,
                "directory": directory.path,
                "bytes_on_disk": [r.size_bytes for r in found],
                # A copy on its way between two disks of the broker leads nothing.
                "is_leader": [False if r.future else role[0] for r, role in zip(found, roles, strict=True)],
                "in_isr": [False if r.future else role[1] for r, role in zip(found, roles, strict=True)],
                "is_future": [r.future for r in found],
                "method": "size",
            }


class _TopicShapes:
    """Leader and in-sync replicas of each partition. Equal ISRs share one tuple to save memory."""

    @without_search_for_cycles()
    def __init__(self, cluster: Cluster) -> None:
        self._topics: dict[str, dict[int, tuple[int | None, _Ids]]] = {}
        sets: dict[_Ids, _Ids] = {}
        stored = TopicState.objects.filter(cluster=cluster).values_list("name", "partitions")
        for name, partitions in stored.iterator(chunk_size=500):
            rows: dict[int, tuple[int | None, _Ids]] = {}
            for number, leader, _, _, isr, _ in partitions:
                in_sync = tuple(isr)
                rows[number] = leader, sets.setdefault(in_sync, in_sync)
            self._topics[name] = rows

    def role(self, broker: int, topic: str, partition: int) -> tuple[bool | None, bool | None]:
        """Return whether the replica is the leader and whether it is in sync; None for an unknown partition."""
        shape = self._topics.get(topic, {}).get(partition)
        return (None, None) if shape is None else (shape[0] == broker, broker in shape[1])


class _KnownDirectories:
    """Stored facts of the brokers: throttle rates in force, and bytes of each directory with their time."""

    def __init__(self, cluster: Cluster, brokers: Collection[int], taken_at: datetime) -> None:
        self._taken_at = taken_at
        rates = ThrottleState.objects.filter(cluster=cluster, key__in=RATES).exclude(resource=ThrottledResource.TOPIC)
        self._rates = {(name, key): value for name, key, value in rates.values_list("name", "key", "value")}
        stored = BrokerWeights.objects.filter(cluster=cluster, broker_id__in=brokers)
        self._dirs: dict[tuple[int, str], tuple[Mapping[str, Any], datetime]] = {
            (broker, each["path"]): (each, at)
            for broker, dirs, at in stored.values_list("broker_id", "dirs", "taken_at")
            for each in dirs
        }

    def rate(self, broker: int, key: str) -> int | None:
        """Bytes per second; a broker's own comes before that of all. None where none is set."""
        value = self._rates.get((str(broker), key), self._rates.get(("", key)))
        return None if value is None else read_whole_number(value)

    def growth(self, broker: int, path: str, replica_bytes: int) -> float | None:
        """Bytes per second since the last look; None where there was none, or where figures are missing in it."""
        before, at = self._dirs.get((broker, path), ({}, self._taken_at))
        seconds = (self._taken_at - at).total_seconds()
        if seconds <= 0 or before.get("error") or before.get("replica_bytes") is None:
            return None
        return float((replica_bytes - before["replica_bytes"]) / seconds)


def _build_directory_columns(dirs: Dirs, known: _KnownDirectories) -> Columns:
    rows = [(broker, each) for broker, directories in sorted(dirs.items()) for each in directories]
    leader, follower = RATES[:2]
    used = [None if d.error else sum(r.size_bytes for r in d.replicas) for _, d in rows]
    return {
        "broker": [broker for broker, _ in rows],
        "directory": [d.path for _, d in rows],
        "total_bytes": [d.total_bytes for _, d in rows],
        "usable_bytes": [d.usable_bytes for _, d in rows],
        "replica_bytes": used,
        "leader_throttle": [known.rate(broker, leader) for broker, _ in rows],
        "follower_throttle": [known.rate(broker, follower) for broker, _ in rows],
        "grown_per_second": [
            None if size is None else known.growth(broker, d.path, size)
            for (broker, d), size in zip(rows, used, strict=True)
        ],
    }


_Sizes = dict[str, dict[int, int]]


def read(asking: CollectContext) -> CollectedFacts:
    """Asks every broker for its directories. A broker that does not answer keeps its last row, with its age."""
    asking.step()
    brokers = asking.admin.describe_cluster(deadline=asking.deadline).brokers
    fenced = {b.id for b in brokers if b.fenced}
    asking.step()
    answer = asking.admin.log_dirs([b.id for b in brokers if not b.fenced], deadline=asking.deadline)
    refuse_nothing(answer.brokers, answer.errors)
    hidden = _hidden_topics(asking, answer)
    tiers = read_tiers(asking, answer.brokers)
    taken_at = to_utc(answer.taken_at)
    weights: list[BrokerWeights] = []
    topic_bytes: Counter[str] = Counter()
    for broker, dirs in answer.brokers.items():  # one after the other: all sizes at once would fill the memory
        sizes = _collect_sizes(dirs)
        topic_bytes.update({topic: sum(partitions.values()) for topic, partitions in sizes.items()})
        weights.append(_build_weights(asking.cluster, broker, dirs, sizes, taken_at))
    whole = not fenced and not answer.errors and not any(d.error for dirs in answer.brokers.values() for d in dirs)
    # A sum over some of the directories would look like a topic that shrank: it is stored only when all answered.
    sizes_changed = _changed_sizes(asking.cluster, topic_bytes, answer.brokers) if whole else {}

    def write(_: WriteStamp) -> None:
        one_writer_of_shapes(asking.cluster.pk)
        # That nothing is hidden is known only of disks that were all read.
        if hidden or (whole and hidden is not None):
            store_figures(asking.cluster, {"hidden_topics": len(hidden)})
        BrokerWeights.objects.bulk_create(
            weights,
            update_conflicts=True,
            unique_fields=["cluster", "broker_id"],
            update_fields=["format", "data", "dirs", "replica_bytes", "taken_at"],
        )
        write_tiers(asking.cluster, tiers)

    def write_sizes(changes: Mapping[int, Mapping[str, object]]) -> None:
        one_writer_of_shapes(asking.cluster.pk)
        update_rows(TopicState, changes)

    return CollectedFacts(
        taken_at=taken_at,
        portions=[partial(write_sizes, part) for part in split_updates(sizes_changed)],
        rows=sum(len(d.replicas) for dirs in answer.brokers.values() for d in dirs),
        write=write,
        not_answered=sorted(find_silent_brokers(answer.errors) | fenced),
        errors=[
            *_collect_errors(answer, fenced),
            *([hidden_message(hidden)] if hidden else []),
            *tiers.errors,
        ],
        facts=disk_facts(asking.cluster, answer.brokers, taken_at),
    )


def _build_weights(
    cluster: Cluster, broker: int, dirs: Sequence[LogDir], sizes: _Sizes, taken_at: datetime
) -> BrokerWeights:
    return BrokerWeights(
        cluster=cluster,
        broker_id=broker,
        data=zlib.compress(json.dumps(sizes, separators=(",", ":")).encode(), 1),
        dirs=[_pack_directory(d) for d in dirs],
        replica_bytes=sum(sum(partitions.values()) for partitions in sizes.values()),
        taken_at=taken_at,
    )


def _collect_errors(answer: LogDirs, fenced: Collection[int]) -> Iterator[CodedMessage]:
    """Yield a message for each broker, and for each directory, without figures."""
    yield from broker_errors(answer.errors)
    yield from (coded(CollectionErrorCode.BROKER_FENCED, broker=broker) for broker in sorted(fenced))
    for broker, dirs in sorted(answer.brokers.items()):
        for d in dirs:
            if d.error:
                yield coded(CollectionErrorCode.DIRECTORY_NOT_READ, broker=broker, path=d.path, why=d.error.message)


def _hidden_topics(asking: CollectContext, answer: LogDirs) -> list[str] | None:
    """Topics with replicas on the disks that the metadata keeps from us; None where that was not found out."""
    known = set(TopicState.objects.filter(cluster=asking.cluster).values_list("name", flat=True))
    if not known and not BrokerState.objects.filter(cluster=asking.cluster).exists():
        return None  # the metadata was never read
    on_disk = {replica.topic for dirs in answer.brokers.values() for each in dirs for replica in each.replicas}
    if not on_disk - known:
        return []
    asking.step()
    try:
        return hidden_topics(asking.admin, on_disk - known, deadline=asking.deadline)
    except KafkaFailure:  # the sizes are good without it, and the next refresh asks again
        return None


def _collect_sizes(dirs: Sequence[LogDir]) -> _Sizes:
    """topic → partition → bytes of the current replicas; copies on their way to another disk are left out."""
    sizes: _Sizes = {}
    for directory in dirs:
        for replica in directory.replicas:
            if not replica.future:
                sizes.setdefault(replica.topic, {})[replica.partition] = replica.size_bytes
    return sizes


def _pack_directory(directory: LogDir) -> dict[str, object]:
    """``copies``: replicas on their way to this directory from another one of the same broker."""
    return {
        "path": directory.path,
        "total_bytes": directory.total_bytes,
        "usable_bytes": directory.usable_bytes,
        "replica_bytes": sum(r.size_bytes for r in directory.replicas),
        "replicas": len(directory.replicas),
        "copies": sum(r.future for r in directory.replicas),
        "cordoned": directory.cordoned,
        "error": directory.error.text if directory.error else None,
    }


def _changed_sizes(
    cluster: Cluster, topic_bytes: Counter[str], answered: Collection[int]
) -> dict[int, dict[str, object]]:
    """Primary key → new size, rounded. Nothing while a broker that hosts replicas is away from the cluster."""
    unread = BrokerState.objects.filter(cluster=cluster, replicas__gt=0).exclude(broker_id__in=answered)
    if unread.exists():
        return {}
    changed: dict[int, dict[str, object]] = {}
    for pk, name, before in TopicState.objects.filter(cluster=cluster).values_list("pk", "name", "size_bytes"):
        size = two_digits(topic_bytes[name]) if name in topic_bytes else None
        if size != before:
            changed[pk] = {"size_bytes": size}
    return changed
