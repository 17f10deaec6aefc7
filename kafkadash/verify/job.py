"""The job "reassign.verify": a worker compares the partitions of a file with the cluster.

``verify_now`` asks Kafka for the state that ``verify.rules`` judges. Only workers and commands call it.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import structlog
from django.db import transaction

from kafkadash.accounts.models import User
from kafkadash.changes.errors import ChangeRefused
from kafkadash.clusters.access import PROPOSE, is_allowed, roles_text
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.core.child_process import private_folder, run_child
from kafkadash.core.json_columns import pack_dataclass
from kafkadash.core.messages import CodedMessage, choose_plural, coded
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.runner import JobFailed, JobKind, JobRun, enqueue, register_kind
from kafkadash.kafka.api import KafkaAdmin, LogDir, OngoingReassignment
from kafkadash.kafka.connect import admin_for
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.verify.models import Verification, VerificationPart
from kafkadash.verify.process import OUT_OF_MEMORY, PART_ROWS
from kafkadash.verify.rules import (
    ClusterAnswers,
    MovingPartition,
    PartitionVerdict,
    Replica,
    ReplicaDirectories,
    VerifyState,
)

TOPICS_AT_ONCE = 500
UNKNOWN_TOPIC = 3  # UNKNOWN_TOPIC_OR_PARTITION

Step = Callable[[float, str], None]
"""Is told the share that is done and what is being done; may raise to end it."""


Judge = Callable[[ClusterAnswers], Mapping[VerifyState, int]]
"""Is told what the cluster tells, and returns how many rows of the file are in each state."""


def verify_now(
    admin: KafkaAdmin,
    topics: Sequence[str],
    brokers: Sequence[int],
    judge: Judge,
    *,
    deadline: Callable[[], float],
    step: Step,
    check_cluster: Callable[[str], None],
) -> datetime:
    """Read Kafka's listing, these topics, and the directories of these brokers; change nothing.

    What it is told last is what counts: ``judge`` is asked again when something failed that may have begun to move
    between two answers. Returns when the partitions were read, the oldest answer of all.

    ``deadline`` gives the seconds for the next question; ``check_cluster`` is told the Kafka cluster's id and raises if
    that is another one. Raises KafkaFailure, and what ``judge``, ``step`` and ``check_cluster`` raise.
    """
    step(0.0, "Reading reassignments in progress")
    listing = admin.list_reassignments(deadline=deadline())
    moving = _index_moving(listing.rows)
    replicas: dict[tuple[str, int], tuple[int, ...]] = {}
    unread: dict[str, str] = {}
    for first in range(0, len(topics), TOPICS_AT_ONCE):
        step(0.1 + 0.7 * first / len(topics), f"Reading {choose_plural('# topic|# topics', len(topics))}")
        answer = admin.metadata(deadline=deadline(), topics=topics[first : first + TOPICS_AT_ONCE])
        check_cluster(answer.cluster_id)
        for topic in answer.topics:
            if topic.error is None:
                replicas.update({(topic.name, p.partition): p.replicas for p in topic.partitions})
            elif topic.error.code != UNKNOWN_TOPIC:
                unread[topic.name] = f"Topic {topic.name} could not be read: {topic.error.text}"
    directories, silent = _read_directories(admin, brokers, deadline, step)
    counts = judge(ClusterAnswers(moving, replicas, unread, directories, silent))
    if counts.get(VerifyState.FAILED):
        # What began to move between the two answers has replicas of both sets: it has not failed.
        step(0.95, "Reading reassignments in progress again")
        later = _index_moving(admin.list_reassignments(deadline=deadline()).rows)
        judge(ClusterAnswers({**later, **moving}, replicas, unread, directories, silent))
    return datetime.fromtimestamp(listing.taken_at, UTC)


def _index_moving(rows: Iterable[OngoingReassignment]) -> dict[tuple[str, int], MovingPartition]:
    return {(row.topic, row.partition): MovingPartition(row.replicas, row.target) for row in rows}


def _read_directories(
    admin: KafkaAdmin, brokers: Sequence[int], deadline: Callable[[], float], step: Step
) -> tuple[dict[Replica, ReplicaDirectories], dict[int, str]]:
    """Return the directories of these brokers, and the errors by broker; without brokers nothing is asked."""
    if not brokers:
        return {}, {}
    step(0.85, f"Reading the directories of {choose_plural('# broker|# brokers', len(brokers))}")
    answer = admin.log_dirs(brokers, deadline=deadline())
    found: dict[Replica, ReplicaDirectories] = {}
    for broker, dirs in answer.brokers.items():
        _add(found, broker, dirs)
    return found, {broker: error.text for broker, error in answer.errors.items()}


def _add(found: dict[Replica, ReplicaDirectories], broker: int, dirs: Iterable[LogDir]) -> None:
    for directory in dirs:
        for replica in directory.replicas if directory.error is None else ():
            place = (broker, replica.topic, replica.partition)
            known = found.get(place, ReplicaDirectories())
            found[place] = (
                ReplicaDirectories(known.current, directory.path)
                if replica.future
                else ReplicaDirectories(directory.path, known.future)
            )


log = structlog.get_logger(__name__)

KIND = "reassign.verify"
DEADLINE_S = 180.0
SMALL_BYTES = 1_000_000
"""Largest file that everybody who may watch the cluster may have verified."""
_READ, _ASKED = 0.3, 0.7
_SHARES = {"read": (0.0, _READ, "read.json"), "judge": (_ASKED, 1.0, "judged.json")}
"""Shares of the job's progress, and the file with the answer."""


class VerifiesAlready(ChangeRefused):
    """``open_job`` is that of the same person."""

    def __init__(self, message: CodedMessage, *, open_job: Job) -> None:
        super().__init__(message)
        self.open_job = open_job


def start_verification(cluster: Cluster, user: User, *, name: str, size: int, data: bytes) -> Job:
    """A job that compares a file with the cluster. ``data`` is zlib of its ``size`` bytes, ``name`` '' where pasted.

    A person has one at a time, and a large file needs the role of those who write such files. Raises Refused, and its
    kind VerifiesAlready.
    """
    if size > SMALL_BYTES and not is_allowed(user, PROPOSE, cluster):
        most, roles = SMALL_BYTES // 10**6, roles_text(PROPOSE)
        raise ChangeRefused(ReassignmentErrorCode.VERIFY_NEEDS_ROLE, most=most, cluster=cluster.name, roles=roles)
    with transaction.atomic():
        # Held, so that of two that are sent at once the second finds the first.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        under_way = Verification.objects.filter(
            job__requested_by=user, job__kind=KIND, job__state__in=(JobState.QUEUED, JobState.RUNNING)
        )
        other = under_way.select_related("job", "job__cluster").defer("data").first()
        if other is not None:
            raise VerifiesAlready(coded(ReassignmentErrorCode.VERIFIES_ALREADY, file=str(other)), open_job=other.job)
        job = enqueue(KIND, cluster=cluster, requested_by=user)
        Verification.objects.create(job=job, name=name, size=size, data=data)
    return job


def run_verification(run: JobRun) -> dict[str, Any]:
    """The result is {partitions, notices}; or {problems, problem_count} where the file is none of Kafka's format."""
    verification = Verification.objects.get(job=run.job)
    cluster = run.job.cluster
    if cluster is None or cluster.removed_at is not None:
        raise JobFailed(JobErrorCode.WITHOUT_CLUSTER)
    run.step(0.0, f"Reading {verification.name or 'the pasted JSON'}")
    with private_folder() as folder:
        (folder / "upload.json.z").write_bytes(verification.data)
        read = _run_verifier(run, folder, "read")
        if read["problems"]:
            return {"problems": read["problems"], "problem_count": read["problem_count"]}
        judged: dict[str, Any] = {}

        def judge(told: ClusterAnswers) -> Mapping[VerifyState, int]:
            (folder / "told.json").write_text(json.dumps(pack_dataclass(told)), encoding="utf-8")
            judged.update(_run_verifier(run, folder, "judge"))
            return {VerifyState(state): number for state, number in judged["counts"].items()}

        def same_cluster(kafka_id: str) -> None:
            try:
                check_identity(cluster, kafka_id)
            except IdentityChanged as error:
                raise JobFailed(error.message) from error

        taken_at = verify_now(
            admin_for(cluster.connection()),
            read["topics"],
            read["brokers"],
            judge,
            deadline=run.kafka_deadline,
            step=lambda share, note: run.step(_READ + (_ASKED - _READ) * share, note),
            check_cluster=same_cluster,
        )
        run.step(1.0, f"Storing {choose_plural('# result|# results', read['rows'])}")
        packed = [(folder / f"part-{number}").read_bytes() for number in range(judged["parts"])]
    parts = [VerificationPart(verification=verification, number=n, data=data) for n, data in enumerate(packed)]
    with run.write():
        verification.parts.all().delete()  # of a worker that died on it
        VerificationPart.objects.bulk_create(parts, batch_size=100)
        verification.counts, verification.taken_at = judged["counts"], taken_at
        verification.save(update_fields=["counts", "taken_at"])
    return {"partitions": read["rows"], "notices": read["notices"]}


def _run_verifier(run: JobRun, folder: Path, does: Literal["read", "judge"]) -> dict[str, Any]:
    """Return what ``verify.process`` found. Raises JobFailed where it ended otherwise, and what ``run.step`` raises."""
    begins, ends, answer = _SHARES[does]
    code = run_child(
        "kafkadash.verify.process",
        folder,
        lambda fraction, stage: run.step(begins + (ends - begins) * fraction, stage),
        does,
    )
    if code == 0:
        found: dict[str, Any] = json.loads((folder / answer).read_bytes())
        return found
    errors = (folder / "errors").read_text(encoding="utf-8", errors="replace")
    log.error("verify.child_failed", code=code, does=does, errors=errors[-4000:])
    if code < 0 or code == OUT_OF_MEMORY:
        raise JobFailed(ReassignmentErrorCode.VERIFIER_TOOK_TOO_MUCH)
    raise JobFailed(ReassignmentErrorCode.VERIFIER_FAILED, code=code)


def load_verdicts(verification: Verification, start: int, stop: int) -> list[PartitionVerdict]:
    """Verdicts from place ``start`` up to ``stop`` of the whole result; unpacks only the parts that hold them."""
    if start >= stop:
        return []
    first, last = start // PART_ROWS, (stop - 1) // PART_ROWS
    found: list[PartitionVerdict] = []
    for part in verification.parts.filter(number__range=(first, last)).order_by("number"):
        base = part.number * PART_ROWS
        rows = json.loads(zlib.decompress(part.data))
        found += [_verdict(row) for row in rows[max(0, start - base) : stop - base]]
    return found


def _verdict(row: Sequence[Any]) -> PartitionVerdict:
    topic, partition, target, state, words, note = row
    return PartitionVerdict(topic, partition, tuple(target), VerifyState(state), tuple(words), note)


def make_known() -> None:
    register_kind(JobKind(KIND, run_verification, deadline_s=DEADLINE_S, attempts=2))
