"""The job "reassign.plan": makes a plan with its report from a request and the stored state of the cluster.

Kafka is not called. A draft gets its plan (purpose "plan"), a stale request a new one (purpose "refresh"). The plan is
computed in a child process (``kafkadash.planning.plan_process``).
"""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import structlog
from django.conf import settings
from django.utils import timezone

from kafkadash.changes import plan
from kafkadash.changes.errors import ChangeRefused
from kafkadash.changes.models import ChangeRequest, PlanArtifact
from kafkadash.changes.plan import PlanErrorCode
from kafkadash.changes.plans import refresh_plan, store_plan
from kafkadash.changes.request_validation import refuse_old_facts
from kafkadash.changes.transitions import announce_changes
from kafkadash.clusters.models import Cluster
from kafkadash.core.child_process import Step, private_folder, run_child
from kafkadash.core.errors import UserError
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import CodedMessage, coded
from kafkadash.core.problems import InputProblem
from kafkadash.jobs.runner import JobFailed, JobKind, JobRun, register_kind
from kafkadash.monitoring.models import CollectorKind, CollectorRun
from kafkadash.planning.errors import ReassignmentErrorCode
from kafkadash.planning.impact import PlanImpact
from kafkadash.planning.kafka_json import plan_json
from kafkadash.planning.models import Upload
from kafkadash.planning.plan_store import store_report
from kafkadash.planning.problem_codes import CheckedRule
from kafkadash.planning.proposal import BROUGHT, PLAN_JOB, ROLLBACK, PlanInput, content_of, options_of, rollback_source
from kafkadash.planning.solver.workload import used_by
from kafkadash.planning.stored_topology import LoadedTopology, load_topology
from kafkadash.planning.topology import ClusterTopology, write_topology

log = structlog.get_logger(__name__)


class PlanFault(UserError):
    """The child ended in a way that no request asks for."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """``result`` as ``kafkadash.planning.plan_process`` describes it; ``artifact`` is None where there are problems."""

    result: Mapping[str, Any]
    artifact: bytes | None


def make_plan(request: Mapping[str, Any], files: Mapping[str, bytes], step: Step) -> PlanOutcome:
    """Runs the child on ``request`` with these files beside it. Raises PlanFault, and whatever ``step`` raises."""
    with private_folder() as folder:
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        for name, content in files.items():
            (folder / name).write_bytes(content)
        code = _run(folder, step)
        result_file, plan_file = folder / "result.json", folder / "plan.json"
        if code not in (0, 2) or not result_file.is_file():
            errors = (folder / "errors").read_text(encoding="utf-8", errors="replace")
            log.error("plan.child_failed", code=code, errors=errors[-4000:])
            raise _explain_exit(code, errors, request.get("memory_bytes"))
        result = json.loads(result_file.read_bytes())
        return PlanOutcome(result, plan_file.read_bytes() if code == 0 else None)


def _run(folder: Path, step: Step) -> int:
    return run_child("kafkadash.planning.plan_process", folder, step)


def _explain_exit(code: int, errors: str, memory_bytes: int | None) -> PlanFault:
    if code == -signal.SIGABRT and "bad_alloc" in errors and memory_bytes:
        # The solver is not Python: where it gets no memory it can do nothing but abort.
        return PlanFault(PlanErrorCode.PLANNER_OUT_OF_MEMORY, most=memory_bytes / 1e9)
    if code < 0:
        return PlanFault(ReassignmentErrorCode.PLANNER_KILLED, signal=signal.Signals(-code).name)
    return PlanFault(ReassignmentErrorCode.PLANNER_FAILED, code=code)


REQUEST_FORMAT = 2
_LOADED, _PLANNED = 0.1, 0.9
_LOOK_S = 0.5
MOST_LISTED = 1000


def make_known() -> None:
    register_kind(
        JobKind(
            PLAN_JOB,
            plan_change,
            deadline_s=settings.PLAN_DEADLINE,
            attempts=2,
            too_long=ReassignmentErrorCode.PLANNER_OUT_OF_TIME,
        )
    )


def plan_change(run: JobRun) -> dict[str, Any]:
    """The result: {moves, sha256, problems, problem_count, notices, notice_count, seconds}.

    With problems there is no plan, and what was there before stays. A draft that was edited meanwhile keeps the edit.
    """
    try:
        return _run_plan_job(run)
    except JobFailed:
        announce_changes(run.job.input["change"])
        raise


def _run_plan_job(run: JobRun) -> dict[str, Any]:
    change = _load_change(run)
    plan_input = unpack_dataclass(PlanInput, change.input)
    run.step(0.0, f"reading collected data of {change.cluster.name}")
    _wait_for_facts(run, change)
    known = load_topology(change.cluster)
    files = {"topology.json": write_topology(known.topology)}
    left_out: list[InputProblem] = []
    if plan_input.mode == ROLLBACK:
        files["upload.json"], left_out = _way_back(plan_input, known.topology)
    elif plan_input.mode in BROUGHT:
        files["upload.json"] = _load_upload(change, plan_input)
    try:
        outcome = make_plan(_request(change, plan_input), files, partial(_report_progress, run))
    except PlanFault as fault:
        raise JobFailed(fault.message) from fault
    faults = _list_checker_faults(outcome.result)
    if outcome.artifact is not None and not faults:
        _store(run, change, outcome, outcome.artifact, known)
    else:
        announce_changes(change.pk)
    return _with_notices(_summary(outcome, faults), left_out)


def _load_change(run: JobRun) -> ChangeRequest:
    number, version = run.job.input["change"], run.job.input["version"]
    change = ChangeRequest.objects.select_related("cluster").filter(pk=number).first()
    if change is None:
        raise JobFailed(ReassignmentErrorCode.DELETED_BEFORE, number=number)
    if change.version != version:
        raise JobFailed(ReassignmentErrorCode.EDITED_BEFORE, number=number, who=change.edited_by_name)
    if change.cluster.removed_at is not None:
        raise JobFailed(ReassignmentErrorCode.CLUSTER_NOT_REGISTERED)
    return change


def _wait_for_facts(run: JobRun, change: ChangeRequest) -> None:
    """A refresh that is a little late is waited for: nobody has to ask for the plan twice because of it."""
    until = monotonic() + settings.PLAN_WAIT
    while True:
        try:
            refuse_old_facts(change.cluster, timezone.now())
            refuse_facts_before_the_end(change.cluster, unpack_dataclass(PlanInput, change.input).since)
        except ChangeRefused as refused:
            if monotonic() >= until:
                raise JobFailed(refused.message) from refused
        else:
            return
        run.step(0.0, f"waiting for the next refresh of {change.cluster.name}")
        sleep(_LOOK_S)


def _load_upload(change: ChangeRequest, plan_input: PlanInput) -> bytes:
    upload = Upload.objects.filter(request=change, sha256=plan_input.upload).first()
    if upload is None:
        raise JobFailed(ReassignmentErrorCode.JSON_NOT_STORED)
    return content_of(upload)


def _way_back(plan_input: PlanInput, topology: ClusterTopology) -> tuple[bytes, list[InputProblem]]:
    """Return the rows of the run that can be taken back, as Kafka's JSON, and the rows left out, with reasons."""
    back = rollback_source().original_rows(plan_input.of, topology)
    if not back.rows:
        why = back.left_out[0].message if back.left_out else coded(ReassignmentErrorCode.BACK_NO_ROWS)
        raise JobFailed(ReassignmentErrorCode.NOTHING_TAKEN_BACK, number=plan_input.of, why=why)
    return plan_json(back.rows), list(back.left_out)


def _with_notices(summary: dict[str, Any], more: list[InputProblem]) -> dict[str, Any]:
    """Return the summary with the notices on rows left out before planning at the front."""
    if not more:
        return summary
    listed = [problem.as_json() for problem in more[:MOST_LISTED]]
    return summary | {
        "notices": [*listed, *summary["notices"]][:MOST_LISTED],
        "notice_count": summary["notice_count"] + len(more),
    }


def _request(change: ChangeRequest, plan_input: PlanInput) -> dict[str, Any]:
    """Return the request as ``kafkadash.planning.plan_process`` reads it."""
    options = options_of(change.options)
    return {
        "format": REQUEST_FORMAT,
        "request": pack_dataclass(plan_input.request()),
        "elect_leaders": options.elect_leaders if options else True,
        "memory_bytes": settings.PLAN_MEMORY,
    }


def _report_progress(run: JobRun, fraction: float, stage: str) -> None:
    run.step(_LOADED + (_PLANNED - _LOADED) * fraction, stage)


def _store(run: JobRun, change: ChangeRequest, outcome: PlanOutcome, artifact: bytes, known: LoadedTopology) -> None:
    """Plan and report in one transaction, if the job is still ours and nobody edited the request."""
    run.step(_PLANNED, "storing the plan")
    result = outcome.result
    rows = plan.read_rows(artifact)
    impact = replace(unpack_dataclass(PlanImpact, result["impact"]), workload=used_by(rows, known.workloads))

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
                refresh_plan(
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
    except ChangeRefused as refused:
        raise JobFailed(refused.message) from refused


def _list_checker_faults(result: Mapping[str, Any]) -> list[InputProblem]:
    """Return the independent checker's problems with a plan; a plan with problems is not offered for approval."""
    return [
        InputProblem(coded(ReassignmentErrorCode.CHECKER_DISAGREES, rule=CodedMessage(rule.code, {}), problem=problem))
        for rule in (unpack_dataclass(CheckedRule, stored) for stored in result["rules"])
        if rule.passed is False
        for problem in rule.problems or [rule.figure]
    ]


def _summary(outcome: PlanOutcome, faults: list[InputProblem]) -> dict[str, Any]:
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


def refuse_facts_before_the_end(cluster: Cluster, since: str) -> None:
    """Unless the cluster was read again after the run had ended; ``since`` as in ``PlanInput``. Raises Refused."""
    if not since:
        return
    read = CollectorRun.objects.filter(cluster=cluster, kind=CollectorKind.METADATA).first()
    if read is None or read.succeeded_at is None or read.succeeded_at <= datetime.fromisoformat(since):
        raise ChangeRefused(ReassignmentErrorCode.NOT_READ_SINCE, cluster=cluster.name)
