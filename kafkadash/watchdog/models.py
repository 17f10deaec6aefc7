"""Rounds of scheduled tasks."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now


class ScheduledTask(models.Model):
    """Scheduled task of kafkadash (``watchdog.rules.AUDITED``) with its newest round, by the database's clock.

    ``expected_at``: since when rounds are expected; moved on when kafkadash starts again after it was down.
    ``asked_at``: when a probe was last sent to the workers of a queue, or when a process last took this task.
    ``news``: of the audit, that a finding came or went of which open pages were not told yet.
    """

    name = models.CharField(max_length=32, primary_key=True)
    expected_at = models.DateTimeField(db_default=Now())
    asked_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)
    news = models.BooleanField(default=False, db_default=False)

    def __str__(self) -> str:
        return f"{self.name}, finished {self.finished_at}"
