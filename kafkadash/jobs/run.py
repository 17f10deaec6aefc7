"""One attempt at one job: claim it, call its kind's handler, and turn whatever happens into a state and a sentence."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.conf import settings

from kafkadash.clusters.secrets import SecretError
from kafkadash.domain.errors import UserError
from kafkadash.domain.messages import message_text
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.kinds import Kind, UnknownKind, kind_of
from kafkadash.jobs.models import Job
from kafkadash.jobs.services import Claim, ClaimLost, claim
from kafkadash.kafka.port import KafkaFailure

log = structlog.get_logger(__name__)


class JobFailed(UserError):
    """Raised by a handler; ``str()`` is the sentence for the person who asked."""


class JobCancelled(Exception):
    """Somebody asked to cancel; raised at the handler's next step, and handled by ``attempt``."""


@dataclass(frozen=True, slots=True)
class Run:
    """What a handler gets. It calls ``step`` often: that renews its lease, and there a cancel or deadline ends it."""

    job: Job
    claim: Claim
    ends_at: float  # on time.monotonic()

    def step(self, fraction: float | None, note: str) -> None:
        """Say how far it is. Raises JobCancelled, JobFailed past the deadline, ClaimLost."""
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
        """A transaction that nobody without this claim can have. Raises ClaimLost."""
        with self.claim.write():
            yield


def attempt(job_id: UUID) -> None:
    """Run the job if it still waits for somebody. Errors of the database are the caller's; the job's lease runs out."""
    held = claim(job_id)
    if held is None:
        return
    with structlog.contextvars.bound_contextvars(job=str(job_id)):
        try:
            _run(held)
        except ClaimLost:
            log.warning("job.claim_lost", epoch=held.epoch)


def _run(held: Claim) -> None:
    job = Job.objects.select_related("cluster").get(pk=held.job_id)
    try:
        kind = kind_of(job.kind)
        held.finish(_call(kind, job, held))
    except JobCancelled:
        held.cancelled()
    except (JobFailed, KafkaFailure, SecretError, UnknownKind) as failure:
        held.fail(str(failure))
    except ClaimLost:
        raise
    except Exception:  # whatever a handler raises ends as a sentence, with the details in the log
        log.exception("job.crashed", kind=job.kind)
        held.fail(message_text(JobErrorCode.CRASHED))


def _call(kind: Kind, job: Job, held: Claim) -> dict[str, object]:
    return kind.handler(Run(job=job, claim=held, ends_at=time.monotonic() + kind.deadline_s))
