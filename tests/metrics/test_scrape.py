"""Scrapes tell stored rows, and nothing of facts that are unknown or stale."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection
from django.http import HttpRequest
from django.test import Client, RequestFactory
from django.test.utils import CaptureQueriesContext
from prometheus_client.openmetrics import parser as openmetrics
from pytest_django import DjangoDbBlocker

from kafkadash import VERSION
from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster, Role
from kafkadash.core.failures import FailureKind
from kafkadash.execution.engine.reasons import RunReasonCode
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.models import Finding, Judgement
from kafkadash.history.models import DiskForecast
from kafkadash.metrics import collector
from kafkadash.metrics.series import SERIES
from kafkadash.metrics.views import prefers_openmetrics
from kafkadash.monitoring.groups.shares import SharePartition
from kafkadash.monitoring.models import BrokerState, ClusterState, CollectorKind, GroupState, QuorumSnapshot
from kafkadash.ops.health import record_beat
from kafkadash.short_runs.models import ShortRun
from kafkadash.watchdog.rounds import record_round
from kafkadash.watchdog.rules import TICK
from tests.conftest import new_user
from tests.execution.stored_runs import figures, progressed, requested, running
from tests.factories import NOW, ThrottleFactory, judged, node, silent, watched
from tests.groups import STALLED, group_seen, share_seen
from tests.history_rows import beats, looked, taken_in
from tests.kept_rows import kept
from tests.metrics.scraped import Scrape, scrape_page

HOSTILE = 'a"b\\c\nd{x="y"} 1 # EOF\u2028é'
NETWORK = "127.0.0.1"
OPENMETRICS = "application/openmetrics-text;version=1.0.0"


@dataclass(frozen=True)
class ScrapedWorld:
    demo: Cluster
    run: Execution
    short: ShortRun


@pytest.fixture(scope="module")
def made_once(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[ScrapedWorld]:
    with time_machine.travel(NOW, tick=False), kept(django_db_blocker, _world) as made:
        yield made


@pytest.fixture
def world(made_once: ScrapedWorld, db: None, settings: Any) -> Iterator[ScrapedWorld]:
    settings.METRICS_NETWORKS = [NETWORK]
    with time_machine.travel(NOW, tick=False):
        yield made_once


def _world() -> ScrapedWorld:
    """A cluster with everything, one that does not answer, and one that is not collected."""
    olga = new_user("olga", Role.OPERATOR)
    looked(NOW, beats(NOW), segments_waiting=3, results_waiting=1)
    taken_in(NOW)
    record_beat()
    record_round(TICK)
    demo = watched("demo", offline_partitions=2, under_replicated=3, under_min_isr=2, at_min_isr=1, orphan_throttles=1)
    BrokerState.objects.filter(cluster=demo, broker_id=3).update(silent_since=NOW - timedelta(minutes=1))
    judged(demo)
    Finding.objects.filter(cluster=demo, kind=FindingKind.OFFLINE).update(acknowledged_by=olga)
    group_seen(demo, "reader", {("payments.ledger", n): STALLED for n in range(2)}, members={"app": {}})
    group_seen(demo, HOSTILE, state="Invented\n")
    share_seen(demo, "pickers", [SharePartition("orders", 0, 5, 12, 7), SharePartition("orders", 1, 0, None, None)])
    ThrottleFactory.create(cluster=demo, resource="cluster", name="", value="5000000")
    ThrottleFactory.create(cluster=demo, orphan=True)
    ThrottleFactory.create(cluster=demo, name="2", value="x")
    listed = "leader.replication.throttled.replicas"
    ThrottleFactory.create(cluster=demo, resource="topic", name="orders", key=listed, value="*")
    run = running(requested(demo, olga), {RowState.MOVING: 5, RowState.PENDING: 2, RowState.DONE: 3}, stuck_rows=2)
    progressed(run, figures(_rows(run), counts={"moving": 5, "pending": 2, "done": 3}))
    queued = requested(demo, olga, ChangeState.QUEUED)
    short = ShortRun.objects.create(
        request=queued,
        cluster=demo,
        items=4,
        counts={"done": 2, "refused": 1, "pending": 1},
        blocked_code=RunReasonCode.NOT_WATCHED,
        blocked_at=NOW - timedelta(minutes=2),
    )
    silent(watched("away", under_replicated=1), NOW - timedelta(minutes=12), error="refused")
    Cluster.objects.filter(pk=watched("off").pk).update(enabled=False)
    return ScrapedWorld(demo, run, short)


def _rows(run: Execution) -> Any:
    from kafkadash.execution.worker.measure import stored_progress

    stored = stored_progress(run)
    assert stored is not None
    return stored.rows


def test_scrape__of_everything__has_every_series_of_the_catalogue(world: ScrapedWorld) -> None:
    response = Client().get("/metrics")
    assert response["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = Scrape.read(response.content)
    assert found.labels == {series.name: {tuple(sorted(series.labels))} for series in SERIES.values()}
    strict = Client().get("/metrics", headers={"Accept": OPENMETRICS})
    assert strict["Content-Type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    families = list(openmetrics.text_string_to_metric_families(strict.content.decode()))  # type: ignore[no-untyped-call]
    assert Scrape.of(families).samples == found.samples
    assert {family.unit for family in families} == {series.unit for series in SERIES.values()}
    assert {family.documentation for family in families} == {series.help for series in SERIES.values()}


def test_scrape__of_kafkadash__says_version_and_marks(world: ScrapedWorld) -> None:
    found = scrape_page()
    assert [labels["version"] for labels in found.find("build_info")] == [VERSION]
    assert found.get("heartbeat_timestamp_seconds", part="tick") is not None
    assert found.get("collection_attempt_timestamp_seconds") == (NOW - timedelta(seconds=3)).timestamp()
    assert found.get("pipeline_heartbeat_timestamp_seconds") == (NOW - timedelta(seconds=2)).timestamp()
    assert found.get("pipeline_history_timestamp_seconds") == (NOW - timedelta(seconds=12)).timestamp()
    assert (found.get("pipeline_waiting_segments"), found.get("pipeline_waiting_results")) == (3, 1)
    looked(NOW - timedelta(minutes=2), beats(NOW), segments_waiting=3)
    assert scrape_page().get("pipeline_waiting_segments") is None


def test_findings__of_a_cluster__are_counted_as_on_the_board(world: ScrapedWorld) -> None:
    found = scrape_page()
    offline = {"cluster": "demo", "kind": "offline-partitions", "severity": "critical"}
    assert found.get("findings_open", **offline) == 1
    assert found.get("findings_acknowledged", **offline) == 1
    assert found.get("findings_first_seen_timestamp_seconds", **offline) is not None
    assert found.find("cluster_state", cluster="demo") == [{"cluster": "demo", "state": "critical"}]
    assert found.get("findings_open", cluster="demo", kind="quorum-lost", severity="critical") == 0
    # Read from a canary, racks and forecasts, of which nothing is known here.
    assert found.find("findings_open", cluster="demo", kind="canary-fails") == []
    assert found.find("findings_open", cluster="demo", kind="rack-violation") == []
    assert found.find("findings_open", cluster="demo", kind="disk-full-soon") == []
    DiskForecast.objects.create(
        cluster=world.demo,
        broker=1,
        directory="/data",
        observed_at=NOW - timedelta(hours=1),
        version=1,
        used_bytes=10,
        total_bytes=100,
        grows_per_day=1.5,
        samples=40,
        from_at=NOW - timedelta(days=1),
    )
    judged(world.demo)
    assert scrape_page().get("findings_open", cluster="demo", kind="disk-full-soon", severity="warning") == 0
    away = {labels["kind"]: labels["severity"] for labels in found.find("findings_open", cluster="away")}
    assert away["unreachable"] == "unknown"
    assert set(away.values()) == {"unknown"}
    assert found.find("findings_open", cluster="off") == [
        {"cluster": "off", "kind": "collection-off", "severity": "maintenance"}
    ]


@pytest.mark.parametrize(
    ("stale", "kinds"),
    [
        (CollectorKind.ANSWERS, {FindingKind.BROKER_DOWN, FindingKind.BROKER_AWAY}),
        (CollectorKind.REASSIGNMENTS, {FindingKind.UNDER_REPLICATED, FindingKind.ZOMBIE_REASSIGNMENT}),
        (CollectorKind.CONFIGS, {FindingKind.CONFIG_DRIFT, FindingKind.UNDER_MIN_ISR, FindingKind.AT_MIN_ISR}),
    ],
)
def test_findings__judged_by_facts_that_turn_stale__are_not_zero(
    world: ScrapedWorld, stale: CollectorKind, kinds: set[FindingKind]
) -> None:
    other = watched("other", under_min_isr=0, at_min_isr=0)
    judged(other)
    assert _list_zeros(other) >= kinds
    ClusterState.objects.filter(cluster=other).update(under_replicated=2)
    other.collector_runs.filter(kind=stale).update(succeeded_at=NOW - timedelta(hours=3))
    assert not _list_zeros(other) & kinds, "at once, before the next judgement"


def test_findings__of_kinds_that_the_judgement_could_not_tell__are_not_zero(world: ScrapedWorld) -> None:
    judged(other := watched("other"))
    stored = Judgement.objects.filter(cluster=other)
    assert {FindingKind.FAILED_DIRECTORY, FindingKind.OFFLINE} <= _list_zeros(other)
    stored.update(unknown_kinds=[FindingKind.FAILED_DIRECTORY])
    assert {FindingKind.FAILED_DIRECTORY, FindingKind.OFFLINE} & _list_zeros(other) == {FindingKind.OFFLINE}
    stored.update(unknown_kinds=None)
    assert FindingKind.OFFLINE not in _list_zeros(other), "a version judged that did not store them"


def _list_zeros(cluster: Cluster) -> set[str]:
    found = scrape_page()
    labels = found.find("findings_open", cluster=cluster.slug)
    return {each["kind"] for each in labels if found.get("findings_open", **each) == 0}


def test_figures__of_a_fresh_cluster__are_those_of_its_rows(world: ScrapedWorld) -> None:
    found = scrape_page()
    figures = {
        "brokers_registered": 3,
        "brokers_fenced": 0,
        "brokers_unregistered": 0,
        "brokers_unresponsive": 1,
        "topics": 12,
        "partitions": 1120,
        "partitions_offline": 2,
        "partitions_under_replicated": 3,
        "partitions_under_min_isr": 2,
        "partitions_at_min_isr": 1,
        "partitions_reassigning": 0,
        "quorum_leader_id": 102,
        "quorum_leader_epoch": 47,
        "quorum_voters": 3,
        "quorum_voters_in_sync": 3,
        "quorum_margin": 1,
        "cluster_collection_enabled": 1,
    }
    assert {name: found.get(name, cluster="demo") for name in figures} == figures
    of_metadata = {"cluster": "demo", "collector": "metadata"}
    assert found.get("collector_failures", **of_metadata) == 0
    assert found.get("collector_interval_seconds", **of_metadata) == 30
    at = found.get("collector_success_timestamp_seconds", **of_metadata)
    assert at == pytest.approx((NOW - timedelta(seconds=3)).timestamp(), abs=0.01)


def test_figures__that_are_stale_or_unknown__are_absent(world: ScrapedWorld) -> None:
    found = scrape_page()
    gated = ("brokers_", "partitions", "topics", "quorum_", "group", "throttle")
    there = {name for name, labels in found.samples if dict(labels).get("cluster") in ("away", "off")}
    assert not [name for name in there if name.removeprefix("kafkadash_").startswith(gated)]
    assert found.get("collector_failures", cluster="away", collector="metadata") == 9
    assert found.find("collector_failures", cluster="off") == []
    assert found.get("cluster_collection_enabled", cluster="off") == 0

    world.demo.collector_runs.filter(kind=CollectorKind.QUORUM).update(
        failures=5, last_failure=FailureKind.DEADLINE_EXCEEDED, succeeded_at=NOW - timedelta(minutes=1)
    )
    assert scrape_page().find("partitions_offline", cluster="demo") == []  # as the controllers said it a minute ago


def test_quorum__with_a_voter_of_unknown_state__has_no_margin(world: ScrapedWorld) -> None:
    replicas = [node(101, caught_up_ago=None), node(102, caught_up_ago=0), node(103, caught_up_ago=10)]
    QuorumSnapshot.objects.filter(cluster=world.demo).update(replicas=replicas)
    found = scrape_page()
    assert found.get("quorum_voters_in_sync", cluster="demo") == 2
    assert found.get("quorum_margin", cluster="demo") is None


def test_groups__of_any_name__have_one_set_of_series_each(world: ScrapedWorld) -> None:
    reader = {"cluster": "demo", "group": "reader"}
    stored = GroupState.objects.get(cluster=world.demo, name="reader")
    found = scrape_page()
    assert found.get("group_lag_records", **reader) == stored.lag
    assert found.get("group_lag_seconds", **reader) == stored.time_lag_s
    assert found.get("group_unknown_lag_partitions", **reader) == 0
    assert found.get("group_members", **reader) == 1
    assert found.find("group_state", **reader) == [{**reader, "type": "classic", "state": "Stable", "verdict": "stall"}]
    assert [labels["state"] for labels in found.find("group_state", group=HOSTILE)] == ["other"]
    pickers = {"cluster": "demo", "group": "pickers"}
    assert found.get("group_lag_records", **pickers) == 7
    assert found.get("group_unknown_lag_partitions", **pickers) == 1
    assert found.find("group_state", **pickers) == [{**pickers, "type": "share", "state": "Stable", "verdict": "none"}]
    assert (found.get("groups", cluster="demo"), found.get("groups_left_out", cluster="demo")) == (3, 0)


def test_groups__with_one_label_or_too_many__do_not_break_the_scrape(
    world: ScrapedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    long = group_seen(world.demo, "g" * 300)
    group_seen(world.demo, f"~{long.key}")  # the label of the long one
    group_seen(world.demo, "")
    GroupState.objects.filter(name="reader").update(taken_at=NOW - timedelta(minutes=5))
    found = scrape_page()
    labels = {own["group"] for own in found.find("group_state", cluster="demo")}
    assert "reader" not in labels  # its coordinator does not answer
    assert len(labels) == 5
    assert (found.get("groups", cluster="demo"), found.get("groups_left_out", cluster="demo")) == (6, 1)
    monkeypatch.setattr(collector, "MOST_GROUPS", 2)
    assert len(scrape_page().find("group_state", cluster="demo")) <= 2


def test_throttles__that_are_set__are_counted_with_their_rates(world: ScrapedWorld) -> None:
    found = scrape_page()
    numbers = {labels["resource"]: found.get("throttles", **labels) for labels in found.find("throttles")}
    assert numbers == {"cluster": 1, "broker": 2, "topic": 1}
    assert found.get("throttles_orphan", cluster="demo") == 1
    set_rates = found.find("throttle_rate_bytes_per_second")
    rates = {own["broker"]: found.get("throttle_rate_bytes_per_second", **own) for own in set_rates}
    assert rates == {"default": 5_000_000, "1": 10_000_000}  # the rate of broker 2 is not a number


def test_runs__queued_or_under_way__tell_their_progress(world: ScrapedWorld) -> None:
    found = scrape_page()
    run = {"cluster": "demo", "change": str(world.run.request_id)}
    shown = {
        "run_items": 10,
        "run_items_ended": 3,
        "run_size_bytes": 665_500_000_000,
        "run_copied_bytes": 338_900_000_000,
        "run_progress_ratio": 0.5092,
        "run_rate_bytes_per_second": 58_600_000,
        "run_throttle_bytes_per_second": 60_000_000,
        "run_remaining_seconds": 5573,
        "run_stuck_moves": 2,
        "run_read_timestamp_seconds": (NOW - timedelta(seconds=3)).timestamp(),
    }
    assert {name: found.get(name, **run) for name in shown} == pytest.approx(shown)
    assert [own["state"] for own in found.find("run_state", **run)] == ["executing"]
    short = {"cluster": "demo", "change": str(world.short.request_id)}
    assert [own["state"] for own in found.find("run_state", **short)] == ["queued"]
    assert (found.get("run_items", **short), found.get("run_items_ended", **short)) == (4, 3)
    assert found.get("run_blocked_timestamp_seconds", **short) == (NOW - timedelta(minutes=2)).timestamp()
    assert found.get("change_requests", cluster="demo", state="executing") == 1
    assert found.get("change_requests", cluster="demo", state="failed") == 0

    progressed(world.run, figures(total_bytes=None, percent=None, eta_s=float("inf"), unsized=1))
    found = scrape_page()
    unknown = ("run_size_bytes", "run_copied_bytes", "run_progress_ratio", "run_remaining_seconds")
    assert [found.get(name, **run) for name in unknown] == [None] * 4
    Execution.objects.filter(pk=world.run.pk).update(progress_at=NOW - timedelta(minutes=1))
    assert scrape_page().get("run_rate_bytes_per_second", **run) is None
    ChangeRequest.objects.filter(pk=world.run.request_id).update(state=ChangeState.DONE)
    assert scrape_page().find("run_state", **run) == []


def test_scrape__with_twice_the_rows__has_the_same_queries(world: ScrapedWorld) -> None:
    counts = []
    for round_ in range(2):
        with CaptureQueriesContext(connection) as queries:
            scrape_page()
        counts.append(len(queries))
        other = watched(f"other-{round_}", offline_partitions=1)
        Cluster.objects.filter(pk=other.pk).update(mode="zookeeper", zookeeper="zk:2181")
        running(requested(other, User.objects.get(username="olga")), {RowState.MOVING: 1})
        ThrottleFactory.create(cluster=other)
        group_seen(other, "more")
    assert counts[0] == counts[1]


PROMETHEUS_2 = (
    "application/openmetrics-text;version=1.0.0,application/openmetrics-text;version=0.0.1;q=0.75,"
    "text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
)
PROMETHEUS_3 = (
    "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,text/plain;version=0.0.4;q=0.2,*/*;q=0.1"
)


@pytest.mark.parametrize(
    ("accept", "openmetrics_asked"),
    [
        (PROMETHEUS_2, True),
        (PROMETHEUS_3, True),
        ("text/plain;version=0.0.4;q=0.9,application/openmetrics-text;q=0.5", False),
        ("application/openmetrics-text;version=99", False),
        ("application/openmetrics-text;version=\xe9;q=x", False),
        ("text/html,*/*;q=0.8", False),
        ("", False),
    ],
)
@pytest.mark.domain
def test_format__of_an_accept_header__is_negotiated(accept: str, openmetrics_asked: bool) -> None:
    request: HttpRequest = RequestFactory().get("/metrics", headers={"Accept": accept})
    assert prefers_openmetrics(request) is openmetrics_asked
