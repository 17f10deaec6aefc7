"""The tick: once a second, hands out the work that is due. Nothing else enqueues work."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime

import structlog
from celery import Task
from django.contrib.sessions.backends.db import SessionStore
from django.db import transaction
from kombu.exceptions import OperationalError

from kafkadash.accounts.sessions import forget_expired
from kafkadash.changes.expiry import delete_untouched, expire_due, queue_due
from kafkadash.changes.plans import prune_artifacts
from kafkadash.changes.policy import apply_due_loosenings
from kafkadash.clusters.removal import purge_removed
from kafkadash.core import leases as lease
from kafkadash.execution.tasks import execute
from kafkadash.execution.worker import lease as runs
from kafkadash.execution.worker.moves import forget_old_moves
from kafkadash.export import flusher
from kafkadash.export.tasks import write_segments
from kafkadash.findings.services import judge_ages
from kafkadash.findings.services import prune as prune_findings
from kafkadash.history import schedule as ingests
from kafkadash.history.tasks import ingest
from kafkadash.jobs.runner import dispatch_due_jobs, forget_old_jobs
from kafkadash.live.panels import BOARD
from kafkadash.live.publisher import publish_keys
from kafkadash.maintenance.services import prune_periods
from kafkadash.monitoring import schedule
from kafkadash.monitoring.collection import ensure_runs
from kafkadash.monitoring.tasks import collect
from kafkadash.notifications import delivery
from kafkadash.notifications.routing import route_events
from kafkadash.notifications.tasks import notify
from kafkadash.ops import retention
from kafkadash.ops.health import clock_set_back_s, read_clock, record_beat
from kafkadash.short_runs import worker as short_runs
from kafkadash.short_runs.removal import forget_old_items
from kafkadash.short_runs.tasks import execute_items
from kafkadash.watchdog.rounds import claim_probes, record_round, take_news
from kafkadash.watchdog.rules import PRUNE, TICK
from kafkadash.watchdog.tasks import probe

log = structlog.get_logger(__name__)

PRUNE_EVERY_S = 600.0
_LEASED = (
    runs.RUNS,
    short_runs.RUNS,
    schedule.COLLECTORS,
    flusher.WRITERS,
    ingests.INGEST,
    delivery.TARGETS,
)
_last_prune = 0.0


def tick() -> None:
    """Marks what is due and sends one message for each. What cannot be sent is unmarked and tried next second."""
    _follow_clock()
    record_beat()
    now = read_clock()
    ensure_runs()
    flusher.ensure_writer()
    _route_events(now)
    _dispatch()
    dispatch_due_jobs()
    _send_probes()
    if take_news():
        publish_keys([BOARD])
    _judge_ages(now)  # before what only tidies up: nothing that fails there may keep a silent cluster green
    _let_time_pass()
    purge_removed()
    _prune_now_and_then(now)
    record_round(TICK)


def _follow_clock() -> None:
    """Noticed and followed in one transaction: killed in between, the next tick notices again."""
    with transaction.atomic():
        if seconds := clock_set_back_s():
            log.warning("tick.clock_set_back", seconds=round(seconds, 1))
            for of in _LEASED:
                lease.set_back(of, seconds)


def _route_events(now: datetime) -> None:
    """Bind events to messages. A fault there waits for the next second, and keeps no run and no refresh waiting."""
    try:
        route_events(now)
    except Exception:
        log.exception("notifications.routing_failed")


def _dispatch() -> None:
    """Runs of changes first. When the queue is away the others are not tried: each try takes seconds to fail."""
    dues = (
        (execute, runs.claim_due, runs.hand_back),
        (execute_items, short_runs.claim_due, short_runs.hand_back),
        (collect, schedule.claim_due, schedule.hand_back),
        (write_segments, flusher.claim_due, flusher.hand_back),
        (ingest, ingests.claim_due, ingests.hand_back),
        (notify, delivery.claim_due, delivery.hand_back),
    )
    for task, claim_due, hand_back in dues:
        if not _send(task, claim_due(), hand_back):
            return


def _send(task: Task, due: list[int], hand_back: Callable[[list[int]], None]) -> bool:
    """False when the queue cannot be reached."""
    for sent, row_id in enumerate(due):
        try:
            task.apply_async((row_id,), retry=False)
        except OperationalError as error:
            hand_back(due[sent:])
            log.warning("tick.queue_unreachable", task=task.name, waiting=len(due) - sent, error=str(error))
            return False
    return True


def _send_probes() -> None:
    """Ask the workers of each queue for a sign of life (``watchdog``): most queues have no work for hours."""
    for queue in claim_probes():
        try:
            probe.apply_async((queue,), queue=queue, retry=False)
        except OperationalError:
            return


def _judge_ages(now: datetime) -> None:
    """Nothing arrives from a cluster whose collection is dead: time has to open what there is to say about it."""
    for slug in judge_ages(now):
        publish_keys([f"status:{slug}", f"overview:{slug}", BOARD])


def _let_time_pass() -> None:
    """Expire what is over before anything scheduled is queued."""
    apply_due_loosenings()
    expire_due()
    queue_due()


def _prune_now_and_then(now: datetime) -> None:
    """Forgets old rows every ten minutes; two workers doing it at once only share the work."""
    global _last_prune  # noqa: PLW0603  one number per process, and losing it costs one extra round
    if time.monotonic() - _last_prune < PRUNE_EVERY_S:
        return
    _last_prune = time.monotonic()
    SessionStore.clear_expired()
    removed = {
        **retention.prune(now),
        "jobs": forget_old_jobs(),
        "moves": forget_old_moves(),
        "items": forget_old_items(),
        "findings": prune_findings(now),
        "maintenance": prune_periods(now),
        "notifications": delivery.forget_old(now),
        "drafts": delete_untouched(),
        "plans": prune_artifacts(),
        "sessions": forget_expired(now),
    }
    record_round(PRUNE)
    if any(removed.values()):
        log.info("retention.pruned", **removed)
