"""The rows of a run: loading and storing them, and conversion between stored moves and values of the engine.

Only the holder of the run's lease writes rows. So the rows that a process has loaded are still current at its next step
if no other worker stepped in between: then the epoch of the lease is the next one.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from threading import Lock
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models import JSONField
from django.db.models.functions import Now

from kafkadash.changes.plan import PartitionMove as PlanRow
from kafkadash.core.leases import RowLease
from kafkadash.core.messages import CodedReason, reason_columns, stored_reason
from kafkadash.core.rows import update_rows, without_search_for_cycles
from kafkadash.execution.engine.state import CopyWork, Key, RowState
from kafkadash.execution.engine.state import RunRow as Row
from kafkadash.execution.models import Move

AT_ONCE = 1_000
"""Rows of one transaction: short also on a busy machine."""
KEPT_RUNS = 8
FORGOTTEN_AT_ONCE = 20_000

_REASON = ("reason_code", "reason_params")
_CHANGING = (
    "state",
    "since",
    "attempt",
    "unanswered",
    "first_at",
    "submitted_at",
    "acted_at",
    "cancelled_at",
    "reorders",
    "elections",
    "hint",
    "hint_at",
    "asks",
)


@dataclass(slots=True)
class RunRows:
    """``moves`` in the order of topic and partition; ``ids`` are their primary keys."""

    moves: list[Row]
    ids: Mapping[Key, int]


@without_search_for_cycles()
def load_rows(execution_id: int) -> RunRows:
    """All rows of a run; one query."""
    found = Move.objects.filter(execution=execution_id).order_by("topic", "partition")
    ids: dict[Key, int] = {}
    moves = []
    columns = ("pk", "topic", "topic_id", "partition", "current", "target", "log_dirs", "size_bytes", "mends_racks")
    rows = found.values_list(*columns, *_REASON, *_CHANGING)
    for pk, topic, topic_id, partition, current, target, dirs, size, mends, code, params, *changing in rows:
        row = PlanRow(topic, topic_id, partition, tuple(current), tuple(target), tuple(dirs))
        ids[topic, partition] = pk
        moves.append(_to_domain(CopyWork(row, size, mends), stored_reason(code, params), changing))
    return RunRows(moves, ids)


def store_rows(rows: RunRows, changed: Sequence[Row], copied: Mapping[Key, int | None] | None = None) -> None:
    """These rows as they are now, in one statement; in one more what was copied to those of them that ended, in bytes.

    To be called in a transaction that proved the lease.
    """
    update_rows(Move, {rows.ids[move.key]: _to_columns(move) for move in changed})
    found = {move.key: (copied or {}).get(move.key) for move in changed}
    update_rows(Move, {rows.ids[key]: {"moved_bytes": moved} for key, moved in found.items() if moved is not None})


def store_portions(
    lease: RowLease, rows: RunRows, changed: Sequence[Row], copied: Mapping[Key, int | None] | None = None
) -> None:
    """The same of any number of rows, in short transactions; for what stays true if nothing follows it.

    Raises LeaseLost; what was stored until then stays.
    """
    for start in range(0, len(changed), AT_ONCE):
        with lease.write_portion():
            store_rows(rows, changed[start : start + AT_ONCE], copied)


def insert_rows(lease: RowLease, execution_id: int, works: Sequence[CopyWork]) -> None:
    """All rows of a run that is about to begin, in short transactions; what an earlier try left is removed first.

    Raises LeaseLost.
    """
    _delete_all(lease, execution_id)
    for start in range(0, len(works), AT_ONCE):
        with lease.write_portion():
            _bulk_copy([_new_move(execution_id, work) for work in works[start : start + AT_ONCE]])


def forget_old_moves() -> int:
    """Deletes rows of runs that ended longer ago than ``settings.KEEP_MOVES_HOURS``, some at once; returns how many.

    The way back from such a run is not offered any more.
    """
    too_old = Now() - timedelta(hours=settings.KEEP_MOVES_HOURS)
    old = Move.objects.filter(execution__ended_at__lt=too_old).values_list("pk", flat=True)
    deleted, _ = Move.objects.filter(pk__in=list(old[:FORGOTTEN_AT_ONCE])).delete()
    return deleted


def _bulk_copy(new: Sequence[Move]) -> None:
    """By COPY: an INSERT of as many takes half a millisecond a row for its parameters alone."""
    fields: list[Any] = [field for field in Move._meta.concrete_fields if not field.primary_key]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    with connection.cursor() as cursor, cursor.copy(f'COPY "{Move._meta.db_table}" ({columns}) FROM STDIN') as copy:
        for move in new:
            copy.write_row([_to_copy_value(field, getattr(move, field.attname)) for field in fields])


def _to_copy_value(field: Any, value: Any) -> Any:
    return json.dumps(value) if isinstance(field, JSONField) else value


def _delete_all(lease: RowLease, execution_id: int) -> None:
    left = Move.objects.filter(execution=execution_id).order_by("pk").values_list("pk", flat=True)
    while True:
        with lease.write_portion():
            if not Move.objects.filter(pk__in=list(left[:AT_ONCE])).delete()[0]:
                return


class _KeptRows:
    """Rows of the runs that this process stepped last, with the epoch that they are of."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._of: OrderedDict[int, tuple[int, RunRows]] = OrderedDict()

    def take(self, execution_id: int, epoch: int) -> RunRows | None:
        """Remove and return the rows of the preceding epoch; a step that stored all its changes gives them back."""
        with self._lock:
            kept, rows = self._of.pop(execution_id, (None, None))
        return rows if kept is not None and kept + 1 == epoch else None

    def give(self, execution_id: int, epoch: int, rows: RunRows) -> None:
        with self._lock:
            self._of[execution_id] = epoch, rows
            while len(self._of) > KEPT_RUNS:
                self._of.popitem(last=False)

    def forget(self) -> None:
        """Forget all rows, as in a process that begins: everything is loaded anew."""
        with self._lock:
            self._of.clear()


kept = _KeptRows()


def _to_domain(work: CopyWork, reason: CodedReason | None, changing: Iterable[Any]) -> Row:
    values = dict(zip(_CHANGING, changing, strict=True))
    hint = values.pop("hint")
    return Row(work, RowState(values.pop("state")), reason, hint=RowState(hint) if hint else None, **values)


def _to_columns(move: Row) -> dict[str, Any]:
    values = {name: getattr(move, name) for name in _CHANGING}
    hint = move.hint.value if move.hint else ""
    return {**values, **reason_columns(move.reason), "state": move.state.value, "hint": hint}


def _new_move(execution_id: int, work: CopyWork) -> Move:
    row = work.row
    return Move(
        execution_id=execution_id,
        topic=row.topic,
        topic_id=row.topic_id,
        partition=row.partition,
        current=list(row.current),
        target=list(row.target),
        log_dirs=list(row.log_dirs),
        size_bytes=work.size_bytes,
        mends_racks=work.mends_racks,
    )
