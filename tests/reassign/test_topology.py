"""A cluster for planning, read from stored rows."""

from __future__ import annotations

import json
import zlib
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.clusters.models import Cluster
from kafkadash.domain.planner.topology import Broker, Directory
from kafkadash.domain.reassignment_checks import Moving
from kafkadash.observe.models import BrokerState, BrokerWeights, CollectorRun, Kind, ReassignmentSnapshot, TopicState
from kafkadash.reassign.topology import load_topology
from tests.factories import (
    GB,
    NOW,
    BrokerFactory,
    ClusterFactory,
    ReassignmentFactory,
    TopicFactory,
    directory,
    watched,
)
from tests.history import modelled

pytestmark = pytest.mark.django_db


def weigh(cluster: Cluster, broker: int, sizes: dict[str, dict[str, int]], **changes: Any) -> None:
    data = zlib.compress(json.dumps(sizes).encode())
    BrokerWeights.objects.filter(cluster=cluster, broker_id=broker).update(data=data, **changes)


def orders(cluster: Cluster, **changes: Any) -> TopicState:
    packed = [[0, 1, 5, [1, 2, 3], [1, 2, 3], []], [1, None, 5, [3, 1], [2, 3], [1]]]
    return TopicFactory.create(
        cluster=cluster, **{"name": "orders", "topic_id": "id-1", "partitions": packed} | changes
    )


def test_partitions__have_their_leaders_size_and_say_whether_they_move() -> None:
    cluster = watched("prod")
    orders(cluster)
    weigh(cluster, 1, {"orders": {"0": 5 * GB}})
    weigh(cluster, 2, {"orders": {"0": 9 * GB}})
    weigh(cluster, 3, {"orders": {"0": 9 * GB, "1": 2 * GB}})
    ReassignmentFactory.create(cluster=cluster, topic="orders", topic_id="id-1", partition=1, adding=[3], removing=[2])
    loaded = load_topology(cluster)
    topic = loaded.topology.topics["orders"]
    assert (topic.id, topic.min_isr, topic.internal) == ("id-1", 2, False)
    first, second = topic.partitions
    assert (first.replicas, first.isr, first.leader, first.size_bytes, first.moving) == (
        (1, 2, 3),
        (1, 2, 3),
        1,
        5 * GB,
        False,
    )
    assert (second.leader, second.size_bytes, second.moving) == (None, 2 * GB, True)
    assert loaded.seen.moving == {("orders", 1): Moving(frozenset({3}), frozenset({2}))}
    assert loaded.topology.kafka_id == cluster.kafka_id


def test_what_was_not_read__is_not_known() -> None:
    cluster = watched("prod")
    orders(cluster, min_isr=None, topic_id="orders", under_min_isr=None, at_min_isr=None)
    for broker in (1, 2, 3):
        weigh(cluster, broker, {})
    topic = load_topology(cluster).topology.topics["orders"]
    assert [p.size_bytes for p in topic.partitions] == [None, None]
    assert (topic.id, topic.min_isr, topic.partitions[0].bytes_in_per_s) == ("", None, None)


def test_brokers__gone_ones_are_not_alive_and_failed_directories_take_nothing() -> None:
    cluster = watched("prod")
    BrokerFactory.create(cluster=cluster, broker_id=9, rack=None, gone_at=NOW)
    BrokerFactory.create(cluster=cluster, broker_id=8, rack="", fenced=True)
    dirs = [directory("/a"), directory("/b", None, None, error="failed"), directory("/c", cordoned=None)]
    weigh(cluster, 1, {}, dirs=dirs)
    brokers = load_topology(cluster).topology.brokers
    assert brokers[9] == Broker(9, None, alive=False)
    assert (brokers[8].rack, brokers[8].fenced, brokers[8].alive, brokers[8].dirs) == ("", True, True, ())
    assert brokers[1].dirs == (
        Directory("/a", 2000 * GB, 667 * GB),
        Directory("/b", None, None, cordoned=True),
        Directory("/c", 2000 * GB, 667 * GB),
    )


def test_some_topics__are_read_alone_and_kept_until_they_change() -> None:
    cluster = watched("prod")
    topic = orders(cluster)
    orders(cluster, name="other", topic_id="id-2")
    assert set(load_topology(cluster, ["orders", "gone"]).topology.topics) == {"orders"}
    with CaptureQueriesContext(
        connection,
    ) as again:
        load_topology(cluster, ["orders"])
    assert len(again) == 6
    topic.partitions, topic.shape = [[0, 2, 6, [2, 3], [2], []]], "1" * 32
    topic.save()
    assert load_topology(cluster, ["orders"]).topology.topics["orders"].partitions[0].replicas == (2, 3)


def test_queries__are_eight_at_most() -> None:
    cluster = watched("prod")
    orders(cluster)
    modelled(cluster, "orders", NOW)
    for wanted in (None, ["orders"]):
        with CaptureQueriesContext(connection) as seen:
            load_topology(cluster, wanted)
        assert len(seen) <= 8


def test_age__is_that_of_the_oldest_facts_and_none_if_some_were_never_read() -> None:
    cluster = watched("prod")
    orders(cluster)
    assert load_topology(cluster).facts_at == NOW - timedelta(seconds=3)
    old = NOW - timedelta(minutes=9)
    BrokerWeights.objects.filter(cluster=cluster, broker_id=2).update(taken_at=old)
    assert load_topology(cluster).facts_at == old
    assert load_topology(cluster).seen.log_dirs.taken_at == old
    CollectorRun.objects.filter(cluster=cluster, kind=Kind.REASSIGNMENTS).update(succeeded_at=None)
    assert load_topology(cluster).facts_at is None


def test_a_cluster_that_nobody_looked_at__is_empty_and_says_so() -> None:
    loaded = load_topology(ClusterFactory.create())
    assert (loaded.topology.brokers, loaded.topology.topics, loaded.facts_at) == ({}, {}, None)


def test_ended_reassignments__move_nothing() -> None:
    cluster = watched("prod")
    orders(cluster)
    ReassignmentFactory.create(cluster=cluster, topic="orders", partition=0, outcome="completed", ended_at=NOW)
    assert not ReassignmentSnapshot.objects.filter(outcome="running").exists()
    assert load_topology(cluster).seen.moving == {}


def test_sizes__are_read_again_after_the_next_refresh_only() -> None:
    cluster = watched("prod")
    orders(cluster)
    weigh(cluster, 1, {"orders": {"0": 5}})

    def size() -> int | None:
        return load_topology(cluster, ["orders"]).topology.topics["orders"].partitions[0].size_bytes

    assert size() == 5
    weigh(cluster, 1, {"orders": {"0": 7}})
    assert size() == 5
    CollectorRun.objects.filter(cluster=cluster, kind=Kind.LOG_DIRS).update(seq=8)
    assert size() == 7


def test_fenced_brokers__are_not_asked_so_their_age_says_nothing() -> None:
    cluster = watched("prod")
    orders(cluster)
    BrokerWeights.objects.filter(cluster=cluster, broker_id=2).update(taken_at=NOW - timedelta(days=1))
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(fenced=True)
    assert load_topology(cluster).facts_at == NOW - timedelta(seconds=3)


def test_a_broker_that_does_not_answer__is_given_no_replicas() -> None:
    """The controllers have it alive still."""
    cluster = watched("prod")
    BrokerState.objects.filter(cluster=cluster, broker_id=2).update(silent_since=NOW)
    broker = load_topology(cluster).topology.brokers[2]
    assert (broker.alive, broker.fenced, broker.silent, broker.up, broker.eligible) == (True, False, True, False, False)
