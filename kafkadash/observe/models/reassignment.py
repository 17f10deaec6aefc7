"""Reassignments as seen in the cluster (KIP-240)."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

from kafkadash.clusters.models import Cluster


class Outcome(models.TextChoices):
    """How a reassignment ended. Leaving Kafka's listing is not an outcome: the partition itself is read."""

    RUNNING = "running", "running"
    COMPLETED = "completed", "completed"
    CANCELLED = "cancelled", "cancelled"
    SUPERSEDED = "superseded", "superseded"
    TOPIC_DELETED = "topic_deleted", "topic deleted"
    UNKNOWN = "unknown", "unknown"


class StartedFrom(models.TextChoices):
    """Where the started interval comes from."""

    FIRST_SEEN = "first_seen", "first seen"
    SUBMITTED = "submitted", "submitted by kafkadash"
    ZK_CTIME = "zk_ctime", "creation of the legacy znode"
    ZK_MTIME = "zk_mtime", "change of the topic's znode"


class ReassignmentSnapshot(models.Model):
    """One reassignment of one partition as seen in the cluster (KIP-240). Observed facts live only here.

    It began after ``started_after`` (empty: nobody looked before) and not later than ``started_before``.
    ``replicas_progress``, format 1: one object per adding replica: {broker, log_end, seen_end, percent, in_isr,
    lag_records, taken_at, error}; figures are null where the broker did not answer, but for ``seen_end``, the log end
    that was read last. ``percent`` of the row is the least of them.
    ``rate_state`` is what the next sample needs to go on measuring the rate.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    public_id = models.CharField(max_length=32, unique=True)
    topic_id = models.CharField(max_length=36)
    topic = models.CharField(max_length=249)
    partition = models.PositiveIntegerField()
    replicas = models.JSONField()
    adding = models.JSONField()
    removing = models.JSONField()
    target = models.JSONField()
    original = models.JSONField(help_text="replicas before, as far as seen; order only if seen before the start")
    started_after = models.DateTimeField(null=True)
    started_before = models.DateTimeField()
    started_from = models.CharField(max_length=16, choices=StartedFrom, default=StartedFrom.FIRST_SEEN)
    continuity_gap = models.BooleanField(default=False, help_text="nobody looked for longer than two intervals")
    leader = models.IntegerField(null=True)
    leader_epoch = models.IntegerField(null=True)
    leader_log_end = models.BigIntegerField(null=True)
    leader_log_start = models.BigIntegerField(null=True)
    format = models.PositiveSmallIntegerField(default=1)
    replicas_progress = models.JSONField(default=list)
    percent = models.FloatField(null=True)
    sampled_at = models.DateTimeField(null=True, help_text="when the offsets behind percent were read")
    size_bytes = models.BigIntegerField(null=True, help_text="the leader's log, from its last log directory read")
    size_taken_at = models.DateTimeField(null=True)
    rate_bytes = models.FloatField(null=True, help_text="bytes per second over the last minute, estimated")
    rate_state = models.JSONField(null=True)
    outcome = models.CharField(max_length=16, choices=Outcome, default=Outcome.RUNNING)
    ended_at = models.DateTimeField(null=True, help_text="when the end was seen")
    last_seen_at = models.DateTimeField()
    claimed_by = models.CharField(max_length=64, blank=True)
    claim_url = models.CharField(max_length=255, blank=True)
    claimed_at = models.DateTimeField(null=True)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "topic_id", "partition"],
                condition=Q(outcome=Outcome.RUNNING),
                name="one_running_reassignment",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "outcome", "-ended_at"], name="reassignment_ended"),
            models.Index(fields=["cluster", "topic", "partition"], name="reassignment_partition"),
        )

    def __str__(self) -> str:
        return f"{self.public_id} {self.topic}-{self.partition} {self.outcome}"
