"""The tick hands out waiting jobs: each once, none lost when the queue is away."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.services import claim, dispatch_due_jobs, enqueue, request_cancel
from kafkadash.jobs.tasks import run_job
from tests.jobs.conftest import MakeKind

pytestmark = pytest.mark.django_db


class Queue:
    def __init__(self) -> None:
        self.sent: list[UUID] = []
        self.room = 1_000

    def apply_async(self, args: tuple[str], **options: Any) -> None:
        assert options["retry"] is False  # the tick must not hang when the queue is away
        if len(self.sent) >= self.room:
            raise OperationalError("Connection refused")
        self.sent.append(UUID(args[0]))


@pytest.fixture
def queue(monkeypatch: pytest.MonkeyPatch) -> Queue:
    queue = Queue()
    monkeypatch.setattr(run_job, "apply_async", queue.apply_async)
    return queue


def test_a_waiting_job_is_sent_once(probe: None, queue: Queue) -> None:
    job = enqueue("probe")
    assert dispatch_due_jobs() == 1
    assert dispatch_due_jobs() == 0
    assert queue.sent == [job.pk]


def test_a_message_that_got_lost_is_sent_again(probe: None, queue: Queue) -> None:
    job = enqueue("probe")
    dispatch_due_jobs()
    Job.objects.update(dispatched_until=Now() - timedelta(seconds=1))
    dispatch_due_jobs()
    assert queue.sent == [job.pk, job.pk]


def test_what_runs_ended_or_was_cancelled_is_not_sent(probe: None, queue: Queue) -> None:
    running, done, cancelled = (enqueue("probe") for _ in range(3))
    claim(running.pk)
    held = claim(done.pk)
    assert held is not None
    held.finish({})
    request_cancel(cancelled.pk)
    assert dispatch_due_jobs() == 0


def test_without_a_queue_jobs_wait(probe: None, queue: Queue) -> None:
    jobs = {enqueue("probe").pk for _ in range(3)}
    queue.room = 1
    assert dispatch_due_jobs() == 1
    queue.room = 1_000
    assert dispatch_due_jobs() == 2
    assert set(queue.sent) == jobs
    assert len(queue.sent) == 3


def test_a_job_whose_worker_died_is_sent_again_until_its_attempts_are_used(kind: MakeKind, queue: Queue) -> None:
    kind(lambda _run: {}, attempts=2)
    job = enqueue("probe")
    for _ in range(2):
        assert dispatch_due_jobs() == 1
        assert claim(job.pk) is not None
        Job.objects.update(lease_until=Now() - timedelta(seconds=1))
    assert dispatch_due_jobs() == 0
    job.refresh_from_db()
    assert (job.state, job.epoch, len(queue.sent)) == (JobState.FAILED, 2, 2)


def test_it_goes_to_the_queue_of_jobs() -> None:
    from kafkadash.celery import app

    assert run_job.name == "run_job"
    assert app.amqp.router.route({}, "run_job")["queue"].name == "jobs"
