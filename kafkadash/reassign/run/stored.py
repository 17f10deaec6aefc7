"""What pages read of a run: its row, the figures packed in it, and how old they are."""

from __future__ import annotations

from datetime import datetime

from django.conf import settings

from kafkadash.domain.run_progress import RunNow
from kafkadash.observe.standing import Freshness
from kafkadash.reassign.models import Execution
from kafkadash.reassign.run.broker_absences import brokers_away
from kafkadash.reassign.run.measure import stored_progress

INTERVAL_S: float = settings.EXECUTE_INTERVAL
"""How often the cluster is read for a run while anything moves, in seconds."""
LONGEST_REST_S = 10.0
"""The same while nothing moves and nothing can be submitted."""


def execution_of(number: int, *, with_samples: bool = False) -> Execution | None:
    """The run of the request #``number`` with its cluster; without what only the report and, unless it is asked for,
    the chart needs.
    """
    return (
        Execution.objects.select_related("request", "request__cluster", "cluster", "cluster__capabilities")
        .defer("report", *([] if with_samples else ["samples"]))
        .filter(request=number)
        .first()
    )


def figures_of(execution: Execution) -> RunNow | None:
    """Of its last step; None before the first."""
    return stored_progress(execution)


def freshness_of_run(execution: Execution, now: datetime) -> Freshness:
    """Of the last look at the cluster."""
    return Freshness(execution.looked_at, _interval(execution, execution.looked_at), now)


def freshness_of_figures(execution: Execution, now: datetime) -> Freshness:
    """Of the offsets behind its progress."""
    return Freshness(execution.progress_at, _interval(execution, execution.progress_at), now)


def brokers_seen_away(execution: Execution, now: datetime) -> frozenset[int]:
    """Of the last look at the cluster; none where that is too old to tell."""
    return frozenset() if freshness_of_run(execution, now).stale else frozenset(brokers_away(execution.absences))


def _interval(execution: Execution, then: datetime | None) -> float:
    """As its last step chose it; who asks for something moves the next one, which makes nothing fresher."""
    planned = (execution.next_at - then).total_seconds() if then else 0.0
    return min(max(INTERVAL_S, planned), LONGEST_REST_S)
