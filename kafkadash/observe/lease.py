"""One collector at a time per cluster and kind, also when one of them sleeps past its turn.

A lease is a row's ``epoch`` and ``lease_until``. Taking it adds one to the epoch; whoever holds an older epoch finds
no row to update and can write nothing. All times are the database's clock.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta

from django.conf import settings
from django.db import connection, transaction
from django.db.models import DateTimeField, Func
from django.db.models.expressions import Combinable

from kafkadash.observe.models import CollectorRun

_TABLE = CollectorRun._meta.db_table
_SHAPES = 0x4B44  # the first half of the advisory lock's key; the second is the cluster's id
_FROM_NOW = "clock_timestamp() + make_interval(secs => %s)"


class _ClockTimestamp(Func):
    function = "clock_timestamp"
    output_field = DateTimeField()


def from_now(seconds: float) -> Combinable:
    """A time to come on the database's clock, for a column that is compared with that clock."""
    return _ClockTimestamp() + timedelta(seconds=seconds)


class LeaseLost(Exception):
    """Another collector took over; nothing of this one may be written any more."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Identity of a refresh: rows written by it carry both numbers."""

    epoch: int
    seq: int


@dataclass(frozen=True, slots=True)
class Lease:
    run_id: int
    epoch: int

    def renew(self) -> None:
        """Another full term. Raises LeaseLost when somebody else has taken over."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {_TABLE} SET lease_until = {_FROM_NOW} WHERE id = %s AND epoch = %s",
                [_ttl(), self.run_id, self.epoch],
            )
            if cursor.rowcount == 0:
                raise LeaseLost

    @contextmanager
    def write(self) -> Iterator[Stamp]:
        """A transaction that begins by proving the lease and giving the refresh its number.

        The update locks the run's row, so a collector that takes over meanwhile waits until this is committed.
        Raises LeaseLost, with nothing written, when the epoch has moved on.
        """
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute(
                    f"UPDATE {_TABLE} SET seq = seq + 1, lease_until = {_FROM_NOW}"
                    " WHERE id = %s AND epoch = %s RETURNING seq",
                    [_ttl(), self.run_id, self.epoch],
                )
                row = cursor.fetchone()
            if row is None:
                raise LeaseLost
            yield Stamp(epoch=self.epoch, seq=row[0])

    @contextmanager
    def write_portion(self) -> Iterator[None]:
        """A transaction before that of ``write``, proven in the same way; it gives the refresh no number."""
        with transaction.atomic():
            self.renew()
            yield

    def postpone(self, seconds: float) -> None:
        """Puts the next turn off, if the lease still holds."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {_TABLE} SET next_at = {_FROM_NOW} WHERE id = %s AND epoch = %s",
                [seconds, self.run_id, self.epoch],
            )

    def give_back(self) -> None:
        """Lets the next collector in at once. Finding the lease lost is fine here: there is nothing to give back."""
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE {_TABLE} SET lease_until = NULL, dispatched_until = NULL WHERE id = %s AND epoch = %s",
                [self.run_id, self.epoch],
            )


def one_writer_of_shapes(cluster_id: int) -> None:
    """Until this transaction ends, nobody else who calls this for the cluster writes its topics and brokers.

    Several collectors write different columns of the same rows; row locks taken in different orders would deadlock. So
    it comes first in a transaction, before any row of the cluster is written.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", [_SHAPES, cluster_id])


def take(run_id: int, *, only_if_due: bool = True) -> Lease | None:
    """The lease of a run, or None when somebody holds it (or, with ``only_if_due``, when its time has not come)."""
    due = " AND next_at <= clock_timestamp()" if only_if_due else ""
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {_TABLE} SET epoch = epoch + 1, lease_until = {_FROM_NOW}"
            f" WHERE id = %s AND (lease_until IS NULL OR lease_until < clock_timestamp()){due} RETURNING epoch",
            [_ttl(), run_id],
        )
        row = cursor.fetchone()
    return Lease(run_id, row[0]) if row else None


def claim_due(limit: int = 200, hold_s: float = 10) -> list[int]:
    """Ids of runs that are due and that nobody works on, marked for ``hold_s`` so that they are handed out once.

    The mark is only a courtesy against double work; a message that gets lost costs ``hold_s``, not the run.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE {_TABLE} SET dispatched_until = {_FROM_NOW} WHERE id IN ("
            f" SELECT r.id FROM {_TABLE} r JOIN clusters_cluster c ON c.id = r.cluster_id"
            "  WHERE c.enabled AND r.next_at <= clock_timestamp()"
            "   AND (r.lease_until IS NULL OR r.lease_until < clock_timestamp())"
            "   AND (r.dispatched_until IS NULL OR r.dispatched_until < clock_timestamp())"
            "  ORDER BY r.next_at LIMIT %s FOR UPDATE OF r SKIP LOCKED) RETURNING id",
            [hold_s, limit],
        )
        return [row[0] for row in cursor.fetchall()]


def hand_back(run_ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away, for runs that could not be handed to a worker."""
    CollectorRun.objects.filter(pk__in=run_ids).update(dispatched_until=None)


def _ttl() -> float:
    return float(settings.LEASE_TTL)
