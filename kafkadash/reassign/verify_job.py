"""The job "reassign.verify": what became of the partitions of a file, asked of Kafka by a worker."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import structlog
from django.db import transaction

from kafkadash.accounts.models import User
from kafkadash.changes.refusals import Refused
from kafkadash.clusters.access import PROPOSE, allowed, roles_text
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.domain.messages import CodedMessage, coded
from kafkadash.domain.verify import State, Told, Verdict
from kafkadash.domain.wording import count
from kafkadash.jobs.errors import JobErrorCode
from kafkadash.jobs.kinds import Kind, register
from kafkadash.jobs.models import Job, JobState
from kafkadash.jobs.run import JobFailed, Run
from kafkadash.jobs.services import enqueue
from kafkadash.kafka.connect import admin_for
from kafkadash.reassign.child_process import private_folder, run_child
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Verification, VerificationPart
from kafkadash.reassign.verify_ask import verify_now
from kafkadash.verify_file import OUT_OF_MEMORY, PART_ROWS

log = structlog.get_logger(__name__)

KIND = "reassign.verify"
DEADLINE_S = 180.0
SMALL_BYTES = 1_000_000
"""Whoever may look at a cluster may verify as much."""
_READ, _ASKED = 0.3, 0.7
_SHARES = {"read": (0.0, _READ, "read.json"), "judge": (_ASKED, 1.0, "judged.json")}
"""Of the job's progress, and the file with the answer."""


class VerifiesAlready(Refused):
    """``open_job`` is that of the same person."""

    def __init__(self, message: CodedMessage, *, open_job: Job) -> None:
        super().__init__(message)
        self.open_job = open_job


def start_verification(cluster: Cluster, user: User, *, name: str, size: int, data: bytes) -> Job:
    """A job that compares a file with the cluster. ``data`` is zlib of its ``size`` bytes, ``name`` '' where pasted.

    A person has one at a time, and a large file needs the role of those who write such files. Raises Refused, and its
    kind VerifiesAlready.
    """
    if size > SMALL_BYTES and not allowed(user, PROPOSE, cluster):
        most, roles = SMALL_BYTES // 10**6, roles_text(PROPOSE)
        raise Refused(ReassignmentErrorCode.VERIFY_NEEDS_ROLE, most=most, cluster=cluster.name, roles=roles)
    with transaction.atomic():
        # Held, so that of two that are sent at once the second finds the first.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        under_way = Verification.objects.filter(
            job__requested_by=user, job__kind=KIND, job__state__in=(JobState.QUEUED, JobState.RUNNING)
        )
        other = under_way.select_related("job", "job__cluster").defer("data").first()
        if other is not None:
            raise VerifiesAlready(coded(ReassignmentErrorCode.VERIFIES_ALREADY, file=other), open_job=other.job)
        job = enqueue(KIND, cluster=cluster, requested_by=user)
        Verification.objects.create(job=job, name=name, size=size, data=data)
    return job


def run_verification(run: Run) -> dict[str, Any]:
    """The result is {partitions, notices}; or {problems, problem_count} where the file is none of Kafka's format."""
    verification = Verification.objects.get(job=run.job)
    cluster = run.job.cluster
    if cluster is None or cluster.removed_at is not None:
        raise JobFailed(JobErrorCode.WITHOUT_CLUSTER)
    run.step(0.0, f"Reading {verification.name or 'what was pasted'}")
    with private_folder() as folder:
        (folder / "upload.json.z").write_bytes(verification.data)
        read = _child(run, folder, "read")
        if read["problems"]:
            return {"problems": read["problems"], "problem_count": read["problem_count"]}
        judged: dict[str, Any] = {}

        def judge(told: Told) -> Mapping[State, int]:
            (folder / "told.json").write_text(json.dumps(told.as_json()), encoding="utf-8")
            judged.update(_child(run, folder, "judge"))
            return {State(state): number for state, number in judged["counts"].items()}

        def same_cluster(kafka_id: str) -> None:
            try:
                check_identity(cluster, kafka_id)
            except IdentityChanged as error:
                raise JobFailed(str(error)) from error

        taken_at = verify_now(
            admin_for(cluster.connection()),
            read["topics"],
            read["brokers"],
            judge,
            deadline=run.kafka_deadline,
            step=lambda share, note: run.step(_READ + (_ASKED - _READ) * share, note),
            check_cluster=same_cluster,
        )
        run.step(1.0, f"Storing {count(read['rows'], 'verdict')}")
        packed = [(folder / f"part-{number}").read_bytes() for number in range(judged["parts"])]
    parts = [VerificationPart(verification=verification, number=n, data=data) for n, data in enumerate(packed)]
    with run.write():
        verification.parts.all().delete()  # of a worker that died on it
        VerificationPart.objects.bulk_create(parts, batch_size=100)
        verification.counts, verification.taken_at = judged["counts"], taken_at
        verification.save(update_fields=["counts", "taken_at"])
    return {"partitions": read["rows"], "notices": read["notices"]}


def _child(run: Run, folder: Path, does: Literal["read", "judge"]) -> dict[str, Any]:
    """What ``kafkadash.verify_file`` found. Raises JobFailed where it ended otherwise, and what ``run.step`` raises."""
    begins, ends, answer = _SHARES[does]
    code = run_child(
        "kafkadash.verify_file",
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


def stored(verification: Verification, start: int, stop: int) -> list[Verdict]:
    """Verdicts from place ``start`` up to ``stop`` of the whole result; unpacks only the parts that hold them."""
    if start >= stop:
        return []
    first, last = start // PART_ROWS, (stop - 1) // PART_ROWS
    found: list[Verdict] = []
    for part in verification.parts.filter(number__range=(first, last)).order_by("number"):
        base = part.number * PART_ROWS
        rows = json.loads(zlib.decompress(part.data))
        found += [_verdict(row) for row in rows[max(0, start - base) : stop - base]]
    return found


def _verdict(row: Sequence[Any]) -> Verdict:
    topic, partition, target, state, words, note = row
    return Verdict(topic, partition, tuple(target), State(state), tuple(words), note)


def make_known() -> None:
    register(Kind(KIND, run_verification, deadline_s=DEADLINE_S, attempts=2))
