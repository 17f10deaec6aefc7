"""Jobs: their kinds, which apps register in ``AppConfig.ready``, and the life of each job.

A job is queued by a page or a command, dispatched by the tick, and claimed, run and ended by one worker. A claim
is a lease on the job's row (``core.leases``); a worker that slept past it finds a newer epoch and writes nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

import structlog
from celery import shared_task
from django.conf import settings
from django.db import close_old_connections, connection
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from psycopg.types.json import Jsonb

from kafkadash.accounts.errors import ActionForbidden
from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, is_allowed
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.secrets import SecretError
from kafkadash.core import leases
from kafkadash.core.errors import UserError
from kafkadash.core.leases import LeasedTable, LeaseLost, RowLease
from kafkadash.core.logs import hide_values, without_secrets
from kafkadash.core.messages import CodedMessage, coded, message_columns
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.kafka.api import KafkaFailure


class UnknownJobKind(UserError):
    """No app made this kind known; ``str()`` names it."""


@dataclass(frozen=True, slots=True)
class JobKind:
    """``handler`` returns the result as JSON can carry it.

    ``deadline_s`` is for one attempt. After ``attempts`` workers that died on it the job fails; more than one only for
    handlers that may safely run twice. ``forget`` is called with the id of a job that ended without its handler, to
    take out of its row what was meant for the handler alone. ``too_long`` says that the deadline has passed, and what
    to do then.
    """

    name: str
    handler: Callable[[JobRun], dict[str, Any]]
    deadline_s: float
    attempts: int = 1
    forget: Callable[[UUID], None] | None = None
    too_long: StrEnum = JobErrorCode.TOOK_TOO_LONG


_kinds: dict[str, JobKind] = {}


def register_kind(kind: JobKind) -> None:
    """Raises ValueError when another handler already has the name."""
    known = _kinds.setdefault(kind.name, kind)
    if known != kind:
        raise ValueError(f"Two kinds of jobs are called {kind.name!r}.")


def kind_of(name: str) -> JobKind:
    """Raises UnknownKind."""
    try:
        return _kinds[name]
    except KeyError:
        raise UnknownJobKind(JobErrorCode.KIND_UNKNOWN, name=name) from None


log = structlog.get_logger(__name__)

# How long a message may be under way before the job is handed out again, in seconds.
DISPATCH_HOLD_S = 10.0
DISPATCH_LIMIT = 100
_NO_ERROR = "error_code = '', error_params = '{}'"


JOBS = LeasedTable(
    Job._meta.db_table,
    order="created_at",
    scheduled=False,
    waiting=f"state = '{JobState.QUEUED.value}' AND NOT cancel_requested",
    holding=f"state = '{JobState.RUNNING.value}'",
    begins=f"state = '{JobState.RUNNING.value}', started_at = clock_timestamp(), dispatched_until = NULL,"
    " progress = NULL, progress_note = '', ",
)


@dataclass(frozen=True, slots=True)
class JobClaim:
    """The right to run one job, until its lease ends. Each method raises LeaseLost when the job was taken over."""

    lease: RowLease

    @property
    def job_id(self) -> UUID:
        job_id: UUID = self.lease.row_id
        return job_id

    def renew(self) -> bool:
        """Take another full term; return whether somebody asked to cancel."""
        return bool(self.lease.renew(returning="cancel_requested"))

    def progress(self, fraction: float | None, note: str) -> bool:
        """Store how far it is (0 to 1, None if unknown) and what is being done; renew, and return as ``renew``."""
        values = [fraction, without_secrets(note)[:200]]
        return bool(self.lease.renew("progress = %s, progress_note = %s, ", values, returning="cancel_requested"))

    def show(self, result: dict[str, Any]) -> None:
        """Store what is known so far, for a page that watches; ``finish`` replaces it."""
        self.lease.update("result = %s", [Jsonb(result)])

    def finish(self, result: dict[str, Any]) -> None:
        """Raises TypeError for a result that JSON cannot carry."""
        self._end(JobState.DONE, f"result = %s, progress = 1, {_NO_ERROR}", [Jsonb(result)])
        log.info("job.done", job=str(self.job_id))

    def fail(self, why: CodedMessage) -> None:
        """Store it without secrets in its parameters."""
        stored = message_columns(why)
        values = [stored["error_code"], Jsonb(hide_values(stored["error_params"]))]
        self._end(JobState.FAILED, "error_code = %s, error_params = %s", values)
        log.warning("job.failed", job=str(self.job_id), code=why.shown_code, error=str(why))

    def cancelled(self) -> None:
        """End the job as cancelled: nothing runs any more."""
        self._end(JobState.CANCELLED, _NO_ERROR, [])
        log.info("job.cancelled", job=str(self.job_id))

    def _end(self, state: JobState, assignments: str, values: list[Any]) -> None:
        self.lease.update(
            f"state = %s, finished_at = clock_timestamp(), lease_until = NULL, {assignments}", [state.value, *values]
        )


def enqueue(
    kind: str,
    *,
    cluster: Cluster | None = None,
    requested_by: User | None = None,
    input: dict[str, Any] | None = None,  # noqa: A002  the column's name
) -> Job:
    """Write the row; the tick finds it within a second. Raises UnknownKind."""
    kind_of(kind)
    job = Job.objects.create(kind=kind, cluster=cluster, requested_by=requested_by, input=input or {})
    log.debug("job.queued", job=str(job.pk), kind=kind, cluster=cluster.slug if cluster else None)
    return job


def claim(job_id: UUID) -> JobClaim | None:
    """The right to run the job, or None when it is not waiting: somebody has it, it has ended, or it does not exist."""
    lease = leases.take(job_id, of=JOBS, only_if_due=False)
    return JobClaim(lease) if lease else None


def may_stop(user: User, job: Job) -> bool:
    """Allow the person who asked for the job, and administrators of its cluster."""
    return job.requested_by_id == user.pk or is_allowed(user, MANAGE, job.cluster)


def stop_job(job: Job, user: User) -> None:
    """Ask for its end on behalf of this person. Raises PermissionDenied for somebody else's job."""
    if not may_stop(user, job):
        raise ActionForbidden(JobErrorCode.ASKED_BY_ANOTHER, who=job.requested_by or "A deleted user")
    request_cancel(job.pk)


def request_cancel(job_id: UUID) -> JobState | None:
    """Cancel a waiting job at once, a running one at its next step; returns its state now, None if there is no job.

    A job that has ended stays as it ended.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET cancel_requested = TRUE,"
            " finished_at = CASE WHEN state = %s THEN clock_timestamp() ELSE finished_at END,"
            " state = CASE WHEN state = %s THEN %s ELSE state END"
            " WHERE id = %s AND state IN (%s, %s) RETURNING state, kind",
            [
                JobState.QUEUED.value,
                JobState.QUEUED.value,
                JobState.CANCELLED.value,
                job_id,
                JobState.QUEUED.value,
                JobState.RUNNING.value,
            ],
        )
        row = cursor.fetchone()
    if row:
        if row[0] == JobState.CANCELLED:
            _forget_input(row[1], job_id)
        return JobState(row[0])
    job = Job.objects.filter(pk=job_id).first()
    return JobState(job.state) if job else None


def dispatch_due_jobs() -> int:
    """Settle jobs whose worker is gone, then send one message for each waiting job; returns how many were sent.

    A message that gets lost costs ``DISPATCH_HOLD_S``; one that arrives twice finds the job claimed.
    """
    settle_expired_jobs()
    waiting = "WHERE r.state = %s AND NOT r.cancel_requested"
    due = leases.claim(JOBS, waiting, DISPATCH_LIMIT, DISPATCH_HOLD_S, [JobState.QUEUED.value])
    for sent, job_id in enumerate(due):
        try:
            run_job.apply_async((str(job_id),), retry=False)
        except OperationalError as error:
            leases.unclaim(JOBS, due[sent:])
            log.warning("jobs.queue_unreachable", waiting=len(due) - sent, error=str(error))
            return sent
    return len(due)


def settle_expired_jobs() -> None:
    """Running jobs whose lease ran out wait again if their kind allows another attempt, and have failed otherwise."""
    expired = Job.objects.filter(state=JobState.RUNNING, lease_until__lt=Now())
    for job in expired.only("kind", "epoch", "cancel_requested"):
        swap = Job.objects.filter(pk=job.pk, epoch=job.epoch, state=JobState.RUNNING, lease_until__lt=Now())
        try:
            again = job.epoch < kind_of(job.kind).attempts
        except UnknownJobKind:
            again = False
        if job.cancel_requested:
            changed = swap.update(state=JobState.CANCELLED, finished_at=Now(), lease_until=None)
        elif again:
            changed = swap.update(state=JobState.QUEUED, lease_until=None, dispatched_until=None)
        else:
            changed = swap.update(
                state=JobState.FAILED,
                **message_columns(coded(JobErrorCode.LOST_WORKER)),
                finished_at=Now(),
                lease_until=None,
            )
        if changed and (job.cancel_requested or not again):
            _forget_input(job.kind, job.pk)
        if changed:
            log.warning("job.worker_lost", job=str(job.pk), kind=job.kind, again=again)


def _forget_input(kind: str, job_id: UUID) -> None:
    """Forget the input of a job that ended without its handler."""
    try:
        forget = kind_of(kind).forget
    except UnknownJobKind:
        return
    if forget is not None:
        forget(job_id)


def forget_old_jobs() -> int:
    """Delete jobs that ended longer ago than ``settings.KEEP_JOBS_HOURS``; returns how many."""
    too_old = Now() - timedelta(hours=settings.KEEP_JOBS_HOURS)
    ended = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)
    deleted, _ = Job.objects.filter(state__in=ended, finished_at__lt=too_old).delete()
    return deleted


class JobFailed(UserError):
    """Raised by a handler, with the message for the person who asked."""


class JobCancelled(Exception):
    """Request to cancel the job; raised at the handler's next step, and handled by ``attempt_job``."""


@dataclass(frozen=True, slots=True)
class JobRun:
    """Run of a job for its handler, which calls ``step`` often: that renews the lease; a cancel or deadline ends it."""

    job: Job
    claim: JobClaim
    ends_at: float  # on time.monotonic()

    def step(self, fraction: float | None, note: str) -> None:
        """Say how far it is. Raises JobCancelled, JobFailed past the deadline, LeaseLost."""
        if self.claim.progress(fraction, note):
            raise JobCancelled
        self.left()

    def left(self) -> float:
        """Seconds until this attempt's deadline. Raises JobFailed when none are left."""
        left = self.ends_at - time.monotonic()
        if left <= 0:
            kind = kind_of(self.job.kind)
            seconds = f"{kind.deadline_s:g}"
            raise JobFailed(kind.too_long, seconds=seconds)
        return left

    def kafka_deadline(self) -> float:
        """The deadline for one question to Kafka, in seconds: the usual one, or what is left if that is less.

        A third of the lease at most, so that a question never outlives it.
        """
        return float(min(settings.KAFKA_DEADLINE, settings.LEASE_TTL / 3, self.left()))

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that begins by proving the claim and locking the job's row. Raises LeaseLost."""
        with self.claim.lease.write_portion():
            yield


def attempt_job(job_id: UUID) -> None:
    """Run the job if it still waits for somebody. Errors of the database are the caller's; the job's lease runs out."""
    held = claim(job_id)
    if held is None:
        return
    with structlog.contextvars.bound_contextvars(job=str(job_id)):
        try:
            _run_job(held)
        except LeaseLost:
            log.warning("job.claim_lost", epoch=held.lease.epoch)


def _run_job(held: JobClaim) -> None:
    job = Job.objects.select_related("cluster").get(pk=held.job_id)
    try:
        kind = kind_of(job.kind)
        held.finish(_call_handler(kind, job, held))
    except JobCancelled:
        held.cancelled()
    except (JobFailed, KafkaFailure, SecretError, UnknownJobKind) as failure:
        held.fail(failure.message)
    except LeaseLost:
        raise
    except Exception:  # whatever a handler raises ends as a message, with the details in the log
        log.exception("job.crashed", kind=job.kind)
        held.fail(coded(JobErrorCode.CRASHED))


def _call_handler(kind: JobKind, job: Job, held: JobClaim) -> dict[str, object]:
    return kind.handler(JobRun(job=job, claim=held, ends_at=time.monotonic() + kind.deadline_s))


@shared_task(name="run_job")
def run_job(job_id: str) -> None:
    """Deadlines are the handler's: the threads pool can end no task. A message that comes twice finds the job taken."""
    try:
        attempt_job(UUID(job_id))
    finally:
        close_old_connections()
