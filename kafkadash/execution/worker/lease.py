"""The lease of a run: one worker steps a run at a time, and a worker whose lease is over writes and sends nothing.

Kafka cannot be fenced. So a call that changes something is made only while enough of the lease is left for the call to
end before another worker may step; the effect of a late call is found in the cluster by the next step.
"""

from __future__ import annotations

from datetime import timedelta

from django.db.models import Case, F, When
from django.db.models.expressions import Combinable

from kafkadash.changes.models import STEPS_BEFORE_ARE_OVER
from kafkadash.changes.state_machine import STEPPED
from kafkadash.core import leases as lease
from kafkadash.core.leases import LeasedTable, LeaseLost, RowLease, from_now
from kafkadash.execution.models import Execution

__all__ = [
    "RUNS",
    "LeaseLost",
    "RowLease",
    "claim_due",
    "extend_lease",
    "hand_back",
    "next_turn",
    "take_lease",
    "wake_active",
    "wake_run",
]

RUNS = LeasedTable(Execution._meta.db_table, "steps")
MARGIN_S = 2.0
"""Seconds of the lease that must remain beyond the deadline of a call that changes something."""
OBLIGATIONS_EVERY_S = 30.0

# Ended runs whose throttles could not all be cleared are worked off until they are.
_DUE = (
    "JOIN changes_changerequest c ON c.id = r.request_id JOIN clusters_cluster k ON k.id = r.cluster_id"  # noqa: S608
    f" WHERE k.removed_at IS NULL AND (c.state IN %s AND {STEPS_BEFORE_ARE_OVER} OR EXISTS ("
    " SELECT 1 FROM execution_throttleentry t WHERE t.execution_id = r.id AND t.state <> 'cleared'))"
)


def take_lease(execution_id: int) -> RowLease | None:
    """The lease of a run whose turn has come, or None."""
    return lease.take(execution_id, of=RUNS)


def extend_lease(held: RowLease, deadline: float) -> None:
    """To be called before each call that changes something in Kafka and may take ``deadline`` seconds.

    Raises LeaseLost when somebody else has taken over; then nothing more may be sent.
    """
    held.keep(deadline + MARGIN_S)


def claim_due(limit: int = 100, hold_s: float = 10) -> list[int]:
    """Ids of the executions whose turn has come, marked so that each is handed out once."""
    states = ", ".join(["%s"] * len(STEPPED))
    where = _DUE.replace("IN %s", f"IN ({states})")
    return lease.claim(RUNS, where, limit, hold_s, [state.value for state in STEPPED])


def hand_back(execution_ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away, for runs that could not be handed to a worker."""
    lease.unclaim(RUNS, execution_ids)


def wake_run(execution_id: int) -> None:
    """Something was asked of it: the next tick hands it out, also if it would rest longer.

    In the transaction that asks. The time is not that of its beginning: a step that began since would not heed it.
    """
    Execution.objects.filter(pk=execution_id).update(next_at=from_now(0))


def wake_active(execution_id: int) -> bool:
    """The same of a run that is under way; False where it has ended. Until the caller's transaction ends it does not.

    A step that is being stored is waited for; one that ends the run later finds what was asked here.
    """
    return bool(Execution.objects.filter(pk=execution_id, active=True).update(next_at=from_now(0)))


def next_turn(held: RowLease, seconds: float) -> Combinable:
    """``Execution.next_at``, so many seconds after the lease was taken; who woke it since is not made to wait."""
    later = held.taken_at + timedelta(seconds=seconds)
    return Case(When(next_at__gt=held.taken_at, then=F("next_at")), default=later)
