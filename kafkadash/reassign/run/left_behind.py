"""What runs would leave behind in Kafka if their cluster were taken out of kafkadash now, and how they are stopped."""

from __future__ import annotations

from django.db.models import Count, F, Q

from kafkadash.clusters.models import Cluster
from kafkadash.clusters.removal import Stays
from kafkadash.domain.ledger import EntryState
from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Execution

SILENT_LOOKS = 20
"""Looks in a row that failed, after which nobody is asked to wait for the cluster any more."""


def stop_runs(cluster: Cluster) -> None:
    """Steps that are being taken find their lease gone; a run whose turn came in this instant is active by now."""
    Execution.objects.filter(cluster=cluster).update(epoch=F("epoch") + 1, lease_until=None)


def left_behind(cluster: Cluster) -> Stays:
    """One query. A run under way has to end first; unless its cluster does not answer, so that it could not."""
    open_entries = Count("throttles", filter=~Q(throttles__state=EntryState.CLEARED.value))
    runs = Execution.objects.filter(cluster=cluster).annotate(owed=open_entries).filter(Q(active=True) | Q(owed__gt=0))
    refused, left = "", []
    for number, active, failures, owed in runs.order_by("pk").values_list("request", "active", "failures", "owed"):
        if active and failures < SILENT_LOOKS:
            refused = message_text(ReassignmentErrorCode.RUN_STILL_HERE, number=number)
        elif active:
            left.append(message_text(ReassignmentErrorCode.RUN_CANNOT_BE_STOPPED, number=number))
        if owed:
            left.append(
                message_text(ReassignmentErrorCode.THROTTLES_STAY, throttles=count(owed, "throttle"), number=number)
            )
    return Stays(refused, tuple(left))
