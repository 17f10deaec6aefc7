"""What is forgotten, and when; everything that grows has its keep."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafkadash.observe.models import BrokerState, BrokerWeights, QuorumReplicaState, QuorumSnapshot, ThrottleState
from kafkadash.observe.retention import prune
from tests.factories import NOW, BrokerFactory, BrokerWeightsFactory, ClusterFactory, QuorumFactory

pytestmark = pytest.mark.django_db

DAY = timedelta(days=1)


def test_quorum_answers__after_a_day__the_first_of_each_leader_stays() -> None:
    cluster = ClusterFactory.create()
    for epoch, ago in [(1, 5.0), (1, 4.5), (2, 4.0), (2, 3.0), (3, 2.0), (3, 1.5), (3, 0.5), (3, 0.1)]:
        QuorumFactory.create(cluster=cluster, leader_epoch=epoch, taken_at=NOW - ago * DAY)
    prune(NOW)
    left = [(s.leader_epoch, (NOW - s.taken_at) / DAY) for s in QuorumSnapshot.objects.order_by("taken_at")]
    assert left == [(1, 5.0), (2, 4.0), (3, 2.0), (3, 0.5), (3, 0.1)]


def test_quorum_answers__after_a_month__leaders_that_are_over_go() -> None:
    cluster = ClusterFactory.create()
    for epoch, ago in [(1, 50), (2, 40)]:
        QuorumFactory.create(cluster=cluster, leader_epoch=epoch, taken_at=NOW - ago * DAY)
    prune(NOW)
    assert [s.leader_epoch for s in QuorumSnapshot.objects.all()] == [2]


def test_what_left_the_cluster__after_a_month__goes() -> None:
    cluster = ClusterFactory.create()
    for number, ago in ((1, 31), (2, 29)):
        then = NOW - ago * DAY
        BrokerFactory.create(cluster=cluster, broker_id=number, replicas=0, gone_at=then)
        BrokerFactory.create(cluster=cluster, broker_id=10 + number, replicas=3, gone_at=then)
        BrokerWeightsFactory.create(cluster=cluster, broker_id=number, taken_at=then)
        QuorumReplicaState.objects.create(
            cluster=cluster, node_id=number, voter=False, status="Gone", first_seen_at=then, changed_at=then
        )
        QuorumReplicaState.objects.create(
            cluster=cluster, node_id=10 + number, voter=True, status="In sync", first_seen_at=then, changed_at=then
        )
        ThrottleState.objects.create(
            cluster=cluster,
            resource="broker",
            name=str(number),
            key="leader.replication.throttled.rate",
            first_seen_at=then,
            changed_at=then,
            read_at=then,
        )
    prune(NOW)
    assert set(BrokerState.objects.values_list("broker_id", flat=True)) == {2, 11, 12}
    assert set(BrokerWeights.objects.values_list("broker_id", flat=True)) == {2}
    assert set(QuorumReplicaState.objects.values_list("node_id", flat=True)) == {2, 11, 12}
    assert list(ThrottleState.objects.values_list("name", flat=True)) == ["2"]
