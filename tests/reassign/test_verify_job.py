"""The job that verifies: what it asks, what it keeps, and how it ends when Kafka or the file is no good."""

from __future__ import annotations

import json
import resource
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest
from django.conf import settings
from django.db.models.functions import Now

from kafkadash.accounts.models import User
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.models import Cluster
from kafkadash.domain.messages import message_text
from kafkadash.domain.verify import State
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import attempt
from kafkadash.jobs.services import forget_old_jobs
from kafkadash.kafka.port import KafkaFailure, Metadata, NotAuthorized, Unreachable
from kafkadash.reassign import verify_job
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Verification, VerificationPart
from kafkadash.reassign.verify_job import SMALL_BYTES, VerifiesAlready, start_verification, stored
from kafkadash.verify_file import OUT_OF_MEMORY, PART_ROWS
from tests.observe.memory_cluster import MemoryCluster

pytestmark = pytest.mark.django_db
Verify = Callable[..., Job]


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    memory = MemoryCluster(clock=time.time)
    monkeypatch.setattr(verify_job, "admin_for", lambda _: memory)
    return memory


@pytest.fixture
def verify(cluster: Cluster, operator: User) -> Verify:
    def run(*rows: tuple[str, int, list[int]], content: str = "") -> Job:
        entries = [{"topic": topic, "partition": p, "replicas": replicas} for topic, p, replicas in rows]
        text = (content or json.dumps({"version": 1, "partitions": entries})).encode()
        job = start_verification(cluster, operator, name="move.json", size=len(text), data=zlib.compress(text))
        attempt(job.pk)
        job.refresh_from_db()
        return job

    return run


def verdicts(job: Job) -> dict[str, str]:
    found = Verification.objects.get(job=job)
    return {v.name: v.state.value for v in stored(found, 0, sum(found.counts.values()))}


def test_each_partition_gets_its_verdict_and_the_whole_its_counts(kafka: MemoryCluster, verify: Verify) -> None:
    for partition in range(3):
        kafka.add("foo", partition, 1, 2)
    kafka.move("foo", 1, 3, 2)
    job = verify(("foo", 0, [1, 2]), ("foo", 1, [3, 2]), ("foo", 2, [3, 2]), ("foo", 3, [1]), ("gone", 0, [1]))
    assert (job.state, job.error, job.result) == (JobState.DONE, "", {"partitions": 5, "notices": []})
    assert verdicts(job) == {
        "foo-0": "completed",
        "foo-1": "in_progress",
        "foo-2": "failed",
        "foo-3": "missing",
        "gone-0": "missing",
    }
    kept = Verification.objects.get(job=job)
    assert kept.counts == {"completed": 1, "in_progress": 1, "failed": 1, "missing": 2}
    assert kept.taken_at is not None
    assert abs(kept.taken_at.timestamp() - time.time()) < 60


def test_only_the_topics_of_the_file_are_asked_for(
    kafka: MemoryCluster, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    kafka.add("foo", 0, 1)
    kafka.add("other", 0, 1)
    asked: list[list[str]] = []
    metadata = kafka.metadata

    def noted(*, deadline: float, topics: list[str]) -> Metadata:
        asked.append(topics)
        return metadata(deadline=deadline, topics=topics)

    monkeypatch.setattr(kafka, "metadata", noted)
    verify(("foo", 0, [1]))
    assert asked == [["foo"]]


def test_a_move_that_begins_between_the_answers_has_not_failed(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.add("foo", 0, 1, 2)

    def begins(question: str) -> None:
        if question == "metadata":
            kafka.move("foo", 0, 3, 2)

    kafka.before_answer = begins
    assert verdicts(verify(("foo", 0, [3, 2]))) == {"foo-0": "in_progress"}


def test_a_topic_that_may_not_be_described_is_not_called_missing(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.add("secret", 0, 1)
    kafka.hidden.add("secret")
    job = verify(("secret", 0, [1]))
    assert verdicts(job) == {"secret-0": "unknown"}
    [found] = stored(Verification.objects.get(job=job), 0, 1)
    assert found.note.startswith("Topic secret could not be read: ")


def test_directories_are_asked_of_the_brokers_that_the_file_names(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.add("foo", 0, 1, 2)
    kafka.silent.add(2)
    rows = [{"topic": "foo", "partition": 0, "replicas": [1, 2], "log_dirs": ["/nowhere", "any"]}]
    job = verify(content=json.dumps({"version": 1, "partitions": rows}))
    [found] = stored(Verification.objects.get(job=job), 0, 1)
    assert found.state == State.FAILED
    assert "is not being moved from log dir" in found.words[1]


def test_problems_of_the_file_are_the_result_and_kafka_is_not_asked(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.before_answer = lambda question: pytest.fail(f"Kafka was asked: {question}")
    job = verify(content='{"version":2,"partitions":[]}')
    assert job.state == JobState.DONE
    assert job.result is not None
    assert job.result["problem_count"] == 2
    assert job.result["problems"][0]["sentence"] == (
        '"version" is 2; Kafka knows version 1 only. Write 1, if the file is of that format.'
    )


@pytest.mark.parametrize("failure", [Unreachable("k:1 refused the connection."), NotAuthorized("Describe is missing.")])
def test_a_cluster_that_does_not_answer_fails_the_job_with_its_sentence(
    kafka: MemoryCluster, verify: Verify, failure: KafkaFailure
) -> None:
    kafka.fail = failure
    job = verify(("foo", 0, [1]))
    assert (job.state, job.error) == (JobState.FAILED, str(failure))
    assert not VerificationPart.objects.exists()


def test_another_cluster_behind_the_address_is_not_verified(
    kafka: MemoryCluster, verify: Verify, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id="the-right-one")
    kafka.add("foo", 0, 1)
    job = verify(("foo", 0, [1]))
    assert job.state == JobState.FAILED
    assert "answers the Kafka cluster kafka-1, and not the-right-one" in job.error


def test_a_page_unpacks_only_the_parts_that_it_shows(kafka: MemoryCluster, verify: Verify) -> None:
    rows = PART_ROWS * 3 + 500
    for partition in range(rows):
        kafka.add("foo", partition, 1)
    job = verify(*[("foo", partition, [1]) for partition in range(rows)])
    kept = Verification.objects.get(job=job)
    assert kept.parts.count() == 4
    kept.parts.filter(number=0).update(data=b"broken")
    start = PART_ROWS + 12
    assert [v.partition for v in stored(kept, start, start + 19)] == list(range(start, start + 19))
    assert stored(kept, 5, 5) == []


def test_a_large_file_is_read_and_judged_in_another_process(kafka: MemoryCluster, verify: Verify) -> None:
    """The worker collects as well: no file may take its processor, whose one thread of Python all its jobs share."""
    rows = [{"topic": "foo", "partition": partition, "replicas": [1, 2, 3]} for partition in range(60_000)]
    content = json.dumps({"version": 1, "partitions": rows})
    before, of_children = time.thread_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    job = verify(content=content)
    took = time.thread_time() - before
    assert (job.state, job.error) == (JobState.DONE, "")
    assert sum(Verification.objects.get(job=job).counts.values()) == len(rows)
    assert took < (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - of_children) / 2


@pytest.mark.parametrize(
    ("code", "sentence"),
    [
        (-signal.SIGXCPU, message_text(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)),
        (-signal.SIGKILL, message_text(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)),
        (OUT_OF_MEMORY, message_text(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)),
        (1, message_text(ReassignmentErrorCode.VERIFIER_FAILED, code=1)),
    ],
)
def test_a_process_that_ends_otherwise_fails_the_job_with_a_sentence(
    code: int, sentence: str, kafka: MemoryCluster, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_module: str, folder: Path, *_: object) -> int:
        (folder / "errors").touch()
        return code

    monkeypatch.setattr(verify_job, "run_child", ends)
    job = verify(("foo", 0, [1]))
    assert (job.state, job.error) == (JobState.FAILED, sentence)
    assert not VerificationPart.objects.exists()


def test_a_file_that_takes_too_much_memory_ends_its_process_only(
    kafka: MemoryCluster, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the real process, with less than it may have: it says so by its exit code."""

    def with_little_memory(_module: str, folder: Path, _step: object, does: str) -> int:
        program = "import sys, kafkadash.verify_file as v; v.MOST_BYTES = 60_000_000; sys.exit(v.main(sys.argv[1:]))"
        with (folder / "errors").open("wb") as errors:
            ended = subprocess.run(
                [sys.executable, "-c", program, str(folder), does],
                cwd=settings.BASE_DIR,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                check=False,
            )
        return ended.returncode

    monkeypatch.setattr(verify_job, "run_child", with_little_memory)
    rows = [{"topic": "foo", "partition": partition, "replicas": [1, 2, 3]} for partition in range(200_000)]
    job = verify(content=json.dumps({"version": 1, "partitions": rows}))
    assert (job.state, job.error) == (JobState.FAILED, message_text(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH))


def test_a_person_has_one_verification_at_a_time(cluster: Cluster, viewer: User, operator: User) -> None:
    first = start_verification(cluster, viewer, name="a.json", size=2, data=b"")
    with pytest.raises(VerifiesAlready, match=r"Another file of yours is being verified: a\.json") as refused:
        start_verification(cluster, viewer, name="b.json", size=2, data=b"")
    assert refused.value.open_job == first
    start_verification(cluster, operator, name="b.json", size=2, data=b"")
    Job.objects.filter(pk=first.pk).update(state=JobState.CANCELLED)
    start_verification(cluster, viewer, name="b.json", size=2, data=b"")


def test_a_large_file_needs_the_role_of_those_who_write_such_files(
    cluster: Cluster, viewer: User, operator: User
) -> None:
    with pytest.raises(Refused, match=r"more than 1 MB on .* you need the role operator"):
        start_verification(cluster, viewer, name="a.json", size=SMALL_BYTES + 1, data=b"")
    start_verification(cluster, viewer, name="a.json", size=SMALL_BYTES, data=b"")
    start_verification(cluster, operator, name="a.json", size=SMALL_BYTES + 1, data=b"")


def test_file_and_verdicts_are_forgotten_with_their_job(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.add("foo", 0, 1)
    job = verify(("foo", 0, [1]))
    Job.objects.filter(pk=job.pk).update(finished_at=Now() - timedelta(days=8))
    assert forget_old_jobs() > 0
    assert not Verification.objects.exists()
    assert not VerificationPart.objects.exists()
