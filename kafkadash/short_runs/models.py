"""Tables of short runs: the run with its lease, and its items."""

from __future__ import annotations

from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models.functions import Now

from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, reason_text, stored_reason
from kafkadash.short_runs.state import ItemState

RUN_FORMAT = 1
"""Format of the content of items and readings. A run of a newer format is left alone."""


class StoredItemState(models.TextChoices):
    """``short_runs.state.ItemState`` with the words that pages show."""

    PENDING = ItemState.PENDING.value, "waiting"
    SENDING = ItemState.SENDING.value, "sent"
    LOST = ItemState.LOST.value, "answer lost"
    DONE = ItemState.DONE.value, "done"
    UNCHANGED = ItemState.UNCHANGED.value, "not needed"
    SKIPPED = ItemState.SKIPPED.value, "skipped"
    REFUSED = ItemState.REFUSED.value, "failed"
    CANCELLED = ItemState.CANCELLED.value, "cancelled"
    REVERTED = ItemState.REVERTED.value, "changed since"


_MARKS = {
    ItemState.LOST: "unknown",
    ItemState.DONE: "ok",
    ItemState.UNCHANGED: "ok",
    ItemState.SKIPPED: "warning",
    ItemState.REFUSED: "warning",
    ItemState.REVERTED: "warning",
}


class ShortOutcome(models.TextChoices):
    """How a short run that is DONE ended."""

    CLEAN = "clean", "clean"
    EXCEPTIONS = "exceptions", "with exceptions"


class ShortRun(models.Model):
    """Run of one request whose work is a list of items; the row is made when the request is queued.

    ``epoch``, ``lease_until``, ``next_at`` and ``dispatched_until`` are its lease and its turn (``core.leases``).
    ``counts``: items by state as of the last step, for lists. ``error``: why the last step could not read the cluster,
    ``blocked``: why a queued run does not begin; ``blocked_at``: since when, None while it only waits for its window or
    for another run.
    """

    request = models.OneToOneField(ChangeRequest, on_delete=models.CASCADE, related_name="short_run")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="short_runs")
    format = models.PositiveSmallIntegerField(default=RUN_FORMAT)
    epoch = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True, blank=True)
    steps = models.PositiveBigIntegerField(default=0, help_text="committed steps")
    queued_at = models.DateTimeField(db_default=Now())
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    looked_at = models.DateTimeField(null=True, blank=True, help_text="time of the last cluster reading")
    blocked_code = models.CharField(max_length=64, blank=True)
    blocked_params = models.JSONField(default=dict, blank=True)
    blocked_at = models.DateTimeField(null=True, blank=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_params = models.JSONField(default=dict, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="consecutive failed readings")
    items = models.PositiveIntegerField(default=0, help_text="total items")
    counts = models.JSONField(default=dict, blank=True)
    outcome = models.CharField(max_length=16, choices=ShortOutcome, blank=True)

    def __str__(self) -> str:
        return f"short run of #{self.request_id}"

    @property
    def blocked(self) -> CodedReason | None:
        return stored_reason(self.blocked_code, self.blocked_params)

    @property
    def error(self) -> CodedReason | None:
        return stored_reason(self.error_code, self.error_params)


class ShortItem(models.Model):
    """Item of a run. ``before``: the values found before its first request, null until then; JSON of the kind."""

    run = models.ForeignKey(ShortRun, on_delete=models.CASCADE, related_name="rows")
    place = models.PositiveIntegerField(help_text="order of the plan")
    subject = models.CharField(max_length=300)
    content = models.JSONField()
    state = models.CharField(max_length=16, choices=StoredItemState, default=StoredItemState.PENDING)
    reason_code = models.CharField(max_length=64, blank=True)
    reason_params = models.JSONField(default=dict, blank=True)
    attempt = models.PositiveSmallIntegerField(default=0, help_text="requests that were sent")
    before = models.JSONField(null=True, blank=True)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("place",)
        constraints = (
            models.UniqueConstraint(fields=["run", "place"], name="one_item_per_place"),
            models.UniqueConstraint(fields=["run", "subject"], name="one_item_per_subject"),
        )
        indexes = (
            models.Index(fields=["run", "state"], name="short_item_state"),
            # The timeline looks for the items of a broker, topic or group.
            GinIndex(fields=["content"], opclasses=["jsonb_path_ops"], name="short_item_content"),
        )

    def __str__(self) -> str:
        return f"{self.subject} of run {self.run_id}"

    @property
    def reason(self) -> CodedReason | None:
        return stored_reason(self.reason_code, self.reason_params)

    @property
    def reason_text(self) -> str:
        return reason_text(self.reason)

    @property
    def mark(self) -> str:
        """Status token of the state, '' while nothing is known of it."""
        return _MARKS.get(ItemState(self.state), "")
