"""The job "items.validate": Kafka says of the items of a plan what their requests would do, before anybody approves.

Nothing is changed in Kafka. The answer is a check of the change; at its start, the worker has items validated again.
"""

from __future__ import annotations

from typing import Any

from kafkadash.changes.checks import ChangeCheck, CheckResult, CheckSubject
from kafkadash.changes.models import ChangeRequest
from kafkadash.changes.recheck import recheck_later
from kafkadash.changes.transitions import announce_changes
from kafkadash.core.messages import coded, reason_message
from kafkadash.jobs.models import Job
from kafkadash.jobs.runner import JobFailed, JobKind, JobRun, enqueue, register_kind
from kafkadash.kafka.connect import admin_for
from kafkadash.short_runs.errors import ShortCheckTitle, ShortRunErrorCode
from kafkadash.short_runs.kinds import read_items, short_kind
from kafkadash.short_runs.reasons import RefusedByKafka

JOB = "items.validate"
DEADLINE_S = 120.0
MOST_PROBLEMS = 20


def make_known() -> None:
    register_kind(JobKind(JOB, validate_items, deadline_s=DEADLINE_S, attempts=2))


def validate_later(change: ChangeRequest) -> None:
    """Queue the validation of a plan, where its kind has one."""
    if change.artifact_id and short_kind(change.kind).validate is not None:
        enqueue(JOB, cluster=change.cluster, input={"change": change.pk, "artifact": change.artifact_id})


def validate_items(run: JobRun) -> dict[str, Any]:
    """Return {items, refused: [[subject, why, code], …], count} for the page; raises JobFailed and KafkaFailure."""
    number, artifact = run.job.input["change"], run.job.input["artifact"]
    change = ChangeRequest.objects.select_related("cluster").filter(pk=number, artifact=artifact).first()
    if change is None:
        return {}  # it was deleted, or has another plan by now
    kind, items = short_kind(change.kind), read_items(artifact)
    assert kind.validate is not None, "only such kinds are queued"
    client, refused = admin_for(change.cluster.connection()), []
    for start in range(0, len(items), kind.batch):
        run.step(start / len(items), "Kafka validates")
        answers = kind.validate(client, items[start : start + kind.batch], run.kafka_deadline())
        unknown = [*answers.lost.items(), *((key, error) for key, error in answers.refused.items() if not error.code)]
        if unknown:
            raise JobFailed(ShortRunErrorCode.NOT_VALIDATED, item=unknown[0][0], why=unknown[0][1].cause)
        refused += [[subject, error.cause, error.code] for subject, error in answers.refused.items()]
    result = {"items": len(items), "refused": refused[:MOST_PROBLEMS], "count": len(refused)}
    run.claim.show(result)
    recheck_later(change.pk)
    announce_changes(change.pk)
    return result


def check_validation(change: ChangeRequest) -> ChangeCheck:
    """Return what Kafka said of the present plan. One query.

    What Kafka refuses, no time that passes mends: the plan is not submitted. An answer that is missing hinders nobody,
    because items are validated again before anything is sent.
    """
    title = coded(ShortCheckTitle.VALIDATED)
    jobs = Job.objects.filter(kind=JOB, cluster=change.cluster_id, input__artifact=change.artifact_id)
    job = jobs.order_by("-created_at").first()
    if job is None or not job.result:
        why = (job and job.error) or coded(ShortRunErrorCode.NOT_VALIDATED_YET)
        return ChangeCheck("items_validated", CheckSubject.HEALTH, CheckResult.UNKNOWN, title, problems=(why,))
    count, items = job.result["count"], job.result["items"]
    problems = tuple(
        coded(ShortRunErrorCode.ITEM_DOES_NOT_FIT, item=subject, why=reason_message(RefusedByKafka(why, code)))
        for subject, why, code in job.result["refused"]
    )
    result = CheckResult.FAILED if count else CheckResult.PASSED
    figure = f"{items - count:,} of {items:,}"
    return ChangeCheck(
        "items_validated", CheckSubject.HEALTH, result, title, figure, problems, count, lasting=bool(count)
    )
