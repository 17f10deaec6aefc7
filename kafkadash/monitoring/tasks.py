"""Celery tasks of monitoring: one message, one refresh."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.monitoring.collection import refresh


@shared_task(name="collect")
def collect(run_id: int) -> None:
    """Refreshes one kind of one cluster. A message that comes twice, or late, finds the run taken or not due."""
    try:
        refresh(run_id)
    finally:
        close_old_connections()
