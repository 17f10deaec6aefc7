"""A worker that is killed between the receiver's answer and its own row: sent once more with the same ID, no more."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from datetime import UTC, datetime
from urllib.parse import quote

import pytest
from django.conf import settings
from django.db import connection, transaction

from kafkadash.notifications.delivery import deliver
from kafkadash.notifications.models import MessageState, NotificationMessage, NotificationTarget
from kafkadash.notifications.routing import route_events
from tests.notifications.conftest import MakeTarget, Tell
from tests.notifications.receivers import Answering, LocalReceiver
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

_WORKER = """
import django, sys
django.setup()
from kafkadash.notifications.tasks import notify
notify(int(sys.argv[1]))
"""


def start_worker(target: NotificationTarget) -> subprocess.Popen[bytes]:
    database = connection.settings_dict
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "kafkadash.settings",
        "DATABASE_URL": f"postgres://{database['USER']}@/{quote(str(database['HOST']))}/{database['NAME']}",
        "NOTIFICATION_NETWORKS": ",".join(settings.NOTIFICATION_NETWORKS),
        "PUBLIC_URL": settings.PUBLIC_URL,
    }
    return subprocess.Popen([sys.executable, "-c", _WORKER, str(target.pk)], cwd=settings.BASE_DIR, env=environment)


def is_waited_for() -> bool:
    """Return whether another connection waits for a lock of this one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        return bool(cursor.fetchone()[0])


def test_worker__killed_between_answer_and_row__sends_the_same_id_once_more(
    make_target: MakeTarget, tell: Tell, receiver: LocalReceiver
) -> None:
    target = make_target(receiver.url)
    tell()
    route_events(datetime.now(UTC))
    receiver.answering = Answering.HOLD
    worker = start_worker(target)
    try:
        wait_until(lambda: receiver.requests, "the message arrives")
        with transaction.atomic():
            # The worker cannot store that it was accepted, whatever its pace.
            message = NotificationMessage.objects.select_for_update().get()
            receiver.released.set()
            wait_until(is_waited_for, "the worker is about to store the answer")
            worker.kill()
            assert worker.wait(30) == -signal.SIGKILL
    finally:
        worker.kill()
        worker.wait(30)
    assert [each.accepted for each in receiver.tries] == [True]
    message.refresh_from_db()
    assert (message.state, message.tries) == (MessageState.WAITING, 0)

    receiver.answering = Answering.ACCEPT
    assert deliver(target.pk) == 0, "its lease holds on"
    NotificationTarget.objects.update(lease_until=None)  # as if the lease of the one that was killed had run out
    assert [deliver(target.pk), deliver(target.pk)] == [1, 0]
    first, again = receiver.requests
    assert first[0]["webhook-id"] == again[0]["webhook-id"] == message.public_id
    assert receiver.bodies[0] == receiver.bodies[1]
    message.refresh_from_db()
    assert (message.state, message.tries) == (MessageState.SENT, 1)
