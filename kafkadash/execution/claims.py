"""Throttles and reassignments that belong to runs, reported to ``monitoring`` after each of its refreshes.

Only states are compared: a throttle that a collector found before or after the rows of the run were written is claimed
one refresh later at most, and no throttle is judged an orphan in less than two refreshes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from django.db.models import Q, Subquery
from django.urls import reverse

from kafkadash.core.leases import RowLease
from kafkadash.execution.engine.state import IN_FLIGHT, RowState, RunRow
from kafkadash.execution.engine.throttle_ledger import LedgerEntry, LedgerState, open_pairs
from kafkadash.execution.models import Execution, Move, ThrottleEntry
from kafkadash.execution.worker.moves import AT_ONCE
from kafkadash.execution.worker.throttle_ledger import entry_of
from kafkadash.kafka.throttles import LISTS
from kafkadash.monitoring.models import CollectorKind, MoveOutcome, ThrottleState
from kafkadash.monitoring.ownership import (
    AcceptedMove,
    MoveClaim,
    OwnershipClaim,
    Throttle,
    end_moves,
    mark_claims,
    register_moves,
)

KINDS = frozenset({CollectorKind.CONFIGS.value, CollectorKind.REASSIGNMENTS.value})
"""Refreshes after which it is worth comparing."""


def reconcile_claims(cluster_id: int, now: datetime) -> None:
    """At most eight statements, four where no run of this cluster has anything open and none has just ended."""
    runs = dict(
        Execution.objects.filter(
            Q(active=True) | Q(throttles__state__in=[state.value for state in LedgerState if state != "cleared"]),
            cluster=cluster_id,
        )
        .values_list("pk", "request")
        .distinct()
    )
    throttles = _find_removed_throttles(cluster_id)
    moves: dict[tuple[str, int], MoveClaim] = {}
    if runs:
        claims = {pk: _claim(number) for pk, number in runs.items()}
        throttles |= _find_throttle_claims(claims)
        moves = _find_move_claims(claims)
    mark_claims(cluster_id, throttles, moves, now)


def register_accepted(lease: RowLease, run: Execution, rows: Sequence[RunRow]) -> None:
    """Make the reassignments known that Kafka has accepted from this run, in short transactions. Raises LeaseLost.

    A change of the order alone is no reassignment: Kafka does it at once.
    """
    claim = _claim(run.request_id)
    moves = []
    for row in rows:
        if row.work.only_reorders or row.submitted_at is None:
            continue
        plan = row.work.row
        own = MoveClaim(claim, plan.target, row.first_at or row.submitted_at, row.submitted_at)
        moves.append(AcceptedMove(plan.topic, plan.topic_id, plan.partition, plan.current, own))
    for start in range(0, len(moves), AT_ONCE):
        with lease.write_portion():
            register_moves(run.cluster_id, moves[start : start + AT_ONCE], lease.now())


_ENDED_AS = {RowState.DONE: MoveOutcome.COMPLETED, RowState.CANCELLED: MoveOutcome.CANCELLED}


def record_ends(run: Execution, rows: Sequence[RunRow], now: datetime) -> None:
    """End the reassignments of these rows of a run. What others did with one is for the next refresh to judge."""
    ended = {row.key: _ENDED_AS[row.state] for row in rows if row.state in _ENDED_AS and row.submitted_at is not None}
    if ended:
        end_moves(run.cluster_id, _claim(run.request_id).by, ended, now)


def find_open_throttles(cluster_id: int) -> frozenset[Throttle]:
    """Return the places of throttles that runs have set, or are about to set, and have not cleared. One query."""
    rows = ThrottleEntry.objects.filter(execution__cluster=cluster_id).exclude(state=LedgerState.CLEARED.value)
    return frozenset(rows.values_list("resource", "name", "key"))


def find_moves_in_flight(cluster_id: int) -> frozenset[tuple[str, int]]:
    """Return topic and partition of each move that a run has sent, or is about to send, and that has not ended."""
    flying = [state.value for state in IN_FLIGHT]
    rows = Move.objects.filter(execution__cluster=cluster_id, execution__active=True, state__in=flying)
    return frozenset(rows.values_list("topic", "partition"))


def find_active_run(cluster_id: int) -> int | None:
    """Return the number of a change whose run is active in this cluster, None where there is none. One query."""
    active = Execution.objects.filter(cluster=cluster_id, active=True).order_by("pk")
    return active.values_list("request", flat=True).first()


def _find_removed_throttles(cluster_id: int) -> dict[Throttle, OwnershipClaim]:
    """Return the throttles that runs removed since the last read; nobody else set them and they are not in force."""
    ours = ThrottleState.objects.filter(cluster=cluster_id).exclude(claimed_by="").order_by("read_at")
    since = Subquery(ours.values("read_at")[:1])
    gone = ThrottleEntry.objects.filter(
        execution__cluster=cluster_id, state=LedgerState.CLEARED.value, changed_at__gt=since
    )
    return {
        (row.resource, row.name, row.key): replace(_claim(row.execution.request_id), removed_at=row.changed_at)
        for row in gone.select_related("execution").order_by("changed_at")
    }


def _claim(number: int) -> OwnershipClaim:
    return OwnershipClaim(f"#{number}", reverse("changes:request", args=[number]))


def _find_throttle_claims(claims: dict[int, OwnershipClaim]) -> dict[Throttle, OwnershipClaim]:
    rows = ThrottleEntry.objects.filter(execution__in=claims).exclude(state=LedgerState.CLEARED.value)
    return {
        (row.resource, row.name, row.key): claims[row.execution_id] for row in rows if something_ours(entry_of(row))
    }


def something_ours(entry: LedgerEntry) -> bool:
    """Return whether the value at the entry's place is at least partly ours, and was not the same before the run."""
    if entry.place.key in LISTS:
        return bool(open_pairs(entry) - entry.already) or entry.state is LedgerState.CLEARING
    return entry.state is not LedgerState.SET or entry.value != entry.restores


def _find_move_claims(claims: dict[int, OwnershipClaim]) -> dict[tuple[str, int], MoveClaim]:
    rows = Move.objects.filter(
        execution__in=claims, state__in=[state.value for state in IN_FLIGHT], submitted_at__isnull=False
    )
    found = {}
    for row in rows.only("execution", "topic", "partition", "target", "first_at", "submitted_at"):
        assert row.submitted_at is not None, "as filtered"
        began = row.first_at or row.submitted_at
        found[row.topic, row.partition] = MoveClaim(
            claims[row.execution_id], tuple(row.target), began, row.submitted_at
        )
    return found
