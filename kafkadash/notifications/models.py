"""Receivers of notifications, routes to them, events that wait to be routed, and messages with their deliveries."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import EncryptedTextField, SecretUse
from kafkadash.core.messages import CodedMessage, stored_message
from kafkadash.notifications.rules import SentChanges

CAUSE_MARK = "#"
"""Begins the ``cause`` of an event that a change explains."""


class TargetKind(models.TextChoices):
    """Service that receives notifications."""

    WEBHOOK = "webhook", "Webhook"
    SLACK = "slack", "Slack"
    TEAMS = "teams", "Microsoft Teams"
    PAGERDUTY = "pagerduty", "PagerDuty"
    EMAIL = "email", "E-mail"
    APPRISE = "apprise", "Apprise"


class EventSubject(models.TextChoices):
    FINDING = "finding", "Findings"
    CHANGE = "change", "Changes"
    TEST = "test", "Test"


class EventStep(models.TextChoices):
    """Stage of a subject that an event tells of. The first four are of findings, the last one is a test."""

    OPENED = "opened", "opened"
    ESCALATED = "escalated", "escalated"
    CLOSED = "closed", "closed"
    UNACKNOWLEDGED = "unacknowledged", "no longer acknowledged"
    WAITING = "waiting", "waiting for approval"
    APPROVED = "approved", "approved"
    DECLINED = "declined", "declined"
    STALE = "stale", "stale"
    STARTED = "started", "started"
    STUCK = "stuck", "stuck"
    ENDED = "ended", "ended"
    TESTED = "tested", "tested"


class MessageState(models.TextChoices):
    """State of a message: ``HELD`` until a storm's digest is due, ``WAITING`` until the receiver has accepted it."""

    HELD = "held", "held"
    WAITING = "waiting", "waiting"
    SENT = "sent", "sent"
    REFUSED = "refused", "refused"
    GIVEN_UP = "given-up", "given up"


class NotificationTarget(models.Model):
    """Receiver of notifications, with a lease by which one worker at a time sends to it.

    ``address`` is a URL, PagerDuty's routing key, e-mail addresses, or a URL for Apprise; ``shown`` is the part of
    it that is no secret.
    ``failing_since``: the first of the failed tries since the last message that was accepted, for all its addresses.
    """

    name = models.CharField(max_length=64, unique=True)
    kind = models.CharField(max_length=16, choices=TargetKind)
    address = EncryptedTextField()
    shown = models.CharField(max_length=255)
    secret = EncryptedTextField(blank=True, default="", help_text="key with which webhooks are signed")
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField(db_default=Now())
    failing_since = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(default=0, help_text="tries in a row that failed")
    last_sent_at = models.DateTimeField(null=True)
    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True)
    lease_until = models.DateTimeField(null=True)
    epoch = models.PositiveBigIntegerField(default=0)
    seq = models.PositiveBigIntegerField(default=0, help_text="deliveries recorded")

    def __str__(self) -> str:
        return self.name

    def secret_use(self) -> SecretUse:
        return SecretUse(addresses=(), protocol=self.kind, mechanism="", ca="", check_hostname=True)


class NotificationRoute(models.Model):
    """Events that a target receives. Without a cluster it is those of all clusters.

    ``changes``: a ``SentChanges`` value. ``severity``: the least severe state of findings that is sent. ``kinds``:
    FindingKind values, all where empty.
    ``weekdays`` (0 is Monday) and the hours are in ``time_zone``; a route whose ``begins`` and ``ends`` are equal holds
    all day, and one that ends before it begins holds over midnight, counted to the day on which it began.
    """

    target = models.ForeignKey(NotificationTarget, on_delete=models.CASCADE, related_name="routes")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="+")
    findings = models.BooleanField(default=True)
    changes = models.CharField(max_length=16, default=SentChanges.NONE.value, db_default=SentChanges.NONE.value)
    severity = models.CharField(max_length=16, default="warning")
    kinds = models.JSONField(default=list)
    time_zone = models.CharField(max_length=64, default="UTC")
    weekdays = models.JSONField(default=list)
    begins = models.TimeField(default="00:00")
    ends = models.TimeField(default="00:00")

    def __str__(self) -> str:
        return f"route {self.pk} to target {self.target_id}"


class NotificationEvent(models.Model):
    """Outbox row, written in the transaction of what it tells of; routed within a second, then kept for the list.

    ``subject_id`` is the public id of a finding or the number of a change. ``state`` is the severity of a finding.
    ``cause`` is the public id of the finding that explains it, or a change such as "#42"; receivers that were told of
    that finding, or of the end of that change, are not told of this event. ``hold_until``: not routed before, because
    its cause may follow.
    ``consequences``, format 1: {count, first: [{id, kind, state, code, params}]}, of a finding that explains others.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, null=True, related_name="+")
    subject = models.CharField(max_length=16, choices=EventSubject)
    subject_id = models.CharField(max_length=32)
    step = models.CharField(max_length=16, choices=EventStep)
    kind = models.CharField(max_length=32, blank=True, help_text="FindingKind, or the kind of a change")
    state = models.CharField(max_length=16, blank=True)
    message_code = models.CharField(max_length=64)
    message_params = models.JSONField(default=dict)
    path = models.CharField(max_length=255, blank=True, help_text="page of the subject")
    runbook = models.CharField(max_length=255, blank=True, help_text="page of the runbook")
    cause = models.CharField(max_length=32, blank=True, default="", db_default="")
    consequences = models.JSONField(null=True)
    hold_until = models.DateTimeField(null=True)
    occurred_at = models.DateTimeField()
    recorded_at = models.DateTimeField(db_default=Now())
    routed = models.BooleanField(default=False)

    class Meta:
        indexes = (
            models.Index(fields=["id"], condition=Q(routed=False), name="event_to_route"),
            models.Index(fields=["subject", "subject_id"], name="event_subject"),
            models.Index(fields=["recorded_at"], name="event_age"),
        )

    def __str__(self) -> str:
        return f"{self.subject} {self.subject_id} {self.step}"

    @property
    def message(self) -> CodedMessage | None:
        return stored_message(self.message_code, self.message_params)


class NotificationMessage(models.Model):
    """Message to a target. ``public_id`` stays the same in every try, so that a receiver can drop a repeat.

    ``digest``: sums up a storm, sent at ``send_at``. ``is_test``: sent to a disabled target as well. ``error_*``: why
    the last try failed, or which addresses of a message that is SENT were refused; ``answer``: the first characters
    that the receiver answered, ``status`` its HTTP status, ``took_ms`` how long it took.
    """

    target = models.ForeignKey(NotificationTarget, on_delete=models.CASCADE, related_name="messages")
    route = models.ForeignKey(NotificationRoute, on_delete=models.SET_NULL, null=True, related_name="messages")
    public_id = models.CharField(max_length=32, unique=True)
    digest = models.BooleanField(default=False)
    is_test = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=MessageState, default=MessageState.WAITING)
    created_at = models.DateTimeField()
    send_at = models.DateTimeField()
    tries = models.PositiveIntegerField(default=0)
    tried_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    status = models.PositiveIntegerField(null=True)
    answer = models.CharField(max_length=200, blank=True)
    took_ms = models.PositiveIntegerField(null=True)
    error_code = models.CharField(max_length=64, blank=True)
    error_params = models.JSONField(default=dict)
    events = models.ManyToManyField(NotificationEvent, through="NotificationItem", related_name="messages")

    class Meta:
        indexes = (
            models.Index(
                fields=["target", "send_at"], condition=Q(state__in=["held", "waiting"]), name="message_to_send"
            ),
            models.Index(fields=["route", "-created_at"], name="message_of_route"),
            models.Index(fields=["created_at"], name="message_age"),
        )

    def __str__(self) -> str:
        return f"{self.public_id} to target {self.target_id}: {self.state}"

    @property
    def error(self) -> CodedMessage | None:
        return stored_message(self.error_code, self.error_params) if self.error_code else None


class NotificationItem(models.Model):
    """Event in a message. A target receives an event once, whichever of its routes fit."""

    delivery = models.ForeignKey(NotificationMessage, on_delete=models.CASCADE, related_name="items")
    event = models.ForeignKey(NotificationEvent, on_delete=models.CASCADE, related_name="items")
    target = models.ForeignKey(NotificationTarget, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = (models.UniqueConstraint(fields=["event", "target"], name="event_once_per_target"),)

    def __str__(self) -> str:
        return f"event {self.event_id} in message {self.delivery_id}"
