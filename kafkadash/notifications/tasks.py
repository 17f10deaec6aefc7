"""Celery tasks of notifications: one message, one turn of a target."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.notifications.delivery import deliver


@shared_task(name="notify")
def notify(target_id: int) -> None:
    """Send what is due to a target. A message that comes twice finds it sent, or under way."""
    try:
        deliver(target_id)
    finally:
        close_old_connections()
