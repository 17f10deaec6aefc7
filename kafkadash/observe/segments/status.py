"""How it stands with what leaves for the pipeline, for pages and commands. Reads rows; loads no PyArrow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Min, Sum

from kafkadash.observe.models import SegmentOutbox, SegmentWriter
from kafkadash.observe.segments.encoding import missing

__all__ = ["Standing", "missing", "standing"]


@dataclass(frozen=True, slots=True)
class Standing:
    """``missing`` and ``error`` are sentences, '' where all is well; ``error`` is what the last try met.

    ``waiting_since`` is None where nothing waits, ``flushed_at`` before the first flush. ``lost_*`` count all that was
    ever dropped, last at ``lost_at``.
    """

    missing: str
    error: str
    failures: int
    waiting_snapshots: int
    waiting_bytes: int
    waiting_since: datetime | None
    flushed_at: datetime | None
    lost_snapshots: int
    lost_rows: int
    lost_at: datetime | None


def standing() -> Standing:
    """Two statements."""
    row = SegmentWriter.objects.first() or SegmentWriter(epoch=0)
    waits = SegmentOutbox.objects.aggregate(snapshots=Count("pk"), bytes=Sum("size"), since=Min("queued_at"))
    return Standing(
        missing=missing(),
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
