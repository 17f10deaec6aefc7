"""Stored data of a run that its pages share: rows per state, the packed figures, and the age of both."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.db.models import Count, Q

from kafkadash.execution.engine.state import BEFORE, ENDED, IN_FLIGHT, RowState
from kafkadash.execution.models import Execution, Move, MoveState
from kafkadash.execution.progress.figures import RunNow
from kafkadash.execution.worker.broker_absences import brokers_away
from kafkadash.execution.worker.measure import stored_progress
from kafkadash.monitoring.freshness import FactFreshness


@dataclass(frozen=True, slots=True)
class RowCounts:
    """How many rows are where, as they are stored. ``held_back`` of those that wait, ``asks`` of those in flight."""

    by_state: Mapping[RowState, int]
    asks: int
    stuck: int
    slow: int
    total: int

    def of(self, states: frozenset[RowState]) -> int:
        return sum(self.by_state.get(state, 0) for state in states)

    @property
    def waiting(self) -> int:
        """Also those that were not stored yet, before the run begins."""
        return self.of(BEFORE) + self.total - sum(self.by_state.values())

    @property
    def held_back(self) -> int:
        return self.by_state.get(RowState.WAITING, 0)

    @property
    def flight(self) -> int:
        return self.of(IN_FLIGHT)

    @property
    def moving(self) -> int:
        """In flight without those that are stuck or ask."""
        return max(0, self.flight - self.stuck - self.asks)

    @property
    def ended(self) -> int:
        return self.of(ENDED)

    @property
    def done(self) -> int:
        return self.by_state.get(RowState.DONE, 0)

    @property
    def exceptions(self) -> Sequence[tuple[int, str]]:
        """Counts of the rows that ended in another way than done, as (figure, words)."""
        return [
            (self.by_state[state], MoveState(state).label)
            for state in RowState
            if state in ENDED and state is not RowState.DONE and self.by_state.get(state)
        ]


def counts_of(execution: Execution, figures: RunNow | None) -> RowCounts:
    """Return the counts of the run's rows by state. One query."""
    rows = Move.objects.filter(execution=execution).order_by().values_list("state")
    found = list(rows.annotate(n=Count("pk"), asking=Count("pk", filter=Q(asks=True))))
    by_state = Counter({RowState(state): n for state, n, _ in found})
    return RowCounts(
        by_state,
        asks=sum(asks for _, _, asks in found),
        stuck=figures.stuck if figures else 0,
        slow=figures.slow if figures else 0,
        total=max(execution.rows, by_state.total()),
    )


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
    """Return the figures of the run's last step; None before the first."""
    return stored_progress(execution)


def freshness_of_run(execution: Execution, now: datetime) -> FactFreshness:
    """Return the freshness of the last look at the cluster."""
    return FactFreshness(execution.looked_at, _interval(execution, execution.looked_at), now)


def freshness_of_figures(execution: Execution, now: datetime) -> FactFreshness:
    """Return the freshness of the offsets behind the run's progress."""
    return FactFreshness(execution.progress_at, _interval(execution, execution.progress_at), now)


def brokers_seen_away(execution: Execution, now: datetime) -> frozenset[int]:
    """Return the brokers that the last look at the cluster saw away; none where that look is too old to tell."""
    return frozenset() if freshness_of_run(execution, now).stale else frozenset(brokers_away(execution.absences))


def _interval(execution: Execution, then: datetime | None) -> float:
    """Return the interval in seconds that the last step chose; an order moves the next step and refreshes nothing."""
    planned = (execution.next_at - then).total_seconds() if then else 0.0
    return min(max(INTERVAL_S, planned), LONGEST_REST_S)
