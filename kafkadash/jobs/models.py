"""Work that a worker does for a page or a command: its state, how far it is, what came of it."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, stored_message


class JobState(models.TextChoices):
    QUEUED = "queued", "queued"
    RUNNING = "running", "running"
    DONE = "done", "done"
    FAILED = "failed", "failed"
    CANCELLED = "cancelled", "cancelled"


class Job(models.Model):
    """A row is written first, a worker picks it up; so a broker that is away delays a job and never loses it."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=64)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, blank=True)
    requested_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True)
    input = models.JSONField(default=dict)
    state = models.CharField(max_length=16, choices=JobState, default=JobState.QUEUED)
    progress = models.FloatField(null=True, blank=True, help_text="0 to 1; empty while unknown")
    progress_note = models.CharField(max_length=200, blank=True)
    result = models.JSONField(null=True, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_params = models.JSONField(default=dict, blank=True)
    cancel_requested = models.BooleanField(default=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    started_at = models.DateTimeField(null=True, blank=True)
    finished_at = models.DateTimeField(null=True, blank=True)
    dispatched_until = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)

    class Meta:
        ordering = ("-created_at",)
        indexes = (
            models.Index(
                fields=["created_at"], name="job_open", condition=Q(state__in=[JobState.QUEUED, JobState.RUNNING])
            ),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.state}"

    @property
    def error(self) -> CodedMessage | None:
        """Message that says why the job failed; None where it did not."""
        return stored_message(self.error_code, self.error_params)
