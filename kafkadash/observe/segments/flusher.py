"""The way out: whoever has the lease writes what waits in the outbox into files, each flush once or not at all.

A flush gets its numbers and its snapshots in one transaction; then its files are written, the manifest last; then a
second transaction takes the snapshots out of the outbox. Who dies in between leaves a flush that the next one finishes,
at the same addresses, from the same rows.
"""

from __future__ import annotations

import errno
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import structlog
from django.conf import settings
from django.db import connection, transaction

from kafkadash.domain.messages import message_text
from kafkadash.domain.segments import SegmentKind
from kafkadash.domain.wording import count
from kafkadash.observe import lease as leases
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import SegmentOutbox, SegmentWriter
from kafkadash.observe.segments import fail_points
from kafkadash.observe.segments.encoding import missing
from kafkadash.observe.segments.outbox_bound import drop_oldest, lose
from kafkadash.observe.segments.places import PlaceUnknown, below, place
from kafkadash.observe.segments.writing import AnotherWrites, Damaged, Flush, Snapshot, Steps, write

log = structlog.get_logger(__name__)

WRITERS = leases.Leased(SegmentWriter._meta.db_table, "seq")
FOLDER = "segments"
MOST_BYTES = 64_000_000
"""Of packed rows in one flush; what waits beyond them is written in the next, at once."""
MOST_SNAPSHOTS = 5000
_SNAPSHOT = ("pk", "cluster", "kind", "epoch", "seq", "observed_at", "rows", "not_answered", "errors", "duration_ms")
_NO_FLUSH: dict[str, Any] = {
    "flush_epoch": None, "flush_seq": None, "flush_at": None, "flush_token": "", "flush_rows": [], "committed_at": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Flushed:
    """What one turn came to; ``error`` is a sentence."""

    flushes: int
    snapshots: int
    error: str = ""


def segments_uri() -> str:
    return below(settings.PIPELINE_URI, FOLDER)


def ensure_writer() -> int:
    """The primary key of the one writer. Its epochs begin at the time of day: those of a database before it are lower.

    (A lease is taken at most every few seconds, so they never catch up with the time.)
    """
    known = SegmentWriter.objects.values_list("pk", flat=True).first()
    if known is not None:
        return known
    with connection.cursor() as cursor:
        cursor.execute("SELECT extract(epoch FROM clock_timestamp())::bigint")
        (epoch,) = cursor.fetchone()
    SegmentWriter.objects.bulk_create([SegmentWriter(pk=1, epoch=epoch)], ignore_conflicts=True)
    return 1


def claim_due(hold_s: float = 10) -> list[int]:
    """The writer's id when its time has come; nothing where there is no PyArrow to write with."""
    return [] if missing() else leases.claim(WRITERS, "WHERE true", 1, hold_s)


def hand_back(ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away."""
    leases.unclaim(WRITERS, ids)


def flush(writer_id: int, *, only_if_due: bool = True, uri: str = "") -> Flushed | None:
    """Writes everything that waits; None when another one is at it, or its time has not come.

    What is in the way is stored as a sentence and tried again at the next turn.
    """
    lease = leases.take(writer_id, only_if_due=only_if_due, of=WRITERS)
    if lease is None:
        return None
    uri = uri or segments_uri()
    done = Flushed(0, 0)
    try:
        drop_oldest(writer_id, lease.write_portion)
        while (pending := _bound(lease) or _bind(lease)) is not None:
            done = Flushed(done.flushes + 1, done.snapshots + _finish(lease, pending, uri))
        return done
    except leases.LeaseLost:
        log.warning("segments.lease_lost", epoch=lease.epoch)
        return Flushed(done.flushes, done.snapshots)
    except (OSError, PlaceUnknown, AnotherWrites) as error:
        return _failed(lease, done, uri, error)
    finally:
        spent = (lease.now() - lease.taken_at).total_seconds()
        lease.postpone(max(0.0, settings.SEGMENT_FLUSH_SECONDS - spent))
        lease.give_back()


def _bound(lease: leases.Lease) -> Flush | None:
    """The flush that was begun and is not known to be whole."""
    row = SegmentWriter.objects.get(pk=lease.run_id)
    if row.flush_epoch is None or row.flush_seq is None or row.flush_at is None:
        return None
    return Flush(row.flush_epoch, row.flush_seq, row.flush_at, row.flush_token)


def _bind(lease: leases.Lease) -> Flush | None:
    """Gives what waits, the oldest first, the numbers of a new flush; None where nothing waits."""
    ids = _oldest()
    if not ids:
        return None
    with lease.write() as stamp:
        last = SegmentWriter.objects.values_list("flushed_at", flat=True).get(pk=lease.run_id)
        # Not before the last one, even if the clock went back: readers go on from the last address.
        at = max(filter(None, (lease.now(), last)))
        new = Flush(stamp.epoch, stamp.seq, at, secrets.token_hex(16))
        SegmentWriter.objects.filter(pk=lease.run_id).update(
            flush_epoch=new.epoch,
            flush_seq=new.seq,
            flush_at=new.at,
            flush_token=new.token,
            flush_rows=ids,
            committed_at=None,
        )
    fail_points.at_point(fail_points.BOUND)
    return new


def _oldest() -> list[int]:
    """At least one, if there is one; then as many as ``MOST_BYTES`` allows."""
    ids: list[int] = []
    size = 0
    for pk, bytes_ in SegmentOutbox.objects.order_by("pk").values_list("pk", "size")[:MOST_SNAPSHOTS]:
        size += bytes_
        if ids and size > MOST_BYTES:
            break
        ids.append(pk)
    return ids


def _finish(lease: leases.Lease, pending: Flush, uri: str) -> int:
    """Returns how many snapshots it had."""
    ids = SegmentWriter.objects.values_list("flush_rows", flat=True).get(pk=lease.run_id)
    target, steps = place(uri), _Leased(lease)
    while True:
        snapshots = _snapshots(ids)
        try:
            write(target, pending, snapshots, steps)
            break
        except Damaged as error:
            _drop_damaged(lease, error.snapshot)
    fail_points.at_point(fail_points.COMMITTED)
    with lease.write_portion():
        SegmentOutbox.objects.filter(pk__in=ids).delete()
        SegmentWriter.objects.filter(pk=lease.run_id).update(
            **_NO_FLUSH, flushed_at=max(lease.now(), pending.at), last_error="", failures=0
        )
    return len(snapshots)


def _snapshots(ids: Sequence[int]) -> list[Snapshot]:
    """In the order in which they were queued; the rows of each are fetched when they are written."""
    found = SegmentOutbox.objects.filter(pk__in=ids).order_by("pk").values_list(*_SNAPSHOT)
    return [
        Snapshot(pk, cluster, SegmentKind(kind), epoch, seq, at, rows, partial(_data, pk), tuple(silent), errors, ms)
        for pk, cluster, kind, epoch, seq, at, rows, silent, errors, ms in found
    ]


def _data(pk: int) -> bytes:
    return bytes(SegmentOutbox.objects.values_list("data", flat=True).get(pk=pk))


class _Leased(Steps):
    """A file shows only after the lease was renewed: nobody else may write within its term."""

    def __init__(self, lease: leases.Lease) -> None:
        self._lease = lease
        self.holder = lease.epoch

    def going_on(self) -> None:
        self._lease.keep(settings.LEASE_TTL / 2)

    def still_ours(self) -> None:
        self._lease.renew()

    def committed_at(self, flush: Flush) -> datetime:
        """The time at which the first of those who come so far comes so far."""
        with self._lease.write_portion():
            mine = SegmentWriter.objects.filter(pk=self._lease.run_id)
            at = mine.values_list("committed_at", flat=True).get() or self._lease.now()
            mine.update(committed_at=at)
        return at


def _drop_damaged(lease: leases.Lease, snapshot: Snapshot) -> None:
    log.error("segments.damaged", cluster=snapshot.cluster, kind=snapshot.kind, epoch=snapshot.epoch, seq=snapshot.seq)
    with lease.write_portion():
        lose(
            lease.run_id,
            {snapshot.id: message_text(CollectionErrorCode.FACTS_DAMAGED, rows=count(snapshot.rows, "row"))},
        )


def _failed(lease: leases.Lease, done: Flushed, uri: str, error: Exception) -> Flushed:
    sentence = str(error)
    if isinstance(error, OSError):
        sentence = _os_sentence(error, uri)
    with transaction.atomic():
        row = SegmentWriter.objects.select_for_update().get(pk=lease.run_id)
        if row.epoch != lease.epoch:  # whoever took over took away what this one was about to rename
            log.warning("segments.lease_lost", epoch=lease.epoch)
            return done
        if isinstance(error, AnotherWrites):
            _begin_anew(row)
        row.last_error, row.failures = sentence, row.failures + 1
        row.save()
    log.warning("segments.not_written", error=sentence)
    return Flushed(done.flushes, done.snapshots, sentence)


def _os_sentence(error: OSError, uri: str) -> str:
    seconds = settings.SEGMENT_FLUSH_SECONDS
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return message_text(CollectionErrorCode.DISK_FULL, place=uri, seconds=seconds)
    fault = error.strerror or (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return message_text(CollectionErrorCode.SEGMENTS_NOT_WRITTEN, place=uri, fault=fault, seconds=seconds)


def _begin_anew(row: SegmentWriter) -> None:
    """After a restored backup numbers would repeat: the flush is bound again, under epochs of the present."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT greatest(%s, extract(epoch FROM clock_timestamp())::bigint)", [row.epoch])
        row.epoch = cursor.fetchone()[0]
    row.lease_until = row.dispatched_until = None  # of the epoch that is over: its holder cannot give it back
    for name, value in _NO_FLUSH.items():
        setattr(row, name, value)
