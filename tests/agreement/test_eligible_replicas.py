"""Eligible leader replicas (KIP-966) while a leader is killed: stored, simulated and judged, as Kafka's tools say."""

from __future__ import annotations

import os

from confluent_kafka import Consumer, Producer, TopicPartition
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.findings.facts import EligibleFacts
from kafkadash.findings.simulation import simulate_failure
from kafkadash.findings.simulation_page import placed_partitions
from kafkadash.findings.stored_facts import ELR_FEATURE, facts_of
from kafkadash.monitoring.eligible_replicas import load_candidates
from kafkadash.monitoring.models import CollectorKind, TopicState
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import alter, broker_hung, broker_killed
from tests.agreement.tools import LATEST, Ids, Tools
from tests.waiting import wait_until

LATE, LEADER = 2, 3
RATE, LIST = "follower_replication_throttled_rate", "follower_replication_throttled_replicas"
RECORDS, RECORD_BYTES = 128, 16 * 1024
FACTS = (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.VERSIONS, CollectorKind.METADATA)


def test_leader_killed__replica_of_the_elr_leads_as_simulated_and_judged(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, playground: KafkaPlayground, tools: Tools
) -> None:
    kept, lone = make_topic([[LEADER, LATE]]), make_topic([[LEADER]])
    assert tools.features()[ELR_FEATURE][2] == "1"
    tools.set_config(kept, **{LIST: f"0:{LATE}", "min_insync_replicas": "2"})
    tools.set_config(LATE, **{RATE: "1"})
    with broker_hung(playground, tools, LATE):
        _write(playground, kept)
    for kind in FACTS:
        refresh(kind)
    assert tools.topics("--topic", kept)[kept].partitions[0].isr == (LEADER,)
    assert tools.eligible(kept) == _stored(cluster, kept) == {0: ((LATE,), ())}
    assert facts_of(cluster, timezone.now()).under_elr == EligibleFacts(1, 1, (LATE,), each=True)
    assert tools.offset(LEADER, kept, LATEST) == RECORDS
    assert _high_watermark(playground, kept) == 0, "consumers get none of these records"

    said = simulate_failure(placed_partitions(cluster), {1, 2, 3}, {LEADER})
    with broker_killed(playground, tools, LEADER):
        assert tools.partitions_that_are("unavailable") == {
            (hit.partition.topic, hit.partition.number) for hit in said.offline
        }
        [saved] = [hit for hit in said.moving if hit.by_elr]
        then = tools.topics("--topic", kept)[kept].partitions[0]
        assert (saved.partition.topic, saved.leader_then, saved.left) == (kept, then.leader, then.isr)
        for kind in FACTS:
            refresh(kind)
        assert tools.eligible(kept) == _stored(cluster, kept) == {0: ((LEADER,), ())}
        assert tools.eligible(lone) == _stored(cluster, lone) == {0: ((LEADER,), (LEADER,))}
        facts = facts_of(cluster, timezone.now())
        assert facts.offline_elr == EligibleFacts(len(said.offline), len(said.offline), (LEADER,), each=True)
        alter(playground, LATE, **{RATE: None})
        alter(playground, kept, **{LIST: None})
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    refresh(CollectorKind.METADATA)
    assert tools.eligible(kept) == tools.eligible(lone) == {0: ((), ())}
    assert (_stored(cluster, kept), _stored(cluster, lone)) == ({}, {})


def _stored(cluster: Cluster, topic: str) -> dict[int, tuple[Ids | None, Ids | None]]:
    topic_id = TopicState.objects.get(cluster=cluster, name=topic).topic_id
    found = load_candidates(cluster, [topic_id])
    return {number: (own.eligible, own.last_known) for (_, number), own in found.items()}


def _high_watermark(playground: KafkaPlayground, topic: str) -> int:
    consumer = Consumer({"bootstrap.servers": playground.bootstrap, "group.id": "agreement-watermark"})
    try:
        _, high = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=20)
    finally:
        consumer.close()
    return int(high)


def _write(playground: KafkaPlayground, topic: str) -> None:
    """Small batches: a follower takes a whole batch, whatever its throttle."""
    settings = {"bootstrap.servers": playground.bootstrap, "acks": "1", "batch.size": RECORD_BYTES, "linger.ms": 0}
    producer = Producer(settings)
    for _ in range(RECORDS):
        producer.produce(topic, os.urandom(RECORD_BYTES), partition=0)
    assert producer.flush(60) == 0
