"""/livez and /readyz: what is bad, what is only degraded, and nothing that a stranger should not know."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from unittest import mock

import pytest
import time_machine
from django.core.management import call_command
from django.db import OperationalError, connection
from django.db.models.functions import Now
from django.test import Client
from django.test.utils import CaptureQueriesContext

import kafkadash.celery  # noqa: F401  whose queue the tick sends to
from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.observe.collection import ensure_runs
from kafkadash.observe.models import CollectorRun
from kafkadash.ops import health
from kafkadash.ops.models import Heartbeat
from kafkadash.ops.tick import tick
from kafkadash.reassign.models import Execution


@pytest.fixture
def beating(db: None) -> None:
    health.beat()


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
    ("jump", "status", "state", "words"),
    [
        (timedelta(seconds=5.9), 200, "degraded", "is 5 s ahead of the database's"),
        (timedelta(seconds=-5.1), 200, "degraded", "is 5 s behind the database's"),
        (timedelta(hours=1, seconds=5), 503, "bad", "is 1 h ahead of the database's"),
        (timedelta(hours=-1, seconds=-5), 503, "bad", "is 1 h behind the database's"),
    ],
)
def test_a_machine_whose_clock_is_wrong_serves_nobody(
    client: Client, beating: None, jump: timedelta, status: int, state: str, words: str
) -> None:
    """It would show ages that are wrong: what is stale could be green."""
    with time_machine.travel(datetime.now(UTC) + jump, tick=True):
        answered, document = answer(client)
    assert (answered, states(document)["clock"]) == (status, state)
    assert words in document["checks"]["clock"]["sentence"]


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
    assert document["checks"]["collection"]["sentence"].startswith("A collector waits for a worker since 2 min")
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
    late(failures=3, last_error="The bootstrap server 127.0.0.1:1 could not be connected.")
    status, document = answer(client)
    assert (status, document["state"]) == (200, "degraded")
    assert (
        document["checks"]["collection"]["sentence"]
        == "1 of 1 cluster does not answer. The status board says which, and why."
    )
    assert "127.0.0.1" not in str(document)
    assert "demo" not in str(document).lower()
    Cluster.objects.update(enabled=False)
    assert answer(client)[1]["state"] == "ready"


def test_the_tick_leaves_its_trace_and_writes_it_seldom(db: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "BEAT_WRITTEN_EVERY_S", 60.0)
    tick()
    first = Heartbeat.objects.get(name="tick").at
    health.beat()
    assert Heartbeat.objects.get(name="tick").at == first, "at most every few seconds"
    Heartbeat.objects.update(at=Now() - timedelta(seconds=100))
    health.beat()
    assert Heartbeat.objects.get(name="tick").at > first


def test_the_command_says_the_same_and_fails_when_one_is_bad(db: None) -> None:
    out = io.StringIO()
    with pytest.raises(SystemExit) as ended:
        call_command("health", stdout=out)
    assert ended.value.code == 1
    assert "beat: bad: The tick has never run" in out.getvalue()
    health.beat()
    call_command("health", "database", "beat", stdout=(out := io.StringIO()))
    assert "beat: ok: The tick runs." in out.getvalue()
    assert "redis" not in out.getvalue()


def test_a_run_that_nobody_takes_makes_it_degraded(client: Client, cluster: Cluster, beating: None) -> None:
    change = ChangeRequest.objects.create(cluster=cluster, kind="reassignment", state="executing", author_name="ann")
    run = Execution.objects.create(
        request=change, cluster=cluster, throttle=1, per_broker=1, per_cluster=1, next_at=Now() - timedelta(seconds=60)
    )
    document = answer(client)[1]
    assert states(document)["runs"] == "degraded"
    assert document["checks"]["runs"]["sentence"] == (
        "A run waits for a worker since 1 min: is one running for the queue execute?"
    )
    Execution.objects.filter(pk=run.pk).update(lease_until=Now() + timedelta(seconds=20))
    assert states(answer(client)[1])["runs"] == "ok", "one that is at work is not late"
    ChangeRequest.objects.update(state="done")
    assert answer(client)[1]["checks"]["runs"]["sentence"] == "No change is running."


def test_readyz__asked_by_anybody_as_often_as_they_like__asks_the_servers_once_a_second(
    client: Client, beating: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[float] = []
    checks = health.checks

    def counted() -> dict[str, health.Check]:
        asked.append(time.monotonic())
        return checks()

    monkeypatch.setattr(health, "checks", counted)
    health.forget_recent_checks()
    for _ in range(5):
        assert client.get("/readyz").status_code == 200
    assert len(asked) == 1
    monkeypatch.setattr(health, "ASKED_AGAIN_S", 0.0)
    client.get("/readyz")
    assert len(asked) == 2
