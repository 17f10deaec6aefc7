"""Models of reassignments alone: the file that somebody brought, and the impact of their plan on the cluster."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.changes.models import ChangeRequest, PlanArtifact


class Upload(models.Model):
    """Kafka's JSON as it was pasted or uploaded for a draft; the last one counts. ``data`` is zlib of the bytes."""

    request = models.OneToOneField(ChangeRequest, on_delete=models.CASCADE, related_name="upload")
    name = models.CharField(max_length=255, blank=True, help_text="file name; empty for pasted text")
    size = models.PositiveIntegerField(help_text="bytes as received")
    sha256 = models.CharField(max_length=64)
    data = models.BinaryField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name or "pasted"


class PlanReport(models.Model):
    """Impact of the request's plan (``planning.impact.PlanImpact`` without its topics and exceptions, as JSON).

    ``rules``: the checker's verdicts (``CheckedRule``). ``exceptions`` counts the rows that have a
    reason to be listed first; ``first_exceptions`` are the first of them, each [topic, and a row as ``PlanTopic`` packs
    it]. ``way_back``: ``planning.plan_store.RollbackCopies``. ``proof``: ``planning.solver.request.PlanProof``, null
    where rows were brought or no data moves. ``generate_bytes``: what Kafka's own generate would copy for the same,
    null where that was not reckoned. ``format`` 1.
    """

    request = models.OneToOneField(ChangeRequest, on_delete=models.CASCADE, related_name="report")
    artifact = models.ForeignKey(PlanArtifact, on_delete=models.PROTECT, related_name="+")
    format = models.PositiveSmallIntegerField(default=1)
    impact = models.JSONField()
    rules = models.JSONField(default=list)
    exceptions = models.PositiveIntegerField(default=0)
    first_exceptions = models.JSONField(default=list)
    way_back = models.JSONField(default=dict)
    proof = models.JSONField(null=True)
    generate_bytes = models.BigIntegerField(null=True)
    took_s = models.FloatField(help_text="duration of planning in seconds")
    made_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"report of #{self.request_id}"


class PlanTopic(models.Model):
    """Topic of a plan: the words of its fold on the page, and its rows packed, so that a page reads only what it shows.

    ``rows``, format 1: zlib of a JSON list of [partition, [current], [target], bytes copied or null, leader or null,
    [reasons to be listed first]], sorted by partition. ``first``: the few that stand in the fold, those with reasons
    before the others. ``ordinal``: largest first.
    """

    report = models.ForeignKey(PlanReport, on_delete=models.CASCADE, related_name="topics")
    ordinal = models.PositiveIntegerField()
    topic = models.CharField(max_length=249)
    topic_id = models.CharField(max_length=36)
    format = models.PositiveSmallIntegerField(default=1)
    summary = models.JSONField(help_text="planning.impact.TopicImpact")
    exceptions = models.PositiveIntegerField(default=0, help_text="rows listed first as exceptions")
    first = models.JSONField(default=list)
    rows = models.BinaryField()

    class Meta:
        ordering = ("ordinal",)
        constraints = (
            models.UniqueConstraint(fields=["report", "topic"], name="one_row_per_topic_of_a_plan"),
            models.UniqueConstraint(fields=["report", "ordinal"], name="one_topic_per_place"),
        )

    def __str__(self) -> str:
        return self.topic
