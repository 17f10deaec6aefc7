"""Outbox of facts for segment files, and their writer (docs/adr, "Facts leave through an outbox")."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.core.messages import CodedMessage, stored_message


class SegmentCounter(models.Model):
    """Numbers the snapshots of one kind of segment of one cluster, whichever collector they come from.

    ``epoch`` is when the counting began, in seconds since 1970: a database that was made anew, or a cluster that was
    registered again, never repeats what is in files already. ``seq`` has no gaps in it.
    """

    cluster = models.CharField(max_length=64, help_text="slug; the row outlives the cluster")
    kind = models.CharField(max_length=16)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=["cluster", "kind"], name="one_segment_counter"),)

    def __str__(self) -> str:
        return f"{self.kind} of {self.cluster}: {self.epoch}.{self.seq}"


class SegmentOutbox(models.Model):
    """The facts of one refresh, written in the transaction of its other rows and deleted when they are in files.

    ``data`` is a Parquet file without the columns that say which refresh it is; empty where there are no rows.
    """

    cluster = models.CharField(max_length=64)
    kind = models.CharField(max_length=16)
    epoch = models.PositiveBigIntegerField()
    seq = models.PositiveBigIntegerField()
    observed_at = models.DateTimeField()
    rows = models.PositiveIntegerField()
    data = models.BinaryField()
    size = models.PositiveIntegerField(help_text="bytes of data")
    not_answered = models.JSONField(default=list)
    errors = models.JSONField(default=list, help_text="messages, as CodedMessage.as_json")
    duration_ms = models.PositiveIntegerField()
    queued_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster", "kind", "epoch", "seq"], name="one_outbox_row_per_snapshot"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.epoch}.{self.seq} of {self.cluster}"


class SegmentWriter(models.Model):
    """Writer of segments: one row, with a lease as collectors have, and the flush that is under way.

    ``flush_*`` is a flush that has its numbers and its snapshots (``flush_rows``, ids in the outbox) and is not known
    to be complete in files yet. The holder of the lease finishes it before anything else, at the same addresses.
    """

    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    epoch = models.PositiveBigIntegerField(help_text="started at the row's creation time, seconds since 1970")
    seq = models.PositiveBigIntegerField(default=0, help_text="number of the last flush")
    flush_epoch = models.PositiveBigIntegerField(null=True)
    flush_seq = models.PositiveBigIntegerField(null=True)
    flush_at = models.DateTimeField(null=True, help_text="date and hour of its addresses")
    flush_token = models.CharField(max_length=32, blank=True, help_text="part of its files")
    flush_rows = models.JSONField(default=list)
    committed_at = models.DateTimeField(null=True, help_text="commit time in the manifest of the current flush")
    flushed_at = models.DateTimeField(null=True, help_text="completion time of the last flush")
    last_error_code = models.CharField(max_length=64, blank=True)
    last_error_params = models.JSONField(default=dict, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="failed flushes since the last success")
    lost_snapshots = models.PositiveBigIntegerField(default=0, help_text="total snapshots with dropped rows")
    lost_rows = models.PositiveBigIntegerField(default=0)
    lost_at = models.DateTimeField(null=True, help_text="last time rows were dropped")

    def __str__(self) -> str:
        return f"writer of segments, {self.epoch}.{self.seq}"

    @property
    def last_error(self) -> CodedMessage | None:
        """Message of what the last try met; None where all was well."""
        return stored_message(self.last_error_code, self.last_error_params)
