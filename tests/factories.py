"""Rows as the collectors leave them, for tests of what is shown. A cluster from ``watched`` is healthy and fresh."""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from django.conf import settings
from django.db.models import F
from factory.declarations import LazyAttribute, LazyFunction, SelfAttribute, Sequence
from factory.django import DjangoModelFactory

from kafkadash.clusters.models import Cluster, ClusterMode
from kafkadash.core.failures import FailureKind
from kafkadash.core.messages import as_message, message_columns
from kafkadash.findings.models import Judgement
from kafkadash.findings.services import judge
from kafkadash.history.models import PipelineState
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    ClusterState,
    Collection,
    CollectorKind,
    CollectorRun,
    ConfigSource,
    GroupState,
    MoveOutcome,
    PrincipalRights,
    QuorumSnapshot,
    ReassignmentSnapshot,
    ThrottledResource,
    ThrottleState,
    TopicState,
)

NOW = datetime(2026, 11, 21, 2, 3, 4, tzinfo=UTC)
GB = 1_000_000_000
# Beyond every number that tests write themselves: a sequence goes on through all tests of a worker, so a small
# number from it would meet one written by hand, depending on which tests ran before.
FIRST_IN_SEQUENCE = 1000
ROWS = {
    CollectorKind.ANSWERS: 3,
    CollectorKind.TRAFFIC: 1120,
    CollectorKind.METADATA: 1120,
    CollectorKind.REASSIGNMENTS: 0,
    CollectorKind.QUORUM: 6,
    CollectorKind.LOG_DIRS: 687,
    CollectorKind.CONFIGS: 15,
    CollectorKind.VERSIONS: 3,
    CollectorKind.GROUPS: 4,
    CollectorKind.CATCH_UP: 0,
    CollectorKind.TRANSACTIONS: 1120,
}
"""Rows of the newest refresh of a cluster from ``watched``."""
SIZES = {"brokers", "racks", "topics", "partitions"}
"""Figures of a cluster that say nothing about how it does."""
BrokerNode = tuple[BrokerState, BrokerWeights]


class ClusterFactory(DjangoModelFactory[Cluster]):
    class Meta:
        model = Cluster

    name = Sequence(lambda n: f"cluster-{n}")
    slug = SelfAttribute("name")
    bootstrap_servers = "kafka-1.internal:9092,kafka-2.internal:9092"
    mode = ClusterMode.KRAFT
    kafka_id = Sequence(lambda n: f"4L6g3nShT-eMCtK--X86{n:02d}")


class ClusterStateFactory(DjangoModelFactory[ClusterState]):
    class Meta:
        model = ClusterState

    brokers = 3
    brokers_fenced = 0
    brokers_gone = 0
    racks = 3
    topics = 12
    hidden_topics = 0
    partitions = 1120
    offline_partitions = 0
    under_replicated = 0
    under_replicated_moving = 0
    kafka_version = "4.3 or newer"


class CollectorRunFactory(DjangoModelFactory[CollectorRun]):
    class Meta:
        model = CollectorRun

    kind = CollectorKind.METADATA
    epoch = 1
    seq = 7
    interval_s = LazyAttribute(lambda run: settings.COLLECT_INTERVALS[run.kind])
    attempted_at = NOW - timedelta(seconds=6)
    succeeded_at = NOW - timedelta(seconds=6)
    complete_at = LazyAttribute(lambda run: run.succeeded_at)


class CollectionFactory(DjangoModelFactory[Collection]):
    class Meta:
        model = Collection

    kind = CollectorKind.METADATA
    epoch = 1
    seq = Sequence(lambda n: FIRST_IN_SEQUENCE + n)
    started_at = NOW - timedelta(seconds=6)
    taken_at = NOW - timedelta(seconds=6)
    duration_ms = 42
    ok = True
    rows = 1120


class BrokerFactory(DjangoModelFactory[BrokerState]):
    class Meta:
        model = BrokerState

    broker_id = Sequence(lambda n: FIRST_IN_SEQUENCE + n)
    host = LazyAttribute(lambda broker: f"kafka-{broker.broker_id}.internal")
    port = 9092
    rack = LazyAttribute(lambda broker: f"eu-1{'abc'[broker.broker_id % 3]}")
    fenced = False
    replicas = 229
    leaders = 79
    preferred = 80
    config = LazyFunction(lambda: {"log.retention.hours": ["72", "static"]})
    config_at = NOW - timedelta(seconds=6)
    release = "4.3 or newer"
    first_seen_at = NOW - timedelta(days=9)
    changed_at = NOW - timedelta(hours=3)


class BrokerWeightsFactory(DjangoModelFactory[BrokerWeights]):
    class Meta:
        model = BrokerWeights

    data = zlib.compress(json.dumps({"orders": {"0": 4 * GB}}).encode())
    dirs = LazyFunction(lambda: [directory()])
    replica_bytes = 667 * GB
    taken_at = NOW - timedelta(seconds=20)


class QuorumFactory(DjangoModelFactory[QuorumSnapshot]):
    class Meta:
        model = QuorumSnapshot

    taken_at = NOW - timedelta(seconds=6)
    leader_id = 102
    leader_epoch = 47
    high_watermark = 8_412_907
    epoch = 1
    seq = Sequence(lambda n: FIRST_IN_SEQUENCE + n)
    replicas = LazyFunction(
        lambda: [
            node(101, caught_up_ago=210),
            node(102, caught_up_ago=0),
            node(103, caught_up_ago=340, log_end=8_412_905),
            *(node(n, voter=False, caught_up_ago=260) for n in (1, 2, 3)),
        ]
    )


class TopicFactory(DjangoModelFactory[TopicState]):
    """``partitions`` as packed: [partition, leader, leader epoch, [replicas], [isr], [offline]]."""

    class Meta:
        model = TopicState

    topic_id = Sequence(lambda n: f"topic-{n}")
    name = "payments.ledger"
    shape = "0" * 32
    partitions = LazyFunction(lambda: [[0, 1, 5, [1, 2, 3], [1, 2, 3], []]])
    partition_count = LazyAttribute(lambda topic: len(topic.partitions))
    replication_factor = 3
    offline_partitions = LazyAttribute(lambda topic: sum(p[1] is None for p in topic.partitions))
    under_replicated = LazyAttribute(lambda topic: sum(len(p[4]) < len(p[3]) for p in topic.partitions))
    offline_replicas = LazyAttribute(lambda topic: sum(len(p[5]) for p in topic.partitions))
    preferred_leaders = LazyAttribute(lambda topic: sum(p[1] == p[3][0] for p in topic.partitions))
    min_isr = 2
    under_min_isr = LazyAttribute(lambda topic: _in_sync(topic, lambda held: held < topic.min_isr))
    at_min_isr = LazyAttribute(lambda topic: _in_sync(topic, lambda held: held == topic.min_isr))
    rack_violations = 0
    config = LazyFunction(lambda: {"min.insync.replicas": ["2", "topic"]})
    size_bytes = 12 * GB
    changed_at = NOW - timedelta(minutes=7)


class ThrottleFactory(DjangoModelFactory[ThrottleState]):
    """The rate of a broker."""

    class Meta:
        model = ThrottleState

    resource = ThrottledResource.BROKER
    name = "1"
    key = "leader.replication.throttled.rate"
    value = "10000000"
    source = LazyAttribute(lambda row: ConfigSource.CLUSTER_DEFAULT if row.resource == "cluster" else row.resource)
    first_seen_at = NOW - timedelta(minutes=20)
    changed_at = NOW - timedelta(minutes=20)
    read_at = NOW - timedelta(seconds=6)


class ReassignmentFactory(DjangoModelFactory[ReassignmentSnapshot]):
    class Meta:
        model = ReassignmentSnapshot

    public_id = Sequence(lambda n: f"r-{n:012x}")
    topic_id = "pW7mE1rASEqVl0d3kB4pzQ"
    topic = "cart.events"
    partition = Sequence(lambda n: FIRST_IN_SEQUENCE + n)
    replicas = [6, 2, 1, 3]
    adding = [6]
    removing = [3]
    target = [6, 2, 1]
    original = [3, 2, 1]
    started_after = NOW - timedelta(minutes=4, seconds=10)
    started_before = NOW - timedelta(minutes=4)
    leader = 2
    leader_epoch = 12
    leader_log_end = 1_000_000
    leader_log_start = 0
    percent = 43.219
    sampled_at = NOW - timedelta(seconds=1)
    size_bytes = 4_200_000_000
    size_taken_at = NOW - timedelta(seconds=20)
    rate_bytes = 19_300_000.0
    last_seen_at = NOW - timedelta(seconds=1)
    epoch = 1
    seq = 7
    replicas_progress = LazyAttribute(
        lambda row: [
            {
                "broker": broker,
                "log_end": None if row.percent is None else round(row.percent * 10_000),
                "percent": row.percent,
                "in_isr": False,
                "lag_records": None if row.percent is None else 1_000_000 - round(row.percent * 10_000),
                "taken_at": None if row.percent is None else row.sampled_at.isoformat(),
                "error": "no answer within 8 s" if row.percent is None else None,
            }
            for broker in row.adding
        ]
    )


def _in_sync(topic: Any, matches: Callable[[int], bool]) -> int | None:
    return None if topic.min_isr is None else sum(matches(len(p[4])) for p in topic.partitions)


def directory(
    path: str = "/var/lib/kafka/a", total: int | None = 2000 * GB, usable: int | None = 1333 * GB, **more: Any
) -> dict[str, Any]:
    """A log directory as BrokerWeights stores it."""
    return {
        "path": path,
        "total_bytes": total,
        "usable_bytes": usable,
        "replica_bytes": 667 * GB,
        "cordoned": False,
        "error": None,
        **more,
    }


def directory_id(node_id: int) -> str:
    """22 characters, as Kafka prints a UUID."""
    return f"dir{node_id}".ljust(22, "A")


def node(
    id_: int, *, voter: bool = True, caught_up_ago: int | None, log_end: int | None = 8_412_907, now_ms: int = 10**12
) -> dict[str, Any]:
    """A voter or observer as QuorumSnapshot stores it; ``caught_up_ago`` in ms on the leader's clock."""
    then = None if caught_up_ago is None else now_ms - caught_up_ago
    return {
        "id": id_,
        "directory_id": directory_id(id_),
        "voter": voter,
        "log_end_offset": log_end,
        "last_fetch_ms": then,
        "last_caught_up_ms": then,
    }


def three_brokers(cluster: Cluster, taken_at: datetime) -> list[BrokerNode]:
    return [
        (
            BrokerFactory.build(cluster=cluster, broker_id=broker_id),
            BrokerWeightsFactory.build(cluster=cluster, broker_id=broker_id, taken_at=taken_at),
        )
        for broker_id in (1, 2, 3)
    ]


ALL_RIGHTS = ["Alter", "AlterConfigs", "Create", "Delete", "Describe", "DescribeConfigs", "Read"]


def watched(
    name: str,
    now: datetime = NOW,
    *,
    nodes: Callable[[Cluster, datetime], list[BrokerNode]] = three_brokers,
    **figures: Any,
) -> Cluster:
    """A healthy cluster with fresh data of every kind: a quorum of three, nothing in flight, and these ``nodes``.

    Most tests begin with one: its rows go in a table at a time.
    """
    taken_at = now - timedelta(seconds=3)
    cluster = ClusterFactory.create(name=name)
    ClusterStateFactory.create(cluster=cluster, **figures)
    fresh: dict[str, Any] = {"cluster": cluster, "attempted_at": taken_at, "succeeded_at": taken_at}
    CollectorRun.objects.bulk_create(CollectorRunFactory.build(kind=kind, **fresh) for kind in ROWS)
    read: dict[str, Any] = {"cluster": cluster, "started_at": taken_at, "taken_at": taken_at}
    Collection.objects.bulk_create(CollectionFactory.build(kind=kind, rows=rows, **read) for kind, rows in ROWS.items())
    each = {"usual": ALL_RIGHTS, "others": {}}
    PrincipalRights.objects.create(
        cluster=cluster, on_cluster=ALL_RIGHTS, on_topics=each, on_groups=each, taken_at=taken_at
    )
    there = nodes(cluster, taken_at)
    BrokerState.objects.bulk_create(broker for broker, _ in there)
    BrokerWeights.objects.bulk_create(weights for _, weights in there)
    QuorumFactory.create(cluster=cluster, taken_at=taken_at)
    if figures.keys() <= SIZES and not PipelineState.objects.exists():
        Judgement.objects.create(cluster=cluster, judged_at=now)  # as ``judge`` says of one that is well
    else:
        judge(cluster.pk, now)
    return cluster


def judged(cluster: Cluster, now: datetime = NOW, readings: int = 2) -> None:
    """What the workers do after so many readings that found what is stored now: two open every finding."""
    for _ in range(readings):
        later = timedelta(milliseconds=1)
        cluster.collector_runs.filter(succeeded_at__isnull=False).update(succeeded_at=F("succeeded_at") + later)
        BrokerWeights.objects.filter(cluster=cluster).update(taken_at=F("taken_at") + later)
        GroupState.objects.filter(cluster=cluster, gone_at=None).update(taken_at=F("taken_at") + later)
        judge(cluster.pk, now)


def failed_with(text: str) -> dict[str, Any]:
    """Columns of a refresh that ended with this text; of a good one for ''."""
    return message_columns(as_message(text) if text else None, "last_error")


def silent(cluster: Cluster, since: datetime, *, error: str = "", failure: str = FailureKind.UNREACHABLE) -> None:
    """Nothing was read from this cluster after ``since``; with ``error``, because it did not answer."""
    cluster.collector_runs.update(
        succeeded_at=since,
        failures=9 if error else 0,
        last_failure=failure if error else "",
        **failed_with(error),
    )


def ended(cluster: Cluster, outcome: MoveOutcome, at: datetime, **fields: Any) -> ReassignmentSnapshot:
    return ReassignmentFactory.create(cluster=cluster, outcome=outcome, ended_at=at, **fields)
