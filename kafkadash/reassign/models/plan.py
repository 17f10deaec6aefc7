"""What belongs to reassignments alone: the file somebody brought, and what their plan does to the cluster."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.jobs.models import Job


class Upload(models.Model):
    """Kafka's JSON as it was pasted or uploaded for a draft; the last one counts. ``data`` is zlib of the bytes."""

    request = models.OneToOneField(ChangeRequest, on_delete=models.CASCADE, related_name="upload")
    name = models.CharField(max_length=255, blank=True, help_text="of the file; empty where it was pasted")
    size = models.PositiveIntegerField(help_text="bytes as received")
    sha256 = models.CharField(max_length=64)
    data = models.BinaryField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return self.name or "pasted"


class PlanReport(models.Model):
    """What the request's plan does (``domain.impact.Impact`` without its topics and exceptions, as JSON).

    ``rules``: the checker's verdicts, each [rule, passed, figure, problems]. ``exceptions`` counts the rows that have a
    reason to be listed first; ``first_exceptions`` are the first of them, each [topic, and a row as ``PlanTopic`` packs
    it]. ``way_back``: ``domain.way_back.WayBack``. ``proof``: ``domain.planner.request.Proof``, null where rows were
    brought or no data moves. ``generate_bytes``: what Kafka's own generate would copy for the same, null where that was
    not reckoned. ``format`` 1.
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
    took_s = models.FloatField(help_text="seconds that planning took")
    made_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"report of #{self.request_id}"


class PlanTopic(models.Model):
    """One topic of a plan: what its fold on the page says, and its rows packed, so that a page reads what it shows.

    ``rows``, format 1: zlib of a JSON list of [partition, [current], [target], bytes copied or null, leader or null,
    [reasons to be listed first]], sorted by partition. ``first``: the few that stand in the fold, those with reasons
    before the others. ``ordinal``: largest first.
    """

    report = models.ForeignKey(PlanReport, on_delete=models.CASCADE, related_name="topics")
    ordinal = models.PositiveIntegerField()
    topic = models.CharField(max_length=249)
    topic_id = models.CharField(max_length=36)
    format = models.PositiveSmallIntegerField(default=1)
    summary = models.JSONField(help_text="domain.impact.TopicImpact")
    exceptions = models.PositiveIntegerField(default=0, help_text="rows with a reason to be listed first")
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


class Verification(models.Model):
    """A file of Kafka's format to be compared with its cluster, and what came of it; it goes with its job.

    ``data`` is zlib of the bytes brought, kept so that it can be asked again. ``counts``: ``domain.verify.State`` →
    partitions; empty, like ``taken_at``, until there is a result.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="verification")
    name = models.CharField(max_length=255, blank=True, help_text="of the file; empty where it was pasted")
    size = models.PositiveIntegerField(help_text="bytes as received")
    data = models.BinaryField()
    counts = models.JSONField(default=dict)
    taken_at = models.DateTimeField(null=True, help_text="when the partitions were read")

    def __str__(self) -> str:
        return self.name or "pasted"


class VerificationPart(models.Model):
    """Some rows of a result, so that a page unpacks what it shows: zlib of JSON, in the order of ``domain.verify``.

    Format 1: a list of [topic, partition, [target], state, [Kafka's words], note].
    """

    verification = models.ForeignKey(Verification, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["verification", "number"], name="one_part_of_a_number"),)

    def __str__(self) -> str:
        return f"part {self.number} of {self.verification_id}"
