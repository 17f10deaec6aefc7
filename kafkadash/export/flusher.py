"""Flushes of the outbox: the holder of the lease writes waiting facts to segment files, each flush once or not at all.

A flush gets its numbers and its snapshots in one transaction; then its files are written, the manifest last; then a
second transaction removes the snapshots from the outbox. If the writer dies in between, the next one finishes the flush
at the same addresses, from the same rows.

The outbox is bounded: while nothing can be written, the oldest rows are dropped, counted and reported. The setting
``SEGMENT_FAIL_POINTS`` names a file of points at which a test has the process killed (``core.fail_points``).
"""

from __future__ import annotations

import errno
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from typing import IO, Any

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models import F, Sum
from django.db.models.functions import Now

from kafkadash.core import leases
from kafkadash.core.errors import UserError
from kafkadash.core.fail_points import FailFile
from kafkadash.core.formatting import format_size
from kafkadash.core.messages import CodedMessage, choose_plural, coded, message_columns
from kafkadash.core.rows import update_rows
from kafkadash.export.encoding import FLUSH_KEY, Columns, SegmentFile, UnreadableFacts, explain_missing
from kafkadash.export.errors import ExportErrorCode
from kafkadash.export.models import SegmentOutbox, SegmentWriter
from kafkadash.export.places import PlaceUnknown, StoragePlace, join_uri, open_place
from kafkadash.export.schema import SCHEMA_VERSION, SegmentKind, file_address


class FlushMoment(StrEnum):
    """Step of writing a file: opened under a name that begins with ``_``, fully on disk there, under its final name."""

    BEGUN = "begun"
    WRITTEN = "written"
    SHOWN = "shown"


BOUND, COMMITTED = "bound", "committed"
"""The flush has its numbers and snapshots; its files are whole and it is not known yet."""
POINTS = (BOUND, *(f"{kind}.{at}" for kind in SegmentKind for at in FlushMoment), COMMITTED)


def reach_fail_point(kind: SegmentKind, at: FlushMoment) -> None:
    at_point(f"{kind}.{at}")


def at_point(point: str) -> None:
    if _armed is not None:
        _armed.reached(point)


_armed = FailFile.named_by("SEGMENT_FAIL_POINTS", settings.SEGMENT_FAIL_POINTS, POINTS)


class AnotherWrites(UserError):
    """A file of this flush's address is whole and of another flush."""


class DamagedFacts(Exception):
    """A snapshot whose rows cannot be read back."""

    def __init__(self, snapshot: OutboxSnapshot) -> None:
        super().__init__(snapshot.id)
        self.snapshot = snapshot


@dataclass(frozen=True, slots=True)
class OutboxSnapshot:
    """A row of the outbox; ``data`` fetches its rows, ``errors`` are messages as of ``CodedMessage.as_json``."""

    id: int
    cluster: str
    kind: SegmentKind
    epoch: int
    seq: int
    observed_at: datetime
    rows: int
    data: Callable[[], bytes]
    not_answered: Sequence[int] = ()
    errors: Sequence[Mapping[str, Any]] = ()
    duration_ms: int = 0

    def identity(self) -> Columns:
        return {
            "schema": SCHEMA_VERSION,
            "cluster": self.cluster,
            "epoch": self.epoch,
            "seq": self.seq,
            "observed_at": self.observed_at,
        }


@dataclass(frozen=True, slots=True)
class PendingFlush:
    """``at`` gives date and hour of its addresses; ``token`` stands in its files and is nobody else's."""

    epoch: int
    seq: int
    at: datetime
    token: str

    def address(self, kind: SegmentKind) -> str:
        return file_address(kind, self.at, self.epoch, self.seq)


class FlushSteps:
    """Callbacks of a writer during a flush. This implementation is for a single writer."""

    holder = 0
    """Epoch of the lease under which is written."""

    def going_on(self) -> None:
        """Now and then, while a file is being written."""

    def still_ours(self) -> None:
        """Before a file shows. Raises where somebody else has taken over."""

    def committed_at(self, flush: PendingFlush) -> datetime:
        """Return the commit time in the manifest, which is the same for every writer of this flush."""
        return flush.at


def write_flush(
    place: StoragePlace, flush: PendingFlush, snapshots: Sequence[OutboxSnapshot], steps: FlushSteps
) -> None:
    """Writes what is not there yet, so that it may be called again after any interruption.

    Raises OSError where the place cannot be written to, AnotherWrites, Damaged, and what ``steps`` raise.
    """
    for kind in SegmentKind:
        of_kind = [each for each in snapshots if each.kind is kind and each.rows]
        if of_kind:
            _write_file(place, flush, kind, steps, partial(_write_facts, flush, kind, of_kind, steps))
    committed_at = steps.committed_at(flush)
    _write_file(
        place,
        flush,
        SegmentKind.MANIFEST,
        steps,
        partial(_write_manifest, flush, snapshots, committed_at),
    )


def _write_file(
    place: StoragePlace, flush: PendingFlush, kind: SegmentKind, steps: FlushSteps, fill: Callable[[IO[bytes]], None]
) -> None:
    if _is_there(place, flush, kind):
        return

    def filled(out: IO[bytes]) -> None:
        reach_fail_point(kind, FlushMoment.BEGUN)
        fill(out)

    def before_it_shows() -> None:
        reach_fail_point(kind, FlushMoment.WRITTEN)
        steps.still_ours()

    place.write(flush.address(kind), steps.holder, filled, before_it_shows)
    reach_fail_point(kind, FlushMoment.SHOWN)


def _is_there(place: StoragePlace, flush: PendingFlush, kind: SegmentKind) -> bool:
    """Return whether an earlier try of this flush wrote this file. An incomplete file is written again."""
    try:
        found = place.footer(flush.address(kind))
    except UnreadableFacts:
        return False
    if found is None:
        return False
    if found.metadata.get(FLUSH_KEY) != flush.token:
        raise AnotherWrites(ExportErrorCode.ANOTHER_WRITES_HERE, file=flush.address(kind))
    return True


def _write_facts(
    flush: PendingFlush, kind: SegmentKind, snapshots: Sequence[OutboxSnapshot], steps: FlushSteps, out: IO[bytes]
) -> None:
    with SegmentFile(out, kind, flush.token) as file:
        for snapshot in snapshots:
            try:
                file.add(snapshot.identity(), snapshot.data(), snapshot.rows)
            except UnreadableFacts as error:
                raise DamagedFacts(snapshot) from error
            steps.going_on()


def _write_manifest(
    flush: PendingFlush, snapshots: Sequence[OutboxSnapshot], committed_at: datetime, out: IO[bytes]
) -> None:
    each = list(snapshots)
    columns: Columns = {
        "schema": SCHEMA_VERSION,
        "cluster": [s.cluster for s in each],
        "epoch": [s.epoch for s in each],
        "seq": [s.seq for s in each],
        "observed_at": [s.observed_at for s in each],
        "kind": [str(s.kind) for s in each],
        "rows": [s.rows for s in each],
        "not_answered": [list(s.not_answered) for s in each],
        "errors": [json.dumps(s.errors) if s.errors else None for s in each],
        "duration_ms": [s.duration_ms for s in each],
        "file": [flush.address(s.kind) if s.rows else "" for s in each],
        "flush_epoch": flush.epoch,
        "flush_seq": flush.seq,
        "committed_at": committed_at,
    }
    with SegmentFile(out, SegmentKind.MANIFEST, flush.token) as file:
        file.add_rows(columns)


log = structlog.get_logger(__name__)

_AT_ONCE = 500


def drop_oldest(writer_id: int, portion: Callable[[], AbstractContextManager[None]]) -> int:
    """Drops rows of the oldest snapshots until what waits is within ``SEGMENT_OUTBOX_BYTES``; returns how many went.

    The snapshots stay, so that the manifest says what is missing; those older than segments are kept go as well. A
    flush that is under way keeps its rows. Each ``portion`` is a transaction.
    """
    bound = set(SegmentWriter.objects.values_list("flush_rows", flat=True).get(pk=writer_id))
    waiting = SegmentOutbox.objects.exclude(pk__in=bound)
    over = (SegmentOutbox.objects.aggregate(total=Sum("size"))["total"] or 0) - settings.SEGMENT_OUTBOX_BYTES
    dropped = 0
    while over > 0:
        ids = []
        for pk, bytes_ in waiting.filter(size__gt=0).order_by("pk").values_list("pk", "size")[:_AT_ONCE]:
            ids.append(pk)
            over -= bytes_
            if over <= 0:
                break
        if not ids:
            break
        most = format_size(settings.SEGMENT_OUTBOX_BYTES)
        rows = dict(SegmentOutbox.objects.filter(pk__in=ids).values_list("pk", "rows"))
        with portion():
            dropped += discard_rows(
                writer_id,
                {
                    pk: coded(ExportErrorCode.FACTS_LOST, rows=choose_plural("# row|# rows", each), size=most)
                    for pk, each in rows.items()
                },
            )
    old = waiting.filter(rows=0, queued_at__lt=Now() - timedelta(hours=settings.KEEP_SEGMENTS_HOURS))
    if old.exists():
        with portion():
            old.delete()
    return dropped


def discard_rows(writer_id: int, why: Mapping[int, CodedMessage]) -> int:
    """Takes the rows out of snapshots (primary key → the message for their manifest); returns how many rows."""
    found = {row.pk: row for row in SegmentOutbox.objects.filter(pk__in=why).defer("data")}
    lost = sum(row.rows for row in found.values())
    update_rows(
        SegmentOutbox,
        {
            pk: {"rows": 0, "size": 0, "data": b"", "errors": [*row.errors, why[pk].as_json()]}
            for pk, row in found.items()
        },
    )
    SegmentWriter.objects.filter(pk=writer_id).update(
        lost_snapshots=F("lost_snapshots") + len(found), lost_rows=F("lost_rows") + lost, lost_at=Now()
    )
    log.error("segments.lost", snapshots=len(found), rows=lost)
    return lost


WRITERS = leases.LeasedTable(SegmentWriter._meta.db_table, "seq")
FOLDER = "segments"
MOST_BYTES = 64_000_000
"""Bytes of packed rows in one flush; the rest is written in the next flush, at once."""
MOST_SNAPSHOTS = 5000
_SNAPSHOT = ("pk", "cluster", "kind", "epoch", "seq", "observed_at", "rows", "not_answered", "errors", "duration_ms")
_NO_FLUSH: dict[str, Any] = {
    "flush_epoch": None, "flush_seq": None, "flush_at": None, "flush_token": "", "flush_rows": [], "committed_at": None,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class FlushResult:
    """Outcome of a turn; ``error``: what was in the way."""

    flushes: int
    snapshots: int
    error: CodedMessage | None = None


def segments_uri() -> str:
    return join_uri(settings.PIPELINE_URI, FOLDER)


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
    return [] if explain_missing() else leases.claim(WRITERS, "WHERE true", 1, hold_s)


def hand_back(ids: list[int]) -> None:
    """Takes the mark of ``claim_due`` away."""
    leases.unclaim(WRITERS, ids)


def flush(writer_id: int, *, only_if_due: bool = True, uri: str = "") -> FlushResult | None:
    """Writes everything that waits; None when another one is at it, or its time has not come.

    What is in the way is stored with its code, and tried again at the next turn.
    """
    lease = leases.take(writer_id, only_if_due=only_if_due, of=WRITERS)
    if lease is None:
        return None
    uri = uri or segments_uri()
    done = FlushResult(0, 0)
    try:
        drop_oldest(writer_id, lease.write_portion)
        while (pending := _read_bound_flush(lease) or _bind_flush(lease)) is not None:
            done = FlushResult(done.flushes + 1, done.snapshots + _finish_flush(lease, pending, uri))
        return done
    except leases.LeaseLost:
        log.warning("segments.lease_lost", epoch=lease.epoch)
        return FlushResult(done.flushes, done.snapshots)
    except (OSError, PlaceUnknown, AnotherWrites) as error:
        return _store_failure(lease, done, uri, error)
    finally:
        spent = (lease.now() - lease.taken_at).total_seconds()
        lease.postpone(max(0.0, settings.SEGMENT_FLUSH_SECONDS - spent))
        lease.give_back()


def _read_bound_flush(lease: leases.RowLease) -> PendingFlush | None:
    """The flush that was begun and is not known to be whole."""
    row = SegmentWriter.objects.get(pk=lease.row_id)
    if row.flush_epoch is None or row.flush_seq is None or row.flush_at is None:
        return None
    return PendingFlush(row.flush_epoch, row.flush_seq, row.flush_at, row.flush_token)


def _bind_flush(lease: leases.RowLease) -> PendingFlush | None:
    """Gives what waits, the oldest first, the numbers of a new flush; None where nothing waits."""
    ids = _oldest_snapshots()
    if not ids:
        return None
    with lease.write() as stamp:
        last = SegmentWriter.objects.values_list("flushed_at", flat=True).get(pk=lease.row_id)
        # Not before the last one, even if the clock went back: readers go on from the last address.
        at = max(filter(None, (lease.now(), last)))
        new = PendingFlush(stamp.epoch, stamp.seq, at, secrets.token_hex(16))
        SegmentWriter.objects.filter(pk=lease.row_id).update(
            flush_epoch=new.epoch,
            flush_seq=new.seq,
            flush_at=new.at,
            flush_token=new.token,
            flush_rows=ids,
            committed_at=None,
        )
    at_point(BOUND)
    return new


def _oldest_snapshots() -> list[int]:
    """At least one, if there is one; then as many as ``MOST_BYTES`` allows."""
    ids: list[int] = []
    size = 0
    for pk, bytes_ in SegmentOutbox.objects.order_by("pk").values_list("pk", "size")[:MOST_SNAPSHOTS]:
        size += bytes_
        if ids and size > MOST_BYTES:
            break
        ids.append(pk)
    return ids


def _finish_flush(lease: leases.RowLease, pending: PendingFlush, uri: str) -> int:
    """Returns how many snapshots it had."""
    ids = SegmentWriter.objects.values_list("flush_rows", flat=True).get(pk=lease.row_id)
    target, steps = open_place(uri), _LeasedWriter(lease)
    while True:
        snapshots = _read_snapshots(ids)
        try:
            write_flush(target, pending, snapshots, steps)
            break
        except DamagedFacts as error:
            _drop_damaged(lease, error.snapshot)
    at_point(COMMITTED)
    with lease.write_portion():
        SegmentOutbox.objects.filter(pk__in=ids).delete()
        SegmentWriter.objects.filter(pk=lease.row_id).update(
            **_NO_FLUSH, flushed_at=max(lease.now(), pending.at), **message_columns(None, "last_error"), failures=0
        )
    return len(snapshots)


def _read_snapshots(ids: Sequence[int]) -> list[OutboxSnapshot]:
    """In the order in which they were queued; the rows of each are fetched when they are written."""
    found = SegmentOutbox.objects.filter(pk__in=ids).order_by("pk").values_list(*_SNAPSHOT)
    return [
        OutboxSnapshot(
            pk, cluster, SegmentKind(kind), epoch, seq, at, rows, partial(_read_data, pk), tuple(silent), errors, ms
        )
        for pk, cluster, kind, epoch, seq, at, rows, silent, errors, ms in found
    ]


def _read_data(pk: int) -> bytes:
    return bytes(SegmentOutbox.objects.values_list("data", flat=True).get(pk=pk))


class _LeasedWriter(FlushSteps):
    """A file shows only after the lease was renewed: nobody else may write within its term."""

    def __init__(self, lease: leases.RowLease) -> None:
        self._lease = lease
        self.holder = lease.epoch

    def going_on(self) -> None:
        self._lease.keep(settings.LEASE_TTL / 2)

    def still_ours(self) -> None:
        self._lease.renew()

    def committed_at(self, flush: PendingFlush) -> datetime:
        """The time at which the first of those who come so far comes so far."""
        with self._lease.write_portion():
            mine = SegmentWriter.objects.filter(pk=self._lease.row_id)
            at = mine.values_list("committed_at", flat=True).get() or self._lease.now()
            mine.update(committed_at=at)
        return at


def _drop_damaged(lease: leases.RowLease, snapshot: OutboxSnapshot) -> None:
    log.error("segments.damaged", cluster=snapshot.cluster, kind=snapshot.kind, epoch=snapshot.epoch, seq=snapshot.seq)
    with lease.write_portion():
        discard_rows(
            lease.row_id,
            {snapshot.id: coded(ExportErrorCode.FACTS_DAMAGED, rows=choose_plural("# row|# rows", snapshot.rows))},
        )


def _store_failure(lease: leases.RowLease, done: FlushResult, uri: str, error: OSError | UserError) -> FlushResult:
    message = _os_message(error, uri) if isinstance(error, OSError) else error.message
    with transaction.atomic():
        row = SegmentWriter.objects.select_for_update().get(pk=lease.row_id)
        if row.epoch != lease.epoch:  # whoever took over took away what this one was about to rename
            log.warning("segments.lease_lost", epoch=lease.epoch)
            return done
        if isinstance(error, AnotherWrites):
            _begin_anew(row)
        for name, value in message_columns(message, "last_error").items():
            setattr(row, name, value)
        row.failures += 1
        row.save()
    log.warning("segments.not_written", code=message.shown_code, error=str(message))
    return FlushResult(done.flushes, done.snapshots, message)


def _os_message(error: OSError, uri: str) -> CodedMessage:
    seconds = settings.SEGMENT_FLUSH_SECONDS
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return coded(ExportErrorCode.DISK_FULL, place=uri, seconds=seconds)
    fault = error.strerror or (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return coded(ExportErrorCode.SEGMENTS_NOT_WRITTEN, place=uri, fault=fault, seconds=seconds)


def _begin_anew(row: SegmentWriter) -> None:
    """After a restored backup numbers would repeat: the flush is bound again, under epochs of the present."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT greatest(%s, extract(epoch FROM clock_timestamp())::bigint)", [row.epoch])
        row.epoch = cursor.fetchone()[0]
    row.lease_until = row.dispatched_until = None  # of the epoch that is over: its holder cannot give it back
    for name, value in _NO_FLUSH.items():
        setattr(row, name, value)
