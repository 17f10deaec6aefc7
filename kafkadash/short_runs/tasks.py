"""Celery task of the runner: one message is one step of one short run."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.short_runs.worker import step_once


@shared_task(name="execute_items")
def execute_items(run_id: int) -> None:
    """A message that comes twice, or late, finds the run taken or not due."""
    try:
        step_once(run_id)
    finally:
        close_old_connections()
