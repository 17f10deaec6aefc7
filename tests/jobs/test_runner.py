"""Whatever a handler does ends as a state and a sentence.

The tick hands out waiting jobs: each once, none lost when the queue is away.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db.models.functions import Now
from kombu.exceptions import OperationalError
from pytest_django.fixtures import Settings
from structlog.testing import capture_logs

from kafkadash.clusters.secrets import SecretError
from kafkadash.core.errors import UserError
from kafkadash.core.logs import HIDDEN
from kafkadash.core.messages import coded, join_messages
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import (
    JobFailed,
    JobKind,
    JobRun,
    UnknownJobKind,
    attempt_job,
    claim,
    dispatch_due_jobs,
    enqueue,
    register_kind,
    request_cancel,
    run_job,
)
from kafkadash.kafka.api import KafkaUnreachable
from kafkadash.kafka.errors import KafkaErrorCode
from tests.jobs.conftest import MakeKind

pytestmark = pytest.mark.django_db


def run_one() -> Job:
    job = enqueue("probe", input={"n": 20})
    attempt_job(job.pk)
    job.refresh_from_db()
    return job


@pytest.mark.django_db(transaction=True)
def test_the_message_of_the_queue_runs_it(kind: MakeKind) -> None:
    kind(lambda _run: {"answer": 42})
    job = enqueue("probe")
    run_job(str(job.pk))
    job.refresh_from_db()
    assert (job.state, job.result) == (JobState.DONE, {"answer": 42})


def test_a_result_is_kept(kind: MakeKind) -> None:
    def double(run: JobRun) -> dict[str, Any]:
        run.step(0.5, "doubling")
        return {"answer": run.job.input["n"] * 2}

    kind(double)
    job = run_one()
    assert (job.state, job.result, job.progress, job.error) == (JobState.DONE, {"answer": 40}, 1, None)
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.lease_until is None


@pytest.mark.parametrize("error", [JobFailed, KafkaUnreachable, SecretError])
def test_an_expected_failure_is_stored_with_its_code(error: type[UserError], kind: MakeKind) -> None:
    failure = error(KafkaErrorCode.NAME_UNRESOLVED, host="kafka", said="no such name")

    def fail(_run: JobRun) -> dict[str, Any]:
        raise failure

    kind(fail)
    with capture_logs() as logs:
        job = run_one()
    assert (job.state, job.error) == (JobState.FAILED, failure.message)
    assert [event["code"] for event in logs if event["event"] == "job.failed"] == [KafkaErrorCode.NAME_UNRESOLVED]


def test_a_fault_of_ours_says_so_without_details(kind: MakeKind) -> None:
    def crash(_run: JobRun) -> dict[str, Any]:
        raise KeyError("internal detail")

    kind(crash)
    job = run_one()
    assert (job.state, job.error) == (JobState.FAILED, coded(JobErrorCode.CRASHED))


def test_an_error_shows_no_password(kind: MakeKind) -> None:
    def fail(_run: JobRun) -> dict[str, Any]:
        said = "Refused: sasl_password=hunter2hunter2"
        refused = coded(KafkaErrorCode.NAME_UNRESOLVED, host="k", said=said)
        raise JobFailed(join_messages([coded(KafkaErrorCode.NO_TIME_TO_CONNECT), refused]))

    kind(fail)
    [refused] = run_one().error_params["also"]
    assert refused["params"] == {"host": "k", "said": f"Refused: sasl_password={HIDDEN}"}


def test_a_result_that_json_cannot_carry_is_a_fault_of_ours(kind: MakeKind) -> None:
    kind(lambda _run: {"when": object()})
    job = run_one()
    assert (job.state, job.result) == (JobState.FAILED, None)


def test_past_its_deadline_the_next_step_ends_it(kind: MakeKind) -> None:
    def endless(run: JobRun) -> dict[str, Any]:
        while True:
            run.step(None, "on and on")

    kind(endless, deadline_s=0.2)
    job = run_one()
    assert (job.state, job.error) == (JobState.FAILED, coded(JobErrorCode.TOOK_TOO_LONG, seconds="0.2"))


def test_a_cancel_ends_it_at_the_next_step(kind: MakeKind) -> None:
    steps: list[float] = []

    def three_steps(run: JobRun) -> dict[str, Any]:
        for fraction in (0.1, 0.5, 0.9):
            run.step(fraction, "step")
            steps.append(fraction)
            if fraction == 0.1:
                request_cancel(run.job.pk)
        return {}

    kind(three_steps)
    job = run_one()
    assert (job.state, job.result, steps) == (JobState.CANCELLED, None, [0.1])


def test_a_message_that_comes_twice_runs_once(kind: MakeKind) -> None:
    runs: list[int] = []

    def count(_run: JobRun) -> dict[str, Any]:
        runs.append(1)
        return {}

    kind(count)
    job = run_one()
    attempt_job(job.pk)
    assert runs == [1]


def test_a_question_to_kafka_never_outlives_the_lease(kind: MakeKind, settings: Settings) -> None:
    settings.KAFKA_DEADLINE, settings.LEASE_TTL = 8.0, 30.0
    deadlines: list[float] = []

    def ask(run: JobRun) -> dict[str, Any]:
        deadlines.append(run.kafka_deadline())
        settings.LEASE_TTL = 6.0
        deadlines.append(run.kafka_deadline())
        return {}

    kind(ask, deadline_s=60)
    run_one()
    assert deadlines == [8.0, 2.0]


def test_a_job_of_a_kind_that_is_gone_fails_with_its_name(kind: MakeKind) -> None:
    job = Job.objects.create(kind="of-an-older-version")
    attempt_job(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == (
        JobState.FAILED,
        coded(JobErrorCode.KIND_UNKNOWN, name="of-an-older-version"),
    )


def test_an_unknown_kind_is_not_queued() -> None:
    with pytest.raises(UnknownJobKind, match="'nonsense'"):
        enqueue("nonsense")
    assert not Job.objects.exists()


def test_two_handlers_cannot_share_a_name(kind: MakeKind) -> None:
    kind(lambda _run: {})
    with pytest.raises(ValueError, match="'probe'"):
        register_kind(JobKind("probe", lambda _run: {}, deadline_s=1))


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
