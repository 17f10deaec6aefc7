"""Runs of changes that need a person are findings of their cluster."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kafkadash.accounts.models import User
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState, ChangeTrigger
from kafkadash.changes.steps import join_steps
from kafkadash.changes.worker_transitions import move_itself
from kafkadash.clusters.models import Cluster, Role
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, Move, ThrottleEntry, ThrottleEntryState
from kafkadash.findings.board import next_step
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.findings.stored_facts import facts_of
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent, NotificationTarget, TargetKind
from kafkadash.notifications.routing import route_events
from kafkadash.short_runs.models import ShortItem, ShortRun
from kafkadash.short_runs.reasons import ShortRunReasonCode
from kafkadash.short_runs.state import ItemState
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


def test_failed_run__is_over_after_a_day_or_when_it_was_repeated(demo: Cluster, operator: User) -> None:
    change = requested(demo, operator, ChangeState.FAILED)
    assert told(demo) == [(f"{change.pk}:failed", FindingCode.RUN_FAILED)]
    copy = requested(demo, operator, ChangeState.EXECUTING, origin=change, origin_word="copy")
    requested(demo, operator, ChangeState.DONE, origin=change, origin_word="re-plan")
    assert told(demo) == [(f"{change.pk}:failed", FindingCode.RUN_FAILED)]
    ChangeRequest.objects.filter(pk=copy.pk).update(state=ChangeState.FAILED)
    assert told(demo) == [(f"{copy.pk}:failed", FindingCode.RUN_FAILED)]
    back = requested(demo, operator, ChangeState.DONE, origin=copy, origin_word="rollback")
    assert told(demo) == []
    ChangeRequest.objects.filter(pk=back.pk).update(state=ChangeState.CANCELLED)
    assert told(demo) == [(f"{copy.pk}:failed", FindingCode.RUN_FAILED)]
    ChangeRequest.objects.filter(pk=copy.pk).update(state_since=NOW - timedelta(hours=24))
    assert told(demo) == []


@pytest.mark.parametrize("at_once", [True, False])
def test_failed_run__is_told_once_to_each_receiver(demo: Cluster, operator: User, at_once: bool) -> None:
    for name in ("both", "changes", "findings"):
        target = NotificationTarget.objects.create(name=name, kind=TargetKind.WEBHOOK, address="http://127.0.0.1:9/")
        target.routes.create(findings=name != "changes", changes="none" if name == "findings" else "all")
    change = requested(demo, operator)
    move_itself(change, ChangeTrigger.GIVE_UP, NOW)
    if not at_once:
        route_events(NOW)
    judged(demo)
    route_events(NOW)
    requested(demo, operator, ChangeState.DONE, origin=change, origin_word="copy")
    judged(demo)
    route_events(NOW)
    sent = NotificationEvent.objects.filter(items__isnull=False)
    assert sorted(sent.values_list("items__target__name", "subject", "step")) == [
        ("both", EventSubject.CHANGE, EventStep.ENDED),
        ("changes", EventSubject.CHANGE, EventStep.ENDED),
        ("findings", EventSubject.FINDING, EventStep.CLOSED),
        ("findings", EventSubject.FINDING, EventStep.OPENED),
    ]


def short_run(cluster: Cluster, operator: User, state: ChangeState, **fields: Any) -> ShortRun:
    """A run of two items that was queued an hour ago, and whose state is as old."""
    hour_ago = NOW - timedelta(hours=1)
    change = requested(cluster, operator, state, state_since=hour_ago)
    started_at = None if state is ChangeState.QUEUED else hour_ago
    run = ShortRun.objects.create(
        **{"request": change, "cluster": cluster, "queued_at": hour_ago, "started_at": started_at, "items": 2, **fields}
    )
    items = [ShortItem(run=run, place=place, subject=f"orders-{place}", content={}) for place in range(run.items)]
    ShortItem.objects.bulk_create(items)
    return run


def test_troubles_of_many_runs__take_no_more_queries(demo: Cluster, operator: User) -> None:
    counts = []
    for many in (1, 4):
        for _ in range(many):
            requested(demo, operator, ChangeState.FAILED)
            short_run(demo, operator, ChangeState.EXECUTING)
        with CaptureQueriesContext(connection) as queries:
            troubles = facts_of(demo, NOW).run_troubles
        counts.append((len(troubles), len(queries)))
    (few, queries_of_few), (more, queries_of_more) = counts
    assert (few, more) == (2, 10)
    assert queries_of_few == queries_of_more


def test_blocked_short_run__is_one_after_ten_minutes(demo: Cluster, operator: User) -> None:
    blocked = {"blocked_code": ShortRunReasonCode.READ_ONLY, "blocked_at": NOW - timedelta(minutes=9)}
    run = short_run(demo, operator, ChangeState.QUEUED, looked_at=NOW, **blocked)
    assert told(demo) == []
    ShortRun.objects.filter(pk=run.pk).update(blocked_at=LONG_AGO)
    assert told(demo) == [(f"{run.request_id}:blocked", FindingCode.RUN_BLOCKED)]
    ShortRun.objects.filter(pk=run.pk).update(blocked_code="", blocked_at=None)
    assert told(demo) == []


def test_short_run_that_cannot_read_the_cluster__explains_that_it_stands_still(demo: Cluster, operator: User) -> None:
    error = {"error_code": ShortRunReasonCode.CLUSTER_UNREAD, "error_params": {"why": "no broker"}}
    run = short_run(demo, operator, ChangeState.EXECUTING, failures=99, looked_at=LONG_AGO, **error)
    stalled, unread = f"{run.request_id}:stalled", f"{run.request_id}:unread"
    assert told(demo) == [(stalled, FindingCode.RUN_STALLED), (unread, FindingCode.RUN_UNREAD)]
    row = Finding.objects.select_related("cause").get(scope=stalled)
    assert row.cause is not None
    assert row.cause.scope == unread
    assert row.message_params["why"]["code"] == ShortRunReasonCode.CLUSTER_UNREAD
    ShortRun.objects.filter(pk=run.pk).update(failures=0, error_code="", looked_at=NOW)
    assert told(demo) == [(stalled, FindingCode.RUN_STALLED)]
    ShortItem.objects.filter(run=run, place=0).update(state=ItemState.DONE.value, changed_at=NOW)
    assert told(demo) == []


def test_short_run__after_a_long_step__is_none_at_its_first_fault(demo: Cluster, operator: User) -> None:
    first = requested(demo, operator, ChangeState.DONE, state_since=NOW)
    run = short_run(demo, operator, ChangeState.QUEUED, error_code=ShortRunReasonCode.STEP_FAILED, failures=1)
    join_steps([first, run.request])
    assert told(demo) == []
    ChangeRequest.objects.filter(pk=first.pk).update(state_since=LONG_AGO)
    assert told(demo) == [(f"{run.request_id}:stalled", FindingCode.RUN_STALLED)]


def test_a_blocked_run_is_one_after_ten_minutes(demo: Cluster, operator: User) -> None:
    change = requested(demo, operator, ChangeState.QUEUED)
    run = running(change, {}, blocked_at=NOW - timedelta(minutes=9))
    assert told(demo) == []
    Execution.objects.filter(pk=run.pk).update(blocked_at=LONG_AGO)
    assert told(demo) == [(f"{change.pk}:blocked", FindingCode.RUN_BLOCKED)]
    ChangeRequest.objects.filter(pk=change.pk).update(not_before=NOW - timedelta(minutes=9))
    assert told(demo) == [], "it waited for its window"


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
