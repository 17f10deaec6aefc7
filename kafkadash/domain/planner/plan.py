"""One way to every mode of planning: the command, the child process and the pages all come through here."""

from __future__ import annotations

from kafkadash.domain.kafka_json import Parsed
from kafkadash.domain.planner.exact import Say, exact
from kafkadash.domain.planner.explicit import explicit
from kafkadash.domain.planner.finish import finish
from kafkadash.domain.planner.planned import Planned, answer
from kafkadash.domain.planner.request import EXPLICIT, FINISH, PLANNED_MODES, PlanRequest
from kafkadash.domain.planner.request_problems import problems_of
from kafkadash.domain.planner.topology import Topology


def plan(topology: Topology, request: PlanRequest, brought: Parsed | None = None, say: Say | None = None) -> Planned:
    """The plan, or all that is in its way. ``brought``: the rows of a mode in which nothing is chosen.

    Raises ValueError where the mode is none of those planned here, or rows were not brought to one that needs them.
    """
    problems = problems_of(request, topology)
    if problems:
        return answer((), problems, ())
    if request.mode in PLANNED_MODES:
        return exact(topology, request, say)
    if request.mode not in (EXPLICIT, FINISH) or brought is None:
        raise ValueError(f"mode {request.mode!r} is not planned here, or its rows are missing")
    if say is not None:
        say("comparing with the cluster", 0.0)
    if request.mode == FINISH:
        return finish(brought, topology, disk_limit=request.disk_limit)
    return explicit(brought, topology, change_rf=request.change_rf, disk_limit=request.disk_limit)
