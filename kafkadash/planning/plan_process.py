"""Child process that makes one plan: ``python -m kafkadash.planning.plan_process FOLDER``, without Django or a client.

The process reads from FOLDER

- ``request.json``: ``{"format":2,"request":{…}}``, the request ``planning.solver.request.PlanRequest``,
  with, all optional: ``elect_leaders`` (true unless given), ``memory_bytes`` (limit of the address space of this
  process, null for none),
- ``topology.json``: the interchange format (``planning.topology``),
- ``upload.json``: for the modes explicit and finish, Kafka's JSON as it was uploaded, byte for byte.

While it works, the process prints a line of JSON for each step: ``{"stage":"reading the file","fraction":0.31}``, the
fraction of the whole, which never falls. Then it writes into FOLDER

- ``plan.json``: the canonical artifact (``changes.plan.canonical_bytes``), only if there is a plan,
- ``result.json``: ``{"format":1,"rows":n,"sha256":"…"|null,"problems":[…],"problem_count":n,"notices":[…],
  "notice_count":n,"impact":{…}|null,"proof":{…}|null,"generate_bytes":n|null,
  "rules":[{…},…],"seconds":s}``; problems and notices as
  ``core.problems.InputProblem.as_json``, at most 1,000 of each; impact as ``planning.impact.PlanImpact``, proof
  as ``planning.solver.request.PlanProof``; ``generate_bytes`` is what Kafka's own generate would copy for the
  same.

Exit codes: 0 with a plan, 2 with problems (including out of memory), anything else is a bug of this program, with a
traceback on standard error. A signal ends the process at once; a file that was being written does not exist then.
"""

from __future__ import annotations

import gc
import json
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kafkadash.changes.plan import PlanErrorCode, canonical_bytes, hash_artifact
from kafkadash.core.json_columns import pack_dataclass, unpack_dataclass
from kafkadash.core.messages import coded
from kafkadash.core.problems import InputProblem
from kafkadash.planning import checker
from kafkadash.planning.impact import impact_of
from kafkadash.planning.kafka_json import read_reassignment
from kafkadash.planning.solver.kafka_placement import generated_bytes
from kafkadash.planning.solver.plan import Say, plan
from kafkadash.planning.solver.request import PLANNED_MODES, PlanRequest
from kafkadash.planning.solver.request_problems import PlanAnswer, build_planned
from kafkadash.planning.topology import BadTopology, ClusterTopology, read_topology

FORMAT = 2
PLANNED, PROBLEMS = 0, 2
MOST_LISTED = 1000


class _PlanProgress:
    """Says how far it is; ``within`` scales a step's own share into the whole."""

    def __init__(self) -> None:
        self._said = 0.0

    def __call__(self, stage: str, fraction: float) -> None:
        self._said = max(self._said, round(fraction, 3))
        sys.stdout.write(json.dumps({"stage": stage, "fraction": self._said}) + "\n")
        sys.stdout.flush()


def run(folder: Path, say: Say) -> int:
    """Raises what only a fault of this program or of its caller can raise; MemoryError where the limit is too low."""
    began = time.monotonic()
    request = json.loads((folder / "request.json").read_bytes())
    if request["format"] != FORMAT:
        raise ValueError(f"request.json has format {request['format']}; this version reads format {FORMAT}")
    wanted = unpack_dataclass(PlanRequest, request["request"])
    limit = request.get("memory_bytes")
    if limit is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    say("reading the topology", 0.0)
    try:
        topology = read_topology((folder / "topology.json").read_bytes())
    except BadTopology as error:
        return _write_result(folder, build_planned((), [InputProblem(error.message)], ()), None, began, say)
    planned = _make_plan(folder, wanted, topology, say)
    return _write_result(folder, planned, (topology, wanted, bool(request.get("elect_leaders", True))), began, say)


def _make_plan(folder: Path, wanted: PlanRequest, topology: ClusterTopology, say: Say) -> PlanAnswer:
    brought = None
    if wanted.mode not in PLANNED_MODES:
        stage = "reading the file"
        say(stage, 0.2)
        content = (folder / "upload.json").read_bytes()
        brought = read_reassignment(content, lambda fraction: say(stage, 0.2 + 0.2 * fraction))
    return plan(topology, wanted, brought, lambda stage, fraction: say(stage, 0.4 + 0.2 * fraction))


def _write_result(
    folder: Path,
    planned: PlanAnswer,
    known: tuple[ClusterTopology, PlanRequest, bool] | None,
    began: float,
    say: Say,
) -> int:
    result: dict[str, Any] = {
        "format": FORMAT,
        "rows": len(planned.rows),
        "sha256": None,
        "problems": _serialize_problems(planned.problems),
        "problem_count": len(planned.problems),
        "notices": _serialize_problems(planned.notices),
        "notice_count": len(planned.notices),
        "impact": None,
        "proof": None,
        "generate_bytes": None,
        "rules": [],
    }
    if known is not None and not planned.problems:
        topology, wanted, elect = known
        say("computing the impact", 0.6)
        impact = impact_of(planned.rows, topology, disk_limit=wanted.disk_limit, elect_leaders=elect)
        say("checking the plan", 0.75)
        rules = checker.check(planned.rows, topology, checker.CheckRequest.of_request(wanted), impact, planned.proof)
        say("writing the plan", 0.9)
        artifact = canonical_bytes(planned.rows)
        _write(folder / "plan.json", artifact)
        result |= {
            "sha256": hash_artifact(artifact),
            "impact": pack_dataclass(impact),
            "proof": pack_dataclass(planned.proof) if planned.proof else None,
            "generate_bytes": generated_bytes(planned.rows, topology, wanted),
            "rules": [pack_dataclass(rule) for rule in rules],
        }
    result["seconds"] = round(time.monotonic() - began, 3)
    _write(folder / "result.json", json.dumps(result, separators=(",", ":")).encode())
    say("done", 1.0)
    return PROBLEMS if planned.problems else PLANNED


def _serialize_problems(problems: Sequence[InputProblem]) -> list[dict[str, Any]]:
    return [problem.as_json() for problem in problems[:MOST_LISTED]]


def _write(path: Path, content: bytes) -> None:
    """Write the file completely or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kafkadash.planning.plan_process FOLDER\n")
        return 64
    # Hundreds of thousands of small objects are made and none refers back: looking for cycles would double the time.
    gc.disable()
    folder, say = Path(arguments[0]), _PlanProgress()
    try:
        return run(folder, say)
    except MemoryError:
        pass
    except BrokenPipeError:
        # Whoever asked for the plan is gone; the interpreter must not stumble over the same pipe when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    soft, most = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))  # to say so needs a little more
    problem = InputProblem(coded(PlanErrorCode.PLANNER_OUT_OF_MEMORY, most=soft / 1e9))
    return _write_result(folder, build_planned((), [problem], ()), None, time.monotonic(), say)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
