"""What time alone does to change requests, by the database's clock: they expire, and scheduled ones are queued."""

from __future__ import annotations

from datetime import datetime

import structlog
from django.db import connection, transaction
from django.db.models import Q, QuerySet
from django.db.models.functions import Now

from kafkadash.changes.kinds import kinds
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.policy import policy_of, rules_of
from kafkadash.changes.refusals import Refused
from kafkadash.changes.transitions import move
from kafkadash.domain.workflow import Deed
from kafkadash.domain.workflow_states import WAITING, State, Trigger, Who

log = structlog.get_logger(__name__)

ITSELF = "kafkadash"
AT_ONCE = 100


def expire_due() -> int:
    """Requests whose validity or window is over become EXPIRED; returns how many. One query when none is."""
    window_over = Q(state__in=WAITING, not_after__lte=Now())
    # Once it is queued, only its window counts: its approval was used in time.
    validity_over = Q(state__in=[state for state in WAITING if state is not State.QUEUED], expires_at__lte=Now())
    return _move_all(ChangeRequest.objects.filter(window_over | validity_over), Trigger.EXPIRE)


def queue_due() -> int:
    """Approved requests whose window has begun become QUEUED, if this version can run their kind; returns how many."""
    runnable = [kind.name for kind in kinds() if kind.starts]
    if not runnable:
        return 0
    begun = ChangeRequest.objects.filter(
        Q(not_after=None) | Q(not_after__gt=Now()),
        state=State.APPROVED,
        kind__in=runnable,
        not_before__lte=Now(),
        expires_at__gt=Now(),
        cluster__read_only=False,
        cluster__removed_at=None,
    )
    return _move_all(begun, Trigger.SCHEDULE)


def _move_all(due: QuerySet[ChangeRequest], trigger: Trigger) -> int:
    """Each in a transaction of its own; one that somebody has his hands on is left to the next second."""
    moved = 0
    for number in list(due.order_by("pk").values_list("pk", flat=True)[:AT_ONCE]):
        try:
            moved += _move_one(due, number, trigger)
        except Refused as refused:
            log.info("change.not_moved", change=number, trigger=trigger.value, why=str(refused))
        except Exception:
            log.exception("change.time_failed", change=number, trigger=trigger.value)
    return moved


def _move_one(due: QuerySet[ChangeRequest], number: int, trigger: Trigger) -> bool:
    with transaction.atomic():
        change = (
            due.filter(pk=number)
            .select_related("cluster")
            .select_for_update(of=("self",), no_key=True, skip_locked=True)
            .first()
        )
        if change is None:
            return False
        deed = Deed(trigger, capacities=frozenset({Who.ITSELF}))
        move(change, deed, rules_of(policy_of(change.cluster)), _database_now(), actor=ITSELF)
    return True


def _database_now() -> datetime:
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
