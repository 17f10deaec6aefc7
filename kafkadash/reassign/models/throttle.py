"""The ledger of throttles: what a run set, what was there before, and what is still to be taken away."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.observe.models import ThrottledResource
from kafkadash.reassign.models.execution import Execution


class EntryState(models.TextChoices):
    """04-changes.md §4: a row stands before its call."""

    INTENT = "intent", "about to be set"
    SET = "set", "set"
    CLEARING = "clearing", "about to be cleared"
    CLEARED = "cleared", "cleared"
    OBLIGED = "obliged", "to be cleared later"


class ThrottleEntry(models.Model):
    """One rate of one broker, or one of the two lists of one topic, that a run set.

    ``value``: our rate in bytes per second; empty for a list. ``pairs``, for a list: our ``partition:broker`` → its
    own ``EntryState``. ``previous`` is what stood there before us with its source (``ConfigSource`` of ``observe``);
    None: nothing was set. ``already``: those of our pairs that stood there before; they are never subtracted.
    ``words``: why it is obliged, or why it was left as somebody else's.
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="throttles")
    resource = models.CharField(max_length=8, choices=ThrottledResource)
    name = models.CharField(max_length=249, help_text="broker id or topic")
    key = models.CharField(max_length=64)
    value = models.CharField(max_length=20, blank=True)
    pairs = models.JSONField(default=dict, blank=True)
    already = models.JSONField(default=list, blank=True)
    previous = models.TextField(null=True, blank=True)  # noqa: DJ001  None: nothing was set; '' is an empty list
    previous_source = models.CharField(max_length=16, blank=True)
    state = models.CharField(max_length=8, choices=EntryState, default=EntryState.INTENT)
    words = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    changed_at = models.DateTimeField(db_default=Now())

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["execution", "resource", "name", "key"], name="one_entry_per_throttle"),
        )
        indexes = (
            models.Index(fields=["execution"], condition=~models.Q(state="cleared"), name="throttle_entry_open"),
        )

    def __str__(self) -> str:
        return f"{self.key} of {self.resource} {self.name}"
