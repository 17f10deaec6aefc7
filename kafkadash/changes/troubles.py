"""Troubles of runs: the kinds that findings tell of, and changes of any kind whose run failed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from django.db.models import Exists, OuterRef

from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.state_machine import ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason

PATIENCE = timedelta(minutes=10)
"""A run may be blocked, blind or still for so long before it needs a person."""
FAILED_FOR = timedelta(hours=24)
"""A failed run is a trouble for so long, unless a rollback or a copy has run before."""
_COMES_AFTER = ("copy", "rollback")
"""``ChangeRequest.origin_word`` of what repeats a change or takes it back; a plan for one row of it does neither."""


class TroubleKind(StrEnum):
    """Kind of trouble of a run; the values are stored as scopes of findings."""

    FAILED = "failed"
    BLOCKED = "blocked"
    STUCK = "stuck"
    ASKS = "asks"
    UNREAD = "unread"
    STALLED = "stalled"
    OWES = "owes"


@dataclass(frozen=True, slots=True)
class RunTrouble:
    """Trouble of the run of change ``number``. ``count``: moves or items, or throttles of OWES. ``why``: if known."""

    number: int
    kind: TroubleKind
    count: int
    since: datetime
    why: CodedReason | None = None


def load_failed_changes(cluster: Cluster, now: datetime) -> Iterator[RunTrouble]:
    """Yield a trouble for each change whose run failed within ``FAILED_FOR``. One query.

    The trouble is over when a copy or a rollback is done. If that failed, it has a trouble of its own instead.
    """
    ran = ChangeRequest.objects.filter(
        origin=OuterRef("pk"), origin_word__in=_COMES_AFTER, state__in=(ChangeState.DONE, ChangeState.FAILED)
    )
    failed = ChangeRequest.objects.filter(
        ~Exists(ran), cluster=cluster, state=ChangeState.FAILED, state_since__gt=now - FAILED_FOR
    )
    for number, rows, ended_at in failed.order_by("pk").values_list("pk", "artifact__rows", "state_since"):
        yield RunTrouble(number, TroubleKind.FAILED, rows or 0, ended_at)
