"""/livez and /readyz: what is bad, what is only degraded, and nothing that a stranger should not know.

The time of day of a machine may jump: what hands work out goes on at its pace, and nobody drops what was sent.
"""

from __future__ import annotations

import io
import itertools
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
import time_machine
from celery.beat import ScheduleEntry
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

import kafkadash.celery  # noqa: F401  whose queue the tick sends to
from kafkadash.beat import MonotonicScheduler
from kafkadash.celery import app
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core import clock
from kafkadash.core.messages import message_text
from kafkadash.execution.models import Execution
from kafkadash.execution.tasks import execute
from kafkadash.export.tasks import write_segments
from kafkadash.history.tasks import ingest
from kafkadash.jobs import runner as jobs
from kafkadash.jobs.connection_test import KIND as CONNECTION_TEST
from kafkadash.jobs.runner import run_job
from kafkadash.monitoring import schedule
from kafkadash.monitoring.collection import ensure_runs
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from kafkadash.monitoring.tasks import collect
from kafkadash.ops import health, tasks
from kafkadash.ops import tick as ticking
from kafkadash.ops.errors import OperationErrorCode
from kafkadash.ops.models import Heartbeat
from kafkadash.ops.tick import tick
from tests.factories import failed_with
from tests.waiting import wait_until


@pytest.fixture
def beating(db: None) -> None:
    health.record_beat()


def answer(client: Client) -> tuple[int, dict[str, Any]]:
    health.forget_recent_checks()
    response = client.get("/readyz")
    assert response["Cache-Control"].startswith("max-age=0")
    document: dict[str, Any] = response.json()
    for check in document["checks"].values():
        assert check["sentence"].endswith((".", "?"))
    return response.status_code, document


def states(document: dict[str, Any]) -> dict[str, str]:
    return {name: check["state"] for name, check in document["checks"].items()}


def late(**fields: Any) -> None:
    CollectorRun.objects.update(**fields)


def test_livez_asks_nobody(client: Client, django_assert_num_queries: Callable[..., Any], db: None) -> None:
    with django_assert_num_queries(0):
        response = client.get("/livez")
    assert (response.status_code, response.content) == (200, b"ok\n")
    assert client.post("/livez").status_code == 405


def test_all_is_well(client: Client, cluster: Cluster, beating: None) -> None:
    ensure_runs()
    status, document = answer(client)
    assert (status, document["state"]) == (200, "ready")
    assert states(document) == dict.fromkeys(("database", "redis", "clock", "beat", "collection", "runs"), "ok")
    assert 0 <= document["checks"]["beat"]["age_s"] < 5


def test_it_costs_few_queries_however_many_clusters_there_are(client: Client, beating: None) -> None:
    for n in range(5):
        Cluster.objects.create(name=f"c{n}", slug=f"c{n}", bootstrap_servers="a:9092")
    ensure_runs()
    health.forget_recent_checks()
    with CaptureQueriesContext(connection) as queries:
        client.get("/readyz")
    assert len(queries) == 5


def test_without_the_database_it_is_not_ready(client: Client, beating: None) -> None:
    with mock.patch.object(connection, "cursor", side_effect=OperationalError("password=hunter2 at 10.0.0.5")):
        status, document = answer(client)
    assert (status, document["state"]) == (503, "not ready")
    unasked = dict.fromkeys(("clock", "beat", "collection", "runs"), "unknown")
    assert states(document) == {"database": "bad", "redis": "ok", **unasked}
    assert "hunter2" not in str(document)
    assert "10.0.0.5" not in str(document)


def test_without_redis_it_is_not_ready(client: Client, beating: None, settings: Any) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    status, document = answer(client)
    assert (status, states(document)["redis"]) == (503, "bad")
    assert "127.0.0.1" not in str(document)


@pytest.mark.usefixtures("right_again")
@pytest.mark.parametrize(
    ("jump", "status", "state", "off"),
    [
        (timedelta(seconds=5.9), 200, "degraded", "5 s"),
        (timedelta(seconds=-5.1), 200, "degraded", "5 s"),
        (timedelta(hours=1, seconds=5), 503, "bad", "1 h"),
        (timedelta(hours=-1, seconds=-5), 503, "bad", "1 h"),
    ],
)
def test_a_machine_whose_clock_is_wrong_serves_nobody(
    client: Client, beating: None, jump: timedelta, status: int, state: str, off: str
) -> None:
    """It would show ages that are wrong: what is stale could be green."""
    with time_machine.travel(datetime.now(UTC) + jump, tick=True):
        answered, document = answer(client)
    assert (answered, states(document)["clock"]) == (status, state)
    way = "ahead of" if jump > timedelta(0) else "behind"
    told = document["checks"]["clock"]
    assert told["code"] == OperationErrorCode.CLOCK_WRONG
    assert told["sentence"] == message_text(OperationErrorCode.CLOCK_WRONG, off=off, way=way)


@pytest.mark.parametrize("age", [None, 31])
def test_without_the_tick_it_is_not_ready(client: Client, db: None, age: int | None) -> None:
    if age is not None:
        Heartbeat.objects.create(name="tick", at=Now() - timedelta(seconds=age))
    status, document = answer(client)
    assert (status, states(document)["beat"]) == (503, "bad")
    assert "beat" in document["checks"]["beat"]["sentence"]


def test_collectors_that_nobody_takes_make_it_degraded(client: Client, cluster: Cluster, beating: None) -> None:
    ensure_runs()
    late(next_at=Now() - timedelta(seconds=120))
    status, document = answer(client)
    assert (status, document["state"]) == (200, "degraded")
    collection = document["checks"]["collection"]
    assert (collection["code"], collection["age_s"] // 60) == (OperationErrorCode.COLLECTION_LATE, 2)
    late(lease_until=Now() + timedelta(seconds=20))
    assert answer(client)[1]["state"] == "ready", "one that is at work is not late"


def test_collectors__none_has_ended_for_a_minute_and_others_wait__make_it_not_ready(
    client: Client, cluster: Cluster, beating: None
) -> None:
    ensure_runs()
    late(next_at=Now() - timedelta(seconds=120), attempted_at=Now() - timedelta(seconds=90))
    status, document = answer(client)
    assert (status, states(document)["collection"]) == (503, "bad")
    late(attempted_at=Now() - timedelta(seconds=5))
    assert answer(client)[0] == 200, "one has ended meanwhile"


def test_a_cluster_that_does_not_answer_makes_it_degraded_and_is_not_named(
    client: Client, cluster: Cluster, beating: None
) -> None:
    ensure_runs()
    late(failures=3, **failed_with("The bootstrap server 127.0.0.1:1 could not be connected."))
    status, document = answer(client)
    assert (status, document["state"]) == (200, "degraded")
    collection = document["checks"]["collection"]
    assert collection["code"] == OperationErrorCode.CLUSTERS_SILENT
    assert "1 of 1 cluster" in collection["sentence"]
    assert "127.0.0.1" not in str(document)
    assert "demo" not in str(document).lower()
    Cluster.objects.update(enabled=False)
    assert answer(client)[1]["state"] == "ready"


def test_the_tick_leaves_its_trace_and_writes_it_seldom(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "BEAT_WRITTEN_EVERY_S", 60.0)
    tick()
    first = Heartbeat.objects.get(name="tick").at
    health.record_beat()
    assert Heartbeat.objects.get(name="tick").at == first, "at most every few seconds"
    Heartbeat.objects.update(at=Now() - timedelta(seconds=100))
    health.record_beat()
    assert Heartbeat.objects.get(name="tick").at > first


def test_the_command_says_the_same_and_fails_when_one_is_bad(db: None) -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("health", stdout=out)
    assert ended.value.code == 1
    assert f"beat: bad: {message_text(OperationErrorCode.NEVER_TICKED)}" in out.getvalue()
    health.record_beat()
    call_command("health", "database", "beat", stdout=(out := io.StringIO()))
    assert "beat: ok: " in out.getvalue()
    assert "redis" not in out.getvalue()


def test_a_run_that_nobody_takes_makes_it_degraded(client: Client, cluster: Cluster, beating: None) -> None:
    change = ChangeRequest.objects.create(cluster=cluster, kind="reassignment", state="executing", author_name="ann")
    run = Execution.objects.create(
        request=change, cluster=cluster, throttle=1, per_broker=1, per_cluster=1, next_at=Now() - timedelta(seconds=60)
    )
    document = answer(client)[1]
    assert states(document)["runs"] == "degraded"
    runs = document["checks"]["runs"]
    assert (runs["code"], runs["age_s"] // 60) == (OperationErrorCode.RUN_LATE, 1)
    Execution.objects.filter(pk=run.pk).update(lease_until=Now() + timedelta(seconds=20))
    assert states(answer(client)[1])["runs"] == "ok", "one that is at work is not late"
    ChangeRequest.objects.update(state="done")
    runs = answer(client)[1]["checks"]["runs"]
    assert (runs["state"], runs["code"], runs["age_s"]) == ("ok", "", None)


def test_readyz__asked_by_anybody_as_often_as_they_like__asks_the_servers_once_a_second(
    client: Client, beating: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    checks = health.run_checks

    def counted() -> dict[str, health.HealthCheck]:
        asked.append(time.monotonic())
        return checks()

    monkeypatch.setattr(health, "run_checks", counted)
    health.forget_recent_checks()
    for _ in range(5):
        assert client.get("/readyz").status_code == 200
    assert len(asked) == 1
    monkeypatch.setattr(health, "ASKED_AGAIN_S", 0.0)
    client.get("/readyz")
    assert len(asked) == 2


@pytest.mark.parametrize("jump", [timedelta(hours=-1), timedelta(hours=1)], ids=["back", "ahead"])
def test_beat_goes_on_at_its_pace(jump: timedelta, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    beat = MonotonicScheduler(app=app, lazy=True)
    beat.setup_schedule()
    beat.schedule["tick"] = ScheduleEntry("tick", task="tick", schedule=0.05, app=app)
    monkeypatch.setattr(MonotonicScheduler, "apply_entry", lambda *given, **_: sent.append(given[1].task))
    monkeypatch.setattr(MonotonicScheduler, "producer", None)
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
    run = CollectorRun.objects.get(cluster=cluster, kind=CollectorKind.QUORUM)
    began = datetime.now(UTC)
    with time_machine.travel(began + jump, tick=True):
        assert abs(clock.now() - began) > timedelta(minutes=50), "it was told nothing yet"
        held = schedule.take_lease(run.pk)
        assert held is not None
        assert abs(clock.now() - began) < timedelta(seconds=20)
        held.give_back()
    with time_machine.travel(began - jump, tick=True):
        assert abs(clock.now() - began) < timedelta(seconds=20), "it jumps between two refreshes"
    clock.set_right(began, took_s=60)
    assert abs(clock.now() - datetime.now(UTC)) < timedelta(seconds=0.5), "a slow answer says nothing against it"


def test_its_schedule_is_the_tick_alone() -> None:
    beat = MonotonicScheduler(app=app, lazy=True)
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
    runs.filter(kind=CollectorKind.QUORUM).update(lease_until=None, dispatched_until=None)
    sent: list[tuple[int]] = []
    monkeypatch.setattr(collect, "apply_async", lambda given, **_: sent.append(given))

    ticking.tick()
    ticking.tick()

    assert sent == [(runs.get(kind=CollectorKind.QUORUM).pk,)]
    assert not runs.filter(next_at__gt=Now()).exists()
    assert not runs.filter(lease_until__gt=Now() + timedelta(seconds=35)).exists()
    assert Heartbeat.objects.get(name="tick").at <= datetime.now(UTC) + timedelta(seconds=5)
