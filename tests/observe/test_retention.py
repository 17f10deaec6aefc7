"""What is forgotten, and when; everything that grows has its keep."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafkadash.observe.models import (
    BrokerState,
    BrokerWeights,
    GroupLagPoint,
    GroupState,
    QuorumReplicaState,
    QuorumSnapshot,
    ThrottleState,
)
from kafkadash.observe.retention import prune
from tests.factories import NOW, BrokerFactory, BrokerWeightsFactory, ClusterFactory, QuorumFactory
from tests.groups import group_seen, point

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


def test_lag_of_groups__after_an_hour__is_the_worst_of_each_five_minutes_and_after_a_day_goes() -> None:
    row = group_seen(ClusterFactory.create(), "g")
    for minutes, lag in [(30, 1), (29, 2), (121, 5), (120, 9), (119.5, 7), (117, 3), (25 * 60, 4)]:
        point(row, minutes, lag)
    point(row, 300, 6, until=118.5)  # it held for long: not one of many
    forgotten = prune(NOW)
    kept = [(NOW - p.at).total_seconds() / 60 for p in GroupLagPoint.objects.order_by("-at")]
    assert kept == [29, 30, 117, 118.5, 120]
    assert (forgotten["group_points"], forgotten["group_points_thinned"]) == (1, 2)
    assert prune(NOW)["group_points_thinned"] == 0


def test_the_newest_lag_of_a_group__stays_as_long_as_it_holds() -> None:
    row = group_seen(ClusterFactory.create(), "g", point_at=NOW - 2 * DAY)
    point(row, 2 * 24 * 60, 0)
    prune(NOW)
    assert GroupLagPoint.objects.count() == 1


def test_groups_that_are_gone__after_a_month__go_with_all_of_theirs() -> None:
    cluster = ClusterFactory.create()
    for days in (31, 29):
        point(group_seen(cluster, f"{days}", gone_at=NOW - days * DAY), 5, 1)
    prune(NOW)
    assert [row.name for row in GroupState.objects.all()] == ["29"]
