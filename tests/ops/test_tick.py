"""Once a second: what is due is handed out once, and what cannot be handed out is not lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.sessions.models import Session
from kombu.exceptions import OperationalError

from kafkadash.changes.models import ChangeRequest, RequestState
from kafkadash.clusters.models import Cluster
from kafkadash.observe.models import Collection, CollectorRun, Kind
from kafkadash.observe.tasks import collect, ingest, write_segments
from kafkadash.ops import tick as ticking

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
    assert {r.kind for r in runs} == set(Kind.values)
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
    assert len(queue.sent) == len(Kind.values)


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
            kind=Kind.QUORUM,
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
