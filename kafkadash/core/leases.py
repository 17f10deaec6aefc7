"""Leases on rows, such as a collector, a run or a job: one worker at a time, even if a worker sleeps past its turn.

A lease is ``epoch`` and ``lease_until`` of a row. Taking the lease adds one to the epoch; a worker with an older epoch
finds no row to update and can write nothing. All times are on the database's clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DateTimeField, Func
from django.db.models.expressions import Combinable

from kafkadash.core import clock

_SHAPES = 0x4B44  # the first half of the advisory lock's key; the second is the cluster's id
_FROM_NOW = "clock_timestamp() + make_interval(secs => %s)"


@dataclass(frozen=True, slots=True)
class LeasedTable:
    """A table whose rows have ``epoch``, ``lease_until`` and ``dispatched_until``. ``order``: the column by which rows
    take their turn, where ``scheduled`` the time from which each may be taken.

    ``counter`` is its column that counts what was written under a lease, ``overruns``, where there is one, that which
    counts leases that ran out instead of being given back. Rows that are taken once have a state: ``waiting`` and
    ``holding`` are SQL conditions of a row that may be taken and of one that is, ``begins`` sets its columns then.
    """

    table: str
    counter: str = ""
    overruns: str = ""
    order: str = "next_at"
    scheduled: bool = True
    waiting: str = "TRUE"
    holding: str = "TRUE"
    begins: str = ""


class _ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = DateTimeField()


def from_now(seconds: float) -> Combinable:
    """A time to come on the database's clock, for a column that is compared with that clock."""
    return _ClockTimestamp() + timedelta(seconds=seconds)


class LeaseLost(Exception):
    """Another worker took over; nothing of this one may be written any more."""


@dataclass(frozen=True, slots=True)
class WriteStamp:
    """Identity of what is written: rows of a refresh carry both numbers."""

    epoch: int
    seq: int


@dataclass(slots=True)
class RowLease:
    """``row_id`` is the row's primary key; ``taken_at`` is by the database's clock. Used by one thread."""

    of: LeasedTable
    row_id: Any
    epoch: int
    taken_at: datetime
    _ends: float = field(repr=False)
    _taken: float = field(repr=False)

    def now(self) -> datetime:
        """On the database's clock, carried on by this machine's: the same in all processes that hold it in turn."""
        return self.taken_at + timedelta(seconds=time.monotonic() - self._taken)

    def left(self) -> float:
        """Seconds until somebody else may take over, at least so many: counted from before it was asked for."""
        return self._ends - time.monotonic()

    def update(self, assignments: str, values: Sequence[Any] = (), returning: str = "epoch") -> Any:
        """Set columns of the row; return the value of another. Raises LeaseLost when somebody else has taken over."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {self.of.table} SET {assignments} WHERE id = %s AND epoch = %s AND {self.of.holding}"
                f" RETURNING {returning}",
                [*values, self.row_id, self.epoch],
            )
            row = cursor.fetchone()
        if row is None:
            raise LeaseLost
        return row[0]

    def renew(self, assignments: str = "", values: Sequence[Any] = (), returning: str = "epoch") -> Any:
        """Take another full term, and do as ``update``. Raises LeaseLost."""
        ends = _compute_end()
        found = self.update(f"{assignments}lease_until = {_FROM_NOW}", [*values, _ttl()], returning)
        self._ends = ends
        return found

    def keep(self, seconds: float) -> None:
        """Renews it unless so much is left. Raises LeaseLost."""
        if self.left() < seconds:
            self.renew()

    @contextmanager
    def write(self) -> Iterator[WriteStamp]:
        """A transaction that begins by proving the lease and giving what is written its number.

        The update locks the row, so a worker that takes over meanwhile waits until this is committed.
        Raises LeaseLost, with nothing written, when the epoch has moved on.
        """
        with transaction.atomic():
            counter = self.of.counter
            seq = self.renew(f"{counter} = {counter} + 1, ", returning=counter)
            yield WriteStamp(epoch=self.epoch, seq=seq)

    @contextmanager
    def write_portion(self) -> Iterator[None]:
        """A transaction beside that of ``write``, proven in the same way; it gives nothing a number."""
        with transaction.atomic():
            self.renew()
            yield

    def postpone(self, seconds: float) -> None:
        """Puts the next turn off, if the lease still holds."""
        with suppress(LeaseLost):
            self.update(f"next_at = {_FROM_NOW}", [seconds])

    def give_back(self) -> None:
        """Lets the next worker in at once. Finding the lease lost is fine here: there is nothing to give back."""
        with suppress(LeaseLost):
            self.update("lease_until = NULL, dispatched_until = NULL")


def one_writer_of_shapes(cluster_id: int) -> None:
    """Until this transaction ends, nobody else who calls this for the cluster writes its topics and brokers.

    Several collectors write different columns of the same rows; row locks taken in different orders would deadlock. So
    it comes first in a transaction, before any row of the cluster is written.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SHAPES, cluster_id])


def take(row_id: Any, *, of: LeasedTable, only_if_due: bool = True) -> RowLease | None:
    """The lease of a row, or None when somebody holds it (or, with ``only_if_due``, when its time has not come).

    What this process reads from now on is stamped with the database's time (``core.clock``).
    """
    due = f" AND {of.order} <= clock_timestamp()" if only_if_due else ""
    count = f", {of.overruns} = {of.overruns} + (lease_until IS NOT NULL)::int" if of.overruns else ""
    ends, began = _compute_end(), time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {of.table} SET {of.begins}epoch = epoch + 1, lease_until = {_FROM_NOW}{count}"
            f" WHERE id = %s AND {of.waiting} AND (lease_until IS NULL OR lease_until < clock_timestamp()){due}"
            " RETURNING epoch, clock_timestamp()",
            [_ttl(), row_id],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    clock.set_right(row[1], time.monotonic() - began)
    return RowLease(of, row_id, row[0], row[1], ends, time.monotonic())


def claim(
    of: LeasedTable,
    where: str,
    limit: int,
    hold_s: float,
    values: Sequence[str | float] = (),
    *,
    most_s: float = 0,
) -> list[Any]:
    """Ids of rows that are due and that nobody works on, marked for ``hold_s`` so that they are handed out once.

    The mark is only a courtesy against double work; a message that gets lost costs ``hold_s``, not the row. A row that
    nobody took for long is marked for half of that time, at most ``most_s``: messages do not pile up for a worker that
    is away. ``where`` is SQL about the row ``r``, with its joins, the word WHERE and its ``values``.
    """
    overdue = f"extract(epoch FROM clock_timestamp() - {of.order}) / 2"
    due = f" AND r.{of.order} <= clock_timestamp()" if of.scheduled else ""
    hold = f"clock_timestamp() + make_interval(secs => greatest(%s, least(%s, {overdue})))"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {of.table} SET dispatched_until = {hold} WHERE id IN ("
            f" SELECT r.id FROM {of.table} r {where}{due}"
            "   AND (r.lease_until IS NULL OR r.lease_until < clock_timestamp())"
            "   AND (r.dispatched_until IS NULL OR r.dispatched_until < clock_timestamp())"
            f"  ORDER BY r.{of.order} LIMIT %s FOR NO KEY UPDATE OF r SKIP LOCKED) RETURNING id",
            [hold_s, most_s, *values, limit],
        )
        return [row[0] for row in cursor.fetchall()]


def set_back(of: LeasedTable, seconds: float) -> None:
    """Follows the database's clock, which was set back by so much: else nothing is due for as long."""
    back = "make_interval(secs => %s)"
    moved = ", ".join(f"{column} = {column} - {back}" for column in ("next_at", "lease_until", "dispatched_until"))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {of.table} SET {moved}", [seconds] * 3)


def unclaim(of: LeasedTable, ids: Sequence[Any]) -> None:
    """Takes the mark of ``claim`` away."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {of.table} SET dispatched_until = NULL WHERE id = ANY(%s)", [[*ids]])


def _ttl() -> float:
    return float(settings.LEASE_TTL)


def _compute_end() -> float:
    return time.monotonic() + _ttl()
