"""Once a second: what is due is handed out once, and what cannot be handed out is not lost.

What is forgotten, and when; everything that grows has its keep.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from unittest import mock

import pytest
from django.contrib.sessions.models import Session
from kombu.exceptions import OperationalError

from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.export.tasks import write_segments
from kafkadash.history.tasks import ingest
from kafkadash.monitoring.models import (
    ON_REQUEST,
    BrokerState,
    BrokerWeights,
    Collection,
    CollectorKind,
    CollectorRun,
    GroupLagPoint,
    GroupState,
    QuorumReplicaState,
    QuorumSnapshot,
    ThrottleState,
)
from kafkadash.monitoring.tasks import collect
from kafkadash.ops import tick as ticking
from kafkadash.ops.retention import prune
from tests.factories import NOW, BrokerFactory, BrokerWeightsFactory, ClusterFactory, QuorumFactory
from tests.groups import group_seen, point

pytestmark = pytest.mark.django_db


class Queue:
    """Stands for the message broker: keeps what was sent, or is away."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.sent: list[int] = []
        self.away = False
        monkeypatch.setattr(collect, "apply_async", self._send)
        for task in (write_segments, ingest):
            monkeypatch.setattr(task, "apply_async", lambda *_, **__: None)

    def _send(self, args: tuple[int], **_: object) -> None:
        if self.away:
            raise OperationalError("connection refused")
        self.sent.append(args[0])


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    return Queue(monkeypatch)


def test_tick__new_cluster__gets_a_collector_of_each_kind_and_one_message_for_each(
    cluster: Cluster, queue: Queue
) -> None:
    ticking.tick()
    runs = CollectorRun.objects.filter(cluster=cluster)
    assert {r.kind for r in runs} == set(CollectorKind) - ON_REQUEST
    assert sorted(queue.sent) == sorted(r.pk for r in runs)


def test_tick__again_while_the_messages_wait__sends_nothing_twice(cluster: Cluster, queue: Queue) -> None:
    ticking.tick()
    once = list(queue.sent)
    ticking.tick()
    assert queue.sent == once


def test_tick__queue_away__tries_again_next_second(cluster: Cluster, queue: Queue) -> None:
    queue.away = True
    ticking.tick()
    assert queue.sent == []
    queue.away = False
    ticking.tick()
    assert len(queue.sent) == len(set(CollectorKind) - ON_REQUEST)


def test_tick__fault_in_routing__keeps_no_refresh_waiting(
    cluster: Cluster, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "route_events", mock.Mock(side_effect=ValueError))
    ticking.tick()
    assert queue.sent


def test_tick__cluster_switched_off__is_left_alone(cluster: Cluster, queue: Queue) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(enabled=False)
    ticking.tick()
    assert queue.sent == []


def test_tick__now_and_then__forgets_what_is_past_its_keep(
    cluster: Cluster, queue: Queue, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ticking, "_last_prune", float("-inf"))
    now = datetime.now(UTC)
    for epoch, age_h in ((1, 25), (2, 23)):
        Collection.objects.create(
            cluster=cluster,
            kind=CollectorKind.QUORUM,
            epoch=epoch,
            seq=1,
            started_at=now - timedelta(hours=age_h),
            duration_ms=1,
            ok=True,
        )
    Session.objects.create(session_key="old", session_data="x", expire_date=now - timedelta(hours=1))
    ticking.tick()
    assert list(Collection.objects.values_list("epoch", flat=True)) == [2]
    assert not Session.objects.exists()


def test_tick__change_whose_time_is_over__expires(cluster: Cluster, queue: Queue) -> None:
    now = datetime.now(UTC)
    over, open_still = (
        ChangeRequest.objects.create(
            cluster=cluster, kind="reassignment", state=RequestState.PROPOSED, author_name="alice", expires_at=expires
        )
        for expires in (now - timedelta(seconds=1), now + timedelta(hours=1))
    )
    ticking.tick()
    for change in (over, open_still):
        change.refresh_from_db()
    assert (over.state, open_still.state) == (RequestState.EXPIRED, RequestState.PROPOSED)


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
