"""One worker at a time on a row, also when one of them sleeps past its turn: on a collector, on a run of a change.

A lease is a row's ``epoch`` and ``lease_until``. Taking it adds one to the epoch; whoever holds an older epoch finds
no row to update and can write nothing. All times are the database's clock.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DateTimeField, Func
from django.db.models.expressions import Combinable

from kafkadash.kafka import clock
from kafkadash.observe.models import CollectorRun

_SHAPES = 0x4B44  # the first half of the advisory lock's key; the second is the cluster's id
_FROM_NOW = "clock_timestamp() + make_interval(secs => %s)"


@dataclass(frozen=True, slots=True)
class Leased:
    """A table whose rows have ``epoch``, ``lease_until``, ``next_at`` and ``dispatched_until``.

    ``counter`` is its column that counts what was written under a lease, ``overruns``, where there is one, that which
    counts leases that ran out instead of being given back.
    """

    table: str
    counter: str
    overruns: str = ""


COLLECTORS = Leased(CollectorRun._meta.db_table, "seq", overruns="overruns")


class _ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = DateTimeField()


def from_now(seconds: float) -> Combinable:
    """A time to come on the database's clock, for a column that is compared with that clock."""
    return _ClockTimestamp() + timedelta(seconds=seconds)


class LeaseLost(Exception):
    """Another worker took over; nothing of this one may be written any more."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identity of what is written: rows of a refresh carry both numbers."""

    epoch: int
    seq: int


@dataclass(slots=True)
class Lease:
    """``run_id`` is the row's primary key; ``taken_at`` is by the database's clock. Used by one thread."""

    of: Leased
    run_id: int
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

    def renew(self) -> None:
        """Another full term. Raises LeaseLost when somebody else has taken over."""
        ends = _ends()
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {self.of.table} SET lease_until = {_FROM_NOW} WHERE id = %s AND epoch = %s",
                [_ttl(), self.run_id, self.epoch],
            )
            if cursor.rowcount == 0:
                raise LeaseLost
        self._ends = ends

    def keep(self, seconds: float) -> None:
        """Renews it unless so much is left. Raises LeaseLost."""
        if self.left() < seconds:
            self.renew()

    @contextmanager
    def write(self) -> Iterator[Stamp]:
        """A transaction that begins by proving the lease and giving what is written its number.

        The update locks the row, so a worker that takes over meanwhile waits until this is committed.
        Raises LeaseLost, with nothing written, when the epoch has moved on.
        """
        with transaction.atomic():
            ends = _ends()
            counter = self.of.counter
            with connection.cursor() as cursor:
                cursor.execute(
                    f"UPDATE {self.of.table} SET {counter} = {counter} + 1, lease_until = {_FROM_NOW}"
                    f" WHERE id = %s AND epoch = %s RETURNING {counter}",
                    [_ttl(), self.run_id, self.epoch],
                )
                row = cursor.fetchone()
            if row is None:
                raise LeaseLost
            self._ends = ends
            yield Stamp(epoch=self.epoch, seq=row[0])

    @contextmanager
    def write_portion(self) -> Iterator[None]:
        """A transaction beside that of ``write``, proven in the same way; it gives nothing a number."""
        with transaction.atomic():
            self.renew()
            yield

    def postpone(self, seconds: float) -> None:
        """Puts the next turn off, if the lease still holds."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {self.of.table} SET next_at = {_FROM_NOW} WHERE id = %s AND epoch = %s",
                [seconds, self.run_id, self.epoch],
            )

    def give_back(self) -> None:
        """Lets the next worker in at once. Finding the lease lost is fine here: there is nothing to give back."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {self.of.table} SET lease_until = NULL, dispatched_until = NULL WHERE id = %s AND epoch = %s",
                [self.run_id, self.epoch],
            )


def one_writer_of_shapes(cluster_id: int) -> None:
    """Until this transaction ends, nobody else who calls this for the cluster writes its topics and brokers.

    Several collectors write different columns of the same rows; row locks taken in different orders would deadlock. So
    it comes first in a transaction, before any row of the cluster is written.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SHAPES, cluster_id])


def take(run_id: int, *, only_if_due: bool = True, of: Leased = COLLECTORS) -> Lease | None:
    """The lease of a row, or None when somebody holds it (or, with ``only_if_due``, when its time has not come).

    What this process reads from now on is stamped with the database's time (``kafka.clock``).
    """
    due = " AND next_at <= clock_timestamp()" if only_if_due else ""
    count = f", {of.overruns} = {of.overruns} + (lease_until IS NOT NULL)::int" if of.overruns else ""
    ends, asked = _ends(), time.monotonic()
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {of.table} SET epoch = epoch + 1, lease_until = {_FROM_NOW}{count}"
            f" WHERE id = %s AND (lease_until IS NULL OR lease_until < clock_timestamp()){due}"
            " RETURNING epoch, clock_timestamp()",
            [_ttl(), run_id],
        )
        row = cursor.fetchone()
    if row is None:
        return None
    clock.set_right(row[1], time.monotonic() - asked)
    return Lease(of, run_id, row[0], row[1], ends, time.monotonic())


def read_soon(cluster_id: int, kinds: Iterable[str]) -> None:
    """Makes these kinds due now, because something says that what is stored of them may not hold any more.

    A refresh that is under way began before that: it is followed by another. Kinds that must not be
    tried quickly keep their pause: refused credentials, and refreshes that hang.
    """
    runs = CollectorRun.objects.filter(
        cluster=cluster_id, kind__in=[str(kind) for kind in kinds], refusals=0, overruns=0
    )
    runs.update(next_at=from_now(0))


def claim_due(limit: int = 200, hold_s: float = 10, most_s: float = 60) -> list[int]:
    """Ids of collectors that are due and that nobody works on, marked as ``claim`` does."""
    where = "JOIN clusters_cluster c ON c.id = r.cluster_id WHERE c.enabled"
    return claim(COLLECTORS, where, limit, hold_s, most_s=most_s)


def claim(
    of: Leased,
    where: str,
    limit: int,
    hold_s: float,
    values: Sequence[str | float] = (),
    *,
    most_s: float = 0,
) -> list[int]:
    """Ids of rows that are due and that nobody works on, marked for ``hold_s`` so that they are handed out once.

    The mark is only a courtesy against double work; a message that gets lost costs ``hold_s``, not the row. A row that
    nobody took for long is marked for half of that time, at most ``most_s``: messages do not pile up for a worker that
    is away. ``where`` is SQL about the row ``r``, with its joins, the word WHERE and its ``values``.
    """
    overdue = "extract(epoch FROM clock_timestamp() - next_at) / 2"
    hold = f"clock_timestamp() + make_interval(secs => greatest(%s, least(%s, {overdue})))"
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {of.table} SET dispatched_until = {hold} WHERE id IN ("
            f" SELECT r.id FROM {of.table} r {where} AND r.next_at <= clock_timestamp()"
            "   AND (r.lease_until IS NULL OR r.lease_until < clock_timestamp())"
            "   AND (r.dispatched_until IS NULL OR r.dispatched_until < clock_timestamp())"
            "  ORDER BY r.next_at LIMIT %s FOR NO KEY UPDATE OF r SKIP LOCKED) RETURNING id",
            [hold_s, most_s, *values, limit],
        )
        return [row[0] for row in cursor.fetchall()]


def set_back(of: Leased, seconds: float) -> None:
    """Follows the database's clock, which was set back by so much: else nothing is due for as long."""
    back = "make_interval(secs => %s)"
    moved = ", ".join(f"{column} = {column} - {back}" for column in ("next_at", "lease_until", "dispatched_until"))
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {of.table} SET {moved}", [seconds] * 3)


def hand_back(run_ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away, for collectors that could not be handed to a worker."""
    unclaim(COLLECTORS, run_ids)


def unclaim(of: Leased, ids: list[int]) -> None:
    """Takes the mark of ``claim`` away."""
    with connection.cursor() as cursor:
        cursor.execute(f"UPDATE {of.table} SET dispatched_until = NULL WHERE id = ANY(%s)", [ids])


def _ttl() -> float:
    return float(settings.LEASE_TTL)


def _ends() -> float:
    return time.monotonic() + _ttl()
