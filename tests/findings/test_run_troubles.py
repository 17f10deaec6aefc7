"""Runs of changes that need a person are findings of their cluster."""

from __future__ import annotations

from datetime import timedelta

import pytest

from kafkadash.accounts.models import User
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster, Role
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, ThrottleEntry, ThrottleEntryState
from kafkadash.findings.board import next_step
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent, NotificationTarget, TargetKind
from kafkadash.notifications.routing import route_events
from tests.conftest import new_user
from tests.execution.stored_runs import requested, running
from tests.factories import NOW, judged, watched

pytestmark = pytest.mark.django_db
LONG_AGO = NOW - timedelta(minutes=11)


@pytest.fixture
def demo(db: None) -> Cluster:
    return watched("demo")


@pytest.fixture
def operator(db: None) -> User:
    return new_user("olga", Role.OPERATOR)


def told(cluster: Cluster) -> list[tuple[str, str]]:
    judged(cluster)
    rows = Finding.objects.filter(cluster=cluster, kind=FindingKind.RUN_TROUBLE, closed_at=None).order_by("scope")
    return [(row.scope, row.message_code) for row in rows]


def test_a_run_that_gets_on_is_none(demo: Cluster, operator: User) -> None:
    running(requested(demo, operator), {RowState.MOVING: 2})
    assert told(demo) == []


def test_stuck_moves_and_moves_that_need_a_decision(demo: Cluster, operator: User) -> None:
    change = requested(demo, operator)
    run = running(change, {RowState.MOVING: 3}, stuck_rows=2)
    move = Move.objects.filter(execution=run).last()
    assert move is not None
    Move.objects.filter(pk=move.pk).update(asks=True)
    asks, stuck = (f"{change.pk}:asks", FindingCode.RUN_ASKS), (f"{change.pk}:stuck", FindingCode.RUN_STUCK)
    assert told(demo) == [asks, stuck]
    row = Finding.objects.get(scope=stuck[0])
    assert (row.message_params["count"], row.since) == (2, NOW - timedelta(minutes=25))
    step = next_step(demo, FindingKind.RUN_TROUBLE, stuck[0])
    assert step is not None
    assert step.url == f"/changes/{change.pk}/"
    Execution.objects.filter(pk=run.pk).update(active=False, ended_at=NOW)
    assert told(demo) == []


def test_stuck_run__is_told_once_to_receivers_of_findings_and_to_those_of_changes(
    demo: Cluster, operator: User
) -> None:
    both, changes = (
        NotificationTarget.objects.create(name=name, kind=TargetKind.WEBHOOK, address="http://127.0.0.1:9/")
        for name in ("both", "changes")
    )
    both.routes.create(findings=True, changes="all")
    changes.routes.create(findings=False, changes="all")
    running(requested(demo, operator), {RowState.MOVING: 3}, stuck_rows=2)
    judged(demo)
    route_events(NOW)
    sent = NotificationEvent.objects.values_list("items__target__name", "subject", "step")
    assert set(sent.filter(items__isnull=False)) == {
        ("both", EventSubject.FINDING, EventStep.OPENED),
        ("changes", EventSubject.CHANGE, EventStep.STUCK),
    }


def test_a_blocked_run_is_one_after_ten_minutes(demo: Cluster, operator: User) -> None:
    change = requested(demo, operator, ChangeState.QUEUED)
    run = running(change, {}, blocked_at=NOW - timedelta(minutes=9))
    assert told(demo) == []
    Execution.objects.filter(pk=run.pk).update(blocked_at=LONG_AGO)
    assert told(demo) == [(f"{change.pk}:blocked", FindingCode.RUN_BLOCKED)]


def test_a_run_that_cannot_read_the_cluster(demo: Cluster, operator: User) -> None:
    change = requested(demo, operator)
    running(change, {RowState.MOVING: 1}, failures=30, looked_at=LONG_AGO)
    assert told(demo) == [(f"{change.pk}:unread", FindingCode.RUN_UNREAD)]


def test_throttles_that_an_ended_run_owes(demo: Cluster, operator: User) -> None:
    change = requested(demo, operator, ChangeState.DONE)
    run = running(change, {}, ended_at=LONG_AGO)
    key = "leader.replication.throttled.rate"
    for name, at in (("1", LONG_AGO), ("2", LONG_AGO), ("3", NOW)):
        ThrottleEntry.objects.create(
            execution=run, resource="broker", name=name, key=key, state=ThrottleEntryState.OBLIGED, changed_at=at
        )
    assert told(demo) == [(f"{change.pk}:owes", FindingCode.RUN_OWES)]
    assert Finding.objects.get(kind=FindingKind.RUN_TROUBLE).message_params["count"] == 2
