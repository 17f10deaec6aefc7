"""Routes that send no changes, those that wait, or all; rows from before there was a choice."""

from __future__ import annotations

import pytest
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from kafkadash.core.messages import coded
from kafkadash.notifications.errors import NotificationCode
from kafkadash.notifications.models import EventStep, EventSubject, NotificationEvent, NotificationRoute
from kafkadash.notifications.outbox import build_event, record_events
from kafkadash.notifications.routing import route_events
from tests.factories import NOW, watched
from tests.notifications.conftest import MakeTarget

pytestmark = pytest.mark.django_db


def test_approvers__are_sent_only_changes_that_wait(make_target: MakeTarget) -> None:
    approvers = make_target(findings=False, changes="waiting")
    everybody = make_target(findings=False, changes="all")
    make_target()
    cluster, message = watched("demo"), coded(NotificationCode.CHANGE_WAITING, number=1, title="Drain broker 3")
    steps = (EventStep.WAITING, EventStep.APPROVED, EventStep.STARTED)
    record_events(build_event(cluster, EventSubject.CHANGE, "1", step, message, NOW) for step in steps)
    route_events(NOW)
    sent = NotificationEvent.objects.values_list("items__target__name", "step")
    assert set(sent) == {(approvers.name, EventStep.WAITING), *((everybody.name, step) for step in steps)}


def test_routes_of_the_past__keep_their_changes(make_target: MakeTarget) -> None:
    target = make_target(changes="all")
    target.routes.create(changes="none")
    loader = MigrationLoader(connection)
    migration = loader.get_migration("notifications", "0003_route_changes_choice")
    before = loader.project_state(("notifications", "0002_incidents"))
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    with connection.schema_editor() as editor:
        migration.unapply(before.clone(), editor)
    with connection.cursor() as cursor:
        cursor.execute("SELECT changes FROM notifications_notificationroute ORDER BY id")
        assert cursor.fetchall() == [(True,), (False,)]
    with connection.schema_editor() as editor:
        migration.apply(before, editor)
    assert list(NotificationRoute.objects.order_by("pk").values_list("changes", flat=True)) == ["all", "none"]
