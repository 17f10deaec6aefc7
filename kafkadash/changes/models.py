"""Change requests: what somebody wants done to a cluster, who approved exactly that, and what was said about it."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from kafkadash.changes.state_machine import OVER, ChangeState
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage
from kafkadash.jobs.models import Job


class RequestState(models.TextChoices):
    """``changes.state_machine.ChangeState`` with the words that pages show."""

    DRAFT = ChangeState.DRAFT.value, "Draft"
    PROPOSED = ChangeState.PROPOSED.value, "Proposed"
    APPROVED = ChangeState.APPROVED.value, "Approved"
    QUEUED = ChangeState.QUEUED.value, "Queued"
    STALE = ChangeState.STALE.value, "Stale"
    EXECUTING = ChangeState.EXECUTING.value, "Executing"
    PAUSED = ChangeState.PAUSED.value, "Paused"
    CANCELLING = ChangeState.CANCELLING.value, "Cancelling"
    VERIFYING = ChangeState.VERIFYING.value, "Verifying"
    DONE = ChangeState.DONE.value, "Done"
    CANCELLED = ChangeState.CANCELLED.value, "Cancelled"
    FAILED = ChangeState.FAILED.value, "Failed"
    DECLINED = ChangeState.DECLINED.value, "Declined"
    EXPIRED = ChangeState.EXPIRED.value, "Expired"


class PlanArtifact(models.Model):
    """The canonical JSON of a plan (``changes.plan``), named by its sha256; a database trigger refuses to change one.

    ``data`` is zlib of the bytes that were hashed; ``rows`` is their number.
    """

    sha256 = models.CharField(max_length=64, primary_key=True)
    data = models.BinaryField()
    rows = models.PositiveIntegerField()
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    def __str__(self) -> str:
        return f"plan {self.sha256[:12]}"


_UNTOUCHED = models.Q(
    state=RequestState.DRAFT, version=1, round=0, artifact=None, job=None, origin_word="", why="", first_step=None
)
STEPS_BEFORE_ARE_OVER = (
    "NOT EXISTS (SELECT 1 FROM changes_changerequest s WHERE s.first_step_id = c.first_step_id AND s.step < c.step"  # noqa: S608
    f" AND s.state NOT IN ({', '.join(repr(state.value) for state in OVER)}))"
)
"""SQL condition: no step before the request ``c`` is open. What claims runs has it, so that no step begins early."""


class ChangeRequestQuerySet(models.QuerySet["ChangeRequest"]):
    """Change requests apart from drafts that were begun and left alone."""

    def untouched(self) -> ChangeRequestQuerySet:
        """Return the drafts that nobody edited or planned since they were begun."""
        return self.filter(_UNTOUCHED)

    def listed(self) -> ChangeRequestQuerySet:
        """Return all but untouched drafts: who only looked at the form changed nothing that others have to see."""
        return self.exclude(_UNTOUCHED)

    def steps_of(self, change: ChangeRequest) -> ChangeRequestQuerySet:
        """Return all steps of the change that this request is a step of, in their order; none where it stands alone."""
        if change.first_step_id is None:
            return self.none()
        return self.filter(first_step=change.first_step_id).order_by("step")

    def open_before(self, change: ChangeRequest) -> ChangeRequestQuerySet:
        """Return the steps before this one that are not over, in their order."""
        return self.steps_of(change).filter(step__lt=change.step).exclude(state__in=OVER)


class ChangeRequest(models.Model):
    """Request for one change of one cluster. ``state`` is written by ``changes.transitions`` alone.

    ``version`` counts edits of the content: an editor names the version he saw. ``round`` counts submissions and
    refreshes: an approval holds for its round and digest only. ``contributor_ids`` are the ids of the users who wrote,
    edited or refreshed what is now proposed; they may not approve it. ``digest`` is empty until there is a plan.
    ``checks``: list of ``changes.checks`` results as JSON, with ``checked_at`` the time of the facts behind them.
    ``first_step``: the first request of a change of several steps, also of that one itself; ``step`` counts from 1.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="changes")
    kind = models.CharField(max_length=32, help_text="a name of changes.kinds")
    state = models.CharField(max_length=16, choices=RequestState, default=RequestState.DRAFT)
    state_since = models.DateTimeField(db_default=Now())
    title = models.CharField(max_length=200, blank=True, help_text='short summary, for example "Drain broker 3"')
    why = models.TextField(blank=True)
    input = models.JSONField(default=dict, help_text="settings of the author; their shape depends on the kind")
    options = models.JSONField(default=dict, help_text="limits of the run; the approved ones are in the digest")
    artifact = models.ForeignKey(PlanArtifact, on_delete=models.PROTECT, null=True, blank=True)
    digest = models.CharField(max_length=64, blank=True)
    job = models.ForeignKey(
        Job, on_delete=models.SET_NULL, null=True, blank=True, related_name="+", help_text="the last planning"
    )
    topology_at = models.DateTimeField(null=True, blank=True, help_text="time of the topology behind the plan")
    version = models.PositiveIntegerField(default=1)
    round = models.PositiveIntegerField(default=0)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="changes_written"
    )
    author_name = models.CharField(max_length=150)
    edited_by_name = models.CharField(max_length=150, blank=True)
    edited_at = models.DateTimeField(null=True, blank=True)
    contributor_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)
    risk = models.PositiveSmallIntegerField(null=True, blank=True, help_text="points, 0 to 100")
    risk_reasons = models.JSONField(default=list, blank=True, help_text="list of [points, message]")
    approvals_needed = models.PositiveSmallIntegerField(null=True, blank=True)
    least_approvals = models.PositiveSmallIntegerField(
        default=1, db_default=1, help_text="fewest that the kind asks for"
    )
    checks = models.JSONField(default=list, blank=True)
    checked_at = models.DateTimeField(null=True, blank=True)
    left_out = models.JSONField(default=list, blank=True, help_text="messages: what of the scope is not in the plan")
    stale_reasons = models.JSONField(default=list, blank=True, help_text="messages, one per row or check that failed")
    broke_glass_name = models.CharField(
        max_length=150, blank=True, help_text="administrator who queued it without approvals"
    )
    self_approved_name = models.CharField(
        max_length=150, blank=True, help_text="approver who also wrote, edited or refreshed it"
    )
    submitted_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    not_before = models.DateTimeField(null=True, blank=True, help_text="start of the window; empty: immediately")
    not_after = models.DateTimeField(null=True, blank=True, help_text="end of the window; empty: open")
    origin = models.ForeignKey("self", on_delete=models.SET_NULL, null=True, blank=True, related_name="successors")
    origin_word = models.CharField(max_length=16, blank=True, help_text='"copy", "rollback" or "re-plan"')
    first_step = models.ForeignKey("self", on_delete=models.CASCADE, null=True, blank=True, related_name="+")
    step = models.PositiveSmallIntegerField(default=0, db_default=0, help_text="place among the steps, 0 if it is none")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    objects = ChangeRequestQuerySet.as_manager()

    class Meta:
        ordering = ("-id",)
        indexes = (
            models.Index(fields=["cluster", "state"], name="change_of_cluster"),
            models.Index(fields=["state", "expires_at"], name="change_expiry"),
        )
        constraints = (
            models.UniqueConstraint(fields=["first_step", "step"], name="one_request_per_step"),
            models.CheckConstraint(
                name="kinds_with_several_approvals",
                condition=models.Q(least_approvals=1)
                | models.Q(broke_glass_name="", self_approved_name="")
                & (models.Q(approvals_needed=None) | models.Q(approvals_needed__gte=models.F("least_approvals"))),
            ),
        )

    def __str__(self) -> str:
        return f"#{self.pk} {self.title}".strip()

    @property
    def left_out_messages(self) -> list[CodedMessage]:
        return [CodedMessage.from_json(stored) for stored in self.left_out]


def has_open_step_before(prefix: str = "") -> models.Exists:
    """Return the condition that a step before the request is open; ``prefix``: path to the request, as "request__"."""
    earlier = ChangeRequest.objects.filter(
        first_step=models.OuterRef(f"{prefix}first_step"), step__lt=models.OuterRef(f"{prefix}step")
    )
    return models.Exists(earlier.exclude(state__in=OVER))


class ReviewVerdict(models.TextChoices):
    APPROVED = "approved", "approved"
    DECLINED = "declined", "declined"


class VoidCode(models.TextChoices):
    """Codes of why an approval does not count any more."""

    NEW_PLAN = "new-plan", "new plan created"
    EDITED = "edited", "reopened for editing"
    WITHDRAWN = "withdrawn", "withdrawn"
    CHANGED = "changed", "changed"
    DECLINED_LATER = "declined-later", "declined later"
    MAY_NOT_APPROVE = "may-not-approve", "approver lost the permission"


class Review(models.Model):
    """Decision of a person about a digest; of a row only ``void_at``, ``void_code`` and ``void_by`` ever change.

    Who approved may still decline in the same round, which makes his approval void.
    """

    request = models.ForeignKey(ChangeRequest, on_delete=models.CASCADE, related_name="reviews")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="reviews")
    user_name = models.CharField(max_length=150)
    verdict = models.CharField(max_length=16, choices=ReviewVerdict)
    round = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    note = models.TextField(blank=True)
    at = models.DateTimeField(db_default=Now(), editable=False)
    void_at = models.DateTimeField(null=True, blank=True)
    void_code = models.CharField(max_length=20, choices=VoidCode.choices, blank=True)
    void_by = models.CharField(max_length=200, blank=True, help_text="user who voided it, or who lost the permission")

    class Meta:
        ordering = ("at", "id")
        constraints = (
            models.UniqueConstraint(
                fields=["request", "user", "round"],
                condition=models.Q(void_at=None),
                name="one_review_per_person_and_round",
            ),
        )

    def __str__(self) -> str:
        return f"{self.user_name} {self.verdict} #{self.request_id}"


class Comment(models.Model):
    """Something said about a request; text only."""

    request = models.ForeignKey(ChangeRequest, on_delete=models.CASCADE, related_name="comments")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="comments")
    user_name = models.CharField(max_length=150)
    text = models.TextField()
    at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering = ("at", "id")

    def __str__(self) -> str:
        return f"{self.user_name} on #{self.request_id}"


class Policy(models.Model):
    """Rules of a cluster for its change requests. A cluster without a row has the defaults written here."""

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="policy")
    approvals_low = models.PositiveSmallIntegerField(default=1)
    approvals_medium = models.PositiveSmallIntegerField(default=1)
    approvals_high = models.PositiveSmallIntegerField(default=2)
    valid_hours = models.PositiveSmallIntegerField(default=24, help_text="of a proposal and of an approval")
    self_approval = models.BooleanField(default=False)
    break_glass = models.BooleanField(default=False, help_text="an administrator may queue without approvals")

    class Meta:
        verbose_name_plural = "policies"

    def __str__(self) -> str:
        return f"policy of cluster {self.cluster_id}"


class PolicyLoosening(models.Model):
    """Fields of a cluster's policy that an administrator wants to loosen; one at a time.

    Another administrator confirms it, and it is in force from ``counts_from`` on: then the row is gone.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="policy_loosening")
    values = models.JSONField(help_text="the new values, by field of the policy")
    reason = models.TextField()
    asked_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    asked_at = models.DateTimeField(db_default=Now(), editable=False)
    confirmed_by_name = models.CharField(max_length=150, blank=True)
    counts_from = models.DateTimeField(null=True, blank=True, help_text="empty until confirmed")

    def __str__(self) -> str:
        return f"loosening of the policy of cluster {self.cluster_id}"
