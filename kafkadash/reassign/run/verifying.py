"""How a run ends: its rows are read once more, its throttles are clean or owed, and its request says how it went."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from django.db import transaction

from kafkadash.changes.models import ChangeRequest
from kafkadash.domain.executor_look import gone, settled, tells, unhinted
from kafkadash.domain.executor_state import UNREAD_FOR, Key, Observation
from kafkadash.domain.executor_state import Move as Row
from kafkadash.domain.executor_state import State as RowState
from kafkadash.domain.messages import reason_text
from kafkadash.domain.reasons import CodedReason, find_reason, is_same_reason, joined
from kafkadash.domain.row_reasons import ChangedSince, EndUntold, NotElected, NotReread, TopicDeletedSince
from kafkadash.domain.run_reasons import AllRefused
from kafkadash.domain.workflow_states import State, Trigger
from kafkadash.observe.lease import read_soon
from kafkadash.observe.models import Kind
from kafkadash.reassign.models import Outcome
from kafkadash.reassign.run.ending import last_columns, leave_rows
from kafkadash.reassign.run.lease import OBLIGATIONS_EVERY_S, next_turn
from kafkadash.reassign.run.look import AnotherCluster, Look
from kafkadash.reassign.run.running import Running

ANOTHER_FOR = timedelta(minutes=10)
"""So long another cluster may answer before the run is given up: an address may be wrong for a while."""
ANOTHER_TIMES = 20
"""And so many looks in a row: a worker that was away for long does not give up at its first one."""

_GIVEN_UP = (State.EXECUTING, State.CANCELLING, State.VERIFYING)
"""States that nobody could end otherwise; one that is paused waits for whoever paused it."""


def end(running: Running, request: ChangeRequest, rows: Sequence[Row], seen: Look, obligations: Sequence[str]) -> None:
    """The next state of a run of which every row has ended and nothing is left to be cleared now.

    In the transaction of the step, with the request's row locked.
    """
    looked = seen.observation
    if not looked.listing or not looked.quorum or any(move.hint is not None for move in rows):
        return
    state = running.state
    if state is State.EXECUTING:
        if rows and all(move.state is RowState.FAILED and find_reason(move.reason, EndUntold) is None for move in rows):
            _give_up(running, request, AllRefused(len(rows), rows[0].reason))
            return
        running.move(request, Trigger.ROWS_ENDED)
        running.save(next_at=next_turn(running.lease, 0))
    elif state is State.CANCELLING:
        running.move(request, Trigger.CLEAN, also=_tally(rows, obligations))
        _over(running, State.CANCELLED)
    elif state is State.VERIFYING:
        outcome = _outcome(rows, obligations)
        running.move(request, Trigger.VERIFIED, also={"outcome": outcome.value, **_tally(rows, obligations)})
        _over(running, State.DONE, outcome=outcome)


def reread(move: Row, seen: Observation, running: Running, elsewhere: Mapping[Key, CodedReason]) -> Row:
    """A row that was done, looked at once more: what somebody did with it since is said, after two looks.

    ``elsewhere``: what is to be said of rows whose replicas lie in other directories than planned; they are done.
    """
    now = running.now()
    topic = move.work.row.topic
    if move.state is RowState.DONE and topic in seen.unread and find_reason(move.reason, NotReread) is None:
        return settled(move, RowState.DONE, seen.at, now, joined(move.reason, NotReread(topic)), UNREAD_FOR)
    if move.state is not RowState.DONE or not tells(move, seen):
        return move
    if gone(move.work.row, seen):
        return settled(move, RowState.TOPIC_DELETED, seen.at, now, TopicDeletedSince(topic))
    partition = seen.partitions[move.key]
    if partition.listed is not None or partition.replicas == move.work.row.target:
        unled = None if partition.leader == move.work.row.target[0] else find_reason(move.reason, NotElected)
        return unhinted(move).to(RowState.DONE, now, elsewhere.get(move.key, unled and move.reason))
    return settled(move, RowState.SUPERSEDED, seen.at, now, ChangedSince(partition.replicas))


def gives_up(running: Running, failure: Exception) -> bool:
    """Whether the run ended as FAILED, because another cluster has answered for so long that it is no mishap."""
    own, state = running.execution, running.state
    since = own.looked_at or own.started_at
    if not isinstance(failure, AnotherCluster) or state not in _GIVEN_UP or since is None:
        return False
    often = own.failures >= ANOTHER_TIMES and is_same_reason(own.error, failure.reason)
    if not often or running.now() - since < ANOTHER_FOR:
        return False
    with running.write_state() as request:
        if request.state != state:
            return False
        leave_rows(running.execution, running.now())
        _give_up(running, request, failure.reason)
    running.publish()
    return True


def _give_up(running: Running, request: ChangeRequest, why: CodedReason) -> None:
    running.move(request, Trigger.GIVE_UP, reason=reason_text(why))
    _over(running, State.FAILED, error=why)


def _over(running: Running, state: State, *, outcome: Outcome | None = None, error: CodedReason | None = None) -> None:
    """What it still owes is worked off by later turns."""
    last = last_columns(running.execution, state, running.now(), outcome=outcome, error=error)
    running.save(**last, next_at=next_turn(running.lease, OBLIGATIONS_EVERY_S))
    cluster_id = running.execution.cluster_id
    transaction.on_commit(lambda: read_soon(cluster_id, [Kind.METADATA, Kind.REASSIGNMENTS, Kind.CONFIGS]))


def _outcome(rows: Sequence[Row], obligations: Sequence[str]) -> Outcome:
    if any(move.state is not RowState.DONE or move.reason for move in rows):
        return Outcome.EXCEPTIONS
    return Outcome.OBLIGATIONS if obligations else Outcome.CLEAN


def _tally(rows: Sequence[Row], obligations: Sequence[str]) -> dict[str, Any]:
    counts = Counter(move.state.value for move in rows)
    return {"rows": dict(sorted(counts.items())), "obligations": list(obligations)}
