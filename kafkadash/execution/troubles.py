"""Runs of reassignments that need a person: stuck or blocked for long, waiting for a decision, owing throttles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from django.db.models import Q

from kafkadash.changes.troubles import PATIENCE, RunTrouble, TroubleKind
from kafkadash.clusters.models import Cluster
from kafkadash.execution.models import Execution, Move, ThrottleEntry, ThrottleEntryState
from kafkadash.execution.progress.figures import RowMark
from kafkadash.execution.worker.measure import stored_progress


def load_troubles(cluster: Cluster, now: datetime) -> tuple[RunTrouble, ...]:
    """Return the troubles of all runs of reassignments of a cluster.

    Takes two queries, and one more while a run goes on. A move is stuck by ``execution.progress.stuck``; the others
    count from ``PATIENCE`` on. A run that waits for its window is not blocked.
    """
    patient = now - PATIENCE
    begun = Q(request__not_before=None) | Q(request__not_before__lte=patient)
    unended = Execution.objects.filter(cluster=cluster, ended_at=None).filter(
        Q(active=True) | Q(blocked_at__lte=patient) & begun
    )
    runs = unended.select_related("request").defer("samples", "report").order_by("pk")
    found = [trouble for run in runs for trouble in _judge_run(run, now)]
    is_open = ~Q(state=ThrottleEntryState.CLEARED) | Q(lost_at__isnull=False)  # as the index of open entries has it
    owed = ThrottleEntry.objects.filter(
        is_open, execution__cluster=cluster, state=ThrottleEntryState.OBLIGED, changed_at__lte=patient
    ).values_list("execution__request_id", "changed_at")
    counts: Counter[int] = Counter()
    first: dict[int, datetime] = {}
    for number, at in owed.order_by("changed_at"):
        counts[number] += 1
        first.setdefault(number, at)
    found += [RunTrouble(number, TroubleKind.OWES, count, first[number]) for number, count in counts.items()]
    return tuple(found)


def _judge_run(run: Execution, now: datetime) -> Iterator[RunTrouble]:
    number = run.request_id
    if not run.active:
        if run.blocked_at is not None:
            since = max(run.blocked_at, run.request.not_before or run.blocked_at)
            yield RunTrouble(number, TroubleKind.BLOCKED, run.rows, since)
        return
    progress = stored_progress(run)
    stuck = [row for row in progress.rows if row.mark is RowMark.STUCK] if progress else []
    if stuck and progress:
        since = min((row.grew_at for row in stuck if row.grew_at is not None), default=progress.at)
        yield RunTrouble(number, TroubleKind.STUCK, len(stuck), since)
    if run.failures and run.looked_at is not None and now - run.looked_at > PATIENCE:
        yield RunTrouble(number, TroubleKind.UNREAD, run.rows, run.looked_at)
    waiting = [at for at in Move.objects.filter(execution=run, asks=True).values_list("since", flat=True) if at]
    if waiting:
        yield RunTrouble(number, TroubleKind.ASKS, len(waiting), min(waiting))
