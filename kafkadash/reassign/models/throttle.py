"""The ledger of throttles: what a run set, what was there before, and what is still to be taken away."""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now

from kafkadash.domain.ledger import EntryState as State
from kafkadash.observe.models import ThrottledResource
from kafkadash.reassign.models.execution import Execution


class EntryState(models.TextChoices):
    """``domain.ledger.EntryState`` with the words that pages show."""

    INTENT = State.INTENT.value, "being set"
    SET = State.SET.value, "set"
    CLEARING = State.CLEARING.value, "being cleared"
    CLEARED = State.CLEARED.value, "cleared"
    OBLIGED = State.OBLIGED.value, "to be cleared later"


class ThrottleEntry(models.Model):
    """One rate of one broker, or one of the two lists of one topic, that a run set.

    ``value``: our rate in bytes per second; empty for a list. ``pairs``, for a list: our ``partition:broker`` → its
    own ``EntryState``. ``previous`` is what stood there before us with its source (``ConfigSource`` of ``observe``);
    None: nothing was set. ``already``: those of our pairs that stood there before; they are never subtracted.
    ``words``: what became of it, why it is obliged, or why it was left as somebody else's. ``asked``: the rate that is
    being set now; ``late``: those that lost calls may still set. ``lost_at``: of the last call whose answer was lost;
    ``again_at``: when what others had removed was last set again; ``missing_at``: when ours was first read as removed.
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="throttles")
    resource = models.CharField(max_length=8, choices=ThrottledResource)
    name = models.CharField(max_length=249, help_text="broker id or topic")
    key = models.CharField(max_length=64)
    value = models.CharField(max_length=20, blank=True)
    asked = models.CharField(max_length=20, blank=True, db_default="", default="")
    late = models.CharField(max_length=100, blank=True, db_default="", default="")
    pairs = models.JSONField(default=dict, blank=True)
    already = models.JSONField(default=list, blank=True)
    previous = models.TextField(null=True, blank=True)  # noqa: DJ001  None: nothing was set; '' is an empty list
    previous_source = models.CharField(max_length=16, blank=True)
    state = models.CharField(max_length=8, choices=EntryState, default=EntryState.INTENT)
    words = models.TextField(blank=True)
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    changed_at = models.DateTimeField(db_default=Now())
    lost_at = models.DateTimeField(null=True, blank=True)
    again_at = models.DateTimeField(null=True, blank=True)
    missing_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["execution", "resource", "name", "key"], name="one_entry_per_throttle"),
        )
        indexes = (
            models.Index(
                fields=["execution"],
                condition=~models.Q(state="cleared") | models.Q(lost_at__isnull=False),
                name="throttle_entry_open",
            ),
        )

    def __str__(self) -> str:
        return f"{self.key} of {self.resource} {self.name}"
