"""Celery's way in: one message, one attempt at one job."""

from __future__ import annotations

from uuid import UUID

from celery import shared_task
from django.db import close_old_connections

from kafkadash.jobs.run import attempt


@shared_task(name="run_job")
def run_job(job_id: str) -> None:
    """Deadlines are the handler's: the threads pool can end no task. A message that comes twice finds the job taken."""
    try:
        attempt(UUID(job_id))
    finally:
        close_old_connections()
