"""Celery's way in: one message, one step of one run."""

from __future__ import annotations

from celery import shared_task
from django.db import close_old_connections

from kafkadash.reassign.run.step import step_once


@shared_task(name="execute")
def execute(execution_id: int) -> None:
    """A message that comes twice, or late, finds the run taken or not due. Who is told to stop ends its step first."""
    try:
        step_once(execution_id)
    finally:
        close_old_connections()
