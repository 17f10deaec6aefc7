"""How facts are collected: when each kind is due, and what every refresh came to."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.domain.failure_kinds import FailureKind


class Kind(models.TextChoices):
    """The kinds of facts, each with its own interval (``observe.collection.interval_for``)."""

    ANSWERS = "answers", "answers of brokers"
    METADATA = "metadata", "topics and brokers"
    REASSIGNMENTS = "reassignments", "reassignments"
    QUORUM = "quorum", "controller quorum"
    LOG_DIRS = "log_dirs", "log directories"
    CONFIGS = "configs", "configs and throttles"
    VERSIONS = "versions", "API versions and features"
    GROUPS = "groups", "consumer groups"


def failure_kind_choices() -> list[tuple[str, str]]:
    """Named by migrations, so that a new kind needs none."""
    return [(kind.value, kind.value) for kind in FailureKind]


class CollectorRun(models.Model):
    """The collector of one kind on one cluster: when it is due, who holds it (lease and epoch), how it last went.

    Taking the lease adds one to ``epoch``; every write transaction of the holder begins by finding that epoch
    unchanged, so a collector that slept past its lease can write nothing.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="collector_runs")
    kind = models.CharField(max_length=16, choices=Kind)
    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True, blank=True)
    lease_until = models.DateTimeField(null=True, blank=True)
    epoch = models.PositiveBigIntegerField(default=0)
    seq = models.PositiveBigIntegerField(default=0, help_text="number of the last stored refresh of this epoch")
    interval_s = models.FloatField(default=30, help_text="interval in force, in seconds")
    attempted_at = models.DateTimeField(null=True, blank=True)
    succeeded_at = models.DateTimeField(null=True, blank=True, help_text="when the newest stored data was taken")
    failures = models.PositiveIntegerField(default=0, help_text="failed refreshes since the last good one")
    refusals = models.PositiveIntegerField(
        default=0, db_default=0, help_text="refreshes that ended with refused credentials since the last good one"
    )
    overruns = models.PositiveSmallIntegerField(
        default=0, db_default=0, help_text="leases in a row that ran out before their refresh was stored"
    )
    processor_s = models.FloatField(
        null=True, help_text="processor time of a refresh in seconds, over the last few; empty before the first"
    )
    last_error = models.TextField(blank=True)
    last_failure = models.CharField(
        max_length=32, choices=failure_kind_choices, blank=True, help_text="empty after a good refresh"
    )

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "kind"], name="one_run_per_kind"),)
        indexes = (models.Index(fields=["next_at"], name="run_due"),)

    def __str__(self) -> str:
        return f"{self.kind} of cluster {self.cluster_id}"


class Collection(models.Model):
    """One refresh, good or not. ``not_answered`` keeps missing apart from zero."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE)
    kind = models.CharField(max_length=16, choices=Kind)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()
    started_at = models.DateTimeField()
    taken_at = models.DateTimeField(null=True, help_text="when the data was taken; empty when there is none")
    duration_ms = models.PositiveIntegerField()
    ok = models.BooleanField()
    not_answered = models.JSONField(default=list, help_text="ids of brokers that were asked and did not answer")
    errors = models.JSONField(default=list, help_text="sentences, at most 20")
    rows = models.PositiveIntegerField(null=True, help_text="facts in the answer, of the kind's own grain")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "kind", "epoch", "seq"], name="one_collection_per_seq"),
        )
        indexes = (
            models.Index(fields=["cluster", "kind", "-started_at"], name="collection_newest"),
            models.Index(fields=["started_at"], name="collection_age"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.epoch}.{self.seq} of cluster {self.cluster_id}"
