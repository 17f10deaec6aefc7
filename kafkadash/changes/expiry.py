"""Effects of time on change requests, by the database's clock: requests expire, and scheduled ones are queued."""

from __future__ import annotations

from datetime import datetime, timedelta

import structlog
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.kinds import registered_kinds
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import WAITING, ChangeState, ChangeTrigger
from kafkadash.changes.transitions import ITSELF, announce_changes, audit_change
from kafkadash.changes.worker_transitions import move_itself

log = structlog.get_logger(__name__)

AT_ONCE = 100
KEEP_UNTOUCHED = timedelta(days=1)


def expire_due() -> int:
    """Requests whose validity or window is over become EXPIRED; returns how many. One query when none is."""
    window_over = Q(state__in=WAITING, not_after__lte=Now())
    # Once it is queued, only its window counts: its approval was used in time.
    validity_over = Q(state__in=[state for state in WAITING if state is not ChangeState.QUEUED], expires_at__lte=Now())
    return _move_all(ChangeRequest.objects.filter(window_over | validity_over), ChangeTrigger.EXPIRE)


def queue_due() -> int:
    """Approved requests whose window has begun become QUEUED, if this version can run their kind; returns how many."""
    runnable = [kind.name for kind in registered_kinds() if kind.starts]
    if not runnable:
        return 0
    begun = ChangeRequest.objects.filter(
        Q(not_after=None) | Q(not_after__gt=Now()),
        state=ChangeState.APPROVED,
        kind__in=runnable,
        not_before__lte=Now(),
        expires_at__gt=Now(),
        cluster__read_only=False,
        cluster__removed_at=None,
    )
    return _move_all(begun, ChangeTrigger.SCHEDULE)


def delete_untouched() -> int:
    """Delete drafts that nobody edited or commented within a day of their creation; returns how many."""
    old = ChangeRequest.objects.untouched().filter(created_at__lt=Now() - KEEP_UNTOUCHED, comments=None)
    deleted = 0
    for number in list(old.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        with transaction.atomic():
            # Locked and read again: its author may come back, or somebody may comment, at this instant.
            held = ChangeRequest.objects.untouched().select_related("cluster").select_for_update(of=("self",))
            row = held.filter(pk=number).first()
            if row is not None and not row.comments.exists():
                audit_change(row, ITSELF, "deleted", before={"kind": row.kind, "title": row.title})
                announce_changes(row.pk)
                row.delete()
                deleted += 1
    return deleted


def _move_all(due: QuerySet[ChangeRequest], trigger: ChangeTrigger) -> int:
    """Each in a transaction of its own; one that somebody has his hands on is left to the next second."""
    moved = 0
    for number in list(due.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        try:
            moved += _move_one(due, number, trigger)
        except ChangeRefused as refused:
            log.info("change.not_moved", change=number, trigger=trigger.value, code=refused.code, why=str(refused))
        except Exception:
            log.exception("change.time_failed", change=number, trigger=trigger.value)
    return moved


def _move_one(due: QuerySet[ChangeRequest], number: int, trigger: ChangeTrigger) -> bool:
    with transaction.atomic():
        change = (
            due.filter(pk=number)
            .select_related("cluster")
            .select_for_update(of=("self",), no_key=True, skip_locked=True)
            .first()
        )
        if change is None:
            return False
        move_itself(change, trigger, _database_now())
    return True


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
