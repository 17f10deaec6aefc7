"""A broker falls behind and comes back under a follower throttle: its lag against raw log ends, until it is gone."""

from __future__ import annotations

import os

from confluent_kafka import Producer

from kafkadash.clusters.models import Cluster
from kafkadash.devtools.playground.cluster import KafkaPlayground
from kafkadash.monitoring.catch_up.packing import unpack_followers
from kafkadash.monitoring.catch_up.rules import CatchUpState
from kafkadash.monitoring.models import BrokerCatchUp, CollectorKind
from tests.agreement.conftest import Refresher, TopicMaker
from tests.agreement.runs import broker_hung
from tests.agreement.tools import LATEST, Tools
from tests.kafka_configs import alter
from tests.waiting import wait_until

LEADER, AWAY = 1, 3
RATE, LIST = "follower_replication_throttled_rate", "follower_replication_throttled_replicas"
RECORDS, RECORD_BYTES = 512, 16 * 1024


def test_broker_comes_back__its_lag_is_that_of_raw_log_ends_until_it_is_in_sync(
    cluster: Cluster, refresh: Refresher, make_topic: TopicMaker, playground: KafkaPlayground, tools: Tools
) -> None:
    topic = make_topic([[LEADER, AWAY]], mib=1)
    tools.set_config(topic, **{LIST: f"0:{AWAY}", "retention_bytes": "-1"})
    tools.set_config(AWAY, **{RATE: "50000"})
    with broker_hung(playground, tools, AWAY):
        _write(playground, topic)
        for kind in (CollectorKind.METADATA, CollectorKind.LOG_DIRS, CollectorKind.CATCH_UP):
            refresh(kind)
        assert not BrokerCatchUp.objects.filter(cluster=cluster).exists(), "a fenced broker does not catch up"
    alone = {(topic, 0)}
    wait_until(lambda: tools.partitions_that_are("under-replicated") == alone, "only the throttled one is behind", 60)
    refresh(CollectorKind.METADATA)
    most = _lag(tools, topic)
    refresh(CollectorKind.CATCH_UP)
    least = _lag(tools, topic)
    row = BrokerCatchUp.objects.get(cluster=cluster)
    [sample] = unpack_followers(row)
    assert (row.broker_id, sample.topic, sample.leader) == (AWAY, topic, LEADER)
    assert row.records is not None
    assert 0 < least <= row.records <= most <= RECORDS
    assert (row.counts, row.seconds_left) == ({CatchUpState.MEASURING.value: 1}, None)
    assert row.bytes_behind is not None
    assert 0.9 < row.bytes_behind / (row.records * RECORD_BYTES) < 1.1
    alter(playground, AWAY, **{RATE: None})
    alter(playground, topic, **{LIST: None})
    wait_until(tools.in_sync, "every replica is in sync again", 60)
    assert _lag(tools, topic) == 0
    for kind in (CollectorKind.METADATA, CollectorKind.CATCH_UP):
        refresh(kind)
    assert not BrokerCatchUp.objects.filter(cluster=cluster).exists()


def _write(playground: KafkaPlayground, topic: str) -> None:
    """Small batches: a follower takes a whole batch, whatever its throttle."""
    producer = Producer({"bootstrap.servers": playground.bootstrap, "batch.size": 4 * RECORD_BYTES, "linger.ms": 0})
    for _ in range(RECORDS):
        producer.produce(topic, os.urandom(RECORD_BYTES), partition=0)
    assert producer.flush(60) == 0


def _lag(tools: Tools, topic: str) -> int:
    return tools.offset(LEADER, topic, LATEST) - tools.offset(AWAY, topic, LATEST)
