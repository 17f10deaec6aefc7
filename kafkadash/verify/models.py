"""Files that people compare with a cluster, and the verdict on each of their partitions."""

from __future__ import annotations

from django.db import models

from kafkadash.jobs.models import Job


class Verification(models.Model):
    """A file of Kafka's format to be compared with its cluster, and what came of it; it goes with its job.

    ``data`` is zlib of the bytes brought, kept so that it can be asked again. ``counts``: ``verify.rules.VerifyState``
    → partitions; empty, like ``taken_at``, until there is a result.
    """

    job = models.OneToOneField(Job, on_delete=models.CASCADE, related_name="verification")
    name = models.CharField(max_length=255, blank=True, help_text="file name; empty for pasted JSON")
    size = models.PositiveIntegerField(help_text="received bytes")
    data = models.BinaryField()
    counts = models.JSONField(default=dict)
    taken_at = models.DateTimeField(null=True, help_text="time of the partition reading")

    def __str__(self) -> str:
        return self.name or "pasted JSON"


class VerificationPart(models.Model):
    """Some rows of a result, so that a page unpacks what it shows: zlib of JSON, in the order of ``verify.rules``.

    Format 1: a list of [topic, partition, [target], state, [Kafka's words], note].
    """

    verification = models.ForeignKey(Verification, on_delete=models.CASCADE, related_name="parts")
    number = models.PositiveIntegerField()
    data = models.BinaryField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["verification", "number"], name="one_part_of_a_number"),)

    def __str__(self) -> str:
        return f"part {self.number} of {self.verification_id}"
