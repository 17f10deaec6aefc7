"""Users of kafkadash, and the audit of what was done by whom."""

from __future__ import annotations

from django.contrib.auth.models import AbstractUser
from django.db import models
from django.db.models.functions import Now

from kafkadash.core.messages import CodedMessage, stored_message


class User(AbstractUser):
    """A person. ``is_superuser`` is the administrator of the whole installation; roles per cluster are ClusterRole."""


class AuditEvent(models.Model):
    """Record of one action, never changed afterwards: a database trigger refuses UPDATE, DELETE and TRUNCATE.

    Objects and actors are named by type and id as text, so an event outlives what it speaks of.
    """

    at = models.DateTimeField(db_default=Now(), editable=False)
    actor = models.CharField(max_length=64, help_text="user:<id>, or the part of kafkadash that acted")
    actor_name = models.CharField(max_length=150)
    action = models.CharField(max_length=64, help_text="entity.verb, for example cluster.registered")
    object_type = models.CharField(max_length=64)
    object_id = models.CharField(max_length=128)
    cluster = models.CharField(max_length=64, blank=True, help_text="slug of the cluster concerned")
    reason = models.TextField(blank=True, help_text="as a person typed it")
    reason_code = models.CharField(max_length=64, blank=True, db_default="", help_text="why kafkadash did it")
    reason_params = models.JSONField(default=dict, blank=True, db_default={})
    before = models.JSONField(null=True, blank=True)
    after = models.JSONField(null=True, blank=True)
    address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering = ("-at", "-id")
        indexes = (
            models.Index(fields=["-at", "-id"], name="audit_newest"),
            models.Index(fields=["object_type", "object_id", "-at"], name="audit_object"),
            models.Index(fields=["cluster", "-at"], name="audit_cluster"),
        )

    def __str__(self) -> str:
        return f"{self.actor_name} {self.action} {self.object_type} {self.object_id}"

    @property
    def why(self) -> CodedMessage | str:
        """The reason that a person typed, or that kafkadash had; '' without any."""
        return self.reason or stored_message(self.reason_code, self.reason_params) or ""
