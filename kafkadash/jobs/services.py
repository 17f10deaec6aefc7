"""The life of a job: queued by a page or a command, handed out by the tick, claimed, run and ended by one worker.

Each step is one compare-and-swap with the database's clock: no row updated means that somebody else was first. A
claim is a lease with an epoch; a worker that slept past its lease finds the epoch gone on and writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

import structlog
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from psycopg.types.json import Jsonb

from kafkadash.accounts.errors import ActionForbidden
from kafkadash.accounts.models import User
from kafkadash.clusters.access import MANAGE, allowed
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.kinds import UnknownKind, kind_of
from kafkadash.jobs.models import Job, JobState
from kafkadash.logs import without_secrets

log = structlog.get_logger(__name__)

# How long a message may be under way before the job is handed out again, in seconds.
DISPATCH_HOLD_S = 10.0
DISPATCH_LIMIT = 100


class ClaimLost(Exception):
    """Another worker, or the tick, took the job over; nothing of this one may be written any more."""


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to run one job, until its lease ends."""

    job_id: UUID
    epoch: int

    def renew(self) -> bool:
        """Another full term; returns whether somebody asked to cancel. Raises ClaimLost."""
        row = self._swap(
            "lease_until = clock_timestamp() + make_interval(secs => %s)",
            [settings.LEASE_TTL],
            returning="cancel_requested",
        )
        return bool(row[0])

    def progress(self, fraction: float | None, note: str) -> bool:
        """How far it is (0 to 1, None if nobody can tell) and what is being done; renews, and returns as ``renew``."""
        row = self._swap(
            "progress = %s, progress_note = %s, lease_until = clock_timestamp() + make_interval(secs => %s)",
            [fraction, without_secrets(note)[:200], settings.LEASE_TTL],
            returning="cancel_requested",
        )
        return bool(row[0])

    def show(self, result: dict[str, Any]) -> None:
        """What is known so far, for a page that watches; ``finish`` puts the whole in its place. Raises ClaimLost."""
        self._swap("result = %s", [Jsonb(result)], returning="id")

    @contextmanager
    def write(self) -> Iterator[None]:
        """A transaction that begins by proving the claim and locking the job's row. Raises ClaimLost."""
        with transaction.atomic():
            self.renew()
            yield

    def finish(self, result: dict[str, Any]) -> None:
        """Raises ClaimLost, and TypeError for a result that JSON cannot carry."""
        self._end(JobState.DONE, "result = %s, progress = 1, error = ''", [Jsonb(result)])
        log.info("job.done", job=str(self.job_id))

    def fail(self, sentence: str) -> None:
        """Raises ClaimLost."""
        self._end(JobState.FAILED, "error = %s", [without_secrets(sentence)])
        log.warning("job.failed", job=str(self.job_id), error=sentence)

    def cancelled(self) -> None:
        """What was asked for has happened: nothing runs any more. Raises ClaimLost."""
        self._end(JobState.CANCELLED, "error = ''", [])
        log.info("job.cancelled", job=str(self.job_id))

    def _end(self, state: JobState, assignments: str, values: list[Any]) -> None:
        self._swap(
            f"state = %s, finished_at = clock_timestamp(), lease_until = NULL, {assignments}", [state.value, *values]
        )

    def _swap(self, assignments: str, values: list[Any], returning: str = "id") -> tuple[Any, ...]:
        with connection.cursor() as cursor:
            cursor.execute(
                f"UPDATE jobs_job SET {assignments} WHERE id = %s AND epoch = %s AND state = %s RETURNING {returning}",  # noqa: S608
                [*values, self.job_id, self.epoch, JobState.RUNNING.value],
            )
            row = cursor.fetchone()
        if row is None:
            raise ClaimLost
        return tuple(row)


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


def claim(job_id: UUID) -> Claim | None:
    """The right to run the job, or None when it is not waiting: somebody has it, it has ended, or it does not exist."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET state = %s, epoch = epoch + 1,"
            " lease_until = clock_timestamp() + make_interval(secs => %s), started_at = clock_timestamp(),"
            " dispatched_until = NULL, progress = NULL, progress_note = ''"
            " WHERE id = (SELECT id FROM jobs_job WHERE id = %s AND state = %s AND NOT cancel_requested"
            "  FOR UPDATE SKIP LOCKED) RETURNING epoch",
            [JobState.RUNNING.value, settings.LEASE_TTL, job_id, JobState.QUEUED.value],
        )
        row = cursor.fetchone()
    return Claim(job_id, row[0]) if row else None


def may_stop(user: User, job: Job) -> bool:
    """Whoever asked for it may, and administrators of its cluster."""
    return job.requested_by_id == user.pk or allowed(user, MANAGE, job.cluster)


def stop(job: Job, user: User) -> None:
    """Ask for its end on behalf of this person. Raises PermissionDenied for somebody else's job."""
    if not may_stop(user, job):
        raise ActionForbidden(JobErrorCode.ASKED_BY_ANOTHER, who=job.requested_by or "somebody whose account is gone")
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
    from kafkadash.jobs.tasks import run_job

    settle_expired_jobs()
    due = _mark_due()
    for sent, job_id in enumerate(due):
        try:
            run_job.apply_async((str(job_id),), retry=False)
        except OperationalError as error:
            Job.objects.filter(pk__in=due[sent:], state=JobState.QUEUED).update(dispatched_until=None)
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
        except UnknownKind:
            again = False
        if job.cancel_requested:
            changed = swap.update(state=JobState.CANCELLED, finished_at=Now(), lease_until=None)
        elif again:
            changed = swap.update(state=JobState.QUEUED, lease_until=None, dispatched_until=None)
        else:
            changed = swap.update(
                state=JobState.FAILED, error=message_text(JobErrorCode.LOST_WORKER), finished_at=Now(), lease_until=None
            )
        if changed and (job.cancel_requested or not again):
            _forget_input(job.kind, job.pk)
        if changed:
            log.warning("job.worker_lost", job=str(job.pk), kind=job.kind, again=again)


def _forget_input(kind: str, job_id: UUID) -> None:
    """Of a job that ended without its handler."""
    try:
        forget = kind_of(kind).forget
    except UnknownKind:
        return
    if forget is not None:
        forget(job_id)


def forget_old_jobs() -> int:
    """Delete jobs that ended longer ago than ``settings.KEEP_JOBS_HOURS``; returns how many."""
    too_old = Now() - timedelta(hours=settings.KEEP_JOBS_HOURS)
    ended = (JobState.DONE, JobState.FAILED, JobState.CANCELLED)
    deleted, _ = Job.objects.filter(state__in=ended, finished_at__lt=too_old).delete()
    return deleted


def _mark_due() -> list[UUID]:
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE jobs_job SET dispatched_until = clock_timestamp() + make_interval(secs => %s) WHERE id IN ("
            " SELECT id FROM jobs_job WHERE state = %s AND NOT cancel_requested"
            "   AND (dispatched_until IS NULL OR dispatched_until < clock_timestamp())"
            "  ORDER BY created_at LIMIT %s FOR UPDATE SKIP LOCKED) RETURNING id",
            [DISPATCH_HOLD_S, JobState.QUEUED.value, DISPATCH_LIMIT],
        )
        return [row[0] for row in cursor.fetchall()]
