"""How many queries a page needs: pinned in ``tests/query_counts.json``, and the same with twice the rows."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from unittest import mock

import pytest
import time_machine
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import DjangoDbBlocker

from kafkadash.accounts.models import AuditEvent, User
from kafkadash.accounts.services import record
from kafkadash.changes import kinds
from kafkadash.changes.models import ChangeRequest, Comment, RequestState
from kafkadash.changes.transitions import OBJECT
from kafkadash.clusters.models import Cluster, Role
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.models import Execution, ThrottleEntry
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.maintenance.models import QuietPeriod, QuietPurpose, QuietStage
from kafkadash.monitoring.cluster_events.rules import find_grown_topics
from kafkadash.monitoring.cluster_events.store import store_events
from kafkadash.monitoring.models import MoveOutcome
from kafkadash.notifications.errors import NotificationCode
from kafkadash.notifications.models import (
    EventStep,
    EventSubject,
    NotificationEvent,
    NotificationItem,
    NotificationMessage,
    NotificationRoute,
    NotificationTarget,
    TargetKind,
)
from kafkadash.watchdog.rounds import expect_rounds
from tests.changes.parcels import PARCELS, approved, propose
from tests.conftest import new_user, signed_in
from tests.execution.stored_runs import figures, moves, progressed, requested, row_now, running
from tests.factories import (
    NOW,
    BrokerFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    ended,
    silent,
    watched,
)
from tests.groups import STALLED, group_seen, point
from tests.history_rows import handed_back, rolled_up
from tests.kept_rows import kept
from tests.quorums import answers, status_kept

PINNED: dict[str, int] = json.loads((Path(__file__).parent.parent / "query_counts.json").read_text())
PAGES = {
    "board": "/",
    "wall": "/wall",
    "product_finding": "/findings/f-own/",
    "overview": "/clusters/demo/",
    "reassignments": "/clusters/demo/reassignments/",
    "reassignments_ended": "/clusters/demo/reassignments/?ended=all",
    "reassignment": "/clusters/demo/reassignments/r-demo/",
    "drill": "/clusters/demo/drill/?brokers=1,2",
    "restart": "/clusters/demo/brokers/1/restart/",
    "restart_order": "/clusters/demo/restart/",
    "timeline": "/clusters/demo/timeline/?period=90d",
    "timeline_topic": "/clusters/demo/timeline/?period=90d&topic=payments.ledger",
    "maintenance": "/clusters/demo/maintenance/",
    "closed_findings": "/clusters/demo/timeline/closed/?q=broker",
    "quorum": "/clusters/demo/quorum/",
    "quorum_lag": "/clusters/demo/quorum/lag/?range=24h",
    "trends": "/clusters/demo/trends/",
    "canary": "/clusters/demo/canary/",
    "transactions": "/clusters/demo/transactions/",
    "brokers": "/clusters/demo/brokers/",
    "brokers_filtered": "/clusters/demo/brokers/?q=kafka&state=up&sort=-disk",
    "broker": "/clusters/demo/brokers/1/",
    "drift": "/clusters/demo/drift/",
    "topics": "/clusters/demo/topics/",
    "topics_filtered": "/clusters/demo/topics/?q=ledger&state=offline&sort=-size",
    "topic": "/clusters/demo/topics/payments.ledger/",
    "groups": "/clusters/demo/groups/",
    "cluster_history": "/clusters/demo/history/",
    "group_history": "/clusters/demo/groups/reader/history/",
    "topic_history": "/clusters/demo/topics/payments.ledger/history/",
    "broker_history": "/clusters/demo/brokers/1/history/?range=year",
    "quorum_history": "/clusters/demo/quorum/history/?range=week",
    "groups_filtered": "/clusters/demo/groups/?q=reader&verdict=stop&topic=payments.ledger&sort=-lag",
    "group": "/clusters/demo/groups/reader/",
    "group_day": "/clusters/demo/groups/reader/?range=day&show=all&verdict=stop&sort=-time",
    "decommission": "/clusters/demo/brokers/1/decommission/",
    "racks": "/clusters/demo/racks/",
    "throttles": "/clusters/demo/throttles/",
    "reassignments_filtered": "/clusters/demo/reassignments/?running=all&q=cart&broker=6",
    "switcher": "/clusters/?current=demo",
    "pipeline": "/pipeline/",
    "changes": "/changes/?show=all",
    "changes_waiting": "/changes/",
    "changes_filtered": "/changes/?show=all&q=parcels&cluster=demo&state=proposed&author=olga",
    "review": "/changes/{change}/",
    "run_ledger": "/changes/{run}/run/ledger/",
    "run": "/changes/{run}/run/",
    "run_filtered": "/changes/{run}/run/?s=flight",
    "run_moves": "/changes/{run}/run/moves/?s=waiting",
    "run_cancel": "/changes/{run}/run/cancel/",
    "run_give_up": "/changes/{run}/run/give-up/",
    "run_row": "/changes/{run}/run/row/?topic=events&partition=0",
}
# What an administrator sees.
SETTINGS = {
    "settings": "/settings/",
    "settings_cluster": "/settings/clusters/demo/",
    "settings_roles": "/settings/clusters/demo/roles/",
    "settings_roles_everywhere": "/settings/roles/",
    "settings_notifications": "/settings/notifications/",
    "settings_policy": "/settings/clusters/demo/policy/",
    "settings_topic_rules": "/settings/clusters/demo/topic-rules/",
    "settings_lag": "/settings/clusters/demo/lag/",
}


def add_rows(prefix: str) -> None:
    """Some of everything a page may show, healthy and broken."""
    for n in range(5):
        cluster = watched(f"{prefix}-{n}", offline_partitions=n % 2, under_replicated=1)
        BrokerFactory.create(cluster=cluster, broker_id=8, fenced=True)
        ReassignmentFactory.create(cluster=cluster)
        if n == 4:
            silent(cluster, NOW - timedelta(minutes=12), error="refused")


def _add_receiver(name: str, cluster: Cluster) -> None:
    target = NotificationTarget.objects.create(name=name, kind=TargetKind.EMAIL, address="a@b.test", shown="a@b.test")
    NotificationRoute.objects.create(target=target, cluster=cluster)
    message = NotificationMessage.objects.create(target=target, public_id=name, created_at=NOW, send_at=NOW)
    event = NotificationEvent.objects.create(
        cluster=cluster,
        subject=EventSubject.TEST,
        subject_id="1",
        step=EventStep.TESTED,
        message_code=NotificationCode.TEST,
        message_params={"target": name, "person": "vera"},
        occurred_at=NOW,
        routed=True,
    )
    NotificationItem.objects.create(delivery=message, event=event, target=target)


def add_history(change: ChangeRequest, place: int) -> None:
    """Add what the timeline lists: an event, a step of a change, a closed finding and an ended maintenance window."""
    cluster, at = change.cluster, NOW - timedelta(minutes=2, seconds=place)
    store_events(cluster.pk, list(find_grown_topics([("payments.ledger", 3, 6)])), at, at - timedelta(seconds=5))
    AuditEvent.objects.create(
        at=at,
        actor="system",
        action="change.started",
        object_type=OBJECT,
        object_id=str(change.pk),
        cluster=cluster.slug,
    )
    Finding.objects.create(
        cluster=cluster,
        public_id=f"f-past-{place}",
        kind=FindingKind.BROKER_DOWN,
        scope=str(place),
        state="critical",
        rank=3,
        message_code=FindingCode.DOWN_FENCED,
        message_params={"broker": place, "replicas": 1},
        first_seen_at=at,
        opened_at=at,
        seen_at=at,
        closed_at=at + timedelta(seconds=30),
    )
    QuietPeriod.objects.create(
        cluster=cluster,
        purpose=QuietPurpose.MAINTENANCE,
        begins_at=at,
        ends_at=at + timedelta(seconds=30),
        reason="new disks",
        author_name="olga",
        stage=QuietStage.OVER,
    )


def open_product_finding() -> None:
    Finding.objects.create(
        public_id="f-own",
        kind=FindingKind.RECEIVER_FAILS,
        scope="1",
        state="warning",
        rank=0,
        message_code=FindingCode.RECEIVER_FAILS,
        message_params={"receiver": "on-call", "why": None},
        first_seen_at=NOW,
        opened_at=NOW,
        seen_at=NOW,
    )


@pytest.fixture(scope="module")
def counted(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> dict[str, list[int | Exception]]:
    """The queries of each page with some rows and with twice as many, or why it was not shown; nothing is left."""
    frozen, known = time_machine.travel(NOW, tick=False), mock.patch.dict(kinds._kinds, {PARCELS.name: PARCELS})
    with frozen, known, kept(django_db_blocker, _counted) as counts:
        return counts


def _counted() -> dict[str, list[int | Exception]]:
    viewer, operator = new_user("vera", Role.VIEWER), new_user("olga", Role.OPERATOR)
    approver = new_user("abel", Role.APPROVER)
    demo = watched("demo", under_replicated=1)
    ReassignmentFactory.create(cluster=demo, public_id="r-demo")
    reader = group_seen(demo, "reader", {("payments.ledger", n): STALLED for n in range(30)}, point_at=NOW)
    expect_rounds()
    open_product_finding()
    listed = "follower.replication.throttled.replicas"
    ThrottleFactory.create(cluster=demo, resource="topic", name="cart.events", key=listed, value="*")
    change = propose(demo, operator, approvals_needed=30)
    run = running(requested(demo, operator), {RowState.MOVING: 5, RowState.PENDING: 5, RowState.DONE: 5}, stuck_rows=2)
    viewing, approving = signed_in(viewer), signed_in(approver)
    counts: dict[str, list[int | Exception]] = {name: [] for name in PAGES}
    for round_ in range(2):
        add_rows(f"round{round_}")
        answers(demo, NOW - timedelta(seconds=3), timedelta(minutes=10 * (round_ + 1)))
        for n in range(10):
            point(reader, 10 * round_ + n, 100)
            status_kept(demo, 1000 + 10 * round_ + n, "Gone", NOW - timedelta(hours=1))
            TopicFactory.create(cluster=demo, partitions=[[0, None, 5, [1, 2], [1], [2]]])
            BrokerFactory.create(cluster=demo, broker_id=100 + 10 * round_ + n)
            ReassignmentFactory.create(cluster=demo, partition=100_000 + 10 * round_ + n)
            ThrottleFactory.create(cluster=demo, name=str(100 + 10 * round_ + n))
            ended(demo, MoveOutcome.COMPLETED, NOW - timedelta(minutes=1), partition=200_000 + 10 * round_ + n)
            point(group_seen(demo, f"reader-{round_}-{n}", {("payments.ledger", n): STALLED}), 20 + n, 100)
            propose(demo, operator)
            _add_receiver(f"receiver-{round_}-{n}", demo)
            Comment.objects.create(request=change, user=viewer, user_name="vera", text="?")
            approved(change, new_user(f"ann{round_}-{n}", Role.APPROVER))
            record(operator, "change.edited", change)
            add_history(change, 10 * round_ + n)
            handed_back(demo, 10 * round_ + n, NOW)
            rolled_up(demo, NOW.replace(second=0, microsecond=0), group="reader", topic=f"t{round_}-{n}")
            ThrottleEntry.objects.create(execution=run, resource="broker", name=str(10 * round_ + n), key=listed)
        seen = moves(run, {RowState.MOVING: 10, RowState.PENDING: 10, RowState.DONE: 10})
        progressed(run, figures([row_now(move) for move in seen]))
        for name, address in PAGES.items():
            client = approving if "changes" in address else viewing
            counts[name].append(_queries_of(name, client, address.format(change=change.pk, run=run.request_id), run))
    return counts


def _queries_of(name: str, client: Client, address: str, run: Execution) -> int | Exception:
    """What the page writes is taken back: the next one finds the same rows."""
    try:
        with transaction.atomic():
            if name == "run_give_up":  # a page of what is being cancelled on a cluster that does not answer
                ChangeRequest.objects.filter(pk=run.request_id).update(state=RequestState.CANCELLING)
                Execution.objects.filter(pk=run.pk).update(failures=20, looked_at=NOW - timedelta(minutes=11))
            with CaptureQueriesContext(connection) as queries:
                answer = client.get(address)
            transaction.set_rollback(True)
    except Exception as error:  # noqa: BLE001  (of one page: its own test says it)
        return error
    return len(queries) if answer.status_code == 200 else AssertionError(answer.status_code)


@pytest.mark.django_db
@pytest.mark.parametrize("name", PAGES)
def test_it_is_as_pinned_and_does_not_grow_with_rows(name: str, counted: dict[str, list[int | Exception]]) -> None:
    few, many = counted[name]
    assert isinstance(few, int), few
    assert few == many  # the number of queries grows with the rows
    assert few == PINNED[name], f"tests/query_counts.json says {PINNED[name]} for {name}"


@pytest.mark.parametrize("name", SETTINGS)
def test_settings_are_as_pinned_and_do_not_grow_with_rows(
    name: str, admin: User, make_user: Callable[..., User], client_of: Callable[[User], Client]
) -> None:
    demo = watched("demo")
    client = client_of(admin)
    counts = []
    for round_ in range(2):
        for n in range(5):
            watched(f"round{round_}-{n}")
            make_user(f"user{round_}-{n}", Role.VIEWER)
            make_user(f"other{round_}-{n}", Role.OPERATOR, demo)
            _add_receiver(f"receiver{round_}-{n}", demo)
        with CaptureQueriesContext(connection) as queries:
            assert client.get(SETTINGS[name]).status_code == 200
        counts.append(len(queries))
    assert counts[0] == counts[1]  # the number of queries grows with the rows
    assert counts[0] == PINNED[name], f"tests/query_counts.json says {PINNED[name]} for {name}"


def test_the_board_and_the_review_keep_their_budgets() -> None:
    assert PINNED["board"] <= 10
    assert PINNED["review"] <= 15
