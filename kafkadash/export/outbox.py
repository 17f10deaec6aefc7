"""The outbox: a refresh stores its facts for the pipeline in the same transaction as all its other rows.

Committed facts reach a file even if the worker dies at once; facts that are not committed never existed.
``read_standing`` reports the state of the outbox to pages and commands, without PyArrow.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import psycopg
from django.db import connection
from django.db.models import Count, Min, Sum

from kafkadash.core.messages import CodedMessage, pack_value
from kafkadash.export.encoding import Columns, PackedFacts, explain_missing, pack_rows
from kafkadash.export.models import SegmentOutbox, SegmentWriter
from kafkadash.export.schema import SegmentKind

KINDS: Mapping[str, tuple[SegmentKind, ...]] = {
    "reassignments": (SegmentKind.REASSIGNMENT,),
    "quorum": (SegmentKind.QUORUM,),
    "log_dirs": (SegmentKind.BROKER, SegmentKind.REPLICA),
    "groups": (SegmentKind.GROUP_OFFSET,),
    "traffic": (SegmentKind.TRAFFIC,),
}
"""Kinds of facts that a refresh of each collector gives, and that are missing when one fails."""


_INSERT = (
    "INSERT INTO export_segmentoutbox (cluster, kind, epoch, seq, observed_at, rows, data, size, not_answered, errors,"
    " duration_ms) VALUES (%s, %s, %s, %s, %s, %s, %b, %s, %s::jsonb, %s::jsonb, %s)"
)


@dataclass(frozen=True, slots=True)
class OutboxFacts:
    """Rows of one kind from one refresh, in parts that are asked for one after the other, once.

    None at all is an answer too: then the manifest says that there were no rows.
    """

    kind: SegmentKind
    parts: Iterable[Columns] = ()


@dataclass(frozen=True, slots=True)
class OutboxReport:
    """Row of the manifest about a refresh."""

    cluster: str
    observed_at: datetime
    duration_ms: int
    not_answered: Sequence[int] = ()
    errors: Sequence[CodedMessage] = ()


def pack_facts(facts: Iterable[OutboxFacts]) -> list[PackedFacts]:
    """Before the transaction, as it takes a while. Nothing where no segments are written."""
    return [] if explain_missing() else [pack_rows(each.kind, each.parts) for each in facts]


def nothing_of(kind: str) -> list[PackedFacts]:
    """Return empty packs that record a failed refresh's missing rows; [] if no segments are written."""
    return [] if explain_missing() else [PackedFacts(each, 0, b"") for each in KINDS.get(kind, ())]


def store_facts(told: OutboxReport, packs: Iterable[PackedFacts]) -> None:
    """Last in the transaction of a refresh: who else counts the same kind of this cluster waits until its end."""
    for each in sorted(packs, key=lambda each: each.kind):  # in one order, so that two do not wait for each other
        epoch, seq = _next_number(told.cluster, each.kind)
        values = (
            *(told.cluster, each.kind.value, epoch, seq, told.observed_at, each.rows, each.data, len(each.data)),
            *(json.dumps(list(told.not_answered)), json.dumps(pack_value(told.errors)), told.duration_ms),
        )
        connection.ensure_connection()
        # As it is: Django's own cursor would make a text of it, twice as long, which takes several times as long.
        with psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(_INSERT, values)


def _next_number(cluster: str, kind: SegmentKind) -> tuple[int, int]:
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO export_segmentcounter AS known (cluster, kind, epoch, seq)"
            " VALUES (%s, %s, extract(epoch FROM clock_timestamp())::bigint, 1)"
            " ON CONFLICT (cluster, kind) DO UPDATE SET seq = known.seq + 1 RETURNING epoch, seq",
            [cluster, kind],
        )
        epoch, seq = cursor.fetchone()
    return epoch, seq


__all__ = ["ExportStatus", "explain_missing", "read_standing"]


@dataclass(frozen=True, slots=True)
class ExportStatus:
    """``missing`` says why nothing is written here, ``error`` what the last try met; None where all is well.

    ``waiting_since`` is None where nothing waits, ``flushed_at`` before the first flush. ``lost_*`` count all that was
    ever dropped, last at ``lost_at``.
    """

    missing: CodedMessage | None
    error: CodedMessage | None
    failures: int
    waiting_snapshots: int
    waiting_bytes: int
    waiting_since: datetime | None
    flushed_at: datetime | None
    lost_snapshots: int
    lost_rows: int
    lost_at: datetime | None


def read_standing() -> ExportStatus:
    """Two statements."""
    row = SegmentWriter.objects.first() or SegmentWriter(epoch=0)
    waits = SegmentOutbox.objects.aggregate(snapshots=Count("pk"), bytes=Sum("size"), since=Min("queued_at"))
    return ExportStatus(
        missing=explain_missing(),
        error=row.last_error,
        failures=row.failures,
        waiting_snapshots=waits["snapshots"],
        waiting_bytes=waits["bytes"] or 0,
        waiting_since=waits["since"],
        flushed_at=row.flushed_at,
        lost_snapshots=row.lost_snapshots,
        lost_rows=row.lost_rows,
        lost_at=row.lost_at,
    )
