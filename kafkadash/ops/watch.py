"""Watch over kafkadash: a thread in beat and in each worker audits the scheduled tasks every ten seconds.

The thread needs the database alone, so that it goes on when Redis, beat or workers are silent. One process does each
audit. Workers of the queue notify have the secrets of receivers: they ping the dead-man URL, and while the tick is
silent they route and send notifications by themselves.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import structlog
from celery.signals import beat_init, worker_ready
from django.conf import settings
from django.db import close_old_connections

from kafkadash.celery import app
from kafkadash.findings.product import load_product_facts
from kafkadash.findings.services import judge_product
from kafkadash.notifications import delivery
from kafkadash.notifications.routing import route_events
from kafkadash.ops.health import is_collection_on_time, read_clock
from kafkadash.watchdog.dead_man import ping_dead_man
from kafkadash.watchdog.rounds import (
    expect_pings,
    expect_rounds,
    load_rounds,
    note_news,
    record_round,
    take_turn,
)
from kafkadash.watchdog.rules import AUDIT, AUDITED, BEAT, TICK

log = structlog.get_logger(__name__)

NOTIFY = "notify"
_NEEDED = frozenset({AUDIT, BEAT, TICK, "collect", NOTIFY})
"""Tasks without which findings are not seen or not told: no ping is sent while one of them is overdue."""


@dataclass(frozen=True, slots=True)
class WatchedProcess:
    """Process that audits. ``sends``: of beat, whether Redis accepts its ticks; ``notifies``: a worker of notify."""

    sends: Callable[[], bool] | None = None
    notifies: bool = False


def audit_tasks() -> bool:
    """Judge the scheduled tasks and the receivers, unless another process just did; return whether this one did."""
    if not take_turn(AUDIT):
        return False
    expect_rounds()
    now = read_clock()
    if judge_product(load_product_facts(), now):
        note_news()
    record_round(AUDIT)
    return True


def guard_notifications() -> None:
    """Ping the dead-man URL while collection works, and do the routing and sending of a tick that is overdue.

    The leases of receivers keep workers that come back meanwhile from sending a message twice.
    """
    expect_pings(configured=bool(settings.DEAD_MAN_URL))
    now = read_clock()
    late = {each.name for each in load_rounds() if each.is_overdue(now)}
    if not late & _NEEDED and is_collection_on_time():
        ping_dead_man()
    if late & {BEAT, TICK}:
        route_events(now)
        _deliver_due()


def _deliver_due() -> None:
    """Send to the receivers that wait longest, until ``TURN_S`` have passed; the others wait for the next round.

    Audits and pings of this process wait meanwhile: many receivers that hang would keep them for minutes.
    """
    began = time.monotonic()
    while time.monotonic() - began < delivery.TURN_S and (due := delivery.claim_due(limit=1)):
        delivery.deliver(due[0])


def run_round(process: WatchedProcess) -> None:
    """Do one round in this process. A fault is logged, and waits for the next round."""
    try:
        if process.sends is not None and process.sends():
            record_round(BEAT)
        audit_tasks()
        if process.notifies:
            guard_notifications()
    except Exception:
        log.exception("watch.round_failed")


def _watch(process: WatchedProcess) -> None:
    while True:
        run_round(process)
        close_old_connections()
        time.sleep(AUDITED[AUDIT].interval_s)


def _start_thread(process: WatchedProcess) -> None:
    threading.Thread(target=_watch, args=[process], name="watch", daemon=True).start()


def connect_signals() -> None:
    """Start the thread in each worker, and in beat, when it is ready."""
    worker_ready.connect(_watch_in_worker, dispatch_uid="ops.watch")
    beat_init.connect(_watch_in_beat, dispatch_uid="ops.watch")


def _watch_in_worker(**_: object) -> None:
    _start_thread(WatchedProcess(notifies=NOTIFY in app.amqp.queues.consume_from))


def _watch_in_beat(sender: object, **_: object) -> None:
    """``sender`` is Celery's beat service, with its scheduler."""
    _start_thread(WatchedProcess(sends=sender.scheduler.sends))  # type: ignore[attr-defined]
