"""Celery tasks of the export: one message, one flush of what refreshes left for the pipeline."""

from __future__ import annotations

from datetime import UTC, datetime

from celery import shared_task
from django.db import close_old_connections

from kafkadash.export.files import forget_now_and_then
from kafkadash.export.flusher import flush


@shared_task(name="write_segments")
def write_segments(writer_id: int) -> None:
    """Writes what waits in the outbox into files. A message that comes twice finds it done, or under way."""
    try:
        flush(writer_id)
        forget_now_and_then(datetime.now(UTC))
    finally:
        close_old_connections()
