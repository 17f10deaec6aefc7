"""Queue of runs: one run at a time moves partitions of a cluster, first come, first served.

A blocked run lets runs pass that move none of its partitions, because the end of the block may never come.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache

from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.changes.models import ChangeRequest, has_open_step_before
from kafkadash.changes.state_machine import ChangeState
from kafkadash.core.leases import from_now
from kafkadash.execution.models import Execution
from kafkadash.planning.stored_checks import plan_rows
from kafkadash.planning.window import run_options

_ENDED = (ChangeState.DONE, ChangeState.CANCELLED, ChangeState.FAILED)


def follow_change_state(change: ChangeRequest, before: ChangeState, after: ChangeState) -> None:
    """A request's run follows its state, in the transaction that stores it (``ChangeKind.moved``).

    It comes into being when the request is queued, and is gone when that leaves the queue otherwise than by its turn.
    What people ask for meanwhile is taken up by the next tick; when one run ends, those that wait are looked at.
    """
    own = Execution.objects.filter(request=change)
    if after is ChangeState.QUEUED:
        own.delete()
        options = run_options(change)
        Execution.objects.create(
            request=change,
            cluster=change.cluster,
            throttle=options.throttle,
            per_broker=options.per_broker,
            per_cluster=options.per_cluster,
        )
    elif before is ChangeState.QUEUED and after is not ChangeState.EXECUTING:
        own.delete()
        wake_those_that_wait(change.cluster_id)
    elif after in _ENDED:
        wake_those_that_wait(change.cluster_id)
    else:
        own.update(next_at=from_now(0))


def in_front_of(execution: Execution, now: datetime) -> Execution | None:
    """The run that has to end, or to begin, before this one begins; None when it is its turn.

    The active run of the cluster, else the first that was queued earlier and that it may not pass. One whose window
    has not begun, or that waits for the step of a change before it, keeps nobody waiting. One query, and two more for
    plans that this process has not read yet where one that was queued earlier is blocked.
    """
    begun = Q(request__not_before=None) | Q(request__not_before__lte=now)
    earlier = Q(queued_at__lt=execution.queued_at) | Q(queued_at=execution.queued_at, pk__lt=execution.pk)
    waiting = Q(request__state=ChangeState.QUEUED) & begun & earlier & ~has_open_step_before("request__")
    before = (
        Execution.objects.filter(Q(active=True) | waiting, cluster=execution.cluster_id)
        .exclude(pk=execution.pk)
        .select_related("request")
        .defer("progress", "samples", "report")
        .order_by("-active", "queued_at", "pk")
    )
    return next((other for other in before if other.active or not may_pass(execution, other)), None)


def may_pass(later: Execution, earlier: Execution) -> bool:
    """Return whether the later of two queued runs begins before the earlier one if the latter is blocked.

    Not where both move a partition: then the plan of the earlier one would fit no longer.
    """
    return bool(earlier.blocked) and _are_apart(later.request.artifact_id or "", earlier.request.artifact_id or "")


@lru_cache(maxsize=1024)
def _are_apart(one: str, other: str) -> bool:
    """Return whether no partition is in both artifacts, which never change."""
    moved = {(row.topic, row.partition) for row in plan_rows(one)}
    return moved.isdisjoint((row.topic, row.partition) for row in plan_rows(other))


def wake_those_that_wait(cluster_id: int, but: int = 0) -> None:
    """Wake the cluster's queued runs. A locked row is skipped: its worker looks by itself, and no two can deadlock."""
    waiting = Execution.objects.filter(cluster=cluster_id, request__state=ChangeState.QUEUED).exclude(pk=but)
    free = waiting.select_for_update(of=("self",), no_key=True, skip_locked=True)
    Execution.objects.filter(pk__in=list(free.values_list("pk", flat=True))).update(next_at=Now())
