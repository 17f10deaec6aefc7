"""Celery task that proves that the workers of a queue take messages."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.watchdog.rounds import record_round


@shared_task(name="probe")
def probe(queue: str) -> None:
    """Record a round of the queue that this message came through."""
    try:
        record_round(queue)
    finally:
        close_old_connections()
