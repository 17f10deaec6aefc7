"""Eligible leader replicas (KIP-966) while a leader is killed: stored, simulated and judged, as Kafka's tools say."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from django.utils import timezone

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.findings.simulation import simulate_failure
from kafkadash.findings.simulation_page import placed_partitions
from kafkadash.findings.stored_facts import ELR_FEATURE, facts_of
from kafkadash.monitoring.eligible_replicas import load_candidates
from kafkadash.monitoring.models import CollectorKind, TopicState
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import broker_killed
from tests.agreement.tools import LATEST, DescribedPartition, Ids, Tools
from tests.frozen_nodes import fenced_broker
from tests.waiting import wait_until

LATE, LEADER = 2, 3
RECORDS = 100
FACTS = (CollectorKind.METADATA, CollectorKind.CONFIGS, CollectorKind.METADATA)


@pytest.fixture
def keeps_elr(tools: Tools) -> Iterator[None]:
    """The cluster keeps eligible replicas; one of 4.0 does so for the length of a test."""
    if tools.features()[ELR_FEATURE][2] != "0":
        yield
        return
    tools.run("features", "upgrade", "--feature", f"{ELR_FEATURE}=1")
    yield
    tools.run("features", "downgrade", "--feature", f"{ELR_FEATURE}=0")
    tools.delete_config(None, "min.insync.replicas")  # raising the level has set it


@pytest.mark.needs_release("4.0")
@pytest.mark.usefixtures("keeps_elr")
def test_isr_lost__replica_of_the_elr_leads_as_simulated_and_judged(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, playground: KafkaPlayground, tools: Tools
) -> None:
    """A follower hangs, its leader is killed, and the follower leads when it goes on: it was in the ELR."""
    kept, lone = make_topic([[LEADER, LATE]]), make_topic([[LEADER]])
    tools.set_config(kept, min_insync_replicas="2")
    refresh(CollectorKind.VERSIONS)
    assert tools.features()[ELR_FEATURE][2] == "1"
    with ExitStack() as late:
        late.enter_context(fenced_broker(playground, LATE))
        _write(playground, kept)
        for kind in FACTS:
            refresh(kind)
        assert tools.eligible(kept) == _stored(cluster, kept) == {0: ((LATE,), ())}
        under = facts_of(cluster, timezone.now()).under_elr  # others may have topics under min-ISR too
        assert under.known == under.eligible >= 1
        assert LATE in under.brokers
        assert tools.offset(LEADER, kept, LATEST) == RECORDS
        assert _high_watermark(playground, kept) == 0, "consumers get none of these records"
        said = simulate_failure(placed_partitions(cluster), {1, LATE, LEADER}, {LEADER})

        with broker_killed(playground, tools, LEADER):
            refresh(CollectorKind.METADATA)
            elr, last_known = tools.eligible(kept)[0]
            assert (set(elr), last_known) == ({LATE, LEADER}, (LEADER,))
            assert _stored(cluster, kept) == {0: (elr, last_known)}
            assert tools.eligible(lone) == _stored(cluster, lone) == {0: ((LEADER,), (LEADER,))}
            offline = len(tools.partitions_that_are("unavailable"))
            told = facts_of(cluster, timezone.now()).offline_elr
            assert told.known == told.eligible == offline
            assert LEADER in told.brokers

            late.close()
            wait_until(lambda: not tools.fenced(LATE), f"broker {LATE} is back", 60)
            wait_until(lambda: _described(tools, kept).leader == LATE, "the replica of the ELR leads", 30)
            offline_then = {(hit.partition.topic, hit.partition.number) for hit in said.offline}
            wait_until(lambda: tools.partitions_that_are("unavailable") == offline_then, "as was simulated", 30)
            [saved] = [hit for hit in said.moving if hit.by_elr and hit.partition.topic == kept]
            then = _described(tools, kept)
            assert (saved.leader_then, saved.left) == (then.leader, then.isr)
            refresh(CollectorKind.METADATA)
            assert tools.eligible(kept) == _stored(cluster, kept) == {0: ((LEADER,), ())}
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    refresh(CollectorKind.METADATA)
    assert tools.eligible(kept) == tools.eligible(lone) == {0: ((), ())}
    assert (_stored(cluster, kept), _stored(cluster, lone)) == ({}, {})


def _described(tools: Tools, topic: str) -> DescribedPartition:
    return tools.topics("--topic", topic)[topic].partitions[0]


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
    producer = Producer({"bootstrap.servers": playground.bootstrap, "acks": "1"})
    for _ in range(RECORDS):
        producer.produce(topic, b"x", partition=0)
    assert producer.flush(60) == 0
