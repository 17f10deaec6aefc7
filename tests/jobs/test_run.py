"""Whatever a handler does ends as a state and a sentence."""

from __future__ import annotations

from typing import Any

import pytest
from pytest_django.fixtures import Settings

from kafkadash.clusters.secrets import SecretError
from kafkadash.domain.messages import message_text
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.kinds import Kind, UnknownKind, register
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import JobFailed, Run, attempt
from kafkadash.jobs.services import enqueue, request_cancel
from kafkadash.jobs.tasks import run_job
from kafkadash.kafka.port import Unreachable
from tests.jobs.conftest import MakeKind

pytestmark = pytest.mark.django_db


def run_one() -> Job:
    job = enqueue("probe", input={"n": 20})
    attempt(job.pk)
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
    def double(run: Run) -> dict[str, Any]:
        run.step(0.5, "doubling")
        return {"answer": run.job.input["n"] * 2}

    kind(double)
    job = run_one()
    assert (job.state, job.result, job.progress, job.error) == (JobState.DONE, {"answer": 40}, 1, "")
    assert job.started_at is not None
    assert job.finished_at is not None
    assert job.lease_until is None


@pytest.mark.parametrize("error", [JobFailed, Unreachable, SecretError])
def test_an_expected_failure_says_its_sentence(error: type[Exception], kind: MakeKind) -> None:
    def fail(_run: Run) -> dict[str, Any]:
        raise error("No broker answered at 10.0.0.1:9092; is the address right?")

    kind(fail)
    job = run_one()
    assert (job.state, job.error) == (JobState.FAILED, "No broker answered at 10.0.0.1:9092; is the address right?")


def test_a_fault_of_ours_says_so_without_details(kind: MakeKind) -> None:
    def crash(_run: Run) -> dict[str, Any]:
        raise KeyError("internal detail")

    kind(crash)
    job = run_one()
    assert job.state == JobState.FAILED
    assert "a fault of its own." in job.error
    assert "internal detail" not in job.error


def test_an_error_shows_no_password(kind: MakeKind) -> None:
    def fail(_run: Run) -> dict[str, Any]:
        raise JobFailed("Refused: sasl_password=hunter2hunter2")

    kind(fail)
    job = run_one()
    assert "hunter2" not in job.error
    assert job.error.startswith("Refused: sasl_password=")


def test_a_result_that_json_cannot_carry_is_a_fault_of_ours(kind: MakeKind) -> None:
    kind(lambda _run: {"when": object()})
    job = run_one()
    assert (job.state, job.result) == (JobState.FAILED, None)


def test_past_its_deadline_the_next_step_ends_it(kind: MakeKind) -> None:
    def endless(run: Run) -> dict[str, Any]:
        while True:
            run.step(None, "on and on")

    kind(endless, deadline_s=0.2)
    job = run_one()
    assert job.state == JobState.FAILED
    assert "longer than the 0.2 s" in job.error


def test_a_cancel_ends_it_at_the_next_step(kind: MakeKind) -> None:
    steps: list[float] = []

    def three_steps(run: Run) -> dict[str, Any]:
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

    def count(_run: Run) -> dict[str, Any]:
        runs.append(1)
        return {}

    kind(count)
    job = run_one()
    attempt(job.pk)
    assert runs == [1]


def test_a_question_to_kafka_never_outlives_the_lease(kind: MakeKind, settings: Settings) -> None:
    settings.KAFKA_DEADLINE, settings.LEASE_TTL = 8.0, 30.0
    deadlines: list[float] = []

    def ask(run: Run) -> dict[str, Any]:
        deadlines.append(run.kafka_deadline())
        settings.LEASE_TTL = 6.0
        deadlines.append(run.kafka_deadline())
        return {}

    kind(ask, deadline_s=60)
    run_one()
    assert deadlines == [8.0, 2.0]


def test_a_job_of_a_kind_that_is_gone_fails_with_its_name(kind: MakeKind) -> None:
    job = Job.objects.create(kind="of-an-older-version")
    attempt(job.pk)
    job.refresh_from_db()
    assert (job.state, job.error) == (
        JobState.FAILED,
        message_text(JobErrorCode.KIND_UNKNOWN, name="of-an-older-version"),
    )


def test_an_unknown_kind_is_not_queued() -> None:
    with pytest.raises(UnknownKind, match="'nonsense'"):
        enqueue("nonsense")
    assert not Job.objects.exists()


def test_two_handlers_cannot_share_a_name(kind: MakeKind) -> None:
    kind(lambda _run: {})
    with pytest.raises(ValueError, match="'probe'"):
        register(Kind("probe", lambda _run: {}, deadline_s=1))
