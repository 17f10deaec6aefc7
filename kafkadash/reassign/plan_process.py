"""The child process that makes a plan (``kafkadash.plan_job``): what it is given, and what came of it."""

from __future__ import annotations

import json
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import structlog

from kafkadash.domain.messages import message_text
from kafkadash.domain.refusals import planning
from kafkadash.reassign.child_process import Step, private_folder, run_child
from kafkadash.reassign.errors import ReassignmentErrorCode

log = structlog.get_logger(__name__)


class PlanFault(Exception):
    """The child ended in a way that is nobody's request; ``str()`` says how."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """``result`` as ``kafkadash.plan_job`` describes it; ``artifact`` is None where there are problems."""

    result: Mapping[str, Any]
    artifact: bytes | None


def make_plan(request: Mapping[str, Any], files: Mapping[str, bytes], step: Step) -> Outcome:
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
            raise PlanFault(_how_it_ended(code, errors, request.get("memory_bytes")))
        result = json.loads(result_file.read_bytes())
        return Outcome(result, plan_file.read_bytes() if code == 0 else None)


def _run(folder: Path, step: Step) -> int:
    return run_child("kafkadash.plan_job", folder, step)


def _how_it_ended(code: int, errors: str, memory_bytes: int | None) -> str:
    if code == -signal.SIGABRT and "bad_alloc" in errors and memory_bytes:
        # The solver is not Python: where it gets no memory it can do nothing but abort.
        return planning.PLANNER_OUT_OF_MEMORY(most=memory_bytes / 1e9)
    if code < 0:
        return message_text(ReassignmentErrorCode.PLANNER_KILLED, signal=signal.Signals(-code).name)
    return message_text(ReassignmentErrorCode.PLANNER_FAILED, code=code)
