"""What waits in the outbox is bounded: while nothing can be written, the oldest rows go, counted and told."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from datetime import timedelta

import structlog
from django.conf import settings
from django.db.models import F, Sum
from django.db.models.functions import Now

from kafkadash.domain.messages import message_text
from kafkadash.domain.wording import count, size
from kafkadash.observe.collectors.writing import update_rows
from kafkadash.observe.errors import CollectionErrorCode
from kafkadash.observe.models import SegmentOutbox, SegmentWriter

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
        most = size(settings.SEGMENT_OUTBOX_BYTES)
        rows = dict(SegmentOutbox.objects.filter(pk__in=ids).values_list("pk", "rows"))
        with portion():
            dropped += lose(
                writer_id,
                {
                    pk: message_text(CollectionErrorCode.FACTS_LOST, rows=count(each, "row"), size=most)
                    for pk, each in rows.items()
                },
            )
    old = waiting.filter(rows=0, queued_at__lt=Now() - timedelta(hours=settings.KEEP_SEGMENTS_HOURS))
    if old.exists():
        with portion():
            old.delete()
    return dropped


def lose(writer_id: int, why: Mapping[int, str]) -> int:
    """Takes the rows out of snapshots (primary key → a sentence for their manifest); returns how many rows."""
    found = {row.pk: row for row in SegmentOutbox.objects.filter(pk__in=why).defer("data")}
    lost = sum(row.rows for row in found.values())
    update_rows(
        SegmentOutbox,
        {
            pk: {"rows": 0, "size": 0, "data": b"", "errors": "\n".join(filter(None, (row.errors, why[pk])))}
            for pk, row in found.items()
        },
    )
    SegmentWriter.objects.filter(pk=writer_id).update(
        lost_snapshots=F("lost_snapshots") + len(found), lost_rows=F("lost_rows") + lost, lost_at=Now()
    )
    log.error("segments.lost", snapshots=len(found), rows=lost)
    return lost
