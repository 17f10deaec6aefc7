"""One worker per job: claims, leases, epochs."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from unittest import mock

import pytest
from django.db import connection
from django.db.models.functions import Now
from pytest_django.fixtures import Settings

from kafkadash.clusters.models import Cluster
from kafkadash.core.leases import LeaseLost
from kafkadash.core.messages import coded
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import (
    JobClaim,
    claim,
    dispatch_due_jobs,
    enqueue,
    forget_old_jobs,
    request_cancel,
    run_job,
    settle_expired_jobs,
)
from tests.jobs.conftest import MakeKind
from tests.waiting import wait_until

AT_ONCE = 8


def at_once(what: Callable[[], object]) -> list[object]:
    """The same call from several threads, each with a connection of its own, released together."""
    barrier = threading.Barrier(AT_ONCE)

    def call(_: int) -> object:
        try:
            barrier.wait(timeout=10)
            return what()
        finally:
            connection.close()

    with ThreadPoolExecutor(AT_ONCE) as pool:
        return list(pool.map(call, range(AT_ONCE)))


def run_out(job: Job) -> None:
    """As if the worker had said nothing for longer than its lease."""
    Job.objects.filter(pk=job.pk).update(lease_until=Now() - timedelta(seconds=1))


@pytest.mark.django_db(transaction=True)
def test_of_many_claimers_one_gets_the_job(probe: None, cluster: Cluster) -> None:
    job = enqueue("probe", cluster=cluster)
    got = [held for held in at_once(lambda: claim(job.pk)) if isinstance(held, JobClaim)]
    assert [(held.job_id, held.lease.epoch) for held in got] == [(job.pk, 1)]
    job.refresh_from_db()
    assert (job.state, job.epoch) == (JobState.RUNNING, 1)


@pytest.mark.django_db(transaction=True)
def test_an_expired_job_is_settled_once(kind: MakeKind) -> None:
    kind(lambda _run: {}, attempts=2)
    job = enqueue("probe")
    claim(job.pk)
    run_out(job)
    at_once(settle_expired_jobs)
    job.refresh_from_db()
    assert (job.state, job.epoch) == (JobState.QUEUED, 1)


def test_a_job_that_runs_or_ended_is_not_claimed(db: None, probe: None) -> None:
    job = enqueue("probe")
    held = claim(job.pk)
    assert held is not None
    assert claim(job.pk) is None
    held.finish({})
    assert claim(job.pk) is None
    assert claim(uuid.uuid4()) is None


def test_job__database_clock_was_set_back__is_handed_out(db: None, probe: None) -> None:
    job = enqueue("probe")
    Job.objects.filter(pk=job.pk).update(created_at=Now() + timedelta(hours=1))
    with mock.patch.object(run_job, "apply_async") as sent:
        assert dispatch_due_jobs() == 1
    assert sent.call_args.args == ((str(job.pk),),)


def test_a_claim_renews_its_lease(db: None, probe: None) -> None:
    job = enqueue("probe")
    held = claim(job.pk)
    assert held is not None
    run_out(job)
    assert held.progress(0.5, "half of it") is False
    settle_expired_jobs()
    job.refresh_from_db()
    assert (job.state, job.progress, job.progress_note) == (JobState.RUNNING, 0.5, "half of it")


def test_a_worker_that_slept_past_its_lease_writes_nothing(db: None, kind: MakeKind, cluster: Cluster) -> None:
    kind(lambda _run: {}, attempts=2)
    job = enqueue("probe", cluster=cluster)
    sleeper = claim(job.pk)
    assert sleeper is not None
    run_out(job)
    settle_expired_jobs()
    awake = claim(job.pk)
    assert awake is not None
    assert awake.lease.epoch == 2
    for write in (
        sleeper.renew,
        lambda: sleeper.progress(0.9, "still here"),
        lambda: sleeper.finish({"from": "sleeper"}),
        lambda: sleeper.fail(coded(JobErrorCode.CRASHED)),
        sleeper.cancelled,
    ):
        with pytest.raises(LeaseLost):
            write()
    with pytest.raises(LeaseLost), sleeper.lease.write_portion():
        Cluster.objects.filter(pk=cluster.pk).update(kafka_id="from the sleeper")
    awake.finish({"from": "awake"})
    job.refresh_from_db()
    cluster.refresh_from_db()
    assert (job.state, job.result, job.error) == (JobState.DONE, {"from": "awake"}, None)
    assert cluster.kafka_id == ""


def test_a_worker_whose_job_was_given_up_writes_nothing(db: None, probe: None) -> None:
    job = enqueue("probe")
    sleeper = claim(job.pk)
    assert sleeper is not None
    run_out(job)
    settle_expired_jobs()
    with pytest.raises(LeaseLost):
        sleeper.finish({})
    job.refresh_from_db()
    assert (job.state, job.error) == (JobState.FAILED, coded(JobErrorCode.LOST_WORKER))
    assert job.finished_at is not None


def test_a_lease_that_runs_is_left_alone(db: None, probe: None, settings: Settings) -> None:
    settings.LEASE_TTL = 30
    job = enqueue("probe")
    claim(job.pk)
    settle_expired_jobs()
    job.refresh_from_db()
    assert job.state == JobState.RUNNING
    assert job.lease_until is not None
    assert job.started_at is not None
    # Two readings of the database's clock in one statement.
    assert abs(job.lease_until - job.started_at - timedelta(seconds=30)) < timedelta(milliseconds=10)


@pytest.mark.django_db(transaction=True)
def test_a_taker_waits_for_a_transaction_that_proved_its_claim(kind: MakeKind, cluster: Cluster) -> None:
    """While the holder is inside a transaction of the claim, nobody can move the job on behind its back."""
    kind(lambda _run: {}, attempts=2)
    job = enqueue("probe", cluster=cluster)
    held = claim(job.pk)
    assert held is not None
    with ThreadPoolExecutor(1) as pool:
        with held.lease.write_portion():
            cancelling = pool.submit(_cancel, job.pk)
            wait_until(_somebody_waits_for_us, "the cancel waits for the row")
            assert not cancelling.done()
            Cluster.objects.filter(pk=cluster.pk).update(kafka_id="kept")
        assert cancelling.result(timeout=10) == JobState.RUNNING
    cluster.refresh_from_db()
    assert cluster.kafka_id == "kept"


def _somebody_waits_for_us() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM pg_locks WHERE NOT granted AND pg_backend_pid() = ANY(pg_blocking_pids(pid))")
        return cursor.fetchone() is not None


def _cancel(job_id: uuid.UUID) -> JobState | None:
    try:
        return request_cancel(job_id)
    finally:
        connection.close()


def test_a_waiting_job_is_cancelled_at_once(db: None, probe: None) -> None:
    job = enqueue("probe")
    assert request_cancel(job.pk) == JobState.CANCELLED
    assert claim(job.pk) is None
    job.refresh_from_db()
    assert job.finished_at is not None


def test_a_running_job_is_told_at_its_next_step(db: None, probe: None) -> None:
    job = enqueue("probe")
    held = claim(job.pk)
    assert held is not None
    assert request_cancel(job.pk) == JobState.RUNNING
    assert held.progress(0.1, "one more step") is True


def test_a_job_that_ended_stays_as_it_ended(db: None, probe: None) -> None:
    job = enqueue("probe")
    held = claim(job.pk)
    assert held is not None
    held.finish({"answer": 42})
    assert request_cancel(job.pk) == JobState.DONE
    assert request_cancel(uuid.uuid4()) is None
    job.refresh_from_db()
    assert job.cancel_requested is False


def test_only_jobs_that_ended_long_ago_are_forgotten(db: None, probe: None, settings: Settings) -> None:
    settings.KEEP_JOBS_HOURS = 1
    waiting, recent, old = (enqueue("probe") for _ in range(3))
    Job.objects.filter(pk__in=[recent.pk, old.pk]).update(state=JobState.DONE, finished_at=Now())
    Job.objects.filter(pk=old.pk).update(finished_at=Now() - timedelta(hours=2))
    assert forget_old_jobs() == 1
    assert set(Job.objects.values_list("pk", flat=True)) == {waiting.pk, recent.pk}


def test_a_cancelled_job_whose_worker_died_is_cancelled(db: None, kind: MakeKind) -> None:
    kind(lambda _run: {}, attempts=5)
    job = enqueue("probe")
    claim(job.pk)
    request_cancel(job.pk)
    run_out(job)
    settle_expired_jobs()
    job.refresh_from_db()
    assert job.state == JobState.CANCELLED
