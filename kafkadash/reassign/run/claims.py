"""Which throttles and reassignments of a cluster are ours, told to ``observe`` after each of its refreshes.

Compared as states: what a collector found before or after we wrote our rows is marked one refresh later at most, and
nothing is judged an orphan in less than two.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime

from django.db.models import Q, Subquery
from django.urls import reverse

from kafkadash.domain.executor_state import IN_FLIGHT
from kafkadash.domain.ledger import Entry, EntryState
from kafkadash.domain.ledger_lists import open_pairs
from kafkadash.domain.throttles import LISTS
from kafkadash.observe.models import Kind, ThrottleState
from kafkadash.observe.services import Claim, MoveClaim, Throttle, claim
from kafkadash.reassign.models import Execution, Move, ThrottleEntry
from kafkadash.reassign.run.ledger_rows import entry_of

KINDS = frozenset({Kind.CONFIGS.value, Kind.REASSIGNMENTS.value})
"""Refreshes after which it is worth comparing."""


def reconcile(cluster_id: int, now: datetime) -> None:
    """At most eight statements, four where no run of this cluster has anything open and none has just ended."""
    runs = dict(
        Execution.objects.filter(
            Q(active=True) | Q(throttles__state__in=[state.value for state in EntryState if state != "cleared"]),
            cluster=cluster_id,
        )
        .values_list("pk", "request")
        .distinct()
    )
    throttles = _removed(cluster_id)
    moves: dict[tuple[str, int], MoveClaim] = {}
    if runs:
        claims = {pk: _claim(number) for pk, number in runs.items()}
        throttles |= _throttles(claims)
        moves = _moves(claims)
    claim(cluster_id, throttles, moves, now)


def _removed(cluster_id: int) -> dict[Throttle, Claim]:
    """Those that a run has taken away since they were read: nobody else set them, and they are not in force."""
    ours = ThrottleState.objects.filter(cluster=cluster_id).exclude(claimed_by="").order_by("read_at")
    since = Subquery(ours.values("read_at")[:1])
    gone = ThrottleEntry.objects.filter(
        execution__cluster=cluster_id, state=EntryState.CLEARED.value, changed_at__gt=since
    )
    return {
        (row.resource, row.name, row.key): replace(_claim(row.execution.request_id), removed_at=row.changed_at)
        for row in gone.select_related("execution").order_by("changed_at")
    }


def _claim(number: int) -> Claim:
    return Claim(f"#{number}", reverse("changes:request", args=[number]))


def _throttles(claims: dict[int, Claim]) -> dict[Throttle, Claim]:
    rows = ThrottleEntry.objects.filter(execution__in=claims).exclude(state=EntryState.CLEARED.value)
    return {
        (row.resource, row.name, row.key): claims[row.execution_id] for row in rows if something_ours(entry_of(row))
    }


def something_ours(entry: Entry) -> bool:
    """Whether what stands there is, in part at least, by us: what had stood there before just the same is not."""
    if entry.place.key in LISTS:
        return bool(open_pairs(entry) - entry.already) or entry.state is EntryState.CLEARING
    return entry.state is not EntryState.SET or entry.value != entry.restores


def _moves(claims: dict[int, Claim]) -> dict[tuple[str, int], MoveClaim]:
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
