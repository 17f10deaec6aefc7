"""Makes one plan: ``python -m kafkadash.plan_job FOLDER``, a process that knows the domain and nothing else.

It reads from FOLDER

- ``request.json``: ``{"format":2,"request":{…}}``, the request as of ``domain.planner.request.PlanRequest.as_json``,
  with, all optional: ``elect_leaders`` (true unless given), ``memory_bytes`` (limit of the address space of this
  process, null for none),
- ``topology.json``: the interchange format (``domain.planner.topology_json``),
- ``upload.json``: for the modes explicit and finish, Kafka's JSON as it was brought, byte for byte.

While it works it prints a line of JSON for each step: ``{"stage":"reading the file","fraction":0.31}``, the fraction of
the whole, which never falls. Then it writes into FOLDER

- ``plan.json``: the canonical artifact (``domain.plan.canonical``), only where there is a plan,
- ``result.json``: ``{"format":1,"rows":n,"sha256":"…"|null,"problems":[…],"problem_count":n,"notices":[…],
  "notice_count":n,"impact":{…}|null,"proof":{…}|null,"generate_bytes":n|null,"rules":[[rule,passed|null,figure,[problems]],…],"seconds":s}``;
  problems and notices as ``domain.problem.Problem.as_json``, at most 1,000 of each; impact as
  ``domain.impact.Impact.as_json``, proof as ``domain.planner.request.Proof.as_json``, ``generate_bytes`` is what
  Kafka's own generate would copy for the same.

Exit codes: 0 with a plan, 2 with problems (also when it ran out of memory, which is one), anything else is a fault of
this program, with a traceback on the standard error. A signal ends it at once; what it was writing is not there then.
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

from kafkadash.domain import checker
from kafkadash.domain.impact_of import impact_of
from kafkadash.domain.kafka_json import read_reassignment
from kafkadash.domain.plan import canonical, sha256
from kafkadash.domain.planner.exact import Say
from kafkadash.domain.planner.generated import generated_bytes
from kafkadash.domain.planner.plan import plan
from kafkadash.domain.planner.planned import Planned, answer
from kafkadash.domain.planner.request import PLANNED_MODES, PlanRequest
from kafkadash.domain.planner.topology import Topology
from kafkadash.domain.planner.topology_json import BadTopology, read_topology
from kafkadash.domain.problem import Problem, ProblemCode
from kafkadash.domain.refusals import planning

FORMAT = 2
PLANNED, PROBLEMS = 0, 2
MOST_LISTED = 1000


class _Progress:
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
    wanted = PlanRequest.from_json(request["request"])
    limit = request.get("memory_bytes")
    if limit is not None:
        _, most = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (limit if most == resource.RLIM_INFINITY else min(limit, most), most))
    say("reading the topology", 0.0)
    try:
        topology = read_topology((folder / "topology.json").read_bytes())
    except BadTopology as error:
        return _finish(folder, answer((), [Problem(ProblemCode.BAD_TOPOLOGY, str(error))], ()), None, began, say)
    planned = _planned(folder, wanted, topology, say)
    return _finish(folder, planned, (topology, wanted, bool(request.get("elect_leaders", True))), began, say)


def _planned(folder: Path, wanted: PlanRequest, topology: Topology, say: Say) -> Planned:
    brought = None
    if wanted.mode not in PLANNED_MODES:
        stage = "reading the file"
        say(stage, 0.2)
        content = (folder / "upload.json").read_bytes()
        brought = read_reassignment(content, lambda fraction: say(stage, 0.2 + 0.2 * fraction))
    return plan(topology, wanted, brought, lambda stage, fraction: say(stage, 0.4 + 0.2 * fraction))


def _finish(
    folder: Path,
    planned: Planned,
    known: tuple[Topology, PlanRequest, bool] | None,
    began: float,
    say: Say,
) -> int:
    result: dict[str, Any] = {
        "format": FORMAT,
        "rows": len(planned.rows),
        "sha256": None,
        "problems": _listed(planned.problems),
        "problem_count": len(planned.problems),
        "notices": _listed(planned.notices),
        "notice_count": len(planned.notices),
        "impact": None,
        "proof": None,
        "generate_bytes": None,
        "rules": [],
    }
    if known is not None and not planned.problems:
        topology, wanted, elect = known
        say("reckoning what it does", 0.6)
        impact = impact_of(planned.rows, topology, disk_limit=wanted.disk_limit, elect_leaders=elect)
        say("checking the plan", 0.75)
        rules = checker.check(planned.rows, topology, checker.Asked.of_request(wanted), impact, planned.proof)
        say("writing the plan", 0.9)
        artifact = canonical(planned.rows)
        _write(folder / "plan.json", artifact)
        result |= {
            "sha256": sha256(artifact),
            "impact": impact.as_json(),
            "proof": planned.proof.as_json() if planned.proof else None,
            "generate_bytes": generated_bytes(planned.rows, topology, wanted),
            "rules": [rule.as_json() for rule in rules],
        }
    result["seconds"] = round(time.monotonic() - began, 3)
    _write(folder / "result.json", json.dumps(result, separators=(",", ":")).encode())
    say("done", 1.0)
    return PROBLEMS if planned.problems else PLANNED


def _listed(problems: Sequence[Problem]) -> list[dict[str, Any]]:
    return [problem.as_json() for problem in problems[:MOST_LISTED]]


def _write(path: Path, content: bytes) -> None:
    """Whole or not at all."""
    unfinished = path.with_suffix(".unfinished")
    unfinished.write_bytes(content)
    unfinished.replace(path)


def main(arguments: Sequence[str]) -> int:
    if len(arguments) != 1:
        sys.stderr.write("usage: python -m kafkadash.plan_job FOLDER\n")
        return 64
    # Hundreds of thousands of small objects are made and none refers back: looking for cycles would double the time.
    gc.disable()
    folder, say = Path(arguments[0]), _Progress()
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
    sentence = planning.PLANNER_OUT_OF_MEMORY(most=soft / 1e9)
    return _finish(folder, answer((), [Problem(ProblemCode.MEMORY, sentence)], ()), None, time.monotonic(), say)


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
