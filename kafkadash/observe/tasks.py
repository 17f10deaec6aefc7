"""Celery's way in: one message, one refresh, or one flush of what refreshes left for the pipeline."""

from __future__ import annotations

from datetime import UTC, datetime

from celery import shared_task
from django.db import close_old_connections

from kafkadash.observe.collection import refresh
from kafkadash.observe.history.ingest import take_turn
from kafkadash.observe.segments.flusher import flush
from kafkadash.observe.segments.forgetting import forget_now_and_then


@shared_task(name="collect")
def collect(run_id: int) -> None:
    """Refreshes one kind of one cluster. A message that comes twice, or late, finds the run taken or not due."""
    try:
        refresh(run_id)
    finally:
        close_old_connections()


@shared_task(name="write_segments")
def write_segments(writer_id: int) -> None:
    """Writes what waits in the outbox into files. A message that comes twice finds it done, or under way."""
    try:
        flush(writer_id)
        forget_now_and_then(datetime.now(UTC))
    finally:
        close_old_connections()


@shared_task(name="ingest")
def ingest(state_id: int) -> None:
    """Takes in what the pipeline has handed back since. A message that comes twice, or late, finds the turn taken."""
    try:
        take_turn(state_id)
    finally:
        close_old_connections()
