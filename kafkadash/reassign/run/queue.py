"""Whose turn it is: one run at a time moves partitions of a cluster, first come first served."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.workflow_states import State
from kafkadash.observe.lease import from_now
from kafkadash.reassign.models import Execution
from kafkadash.reassign.window_facts import run_options

_ENDED = (State.DONE, State.CANCELLED, State.FAILED)


def moved(change: ChangeRequest, before: State, after: State) -> None:
    """A request's run follows its state, in the transaction that stores it (``ChangeKind.moved``).

    It comes into being when the request is queued, and is gone when that leaves the queue otherwise than by its turn.
    What people ask for meanwhile is taken up by the next tick; when one run ends, those that wait are looked at.
    """
    own = Execution.objects.filter(request=change)
    if after is State.QUEUED:
        own.delete()
        options = run_options(change)
        Execution.objects.create(
            request=change,
            cluster=change.cluster,
            throttle=options.throttle,
            per_broker=options.per_broker,
            per_cluster=options.per_cluster,
        )
    elif before is State.QUEUED and after is not State.EXECUTING:
        own.delete()
        _wake_those_that_wait(change.cluster_id)
    elif after in _ENDED:
        _wake_those_that_wait(change.cluster_id)
    else:
        own.update(next_at=from_now(0))


def in_front_of(execution: Execution, now: datetime) -> Execution | None:
    """The run that has to end, or to begin, before this one begins; None when it is its turn. One query.

    The active run of the cluster, else the first that was queued earlier. One whose window has not begun keeps nobody
    waiting.
    """
    begun = Q(request__not_before=None) | Q(request__not_before__lte=now)
    earlier = Q(queued_at__lt=execution.queued_at) | Q(queued_at=execution.queued_at, pk__lt=execution.pk)
    waiting = Q(request__state=State.QUEUED) & begun & earlier
    return (
        Execution.objects.filter(Q(active=True) | waiting, cluster=execution.cluster_id)
        .exclude(pk=execution.pk)
        .select_related("request")
        .defer("progress", "samples", "report")
        .order_by("-active", "queued_at", "pk")
        .first()
    )


def _wake_those_that_wait(cluster_id: int) -> None:
    """One that is being worked on looks by itself; nobody waits for its row, so that no two wait for each other."""
    waiting = Execution.objects.filter(cluster=cluster_id, request__state=State.QUEUED)
    free = waiting.select_for_update(of=("self",), no_key=True, skip_locked=True)
    Execution.objects.filter(pk__in=list(free.values_list("pk", flat=True))).update(next_at=Now())
