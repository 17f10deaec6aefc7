"""Collector of catch-up: log ends of live replicas outside the ISR that no reassignment adds, and of their leaders.

Stored metadata has these replicas; without any, Kafka is not queried. The topics concerned are then read again, so that
no replica is compared with an earlier leader. The collector of metadata makes this one due at once when it finds one.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import islice

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.kafka.api import (
    UNKNOWN_TOPIC_OR_PARTITION,
    ItemError,
    KafkaUnreachable,
    OffsetKind,
    OffsetQuery,
    PartitionMetadata,
    ReplicaOffsets,
    TopicMetadata,
)
from kafkadash.monitoring.catch_up.packing import pack_followers, unpack_followers
from kafkadash.monitoring.catch_up.rules import (
    CatchUpState,
    FollowerReading,
    FollowerSample,
    sum_followers,
)
from kafkadash.monitoring.collectors import (
    CollectContext,
    CollectedFacts,
    broker_errors,
    find_silent_brokers,
    to_utc,
)
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.freshness import ALIVE
from kafkadash.monitoring.metadata_collector import running_moves
from kafkadash.monitoring.models import (
    BrokerCatchUp,
    BrokerState,
    BrokerWeights,
    CollectorKind,
    CollectorRun,
    TopicState,
)
from kafkadash.monitoring.partitions import PartitionShape

MOST_REPLICAS = 20_000
"""Replicas that one refresh reads; the others are stored as skipped."""
_LONGEST_ERROR = 300
_NONE: frozenset[int] = frozenset()
_RANKS = {state: rank for rank, state in enumerate(CatchUpState)}

_Place = tuple[str, int]
"""Topic and partition."""


@dataclass(frozen=True, slots=True)
class _BehindReplicas:
    """Brokers outside the ISR of each partition, as last stored; ``skipped``: broker → replicas beyond the limit."""

    brokers: Mapping[_Place, Sequence[int]]
    skipped: Mapping[int, int]
    silent: frozenset[int]


@dataclass(frozen=True, slots=True)
class _ReadFollowers:
    """Offsets of replicas and leaders, and the topics as metadata has them now."""

    topics: Mapping[str, TopicMetadata]
    partitions: Mapping[_Place, PartitionMetadata]
    offsets: ReplicaOffsets


def read(asking: CollectContext) -> CollectedFacts:
    """Raises KafkaFailure where the metadata cannot be read. A broker that does not answer costs its own figures."""
    cluster = asking.cluster
    with without_search_for_cycles():
        behind = _find_behind(cluster)
    if not behind.brokers:
        return CollectedFacts(_metadata_time(cluster), 0, lambda _: _store_rows(cluster, []))
    asking.step()
    metadata = asking.admin.metadata(deadline=asking.deadline, topics=sorted({topic for topic, _ in behind.brokers}))
    topics = {topic.name: topic for topic in metadata.topics}
    partitions = {
        (topic.name, p.partition): p for topic in metadata.topics if not topic.error for p in topic.partitions
    }
    followers = [
        (place, broker)
        for place, brokers in behind.brokers.items()
        for broker in brokers
        if _is_behind(broker, place, topics, partitions)
    ]
    asking.step()
    queries = set(_list_queries(followers, partitions, behind.silent))
    offsets = asking.admin.replica_offsets(queries, deadline=asking.deadline) if queries else ReplicaOffsets({}, {})
    errors: dict[int, ItemError] = {}
    for query, error in offsets.errors.items():
        errors.setdefault(query.broker, error)
    known = _ReadFollowers(topics, partitions, offsets)
    sizes = _read_sizes(cluster, followers, partitions)
    before = {row.broker_id: row for row in BrokerCatchUp.objects.filter(cluster=cluster, format=1)}
    by_broker: dict[int, list[_Place]] = defaultdict(list)
    for place, broker in followers:
        by_broker[broker].append(place)
    taken_at = metadata.taken_at
    rows = [
        _build_row(
            *(cluster, broker, by_broker.get(broker, ()), before.get(broker)),
            *(known, sizes, behind.skipped.get(broker, 0), taken_at),
        )
        for broker in sorted({*by_broker, *behind.skipped})
    ]
    return CollectedFacts(
        taken_at=to_utc(taken_at),
        rows=sum(row.replicas for row in rows),
        write=lambda _: _store_rows(cluster, rows),
        not_answered=sorted(find_silent_brokers(errors) | _find_not_asked(followers, partitions, behind.silent)),
        errors=broker_errors(errors),
    )


def _find_behind(cluster: Cluster) -> _BehindReplicas:
    brokers: dict[_Place, list[int]] = {}
    skipped: Counter[int] = Counter()
    found = _list_stored(cluster)
    for topic, partition, broker in islice(found, MOST_REPLICAS):
        brokers.setdefault((topic, partition), []).append(broker)
    skipped.update(broker for _, _, broker in found)
    silent = BrokerState.objects.filter(ALIVE, cluster=cluster, silent_since__isnull=False) if brokers else ()
    return _BehindReplicas(brokers, skipped, frozenset(row.broker_id for row in silent))


def _list_stored(cluster: Cluster) -> Iterator[tuple[str, int, int]]:
    """Yield topic, partition and broker of the replicas that are behind, always in the same order."""
    stored = TopicState.objects.filter(cluster=cluster, format=1, under_replicated__gt=0).order_by("name")
    rows = stored.values_list("name", "partitions")
    if not rows.exists():
        return
    alive = set(BrokerState.objects.filter(ALIVE, cluster=cluster).values_list("broker_id", flat=True))
    moves = running_moves(cluster)
    for name, partitions in rows.iterator(chunk_size=500):
        for number, leader, _, replicas, isr, offline in partitions:
            if len(isr) >= len(replicas):
                continue
            adding = moves[name, number][0] if (name, number) in moves else _NONE
            shape = PartitionShape(leader, tuple(replicas), tuple(isr), adding, tuple(offline))
            for broker in shape.followers_behind:
                if broker in alive:
                    yield name, number, broker


def _metadata_time(cluster: Cluster) -> datetime:
    """Return when the metadata was read by which nothing is behind. Raises KafkaUnreachable where it never was."""
    run = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).first()
    if run is None or run.succeeded_at is None:
        raise KafkaUnreachable(coded(CollectionErrorCode.NOT_COLLECTED, cluster=cluster.name))
    return run.succeeded_at


def _find_not_asked(
    followers: Iterable[tuple[_Place, int]],
    partitions: Mapping[_Place, PartitionMetadata],
    silent: Collection[int],
) -> set[int]:
    """Return the silent brokers without which a replica that is behind was not read."""
    found: set[int] = set()
    for place, broker in followers:
        p = partitions.get(place)
        found |= {broker, p.leader if p and p.leader is not None else broker} & set(silent)
    return found


def _is_behind(
    broker: int,
    place: _Place,
    topics: Mapping[str, TopicMetadata],
    partitions: Mapping[_Place, PartitionMetadata],
) -> bool:
    """Return whether the replica is still behind. One whose topic could not be read counts as before."""
    topic = topics.get(place[0])
    if topic is None or topic.error:
        return topic is not None and topic.error is not None and topic.error.code != UNKNOWN_TOPIC_OR_PARTITION
    p = partitions.get(place)
    return p is not None and broker in p.replicas and broker not in p.isr and broker not in p.offline


def _list_queries(
    followers: Iterable[tuple[_Place, int]],
    partitions: Mapping[_Place, PartitionMetadata],
    silent: Collection[int],
) -> Iterator[OffsetQuery]:
    """Yield the queries of the replicas and of their leaders; brokers that do not respond are left out."""
    for place, broker in followers:
        p = partitions.get(place)
        if p is None or p.leader is None or p.leader in silent or broker in silent:
            continue
        yield OffsetQuery(p.leader, *place, OffsetKind.LATEST)
        yield OffsetQuery(p.leader, *place, OffsetKind.EARLIEST_LOCAL)
        yield OffsetQuery(broker, *place, OffsetKind.LATEST)


def _read_sizes(
    cluster: Cluster, followers: Iterable[tuple[_Place, int]], partitions: Mapping[_Place, PartitionMetadata]
) -> dict[_Place, int]:
    """Bytes of the leaders' logs as last read, one broker after the other to save memory."""
    by_leader: dict[int, set[_Place]] = defaultdict(set)
    for place, _ in followers:
        p = partitions.get(place)
        if p is not None and p.leader is not None:
            by_leader[p.leader].add(place)
    sizes: dict[_Place, int] = {}
    stored = BrokerWeights.objects.filter(cluster=cluster, format=1, broker_id__in=by_leader)
    for leader, data in stored.values_list("broker_id", "data").iterator(chunk_size=1):
        topics = json.loads(zlib.decompress(bytes(data)))
        for topic, partition in by_leader[leader]:
            size = topics.get(topic, {}).get(str(partition))
            if size is not None:
                sizes[topic, partition] = size
    return sizes


def _build_row(
    cluster: Cluster,
    broker: int,
    places: Sequence[_Place],
    before: BrokerCatchUp | None,
    known: _ReadFollowers,
    sizes: Mapping[_Place, int],
    skipped: int,
    taken_at: float,
) -> BrokerCatchUp:
    earlier = {(s.topic_id, s.partition): s for s in unpack_followers(before)} if before else {}
    samples = []
    for topic, partition in places:
        topic_id = known.topics[topic].topic_id or topic
        sample = earlier.get((topic_id, partition)) or FollowerSample(topic, topic_id, partition, None)
        samples.append(sample.advance(_read_follower(broker, (topic, partition), known, sizes)))
    figures = sum_followers(samples, skipped)
    return BrokerCatchUp(
        cluster=cluster,
        broker_id=broker,
        replicas=len(samples) + skipped,
        counts=dict(figures.counts),
        records=figures.records,
        bytes_behind=figures.bytes_behind,
        unsized=figures.unsized,
        rate=figures.rate,
        rate_bytes=figures.rate_bytes,
        seconds_left=figures.seconds_left,
        sampled_at=None if figures.taken_at is None else to_utc(figures.taken_at),
        taken_at=to_utc(taken_at),
        data=pack_followers(sorted(samples, key=_order)),
    )


def _order(sample: FollowerSample) -> tuple[int, int, str, int]:
    """Worst first, so that a page unpacks only what it shows."""
    return _RANKS[sample.state], -(sample.lag or 0), sample.topic, sample.partition


def _read_follower(broker: int, place: _Place, known: _ReadFollowers, sizes: Mapping[_Place, int]) -> FollowerReading:
    p = known.partitions.get(place)
    if p is None:
        failed = known.topics[place[0]].error
        return FollowerReading(None, error=failed.text[:_LONGEST_ERROR] if failed else "")
    if p.leader is None:
        return FollowerReading(None)
    of_leader, of_start, own = (
        OffsetQuery(p.leader, *place, OffsetKind.LATEST),
        OffsetQuery(p.leader, *place, OffsetKind.EARLIEST_LOCAL),
        OffsetQuery(broker, *place, OffsetKind.LATEST),
    )
    found, errors = known.offsets.offsets, known.offsets.errors
    failed = next((errors[query] for query in (own, of_leader, of_start) if query in errors), None)
    end, start, mine = found.get(of_leader), found.get(of_start), found.get(own)
    return FollowerReading(
        leader=p.leader,
        leader_start=start.offset if start else None,
        leader_end=end.offset if end else None,
        leader_at=end.taken_at if end else 0.0,
        own_end=mine.offset if mine else None,
        own_at=mine.taken_at if mine else 0.0,
        leader_bytes=sizes.get(place),
        error=failed.text[:_LONGEST_ERROR] if failed else "",
    )


def _store_rows(cluster: Cluster, rows: Sequence[BrokerCatchUp]) -> None:
    """In place of those of the refresh before: a broker whose replicas are all in sync has none."""
    BrokerCatchUp.objects.filter(cluster=cluster).exclude(broker_id__in=[row.broker_id for row in rows]).delete()
    BrokerCatchUp.objects.bulk_create(
        rows, update_conflicts=True, unique_fields=["cluster", "broker_id"], update_fields=_FIELDS
    )


_FIELDS = [
    "replicas",
    "counts",
    "records",
    "bytes_behind",
    "unsized",
    "rate",
    "rate_bytes",
    "seconds_left",
    "sampled_at",
    "taken_at",
    "format",
    "data",
]
