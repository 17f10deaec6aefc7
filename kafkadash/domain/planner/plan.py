"""One way to every mode of planning: the command, the child process and the pages all come through here."""

from __future__ import annotations

from collections.abc import Callable

from kafkadash.domain.kafka_json import Parsed
from kafkadash.domain.planner.drain import DrainRequest, drain
from kafkadash.domain.planner.explicit import explicit
from kafkadash.domain.planner.planned import Planned
from kafkadash.domain.planner.request import DRAIN, EXPLICIT, PlanRequest
from kafkadash.domain.planner.topology import Topology

Say = Callable[[str, float], None]
"""Is told the stage and the share of the planning that is done, from 0 to 1."""


def plan(topology: Topology, request: PlanRequest, brought: Parsed | None = None, say: Say | None = None) -> Planned:
    """The plan, or all that is in its way. ``brought``: the rows of a mode in which nothing is chosen.

    Raises ValueError where the mode is none of those planned here, or rows were not brought to one that needs them.
    """
    tell = say or (lambda _stage, _share: None)
    if request.mode == DRAIN:
        tell("placing replicas", 0.0)
        targets = None if request.targets is None else frozenset(request.targets)
        asked = DrainRequest(
            request.brokers,
            targets,
            request.disk_limit,
            ignore_racks=request.ignore_racks,
            accept_fewer_racks=request.accept_fewer_racks,
        )
        return drain(topology, asked)
    if request.mode == EXPLICIT and brought is not None:
        tell("comparing with the cluster", 0.0)
        return explicit(brought, topology, change_rf=request.change_rf, disk_limit=request.disk_limit)
    raise ValueError(f"mode {request.mode!r} is not planned here, or its rows are missing")
