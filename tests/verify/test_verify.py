"""The job that verifies: what it asks, what it keeps, and how it ends when Kafka or the file is no good.

``manage.py reassignments``: Kafka's words and an exit code for verify, KIP-240's fields for list and describe.
"""

from __future__ import annotations

import io
import json
import re
import resource
import signal
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.core.management import CommandError, call_command
from django.db.models.functions import Now

from kafkadash.accounts.errors import with_code
from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.errors import ClusterErrorCode
from kafkadash.clusters.models import Cluster
from kafkadash.core.messages import CodedMessage, as_message, coded, message_json, message_text
from kafkadash.execution.management.commands import reassignments
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import attempt_job, forget_old_jobs
from kafkadash.kafka.api import ClusterConnection, ClusterMetadata, KafkaFailure, KafkaUnreachable, NotAuthorized
from kafkadash.kafka.errors import KafkaErrorCode
from kafkadash.monitoring.errors import CollectionErrorCode
from kafkadash.monitoring.models import CollectorKind, CollectorRun, MoveOutcome
from kafkadash.monitoring.ownership import NEVER_LISTED
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.problem_codes import FileErrorCode
from kafkadash.verify import job as verify_job
from kafkadash.verify.job import SMALL_BYTES, VerifiesAlready, load_verdicts, start_verification
from kafkadash.verify.models import Verification, VerificationPart
from kafkadash.verify.process import OUT_OF_MEMORY, PART_ROWS
from kafkadash.verify.rules import VerifyState
from tests.factories import (
    NOW,
    ClusterFactory,
    ReassignmentFactory,
    ThrottleFactory,
    TopicFactory,
    ended,
    silent,
    watched,
)
from tests.monitoring.memory_kafka import MemoryCluster
from tests.raised_codes import raises_code

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
        attempt_job(job.pk)
        job.refresh_from_db()
        return job

    return run


def verdicts(job: Job) -> dict[str, str]:
    found = Verification.objects.get(job=job)
    return {v.name: v.state.value for v in load_verdicts(found, 0, sum(found.counts.values()))}


def test_each_partition_gets_its_verdict_and_the_whole_its_counts(kafka: MemoryCluster, verify: Verify) -> None:
    for partition in range(3):
        kafka.add("foo", partition, 1, 2)
    kafka.move("foo", 1, 3, 2)
    job = verify(("foo", 0, [1, 2]), ("foo", 1, [3, 2]), ("foo", 2, [3, 2]), ("foo", 3, [1]), ("gone", 0, [1]))
    assert (job.state, job.error, job.result) == (JobState.DONE, None, {"partitions": 5, "notices": []})
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

    def noted(*, deadline: float, topics: list[str]) -> ClusterMetadata:
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
    [found] = load_verdicts(Verification.objects.get(job=job), 0, 1)
    assert "secret" in found.note


def test_directories_are_asked_of_the_brokers_that_the_file_names(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.add("foo", 0, 1, 2)
    kafka.silent.add(2)
    rows = [{"topic": "foo", "partition": 0, "replicas": [1, 2], "log_dirs": ["/nowhere", "any"]}]
    job = verify(content=json.dumps({"version": 1, "partitions": rows}))
    [found] = load_verdicts(Verification.objects.get(job=job), 0, 1)
    assert found.state == VerifyState.FAILED
    assert "is not being moved from log dir" in found.words[1]


def test_problems_of_the_file_are_the_result_and_kafka_is_not_asked(kafka: MemoryCluster, verify: Verify) -> None:
    kafka.before_answer = lambda question: pytest.fail(f"Kafka was asked: {question}")
    job = verify(content='{"version":2,"partitions":[]}')
    assert job.state == JobState.DONE
    assert job.result is not None
    assert job.result["problem_count"] == 2
    assert [problem["code"] for problem in job.result["problems"]] == [
        FileErrorCode.OTHER_VERSION,
        FileErrorCode.NOTHING_ASKED_FOR,
    ]


@pytest.mark.parametrize("kind", [KafkaUnreachable, NotAuthorized])
def test_a_cluster_that_does_not_answer_fails_the_job_with_its_code(
    kafka: MemoryCluster, verify: Verify, kind: type[KafkaFailure]
) -> None:
    kafka.fail = failure = kind(KafkaErrorCode.NO_TIME_TO_CONNECT)
    job = verify(("foo", 0, [1]))
    assert (job.state, job.error) == (JobState.FAILED, failure.message)
    assert not VerificationPart.objects.exists()


def test_another_cluster_behind_the_address_is_not_verified(
    kafka: MemoryCluster, verify: Verify, cluster: Cluster
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id="the-right-one")
    kafka.add("foo", 0, 1)
    job = verify(("foo", 0, [1]))
    assert job.state == JobState.FAILED
    assert job.error_code == ClusterErrorCode.IDENTITY_CHANGED
    assert (job.error_params["answered"], job.error_params["expected"]) == ("kafka-1", "the-right-one")


def test_a_page_unpacks_only_the_parts_that_it_shows(kafka: MemoryCluster, verify: Verify) -> None:
    rows = PART_ROWS * 3 + 500
    for partition in range(rows):
        kafka.add("foo", partition, 1)
    job = verify(*[("foo", partition, [1]) for partition in range(rows)])
    kept = Verification.objects.get(job=job)
    assert kept.parts.count() == 4
    kept.parts.filter(number=0).update(data=b"broken")
    start = PART_ROWS + 12
    assert [v.partition for v in load_verdicts(kept, start, start + 19)] == list(range(start, start + 19))
    assert load_verdicts(kept, 5, 5) == []


def test_a_large_file_is_read_and_judged_in_another_process(kafka: MemoryCluster, verify: Verify) -> None:
    """The worker collects as well: no file may take its processor, whose one thread of Python all its jobs share."""
    rows = [{"topic": "foo", "partition": partition, "replicas": [1, 2, 3]} for partition in range(60_000)]
    content = json.dumps({"version": 1, "partitions": rows})
    before, of_children = time.thread_time(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    job = verify(content=content)
    took = time.thread_time() - before
    assert (job.state, job.error) == (JobState.DONE, None)
    assert sum(Verification.objects.get(job=job).counts.values()) == len(rows)
    assert took < (resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - of_children) / 2


@pytest.mark.parametrize(
    ("code", "why"),
    [
        (-signal.SIGXCPU, coded(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)),
        (-signal.SIGKILL, coded(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)),
        (OUT_OF_MEMORY, coded(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)),
        (1, coded(ReassignmentErrorCode.VERIFIER_FAILED, code=1)),
    ],
)
def test_a_process_that_ends_otherwise_fails_the_job_with_a_code(
    code: int, why: CodedMessage, kafka: MemoryCluster, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ends(_module: str, folder: Path, *_: object) -> int:
        (folder / "errors").touch()
        return code

    monkeypatch.setattr(verify_job, "run_child", ends)
    job = verify(("foo", 0, [1]))
    assert (job.state, job.error) == (JobState.FAILED, why)
    assert not VerificationPart.objects.exists()


def test_a_file_that_takes_too_much_memory_ends_its_process_only(
    kafka: MemoryCluster, verify: Verify, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the real process, with less than it may have: it says so by its exit code."""

    def with_little_memory(_module: str, folder: Path, _step: object, does: str) -> int:
        program = "import sys, kafkadash.verify.process as v; v.MOST_BYTES = 60_000_000; sys.exit(v.main(sys.argv[1:]))"
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
    assert (job.state, job.error) == (JobState.FAILED, coded(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH))


def test_a_person_has_one_verification_at_a_time(cluster: Cluster, viewer: User, operator: User) -> None:
    first = start_verification(cluster, viewer, name="a.json", size=2, data=b"")
    with raises_code(ReassignmentErrorCode.VERIFIES_ALREADY, VerifiesAlready, file="a.json") as refused:
        start_verification(cluster, viewer, name="b.json", size=2, data=b"")
    assert refused.value.open_job == first
    start_verification(cluster, operator, name="b.json", size=2, data=b"")
    Job.objects.filter(pk=first.pk).update(state=JobState.CANCELLED)
    start_verification(cluster, viewer, name="b.json", size=2, data=b"")


def test_a_large_file_needs_the_role_of_those_who_write_such_files(
    cluster: Cluster, viewer: User, operator: User
) -> None:
    with raises_code(ReassignmentErrorCode.VERIFY_NEEDS_ROLE, ChangeRefused, most=1, roles="operator"):
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


UNCHANGED = "Nothing was changed, not even throttles."
STARTED = "started between 2026-11-21 01:58:54 UTC and 2026-11-21 01:59:04 UTC, first seen"
AS_OF = "2026-11-21 02:03:01 UTC"
Write = Callable[..., str]


def run(*arguments: str) -> tuple[int, str]:
    """Exit code and everything that was printed."""
    out = io.StringIO()
    try:
        call_command("reassignments", *arguments, "--cluster", "demo", stdout=out, stderr=out)
    except SystemExit as exit_:
        return int(exit_.code or 0), out.getvalue()
    except CommandError as error:
        return error.returncode, f"{out.getvalue()}{error}"
    return 0, out.getvalue()


@pytest.fixture
def demo() -> Iterator[Cluster]:
    with time_machine.travel(NOW, tick=False):
        yield watched("demo")


@pytest.fixture
def commanded_kafka(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> MemoryCluster:
    memory = MemoryCluster(clock=time.time)

    @contextmanager
    def admin(_: ClusterConnection) -> Iterator[MemoryCluster]:
        yield memory

    monkeypatch.setattr(reassignments, "own_admin", admin)
    return memory


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def written(*rows: tuple[str, int, list[int]], text: str = "") -> str:
        entries = [{"topic": topic, "partition": p, "replicas": replicas} for topic, p, replicas in rows]
        file = tmp_path / "move.json"
        file.write_text(text or json.dumps({"version": 1, "partitions": entries}), encoding="utf-8")
        return str(file)

    return written


def test_verify_prints_kafkas_words_and_ends_with_1_unless_all_is_completed(
    commanded_kafka: MemoryCluster, write: Write
) -> None:
    commanded_kafka.add("foo", 0, 1, 2)
    commanded_kafka.add("foo", 1, 1, 2)
    commanded_kafka.move("foo", 1, 3, 2)
    code, said = run("verify", write(("foo", 1, [3, 2]), ("foo", 0, [1, 2]), ("foo", 7, [1])))
    assert code == 1
    assert said.splitlines() == [
        "Status of partition reassignment:",
        "Reassignment of partition foo-0 is completed.",
        "Reassignment of partition foo-1 is still in progress.",
        "There is no active reassignment of partition foo-7, but replica set is  rather than 1.",
        "  Partition foo-7 does not exist.",
        f"1 of 3 partitions completed, 1 in progress, 1 not found. {UNCHANGED}",
    ]


def test_verify_ends_with_0_when_all_is_completed(commanded_kafka: MemoryCluster, write: Write) -> None:
    commanded_kafka.add("foo", 0, 1, 2)
    code, said = run("verify", write(("foo", 0, [1, 2])))
    assert (code, said.splitlines()[-1]) == (0, f"1 partition completed. {UNCHANGED}")


def test_verify_of_a_bad_file_lists_what_is_wrong_and_ends_with_2(commanded_kafka: MemoryCluster, write: Write) -> None:
    file = write(text='{"version":1,"partitions":[{"topic":"foo","partition":0,"replicas":[1,1]}]}')
    code, said = run("verify", file)
    assert code == 2
    assert "Line 1: " in said
    assert said.endswith("(file-not-verified)")


def test_verify_of_a_file_that_is_not_there_ends_with_2(commanded_kafka: MemoryCluster) -> None:
    sentence = message_text(
        ReassignmentErrorCode.FILE_NOT_READ, file="/nowhere/move.json", fault="No such file or directory"
    )
    assert run("verify", "/nowhere/move.json") == (2, f"{sentence} (file-not-read)")


def test_verify_of_a_cluster_that_does_not_answer_ends_with_2_and_its_sentence(
    commanded_kafka: MemoryCluster, write: Write
) -> None:
    commanded_kafka.fail = KafkaUnreachable(as_message("127.0.0.1:1 refused the connection."))
    assert run("verify", write(("foo", 0, [1]))) == (2, "127.0.0.1:1 refused the connection.")


def test_verify_of_another_cluster_behind_the_address_ends_with_2(
    commanded_kafka: MemoryCluster, cluster: Cluster, write: Write
) -> None:
    Cluster.objects.filter(pk=cluster.pk).update(kafka_id="the-right-one")
    code, said = run("verify", write(("foo", 0, [1])))
    assert code == 2
    names = {"cluster": cluster.name, "answered": "kafka-1", "expected": "the-right-one"}
    assert said == with_code(coded(ClusterErrorCode.IDENTITY_CHANGED, **names))


def test_a_cluster_that_nobody_registered_ends_with_2(db: None) -> None:
    ClusterFactory.create(name="prod")
    told = message_text(ClusterErrorCode.CLUSTER_UNKNOWN, slug="demo", known="prod")
    assert run("list") == (2, f"{told} (cluster-unknown)")


def test_list_says_how_old_it_is_and_each_move_as_kafkas_tool_and_with_its_id(demo: Cluster) -> None:
    one = ReassignmentFactory.create(cluster=demo, partition=7)
    other = ReassignmentFactory.create(cluster=demo, topic="a", partition=0, adding=[], replicas=[1, 2, 3])
    ended(demo, MoveOutcome.COMPLETED, NOW, partition=8)
    code, said = run("list")
    assert code == 0
    age, *kafkas_words = said.splitlines()
    assert AS_OF in age
    assert "3 s" in age
    assert kafkas_words[::2] == [
        "Current partition reassignments:",
        f"  {other.public_id}, removing replicas, {STARTED}",
        f"  {one.public_id}, copying, 43.2 % copied, {STARTED}",
    ]
    assert kafkas_words[1::2] == [
        "a-0: replicas: 1,2,3. removing: 3.",
        "cart.events-7: replicas: 6,2,1,3. adding: 6. removing: 3.",
    ]


def test_list_of_nothing_is_said_and_what_is_old_is_called_old(demo: Cluster) -> None:
    silent(demo, NOW - timedelta(hours=2))
    _, said = run("list")
    age, kafkas_words = said.splitlines()
    assert "2026-11-21 00:03:04 UTC, 2 h" in age
    assert kafkas_words == "No partition reassignments found."
    assert json.loads(run("list", "--json")[1])["stale"] is True


def test_list_before_anything_was_collected_is_an_error_and_not_an_empty_list(demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.REASSIGNMENTS).update(succeeded_at=None)
    for command in (["list"], ["describe", "a-0"]):
        told = message_text(CollectionErrorCode.NOT_COLLECTED, cluster="demo")
        assert run(*command) == (2, f"{told} (not-collected)")


@pytest.mark.parametrize("command", [["list"], ["describe", "a-0"]])
def test_what_fails_as_json_has_code_parameters_and_both_parts_of_the_text(db: None, command: list[str]) -> None:
    code, said = run(*command, "--json")
    assert code == 2
    assert json.loads(said) == message_json(coded(ClusterErrorCode.CLUSTER_UNKNOWN, slug="demo", known="none yet"))


UNTHROTTLED = {"known": True, "bytes_per_second": None}


def test_list_as_json_has_every_field_and_null_for_what_nobody_could_read(demo: Cluster) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7, percent=None, leader=None)
    _, said = run("list", "--json")
    listed = json.loads(said)
    assert (listed["taken_at"], listed["age_s"], listed["stale"]) == ("2026-11-21T02:03:01Z", 3.0, False)
    [found] = listed["reassignments"]
    assert found == {
        "id": row.public_id,
        "topic": "cart.events",
        "partition": 7,
        "state": "copying, progress unknown",
        "running": True,
        "started": {
            "not_before": "2026-11-21T01:58:54.000Z",
            "not_after": "2026-11-21T01:59:04.000Z",
            "from": "first_seen",
            "through": None,
            "batch": None,
            "continuity_observed": True,
        },
        "ended_at": None,
        "leader": None,
        "leader_log_end": row.leader_log_end,
        "leader_throttle": {"known": False, "bytes_per_second": None},
        "targets": [{"broker": broker, "adding": broker == 6, "throttle": UNTHROTTLED} for broker in (6, 2, 1)],
        "adding": [6],
        "removing": [3],
        "percent": None,
        "replicas": [
            {
                "broker": 6,
                "log_end": row.replicas_progress[0]["log_end"],
                "percent": None,
                "lag_records": None,
                "in_sync": False,
                "taken_at": None,
                "error": "no answer within 8 s",
            }
        ],
        "last_seen_at": "2026-11-21T02:03:03.000Z",
    }


@pytest.mark.parametrize("by", ["id", "name"])
def test_describe_has_the_fields_of_kip_240(demo: Cluster, by: str) -> None:
    row = ReassignmentFactory.create(cluster=demo, partition=7, continuity_gap=True)
    ThrottleFactory.create(cluster=demo, name="6", key="follower.replication.throttled.rate", value="20000000")
    key = "follower.replication.throttled.replicas"
    ThrottleFactory.create(cluster=demo, resource="topic", name="cart.events", key=key, value="7:6")
    code, said = run("describe", row.public_id if by == "id" else "cart.events-7")
    assert code == 0
    age, *lines = said.splitlines()
    assert AS_OF in age
    fields = [(field, value.lstrip()) for field, _, value in (line.partition(":") for line in lines)]
    assert [field for field, _ in fields] == [
        *("topic", "partition", "id", "state", "started", "leader", "target", "target", "target"),
        *("adding", "removing", "progress", "in sync", "last seen"),
    ]
    assert [value.split(",")[0] for field, value in fields if field in ("leader", "target")] == [
        *("2", "6 (preferred leader)", "2", "1")
    ]
    told = dict(fields)
    assert (told["topic"], told["partition"], told["id"]) == ("cart.events", "7", row.public_id)
    assert (told["adding"], told["removing"]) == ("6", "3")
    assert re.findall(r"\S+ \S+ UTC", told["started"]) == ["2026-11-21 01:58:54 UTC", "2026-11-21 01:59:04 UTC"]
    assert [value.endswith("20.0 MB/s") for field, value in fields if field == "target"] == [True, False, False]
    for figure in ("6: 43.2 %", "2026-11-21 02:03:03 UTC", "567,810 records"):
        assert figure in told["progress"]
    assert told["last seen"] == "2026-11-21 02:03:03 UTC"
    described = describe_as_json(row.public_id)
    assert described is not None
    assert described["started"]["continuity_observed"] is False
    assert described["replicas"][0]["in_sync"] is False
    assert [target["throttle"]["bytes_per_second"] for target in described["targets"]] == [20_000_000, None, None]


def describe_as_json(which: str) -> dict[str, Any] | None:
    """Return the only reassignment that is described, None where there is none."""
    [found] = json.loads(run("describe", which, "--json")[1])["reassignments"]
    described: dict[str, Any] | None = found["reassignment"]
    return described


def test_list_of_partitions__has_only_those_and_refuses_one_that_is_missing(demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, name="payments.ledger")
    for topic in ("cart.events", "payments.ledger"):
        ReassignmentFactory.create(cluster=demo, topic=topic, topic_id=topic, partition=0)
    code, said = run("list", "-p", "payments.ledger-0")
    assert code == 0
    assert [line.split(":")[0] for line in said.splitlines() if ": replicas: " in line] == ["payments.ledger-0"]
    missing = ReassignmentErrorCode.PARTITION_NOT_THERE
    assert run("list", "-p", "payments.ledger-5") == (
        2,
        f"{message_text(missing, row='payments.ledger-5', at=AS_OF)} ({missing})",
    )


def test_describe_of_several__tells_of_each_and_of_the_one_that_is_unknown(demo: Cluster) -> None:
    rows = [ReassignmentFactory.create(cluster=demo, partition=number) for number in (1, 2)]
    code, said = run("describe", rows[0].public_id, "r-cafe", "cart.events-2")
    unknown = CollectionErrorCode.NO_SUCH_REASSIGNMENT
    assert code == 2
    assert [row.public_id in said for row in rows] == [True, True]
    assert said.endswith(f"{message_text(unknown, cluster='demo', asked='r-cafe')} ({unknown})\n")


def test_describe_of_a_completed_one__has_no_progress_from_before_its_end(demo: Cluster) -> None:
    row = ended(demo, MoveOutcome.COMPLETED, NOW, partition=7, epoch=NEVER_LISTED)
    _, said = run("describe", row.public_id)
    assert "in sync:   yes" in said
    assert "\nprogress:" not in said
    described = describe_as_json(row.public_id)
    assert described is not None
    assert described["last_seen_at"] is None


def test_describe_of_an_id_that_is_over_is_not_running_and_never_shows_a_later_one(demo: Cluster) -> None:
    row = ended(demo, MoveOutcome.CANCELLED, NOW - timedelta(hours=1), partition=7)
    ReassignmentFactory.create(cluster=demo, partition=7, adding=[9])
    _, said = run("describe", row.public_id)
    assert f"{row.public_id} is not in progress: cancelled." in said
    assert "adding:    6" in said
    assert "throttle" not in said
    described = describe_as_json(row.public_id)
    assert described is not None
    assert described["running"] is False


def test_describe_of_a_partition_that_does_not_move_says_so_with_its_last_outcome(demo: Cluster) -> None:
    TopicFactory.create(cluster=demo, name="payments.ledger")
    _, said = run("describe", "payments.ledger-0")
    assert len(said.splitlines()) == 2
    assert describe_as_json("payments.ledger-0") is None
    row = ended(demo, MoveOutcome.COMPLETED, NOW - timedelta(hours=1), topic="payments.ledger", partition=0)
    _, said = run("describe", "payments.ledger-0")
    assert row.public_id in said
    assert "completed" in said


@pytest.mark.parametrize("which", ["payments.ledger-5", "nowhere-0"])
def test_describe_of_a_partition_that_does_not_exist_is_an_error(demo: Cluster, which: str) -> None:
    TopicFactory.create(cluster=demo, name="payments.ledger")
    code = ReassignmentErrorCode.PARTITION_NOT_THERE
    assert run("describe", which) == (2, f"{message_text(code, row=which, at=AS_OF)} ({code})")


@pytest.mark.parametrize("which", ["r-cafe", "so what", "a-99999999999"])
def test_describe_of_what_is_no_reassignment_is_an_error(demo: Cluster, which: str) -> None:
    code = CollectionErrorCode.NO_SUCH_REASSIGNMENT
    assert run("describe", which) == (2, f"{message_text(code, cluster='demo', asked=which)} ({code})")


def test_describe_without_topics_read_does_not_call_a_partition_missing(demo: Cluster) -> None:
    CollectorRun.objects.filter(cluster=demo, kind=CollectorKind.METADATA).update(succeeded_at=None)
    told = message_text(ReassignmentErrorCode.EXISTENCE_NOT_KNOWN, row="a-0")
    assert run("describe", "a-0") == (2, f"{told} (existence-not-known)")
