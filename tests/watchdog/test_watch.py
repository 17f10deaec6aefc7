"""The audit of kafkadash's tasks in the database: what it finds, tells and pings, and what pages say without it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.db.models.functions import Now
from django.test import Client

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import coded, message_columns
from kafkadash.findings.kinds import FindingCode, FindingKind
from kafkadash.findings.models import Finding
from kafkadash.monitoring.models import CollectorRun
from kafkadash.notifications import delivery
from kafkadash.notifications.errors import DeliveryErrorCode
from kafkadash.notifications.models import (
    MessageState,
    NotificationEvent,
    NotificationMessage,
    NotificationRoute,
    NotificationTarget,
)
from kafkadash.ops import watch
from kafkadash.ops.tick import tick
from kafkadash.ops.watch import WatchedProcess, audit_tasks, run_round
from kafkadash.watchdog import rounds, tasks
from kafkadash.watchdog.models import ScheduledTask
from kafkadash.watchdog.rules import AUDIT, AUDITED, BEAT, DEAD_MAN, PRUNE, TICK
from tests.conftest import new_user, signed_in
from tests.factories import NOW, judged, watched
from tests.notifications.receivers import Answering, LocalReceiver, local_receiver

pytestmark = pytest.mark.django_db
NOTIFIER = WatchedProcess(notifies=True)


@pytest.fixture
def receiver(settings: Any) -> Iterator[LocalReceiver]:
    settings.NOTIFICATION_NETWORKS = ["127.0.0.1"]
    with local_receiver() as own:
        yield own


@pytest.fixture
def visitor(db: None) -> Client:
    return signed_in(new_user("vera"))


@pytest.fixture
def on_time(db: None) -> None:
    """All tasks ended a moment ago; the audit is due."""
    rounds.expect_rounds()
    ScheduledTask.objects.exclude(name=AUDIT).update(finished_at=Now())


def make_late(*names: str) -> None:
    for name in names:
        at = Now() - timedelta(seconds=AUDITED[name].limit_s + 5)
        ScheduledTask.objects.filter(name=name).update(expected_at=at, finished_at=at)


def audit_again() -> None:
    ScheduledTask.objects.filter(name=AUDIT).update(asked_at=None)
    assert audit_tasks()


def told() -> list[tuple[str, str, bool]]:
    rows = Finding.objects.filter(cluster=None).order_by("pk")
    return [(row.scope, row.message_code, row.closed_at is None) for row in rows]


def test_silent_workers__open_one_finding_and_close_it_when_they_answer(
    on_time: None, visitor: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tasks, "close_old_connections", lambda: None)
    make_late("collect")
    assert audit_tasks()
    assert not audit_tasks(), "another process just did"
    row = Finding.objects.get()
    assert told() == [("collect", FindingCode.QUEUE_SILENT, True)]
    page = visitor.get(f"/findings/{row.public_id}/")
    assert page.context["finding"].code == FindingCode.QUEUE_SILENT
    assert [each.row for each in visitor.get("/").context["board"].product] == [row]
    assert [each.row for each in visitor.get("/wall").context["board"].product] == [row]
    assert rounds.take_news()
    tasks.probe("collect")
    audit_again()
    assert told() == [("collect", FindingCode.QUEUE_SILENT, False)]
    assert visitor.get(f"/findings/{row.public_id}/").status_code == 200
    assert visitor.get("/findings/nothing/").status_code == 404
    steps = NotificationEvent.objects.filter(cluster=None).order_by("pk").values_list("subject_id", "step", "path")
    path = f"/findings/{row.public_id}/"
    assert list(steps) == [(row.public_id, "opened", path), (row.public_id, "closed", path)]


def test_start__after_kafkadash_was_down__finds_nothing(on_time: None) -> None:
    make_late(*[name for name in AUDITED if name != DEAD_MAN])
    assert audit_tasks()
    assert told() == []


def test_pages__while_beat_and_all_workers_are_silent__say_so(on_time: None, visitor: Client) -> None:
    make_late(AUDIT, TICK)
    (shown,) = visitor.get("/").context["board"].product
    assert (shown.code, shown.row) == (FindingCode.AUDIT_SILENT, None)


def test_receiver__that_fails__is_found_with_its_last_answer(on_time: None) -> None:
    target = NotificationTarget.objects.create(
        name="on-call", kind="webhook", address="https://example.com/", failing_since=Now() - timedelta(minutes=11)
    )
    failure = coded(DeliveryErrorCode.SLOW, host="example.com", seconds=10)
    for minutes, message in ((11, coded(DeliveryErrorCode.FAULT)), (1, failure)):
        at, error = Now() - timedelta(minutes=minutes), message_columns(message, "error")
        NotificationMessage.objects.create(
            target=target, public_id=f"n-{minutes}", created_at=at, send_at=at, tried_at=at, **error
        )
    audit_again()
    row = Finding.objects.get(kind=FindingKind.RECEIVER_FAILS)
    assert row.message == coded(FindingCode.RECEIVER_FAILS, receiver="on-call", why=failure)
    NotificationTarget.objects.update(enabled=False)
    audit_again()
    assert told() == [(str(target.pk), FindingCode.RECEIVER_FAILS, False)]


def test_dead_man__is_pinged_while_collection_works_and_not_otherwise(
    on_time: None, cluster: Cluster, receiver: LocalReceiver, settings: Any
) -> None:
    settings.DEAD_MAN_URL = receiver.url
    CollectorRun.objects.create(cluster=cluster, kind="metadata", attempted_at=Now(), next_at=Now())
    run_round(NOTIFIER)
    assert len(receiver.requests) == 1
    run_round(NOTIFIER)
    assert len(receiver.requests) == 1, "once a minute"
    ScheduledTask.objects.filter(name=DEAD_MAN).update(asked_at=None)
    make_late("collect")
    run_round(NOTIFIER)
    ScheduledTask.objects.update(finished_at=Now())
    CollectorRun.objects.update(next_at=Now() - timedelta(minutes=5), attempted_at=Now() - timedelta(minutes=5))
    run_round(NOTIFIER)
    assert len(receiver.requests) == 1
    CollectorRun.objects.update(next_at=Now())
    run_round(NOTIFIER)
    assert len(receiver.requests) == 2
    settings.DEAD_MAN_URL = ""
    run_round(NOTIFIER)
    assert not ScheduledTask.objects.filter(name=DEAD_MAN).exists()


def test_notifications__without_ticks__are_sent_by_their_workers(on_time: None, receiver: LocalReceiver) -> None:
    target = NotificationTarget.objects.create(name="on-call", kind="webhook", address=receiver.url)
    NotificationRoute.objects.create(target=target)
    make_late(BEAT)
    run_round(WatchedProcess(sends=lambda: False))
    assert told() == [(BEAT, FindingCode.BEAT_SILENT, True)]
    assert not receiver.requests
    run_round(NOTIFIER)
    assert NotificationMessage.objects.get().state == MessageState.SENT
    assert len(receiver.requests) == 1
    ScheduledTask.objects.filter(name=AUDIT).update(asked_at=None)
    run_round(WatchedProcess(sends=lambda: True))
    assert told() == [(BEAT, FindingCode.BEAT_SILENT, False)]


def test_receivers_that_hang__without_ticks__share_several_rounds(
    on_time: None, receiver: LocalReceiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        target = NotificationTarget.objects.create(name=f"hook {number}", kind="webhook", address=receiver.url)
        NotificationRoute.objects.create(target=target)
    monkeypatch.setattr(delivery, "SECONDS", 0.1)
    monkeypatch.setattr(delivery, "TURN_S", 0.05)
    receiver.answering = Answering.HANG
    make_late(BEAT)
    audit_tasks()
    tried = []
    for _ in range(3):
        run_round(NOTIFIER)
        tried.append(NotificationTarget.objects.exclude(failing_since=None).count())
    assert tried == [1, 2, 3]


def test_fault__of_a_round__waits_for_the_next(on_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> None:
        raise OSError("no route")

    with monkeypatch.context() as patched:
        patched.setattr(watch, "load_product_facts", fail)
        run_round(WatchedProcess())
    assert ScheduledTask.objects.get(name=AUDIT).finished_at is None
    audit_again()
    assert ScheduledTask.objects.get(name=AUDIT).finished_at is not None


def test_probes__of_queues_without_workers__become_fewer(on_time: None, monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []
    monkeypatch.setattr(tasks.probe, "apply_async", lambda args, **_: sent.append(args[0]))
    tick()
    assert sent == ["collect", "execute", "jobs", "notify"]
    assert ScheduledTask.objects.get(name=PRUNE).finished_at is not None
    tick()
    assert len(sent) == 4
    away, asked = Now() - timedelta(minutes=10), Now() - timedelta(minutes=2)
    ScheduledTask.objects.filter(name="jobs").update(expected_at=away, finished_at=away, asked_at=asked)
    ScheduledTask.objects.filter(name="notify").update(finished_at=away, asked_at=Now() - timedelta(minutes=5))
    assert rounds.claim_probes() == ["notify"]


def test_cluster__read_with_gaps_since_it_was_registered__is_found() -> None:
    demo = watched("demo")
    Cluster.objects.filter(pk=demo.pk).update(created_at=NOW - timedelta(minutes=11))
    judged(demo)
    assert not Finding.objects.filter(kind=FindingKind.NEVER_READ).exists()
    CollectorRun.objects.filter(cluster=demo, kind="groups").update(complete_at=None)
    judged(demo)
    row = Finding.objects.get(kind=FindingKind.NEVER_READ)
    assert row.message == coded(FindingCode.NEVER_COMPLETE, sources=("groups",))
