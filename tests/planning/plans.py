"""Plans as a planner leaves them, and what they do to a cluster counted in the plainest way, for tests of pages."""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from kafkadash.changes.models import ChangeRequest, PlanArtifact, RequestState
from kafkadash.changes.plan import PartitionMove, RunOptions, canonical_bytes, compute_digest, hash_artifact
from kafkadash.clusters.models import Cluster
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.planning.impact import BrokerImpact, PlanImpact, RowException, TopicImpact
from kafkadash.planning.models import PlanReport
from kafkadash.planning.plan_store import store_report
from kafkadash.planning.proposal import DRAIN, PlanInput
from kafkadash.planning.topology import ClusterTopology, LogDirectory, PlannedBroker, PlannedPartition, PlannedTopic
from tests.factories import GB, NOW

OPTIONS = RunOptions(throttle=60_000_000, throttle_min=20_000_000, throttle_max=80_000_000, per_cluster=10)
DISK = 2000 * GB


def world(
    topics: Mapping[str, Sequence[Sequence[int]]],
    *,
    brokers: int = 6,
    racks: Sequence[str | None] = ("eu-1a", "eu-1b", "eu-1c"),
    size: int | None = 3 * GB,
    used: int | None = 600 * GB,
    inbound: float | None = 10_000.0,
) -> ClusterTopology:
    """Brokers 1 to ``brokers`` in the racks in turn; every partition has ``size``, and its first replica leads it."""
    return ClusterTopology(
        brokers={
            n: PlannedBroker(n, racks[(n - 1) % len(racks)], dirs=(LogDirectory("/data", DISK, used),))
            for n in range(1, brokers + 1)
        },
        topics={
            name: PlannedTopic(
                name,
                tuple(
                    PlannedPartition(n, tuple(replicas), tuple(replicas), replicas[0], size, inbound)
                    for n, replicas in enumerate(placed)
                ),
                id=f"id-of-{name}"[:36],
                internal=name.startswith("__"),
                min_isr=2,
            )
            for name, placed in topics.items()
        },
        kafka_id="4L6g3nShT-eMCtK--X86K4",
    )


def drained(topology: ClusterTopology, gone: int, instead: int) -> tuple[PartitionMove, ...]:
    """Every replica of one broker goes to another; where that one has one already, to the next free broker."""
    rows = []
    for topic in topology.topics.values():
        for partition in topic.partitions:
            if gone not in partition.replicas:
                continue
            free = [instead, *topology.brokers]
            chosen = next(b for b in free if b not in partition.replicas and b != gone)
            target = tuple(chosen if broker == gone else broker for broker in partition.replicas)
            rows.append(PartitionMove(topic.name, topic.id, partition.partition, partition.replicas, target))
    return tuple(rows)


def counted(
    topology: ClusterTopology,
    rows: Sequence[PartitionMove],
    reasons: Mapping[tuple[str, int], tuple[str, ...]] | None = None,
) -> PlanImpact:
    """The impact of a plan, counted replica by replica."""
    partitions = {(t.name, p.partition): p for t in topology.topics.values() for p in t.partitions}
    after = {name: p.replicas for name, p in partitions.items()} | {(r.topic, r.partition): r.target for r in rows}
    copied = _copied(partitions, rows)
    known = [size for size in copied.values() if size is not None]
    unsized = sum(size is None for size in copied.values())
    brokers = tuple(_broker(topology, broker, rows, after) for broker in topology.brokers)
    topics = tuple(_topic(topology.topics[name], [r for r in rows if r.topic == name], copied) for name in _names(rows))
    busiest, way, most = _busiest(brokers)
    touched = {b for r in rows for b in (*r.adding, *r.removing)}
    internal = [name for name in _names(rows) if topology.topics[name].internal]
    return PlanImpact(
        partitions_moved=len(rows),
        partitions_total=len(partitions),
        topics_moved=len(topics),
        topics_total=len(topology.topics),
        internal_topics=tuple(internal),
        internal_partitions=sum(r.topic in internal for r in rows),
        brokers_touched=len(touched),
        brokers_total=len(topology.brokers),
        emptied=tuple(b.id for b in brokers if b.replicas_before and not b.replicas_after),
        copied_bytes=None if unsized else sum(known),
        unsized=unsized,
        total_bytes=_total(partitions.values()),
        leaders_moved=sum(t.leaders_moved for t in topics),
        only_reordered=sum(r.only_reorders for r in rows),
        rf_up=sum(len(r.target) > len(r.current) for r in rows),
        rf_down=sum(len(r.target) < len(r.current) for r in rows),
        under_min_isr=0,
        at_min_isr=0,
        violations_before=2,
        violations_after=2,
        racks_lost=0,
        largest_bytes=max(known, default=None),
        binding_broker=None if unsized else busiest.id,
        binding_direction="" if unsized else way,
        binding_bytes=None if unsized else most,
        inbound_bytes_per_s=sum(partitions[r.topic, r.partition].bytes_in_per_s or 0.0 for r in rows),
        brokers=brokers,
        topics=topics,
        exceptions=tuple(RowException(topic, n, why) for (topic, n), why in (reasons or {}).items()),
        watch=(),
        spread_worse=0,
    )


def _copied(
    partitions: Mapping[tuple[str, int], PlannedPartition], rows: Sequence[PartitionMove]
) -> dict[tuple[str, int], int | None]:
    """Bytes that each row copies; None where that is not known."""
    sizes = {(r.topic, r.partition): partitions[r.topic, r.partition].size_bytes for r in rows}
    return {
        (r.topic, r.partition): None
        if sizes[r.topic, r.partition] is None and r.adding
        else (sizes[r.topic, r.partition] or 0) * len(r.adding)
        for r in rows
    }


def _busiest(brokers: Sequence[BrokerImpact]) -> tuple[BrokerImpact, str, int]:
    """The broker and the way through which most is copied, with its bytes."""
    ways = ((b, way, b.bytes_in if way == "in" else b.bytes_out) for b in brokers for way in ("in", "out"))
    return max(ways, key=lambda found: found[2])


def _total(partitions: Collection[PlannedPartition]) -> int | None:
    if any(p.size_bytes is None for p in partitions):
        return None
    return sum((p.size_bytes or 0) * len(p.replicas) for p in partitions)


def planned(
    cluster: Cluster,
    topology: ClusterTopology,
    rows: Sequence[PartitionMove],
    *,
    impact: PlanImpact | None = None,
    reasons: Mapping[tuple[str, int], tuple[str, ...]] | None = None,
    options: RunOptions = OPTIONS,
    more_options: Mapping[str, Any] | None = None,
    asked: PlanInput = PlanInput(DRAIN, brokers=(3,)),  # noqa: B008  it never changes
    rules: Sequence[Mapping[str, Any]] = (),
    proof: Mapping[str, Any] | None = None,
    generate_bytes: int | None = None,
    **fields: Any,
) -> ChangeRequest:
    """A proposed change with its plan and report."""
    data = canonical_bytes(rows)
    artifact, _ = PlanArtifact.objects.get_or_create(
        sha256=hash_artifact(data), defaults={"data": zlib.compress(data), "rows": len(rows)}
    )
    change = ChangeRequest.objects.create(
        cluster=cluster,
        kind="reassignment",
        state=RequestState.PROPOSED,
        title="Drain broker 3",
        why="Its disk is failing.",
        input=pack_dataclass(asked),
        artifact=artifact,
        digest=compute_digest(topology.kafka_id, artifact.sha256, options),
        options={**_options(options), "disk_limit_percent": 80, **(more_options or {})},
        topology_at=NOW,
        author_name="alice",
        **fields,
    )
    done = impact or counted(topology, rows, reasons)
    store_report(change, artifact, rows, done, rules, 0.3, topology, proof=proof, generate_bytes=generate_bytes)
    return change


def report_of(change: ChangeRequest) -> PlanReport:
    return PlanReport.objects.get(request=change)


def _options(options: RunOptions) -> dict[str, Any]:
    return {name: getattr(options, name) for name in options.__dataclass_fields__}


def _names(rows: Sequence[PartitionMove]) -> list[str]:
    return sorted({row.topic for row in rows})


def _broker(
    topology: ClusterTopology,
    broker: int,
    rows: Sequence[PartitionMove],
    after: Mapping[tuple[str, int], Sequence[int]],
) -> BrokerImpact:
    partitions = {(t.name, p.partition): p for t in topology.topics.values() for p in t.partitions}
    arriving = sum(partitions[r.topic, r.partition].size_bytes or 0 for r in rows if broker in r.adding)
    leaving = sum(partitions[r.topic, r.partition].size_bytes or 0 for r in rows if broker in r.removing)
    sent = sum(
        (partitions[r.topic, r.partition].size_bytes or 0) * len(r.adding)
        for r in rows
        if partitions[r.topic, r.partition].leader == broker
    )
    own = topology.brokers[broker]
    used, unsized = own.used_bytes, any(p.size_bytes is None for p in partitions.values())
    return BrokerImpact(
        id=broker,
        rack=own.rack,
        replicas_before=sum(broker in p.replicas for p in partitions.values()),
        replicas_after=sum(broker in replicas for replicas in after.values()),
        leaders_before=sum(p.leader == broker for p in partitions.values()),
        leaders_after=sum(replicas[0] == broker for replicas in after.values()),
        bytes_before=used,
        used_bytes=used,
        bytes_after=None if used is None or unsized else used + arriving - leaving,
        peak_bytes=None if used is None or unsized else used + arriving,
        disk_bytes=own.disk_bytes,
        bytes_in=arriving,
        bytes_out=sent,
    )


def _topic(
    topic: PlannedTopic, rows: Sequence[PartitionMove], copied: Mapping[tuple[str, int], int | None]
) -> TopicImpact:
    sizes = [copied[row.topic, row.partition] for row in rows]
    leaders = {p.partition: p.leader for p in topic.partitions}
    return TopicImpact(
        topic=topic.name,
        internal=topic.internal,
        moved=len(rows),
        partitions=len(topic.partitions),
        copied_bytes=None if None in sizes else sum(size or 0 for size in sizes),
        leaving=tuple(sorted({b for row in rows for b in row.removing})),
        arriving=tuple(sorted({b for row in rows for b in row.adding})),
        leaders_moved=sum(row.target[0] != leaders[row.partition] for row in rows),
        exceptions=0,
        replication_factor=max(len(p.replicas) for p in topic.partitions),
    )
