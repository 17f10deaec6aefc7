"""The job "reassign.plan": from what was asked for and what is stored of the cluster to a plan with its report.

Nobody asks Kafka here. A draft gets its plan (purpose "plan"), a stale request a new one (purpose "refresh").
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import monotonic, sleep
from typing import Any

from django.conf import settings
from django.utils import timezone

from kafkadash.changes.guards import refuse_old_facts
from kafkadash.changes.live import tell
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plans import refreshed, store_plan
from kafkadash.changes.refusals import Refused
from kafkadash.domain import plan
from kafkadash.domain.impact import Impact
from kafkadash.domain.kafka_json import plan_json
from kafkadash.domain.messages import message_text
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.planner.topology_json import write_topology
from kafkadash.domain.planner.workload import used_by
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.jobs.kinds import Kind, register
from kafkadash.jobs.run import JobFailed, Run
from kafkadash.reassign.asked import BROUGHT, ROLLBACK, Asked, options_of
from kafkadash.reassign.drafts import PLAN_JOB
from kafkadash.reassign.errors import ReassignmentErrorCode
from kafkadash.reassign.models import Upload
from kafkadash.reassign.plan_process import Outcome, PlanFault, make_plan
from kafkadash.reassign.plan_store import store_report
from kafkadash.reassign.run.way_back import refuse_facts_before_the_end, way_back
from kafkadash.reassign.topology import Loaded, load_topology
from kafkadash.reassign.uploads import content_of

REQUEST_FORMAT = 2
_LOADED, _PLANNED = 0.1, 0.9
_LOOK_S = 0.5
MOST_LISTED = 1000


def make_known() -> None:
    register(
        Kind(
            PLAN_JOB,
            plan_change,
            deadline_s=settings.PLAN_DEADLINE,
            attempts=2,
            too_long=ReassignmentErrorCode.PLANNER_OUT_OF_TIME,
        )
    )


def plan_change(run: Run) -> dict[str, Any]:
    """The result: {moves, sha256, problems, problem_count, notices, notice_count, seconds}.

    With problems there is no plan, and what was there before stays. A draft that was edited meanwhile keeps the edit.
    """
    try:
        return _planned(run)
    except JobFailed:
        tell(run.job.input["change"])
        raise


def _planned(run: Run) -> dict[str, Any]:
    change = _change(run)
    asked = Asked.from_json(change.input)
    run.step(0.0, f"reading what is known of {change.cluster.name}")
    _wait_for_facts(run, change)
    known = load_topology(change.cluster)
    files = {"topology.json": write_topology(known.topology)}
    left_out: list[Problem] = []
    if asked.mode == ROLLBACK:
        files["upload.json"], left_out = _way_back(asked, known.topology)
    elif asked.mode in BROUGHT:
        files["upload.json"] = _upload(change, asked)
    try:
        outcome = make_plan(_request(change, asked), files, partial(_step, run))
    except PlanFault as fault:
        raise JobFailed(str(fault)) from fault
    faults = _faults(outcome.result)
    if outcome.artifact is not None and not faults:
        _store(run, change, outcome, outcome.artifact, known)
    else:
        tell(change.pk)
    return _with_notices(_summary(outcome, faults), left_out)


def _change(run: Run) -> ChangeRequest:
    number, version = run.job.input["change"], run.job.input["version"]
    change = ChangeRequest.objects.select_related("cluster").filter(pk=number).first()
    if change is None:
        raise JobFailed(ReassignmentErrorCode.DELETED_BEFORE, number=number)
    if change.version != version:
        raise JobFailed(ReassignmentErrorCode.EDITED_BEFORE, number=number, who=change.edited_by_name)
    if change.cluster.removed_at is not None:
        raise JobFailed(ReassignmentErrorCode.CLUSTER_NOT_REGISTERED)
    return change


def _wait_for_facts(run: Run, change: ChangeRequest) -> None:
    """A refresh that is a little late is waited for: nobody has to ask for the plan twice because of it."""
    until = monotonic() + settings.PLAN_WAIT
    while True:
        try:
            refuse_old_facts(change.cluster, timezone.now())
            refuse_facts_before_the_end(change.cluster, Asked.from_json(change.input).since)
        except Refused as refused:
            if monotonic() >= until:
                raise JobFailed(refused.message) from refused
        else:
            return
        run.step(0.0, f"waiting for the next refresh of {change.cluster.name}")
        sleep(_LOOK_S)


def _upload(change: ChangeRequest, asked: Asked) -> bytes:
    upload = Upload.objects.filter(request=change, sha256=asked.upload).first()
    if upload is None:
        raise JobFailed(ReassignmentErrorCode.JSON_NOT_STORED)
    return content_of(upload)


def _way_back(asked: Asked, topology: Topology) -> tuple[bytes, list[Problem]]:
    """What of the run can be taken back, as Kafka's JSON, and what is left out of it and why."""
    back = way_back(asked.of, topology)
    if not back.rows:
        why = f" {back.left_out[0]}" if back.left_out else ""
        raise JobFailed(ReassignmentErrorCode.NOTHING_TAKEN_BACK, number=asked.of, why=why)
    return plan_json(back.rows), list(back.left_out)


def _with_notices(summary: dict[str, Any], more: list[Problem]) -> dict[str, Any]:
    """What was left out before the planner saw it stands first."""
    if not more:
        return summary
    listed = [problem.as_json() for problem in more[:MOST_LISTED]]
    return summary | {
        "notices": [*listed, *summary["notices"]][:MOST_LISTED],
        "notice_count": summary["notice_count"] + len(more),
    }


def _request(change: ChangeRequest, asked: Asked) -> dict[str, Any]:
    """As ``kafkadash.plan_job`` reads it."""
    options = options_of(change.options)
    return {
        "format": REQUEST_FORMAT,
        "request": asked.request().as_json(),
        "elect_leaders": options.elect_leaders if options else True,
        "memory_bytes": settings.PLAN_MEMORY,
    }


def _step(run: Run, fraction: float, stage: str) -> None:
    run.step(_LOADED + (_PLANNED - _LOADED) * fraction, stage)


def _store(run: Run, change: ChangeRequest, outcome: Outcome, artifact: bytes, known: Loaded) -> None:
    """Plan and report in one transaction, if the job is still ours and nobody edited the request."""
    run.step(_PLANNED, "storing the plan")
    result = outcome.result
    rows = plan.read(artifact)
    impact = replace(Impact.from_json(result["impact"]), workload=used_by(rows, known.workloads))

    def report(planned: ChangeRequest, kept: PlanArtifact) -> None:
        store_report(
            planned,
            kept,
            rows,
            impact,
            result["rules"],
            result["seconds"],
            known.topology,
            proof=result.get("proof"),
            generate_bytes=result.get("generate_bytes"),
        )

    version = run.job.input["version"]
    try:
        with run.write():
            if run.job.input["purpose"] == "refresh":
                if run.job.requested_by is None:
                    raise JobFailed(ReassignmentErrorCode.NO_ACCOUNT)
                refreshed(
                    change,
                    run.job.requested_by,
                    version=version,
                    artifact=artifact,
                    rows=len(rows),
                    topology_at=known.facts_at,
                    report=report,
                )
            else:
                planned = store_plan(change.pk, version, artifact, len(rows), known.facts_at)
                assert planned.artifact is not None  # it was just stored
                report(planned, planned.artifact)
    except Refused as refused:
        raise JobFailed(refused.message) from refused


def _faults(result: Mapping[str, Any]) -> list[Problem]:
    """What the independent checker says against a plan that was made; nobody is asked to approve such a one."""
    return [
        Problem(ProblemCode.CHECKER, message_text(ReassignmentErrorCode.CHECKER_DISAGREES, rule=rule, problem=sentence))
        for rule, passed, figure, problems in result["rules"]
        if passed is False
        for sentence in problems or [figure]
    ]


def _summary(outcome: Outcome, faults: list[Problem]) -> dict[str, Any]:
    kept: Mapping[str, Any] = outcome.result
    names = ("problems", "problem_count", "notices", "notice_count", "seconds")
    summary = {"moves": kept["rows"], "sha256": kept["sha256"], **{name: kept[name] for name in names}}
    if faults:
        summary |= {
            "sha256": None,
            "problems": [fault.as_json() for fault in faults],
            "problem_count": len(faults),
        }
    return summary
