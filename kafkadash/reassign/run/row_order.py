"""In what order the rows of a run are shown: those first that look worst."""

from __future__ import annotations

from datetime import UTC, datetime

from django.db.models import F

from kafkadash.domain.executor_state import IN_FLIGHT, State
from kafkadash.domain.run_progress import Mark, RowNow, RunNow
from kafkadash.reassign.models import Execution, Move

WAITING_ORDER = (F("size_bytes").desc(nulls_last=True), "topic", "partition")
ENDED_ORDER = (F("since").desc(nulls_last=True), "topic", "partition")

_STUCK, _SLOW, _ASKS, _UNKNOWN, _CANCELLING, _CATCHES_UP, _COPIES = range(7)
_RANKS = {State.UNKNOWN: _UNKNOWN, State.CANCELLING: _CANCELLING, State.CATCHING_UP: _CATCHES_UP}
_NEVER = datetime.max.replace(tzinfo=UTC)


class InFlight:
    """The keys of all rows in flight, those first that look worst."""

    def __init__(self, execution: Execution, figures: RunNow | None) -> None:
        self._seen = {(row.topic, row.partition): row for row in figures.rows} if figures else {}
        found = Move.objects.filter(execution=execution, state__in=IN_FLIGHT).values_list(
            "pk", "topic", "partition", "state", "asks", "since"
        )
        self._ranked = sorted(
            (self._rank(topic, partition, state, asks), since or _NEVER, topic, partition, pk)
            for pk, topic, partition, state, asks, since in found
        )

    def seen(self, move: Move) -> RowNow | None:
        return self._seen.get((move.topic, move.partition))

    def needing(self) -> list[int]:
        """Those that are stuck or ask."""
        return [row[-1] for row in self._ranked if row[0] in (_STUCK, _ASKS)]

    def others(self) -> list[int]:
        return [row[-1] for row in self._ranked if row[0] not in (_STUCK, _ASKS)]

    def _rank(self, topic: str, partition: int, state: str, asks: bool) -> int:
        seen = self._seen.get((topic, partition))
        if asks:
            return _ASKS
        if seen is not None and seen.mark is Mark.STUCK:
            return _STUCK
        if seen is not None and seen.mark is Mark.SLOW:
            return _SLOW
        return _RANKS.get(State(state), _COPIES)
