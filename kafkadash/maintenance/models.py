"""Maintenance windows and silences. Rows are written by ``maintenance.services``; ``stage`` by the judgement."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster


class QuietPurpose(models.TextChoices):
    """Why receivers are not told. Findings of a maintenance window are expected; those of a silence only not told."""

    MAINTENANCE = "maintenance", "Maintenance"
    SILENCE = "silence", "Silence"


class QuietStage(models.TextChoices):
    """Stage that the judgement has seen. A period that is further than its stage has its cluster judged."""

    PLANNED = "planned", "planned"
    BEGUN = "begun", "in force"
    OVER = "over", "over"


class QuietPeriod(models.Model):
    """Time from ``begins_at`` up to ``ends_at`` in which receivers are not told of some findings of a cluster.

    A maintenance window is of one ``broker``, of the brokers of a ``rack``, or of the whole cluster where both are
    None. A silence is of a kind of findings, of a ``subject``, or of a kind of one subject. The subject is the ID of a
    broker, the name of a group, or the scope of a finding. ``ended_by``: who ended it early; ``ends_at`` is the time
    of that then.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="quiet_periods")
    purpose = models.CharField(max_length=16, choices=QuietPurpose)
    broker = models.IntegerField(null=True)
    rack = models.CharField(max_length=255, null=True)  # noqa: DJ001  None: no rack; '' is a rack
    kind = models.CharField(max_length=32, blank=True, help_text="FindingKind; all where empty")
    subject = models.CharField(max_length=255, blank=True)
    begins_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.TextField()
    author = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    author_name = models.CharField(max_length=150)
    ended_by = models.CharField(max_length=150, blank=True)
    created_at = models.DateTimeField(db_default=Now())
    stage = models.CharField(max_length=16, choices=QuietStage, default=QuietStage.PLANNED)

    class Meta:
        indexes = (
            models.Index(fields=["cluster"], condition=~Q(stage="over"), name="quiet_period_open"),
            models.Index(fields=["cluster", "-begins_at"], name="quiet_period_begin"),
        )

    def __str__(self) -> str:
        return f"{self.purpose} {self.pk} of cluster {self.cluster_id}"

    @property
    def is_silence(self) -> bool:
        return self.purpose == QuietPurpose.SILENCE

    @property
    def about(self) -> str:
        """Subject in words, without the cluster: "broker 3", "rack a"; '' for the whole cluster."""
        return describe_scope(self.broker, self.rack)

    def is_in_force(self, at: datetime) -> bool:
        return self.begins_at <= at < self.ends_at

    def stage_at(self, at: datetime) -> QuietStage:
        if at >= self.ends_at:
            return QuietStage.OVER
        return QuietStage.BEGUN if at >= self.begins_at else QuietStage.PLANNED

    def describe(self) -> Mapping[str, Any]:
        """Return the content for the audit log."""
        own = {
            "broker": self.broker,
            "rack": self.rack,
            "kind": self.kind or None,
            "subject": self.subject or None,
        }
        return {
            **{name: value for name, value in own.items() if value is not None},
            "begins": self.begins_at.isoformat(),
            "ends": self.ends_at.isoformat(),
        }


def describe_scope(broker: int | None, rack: str | None) -> str:
    """Return "broker 3" or "rack a"; '' for a whole cluster."""
    if broker is not None:
        return f"broker {broker}"
    return "" if rack is None else f"rack {rack or '(empty name)'}"


def find_moved_on(now: datetime) -> models.QuerySet[QuietPeriod]:
    """Return the periods that began or ended, of which no judgement knows yet."""
    begun = Q(stage=QuietStage.PLANNED, begins_at__lte=now)
    return QuietPeriod.objects.exclude(stage=QuietStage.OVER).filter(begun | Q(ends_at__lte=now))
