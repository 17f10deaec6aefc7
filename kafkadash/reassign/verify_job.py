"""The job "reassign.verify": what became of the partitions of a file, asked of Kafka by a worker."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction

from kafkadash.accounts.models import User
from kafkadash.clusters.models import Cluster
from kafkadash.clusters.services import IdentityChanged, check_identity
from kafkadash.domain.kafka_json import read_reassignment
from kafkadash.domain.refusals import jobs
from kafkadash.domain.verify import State, Verdict, tally
from kafkadash.domain.wording import count
from kafkadash.jobs.kinds import Kind, register
from kafkadash.jobs.models import Job
from kafkadash.jobs.run import JobFailed, Run
from kafkadash.jobs.services import enqueue
from kafkadash.kafka.connect import admin_for
from kafkadash.reassign.models import Verification, VerificationPart
from kafkadash.reassign.verify_ask import verify_now

KIND = "reassign.verify"
DEADLINE_S = 180.0
PART_ROWS = 1_000
MOST_PROBLEMS = 200
_READ_SHARE = 0.3  # of the job's progress, the reading of the file


def start_verification(cluster: Cluster, user: User, *, name: str, size: int, data: bytes) -> Job:
    """A job that compares a file with the cluster. ``data`` is zlib of its ``size`` bytes, ``name`` '' where pasted."""
    with transaction.atomic():
        job = enqueue(KIND, cluster=cluster, requested_by=user)
        Verification.objects.create(job=job, name=name, size=size, data=data)
    return job


def run_verification(run: Run) -> dict[str, Any]:
    """The result is {partitions}; or {problems, problem_count} where the file is none of Kafka's format."""
    verification = Verification.objects.get(job=run.job)
    cluster = run.job.cluster
    if cluster is None or cluster.removed_at is not None:
        raise JobFailed(jobs.WITHOUT_CLUSTER())
    run.step(0.0, f"Reading {verification.name or 'what was pasted'}")
    parsed = read_reassignment(
        zlib.decompress(verification.data), lambda share: run.step(_READ_SHARE * share, "Reading the file")
    )
    if parsed.problems:
        shown = [problem.as_json() for problem in parsed.problems[:MOST_PROBLEMS]]
        return {"problems": shown, "problem_count": len(parsed.problems)}

    def same_cluster(kafka_id: str) -> None:
        try:
            check_identity(cluster, kafka_id)
        except IdentityChanged as error:
            raise JobFailed(str(error)) from error

    verified = verify_now(
        admin_for(cluster.connection()),
        parsed.rows,
        deadline=run.kafka_deadline,
        step=lambda share, note: run.step(_READ_SHARE + (1 - _READ_SHARE) * share, note),
        check_cluster=same_cluster,
    )
    run.step(1.0, f"Storing {count(len(parsed.rows), 'verdict')}")
    parts = list(_parts(verification, verified.verdicts))
    with run.write():
        verification.parts.all().delete()  # of a worker that died on it
        VerificationPart.objects.bulk_create(parts, batch_size=100)
        verification.counts = {state.value: number for state, number in tally(verified.verdicts).items()}
        verification.taken_at = verified.taken_at
        verification.save(update_fields=["counts", "taken_at"])
    return {"partitions": len(parsed.rows), "notices": [str(notice) for notice in parsed.notices[:MOST_PROBLEMS]]}


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


def _parts(verification: Verification, verdicts: Sequence[Verdict]) -> Iterator[VerificationPart]:
    for number, first in enumerate(range(0, len(verdicts), PART_ROWS)):
        rows = [
            [v.topic, v.partition, list(v.target), v.state.value, list(v.words), v.note]
            for v in verdicts[first : first + PART_ROWS]
        ]
        packed = zlib.compress(json.dumps(rows, separators=(",", ":")).encode())
        yield VerificationPart(verification=verification, number=number, data=packed)


def _verdict(row: Sequence[Any]) -> Verdict:
    topic, partition, target, state, words, note = row
    return Verdict(topic, partition, tuple(target), State(state), tuple(words), note)


def make_known() -> None:
    register(Kind(KIND, run_verification, deadline_s=DEADLINE_S, attempts=2))
