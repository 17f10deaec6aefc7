"""Problems of clusters and of kafkadash, and the times they began. Rows are written by ``findings.services`` only."""

from __future__ import annotations

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.urls import reverse

from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage
from kafkadash.core.status import HealthState
from kafkadash.findings.kinds import FindingKind
from kafkadash.findings.messages import finding_detail, finding_title
from kafkadash.maintenance.models import QuietPeriod


class Finding(models.Model):
    """Problem, from the reading that showed it first until it closed. A problem that returns later has a new row.

    Times are those of the data: ``first_seen_at`` the reading that showed it first, ``opened_at`` the one that was
    enough (empty: not open yet), ``seen_at`` the newest that showed it, ``closed_at`` the one that showed it no more.
    ``since`` is earlier where the facts know when it began. ``history``, format 1: [seconds since 1970, number] at
    each change of the number, the first one and the newest ones. Without a cluster it is about kafkadash itself.
    ``cause`` is another finding, which may have closed a short time ago (``findings.causes``); it is never the
    consequence of a third one. ``quiet``: window or silence that covers it, as of the newest judgement.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="findings")
    public_id = models.CharField(max_length=32, unique=True)
    kind = models.CharField(max_length=32, choices=[(kind.value, kind.about.name) for kind in FindingKind])
    scope = models.TextField(blank=True, help_text="what tells two of a kind apart: a broker's id, broker:path")
    state = models.CharField(max_length=16, choices=[(state.value, state.word) for state in HealthState])
    rank = models.PositiveSmallIntegerField(help_text="0 is the most urgent")
    message_code = models.CharField(max_length=64, blank=True, help_text="FindingCode")
    message_params = models.JSONField(default=dict, blank=True)
    value = models.FloatField(null=True)
    unit = models.CharField(max_length=32, blank=True)
    threshold = models.FloatField(null=True)
    measured = models.CharField(max_length=64, blank=True, help_text="the number with its unit, in words")
    limit = models.CharField(max_length=64, blank=True, help_text="the threshold, in words")
    format = models.PositiveSmallIntegerField(default=1)
    history = models.JSONField(default=list)
    since = models.DateTimeField(null=True)
    first_seen_at = models.DateTimeField()
    opened_at = models.DateTimeField(null=True)
    seen_at = models.DateTimeField()
    looks = models.PositiveIntegerField(default=1, help_text="readings that showed it, counted until it opened")
    closed_at = models.DateTimeField(null=True)
    told_value = models.FloatField(null=True, help_text="value when receivers were last notified")
    acknowledged_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="findings"
    )
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_until = models.DateTimeField(null=True, help_text="end of the acknowledgement")
    acknowledge_note = models.TextField(blank=True, default="", db_default="")
    snoozed = models.BooleanField(default=False, db_default=False, help_text="quiet until the end")
    cause = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, related_name="consequences")
    cause_run = models.PositiveIntegerField(null=True, help_text="number of the change whose run explains it")
    quiet = models.ForeignKey(QuietPeriod, on_delete=models.SET_NULL, null=True, related_name="findings")

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["cluster", "kind", "scope"], condition=Q(closed_at__isnull=True), name="one_open_finding"
            ),
            models.UniqueConstraint(
                fields=["kind", "scope"],
                condition=Q(closed_at__isnull=True, cluster__isnull=True),
                name="one_open_product_finding",
            ),
        )
        indexes = (
            models.Index(fields=["cluster", "-closed_at"], name="finding_closed"),
            models.Index(fields=["closed_at"], name="finding_age"),
        )

    def __str__(self) -> str:
        return f"{self.public_id} {self.kind} {self.scope}".strip()

    @property
    def message(self) -> CodedMessage:
        return CodedMessage.from_json({"code": self.message_code, "params": self.message_params})

    @property
    def sentence(self) -> str:
        return self.message.cause

    @property
    def title(self) -> str:
        """Heading without the cluster's name."""
        return finding_title(self.message)

    @property
    def detail(self) -> str:
        return finding_detail(self.message)


class Judgement(models.Model):
    """Time when a cluster was last judged. Without it, an unjudged cluster would look like one without problems.

    ``unknown_kinds``: kinds of which nobody could tell then whether there is a finding; None where that was not stored.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="judgement")
    judged_at = models.DateTimeField()
    last_closed_at = models.DateTimeField(null=True, help_text="when a finding last closed")
    unknown_kinds = models.JSONField(null=True, help_text="kinds whose absence proved nothing")

    def __str__(self) -> str:
        return f"judgement of cluster {self.cluster_id}"


def finding_path(cluster: Cluster | None, row: Finding) -> str:
    """Return the page of a finding."""
    if cluster is None:
        return reverse("findings:product_finding", args=[row.public_id])
    return reverse("findings:finding", args=[cluster.slug, row.public_id])
