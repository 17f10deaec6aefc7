"""Tables of runs: lease and figures, rows, orders of people, and the throttle ledger."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models.functions import Now

from kafkadash.changes.models import ChangeRequest
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedReason, reason_text, stored_reason, unpack_reasons
from kafkadash.execution.engine.reasons import LedgerReasonCode, RowReasonCode, RunReasonCode
from kafkadash.execution.engine.state import RowState
from kafkadash.execution.engine.throttle_ledger import LedgerState
from kafkadash.monitoring.models import ThrottledResource

RUN_FORMAT = 1
"""Version of the meaning of a run's rows. Count it up with a change that an older version would misread."""


class RunOutcome(models.TextChoices):
    """How a run that is DONE ended."""

    CLEAN = "clean", "clean"
    OBLIGATIONS = "obligations", "throttle removal pending"
    EXCEPTIONS = "exceptions", "with exceptions"


class MoveState(models.TextChoices):
    """``execution.engine.state.RowState`` with the words that pages show."""

    PENDING = RowState.PENDING.value, "waiting"
    WAITING = RowState.WAITING.value, "held"
    SUBMITTING = RowState.SUBMITTING.value, "submitting"
    MOVING = RowState.MOVING.value, "copying"
    CATCHING_UP = RowState.CATCHING_UP.value, "catching up"
    CANCELLING = RowState.CANCELLING.value, "cancelling"
    UNKNOWN = RowState.UNKNOWN.value, "unknown"
    DONE = RowState.DONE.value, "completed"
    CANCELLED = RowState.CANCELLED.value, "cancelled"
    SKIPPED = RowState.SKIPPED.value, "skipped"
    SUPERSEDED = RowState.SUPERSEDED.value, "superseded"
    TOPIC_DELETED = RowState.TOPIC_DELETED.value, "topic deleted"
    FAILED = RowState.FAILED.value, "failed"


def run_reason_choices() -> list[tuple[str, str]]:
    """Named by migrations, so that a new code needs none."""
    return [(code.value, code.value) for code in (*RunReasonCode, *RowReasonCode)]


def row_reason_choices() -> list[tuple[str, str]]:
    return [(code.value, code.value) for code in RowReasonCode]


def ledger_reason_choices() -> list[tuple[str, str]]:
    return [(code.value, code.value) for code in LedgerReasonCode]


class Execution(models.Model):
    """Run of one request; the row is made when the run is queued, and its turn is worked on under its lease.

    ``format``: ``RUN_FORMAT``; a run of a newer one is left alone.

    ``epoch`` and ``lease_until`` are its lease, ``next_at`` and ``dispatched_until`` its turn, as of a CollectorRun.
    ``active`` from its turn until all is over: a cluster has at most one such run. ``throttle`` (bytes per second),
    ``per_broker`` and ``per_cluster`` are in force now and may be changed within what was approved. ``blocked`` says
    why it does not begin though it is its turn. ``held``, ``brake`` and ``error`` are what the last step found: why
    nothing is submitted, which min-ISR holds it up, why the cluster could not be read. ``progress`` are the figures
    (``execution.progress.figures.RunNow``) and what measuring remembers, ``samples`` the history for the chart; both
    overwritten each step (``run.measure``).
    ``foreign``: throttles of others that stand where ours should, each {resource, name, key, value, ours, at}; there
    nothing is adjusted until somebody decides, and ``left`` names who decided to leave it. ``throttles_read_at``: when
    all that it set was last read. ``absences``: which brokers were away while it ran (``run.broker_absences``); None
    before its first look, and where a version that did not keep it worked on it.
    """

    request = models.OneToOneField(ChangeRequest, on_delete=models.CASCADE, related_name="execution")
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="executions")
    format = models.PositiveSmallIntegerField(default=RUN_FORMAT)
    epoch = models.PositiveBigIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    next_at = models.DateTimeField(db_default=Now())
    dispatched_until = models.DateTimeField(null=True, blank=True)
    active = models.BooleanField(default=False)
    queued_at = models.DateTimeField(db_default=Now())
    blocked_code = models.CharField(max_length=40, choices=run_reason_choices, blank=True)
    blocked_params = models.JSONField(default=dict, blank=True)
    blocked_at = models.DateTimeField(null=True, blank=True)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)
    throttle = models.BigIntegerField(help_text="bytes per second, per broker and direction")
    per_broker = models.PositiveIntegerField()
    per_cluster = models.PositiveIntegerField()
    rows = models.PositiveIntegerField(default=0, help_text="total moves")
    steps = models.PositiveBigIntegerField(default=0, help_text="committed steps")
    looked_at = models.DateTimeField(null=True, blank=True, help_text="time of the last cluster reading")
    error_code = models.CharField(max_length=40, choices=run_reason_choices, blank=True)
    error_params = models.JSONField(default=dict, blank=True)
    failures = models.PositiveIntegerField(default=0, help_text="consecutive failed readings")
    held = models.JSONField(default=list, blank=True, help_text="packed reasons")
    brake_code = models.CharField(max_length=40, choices=run_reason_choices, blank=True)
    brake_params = models.JSONField(default=dict, blank=True)
    foreign = models.JSONField(default=list, blank=True)
    absences = models.JSONField(null=True, blank=True)
    throttles_read_at = models.DateTimeField(null=True, blank=True)
    progress = models.BinaryField(default=b"", blank=True)
    progress_at = models.DateTimeField(null=True, blank=True, help_text="time of the offsets")
    samples = models.BinaryField(default=b"", blank=True)
    outcome = models.CharField(max_length=16, choices=RunOutcome, blank=True)
    report = models.JSONField(default=dict, blank=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["cluster"], condition=models.Q(active=True), name="one_run_per_cluster"),
        )

    def __str__(self) -> str:
        return f"run of #{self.request_id}"

    @property
    def blocked(self) -> CodedReason | None:
        return stored_reason(self.blocked_code, self.blocked_params)

    @property
    def brake(self) -> CodedReason | None:
        return stored_reason(self.brake_code, self.brake_params)

    @property
    def error(self) -> CodedReason | None:
        return stored_reason(self.error_code, self.error_params)

    @property
    def held_reasons(self) -> tuple[CodedReason, ...]:
        return unpack_reasons(self.held)


class Move(models.Model):
    """Partition of a run (``engine.state.RunRow``), inserted at the start, written when its state changes.

    Only the executor writes it. ``moved_bytes``: what was copied to the adding replicas when it ended, None where that
    is not known.
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="moves")
    topic = models.CharField(max_length=249)
    topic_id = models.CharField(max_length=36, blank=True)
    partition = models.PositiveIntegerField()
    current = ArrayField(models.IntegerField())
    target = ArrayField(models.IntegerField())
    log_dirs = models.JSONField(default=list, blank=True)
    size_bytes = models.BigIntegerField(null=True, help_text="size of one replica at the start of the run")
    mends_racks = models.BooleanField(default=False)
    state = models.CharField(max_length=16, choices=MoveState, default=MoveState.PENDING)
    reason_code = models.CharField(max_length=40, choices=row_reason_choices, blank=True)
    reason_params = models.JSONField(default=dict, blank=True)
    since = models.DateTimeField(null=True)
    attempt = models.PositiveSmallIntegerField(default=0)
    unanswered = models.PositiveSmallIntegerField(default=0)
    first_at = models.DateTimeField(null=True)
    submitted_at = models.DateTimeField(null=True)
    acted_at = models.DateTimeField(null=True)
    cancelled_at = models.DateTimeField(null=True)
    reorders = models.PositiveSmallIntegerField(default=0)
    elections = models.PositiveSmallIntegerField(default=0)
    hint = models.CharField(max_length=16, choices=MoveState, blank=True)
    hint_at = models.DateTimeField(null=True)
    asks = models.BooleanField(default=False)
    moved_bytes = models.BigIntegerField(null=True)

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=["execution", "topic", "partition"], name="one_move_per_partition"),
        )
        indexes = (models.Index(fields=["execution", "state"], name="move_of_run"),)

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    @property
    def reason(self) -> CodedReason | None:
        return stored_reason(self.reason_code, self.reason_params)


class OrderType(models.TextChoices):
    """Type of an order that a person may give to a run that goes on, besides the states of its request."""

    CANCEL_ROW = "cancel_row", "cancel move"
    AGAIN = "again", "submit move again"
    GIVE_UP = "give_up", "give up move"
    ELECT = "elect", "elect preferred leader"
    SET_THROTTLE = "set_throttle", "set kafkadash throttle again"
    LEAVE_THROTTLE = "leave_throttle", "keep throttle set by others"


class Order(models.Model):
    """Order of a person to a run; the next step executes the order and stores the answer.

    ``topic`` and ``partition`` name a row; of a throttle, ``topic`` is empty and ``entity`` names resource, name and
    key, separated by blanks ("broker 4 leader.replication.throttled.rate").
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="orders")
    order_type = models.CharField(max_length=16, choices=OrderType)
    topic = models.CharField(max_length=249, blank=True)
    partition = models.PositiveIntegerField(null=True, blank=True)
    entity = models.CharField(max_length=400, blank=True)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    user_name = models.CharField(max_length=150)
    reason = models.TextField(blank=True)
    at = models.DateTimeField(db_default=Now(), editable=False)
    taken_at = models.DateTimeField(null=True, blank=True)
    answer_code = models.CharField(max_length=40, blank=True)
    answer_params = models.JSONField(default=dict, blank=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["execution"], condition=models.Q(taken_at=None), name="order_not_taken"),)

    def __str__(self) -> str:
        return f"{self.user_name}: {self.order_type}"

    @property
    def answer(self) -> CodedReason | None:
        """None until a step did it, or could not."""
        return stored_reason(self.answer_code, self.answer_params)

    @answer.setter
    def answer(self, answer: CodedReason) -> None:
        self.answer_code, self.answer_params = answer.stored_code, answer.params()

    @property
    def answer_text(self) -> str:
        return reason_text(self.answer)


class ThrottleEntryState(models.TextChoices):
    """``execution.engine.throttle_ledger.LedgerState`` with the words that pages show."""

    INTENT = LedgerState.INTENT.value, "being set"
    SET = LedgerState.SET.value, "set"
    CLEARING = LedgerState.CLEARING.value, "being removed"
    CLEARED = LedgerState.CLEARED.value, "removed"
    OBLIGED = LedgerState.OBLIGED.value, "removal pending"


class ThrottleEntry(models.Model):
    """Rate of one broker, or one of the two lists of one topic, that a run set.

    ``value``: our rate in bytes per second; empty for a list. ``pairs``, for a list: our ``partition:broker`` → its
    own ``EntryState``. ``previous`` is what stood there before us with its source (``ConfigSource`` of ``monitoring``);
    None: nothing was set. ``already``: those of our pairs that stood there before; they are never subtracted.
    ``reason``: what became of it, why it is obliged, or why it was left as somebody else's. ``requested``: the rate
    that is being set now; ``late``: those that lost calls may still set. ``lost_at``: of the last call whose answer was
    lost; ``again_at``: when what others had removed was last set again; ``missing_at``: when ours was first read as
    removed.
    """

    execution = models.ForeignKey(Execution, on_delete=models.CASCADE, related_name="throttles")
    resource = models.CharField(max_length=8, choices=ThrottledResource)
    name = models.CharField(max_length=249, help_text="broker id or topic")
    key = models.CharField(max_length=64)
    value = models.CharField(max_length=20, blank=True)
    requested = models.CharField(max_length=20, blank=True, db_default="", default="")
    late = models.CharField(max_length=100, blank=True, db_default="", default="")
    pairs = models.JSONField(default=dict, blank=True)
    already = models.JSONField(default=list, blank=True)
    previous = models.TextField(null=True, blank=True)  # noqa: DJ001  None: nothing was set; '' is an empty list
    previous_source = models.CharField(max_length=16, blank=True)
    state = models.CharField(max_length=8, choices=ThrottleEntryState, default=ThrottleEntryState.INTENT)
    reason_code = models.CharField(max_length=32, choices=ledger_reason_choices, blank=True)
    reason_params = models.JSONField(default=dict, blank=True)
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

    @property
    def reason(self) -> CodedReason | None:
        return stored_reason(self.reason_code, self.reason_params)
