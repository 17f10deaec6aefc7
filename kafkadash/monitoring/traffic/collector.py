"""Collector of traffic: log ends of all partitions, rates since the refresh before, and a point for charts."""

from __future__ import annotations

import json
import zlib
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from django.db.models import Sum

from kafkadash.clusters.models import Cluster
from kafkadash.core.formatting import LARGEST_LONG
from kafkadash.core.leases import WriteStamp
from kafkadash.core.rows import without_search_for_cycles
from kafkadash.core.status import is_stale
from kafkadash.export.encoding import Columns
from kafkadash.export.outbox import OutboxFacts
from kafkadash.export.schema import SegmentKind, TrafficSubject
from kafkadash.kafka.api import LogSpan, LogSpans
from kafkadash.monitoring.collectors import CollectContext, CollectedFacts, log_errors, refuse_all_unread, to_utc
from kafkadash.monitoring.models import (
    BrokerWeights,
    ClusterPoint,
    ClusterState,
    ClusterTrend,
    CollectorKind,
    CollectorRun,
    GroupState,
    LogEndWindow,
    TopicState,
    TopicTraffic,
)
from kafkadash.monitoring.traffic.rules import (
    SLOT_S,
    LogEnds,
    PartitionRate,
    TrafficRate,
    advance_slots,
    keeps_all_bytes,
    partition_rates,
    shard_of,
    sum_rates,
)

_NO_SPANS: Mapping[int, LogSpan] = {}


@dataclass(slots=True)
class _TopicShape:
    """Stored shape of a topic. ``sizes``: bytes of leaders' logs, None where they do not tell bytes per record."""

    topic_id: str
    leaders: dict[int, int | None]
    sizes: dict[int, int] | None


@dataclass(slots=True)
class _TrafficRows:
    """Rows to write, and all rates for the sums. ``sums``: of each topic, whether anything is known of it or not."""

    windows: list[LogEndWindow] = field(default_factory=list)
    topics: list[TopicTraffic] = field(default_factory=list)
    rates: list[PartitionRate] = field(default_factory=list)
    sums: dict[str, TrafficRate] = field(default_factory=dict)


def read(asking: CollectContext) -> CollectedFacts:
    """Read the log ends of all partitions that are stored. Raises KafkaFailure when no leader answered."""
    with without_search_for_cycles():
        shapes = _read_shapes(asking.cluster)
        asking.step()
        spans = asking.groups.log_spans(
            {topic: list(shape.leaders) for topic, shape in shapes.items()}, deadline=asking.deadline
        )
        refuse_all_unread(spans)
        rows = _build_rows(asking, shapes, spans)
    taken_at = to_utc(spans.taken_at)
    whole, brokers = sum_rates(rows.rates), _sum_by_leader(rows.rates)
    point = _build_point(asking, whole, len(rows.rates), brokers, taken_at)
    trend = _build_trend(asking.cluster, point)

    def write(_: WriteStamp) -> None:
        LogEndWindow.objects.bulk_create(
            rows.windows,
            update_conflicts=True,
            unique_fields=["cluster", "shard"],
            update_fields=["format", "data"],
        )
        # Shards of topics that are all gone.
        LogEndWindow.objects.filter(cluster=asking.cluster).exclude(shard__in=[w.shard for w in rows.windows]).delete()
        TopicTraffic.objects.bulk_create(rows.topics)
        point.save(force_insert=True)
        ClusterTrend.objects.bulk_create(
            [trend],
            update_conflicts=True,
            unique_fields=["cluster"],
            update_fields=["taken_at", "rate", "slot_at", "format", "slots"],
        )

    return CollectedFacts(
        taken_at=taken_at,
        rows=sum(map(len, spans.spans.values())),
        write=write,
        errors=list(log_errors(spans)),
        facts=[OutboxFacts(SegmentKind.TRAFFIC, [_build_columns(whole, rows.sums, brokers)])],
    )


def _build_columns(
    whole: TrafficRate, topics: Mapping[str, TrafficRate], brokers: Mapping[int, TrafficRate]
) -> Columns:
    """Return the rows for the pipeline: of the cluster, of each topic, and of each broker that leads partitions."""
    rates = [whole, *topics.values(), *brokers.values()]
    no_topics, no_brokers = [None] * len(topics), [None] * len(brokers)
    return {
        "subject": [
            TrafficSubject.CLUSTER.value,
            *[TrafficSubject.TOPIC.value] * len(topics),
            *[TrafficSubject.BROKER.value] * len(brokers),
        ],
        "topic": [None, *topics, *no_brokers],
        "broker": [None, *no_topics, *brokers],
        "records_rate": [_round_rate(rate.records) for rate in rates],
        "bytes_rate": [_round_rate(rate.bytes) for rate in rates],
        "unknown": [rate.unknown for rate in rates],
        "without_bytes": [rate.without_bytes for rate in rates],
    }


def _read_shapes(cluster: Cluster) -> dict[str, _TopicShape]:
    shapes: dict[str, _TopicShape] = {}
    stored = TopicState.objects.filter(cluster=cluster).values_list("topic_id", "name", "partitions", "config")
    for topic_id, name, partitions, config in stored.iterator(chunk_size=500):
        sizes: dict[int, int] | None = {} if keeps_all_bytes(config) else None
        shapes[name] = _TopicShape(topic_id, {each[0]: each[1] for each in partitions}, sizes)
    _add_sizes(cluster, shapes)
    return shapes


def _add_sizes(cluster: Cluster, shapes: Mapping[str, _TopicShape]) -> None:
    """Add the bytes of each leader's replica, one broker after the other to save memory."""
    weights = BrokerWeights.objects.filter(cluster=cluster, format=1).values_list("broker_id", "data")
    for broker, data in weights.iterator(chunk_size=1):
        for topic, partitions in json.loads(zlib.decompress(bytes(data))).items():
            shape = shapes.get(topic)
            if shape is None or shape.sizes is None:
                continue
            for partition, size in partitions.items():
                if shape.leaders.get(int(partition)) == broker:
                    shape.sizes[int(partition)] = size


def _build_rows(asking: CollectContext, shapes: Mapping[str, _TopicShape], spans: LogSpans) -> _TrafficRows:
    rows, taken_at = _TrafficRows(), to_utc(spans.taken_at)
    by_shard: dict[int, list[str]] = defaultdict(list)
    for topic in shapes:
        by_shard[shard_of(topic)].append(topic)
    before = dict(LogEndWindow.objects.filter(cluster=asking.cluster, format=1).values_list("shard", "data"))
    for shard, names in sorted(by_shard.items()):
        ends = _unpack_window(before.get(shard))
        topics: dict[str, list[float | None]] = {}
        for name in names:
            shape = shapes[name]
            rates = partition_rates(
                ends.get(name),
                shape.topic_id,
                shape.leaders,
                spans.spans.get(name, _NO_SPANS),
                shape.sizes,
                asking.interval_s,
            )
            rows.rates += rates
            whole = rows.sums[name] = sum_rates(rates)
            if whole.records is not None:
                topics[name] = [*_pack_rates(whole), whole.unknown, whole.without_bytes]
        data = _pack_window(names, shapes, spans, ends)
        rows.windows.append(LogEndWindow(cluster=asking.cluster, shard=shard, data=data))
        if topics:
            rows.topics.append(TopicTraffic(cluster=asking.cluster, shard=shard, taken_at=taken_at, topics=topics))
    return rows


def _pack_rates(rate: TrafficRate) -> list[float | None]:
    return [_round_rate(rate.records), _round_rate(rate.bytes)]


def _round_rate(rate: float | None) -> float | None:
    return None if rate is None else round(rate, 3)


def _pack_window(
    names: Sequence[str], shapes: Mapping[str, _TopicShape], spans: LogSpans, before: Mapping[str, LogEnds]
) -> bytes:
    """A partition that was not read now keeps the end from before, with its time."""
    window = {}
    for name in names:
        known = before.get(name)
        kept = dict(known.ends) if known is not None and known.topic_id == shapes[name].topic_id else {}
        kept |= {
            partition: (span.end, round(span.taken_at, 6)) for partition, span in spans.spans.get(name, {}).items()
        }
        window[name] = [shapes[name].topic_id, kept]
    return zlib.compress(json.dumps(window, separators=(",", ":")).encode(), 1)


def _unpack_window(data: bytes | memoryview | None) -> dict[str, LogEnds]:
    if data is None:
        return {}
    window = json.loads(zlib.decompress(bytes(data)))
    return {
        name: LogEnds(topic_id, {int(partition): (end, at) for partition, (end, at) in ends.items()})
        for name, (topic_id, ends) in window.items()
    }


def read_log_ends(cluster: Cluster, topics: Collection[str]) -> dict[str, LogEnds]:
    """Return the last log ends that leaders of these topics told, each with its time. One query.

    A leader tells its high watermark: what consumers could read, and all that was acknowledged with acks=all.
    """
    shards = {shard_of(topic) for topic in topics}
    rows = LogEndWindow.objects.filter(cluster=cluster, format=1, shard__in=shards).values_list("data", flat=True)
    return {name: ends for data in rows for name, ends in _unpack_window(data).items() if name in topics}


def _sum_by_leader(rates: Sequence[PartitionRate]) -> dict[int, TrafficRate]:
    """Return broker → the sum over the partitions that it leads."""
    by_leader: dict[int, list[PartitionRate]] = defaultdict(list)
    for rate in rates:
        if rate.leader is not None:
            by_leader[rate.leader].append(rate)
    return {broker: sum_rates(own) for broker, own in by_leader.items()}


def _build_point(
    asking: CollectContext, whole: TrafficRate, partitions: int, led: Mapping[int, TrafficRate], taken_at: datetime
) -> ClusterPoint:
    """Build the point: rates of now, and figures of other collectors where these are fresh."""
    cluster = asking.cluster
    brokers: dict[str, list[float | None]] = {
        str(broker): [*_pack_rates(rate), rate.unknown, rate.without_bytes, None, None] for broker, rate in led.items()
    }
    fresh = _fresh_kinds(cluster, taken_at)
    used, total = _add_disks(cluster, brokers) if CollectorKind.LOG_DIRS in fresh else (None, None)
    state = ClusterState.objects.filter(cluster=cluster).first() if CollectorKind.METADATA in fresh else None
    return ClusterPoint(
        cluster=cluster,
        taken_at=taken_at,
        records_rate=_round_rate(whole.records),
        bytes_rate=_round_rate(whole.bytes),
        partitions=partitions,
        unknown=whole.unknown,
        without_bytes=whole.without_bytes,
        lag=_total_lag(cluster) if CollectorKind.GROUPS in fresh else None,
        under_replicated=state.under_replicated if state else None,
        offline=state.offline_partitions if state else None,
        disk_used=used,
        disk_total=total,
        brokers=brokers,
    )


def _build_trend(cluster: Cluster, point: ClusterPoint) -> ClusterTrend:
    slot_at = datetime.fromtimestamp(point.taken_at.timestamp() // SLOT_S * SLOT_S, UTC)
    before = ClusterTrend.objects.filter(cluster=cluster, format=1).first()
    slots, moved = (before.slots, _count_slots(before.slot_at, slot_at)) if before else ([], 1)
    return ClusterTrend(
        cluster=cluster,
        taken_at=point.taken_at,
        rate=point.records_rate,
        slot_at=slot_at,
        slots=advance_slots(slots, moved, point.records_rate),
    )


def _count_slots(before: datetime, after: datetime) -> int:
    return max(0, round((after - before).total_seconds() / SLOT_S))


def _fresh_kinds(cluster: Cluster, now: datetime) -> set[str]:
    runs = CollectorRun.objects.filter(cluster=cluster, succeeded_at__isnull=False)
    stored = runs.values_list("kind", "succeeded_at", "interval_s")
    return {kind for kind, at, interval_s in stored if at is not None and not is_stale(at, interval_s, now)}


def _total_lag(cluster: Cluster) -> int | None:
    """Return the lag of all groups in records, without partitions whose lag is unknown; None where it is of all."""
    groups = GroupState.objects.filter(cluster=cluster, gone_at=None)
    if not groups.exists():
        return 0
    total = groups.aggregate(lag=Sum("lag"))["lag"]
    return None if total is None else min(int(total), LARGEST_LONG)


def _add_disks(cluster: Cluster, brokers: dict[str, list[float | None]]) -> tuple[int | None, int | None]:
    """Add used and all bytes of each broker's directories; return the sums, None where a directory is unknown."""
    all_used: int | None = 0
    all_total: int | None = 0
    for broker, dirs in BrokerWeights.objects.filter(cluster=cluster).values_list("broker_id", "dirs"):
        known = bool(dirs) and all(d.get("total_bytes") and d.get("usable_bytes") is not None for d in dirs)
        if not known or all_used is None or all_total is None:
            all_used = all_total = None
        if not known:
            continue
        total = sum(d["total_bytes"] for d in dirs)
        used = total - sum(d["usable_bytes"] for d in dirs)
        brokers.setdefault(str(broker), [None, None, 0, 0, None, None])[4:] = [used, total]
        if all_used is not None and all_total is not None:
            all_used, all_total = all_used + used, all_total + total
    return all_used, all_total
