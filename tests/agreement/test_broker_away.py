"""A broker is killed and started again: brokers, configs, sizes, troubles and its drill, against Kafka's own tools.

Each of the five is read before, while and after it is away; starting a broker is dear, so one start does for all.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Generator
from datetime import timedelta

from django.test import RequestFactory
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.findings.kinds import FindingCode
from kafkadash.findings.models import Finding
from kafkadash.findings.services import AcknowledgementTerms, acknowledge, judge
from kafkadash.findings.simulation import HitPartition, simulate_failure
from kafkadash.findings.simulation_page import placed_partitions
from kafkadash.monitoring.freshness import silent_brokers
from kafkadash.monitoring.models import (
    BrokerState,
    BrokerWeights,
    ClusterState,
    Collection,
    CollectorKind,
    CollectorRun,
    ThrottleState,
    TopicState,
)
from kafkadash.notifications.models import EventStep, NotificationEvent
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import broker_killed
from tests.agreement.test_cluster_facts import described, printed_bytes, replica_bytes, stored, stored_brokers
from tests.agreement.tools import Tools
from tests.conftest import new_user
from tests.kafka_configs import alter
from tests.kafka_releases import has_quorum, tells_fenced
from tests.metrics.scraped import scrape_page
from tests.waiting import wait_until

AWAY, BROKERS = 3, (1, 2, 3)
LEADER_RATE = "leader_replication_throttled_rate"
# A broker that is not listed is not asked.
IN_VAIN = [AWAY] if tells_fenced() else []
ENDED = object()
SOON_S = 6
"""Well before a session of 9 s has timed out, also on a busy machine."""
# Kafka's option → our column, the same of a topic and of the cluster.
TROUBLES = {
    "under-replicated": "under_replicated",
    "at-min-isr": "at_min_isr",
    "under-min-isr": "under_min_isr",
    "unavailable": "offline_partitions",
}
Check = Generator[None, None, None]
"""A check goes on to its next ``yield`` when the broker is away, and to its end when the broker is back."""


def test_broker_killed_and_started__all_that_is_stored__equals_kafkas_tools(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, playground: KafkaPlayground, tools: Tools
) -> None:
    checks = [
        fenced_broker(cluster, refresh, make_topic, tools),
        sizes(cluster, refresh, make_topic, tools),
        troubled_partitions(cluster, refresh, make_topic, tools),
        incident_of_the_broker(cluster, refresh, make_topic),
        drill_of_the_broker(cluster, refresh, make_topic, tools),  # it foretells what becomes of all topics
        rate_of_the_broker(cluster, refresh, tools),
    ]
    for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.ANSWERS):
        refresh(kind)
    assert not silent_brokers(cluster)
    costs = dict(CollectorRun.objects.filter(cluster=cluster).values_list("kind", "processor_s"))
    assert all(
        (costs[kind] or 0) > 0 for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.ANSWERS)
    ), costs
    try:
        for check in checks:
            next(check)
        with broker_killed(playground, tools, AWAY, lambda: _does_not_answer_yet_unfenced(cluster, refresh)):
            for check in checks:
                next(check)
        wait_until(tools.in_sync, "every replica is in sync again", 60)
        for check in checks:
            assert next(check, ENDED) is ENDED
        for kind in (CollectorKind.METADATA, CollectorKind.ANSWERS):
            refresh(kind)
        assert not silent_brokers(cluster)
    finally:
        alter(playground, AWAY, **{LEADER_RATE: None})


def fenced_broker(cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools) -> Check:
    """The broker is fenced, and its partitions are under-replicated."""
    topic = make_topic([[1, 2, 3], [2, 3, 1]])
    yield
    refresh(CollectorKind.METADATA)
    brokers = stored_brokers(cluster)
    assert brokers == tools.brokers()
    assert {broker for broker, (*_, fenced) in brokers.items() if fenced} == ({AWAY} if tells_fenced() else set())
    assert set(BROKERS) - brokers.keys() == (set() if tells_fenced() else {AWAY})
    figures = ClusterState.objects.get(cluster=cluster)
    behind = tools.partitions_that_are("under-replicated")
    assert {(topic, 0), (topic, 1)} <= behind
    assert (figures.brokers_fenced, figures.brokers_gone) == ((1, 0) if tells_fenced() else (None, 1))
    assert figures.under_replicated == len(behind)
    yield


def sizes(cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools) -> Check:
    """Directories of the broker keep their age meanwhile."""
    topic = make_topic([[1, 2, 3]], mib=2)
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.LOG_DIRS)
    before = BrokerWeights.objects.get(cluster=cluster, broker_id=AWAY)
    size = TopicState.objects.get(cluster=cluster, name=topic).size_bytes
    yield
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.LOG_DIRS)
    assert BrokerWeights.objects.get(cluster=cluster, broker_id=AWAY).taken_at == before.taken_at
    assert BrokerWeights.objects.get(cluster=cluster, broker_id=1).taken_at > before.taken_at
    assert TopicState.objects.get(cluster=cluster, name=topic).size_bytes == size
    assert Collection.objects.filter(cluster=cluster, kind=CollectorKind.LOG_DIRS).latest("pk").not_answered == IN_VAIN
    assert replica_bytes(cluster, [1, 2]) == printed_bytes(tools, [1, 2])
    yield
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.LOG_DIRS)
    assert replica_bytes(cluster, [1, 2, 3]) == printed_bytes(tools, [1, 2, 3])
    assert BrokerWeights.objects.get(cluster=cluster, broker_id=AWAY).taken_at > before.taken_at


def troubled_partitions(cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools) -> Check:
    """Troubles are counted as in the lists of ``kafka-topics --describe``."""
    strict = make_topic([[1, 2, 3], [3, 1, 2]])
    loose = make_topic([[2, 3], [1, 2]])
    alone = make_topic([[3], [1]])
    tools.set_config(strict, min_insync_replicas="3")
    tools.set_config(loose, min_insync_replicas="2")
    _refresh_twice(refresh)
    _assert_lists_agree(cluster, tools)
    assert _counted(cluster, "at_min_isr")[strict] == 2
    assert _counted(cluster, "under_min_isr") == {}
    yield
    _refresh_twice(refresh)
    _assert_lists_agree(cluster, tools)
    under = _counted(cluster, "under_min_isr")
    assert (under[strict], under[loose], under[alone]) == (2, 1, 1)
    assert _counted(cluster, "offline_partitions")[alone] == 1
    assert _counted(cluster, "at_min_isr")[loose] == 1
    offline = TopicState.objects.get(cluster=cluster, name=strict)
    assert offline.offline_replicas == 2
    assert [row[5] for row in offline.partitions] == [[AWAY], [AWAY]]
    yield
    _refresh_twice(refresh)
    _assert_lists_agree(cluster, tools)
    assert _counted(cluster, "under_min_isr") == {}
    topics = tools.topics()
    led = sum(p.leader == p.replicas[0] for topic in topics.values() for p in topic.partitions.values())
    assert ClusterState.objects.get(cluster=cluster).preferred_leaders == led


def rate_of_the_broker(cluster: Cluster, refresh: Refresher, tools: Tools) -> Check:
    """The broker's throttle keeps its age meanwhile and is read again; ZooKeeper tells it without the broker."""
    tools.set_config(AWAY, **{LEADER_RATE: "4000004"})
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.CONFIGS)
    before = _rate_stored(cluster)
    yield
    refresh(CollectorKind.CONFIGS)
    away = _rate_stored(cluster)
    assert away.value == "4000004"
    assert away.read_at == before.read_at if has_quorum() else away.read_at > before.read_at
    assert Collection.objects.filter(cluster=cluster, kind=CollectorKind.CONFIGS).latest("pk").not_answered == IN_VAIN
    yield
    refresh(CollectorKind.CONFIGS)
    again = _rate_stored(cluster)
    assert stored(cluster) == described(tools)
    assert again.pk == before.pk
    assert again.read_at > before.read_at
    assert Collection.objects.filter(cluster=cluster, kind=CollectorKind.CONFIGS).latest("pk").not_answered == []


def incident_of_the_broker(cluster: Cluster, refresh: Refresher, make_topic: TopicMaker) -> Check:
    """Partitions that lack its replicas follow from the broker, and all of it from a cluster that is not read."""
    make_topic([[1, AWAY]])
    refresh(CollectorKind.METADATA)
    yield
    for _ in range(2):
        refresh(CollectorKind.METADATA)
        judge(cluster.pk, timezone.now())
    down, lacking = _open_finding(cluster, "broker-down"), _open_finding(cluster, "under-replicated")
    assert (down.scope, lacking.cause) == (str(AWAY), down)

    until = timezone.now() + timedelta(minutes=1)
    acknowledge(
        lacking, new_user("ann"), RequestFactory().post("/"), timezone.now(), AcknowledgementTerms("disk", until)
    )
    assert _open_finding(cluster, "broker-down").acknowledged_until == until
    judge(cluster.pk, until)
    assert _open_finding(cluster, "broker-down").acknowledged_until is None
    told = NotificationEvent.objects.filter(subject_id=down.public_id, step=EventStep.UNACKNOWLEDGED)
    assert told.count() == 1

    judge(cluster.pk, timezone.now() + timedelta(minutes=5))
    stale = _open_finding(cluster, "stale-data", scope="")
    assert {_open_finding(cluster, kind).cause for kind in ("broker-down", "under-replicated")} == {stale}
    refresh(CollectorKind.METADATA)
    judge(cluster.pk, timezone.now())
    assert _open_finding(cluster, "broker-down").cause is None
    assert _open_finding(cluster, "under-replicated").cause == down
    yield
    refresh(CollectorKind.METADATA)
    refresh(CollectorKind.ANSWERS)
    judge(cluster.pk, timezone.now())
    assert not Finding.objects.filter(cluster=cluster, kind="broker-down", closed_at=None).exists()


def _open_finding(cluster: Cluster, kind: str, **exactly: str) -> Finding:
    return Finding.objects.select_related("cause").get(cluster=cluster, kind=kind, closed_at=None, **exactly)


def _rate_stored(cluster: Cluster) -> ThrottleState:
    return ThrottleState.objects.get(cluster=cluster, name=str(AWAY), key=LEADER_RATE.replace("_", "."))


def _refresh_twice(refresh: Refresher) -> None:
    """Twice the metadata: it counts by the min.insync.replicas that are known."""
    for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.METADATA):
        refresh(kind)


def _assert_lists_agree(cluster: Cluster, tools: Tools) -> None:
    figures = ClusterState.objects.get(cluster=cluster)
    for option, column in TROUBLES.items():
        printed = tools.partitions_that_are(option)
        assert _counted(cluster, column) == Counter(topic for topic, _ in printed), option
        assert getattr(figures, column) == len(printed), option
        series = f"partitions_{column.removesuffix('_partitions')}"
        assert scrape_page().get(series, cluster=cluster.slug) == len(printed), series


def _counted(cluster: Cluster, column: str) -> Counter[str]:
    """Topic → partitions, where there are any."""
    rows = TopicState.objects.filter(cluster=cluster).values_list("name", column)
    return +Counter(dict(rows))


def drill_of_the_broker(cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, tools: Tools) -> Check:
    """What the drill says of its loss is what Kafka makes of it: leaders, offline and at-min-ISR partitions."""
    alive = next(broker for broker in BROKERS if broker != AWAY)
    make_topic([[alive, AWAY], [AWAY, alive]])
    single = make_topic([[AWAY], [alive]])
    for kind in (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.METADATA):
        refresh(kind)
    said = simulate_failure(placed_partitions(cluster), set(BROKERS), {AWAY})
    assert (single, 0) in {named(hit) for hit in said.offline}
    assert (single, 1) not in {named(hit) for hit in said.offline}
    at_min_isr_now = tools.partitions_that_are("at-min-isr")
    assert said.at_now == len(at_min_isr_now)
    yield
    then = tools.topics()
    assert tools.partitions_that_are("unavailable") == {named(hit) for hit in said.offline}
    for hit in said.moving:
        assert then[hit.partition.topic].partitions[hit.partition.number].leader == hit.leader_then
    leads = Counter(p.leader for t in then.values() for p in t.partitions.values() if p.leader is not None)
    assert leads == +Counter({broker: load_of.leaders_then for broker, load_of in said.load.items()})
    # The tool counts a partition without a leader by the ISR that it had.
    at_min_isr = tools.partitions_that_are("at-min-isr")
    assert {named(hit) for hit in said.at_min_isr} == at_min_isr - at_min_isr_now
    yield


def named(hit: HitPartition) -> tuple[str, int]:
    return hit.partition.topic, hit.partition.number


def _does_not_answer_yet_unfenced(cluster: Cluster, refresh: Refresher) -> None:
    """Controllers fence it when its session has timed out, which takes 9 s; a killed process refuses connections."""
    began = time.monotonic()
    refresh(CollectorKind.ANSWERS)
    refresh(CollectorKind.METADATA)
    assert time.monotonic() - began < SOON_S
    assert silent_brokers(cluster) == {AWAY}
    assert not BrokerState.objects.get(cluster=cluster, broker_id=AWAY).fenced, "it is the controllers' turn later"
    judge(cluster.pk, timezone.now())
    down = Finding.objects.get(cluster=cluster, kind="broker-down", closed_at=None)
    assert down.message_code == FindingCode.DOWN_SILENT
