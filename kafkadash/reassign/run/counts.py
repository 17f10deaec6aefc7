"""How many rows of a run are where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from kafkadash.domain.executor_state import BEFORE, ENDED, IN_FLIGHT, State
from kafkadash.domain.run_progress import RunNow
from kafkadash.reassign.models import Execution, Move, MoveState


@dataclass(frozen=True, slots=True)
class Counts:
    """How many rows are where, as they are stored. ``held_back`` of those that wait, ``asks`` of those in flight."""

    by_state: Mapping[State, int]
    asks: int
    stuck: int
    slow: int
    total: int

    def of(self, states: frozenset[State]) -> int:
        return sum(self.by_state.get(state, 0) for state in states)

    @property
    def waiting(self) -> int:
        """Also those that were not stored yet, before the run begins."""
        return self.of(BEFORE) + self.total - sum(self.by_state.values())

    @property
    def held_back(self) -> int:
        return self.by_state.get(State.WAITING, 0)

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
        return self.by_state.get(State.DONE, 0)

    @property
    def exceptions(self) -> Sequence[tuple[int, str]]:
        """Those that ended in another way, as (figure, words)."""
        return [
            (self.by_state[state], MoveState(state).label)
            for state in State
            if state in ENDED and state is not State.DONE and self.by_state.get(state)
        ]


def counts_of(execution: Execution, figures: RunNow | None) -> Counts:
    """One query."""
    rows = Move.objects.filter(execution=execution).order_by().values_list("state")
    found = list(rows.annotate(n=Count("pk"), asking=Count("pk", filter=Q(asks=True))))
    by_state = Counter({State(state): n for state, n, _ in found})
    return Counts(
        by_state,
        asks=sum(asks for _, _, asks in found),
        stuck=figures.stuck if figures else 0,
        slow=figures.slow if figures else 0,
        total=max(execution.rows, by_state.total()),
    )
