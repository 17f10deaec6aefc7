"""What is written when a run is over, whoever ended it: its last step, or an administrator who gave it up."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models.functions import Now

from kafkadash.domain.executor_state import BEFORE, IN_FLIGHT
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.reasons import CodedReason, reason_columns
from kafkadash.domain.row_reasons import RunEndedBefore, RunEndedUnseen
from kafkadash.domain.workflow_states import State
from kafkadash.reassign.models import Execution, Move, Order, Outcome
from kafkadash.reassign.run.order_answers import RunHadEnded
from kafkadash.reassign.run.report import report_when_it_ends


def leave_rows(execution: Execution, now: datetime) -> None:
    """Nobody can tell any more what becomes of those in flight; of the others nothing was sent."""
    own = Move.objects.filter(execution=execution)
    ended = {"hint": "", "hint_at": None, "since": now}
    own.filter(state__in=IN_FLIGHT).update(state=RowState.UNKNOWN, **reason_columns(RunEndedUnseen()), **ended)
    own.filter(state__in=BEFORE).update(state=RowState.CANCELLED, **reason_columns(RunEndedBefore()), **ended)


def last_columns(
    execution: Execution,
    state: State,
    now: datetime,
    *,
    outcome: Outcome | None = None,
    error: CodedReason | None = None,
) -> dict[str, Any]:
    """The columns of a run that is over, its report among them; what was asked of it and not done yet is answered.

    In the transaction that stores them, after the state of the request and the rows were stored.
    """
    left = Order.objects.filter(execution=execution, taken_at=None)
    left.update(taken_at=Now(), **reason_columns(RunHadEnded(), "answer"))
    word = outcome.value if outcome else ""
    return {
        "active": False,
        "ended_at": now,
        "outcome": word,
        "report": report_when_it_ends(execution, state, word, now),
        "held": [],
        **reason_columns(error, "error"),
        **reason_columns(None, "brake"),
    }
