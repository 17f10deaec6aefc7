"""The time of day of a machine may jump: what hands work out goes on at its pace, and nobody drops what was sent."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

import pytest
import time_machine
from celery.beat import ScheduleEntry
from django.db.models.functions import Now

from kafkadash.beat import Steady
from kafkadash.celery import app
from kafkadash.clusters.models import Cluster
from kafkadash.jobs import services as jobs
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.tasks import run_job
from kafkadash.kafka import clock
from kafkadash.observe import lease
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.models import CollectorRun, Kind
from kafkadash.observe.tasks import collect, ingest, write_segments
from kafkadash.ops import tasks
from kafkadash.ops import tick as ticking
from kafkadash.ops.models import Heartbeat
from kafkadash.reassign.tasks import execute
from tests.waiting import wait_until


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1)], ids=["back", "ahead"])
def test_beat_goes_on_at_its_pace(jump: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    beat = Steady(app=app, lazy=True)
    beat.setup_schedule()
    beat.schedule["tick"] = ScheduleEntry("tick", task="tick", schedule=0.05, app=app)
    monkeypatch.setattr(Steady, "apply_entry", lambda *given, **_: sent.append(given[1].task))
    monkeypatch.setattr(Steady, "producer", None)
    assert 0 < beat.tick() <= 0.05
    assert sent == ["tick"]
    with time_machine.travel(datetime.now(UTC) + jump, tick=True):
        wait_until(lambda: beat.tick() is not None and len(sent) == 5, "four more ticks", 10)
    assert beat.tick() <= 0.05


@pytest.mark.django_db
@pytest.mark.usefixtures("right_again")
@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1)], ids=["back", "ahead"])
def test_what_a_worker_reads_has_the_time_of_the_database(jump: timedelta, cluster: Cluster) -> None:
    """Else what was read last stays green for an hour after nobody reads any more, or holds up every run at once."""
    ensure_runs()
    run = CollectorRun.objects.get(cluster=cluster, kind=Kind.QUORUM)
    began = datetime.now(UTC)
    with time_machine.travel(began + jump, tick=True):
        assert abs(clock.now() - began) > timedelta(minutes=50), "it was told nothing yet"
        held = lease.take(run.pk)
        assert held is not None
        assert abs(clock.now() - began) < timedelta(seconds=20)
        held.give_back()
    with time_machine.travel(began - jump, tick=True):
        assert abs(clock.now() - began) < timedelta(seconds=20), "it jumps between two refreshes"
    clock.set_right(began, took_s=60)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=0.5), "a slow answer says nothing against it"


def test_its_schedule_is_the_tick_alone() -> None:
    beat = Steady(app=app, lazy=True)
    beat.setup_schedule()
    assert {name: (entry.task, entry.options) for name, entry in beat.schedule.items()} == {"tick": ("tick", {})}


@pytest.mark.django_db
def test_no_message_expires(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker whose clock is ahead takes it, as it takes any other."""
    options: list[dict[str, object]] = []
    for task in (collect, execute, run_job, write_segments, ingest):
        monkeypatch.setattr(task, "apply_async", lambda *_, **given: options.append(given))
    jobs.enqueue(CONNECTION_TEST, cluster=cluster)
    ticking.tick()
    assert len(options) > 1
    assert all(set(given) == {"retry"} for given in options)


@pytest.mark.django_db
def test_what_nobody_takes_is_sent_more_and_more_seldom(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or messages would pile up for a worker that is away."""
    for task in (collect, write_segments, ingest):
        monkeypatch.setattr(task, "apply_async", lambda *_, **__: None)
    ticking.tick()
    holds = []
    for overdue_s in (0, 30, 3600):
        CollectorRun.objects.update(next_at=datetime.now(UTC) - timedelta(seconds=overdue_s), dispatched_until=None)
        ticking.tick()
        until = CollectorRun.objects.earliest("dispatched_until").dispatched_until
        assert until is not None
        holds.append((until - datetime.now(UTC)).total_seconds())
    assert holds == pytest.approx([10, 15, 60], abs=3)
    assert all(a < b for a, b in itertools.pairwise(holds))


@pytest.mark.django_db
def test_ticks_that_waited_are_spared(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[float] = []
    monkeypatch.setattr(tasks, "_began", float("-inf"))
    monkeypatch.setattr(ticking, "tick", lambda: done.append(1))
    for _ in range(5):
        tasks.tick()
    assert len(done) == 1
    monkeypatch.setattr(tasks, "_began", tasks._began - tasks.SPARE_S)
    tasks.tick()
    assert len(done) == 2


@pytest.mark.django_db
def test_database_clock_set_back__everything_is_due_as_before(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By an hour, seen from what was stored before."""
    for task in (collect, write_segments, ingest):
        monkeypatch.setattr(task, "apply_async", lambda *_, **__: None)
    ticking.tick()
    ahead = Now() + timedelta(hours=1)
    Heartbeat.objects.update(at=ahead)
    runs = CollectorRun.objects.filter(cluster=cluster)
    runs.update(next_at=ahead, lease_until=ahead + timedelta(seconds=30), dispatched_until=ahead)
    runs.filter(kind=Kind.QUORUM).update(lease_until=None, dispatched_until=None)
    sent: list[tuple[int]] = []
    monkeypatch.setattr(collect, "apply_async", lambda given, **_: sent.append(given))

    ticking.tick()
    ticking.tick()

    assert sent == [(runs.get(kind=Kind.QUORUM).pk,)]
    assert not runs.filter(next_at__gt=Now()).exists()
    assert not runs.filter(lease_until__gt=Now() + timedelta(seconds=35)).exists()
    assert Heartbeat.objects.get(name="tick").at <= datetime.now(UTC) + timedelta(seconds=5)
