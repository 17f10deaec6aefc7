"""Celery tasks of the history: one message, one turn of the ingest."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.history.ingest import take_turn


@shared_task(name="ingest")
def ingest(state_id: int) -> None:
    """Takes in what the pipeline has handed back since. A message that comes twice, or late, finds the turn taken."""
    try:
        take_turn(state_id)
    finally:
        close_old_connections()
